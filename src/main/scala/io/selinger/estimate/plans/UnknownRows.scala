package io.selinger.estimate.plans

import io.selinger.core.{PlanningPass, Reason}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode, LogicalPlan}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/** Which relation it is whose rows are unknown: the detail of decisions for [[Reason.NoStatistics]]. */
object UnknownRows {

  /** None for other reasons, and where the rows of all of `plans` can be estimated. */
  def detail(reason: Reason, plans: LogicalPlan*): Option[String] =
    if (reason != Reason.NoStatistics) None else plans.find(isUnknown).map(smallest).map(text)

  def text(plan: LogicalPlan): String = {
    val late = PlanningPass.current.informed(plan).exists(_.reason == Reason.FootersUnavailable)
    val why = if (late) ", whose footers could not be read in time" else ""
    s"It is unknown for ${RelationNames.of(plan)}$why"
  }

  private def isUnknown(plan: LogicalPlan): Boolean =
    LeafStatistics.estimator.estimate(plan).isEmpty

  /** Asks only what the estimate of `plan` has asked before, so that no more files are read. */
  private def smallest(plan: LogicalPlan): LogicalPlan = plan match {
    case stage: LogicalQueryStage => smallest(stage.logicalPlan)
    // They are estimated together.
    case Filter(_, leaf: LeafNode) => leaf
    case other => other.children.find(isUnknown).fold(other)(smallest)
  }
}
