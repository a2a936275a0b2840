package io.selinger.strategy

import io.selinger.cost.{JoinCost, JoinSide}
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.exec.WaitForBuildSideExec
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.{LeafExecNode, SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeLike, Exchange}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, HashJoin}

/** Time of the operators of one stage, without the shuffles and broadcasts that it reads. */
private[strategy] final class StageWork(cost: JoinCost) {

  /** Of the costliest kinds: reading, joining, grouping, sorting. */
  def of(plan: SparkPlan): Double = plan match {
    case _: BroadcastExchangeLike | _: BroadcastQueryStageExec => 0.0
    case _: Exchange | _: LeafExecNode => sizeOf(plan).fold(0.0)(cost.read)
    case _ => ofNode(plan) + plan.children.map(of).sum
  }

  private def ofNode(plan: SparkPlan): Double = plan match {
    case _: BaseAggregateExec => cost.grouped(plan.children.map(rowsOf).sum)
    case join: HashJoin =>
      cost.probed(rowsOf(if (join.buildSide == BuildLeft) join.right else join.left))
    case _: BaseJoinExec => cost.probed(plan.children.map(rowsOf).max)
    case sort: SortExec => sizeOf(sort.child).fold(0.0)(cost.sorted)
    case _ => 0.0
  }

  private def rowsOf(plan: SparkPlan): Double = sizeOf(plan).fold(0.0)(_.rows)

  private def sizeOf(plan: SparkPlan): Option[JoinSide] = plan match {
    case stage: ShuffleQueryStageExec => measured(stage).orElse(sizeOf(stage.shuffle))
    case stage: BroadcastQueryStageExec => sizeOf(stage.broadcast)
    case wait: WaitForBuildSideExec => sizeOf(wait.input)
    // It is linked to the filters and projections that Spark planned it with.
    case leaf: LeafExecNode =>
      leaf.logicalLink.map(_.collectLeaves()).collect { case Seq(relation) => relation }
        .flatMap(estimated(_, leaf.output))
    case _ =>
      plan.logicalLink match {
        case Some(logical) => estimated(logical, logical.output)
        // Spark links what it adds, such as shuffles, to no part of the query.
        case None =>
          plan.children match {
            case Seq(input) => sizeOf(input)
            case _ => None
          }
      }
  }

  private def measured(stage: ShuffleQueryStageExec): Option[JoinSide] =
    for {
      statistics <- stage.computeStats()
      rows <- statistics.rowCount
    } yield JoinSide(
      rows.toDouble,
      statistics.sizeInBytes.toDouble / math.max(1.0, rows.toDouble),
      shuffleExists = true
    )

  private def estimated(logical: LogicalPlan, output: Seq[Attribute]): Option[JoinSide] =
    LeafStatistics.estimator.estimate(logical).map { estimate =>
      JoinSide(estimate.rows.value, estimate.rowBytes(output), shuffleExists = false)
    }
}
