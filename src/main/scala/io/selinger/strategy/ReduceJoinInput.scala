package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  Mode,
  NodeText,
  Outcome,
  Phase,
  Precondition,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinSettings}
import io.selinger.estimate.plans.RelationNames
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession

/**
 * Reduces the large side of a semi, anti or outer join to the keys of the small side, before the large
 * side is shuffled. Spark can broadcast only the right side of a semi, anti or left outer join; where
 * the left side is the small one, it shuffles and sorts all of the right side.
 *
 * Fires while a query runs, at a join whose small side has been shuffled and whose large side has not,
 * when (each line is a Precondition below, in this order):
 *   1. the keys of the small side may be broadcast           else KEYS_TOO_LARGE
 *   2. the reduced join, and what reduces it, take less time else REDUCTION_TOO_SMALL
 * Only joins are looked at whose large side awaitBuildSide has let wait for the small one. Those with a
 * hint, without equalities, and with a large side, keys or a condition that can raise errors do not wait.
 *
 * {{{
 *   SELECT * FROM returns r WHERE EXISTS (SELECT * FROM sales s WHERE s.ticket = r.ticket AND s.item <> r.item)
 *   Before:  SortMergeJoin LeftSemi               After:  SortMergeJoin LeftSemi
 *            :- Exchange (finished)                       :- Exchange (finished)
 *            :  +- returns                                :  +- returns
 *            +- Exchange                                  +- Exchange
 *               +- sales                                     +- BroadcastHashJoin LeftSemi
 *                                                               :- sales
 *                                                               +- BroadcastExchange
 *                                                                  +- Project [ticket]
 *                                                                     +- Exchange (finished, read again)
 * }}}
 *
 * Correct because: the join itself stays as it is. A row of the large side is only left out where no row
 * of the small side has its key, and such a row is in no pair that the condition is asked about. So
 * the rest of the condition sees the same pairs, and nulls, duplicates, NaN and collations are Spark's
 * as ever. What the small side returns has been shuffled by then: it is read again, not computed again.
 * Semi and anti joins above that shuffle only drop rows, so it has all keys that they let pass. Below an
 * inner join of the large side, each input is reduced that has a column which the join requires to be
 * equal to a key. Some expressions of the large side are then computed for fewer rows, so it must be
 * unable to raise errors.
 * Not done: inner joins, whose small side can be broadcast; full outer joins; sessions without
 * adaptive execution, in which nobody knows how small a side is.
 * Cost: planning O(joins) for each re-plan. May lose when most rows of the large side have a key of the
 * small side: a lookup for each row is lost then. Memory is that of a broadcast of counted rows.
 * Runs in injectRuntimeOptimizerRule, the only logical hook in which rows have been measured. The new
 * plan has as many shuffles as before, so adaptive execution takes it. A second run finds the semi
 * join that reduces, and passes by.
 * Conf: spark.selinger.reduceJoinInput.enabled.  References: Bernstein and Chiu, Using Semi-Joins to
 * Solve Relational Queries, JACM 1981 (reducers).
 */
