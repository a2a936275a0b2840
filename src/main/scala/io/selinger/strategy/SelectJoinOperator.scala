package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  GuardedStrategy,
  Hook,
  Mode,
  NodeText,
  Outcome,
  Phase,
  PlanningPass,
  Precondition,
  RaisedErrors,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, HashTable, JoinOperator, JoinOperators, JoinSettings}
import io.selinger.cost.JoinOperatorModel.Candidate
import io.selinger.estimate.RowSize
import io.selinger.estimate.plans.{LeafStatistics, RelationNames, UnknownRows}
import io.selinger.stats.relations.QueryStages
import io.selinger.strategy.JoinChoice.Choice
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.planning.ExtractSingleColumnNullAwareAntiJoin
import org.apache.spark.sql.catalyst.plans.LeftExistence
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.internal.SQLConf

/**
 * Chooses the operator of a join by the memory that it needs and the time that it takes, where Spark
 * compares the size of files with 10 MB and otherwise sorts.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                          else STREAMING_PLAN
 *   2. neither side has been broadcast already           else BROADCAST_STAGE_RUNNING
 *   3. no join hint was given                            else HINT_OBEYED
 *   4. it is not the null-aware join of NOT IN           else NULL_AWARE_ANTI_JOIN
 * and then, needing more than the join itself,
 *   5. the rows of both sides can be estimated           else NO_STATISTICS
 *   6. Spark would not broadcast by the user's threshold else USER_THRESHOLD_OBEYED
 *   7. Spark has the operator for this join              else OPERATOR_UNSUPPORTED
 *   8. it is Spark's own choice, or nothing raises errors
 *      for rows that depend on the operator              else ERRORS_DEPEND_ON_PLAN
 *
 * {{{
 *   SELECT * FROM store_sales JOIN store_returns ON ss_ticket_number = sr_ticket_number AND …
 *   Before:  SortMergeJoin                            After:  ShuffledHashJoin BuildRight
 *            :- Sort +- Exchange +- store_sales               :- Exchange +- store_sales
 *            +- Sort +- Exchange +- store_returns             +- Exchange +- store_returns
 * }}}
 *
 * Correct because: every operator that is chosen is built by Spark's own JoinSelection from the same
 * join, only with a hint; which join types and keys an operator supports stays Spark's knowledge. So
 * nulls, duplicates, empty inputs, outer sides and residual conditions are Spark's as ever. Rows come
 * in another order. An error that an expression raises is raised under every operator: conditions see
 * the same pairs of rows, except that semi, anti and existence joins stop at the first match; columns
 * are computed for the same rows, except those computed just below the join, and those of a side that
 * an empty broadcast leaves unread (RaisedErrors).
 * Not done: hints that Spark cannot follow are not replaced; NOT IN keeps its null-aware operator;
 * cartesian products stay where nothing fits.
 * Cost: planning O(n) in the operators below the join, shared among the joins of a plan. May lose
 * when a side turns out larger than believed: see JoinChoice for what each operator is trusted with.
 * Runs as a planner strategy, before Spark's JoinSelection, when a query is planned and again at each
 * adaptive re-plan, then with measured rows. A second run on the same plan decides the same.
 * Conf: spark.selinger.selectJoinOperator.enabled.  References: Spark 3.0's JoinSelection; Selinger
 * et al., Access Path Selection in a Relational Database Management System, SIGMOD 1979.
 */
