package io.selinger.estimate

import io.selinger.stats.KeySketch

/**
 * Where the values of a column come from. Keys of two tables meet in what their relations hold, not
 * in what filters have left of it: a tenth of the customers and a tenth of the orders share a tenth
 * of either, not all.
 *
 * @param values distinct values of the column in its relation, where known
 * @param rows of the relation
 * @param relation the same for all columns of one relation
 * @param keys all values of the column in its relation, where they were collected
 */
final case class Domain(
    values: Option[Double],
    rows: Double,
    relation: Long,
    keys: Option[KeySketch] = None
) {

  /** What is left of the domain when values are ruled out, rather than rows. */
  def narrowed(share: Double): Domain =
    copy(values = values.map(known => math.max(1.0, known * share)))

  def atMost(count: Double): Domain =
    copy(values = Some(math.max(1.0, math.min(values.getOrElse(count), count))))
}
