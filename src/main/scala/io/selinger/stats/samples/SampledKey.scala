package io.selinger.stats.samples

import org.apache.spark.sql.types.DataType

/** One column of sampled keys. */
final case class SampledKey(rows: SampledKeys, column: Int) {
  def kind: Option[DataType] = rows.kindOf(column)
  def canJoin: Boolean = rows.canJoin(column)
}
