package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.Reason
import org.apache.spark.sql.catalyst.optimizer.BuildSide
import org.apache.spark.sql.catalyst.plans.logical.{JoinHint, SHUFFLE_HASH}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.ShuffledHashJoinExec

/** Both sides shuffled by the keys; each task builds a hash table, which cannot spill. */
final case class ShuffledHash(build: BuildSide) extends JoinOperator {

  override val label: String = s"ShuffledHashJoin(${JoinOperator.nameOf(build)})"

  override def isFeasible(join: JoinFacts, limits: JoinLimits): Boolean =
    join.hasKeys && join.builds.shuffled(build) && limits.mayHash(join.side(build))

  override def seconds(join: JoinFacts, cost: JoinCost): Double = {
    val probe = join.otherSide(build)
    cost.shuffledHash(join.side(build), probe) +
      cost.scattered(join.rowsToGroup, join.groups.bytesPerTask) +
      cost.hashedPairs(join.pairs, probe, memoryBytes(join))
  }

  override def memoryBytes(join: JoinFacts): Double = join.side(build).taskTableBytes

  override def distribution: JoinDistribution = JoinDistribution.ByKeys

  override def reason: Reason = Reason.HashBuildCheapest

  override def setting: String = SelingerConf.HASH_MEMORY_SHARE.key

  override def hint: JoinHint = JoinOperator.hintOn(build, SHUFFLE_HASH)

  override def isPlannedAs(plan: SparkPlan): Boolean = plan match {
    case join: ShuffledHashJoinExec => join.buildSide == build
    case _ => false
  }
}
