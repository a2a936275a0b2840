package io.selinger.estimate

import io.selinger.stats.samples.SampledKey
import org.apache.spark.sql.catalyst.expressions.Attribute

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

  /** Whether this is a column of the same sampled rows. */
  def isOfSameRows(other: KeySample): Boolean =
    (key.rows eq other.key.rows) && origin == other.origin
}

object KeySample {

  // Files are a little behind what is counted of their rows.
  private val spreadShare = 0.9
}
