package io.selinger.testing

import io.selinger.core.Decision
import io.selinger.explain.PlanDecisions
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.classic.Dataset
import org.apache.spark.sql.execution.{QueryExecution, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.joins._
import scala.util.Try

/** What physical plans consist of, seen through adaptive execution. */
object Plans {

  def execution(df: DataFrame): QueryExecution = df match {
    case known: Dataset[_] => known.queryExecution
    case other => throw new IllegalArgumentException(s"not a classic Dataset: $other")
  }

  /** All operators of a plan as it is now, those of its stages and subqueries included. */
  def operators(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => plan +: operators(adaptive.executedPlan)
    case stage: QueryStageExec => plan +: operators(stage.plan)
    case _ => plan +: (plan.children ++ plan.subqueries).flatMap(operators)
  }

  /** The operators of a query, each once. */
  def physical(df: DataFrame): Seq[SparkPlan] = operators(execution(df).executedPlan).distinct

  /** The joins of a query, root first, named as decisions name them. */
  def joins(df: DataFrame): Seq[String] = physical(df).collect(Function.unlift(label))

  private def label(plan: SparkPlan): Option[String] = plan match {
    case join: BroadcastHashJoinExec => Some(s"BroadcastHashJoin(${side(join.buildSide)})")
    case join: ShuffledHashJoinExec => Some(s"ShuffledHashJoin(${side(join.buildSide)})")
    case _: SortMergeJoinExec => Some("SortMergeJoin")
    case join: BroadcastNestedLoopJoinExec =>
      Some(s"BroadcastNestedLoopJoin(${side(join.buildSide)})")
    case _: CartesianProductExec => Some("CartesianProduct")
    case _ => None
  }

  private def side(build: BuildSide): String = if (build == BuildLeft) "left" else "right"

  def decisions(df: DataFrame): Seq[Decision] =
    PlanDecisions.shown(execution(df).executedPlan).map(_.decision)

  /** The decisions of a query, after it has run if it is to, even into an error. */
  def decisions(df: DataFrame, runs: Boolean): Seq[Decision] = {
    if (runs) { val _ = Try(df.collect()) }
    decisions(df)
  }

  /** The decisions of one rule. */
  def decisions(df: DataFrame, rule: String): Seq[Decision] = decisions(df).filter(_.rule == rule)
}
