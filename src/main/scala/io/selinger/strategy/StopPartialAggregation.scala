package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedStrategy,
  Hook,
  Mode,
  NodeText,
  Origin,
  Outcome,
  Phase,
  PlanningPass,
  Precondition,
  Quantity,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{ExactSums, LeafStatistics, TaskGroups, UnknownRows}
import io.selinger.exec.aggregates.HeapHashAggregateExec
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.HashAggregateExec

/**
 * Where keys may be nearly unique, has each task measure whether grouping its rows before the shuffle
 * makes them fewer, and pass them on as they are if not. Spark groups all of them in any case.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. no aggregate depends on how its rows are merged      else AGGREGATE_NOT_MERGEABLE
 *   2. no sum can exceed its type on the way                else SUM_MAY_OVERFLOW
 *   3. rows and groups can be estimated                     else NO_STATISTICS
 *   4. tasks are not sure to have far fewer groups          else GROUPS_FAR_FEWER
 * Inputs of few rows are passed over (aggregate.measuredPartialMinRows), and so are aggregations that
 * Spark does not plan as two hash aggregations.
 *
 * {{{
 *   SELECT ticket, item, count(*) FROM sales GROUP BY ticket, item
 *   Before:  HashAggregate final               After:  HashAggregate final
 *            +- Exchange                                +- Exchange
 *               +- HashAggregate partial                   +- HeapHashAggregate partial
 *                  +- sales                                   +- sales
 * }}}
 *
 * Correct because: a partial aggregation may return a group several times, also once for each row, since
 * the final one merges what has the same keys; keys, partial results and the shuffle are the same. The
 * functions taken give the same value however rows are merged. Under ANSI mode, a sum is taken only if
 * no part of it can exceed its type (ExactSums), so that the same queries fail. Floating-point sums may differ in
 * the last bits, as they do with the order of rows.
 * Not done: DISTINCT; functions with objects as buffers, which have that operator anyway
 * (selectAggregateOperator); standard deviations, whose merge loses digits.
 * Cost: planning O(1), an estimate of groups. The operator has no generated loop: for few groups it is
 * slower than Spark's, so it is not used where groups are sure to be few. Where a task stops after
 * 100,000 rows, the estimate need not be right.
 * Runs as a planner strategy, before Spark's Aggregation, whose final phase stays; at each adaptive
 * re-plan too. A second run gives the same plan.
 * Conf: spark.selinger.stopPartialAggregation.enabled.  References: Larson, Data Reduction by Partial
 * Preaggregation, ICDE 2002; partial aggregation that stops: Velox, Trino.
 */
final class StopPartialAggregation(session: SparkSession)
    extends GuardedStrategy(StopPartialAggregation, SelingerConf.switches) {

  override protected def concerns(plan: LogicalPlan): Boolean = plan match {
    case aggregate: Aggregate => StopPartialAggregation.concerns(aggregate)
    case _ => false
  }

  override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] = plan match {
    case aggregate: Aggregate =>
      val planned = session.sessionState.planner.Aggregation(aggregate)
      StopPartialAggregation.chosen(aggregate, planned, mode, Cluster.of(session))
    case _ => Nil
  }
}

