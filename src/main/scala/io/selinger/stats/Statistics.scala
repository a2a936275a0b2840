package io.selinger.stats

import io.selinger.core.{Origin, Quantity}
import scala.collection.immutable.ArraySeq

/**
 * What is known of one column. Values are on one numeric axis a type: numbers as they are, dates in
 * days and timestamps in microseconds since 1970-01-01, booleans 0 and 1. Types without such an
 * axis (strings, binary, nested) have neither `min` nor `max`.
 *
 * @param nullFraction share of rows that are null, 0 to 1
 * @param distinct distinct values other than null
 * @param averageBytes width of a value in a row, for types of variable width
 * @param frequent values that are much more frequent than the others, most frequent first
 * @param isWhole whether the files store whole numbers, which nothing scales when they are read
 * @param rangeSeen whether `min` and `max` are those of the rows that predicates have left, as a
 *   sample shows, rather than what is left of the relation's range when values are ruled out
 * @param quantiles how the values that are not null are spread over the axis
 */
final case class ColumnStatistics(
    nullFraction: Option[Double] = None,
    min: Option[Double] = None,
    max: Option[Double] = None,
    distinct: Option[Double] = None,
    averageBytes: Option[Double] = None,
    frequent: Seq[FrequentValue] = Nil,
    isWhole: Boolean = false,
    rangeSeen: Boolean = false,
    quantiles: Option[Quantiles] = None
) {

  /** How far the values lie apart on average; 0 where that is not known. */
  def step: Double =
    (for (low <- min; high <- max; count <- distinct if count > 1) yield (high - low) / (count - 1))
      .filterNot(_.isInfinite)
      .getOrElse(0.0)
}

/**
 * @param value as Catalyst holds it
 * @param share of the rows whose value is not null
 */
final case class FrequentValue(value: Any, share: Double)

/**
 * What is known of one relation.
 *
 * @param rows of all files that a scan without filters reads
 * @param bound rows that it cannot exceed; only where every row was counted
 * @param columns by lower-case name
 * @param dictionaries distinct values of some chunks of those columns that were asked for, by
 *   lower-case name
 * @param groups row groups that a sample is taken from
 * @param keys sketches of all values of a column, by lower-case name, where they were collected
 * @param sample rows that were collected, of all files; takes the place of reading some
 */
final case class RelationStatistics(
    rows: Quantity,
    bound: Option[Double],
    columns: Map[String, ColumnStatistics],
    dictionaries: Map[String, Seq[ChunkDistinct]] = Map.empty,
    groups: RowGroups = RowGroups.none,
    keys: Map[String, KeySketch] = Map.empty,
    sample: Option[StoredSample] = None
)

/**
 * What one file's footer says of one column.
 *
 * @param min as in [[ColumnStatistics]]
 * @param max as in [[ColumnStatistics]]
 * @param groups ranges of values of its row groups
 * @param isWhole as in [[ColumnStatistics]]
 */
final case class ColumnFooter(
    uncompressedBytes: Long,
    nulls: Option[Long],
    min: Option[Double],
    max: Option[Double],
    averageBytes: Option[Double],
    groups: GroupRanges = GroupRanges.unknown,
    isWhole: Boolean = false
)

/**
 * Ranges of one column's values in the row groups of one file, in their order.
 *
 * @param lows NaN where a row group's range is not known, and where it has nulls only
 * @param highs the same
 * @param indexed whether the file also knows the ranges of smaller parts, which readers can skip
 */
final case class GroupRanges(lows: ArraySeq[Double], highs: ArraySeq[Double], indexed: Boolean) {

  /** Whether a reader that looks for these keys has to read a row group. */
  def mayHold(keys: KeyRanges, group: Int): Boolean =
    group >= lows.size || lows(group).isNaN || keys.overlap(lows(group), highs(group))
}

object GroupRanges {
  val unknown: GroupRanges = GroupRanges(ArraySeq.empty, ArraySeq.empty, indexed = false)
}

/**
 * What one file's footer says.
 *
 * @param columns by lower-case name
 * @param groups rows of each row group, where the format has any to sample from
 */
