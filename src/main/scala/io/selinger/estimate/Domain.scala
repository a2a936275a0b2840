package io.selinger.estimate

import io.selinger.stats.KeySketch
import io.selinger.stats.samples.SampledKey
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}

/**
 * Where the values of a column come from. Keys of two tables meet in what their relations hold, not
 * in what filters have left of it: a tenth of the customers and a tenth of the orders share a tenth
 * of either, not all.
 *
 * @param values distinct values of the column in its relation, where known
 * @param rows of the relation
 * @param relation the same for all columns of one relation
 * @param sample of the column's values, where there is one
 * @param keys all values of the column in its relation, where they were collected
 * @param unique whether they were a key of the relation before some were ruled out
 * @param within what semi joins have reduced these values to, with the share of them that each has
 *   left: what is reduced to the same values on two sides is not independent
 */
final case class Domain(
    values: Option[Double],
    rows: Double,
    relation: Long,
    sample: Option[KeySample] = None,
    keys: Option[KeySketch] = None,
    unique: Boolean = false,
    within: Map[Reduction, Double] = Map.empty
) {

  /** Whether hardly a row of the relation has the value of another one, as far as counts tell. */
  def isKey: Boolean = unique || values.exists(_ >= Domain.keyShare * rows)

  /** Share of the values that is left by semi joins that both have gone through. */
  def reducedWith(other: Domain): Double =
    if (within.isEmpty || other.within.isEmpty) 1.0
    else
      // Of several, one may imply another.
      within.keySet
        .intersect(other.within.keySet)
        .map(reduction => math.max(within(reduction), other.within(reduction)))
        .minOption
        .getOrElse(1.0)

  /** What is left of the values that two columns both have. */
  def withinBoth(other: Domain): Domain =
    copy(within = other.within.foldLeft(within) { case (all, (reduction, share)) =>
      all.updated(reduction, all.get(reduction).fold(share)(math.max(_, share)))
    })

  /** What is left of the domain when values are ruled out, rather than rows. */
  def narrowed(share: Double): Domain =
    copy(values = values.map(known => math.max(1.0, known * share)), sample = None, unique = isKey)

  def atMost(count: Double): Domain =
    copy(
      values = Some(math.max(1.0, math.min(values.getOrElse(count), count))),
      sample = None,
      unique = isKey
    )
}

object Domain {

  /** Values a row from which on they count as keys: counts of values are estimates. */
  val keyShare: Double = 0.9
}

/**
 * Values that a semi join keeps: those of a column in just these rows. Spark repeats `key IN (…)` for
 * every column that is equal to the key, with the same column in each; what has other predicates has
 * other numbers.
 */
final case class Reduction(column: ExprId, rows: Double, values: Option[Double])

/**
 * A column in a sample of its relation.
 *
 * @param column of the relation
 * @param relation the estimate of just the rows that the sample is of
 */
final case class KeySample(key: SampledKey, column: Attribute, relation: PlanEstimate) {

  /** The relation, by [[Domain.relation]]: aliases of one table may share its sampled rows. */
  def origin: Option[Long] = domain.map(_.relation)

  /** Whether the sample was taken from all over the relation, not from parts of it. */
  def isSpread: Boolean = domain.exists(key.rows.covered >= KeySample.spreadShare * _.rows)

  private def domain: Option[Domain] = relation.domains.get(column.exprId)

  /** Whether this is another column of the same rows. */
  def isBeside(other: KeySample): Boolean =
    (key.rows eq other.key.rows) && origin == other.origin
}

object KeySample {

  // Files are a little behind what is counted of their rows.
  private val spreadShare = 0.9
}
