package io.selinger.stats.parquet

import io.selinger.stats.{ColumnFooter, FileFooter, GroupRanges}
import io.selinger.stats.files.{DistinctReader, FooterReader, SampleReader}
import java.math.{BigDecimal => JBigDecimal, BigInteger}
import java.util.concurrent.TimeUnit
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.parquet.column.statistics.{
  BinaryStatistics,
  BooleanStatistics,
  DoubleStatistics,
  FloatStatistics,
  IntStatistics,
  LongStatistics,
  Statistics => ChunkStatistics
}
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData
import org.apache.parquet.schema.LogicalTypeAnnotation
import org.apache.parquet.schema.LogicalTypeAnnotation._
import org.apache.parquet.schema.PrimitiveType
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName
import scala.collection.immutable.ArraySeq
import scala.jdk.CollectionConverters._

/** Reads the footer of one Parquet file. */
object ParquetFooters extends FooterReader {

  override def read(file: FileStatus, hadoop: Configuration): FileFooter = {
    val groups = ParsedFooters.read(file, hadoop).getBlocks.asScala.toSeq
    val chunks = groups.flatMap(_.getColumns.asScala)
    val columns = chunks
      .groupBy(chunk => FooterReader.columnName(chunk.getPath.toArray.head))
      // Of names that differ in case only, nobody can tell which one a query means.
      .filter { case (_, parts) => parts.map(_.getPath.toArray.head).distinct.size == 1 }
    val rows = groups.map(_.getRowCount).sum
    FileFooter(
      rows,
      columns.map { case (name, parts) => name -> column(parts, rows) },
      ArraySeq.from(groups.map(_.getRowCount))
    )
  }

  override def samples: Option[SampleReader] = Some(ParquetSamples)

  override def dictionaries: Option[DistinctReader] = Some(ParquetDictionaries)

  private def column(chunks: Seq[ColumnChunkMetaData], rows: Long): ColumnFooter = {
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
      if (rows == 0) None
      else if (nested) Some(chunks.map(nestedBytes).sum / rows)
      else averageBytes(chunks),
      if (nested) GroupRanges.unknown else groupRanges(chunks),
      isWhole = !nested && chunks.forall(chunk => isWhole(chunk.getPrimitiveType))
    )
  }

  private def isWhole(kind: PrimitiveType): Boolean = kind.getPrimitiveTypeName match {
    case PrimitiveTypeName.INT32 | PrimitiveTypeName.INT64 =>
      kind.getLogicalTypeAnnotation match {
        case null => true
        case int: IntLogicalTypeAnnotation => int.isSigned
        case _ => false
      }
    case _ => false
  }

  /** A column that is not nested has one chunk in each row group. */
  private def groupRanges(chunks: Seq[ColumnChunkMetaData]): GroupRanges = {
    val known = chunks.map(chunk => range(chunk.getPrimitiveType, chunk.getStatistics))
    if (known.forall(_.isEmpty)) GroupRanges.unknown
    else {
      GroupRanges(
        ArraySeq.from(known.map(_.fold(Double.NaN)(_._1))),
        ArraySeq.from(known.map(_.fold(Double.NaN)(_._2))),
        indexed = chunks.forall(_.getColumnIndexReference != null)
      )
    }
  }

  private[stats] def range(
      kind: PrimitiveType,
      stats: ChunkStatistics[_]
  ): Option[(Double, Double)] = {
    val annotation = kind.getLogicalTypeAnnotation
    def scaled(low: Long, high: Long) =
      factor(annotation).map(scale => (low * scale, high * scale))
    stats match {
      case known if known == null || !known.hasNonNullValue => None
      case ints: IntStatistics => scaled(ints.getMin.toLong, ints.getMax.toLong)
      case longs: LongStatistics => scaled(longs.getMin, longs.getMax)
      case floats: FloatStatistics =>
        FooterReader.range(floats.getMin.toDouble, floats.getMax.toDouble)
      case doubles: DoubleStatistics => FooterReader.range(doubles.getMin, doubles.getMax)
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
        case LogicalTypeAnnotation.TimeUnit.MILLIS =>
          Some(TimeUnit.MILLISECONDS.toMicros(1).toDouble)
        case LogicalTypeAnnotation.TimeUnit.MICROS => Some(1.0)
        case LogicalTypeAnnotation.TimeUnit.NANOS => Some(1e-3)
      }
    case _ => None
  }

  /** Bytes of one leaf of a nested column in memory: at least a word a value. */
  private def nestedBytes(chunk: ColumnChunkMetaData): Double =
    unencodedBytes(chunk).getOrElse(
      math.max(chunk.getTotalUncompressedSize.toDouble, 8.0 * chunk.getValueCount)
    )

  /** What newer writers note of strings: their bytes before any encoding. */
  private def unencodedBytes(chunk: ColumnChunkMetaData): Option[Double] =
    Option(chunk.getSizeStatistics)
      .filter(_.isValid)
      .flatMap(sizes =>
        Option.when(sizes.getUnencodedByteArrayDataBytes.isPresent)(
          sizes.getUnencodedByteArrayDataBytes.get.toDouble
        )
      )

  /**
   * Width of a value in a row. Where the writer did not note it and a chunk is dictionary-encoded,
   * its bytes say little of its values; the smallest and the largest value stand in, and without
   * these nothing is known.
   */
  private def averageBytes(chunks: Seq[ColumnChunkMetaData]): Option[Double] = {
    val values = chunks.map(_.getValueCount).sum.toDouble
    val unencoded = chunks.map(unencodedBytes)
    val stored = chunks.map(_.getTotalUncompressedSize.toDouble).sum
    if (values == 0) None
    else if (unencoded.forall(_.isDefined)) Some(unencoded.flatten.sum / values)
    else if (!chunks.exists(_.getEncodings.asScala.exists(_.usesDictionary))) Some(stored / values)
    else {
      val seen = chunks.map(_.getStatistics).collect {
        case stats: BinaryStatistics if stats.hasNonNullValue =>
          (stats.getMinBytes.length + stats.getMaxBytes.length) / 2.0
      }
      seen.maxOption.map(math.max(_, stored / values))
    }
  }
}
