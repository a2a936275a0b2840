package io.selinger.stats

import org.apache.datasketches.theta.{CompactSketch, SetOperation}

/**
 * All values of a column of one relation as a theta sketch, which tells how many of them another
 * column has as well. Equality is identity: a sketch is one object for all plans.
 *
 * @param family values are comparable within one family only: 1 and 1.0 have other hashes
 * @param low the smallest place of a value on the axis, where there is one
 * @param high the largest
 */
final class KeySketch(
    val family: String,
    private[stats] val values: CompactSketch,
    val low: Option[Double],
    val high: Option[Double]
) {

  /** Distinct values. */
  def count: Double = values.getEstimate

  /**
   * Shares of the values of this column and of `other`'s that both columns have; `None` where
   * their values cannot be compared, or nothing is known of one.
   */
  def shared(other: KeySketch): Option[(Double, Double)] =
    if (family != other.family || count <= 0 || other.count <= 0) None
    else {
      val both = SetOperation.builder().buildIntersection().intersect(values, other.values)
      // None in common among as many as were kept does not prove that there is none at all.
      val common = math.max(both.getEstimate, 0.5 / math.max(1e-12, both.getTheta))
      val least = if (both.getRetainedEntries(true) > 0 || both.getTheta < 1.0) common else 0.0
      Some((math.min(1.0, least / count), math.min(1.0, least / other.count)))
    }
}
