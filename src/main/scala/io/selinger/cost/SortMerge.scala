package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.Reason
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.{JoinHint, SHUFFLE_MERGE}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.SortMergeJoinExec

/** Both sides shuffled and sorted by the keys. It can spill, so it is safe for any rows. */
case object SortMerge extends JoinOperator {

  override val label: String = "SortMergeJoin"

  override def isFeasible(join: JoinFacts, limits: JoinLimits): Boolean = join.hasKeys

  override def seconds(join: JoinFacts, cost: JoinCost): Double =
    cost.sortMerge(join.left, join.right) + cost.mergedPairs(join.pairs, join.larger)

  override def memoryBytes(join: JoinFacts): Double = 0.0

  override def distribution: JoinDistribution = JoinDistribution.ByKeys

  override def reason: Reason = Reason.SortMergeCheapest

  override def reasonIfAlone: Reason = Reason.NothingFits

  override def setting: String = SelingerConf.HASH_MEMORY_SHARE.key

  override def hint: JoinHint = JoinOperator.hintOn(BuildLeft, SHUFFLE_MERGE)

  override def isPlannedAs(plan: SparkPlan): Boolean = plan.isInstanceOf[SortMergeJoinExec]
}
