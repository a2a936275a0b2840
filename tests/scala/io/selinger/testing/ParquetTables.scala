package io.selinger.testing

import java.nio.file.{Files, Path}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.StructType

/**
 * Generated Parquet tables, written once and the same at every run.
 *
 * @param tables their names, each with the number of rows and the columns as expressions of `id`
 */
abstract class ParquetTables(tables: Map[String, (Long, Seq[String])]) {

  final val names: Seq[String] = tables.keys.toSeq.sorted

  // Spark would read the files again for the columns of each table, whenever a session learns of it.
  private lazy val written: Seq[(String, String, StructType)] = {
    val folder: Path = Files.createTempDirectory("selinger-tables")
    names.map { name =>
      val (rows, columns) = tables(name)
      val path = folder.resolve(name).toString
      SharedSession.stock.range(0, rows, 1, 2).selectExpr(columns: _*).write.parquet(path)
      (name, path, SharedSession.stock.read.parquet(path).schema)
    }
  }

  /** Makes those tables known to a session that it does not know, by their names. */
  final def register(session: SparkSession): Unit =
    written.filterNot { case (name, _, _) => session.catalog.tableExists(name) }.foreach {
      case (name, path, columns) =>
        session.read.schema(columns).parquet(path).createOrReplaceTempView(name)
    }
}
