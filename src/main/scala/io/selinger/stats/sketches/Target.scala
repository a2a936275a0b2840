package io.selinger.stats.sketches

import io.selinger.stats.files.FooterReader
import io.selinger.stats.relations.RootPaths
import java.io.FileNotFoundException
import org.apache.hadoop.fs.{FileStatus, FileSystem, LocatedFileStatus, Path, RemoteIterator}
import org.apache.spark.sql.{AnalysisException, DataFrame}
import org.apache.spark.sql.catalyst.catalog.CatalogTable
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, Cast, NamedExpression}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project, SubqueryAlias, View}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex,
  DataSource,
  FileFormat,
  HadoopFsRelation,
  InMemoryFileIndex,
  LogicalRelation,
  PartitioningAwareFileIndex
}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2Relation, FileTable}
import org.apache.spark.sql.types.StructType
import scala.util.Try

/**
 * A relation that statistics can be collected of: Parquet or ORC files.
 *
 * @param name for people
 * @param roots folders or files that it consists of, which identify it
 * @param schema of the files, without partition columns
 * @param partitions partition columns
 */
private[sketches] final case class Target(
    name: String,
    roots: Seq[Path],
    format: FileFormat,
    options: Map[String, String],
    schema: StructType,
    partitions: StructType,
    private val relation: HadoopFsRelation
) {

  /** The files as they are listed now. */
  lazy val files: IndexedSeq[FileStatus] =
    relation.location.listFiles(Nil, Nil).flatMap(_.files.map(_.fileStatus)).toIndexedSeq

  def isParquet: Boolean = format.getClass == classOf[ParquetFileFormat]

  /** The same, with the files that are there now, which no other query refreshes. */
  def listedNow(session: SparkSession): Target = {
    val index =
      new InMemoryFileIndex(
        session,
        relation.location.rootPaths,
        relation.options,
        Some(partitions)
      )
    copy(relation = relation.copy(location = index)(session))
  }

  /** Whether Spark lists all files once, rather than those of partitions that a query needs. */
  def listsAllFiles: Boolean = relation.location.isInstanceOf[PartitioningAwareFileIndex]

  /** All rows of these files, or an error: none is left out, whatever the session allows. */
  def rows(session: SparkSession): DataFrame = {
    val strict = Seq("ignoreCorruptFiles", "ignoreMissingFiles")
    val others = relation.options.filterNot { case (key, _) => strict.exists(key.equalsIgnoreCase) }
    val all = relation.copy(options = others ++ strict.map(_ -> "false"))(session)
    session.baseRelationToDataFrame(all)
  }
}

