package io.selinger.stats

import java.math.{BigDecimal => JBigDecimal, BigInteger}
import java.util.concurrent.TimeUnit
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.HadoopReadOptions
import org.apache.parquet.column.statistics.{
  BinaryStatistics,
  BooleanStatistics,
  DoubleStatistics,
  FloatStatistics,
  IntStatistics,
  LongStatistics,
  Statistics => ChunkStatistics
}
import org.apache.parquet.hadoop.ParquetFileReader
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData
import org.apache.parquet.hadoop.util.HadoopInputFile
import org.apache.parquet.schema.LogicalTypeAnnotation
import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType
import scala.jdk.CollectionConverters._

/** Reads the footer of one Parquet file. */
object ParquetFooters extends FooterReader {

  override def read(file: FileStatus, hadoop: Configuration): FileFooter = {
    val options = HadoopReadOptions.builder(hadoop, file.getPath).build()
    val reader = ParquetFileReader.open(HadoopInputFile.fromStatus(file, hadoop), options)
    try {
      val groups = reader.getFooter.getBlocks.asScala.toSeq
      val chunks = groups.flatMap(_.getColumns.asScala)
      val columns = chunks.groupBy(chunk => FooterReader.columnName(chunk.getPath.toArray.head))
      FileFooter(
        groups.map(_.getRowCount).sum,
        columns.map { case (name, parts) => name -> column(parts) })
    } finally reader.close()
  }

  private def column(chunks: Seq[ColumnChunkMetaData]): ColumnFooter = {
    val bytes = chunks.map(_.getTotalUncompressedSize).sum
    // Several leaves, or one that repeats, make a nested column: its values have no axis.
    val nested = chunks.exists(_.getPath.size > 1)
    val parts = chunks.map(chunk => (chunk, chunk.getStatistics))
    val nulls = parts.map { case (_, stats) =>
      if (!nested && stats != null && stats.isNumNullsSet) Some(stats.getNumNulls) else None
    }
    // Chunks of nulls only bound nothing.
    val bounded = parts.filterNot { case (chunk, stats) =>
      stats != null && stats.isNumNullsSet && stats.getNumNulls == chunk.getValueCount
    }
    val ranges =
      if (nested) Seq(None)
      else bounded.map { case (chunk, stats) => range(chunk.getPrimitiveType, stats) }
    val known = if (ranges.forall(_.isDefined)) ranges.flatten else Nil
    ColumnFooter(
      bytes,
      if (nulls.forall(_.isDefined)) Some(nulls.flatten.sum) else None,
      known.map(_._1).minOption,
      known.map(_._2).maxOption,
      averageBytes(chunks, bytes, nested))
  }

  private def range(
      kind: PrimitiveType,
      stats: ChunkStatistics[_]): Option[(Double, Double)] = {
    val annotation = kind.getLogicalTypeAnnotation
    def scaled(low: Long, high: Long) =
      factor(annotation).map(scale => (low * scale, high * scale))
    stats match {
      case known if known == null || !known.hasNonNullValue => None
      case ints: IntStatistics => scaled(ints.getMin.toLong, ints.getMax.toLong)
      case longs: LongStatistics => scaled(longs.getMin, longs.getMax)
      case floats: FloatStatistics => Some((floats.getMin.toDouble, floats.getMax.toDouble))
      case doubles: DoubleStatistics => Some((doubles.getMin, doubles.getMax))
      case booleans: BooleanStatistics =>
        Some((if (booleans.getMin) 1.0 else 0.0, if (booleans.getMax) 1.0 else 0.0))
      case binaries: BinaryStatistics =>
        annotation match {
          case decimal: DecimalLogicalTypeAnnotation =>
            def number(bytes: Array[Byte]) =
              new JBigDecimal(new BigInteger(bytes), decimal.getScale).doubleValue
            Some((number(binaries.getMinBytes), number(binaries.getMaxBytes)))
          case _ => None
        }
      case _ => None
    }
  }

  /** From stored integers to the axis of [[ColumnStatistics]]; none for unsigned and unknown kinds. */
  private def factor(annotation: LogicalTypeAnnotation): Option[Double] = annotation match {
    case null => Some(1.0)
    case int: IntLogicalTypeAnnotation => if (int.isSigned) Some(1.0) else None
    case _: DateLogicalTypeAnnotation => Some(1.0)
    case decimal: DecimalLogicalTypeAnnotation => Some(math.pow(10, -decimal.getScale.toDouble))
    case time: TimestampLogicalTypeAnnotation =>
      time.getUnit match {
        case LogicalTypeAnnotation.TimeUnit.MILLIS => Some(TimeUnit.MILLISECONDS.toMicros(1).toDouble)
        case LogicalTypeAnnotation.TimeUnit.MICROS => Some(1.0)
        case LogicalTypeAnnotation.TimeUnit.NANOS => Some(1e-3)
      }
    case _ => None
  }

  /**
   * Width of a value in a row. Where a chunk is dictionary-encoded its bytes say little of its
   * values, so the shortest and longest known value, and the usual width, bound it from below.
   */
  private def averageBytes(
      chunks: Seq[ColumnChunkMetaData],
      bytes: Long,
      nested: Boolean): Option[Double] = {
    val values = chunks.map(_.getValueCount).sum
    if (values == 0) None
    else {
      val stored = bytes.toDouble / values
      val encoded = chunks.exists(_.getEncodings.asScala.exists(_.usesDictionary))
      if (!encoded) Some(stored)
      else {
        val seen = chunks.map(_.getStatistics).collect {
          case stats: BinaryStatistics if !nested && stats.hasNonNullValue =>
            (stats.getMinBytes.length + stats.getMaxBytes.length) / 2.0
        }
        Some((stored +: FooterReader.usualWidth +: seen).max)
      }
    }
  }
}
