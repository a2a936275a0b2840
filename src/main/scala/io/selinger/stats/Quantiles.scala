package io.selinger.stats

import org.apache.spark.sql.catalyst.plans.logical.Histogram

/**
 * How the values of a column are spread over its axis: for some places, ascending, which share of
 * the values lies below each, and which up to it. Between two places values are taken to be evenly
 * spread. Nulls are left out; NaN lies at infinity, for it is larger than any number.
 *
 * @param places strictly ascending, at most [[Quantiles.most]]
 * @param below share of values less than the place
 * @param upTo share of values less than or equal to the place
 */
final case class Quantiles private (
    places: IndexedSeq[Double],
    below: IndexedSeq[Double],
    upTo: IndexedSeq[Double]
) {

  /** Places with both shares: what [[Quantiles.fromPoints]] takes. */
  def points: Seq[(Double, Double, Double)] =
    places.indices.map(i => (places(i), below(i), upTo(i)))

  /** Share of values less than `place`; discrete values lie `step` apart. */
  def shareBelow(place: Double, step: Double = 0.0): Double = at(place, -step / 2, below)

  /** Share of values at most `place`. */
  def shareUpTo(place: Double, step: Double = 0.0): Double = at(place, step / 2, upTo)

  /** The place that this share of the values lies below. */
  def placeOf(share: Double): Double = {
    val next = places.indices.find(i => upTo(i) >= share).getOrElse(places.size - 1)
    val before = next - 1
    if (next == 0 || share >= below(next) || places(next).isInfinite || places(before).isInfinite)
      places(next)
    else {
      val part = (share - upTo(before)) / math.max(1e-12, below(next) - upTo(before))
      places(before) + (places(next) - places(before)) * part
    }
  }

  /** Those of the values from `low` to `high`; `None` where none are known to lie there. */
  def within(low: Double, high: Double): Option[Quantiles] = {
    val (from, to) = (shareBelow(low), shareUpTo(high))
    val total = to - from
    if (total <= 0.0 || total.isNaN) None
    else {
      def scaled(share: Double) = math.max(0.0, math.min(1.0, (share - from) / total))
      val inside = places.indices.filter(i => places(i) >= low && places(i) <= high)
      val kept = inside.map(i => (places(i), scaled(below(i)), scaled(upTo(i))))
      def end(place: Double, share: Double) =
        if (place.isInfinite || inside.exists(places(_) == place)) Nil
        else Seq((place, share, share))
      val (first, last) = (math.max(low, places.head), math.min(high, places.last))
      Quantiles.fromPoints(end(first, 0.0) ++ kept ++ (if (last > first) end(last, 1.0) else Nil))
    }
  }

  /** Through a function of the axis that rises or falls everywhere. */
  def moved(to: Double => Double): Option[Quantiles] = {
    val moved = places.indices.map(i => (to(places(i)), below(i), upTo(i)))
    val falls = moved.size > 1 && moved.head._1 > moved.last._1
    Quantiles.fromPoints(
      if (falls) moved.map { case (place, low, high) => (place, 1.0 - high, 1.0 - low) } else moved
    )
  }

  private def at(place: Double, shift: Double, exact: IndexedSeq[Double]): Double = {
    val found = java.util.Arrays.binarySearch(keys, place)
    if (found >= 0) exact(found)
    else {
      val next = -found - 1
      if (next == 0) 0.0
      else if (next == places.size) 1.0
      else {
        val (left, right) = (places(next - 1), places(next))
        val (from, to) = (upTo(next - 1), below(next))
        // Towards infinity nothing lies between.
        if (left.isInfinite || right.isInfinite) from
        else {
          val part = (place + shift - left) / (right - left)
          from + (to - from) * math.max(0.0, math.min(1.0, part))
        }
      }
    }
  }

  private lazy val keys: Array[Double] = places.toArray
}

object Quantiles {

  /** Places that are kept of a column at most. */
  val most: Int = 64

  /** Of (place, share below, share up to); `None` without places, or where shares fall. */
  def fromPoints(points: Seq[(Double, Double, Double)]): Option[Quantiles] = {
    val sorted = points.sortBy(_._1).toIndexedSeq
    val shares = sorted.flatMap { case (_, low, high) => Seq(low, high) }
    val rising = shares.zip(shares.drop(1)).forall { case (a, b) => a <= b + 1e-9 }
    val distinct = sorted.map(_._1).distinct.size == sorted.size
    Option.when(
      sorted.nonEmpty && sorted.size <= most && rising && distinct &&
        !sorted.exists(_._1.isNaN) && shares.forall(s => s >= 0.0 && s <= 1.0)
    )(Quantiles(sorted.map(_._1), sorted.map(_._2), sorted.map(_._3)))
  }

  /** Of Spark's equi-height histogram: each bin holds the same share, a bin may be one value. */
  def fromHistogram(histogram: Histogram): Option[Quantiles] =
    if (histogram.bins.isEmpty) None
    else {
      val share = 1.0 / histogram.bins.length
      val bins = histogram.bins.toIndexedSeq
      val ends = (bins.map(_.lo) ++ bins.map(_.hi)).distinct.sorted
      def shareOf(place: Double, inclusive: Boolean): Double = bins.map { bin =>
        if (place > bin.hi || (inclusive && place == bin.hi)) share
        else if (place < bin.lo || (place == bin.lo && !(inclusive && bin.hi == bin.lo))) 0.0
        else share * (place - bin.lo) / (bin.hi - bin.lo)
      }.sum.min(1.0)
      fromPoints(thinned(ends).map(place =>
        (place, shareOf(place, inclusive = false), shareOf(place, inclusive = true))
      ))
    }

  /** At most so many of sorted places, the first and the last among them. */
  def thinned(places: IndexedSeq[Double]): IndexedSeq[Double] =
    if (places.size <= most) places
    else (0 until most).map(i => places((i.toLong * (places.size - 1) / (most - 1)).toInt))

  /** Of values that are known one by one, in any order. */
  def mixed(parts: Seq[(Double, Quantiles)]): Option[Quantiles] = parts match {
    case Seq() => None
    case Seq((_, only)) => Some(only)
    case _ =>
      val total = parts.map(_._1).sum
      val places = thinned(parts.flatMap(_._2.places).distinct.sorted.toIndexedSeq)
      def share(of: Quantiles => Double) =
        math.min(1.0, parts.map { case (weight, part) => weight / total * of(part) }.sum)
      if (total <= 0) None
      else
        fromPoints(
          places.map(place => (place, share(_.shareBelow(place)), share(_.shareUpTo(place))))
        )
  }
}
