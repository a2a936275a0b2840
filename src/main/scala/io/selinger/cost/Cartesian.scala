package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.Reason
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.{JoinHint, SHUFFLE_REPLICATE_NL}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.joins.CartesianProductExec

/**
 * Every partition of one side with every partition of the other. It is Spark's last resort for joins
 * without keys, and never chosen here; join ordering needs its cost.
 */
case object Cartesian extends JoinOperator {

  override val label: String = "CartesianProduct"

  override def isFeasible(join: JoinFacts, limits: JoinLimits): Boolean =
    !join.hasKeys && join.builds.isInner

  override def seconds(join: JoinFacts, cost: JoinCost): Double =
    cost.cartesian(join.left, join.right)

  override def memoryBytes(join: JoinFacts): Double = 0.0

  override def distribution: JoinDistribution = JoinDistribution.AllPairs

  override def reason: Reason = Reason.NestedLoopTooLarge

  override def setting: String = SelingerConf.BROADCAST_MAX_BYTES.key

  override def hint: JoinHint = JoinOperator.hintOn(BuildLeft, SHUFFLE_REPLICATE_NL)

  override def isPlannedAs(plan: SparkPlan): Boolean = plan.isInstanceOf[CartesianProductExec]

  override def isChosen: Boolean = false
}
