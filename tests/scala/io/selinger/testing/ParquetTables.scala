package io.selinger.testing

import java.nio.file.{Files, Path}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * Generated Parquet tables, written once and the same at every run.
 *
 * @param tables their names, each with the number of rows and the columns as expressions of `id`
 */
abstract class ParquetTables(tables: Map[String, (Long, Seq[String])]) {

  final val names: Seq[String] = tables.keys.toSeq.sorted

  // To look for the format, the files and their columns takes Spark longer than most queries of tests.
  private lazy val written: Seq[(String, HadoopFsRelation)] = {
    val folder: Path = Files.createTempDirectory("selinger-tables")
    names.map { name =>
      val (rows, columns) = tables(name)
      val path = folder.resolve(name).toString
      SharedSession.stock.range(0, rows, 1, 2).selectExpr(columns: _*).write.parquet(path)
      val relation = Plans.execution(SharedSession.stock.read.parquet(path)).analyzed.collectFirst {
        case LogicalRelation(files: HadoopFsRelation, _, _, _, _) => files
      }
      name -> relation.getOrElse(throw new IllegalStateException(s"$name is not made of files"))
    }
  }

  /** Makes those tables known to a session that it does not know, by their names. */
  final def register(session: SparkSession): Unit =
    written.filterNot { case (name, _) => session.catalog.tableExists(name) }.foreach {
      case (name, files) =>
        session.baseRelationToDataFrame(files.copy()(session)).createOrReplaceTempView(name)
    }
}
