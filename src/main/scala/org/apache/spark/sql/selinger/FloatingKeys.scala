package org.apache.spark.sql.selinger

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, NamedExpression}
import org.apache.spark.sql.catalyst.optimizer.NormalizeFloatingNumbers

/** NaN and -0.0 as keys. */
object FloatingKeys {

  /** A grouping key as Spark's own strategy groups by it: equal values have the same bytes. */
  def normalized(key: Attribute): NamedExpression =
    NormalizeFloatingNumbers.normalize(key) match {
      case same: NamedExpression => same
      case other => Alias(other, key.name)(exprId = key.exprId)
    }
}