private[sketches] object Target {

  /**
   * @param text a path, or the name of a table or a view
   * @throws java.lang.IllegalArgumentException with what to do instead, for anything else
   */
  def resolve(session: SparkSession, text: String): Target =
    named(session, text) match {
      case Some(plan) => ofPlan(session, text, plan)
      case None => ofPath(session, text)
    }

  private def named(session: SparkSession, text: String): Option[LogicalPlan] =
    Try(session.sessionState.sqlParser.parseMultipartIdentifier(text)).toOption.flatMap { _ =>
      try
        session.table(text) match {
          case table: Dataset[_] => Some(table.queryExecution.analyzed)
          case _ => None
        }
      catch { case _: AnalysisException => None }
    }

  private def ofPlan(session: SparkSession, text: String, plan: LogicalPlan): Target =
    stripped(plan) match {
      case LogicalRelation(fs: HadoopFsRelation, _, table, _, _) =>
        ofFiles(session, text, fs, table)
      case DataSourceV2Relation(table: FileTable, _, _, _, _, _) =>
        ofFiles(session, text, resolved(session, table.formatName, table.fileIndex.rootPaths), None)
      case other =>
        refuse(
          text,
          s"it is no plain scan of Parquet or ORC files, but reads through ${other.nodeName}"
        )
    }

  /** Without what only gives names to the same rows. */
  private def stripped(plan: LogicalPlan): LogicalPlan = plan match {
    case alias: SubqueryAlias => stripped(alias.child)
    case view: View => stripped(view.child)
    case Project(list, child) if list.forall(isPlain) => stripped(child)
    case other => other
  }

  private def isPlain(column: NamedExpression): Boolean = column match {
    case _: Attribute => true
    case Alias(same: Attribute, name) => same.name == name
    // A view casts its columns to the types that they had when it was made.
    case Alias(cast: Cast, name) =>
      cast.child match {
        case same: Attribute => same.name == name && same.dataType == cast.dataType
        case _ => false
      }
    case _ => false
  }

  private def ofPath(session: SparkSession, text: String): Target = {
    val hadoop = session.sessionState.newHadoopConf()
    val path = new Path(text)
    val fs =
      try path.getFileSystem(hadoop)
      catch { case error: java.io.IOException => refuse(text, error.getMessage) }
    val found =
      try Option(fs.globStatus(path)).toSeq.flatten
      catch { case _: FileNotFoundException => Nil }
    if (found.isEmpty) refuse(text, "there is no such table, view or path")
    val formats = found.iterator.flatMap(root => formatOf(fs, root)).take(1).toSeq
    formats.headOption match {
      case Some(Right(format)) =>
        ofFiles(session, text, resolved(session, format, Seq(path)), None)
      case Some(Left(file)) => refuse(text, s"$file is neither a Parquet nor an ORC file")
      case None => refuse(text, "there are no files in it")
    }
  }

  private def resolved(session: SparkSession, format: String, paths: Seq[Path]): HadoopFsRelation =
    DataSource(session, format, paths.map(_.toString)).resolveRelation() match {
      case fs: HadoopFsRelation => fs
      case other =>
        refuse(paths.mkString(", "), s"Spark reads it through ${other.getClass.getName}")
    }

  private def ofFiles(
      session: SparkSession,
      text: String,
      fs: HadoopFsRelation,
      table: Option[CatalogTable]
  ): Target = {
    if (
      fs.fileFormat.getClass != classOf[ParquetFileFormat] &&
      fs.fileFormat.getClass != classOf[OrcFileFormat]
    ) refuse(text, s"its format is ${fs.fileFormat}, and only Parquet and ORC files are read")
    fs.location match {
      case _: PartitioningAwareFileIndex | _: CatalogFileIndex => ()
      case other => refuse(text, s"its files are listed by ${other.getClass.getSimpleName}")
    }
    val names = fs.partitionSchema.fieldNames.map(FooterReader.columnName).toSet
    Target(
      text,
      RootPaths.qualified(fs.location.rootPaths, table, session.sessionState.newHadoopConf()),
      fs.fileFormat,
      fs.options,
      StructType(fs.dataSchema.filterNot(f => names(FooterReader.columnName(f.name)))),
      fs.partitionSchema,
      fs
    )
  }

  /** The format of the first data file below `root`, or its path if it has another one. */
  private def formatOf(fs: FileSystem, root: FileStatus): Option[Either[Path, String]] = {
    val files: RemoteIterator[LocatedFileStatus] = fs.listFiles(root.getPath, true)
    Iterator
      .continually(if (files.hasNext) Some(files.next()) else None)
      .takeWhile(_.isDefined)
      .flatten
      .filter(file => file.getLen > 0 && !isHidden(root.getPath, file.getPath))
      .map { file =>
        magicOf(fs, file.getPath) match {
          case "PAR1" => Right("parquet")
          case magic if magic.startsWith("ORC") => Right("orc")
          case _ => Left(file.getPath)
        }
      }
      .nextOption()
  }

  /** As Spark does: names that begin with `_` or `.`, but for partition folders. */
  private def isHidden(root: Path, path: Path): Boolean =
    Iterator
      .iterate(path)(_.getParent)
      .takeWhile(p => p != null && p != root)
      .map(_.getName)
      .exists(name => (name.startsWith("_") && !name.contains("=")) || name.startsWith("."))

  private def magicOf(fs: FileSystem, file: Path): String = {
    val in = fs.open(file)
    try {
      val bytes = new Array[Byte](4)
      in.readFully(0L, bytes)
      new String(bytes, "US-ASCII")
    } catch { case _: java.io.EOFException => "" }
    finally in.close()
  }

  private def refuse(text: String, why: String): Nothing =
    throw new IllegalArgumentException(
      s"$text cannot be analysed: $why. Name a folder or file of Parquet or ORC " +
        "data, a table of such files, or a view that is nothing but a scan of them."
    )
}
