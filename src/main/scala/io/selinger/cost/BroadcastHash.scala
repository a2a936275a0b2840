package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.Reason
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.logical.{BROADCAST, JoinHint}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec

/** A copy of the build side's hash table in every process; the probe side stays where it is. */
final case class BroadcastHash(build: BuildSide) extends JoinOperator {

  override val label: String = s"BroadcastHashJoin(${JoinOperator.nameOf(build)})"

  /**
   * Once both sides are shuffled by the join's keys, a large broadcast saves little: it would give up
   * small hash tables, and rows of one key in one task, which an aggregation above thrives on.
   */
  override def isFeasible(join: JoinFacts, limits: JoinLimits): Boolean =
    join.hasKeys && join.builds.broadcast(build) && {
      val side = join.side(build)
      val stockAgrees = join.isStock(this)
      limits.mayBroadcast(side, stockAgrees) &&
      (stockAgrees || !join.isShuffled ||
        side.tableBytes(side.upperBound) <= JoinLimits.smallBytes)
    }

  override def seconds(join: JoinFacts, cost: JoinCost): Double = {
    val probe = join.otherSide(build)
    cost.broadcastHash(join.side(build), probe) +
      cost.scattered(join.rowsToGroup, join.groups.bytes) +
      cost.hashedPairs(join.pairs, probe, memoryBytes(join))
  }

  override def memoryBytes(join: JoinFacts): Double = {
    val side = join.side(build)
    side.tableBytes(side.rows)
  }

  override val distribution: JoinDistribution = JoinDistribution.Broadcast(build)

  override def reason: Reason = Reason.BroadcastCheapest

  override def setting: String = SelingerConf.BROADCAST_MAX_BYTES.key

  override def hint: JoinHint = JoinOperator.hintOn(build, BROADCAST)

  override def isPlannedAs(plan: SparkPlan): Boolean = plan match {
    case join: BroadcastHashJoinExec => join.buildSide == build
    case _ => false
  }
}
