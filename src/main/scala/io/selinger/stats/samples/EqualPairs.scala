package io.selinger.stats.samples

/**
 * Pairs of rows with equal keys, one row of each of two samples.
 *
 * @param pairs found
 * @param possible pairs of rows that were compared
 * @param variance of `pairs`, were the rows sampled anew
 */
final case class EqualPairs(pairs: Double, possible: Double, variance: Double)

object EqualPairs {

  /** Compares each row of `left` with each row of `right`; rows of one sample in halves. */
  private[samples] def count(
      left: SampledKeys,
      leftColumns: Seq[Int],
      right: SampledKeys,
      rightColumns: Seq[Int]
  ): EqualPairs = {
    val (leftCounts, rightCounts) = (left.counts(leftColumns), right.counts(rightColumns))
    // A sampled row is no evidence of another one like it in the same sample.
    val halved = left.source == right.source && !(left.complete && right.complete)
    def compared(l: Occurrences, r: Occurrences): Double =
      if (halved) l.even.toDouble * r.odd + l.odd.toDouble * r.even
      else l.all.toDouble * r.all
    var (pairs, variance) = (0.0, 0.0)
    KeyCounts.common(leftCounts, rightCounts) { (l, r) =>
      val more = compared(l, r)
      pairs += more
      variance += more * ((if (left.complete) 0 else r.all) + (if (right.complete) 0 else l.all))
    }
    EqualPairs(pairs, compared(leftCounts.total, rightCounts.total), variance)
  }
}
