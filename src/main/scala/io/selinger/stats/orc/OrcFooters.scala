package io.selinger.stats.orc

import io.selinger.stats.{ColumnFooter, FileFooter, GroupRanges}
import io.selinger.stats.files.{DistinctReader, FooterReader, SampleReader}
import java.util.concurrent.TimeUnit
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.orc.{
  BinaryColumnStatistics,
  BooleanColumnStatistics,
  ColumnStatistics => OrcStatistics,
  DateColumnStatistics,
  DecimalColumnStatistics,
  DoubleColumnStatistics,
  IntegerColumnStatistics,
  OrcFile,
  Reader,
  StringColumnStatistics,
  TimestampColumnStatistics,
  TypeDescription
}
import scala.collection.immutable.ArraySeq
import scala.jdk.CollectionConverters._

/** Reads the footer of one ORC file. */
object OrcFooters extends FooterReader {

  override def read(file: FileStatus, hadoop: Configuration): FileFooter = {
    val options = OrcFile.readerOptions(hadoop).maxLength(file.getLen)
    val reader = OrcFile.createReader(file.getPath, options)
    try {
      val statistics = reader.getStatistics
      val schema = reader.getSchema
      val rows = reader.getNumberOfRows
      // A file without columns has no field names at all.
      val names = Option(schema.getFieldNames).map(_.asScala.toSeq).getOrElse(Nil)
      val columns = names.zip(Option(schema.getChildren).map(_.asScala.toSeq).getOrElse(Nil))
      FileFooter(
        rows,
        columns.collect {
          case (name, child) if child.getId < statistics.length =>
            FooterReader.columnName(name) -> column(reader, child, statistics(child.getId))
        }.toMap,
        ArraySeq.from(reader.getStripes.asScala.map(_.getNumberOfRows))
      )
    } finally reader.close()
  }

  /** Whether columns have no names of their own, as in early files of Hive: Spark takes them by their places. */
  def hasNoNames(file: FileStatus, hadoop: Configuration): Boolean = {
    val reader =
      OrcFile.createReader(file.getPath, OrcFile.readerOptions(hadoop).maxLength(file.getLen))
    try {
      val names = Option(reader.getSchema.getFieldNames).map(_.asScala.toSeq).getOrElse(Nil)
      names.nonEmpty && names.forall(_.startsWith("_col"))
    } finally reader.close()
  }

  override def samples: Option[SampleReader] = Some(OrcSamples)

  override def dictionaries: Option[DistinctReader] = Some(OrcDictionaries)

  private def column(reader: Reader, kind: TypeDescription, stats: OrcStatistics): ColumnFooter = {
    val (rows, values) = (reader.getNumberOfRows, stats.getNumberOfValues)
    val range = if (values > 0) rangeOf(stats) else None
    ColumnFooter(
      stats.getBytesOnDisk,
      Some(math.max(0L, rows - values)),
      range.map(_._1),
      range.map(_._2),
      if (values > 0) width(reader, kind, stats).map(_ / values) else None,
      // Readers skip parts of a stripe, of whose ranges the footer says nothing.
      GroupRanges.unknown.copy(indexed = reader.getRowIndexStride > 0),
      isWhole = stats.isInstanceOf[IntegerColumnStatistics]
    )
  }

  /** Bytes of all values in memory, for types of variable width. */
  private def width(
      reader: Reader,
      kind: TypeDescription,
      stats: OrcStatistics
  ): Option[Double] = stats match {
    case strings: StringColumnStatistics => Some(strings.getSum.toDouble)
    case binaries: BinaryColumnStatistics => Some(binaries.getSum.toDouble)
    case _ if !kind.getCategory.isPrimitive =>
      val leaves = (kind.getId to kind.getMaximumId).map(Integer.valueOf).asJava
      Some(reader.getRawDataSizeFromColIndices(leaves).toDouble).filter(_ > 0)
    case _ => None
  }

  private def rangeOf(stats: OrcStatistics): Option[(Double, Double)] = stats match {
    case ints: IntegerColumnStatistics =>
      FooterReader.range(ints.getMinimum.toDouble, ints.getMaximum.toDouble)
    case doubles: DoubleColumnStatistics =>
      FooterReader.range(doubles.getMinimum, doubles.getMaximum)
    case dates: DateColumnStatistics =>
      FooterReader.range(dates.getMinimumDayOfEpoch.toDouble, dates.getMaximumDayOfEpoch.toDouble)
    case decimals: DecimalColumnStatistics =>
      for (low <- Option(decimals.getMinimum); high <- Option(decimals.getMaximum))
        yield (low.doubleValue, high.doubleValue)
    case times: TimestampColumnStatistics =>
      def micros(time: java.sql.Timestamp) =
        TimeUnit.MILLISECONDS.toMicros(time.getTime).toDouble
      for (low <- Option(times.getMinimumUTC); high <- Option(times.getMaximumUTC))
        yield (micros(low), micros(high))
    case booleans: BooleanColumnStatistics =>
      Some((
        if (booleans.getFalseCount > 0) 0.0 else 1.0,
        if (booleans.getTrueCount > 0) 1.0 else 0.0
      ))
    case _ => None
  }
}
