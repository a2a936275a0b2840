package io.selinger.cost

import io.selinger.core.Reason
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.logical.{HintInfo, JoinHint, JoinStrategyHint}
import org.apache.spark.sql.execution.SparkPlan

/**
 * A way to run a join, described in one place: all that join ordering, the choice of the operator and
 * explain ask of it. A new one is an object of this class in a file of its own and a line in
 * [[JoinOperators]]; if it is chosen for a reason of its own, that is a line in [[Reason]].
 */
abstract class JoinOperator {

  /** In explain, and in ties: of operators that cost the same, the first by label is chosen. */
  def label: String

  /**
   * Whether it can run this join and is safe. Of two joins that differ in the rows of one side, or in
   * their upper bound, only, it must allow the smaller one if it allows the larger one.
   */
  def isFeasible(join: JoinFacts, limits: JoinLimits): Boolean

  /** Seconds that it takes, without what it takes to return the rows. */
  def seconds(join: JoinFacts, cost: JoinCost): Double

  /** Memory that it cannot spill: of each process where a side is broadcast, else of one task. */
  def memoryBytes(join: JoinFacts): Double

  /** Where rows must be for it. */
  def distribution: JoinDistribution

  /** Why it is chosen where it is the cheapest. */
  def reason: Reason

  /** Why it is chosen where no other operator is feasible. */
  def reasonIfAlone: Reason = reason

  /** Key of the setting that would most likely change such a choice. */
  def setting: String

  /** The hint by which Spark's own strategy builds just this operator. */
  def hint: JoinHint

  /** Whether Spark has planned just this operator. */
  def isPlannedAs(plan: SparkPlan): Boolean

  /** False for an operator that is never chosen here; if Spark chooses it, explain names it. */
  def isChosen: Boolean = true

  /** The side of which every process has a copy, if there is one. */
  def broadcastSide: Option[BuildSide] = distribution match {
    case JoinDistribution.Broadcast(build) => Some(build)
    case _ => None
  }

  override def toString: String = label
}

object JoinOperator {

  private[cost] def nameOf(side: BuildSide): String = if (side == BuildLeft) "left" else "right"

  /** A hint on one side of a join. */
  private[cost] def hintOn(side: BuildSide, strategy: JoinStrategyHint): JoinHint = {
    val info = Some(HintInfo(strategy = Some(strategy)))
    if (side == BuildLeft) JoinHint(info, None) else JoinHint(None, info)
  }
}

/** Where rows of a join's sides must be, and so how those that it returns come. */
sealed trait JoinDistribution

object JoinDistribution {

  /** Every process has a copy of the build side; the probe side stays as it is partitioned. */
  final case class Broadcast(build: BuildSide) extends JoinDistribution

  /** Both sides are partitioned by the keys. */
  case object ByKeys extends JoinDistribution

  /** Every partition of one side meets every partition of the other. */
  case object AllPairs extends JoinDistribution
}
