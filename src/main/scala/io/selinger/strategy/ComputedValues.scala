package io.selinger.strategy

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.execution.{ExpandExec, FilterExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** What operators compute of their rows, but for keys by which exchanges below have partitioned them. */
private[strategy] object ComputedValues {

  def changed(operator: SparkPlan)(change: Expression => Expression): SparkPlan = operator match {
    case _: ProjectExec | _: FilterExec | _: ExpandExec | _: BaseAggregateExec =>
      operator.mapExpressions(change)
    case join: BaseJoinExec if join.condition.nonEmpty =>
      join.mapExpressions { expression =>
        if (join.condition.exists(_ eq expression)) change(expression) else expression
      }
    case other => other
  }
}