object StopPartialAggregation
    extends RuleDescription(
      "stopPartialAggregation",
      RuleKind.Strategy,
      "Where the keys of GROUP BY may be almost unique, each task measures how much partial aggregation " +
        "reduces its rows, and skips it if it reduces them little."
    ) {

  val MayStop: Reason = Reason(
    "PARTIAL_MAY_STOP",
    "There may be nearly as many groups as rows. Each task measures that, and skips partial " +
      "aggregation if it hardly reduces its rows.",
    "Set spark.selinger.aggregate.measuredPartialRatio higher to change fewer plans."
  )

  val FarFewer: Reason = Reason(
    "GROUPS_FAR_FEWER",
    "Partial aggregation is expected to reduce the rows enough, so Spark's operator stays.",
    "Set spark.selinger.aggregate.measuredPartialRatio lower to let tasks measure it here too."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PlannerStrategy(
      "Strategies are asked before Spark plans the aggregation, so one can replace the partial aggregation."
    )(new StopPartialAggregation(_))
  )

  override def reasons: Seq[Reason] =
    Seq(Reason.NotMergeable, Reason.SumMayOverflow, Reason.NoStatistics, FarFewer, MayStop)

  override def example: String =
    "SELECT ticket, item, sold, customer, count(*) FROM sales GROUP BY ticket, item, sold, customer"

  /**
   * @param rows of the input
   * @param groups that all tasks together make of them
   */
  private final case class Expected(rows: Quantity, groups: Quantity) {
    def ratio: Double = if (rows.value > 0.0) groups.value / rows.value else 0.0

    def evidence: Seq[Evidence] = Seq(
      Evidence("input", rows.value, "rows", rows.origin),
      Evidence(
        "groups of all tasks",
        groups.value,
        "rows",
        groups.origin.worse(rows.origin).worse(Origin.Derived)
      )
    )
  }

  private final case class Subject(aggregate: Aggregate, expected: Option[Expected])

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.NotMergeable)(subject =>
      functionsOf(subject.aggregate).forall(HashSteps.isMergeable)
    ),
    Precondition(Reason.SumMayOverflow)(subject =>
      functionsOf(subject.aggregate).forall { function =>
        ExactSums.isExact(function.aggregateFunction, subject.aggregate.child)
      }
    ),
    Precondition(Reason.NoStatistics)(_.expected.isDefined),
    Precondition(FarFewer)(_.expected.forall(isUncertain))
  )

  private def concerns(aggregate: Aggregate): Boolean =
    aggregate.groupingExpressions.nonEmpty && aggregate.hint.isEmpty && !aggregate.isStreaming &&
      !GroupingSetAggregate.isOverExpand(aggregate) && !functionsOf(aggregate).exists(_.isDistinct)

  private def functionsOf(aggregate: Aggregate): Seq[AggregateExpression] =
    aggregate.aggregateExpressions.flatMap(_.collect { case made: AggregateExpression => made })

  /**
   * An aggregation that a strategy of ours has had planned by Spark, with a first phase that measures
   * if that is better; the plan itself if not.
   */
  private[strategy] def selected(
      aggregate: Aggregate,
      planned: Seq[SparkPlan],
      cluster: => Cluster
  ): Seq[SparkPlan] = {
    val switches = SelingerConf.switches
    val acts = switches.enabled(this) && switches.mode == Mode.On && concerns(aggregate)
    if (!acts) planned
    else
      chosen(aggregate, planned, switches.mode, cluster) match {
        case Nil => planned
        case other => other
      }
  }

  /** `Nil` where Spark's operators stay. */
  private def chosen(
      aggregate: Aggregate,
      planned: Seq[SparkPlan],
      mode: Mode,
      cluster: => Cluster
  ): Seq[SparkPlan] = planned match {
    case Seq(HashSteps(first, last)) if !isShuffledByKeys(aggregate) =>
      val expected = expectedOf(aggregate, cluster)
      if (expected.exists(_.rows.value < SelingerConf.MEASURED_PARTIAL_MIN_ROWS.value)) Nil
      else {
        val reason = Precondition.firstUnmet(preconditions, Subject(aggregate, expected))
        val plan = last.withNewChildren(Seq(measured(first)))
        val made = decision(aggregate, reason, expected, mode)
        (made +: aggregate.child.collectLeaves().flatMap(PlanningPass.current.informed)).foreach {
          each =>
            Decision.record(aggregate, each)
            Decision.record(plan, each)
        }
        if (reason.isDefined) Nil else Seq(plan)
      }
    case _ => Nil
  }

  private def expectedOf(aggregate: Aggregate, cluster: Cluster): Option[Expected] =
    for {
      input <- LeafStatistics.estimator.estimate(aggregate.child)
      groups <- LeafStatistics.estimator.estimate(aggregate)
    } yield {
      val read = TaskGroups.of(aggregate.child, input, cluster.slots)
      Expected(input.rows, read.inAllTasks(groups.rows, aggregate.groupingExpressions))
    }

  /**
   * The first phase of an aggregation that another rule has planned, which gives the same value however
   * rows are merged.
   *
   * @param groups that all tasks together make of the rows
   */
  private[strategy] def firstPhase(
      aggregate: Aggregate,
      first: HashAggregateExec,
      rows: Quantity,
      groups: Quantity
  ): SparkPlan = {
    val switches = SelingerConf.switches
    val expected = Expected(rows, groups)
    val acts = switches.enabled(this) && switches.mode == Mode.On && isUncertain(expected) &&
      rows.value >= SelingerConf.MEASURED_PARTIAL_MIN_ROWS.value
    if (!acts) first
    else {
      Decision.record(aggregate, decision(aggregate, None, Some(expected), switches.mode))
      measured(first)
    }
  }

  private def isUncertain(expected: Expected): Boolean =
    expected.ratio >= SelingerConf.MEASURED_PARTIAL_RATIO.value

  /** Whether no shuffle would come between the two phases: there is nothing to pass on to. */
  private def isShuffledByKeys(aggregate: Aggregate): Boolean =
    QueryStages.shuffleBy(aggregate.child, aggregate.groupingExpressions).isDefined

  /** The first phase of an aggregation, by the operator that stops where grouping does not help. */
  private def measured(first: HashAggregateExec): SparkPlan = HeapHashAggregateExec(
    first.requiredChildDistributionExpressions,
    first.numShufflePartitions,
    first.groupingExpressions,
    first.aggregateExpressions,
    first.aggregateAttributes,
    first.initialInputBufferOffset,
    first.resultExpressions,
    SelingerConf.PARTIAL_STOP_RATIO.value,
    HeapHashAggregateExec.leastTestedRows,
    first.child
  )

  private def decision(
      aggregate: Aggregate,
      declined: Option[Reason],
      expected: Option[Expected],
      mode: Mode
  ): Decision = {
    val remedy = declined match {
      case None => Some(Remedy(switch, Some("false")))
      case Some(FarFewer) => Some(Remedy(
          SelingerConf.MEASURED_PARTIAL_RATIO.key,
          expected.flatMap(each => Remedy.below(each.ratio))
        ))
      case _ => None
    }
    Decision(
      rule = id,
      node = NodeText.of(aggregate),
      key = NodeText.key(aggregate),
      outcome = Outcome.of(declined, mode),
      reason = declined.getOrElse(MayStop),
      phase = if (QueryStages.begun(aggregate)) Phase.Adaptive else Phase.Static,
      chosen = Option.when(declined.isEmpty)("partial aggregation that may stop"),
      stock = Option.when(declined.isEmpty)("partial aggregation of all rows"),
      detail = declined.flatMap(UnknownRows.detail(_, aggregate.child)),
      evidence = expected.toSeq.flatMap(_.evidence),
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value)
    )
  }
}
