package io.selinger.stats.imported

import io.selinger.stats.files.FooterReader
import java.net.URLEncoder
import java.nio.charset.StandardCharsets.UTF_8
import org.apache.hadoop.fs.Path
import org.apache.spark.SparkThrowable
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{
  FileFormat,
  FileIndex,
  HadoopFsRelation,
  PartitionDirectory
}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.StructType

/**
 * The files of a relation that is known by its statistics only. Spark plans a scan of them as of
 * any others, with the size that the file says; what asks for the files themselves raises
 * [[NoDataException]], so that nobody takes an empty answer for the answer.
 *
 * Instances are equal only to themselves, and hold no session.
 */
final class ImportedFileIndex(val relation: PortableRelation) extends FileIndex {

  // No name may choose another folder.
  override val rootPaths: Seq[Path] =
    Seq(new Path(ImportedFileIndex.root, "of-" + URLEncoder.encode(relation.name, UTF_8)))

  override def listFiles(
      partitionFilters: Seq[Expression],
      dataFilters: Seq[Expression]
  ): Seq[PartitionDirectory] = throw new NoDataException(relation.name)

  override def inputFiles: Array[String] = Array.empty

  override def refresh(): Unit = ()

  override val sizeInBytes: Long =
    math.min(relation.bytes, Long.MaxValue.toDouble / 2).toLong

  override val partitionSchema: StructType = {
    val names = relation.partitionColumns.map(FooterReader.columnName).toSet
    StructType(relation.schema.filter(field => names(FooterReader.columnName(field.name))))
  }

  private def dataSchema: StructType = {
    val partitions = partitionSchema.fieldNames.toSet
    StructType(relation.schema.filterNot(field => partitions(field.name)))
  }

  // What is neither Parquet nor ORC is planned as Parquet.
  private val format: FileFormat = relation.format match {
    case "orc" => new OrcFileFormat
    case _ => new ParquetFileFormat
  }

  /** The relation as a session plans it. */
  def toRelation(session: SparkSession): HadoopFsRelation =
    HadoopFsRelation(this, partitionSchema, dataSchema, None, format, Map.empty)(session)
}

object ImportedFileIndex {
  private val root = new Path("/imported-statistics")
}

/** Raised where a query on a relation that has statistics only would read its data. */
final class NoDataException(relation: String)
    extends UnsupportedOperationException(
      s"[${NoDataException.condition}] $relation was planned from imported statistics, and there " +
        "is no data to read. Its queries can be planned and explained here (EXPLAIN, " +
        "selinger.explain), and run where the data is."
    )
    with SparkThrowable {
  override def getCondition: String = NoDataException.condition
}

object NoDataException {
  val condition = "SELINGER_NO_DATA"
}