final class ReduceJoinInput(session: SparkSession)
    extends GuardedRule(ReduceJoinInput, SelingerConf.switches) {
  import ReduceJoinInput._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan =
    // Without that rule nobody chooses a broadcast by the rows measured.
    if (!SelingerConf.switches.enabled(SelectJoinOperator)) plan
    else
      plan.transformDown { case Reducible(reduction) => decide(reduction) }

  private def decide(reduction: JoinReduction): Join = {
    val join = reduction.join
    reduction.costs(Cluster.of(session), asExpected = false) match {
      case None => join
      case Some(costs) =>
        Precondition.firstUnmet(preconditions, costs) match {
          case Some(reason) =>
            Decision.record(join, decision(reduction, Outcome.Declined, reason, costs))
            join
          case None if SelingerConf.switches.mode == Mode.On =>
            val (made, reducers) = reduction.result
            reducers.headOption.foreach(
              Decision.record(_, decision(reduction, Outcome.Changed, Reduced, costs))
            )
            made
          case None =>
            Decision.record(join, decision(reduction, Outcome.Advised, Reduced, costs))
            join
        }
    }
  }

  private def decision(
      reduction: JoinReduction,
      outcome: Outcome,
      reason: Reason,
      costs: JoinReduction.Costs
  ): Decision = {
    val join = reduction.join
    val remedy = remedyOf(reason, costs)
    val (small, large) =
      if (reduction.small == BuildLeft) ("left side", "right side") else ("right side", "left side")
    Decision(
      rule = info.id,
      node = NodeText.of(join),
      key = NodeText.key(join),
      outcome = outcome,
      reason = reason,
      phase = Phase.Adaptive,
      chosen = Option.when(reason == Reduced)(s"$large reduced to the keys of $small"),
      stock = Option.when(reason == Reduced)(s"all of $large"),
      evidence = costs.evidence,
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      title = Some(RelationNames.titleOf(join)),
      sides = Some(RelationNames.sidesOf(join))
    )
  }

  private def remedyOf(reason: Reason, costs: JoinReduction.Costs): Option[Remedy] = {
    val share = SelingerConf.JOIN_MIN_GAIN.key
    reason match {
      case Reduced =>
        costs.gain.flatMap(Remedy.above).map(gain => Remedy(share, Some(gain)))
          .orElse(Some(Remedy(info.switch, Some("false"))))
      case ReductionTooSmall =>
        costs.gain.flatMap(Remedy.below).map(gain => Remedy(share, Some(gain)))
      case _ => Some(Remedy(JoinSettings.broadcastKey(Phase.Adaptive), None))
    }
  }
}

object ReduceJoinInput
    extends RuleDescription(
      "reduceJoinInput",
      RuleKind.Adaptive,
      "Filters the large side of a semi, anti or outer join by the keys of the small side, before the " +
        "large side is shuffled (semi-join reduction while the query runs)."
    ) {

  val Reduced: Reason = Reason(
    "JOIN_INPUT_REDUCED",
    "The small side of the join has been shuffled, and it has few rows. Its keys are broadcast, and " +
      "only rows of the large side that have one of them are shuffled.",
    "Set spark.selinger.join.minGain higher to do so less often."
  )

  val KeysTooLarge: Reason = Reason(
    "KEYS_TOO_LARGE",
    "The small side of the join has been shuffled, and a hash table of its keys is above the limit of " +
      "broadcasts, or broadcasts are switched off.",
    "Set spark.selinger.join.broadcastMaxBytes above the size of the hash table if there is memory for " +
      "larger broadcasts."
  )

  val ReductionTooSmall: Reason = Reason(
    "REDUCTION_TOO_SMALL",
    "Filtering the large side would save less than spark.selinger.join.minGain, because too many of its " +
      "rows have a key of the small side.",
    "Set spark.selinger.join.minGain lower to filter more joins. It holds for join operators too."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.EachPlan(
      "Decisions made while the query runs are kept at the root of the plan, which is prepared for them.",
      this,
      SelingerConf.switches
    )(Decision.expectAt(_)),
    Hook.RuntimeOptimizer(
      "The rows of the small side have been measured by then, and Spark plans the rest of the query anew."
    )(new ReduceJoinInput(_))
  )

  override def reasons: Seq[Reason] = Seq(KeysTooLarge, ReductionTooSmall, Reduced)

  override def example: String =
    "SELECT * FROM customers c WHERE EXISTS (SELECT * FROM sales s WHERE s.customer = c.id AND s.item <> c.id)"

  private val preconditions: Seq[Precondition[JoinReduction.Costs]] = Seq(
    Precondition(KeysTooLarge)(_.isBroadcast),
    Precondition(ReductionTooSmall)(pays)
  )

  private[strategy] def pays(costs: JoinReduction.Costs): Boolean =
    costs.gain.exists(_ >= SelingerConf.JOIN_MIN_GAIN.value)

  /** A join whose small side has been shuffled, and whose large side has not. */
  private object Reducible {
    def unapply(plan: LogicalPlan): Option[JoinReduction] = plan match {
      case join: Join if JoinReduction.isAwaited(join) =>
        JoinReduction.of(join).filter(reduction => JoinReduction.isFinished(reduction.source))
      case _ => None
    }
  }
}
