package org.apache.spark.sql.selinger

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers

/** Access to how Spark groups by NaN and -0.0. */
object FloatingKeys {
  def normalized(key: Expression): Expression = NormalizeFloatingNumbers.normalize(key)
}
