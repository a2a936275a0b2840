package io.selinger.stats

import io.selinger.core.Origin
import scala.collection.mutable

/**
 * A few ranges of whole numbers that hold all of a set of keys, apart from each other and in rising
 * order; both ends belong to a range.
 */
final case class KeyRanges(ranges: Seq[KeyRange]) {

  /** Whether any key may lie between two values on the axis of [[ColumnStatistics]]. */
  def overlap(low: Double, high: Double): Boolean =
    ranges.exists(range => range.low.toDouble <= high && range.high.toDouble >= low)

  /** Those parts that lie between two values, both included. */
  def within(low: Long, high: Long): KeyRanges = KeyRanges(ranges.collect {
    case KeyRange(from, to) if from <= high && to >= low =>
      KeyRange(math.max(from, low), math.min(to, high))
  })

  /** Whether every whole number between two values lies in one of the ranges. */
  def cover(low: Double, high: Double): Boolean =
    ranges.exists(range => range.low.toDouble <= low && range.high.toDouble >= high)
}

final case class KeyRange(low: Long, high: Long)

object KeyRanges {

  /** Of every whole number. */
  val all: KeyRanges = KeyRanges(Seq(KeyRange(Long.MinValue, Long.MaxValue)))

  /**
   * Cuts the keys at their widest gaps: what lies between two ranges is what can be skipped.
   *
   * @param keys in any order, also several times
   * @param most ranges, at least one
   */
  def of(keys: Array[Long], most: Int): KeyRanges =
    if (keys.isEmpty) KeyRanges(Nil)
    else {
      val sorted = keys.sorted
      // Keys may be the smallest and the largest number there is.
      def gap(i: Int) = sorted(i).toDouble - sorted(i - 1).toDouble
      val widest = mutable.PriorityQueue.empty[Int](Ordering.by(i => -gap(i)))
      for (i <- 1 until sorted.length if gap(i) > 1.0)
        if (widest.size < most - 1) widest += i
        else if (widest.headOption.exists(gap(_) < gap(i))) {
          val _ = widest.dequeue()
          widest += i
        }
      val cuts = widest.toSeq.sorted
      val starts = 0 +: cuts
      val ends = cuts :+ sorted.length
      KeyRanges(starts.zip(ends).map { case (from, until) =>
        KeyRange(sorted(from), sorted(until - 1))
      })
    }
}

/**
 * What a reader that wants certain keys of one column finds out from footers.
 *
 * @param rows of the files
 * @param kept rows of those row groups that may hold a key
 * @param canSkipMore whether it can skip parts of these row groups, as some ranges show which are not
 *   covered by the keys
 * @param origin of both numbers of rows
 */
final case class RowsWithKeys(
    rows: Double,
    kept: Double,
    canSkipMore: Boolean,
    origin: Origin = Origin.Exact
) {
  def +(other: RowsWithKeys): RowsWithKeys = RowsWithKeys(
    rows + other.rows,
    kept + other.kept,
    canSkipMore || other.canSkipMore,
    origin.worse(other.origin)
  )

  /** Of all files, where these are some. */
  def extrapolated(times: Double): RowsWithKeys =
    copy(rows = rows * times, kept = kept * times, origin = origin.worse(Origin.Sampled))
}

object RowsWithKeys {

  /** Of one file. */
  def of(file: FileFooter, column: String, keys: KeyRanges): RowsWithKeys = {
    val footer = file.columns.get(column)
    val range = footer.flatMap(known => known.min.zip(known.max))
    if (range.exists { case (low, high) => !keys.overlap(low, high) }) {
      RowsWithKeys(file.rows.toDouble, 0.0, canSkipMore = false)
    } else {
      val groups = footer.fold(GroupRanges.unknown)(_.groups)
      val skipped = file.groups.zipWithIndex.collect {
        case (rows, group) if !groups.mayHold(keys, group) => rows
      }.sum
      val isCovered = range.forall { case (low, high) => keys.cover(low, high) }
      RowsWithKeys(
        file.rows.toDouble,
        (file.rows - skipped).toDouble,
        groups.indexed && !isCovered
      )
    }
  }
}