final class SelectJoinOperator(session: SparkSession)
    extends GuardedStrategy(SelectJoinOperator, SelingerConf.switches) {
  import SelectJoinOperator._

  override protected def concerns(plan: LogicalPlan): Boolean = plan.isInstanceOf[Join]

  /** What earlier stages of this query have broadcast takes part of its total. */
  override protected def begin(root: LogicalPlan): Unit =
    root.foreach {
      case stage: LogicalQueryStage if QueryStages.isBroadcast(stage) =>
        PlanningPass.current.promise(stage.logicalPlan.semanticHash(), broadcastBytes(stage))
      case _ => ()
    }

  /**
   * What the rows of a broadcast take, as it was reckoned before it ran. Spark's own number counts
   * whole memory pages, 64 MB for ten rows, and is a product of file sizes while the stage runs.
   */
  private def broadcastBytes(stage: LogicalQueryStage): Double =
    LeafStatistics.estimator.estimate(stage).fold(0.0) { estimate =>
      val rowBytes = RowSize.bytes(stage.output, estimate.columns)
      HashTable.bytes(estimate.rows.value, rowBytes, keyBytes = 0.0, numericKey = true)
    }

  override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] = plan match {
    case join: Join =>
      val phase = if (QueryStages.begun(join)) Phase.Adaptive else Phase.Static
      Precondition.firstUnmet(preconditions, join) match {
        case Some(reason) => decline(join, phase, reason)
        case None => decide(join, phase, mode)
      }
    case _ => Nil
  }

  private def decide(join: Join, phase: Phase, mode: Mode): Seq[SparkPlan] =
    JoinProblem.of(join, phase, Cluster.of(session)) match {
      case None => decline(join, phase, Reason.NoStatistics)
      case Some(problem) =>
        val stockPlans = planned(join)
        val stock = stockPlans.headOption.flatMap(JoinOperators.plannedAs)
        if (
          JoinSettings.userThreshold(phase).exists(_ >= 0) && stock.exists(
            _.broadcastSide.isDefined
          )
        ) {
          decline(join, phase, Reason.UserThreshold)
        } else {
          val choice = problem.choice(stock)
          val evidence = problem.evidence(choice)
          def tooLarge(reason: Reason) =
            decline(join, phase, reason, evidence, new JoinRemedy(problem, phase).ifTooLarge)
          choice.best match {
            case None if !problem.hasEqualities => tooLarge(Reason.NestedLoopTooLarge)
            case None => tooLarge(Reason.NothingFits)
            case Some(best) => act(problem, phase, mode, best, stock, stockPlans, choice)
          }
        }
    }

  private def act(
      problem: JoinProblem,
      phase: Phase,
      mode: Mode,
      best: Candidate,
      stock: Option[JoinOperator],
      stockPlans: Seq[SparkPlan],
      choice: Choice
  ): Seq[SparkPlan] = {
    val (join, candidates, evidence) =
      (problem.join, choice.candidates, problem.evidence(choice))
    val same = stock.contains(best.operator)
    val plans = if (same) stockPlans else planned(join.copy(hint = best.operator.hint))
    if (!plans.headOption.flatMap(JoinOperators.plannedAs).contains(best.operator)) {
      decline(join, phase, Reason.UnsupportedByOperator, evidence)
    } else if (
      !same && (errorsDependOnOperator(join) || errorsDependOnEmptySides(
        join,
        stock,
        best.operator
      ))
    ) {
      decline(join, phase, Reason.MayRaise, evidence)
    } else {
      promise(problem, best.operator)
      val remedy = new JoinRemedy(problem, phase).of(best, candidates, stock)
      val outcome = if (same) Outcome.Same else Outcome.acting(mode)
      val decision = Decision(
        rule = info.id,
        node = NodeText.of(join),
        key = NodeText.key(join),
        outcome = outcome,
        reason = best.reason,
        phase = phase,
        chosen = Some(best.operator.label),
        stock = stock.map(_.label),
        evidence = evidence,
        setting = remedy.map(_.key),
        settingTo = remedy.flatMap(_.value),
        title = Some(RelationNames.titleOf(join)),
        sides = Some(RelationNames.sidesOf(join)),
        work = workOf(candidates, best, stock)
      )
      // On the logical join for advise mode, on the operator so that a re-plan leaves it alone.
      (decision +: informed(join)).foreach { made =>
        Decision.record(join, made)
        plans.foreach(Decision.record(_, made))
      }
      plans
    }
  }

  private def decline(
      join: Join,
      phase: Phase,
      reason: Reason,
      evidence: Seq[Evidence] = Nil,
      known: Option[Remedy] = None
  ): Seq[SparkPlan] = {
    // What was decided before a side was broadcast says more than that it has been.
    val settled = reason == Reason.BroadcastStage &&
      Decision.recordedAt(join).exists(_.rule == info.id)
    if (!settled) {
      val remedy = known.orElse(JoinRemedy.ifDeclined(reason, phase))
      val decision = Decision(
        rule = info.id,
        node = NodeText.of(join),
        key = NodeText.key(join),
        outcome = Outcome.Declined,
        reason = reason,
        phase = phase,
        detail = UnknownRows.detail(reason, join.left, join.right),
        evidence = evidence,
        setting = remedy.map(_.key),
        settingTo = remedy.flatMap(_.value),
        title = Some(RelationNames.titleOf(join)),
        sides = Some(RelationNames.sidesOf(join))
      )
      (decision +: informed(join)).foreach(Decision.record(join, _))
    }
    Nil
  }

  /** What was read about the leaves of a join. Leaves are shared among queries, so it is kept here. */
  private def informed(join: Join): Seq[Decision] =
    join.collectLeaves().flatMap(PlanningPass.current.informed)

  /** What Spark's own strategy makes of a join. */
  private def planned(join: Join): Seq[SparkPlan] = session.sessionState.planner.JoinSelection(join)

  private def promise(problem: JoinProblem, operator: JoinOperator): Unit =
    operator.broadcastSide.foreach { build =>
      val (plan, side) =
        if (build == BuildLeft) (problem.join.left, problem.left.side)
        else (problem.join.right, problem.right.side)
      PlanningPass.current.promise(plan.semanticHash(), side.tableBytes(side.rows))
    }
}

