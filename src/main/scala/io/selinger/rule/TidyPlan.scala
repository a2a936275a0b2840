package io.selinger.rule

import org.apache.spark.sql.catalyst.optimizer.{
  BooleanSimplification,
  CollapseProject,
  ColumnPruning,
  PushDownPredicates,
  RemoveNoopOperators
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.RuleExecutor

/**
 * A plan with its filters at its relations, and without columns that nobody needs: what Spark will make
 * of it, as far as its rows depend on that.
 */
private[rule] object TidyPlan {

  private val most = 20

  private final class Executor extends RuleExecutor[LogicalPlan] {
    override protected def batches: Seq[Batch] = Seq(
      Batch(
        "tidy",
        FixedPoint(most),
        PushDownPredicates,
        BooleanSimplification,
        ColumnPruning,
        CollapseProject,
        RemoveNoopOperators
      )
    )
  }

  def apply(plan: LogicalPlan): LogicalPlan = new Executor().execute(plan)
}
