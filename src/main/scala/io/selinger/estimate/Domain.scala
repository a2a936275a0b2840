package io.selinger.estimate

import io.selinger.stats.KeySketch
import org.apache.spark.sql.catalyst.expressions.ExprId

/**
 * Where the values of a column come from. Keys of two tables are equal as often as in the whole
 * relations, not as in what filters have left of them: a tenth of the customers and a tenth of the
 * orders share a tenth of either, not all.
 *
 * @param values distinct values of the column in its relation, where known
 * @param rows of the relation
 * @param relation the same for all columns of one relation
 * @param sample of the column's values, where there is one
 * @param keys all values of the column in its relation, where they were collected
 * @param unique whether they were a key of the relation before some were ruled out
 * @param reductions semi joins that these values have gone through, with the share of values that each
 *   has left. Sides of a join that went through the same semi join are not independent
 */
final case class Domain(
    values: Option[Double],
    rows: Double,
    relation: Long,
    sample: Option[KeySample] = None,
    keys: Option[KeySketch] = None,
    unique: Boolean = false,
    reductions: Map[SemiJoinReduction, Double] = Map.empty
) {

  /** Whether hardly a row of the relation has the value of another one, as far as counts tell. */
  def isKey: Boolean = unique || values.exists(_ >= Domain.keyShare * rows)

  /** Share of the values that is left by semi joins that both have gone through. */
  def commonReduction(other: Domain): Double =
    if (reductions.isEmpty || other.reductions.isEmpty) 1.0
    else
      // Of several, one may imply another.
      reductions.keySet
        .intersect(other.reductions.keySet)
        .map(reduction => math.max(reductions(reduction), other.reductions(reduction)))
        .minOption
        .getOrElse(1.0)

  /** This domain after the semi joins of both: for columns that a join has made equal. */
  def withReductionsOf(other: Domain): Domain =
    copy(reductions = other.reductions.foldLeft(reductions) { case (all, (reduction, share)) =>
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
 * every column that is equal to the key, with the same subquery column in each: that identifies
 * them. A subquery with other predicates has other numbers of rows or values.
 */
final case class SemiJoinReduction(column: ExprId, rows: Double, values: Option[Double])
