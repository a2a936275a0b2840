package io.selinger.strategy

import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{FilterExec, ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.ShuffleQueryStageExec
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec

/** Complete groups of which a filter may leave few, and how they are partitioned. */
private[strategy] object Grouped {
  def unapply(plan: SparkPlan): Option[HashPartitioning] =
    plan.outputPartitioning match {
      case hashed: HashPartitioning if isGrouped(plan, isFiltered = false) => Some(hashed)
      case _ => None
    }

  private def isGrouped(plan: SparkPlan, isFiltered: Boolean): Boolean = plan match {
    case filter: FilterExec => isGrouped(filter.child, isFiltered = true)
    case project: ProjectExec => isGrouped(project.child, isFiltered)
    // Without such a requirement, each task groups by itself.
    case aggregate: BaseAggregateExec =>
      isFiltered && aggregate.requiredChildDistributionExpressions.nonEmpty &&
      isShuffled(aggregate.child)
    case _ => false
  }

  // Other operators there would run for all groups too, and might raise errors.
  private def isShuffled(plan: SparkPlan): Boolean = plan match {
    case _: ShuffleExchangeExec | _: ShuffleQueryStageExec => true
    case sort: SortExec => isShuffled(sort.child)
    case aggregate: BaseAggregateExec => isShuffled(aggregate.child)
    case _ => false
  }
}
