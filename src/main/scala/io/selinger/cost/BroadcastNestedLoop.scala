package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.Reason
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.logical.{BROADCAST, JoinHint}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BroadcastNestedLoopJoinExec

/** A copy of the build side in every process, with which each row of the probe side is compared. */
final case class BroadcastNestedLoop(build: BuildSide) extends JoinOperator {

  override val label: String = s"BroadcastNestedLoopJoin(${JoinOperator.nameOf(build)})"

  /** Spark broadcasts here for want of another operator, so its choice says nothing. */
  override def isFeasible(join: JoinFacts, limits: JoinLimits): Boolean =
    !join.hasKeys && join.builds.broadcast(build) &&
      limits.mayBroadcast(join.side(build), stockAgrees = false)

  override def seconds(join: JoinFacts, cost: JoinCost): Double =
    cost.broadcastHash(join.side(build), join.otherSide(build)) +
      cost.allPairs(join.left, join.right)

  override def memoryBytes(join: JoinFacts): Double = {
    val side = join.side(build)
    side.tableBytes(side.rows)
  }

  override val distribution: JoinDistribution = JoinDistribution.Broadcast(build)

  override def reason: Reason = Reason.NestedLoopFits

  override def setting: String = SelingerConf.BROADCAST_MAX_BYTES.key

  override def hint: JoinHint = JoinOperator.hintOn(build, BROADCAST)

  override def isPlannedAs(plan: SparkPlan): Boolean = plan match {
    case join: BroadcastNestedLoopJoinExec => join.buildSide == build
    case _ => false
  }
}