final case class FileFooter(
    rows: Long,
    columns: Map[String, ColumnFooter],
    groups: Seq[Long] = Nil
)

/**
 * Distinct values of one chunk of a column, counted.
 *
 * @param rows whose value is not null
 * @param min as in [[ColumnStatistics]]
 * @param max as in [[ColumnStatistics]]
 */
final case class ChunkDistinct(
    values: Double,
    rows: Double,
    min: Option[Double],
    max: Option[Double]
)

/** What a file says of the distinct values of one column in one row group. */
sealed abstract class ChunkCount

object ChunkCount {
  final case class Counted(distinct: ChunkDistinct) extends ChunkCount

  /** There are values, and nobody counted them. */
  case object Unknown extends ChunkCount

  /** There are only nulls. */
  case object Empty extends ChunkCount

  /** The counts of those columns that were counted wherever they have values. */
  def merge(chunks: Map[String, Seq[ChunkCount]]): Map[String, Seq[ChunkDistinct]] =
    chunks.collect {
      case (name, counts) if !counts.contains(Unknown) =>
        name -> counts.collect { case Counted(distinct) => distinct }
    }.filter(_._2.nonEmpty)
}

/** The footers of a relation's files taken together. */
object FooterMerge {

  /** One file of the relation with its footer, if that was read. */
  final case class File(bytes: Long, footer: Option[FileFooter])

  /**
   * Rows and columns of all files. Files whose footer is missing are extrapolated by bytes, and
   * then the result counts as sampled and bounds nothing. `None` where no footer was read of files
   * that hold something.
   */
  def merge(files: Seq[File]): Option[RelationStatistics] =
    merge(files.filter(_.footer.isDefined), files.size, files.map(_.bytes.toDouble).sum)

  /** The same of `files` files of `bytes` bytes, of which those with a footer are `known`. */
  def merge(known: Seq[File], files: Int, bytes: Double): Option[RelationStatistics] = {
    val read = known.flatMap(_.footer)
    val complete = read.size == files
    val readBytes = known.map(_.bytes.toDouble).sum
    if (!complete && readBytes <= 0) None
    else {
      val counted = read.map(_.rows.toDouble).sum
      val scale = if (complete) 1.0 else bytes / readBytes
      val origin = if (complete) Origin.Exact else Origin.Sampled
      val names = read.iterator.flatMap(_.columns.keysIterator).toSet
      Some(
        RelationStatistics(
          Quantity(counted * scale, origin),
          if (complete) Some(counted) else None,
          // A file without rows may have no columns either.
          names.iterator.map(name => name -> column(name, read.filter(_.rows > 0), counted)).toMap
        )
      )
    }
  }

  private def column(name: String, files: Seq[FileFooter], rows: Double): ColumnStatistics = {
    val present = files.filter(_.columns.contains(name))
    val chunks = present.map(_.columns(name))
    // What a file that lacks the column yields is the table's to say: null, or a default value.
    val everywhere = present.size == files.size
    val nulls = if (everywhere) allOf(chunks.map(_.nulls.map(_.toDouble))).map(_.sum) else None
    // A file of nulls only has no bounds and does not limit those of the others.
    val bounded = present.collect {
      case file if !file.columns(name).nulls.contains(file.rows) => file.columns(name)
    }
    val widths = present.flatMap(file =>
      file.columns(name).averageBytes.map(width => (width, file.rows.toDouble))
    )
    val weight = widths.map(_._2).sum
    ColumnStatistics(
      nullFraction = nulls.filter(_ => rows > 0).map(n => math.min(1.0, n / rows)),
      min = if (everywhere) allOf(bounded.map(_.min)).filter(_.nonEmpty).map(_.min) else None,
      max = if (everywhere) allOf(bounded.map(_.max)).filter(_.nonEmpty).map(_.max) else None,
      averageBytes =
        if (weight > 0) Some(widths.map { case (width, n) => width * n }.sum / weight) else None,
      isWhole = chunks.forall(_.isWhole)
    )
  }

  private def allOf(values: Seq[Option[Double]]): Option[Seq[Double]] =
    if (values.forall(_.isDefined)) Some(values.flatten) else None
}