object SelectJoinOperator
    extends RuleDescription(
      "selectJoinOperator",
      RuleKind.Strategy,
      "Chooses broadcast hash, shuffled hash, sort-merge or nested loop for each join by the " +
        "memory and the time that it takes."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.PlannerStrategy(
      "Strategies are asked before Spark's own join selection, and again at each adaptive re-plan."
    )(new SelectJoinOperator(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.BroadcastStage,
    Reason.HintObeyed,
    Reason.NullAwareAntiJoin,
    Reason.NoStatistics,
    Reason.UserThreshold,
    Reason.MayRaise,
    Reason.UnsupportedByOperator,
    Reason.StockCheapEnough
  ) ++ JoinOperators.reasons

  override def example: String =
    "SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.color = 'red'"

  private val preconditions: Seq[Precondition[Join]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.BroadcastStage)(join =>
      !QueryStages.isBroadcast(join.left) && !QueryStages.isBroadcast(join.right)
    ),
    Precondition(Reason.HintObeyed)(!isHinted(_)),
    Precondition(Reason.NullAwareAntiJoin)(join =>
      ExtractSingleColumnNullAwareAntiJoin.unapply(join).isEmpty
    )
  )

  /** Which of several partners such a join meets first depends on its operator. */
  private[strategy] def errorsDependOnOperator(join: Join): Boolean = {
    val stopsEarly = join.joinType match {
      case LeftExistence(_) => true
      case _ => false
    }
    stopsEarly && !join.condition.forall(RaisedErrors.isSafe) ||
    RaisedErrors.computesUnsafeColumns(join.left) || RaisedErrors.computesUnsafeColumns(join.right)
  }

  /**
   * Whether the operator decides that errors anywhere below this join are raised. A broadcast that turns
   * out empty leaves the other side unread; an operator that shuffles has read it by then. Adaptive
   * execution drops the other side of an empty one too, unless its error comes first: Spark then
   * raises such errors by luck, except where it broadcasts itself.
   */
  private def errorsDependOnEmptySides(
      join: Join,
      stock: Option[JoinOperator],
      chosen: JoinOperator
  ): Boolean = {
    def unread(operator: JoinOperator): Option[LogicalPlan] =
      operator.broadcastSide.map(build => if (build == BuildLeft) join.right else join.left)
    val left = stock.flatMap(unread)
    val readByOneOnly =
      if (left == unread(chosen)) Nil
      else if (SQLConf.get.adaptiveExecutionEnabled) left.toSeq
      else join.children
    readByOneOnly.exists(RaisedErrors.mayRaise(_))
  }

  private[strategy] def isHinted(join: Join): Boolean =
    !(join.hint.leftHint ++ join.hint.rightHint).flatMap(_.strategy).forall(isPlanners)

  /** Hints of adaptive execution forbid a broadcast or recommend; all others are the user's. */
  private def isPlanners(strategy: JoinStrategyHint): Boolean =
    AdaptiveHintsShim.hints.contains(strategy)

  /** What Spark's operator and the one chosen are expected to take, where both are known. */
  private def workOf(
      candidates: Seq[Candidate],
      best: Candidate,
      stock: Option[JoinOperator]
  ): Option[ExpectedWork] =
    stock
      .flatMap(operator => candidates.find(_.operator == operator))
      .map(spark => ExpectedWork(spark.seconds, best.seconds))
}
