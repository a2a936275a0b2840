package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.Aggregate

private[rule] object Functions {

  /** The aggregate functions of an operator, each once. */
  def of(aggregate: Aggregate): Seq[AggregateExpression] =
    aggregate.aggregateExpressions.flatMap(_.collect { case function: AggregateExpression =>
      function
    }).distinctBy(_.canonicalized)
}
