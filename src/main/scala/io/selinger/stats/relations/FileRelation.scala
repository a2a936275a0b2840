package io.selinger.stats.relations

import io.selinger.core.FileBytes
import io.selinger.stats.{ColumnStatistics, FileSet, NumericAxis}
import io.selinger.stats.files.{FileListing, FileListings, FooterReader}
import io.selinger.stats.orc.OrcFooters
import io.selinger.stats.parquet.ParquetFooters
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeSet,
  Expression,
  SubqueryExpression,
  Unevaluable,
  UserDefinedExpression
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{
  FileFormat,
  FileIndex,
  HadoopFsRelation,
  LogicalRelation,
  PartitionDirectory,
  PartitioningAwareFileIndex
}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, FileScan}
import org.apache.spark.sql.execution.datasources.v2.orc.OrcScan
import org.apache.spark.sql.execution.datasources.v2.parquet.ParquetScan
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructType

/**
 * A scan of Parquet or ORC files whose listing is already on the driver, so that asking for it
 * starts no job. Other indexes (Delta's, say) compute their listing, and are left alone.
 */
final case class FileRelation(
    plan: LogicalPlan,
    reader: FooterReader,
    partitionSchema: StructType,
    private val index: PartitioningAwareFileIndex,
    private val pushedFilters: Seq[Expression],
    private val options: Map[String, String]
) {

  /** The table, or the last part of the path. */
  def name: String = plan match {
    case LogicalRelation(_, _, Some(table), _, _) => table.identifier.unquotedString
    case relation: DataSourceV2ScanRelation if relation.relation.identifier.isDefined =>
      relation.relation.identifier.map(_.toString).mkString
    case _ => index.rootPaths.headOption.map(_.getName).getOrElse("no files")
  }

  /** The paths that identify the relation, however it is read. */
  def roots: Seq[Path] = plan match {
    case LogicalRelation(_, _, table, _, _) => RootPaths.qualified(index.rootPaths, table, hadoop)
    case _ => RootPaths.qualified(index.rootPaths, None, hadoop)
  }

  private val partitionColumns: AttributeSet = {
    val names = partitionSchema.fieldNames.map(FooterReader.columnName).toSet
    AttributeSet(plan.output.filter(column => names(FooterReader.columnName(column.name))))
  }

  /** Those of `predicates` that choose among partitions before a file is opened. */
  def partitionFilters(predicates: Seq[Expression]): Seq[Expression] =
    predicates.filter { predicate =>
      predicate.deterministic && predicate.references.nonEmpty &&
      predicate.references.subsetOf(partitionColumns) &&
      !SubqueryExpression.hasSubquery(predicate) &&
      // What the driver cannot evaluate, or should not: user code.
      !predicate.exists {
        case _: Attribute => false
        case other => other.isInstanceOf[Unevaluable] || other.isInstanceOf[UserDefinedExpression]
      }
    }

  /**
   * The files of those partitions that remain under `filters` (see [[partitionFilters]]).
   *
   * @param most files whose footers are to be read
   */
  def listing(filters: Seq[Expression], most: Int): FileListing = {
    val all = pushedFilters ++ filters
    FileListings.cached(index, all, most) {
      val partitions = index.listFiles(all, Nil)
      FileListing
        .of(partitions.view.flatMap(_.files.iterator.map(_.fileStatus)), most)
        .copy(partitions = columnsOf(partitions))
    }
  }

  /** Equal for relations over the same listing. */
  def source: AnyRef = index

  /** Of all files, whatever partitions are wanted. */
  def bytes: Double = FileBytes.of(index)

  /** All files that it reads, unless it reads some partitions only. */
  def allFiles: Option[FileSet] =
    Option.when(pushedFilters.isEmpty)(FileRelation.filesOf(index))

  /** All files of those partitions, however many there are. */
  def files(filters: Seq[Expression]): Iterator[FileStatus] =
    index.listFiles(pushedFilters ++ filters, Nil).iterator.flatMap(_.files).map(_.fileStatus)

  /** Partition columns are in no file; the listing has all their values, and bytes for rows. */
  private def columnsOf(partitions: Seq[PartitionDirectory]): Map[String, ColumnStatistics] =
    if (partitionSchema.isEmpty) Map.empty
    else {
      val bytes = partitions.map(_.files.iterator.map(_.fileStatus.getLen.toDouble).sum)
      val total = bytes.sum
      partitionSchema.fields.toSeq.zipWithIndex.map { case (field, i) =>
        val values = partitions.map(_.values.get(i, field.dataType))
        val known = values.filter(_ != null)
        val axis = known.flatMap(NumericAxis.place(_, field.dataType))
        val nullBytes = values.zip(bytes).collect { case (null, size) => size }.sum
        FooterReader.columnName(field.name) -> ColumnStatistics(
          nullFraction = Option.when(total > 0)(nullBytes / total),
          min = axis.minOption,
          max = axis.maxOption,
          distinct = Some(known.distinct.size.toDouble),
          isWhole = NumericAxis.isWhole(field.dataType)
        )
      }.toMap
    }

  /** Whether columns are found in the files by their names, rather than by places or ids. */
  def readsByName: Boolean = reader match {
    case OrcFooters =>
      !plan.output.exists(_.name.startsWith("_col")) &&
      !hadoop.getBoolean("orc.force.positional.evolution", false)
    case _ => !SQLConf.get.parquetFieldIdReadEnabled
  }

  def hadoop: Configuration =
    SparkSession.active.sessionState.newHadoopConfWithOptions(options)
}

object FileRelation {

  def unapply(plan: LogicalPlan): Option[FileRelation] = plan match {
    case relation: LogicalRelation if !relation.isStreaming =>
      relation.relation match {
        case fs: HadoopFsRelation =>
          for (index <- listed(fs.location); reader <- readerOf(fs.fileFormat))
            yield FileRelation(plan, reader, fs.partitionSchema, index, Nil, fs.options)
        case _ => None
      }
    case relation: DataSourceV2ScanRelation =>
      relation.scan match {
        case scan: FileScan =>
          for (index <- listed(scan.fileIndex); reader <- readerOf(scan))
            yield FileRelation(
              plan,
              reader,
              // Listings have all partition columns, also those that the scan does not return.
              scan.fileIndex.partitionSchema,
              index,
              scan.partitionFilters,
              Map.empty
            )
        case _ => None
      }
    case _ => None
  }

  /** All files of a listing. They are looked through once for as long as it is not refreshed. */
  def filesOf(index: PartitioningAwareFileIndex): FileSet = FileListings.all(index)

  private def listed(index: FileIndex): Option[PartitioningAwareFileIndex] = index match {
    case known: PartitioningAwareFileIndex => Some(known)
    case _ => None
  }

  // Exactly Spark's own classes: a subclass may drop rows that the footer counts.
  private def readerOf(format: FileFormat): Option[FooterReader] =
    if (format.getClass == classOf[ParquetFileFormat]) Some(ParquetFooters)
    else if (format.getClass == classOf[OrcFileFormat]) Some(OrcFooters)
    else None

  private def readerOf(scan: FileScan): Option[FooterReader] = scan match {
    case parquet: ParquetScan if parquet.pushedAggregate.isEmpty => Some(ParquetFooters)
    case orc: OrcScan if orc.pushedAggregate.isEmpty => Some(OrcFooters)
    case _ => None
  }
}
