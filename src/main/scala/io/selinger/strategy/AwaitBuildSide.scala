package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.Reason.BuildSideAwaited
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedPhysicalRule,
  Hook,
  Mode,
  NodeText,
  Origin,
  Outcome,
  Phase,
  RaisedErrors,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinCost, JoinSettings, JoinSide}
import io.selinger.estimate.plans.{ExactSums, LeafStatistics, RelationNames, UnknownRows}
import io.selinger.exec.{BuildSideFirstExec, OneRoundStage, WaitForBuildSideExec}
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildSide}
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{
  LogicalQueryStage,
  QueryStageExec,
  ShuffleQueryStageExec
}
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.{BaseJoinExec, ShuffledJoin}
import org.apache.spark.sql.internal.SQLConf

/**
 * Shuffles first the side of a join that may turn out small enough to be broadcast, and the other side
 * only if it is still needed: a broadcast then saves the other shuffle, where Spark has begun both.
 *
 * Fires at a join for which a side is to be shuffled and has not been, and the other one is too, or
 * consists of groups that are where the join needs them and of which HAVING may leave few, when (each
 * line is a check below, in this order; GROUPS_COUNTED_FIRST where it is groups that are awaited):
 *   1. the plan is not a stream                          else STREAMING_PLAN
 *   2. no join hint was given                            else HINT_OBEYED
 *   3. the rows of both sides can be estimated           else NO_STATISTICS
 *   4. with just the rows that are expected, one side
 *      would be broadcast                                else NO_SMALL_SIDE
 *   5. the other, and its keys, cannot raise errors,
 *      nor the groups, nor would another operator        else ERRORS_DEPEND_ON_PLAN
 *   6. the other one being groups: a broadcast saves
 *      more than the shuffle that they get costs, with
 *      all groups                                        else MEASURING_COSTLY
 *   7. the side to wait for is not also asked for
 *      elsewhere in the query, nor is the other where
 *      computing it for each place would take longer
 *      than shuffling it once                            else SHARED_SUBPLAN
 *
 * {{{
 *   SELECT … FROM store_sales JOIN (store_returns JOIN reason …) ON ticket AND item
 *   Before:  SortMergeJoin                     After:  SortMergeJoin
 *            :- Sort +- Exchange                       :- Sort +- Exchange +- WaitForBuildSide
 *            :          +- store_sales                 :                      :- store_sales
 *            :                                         :                      +- OneRoundStage
 *            +- Sort +- Exchange                       +- Sort +- Exchange +- BuildSideFirst
 *                       +- returns ⋈ reason                                   +- returns ⋈ reason
 *   and once the right side has run, with few rows: BroadcastHashJoin, store_sales not shuffled
 * }}}
 *
 * Correct because: only the time at which a stage begins changes; rows pass as they are. Which operator
 * joins them is decided as ever, by SelectJoinOperator with the rows measured. Adaptive execution ends a
 * query early where a side is empty, and then never runs the other: so that one must not be able to
 * raise errors. A round of waiting ends with the next stage of this query that finishes. One is sure to:
 * what is waited for has not run, cannot be taken from elsewhere, and is itself never held up for good.
 * Groups are shuffled into the partitions that they have, and sorted again if they were. Their shuffle is
 * added in the first plan only, since adaptive execution refuses plans with more shuffles.
 * Not done: sides that come partitioned by operators other than aggregations.
 * Cost: planning O(n). Loses where a side is larger than expected and tasks are idle meanwhile: at most
 * the time of the other side's shuffle, and that of the groups.
 * Runs in injectQueryStagePrepRule, after Spark has put shuffles where joins need them, at each adaptive
 * re-plan. A second run on its result changes nothing, as these shuffles are marked.
 * Conf: spark.selinger.awaitBuildSide.enabled.  References: Kabra and DeWitt, Efficient Mid-Query
 * Re-Optimization of Sub-Optimal Query Execution Plans, SIGMOD 1998.
 */
final class AwaitBuildSide(session: SparkSession)
    extends GuardedPhysicalRule(AwaitBuildSide, SelingerConf.switches) {
  import AwaitBuildSide._

  override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan =
    // Without that rule nobody chooses a broadcast by the rows measured.
    if (!SelingerConf.switches.enabled(SelectJoinOperator)) plan
    else {
      val shared = new SharedShuffles(plan)
      val groups = new CountedGroups(plan)
      plan.transformUp { case joined: ShuffledJoin =>
        val broadcast = joined match {
          case Shuffled(join, left, right) =>
            firstOf(join, left, right, shared, groups).map(verdict => (join, verdict))
          case _ => None
        }
        broadcast match {
          case Some((join, Verdict(Right(first), evidence, acts))) =>
            CountedGroups.remember(join, counts = mode == Mode.On && acts == GroupsCounted)
            acting(join, mode, first, evidence, acts)
            if (first == BuildLeft) {
              joined.withNewChildren(Seq(awaited(joined.left, groups), awaiting(joined.right)))
            } else joined.withNewChildren(Seq(awaiting(joined.left), awaited(joined.right, groups)))
          case other =>
            reduced(joined, shared, mode).getOrElse {
              other.foreach {
                case (join, Verdict(Left(reason), evidence, _)) =>
                  CountedGroups.remember(join, counts = false)
                  record(join, Outcome.Declined, reason, None, evidence)
                case _ => ()
              }
              joined
            }
        }
      }
    }

  private def acting(
      join: Join,
      mode: Mode,
      first: BuildSide,
      evidence: Seq[Evidence],
      reason: Reason
  ): Unit = record(join, Outcome.acting(mode), reason, Some(first), evidence)

  /**
   * With a large side that waits for the keys of the small one, by which it is reduced then; none where
   * that would not pay.
   */
  private def reduced(joined: ShuffledJoin, shared: SharedShuffles, mode: Mode): Option[SparkPlan] =
    for {
      input <- Some(joined).collect { case Reducible(input) => input }
      reduction = input.reduction
      costs <- reduction.costs(Cluster.of(session), asExpected = true)
      if ReduceJoinInput.pays(costs)
    } yield {
      val join = reduction.join
      // What one shuffle serves now, each place computes for itself then.
      val again = input.waiting.map { side =>
        val work = side.exchange.fold(0.0)(exchange =>
          new StageWork(JoinProblem.cost(Cluster.of(session))).of(exchange.child)
        )
        (places(side, shared) - 1) * work
      }.sum
      val unmet =
        if (
          input.waiting.exists(_.keysMayRaise) ||
          SelectJoinOperator.errorsDependOnOperator(join)
        ) Some(Reason.MayRaise)
        else
          Option.when(
            places(input.source, shared) > 1 ||
              !ReduceJoinInput.pays(costs.copy(after = costs.after.map(_ + again)))
          )(Reason.SharedSubplan)
      unmet match {
        case Some(reason) =>
          record(join, Outcome.Declined, reason, None, costs.evidence)
          joined
        case None =>
          acting(join, mode, reduction.small, costs.evidence, BuildSideAwaited)
          if (mode == Mode.On) JoinReduction.await(join)
          input.waitingPlan
      }
    }

  /** The side to shuffle first, or why neither is; none where that is no longer the question. */
  private def firstOf(
      join: Join,
      left: Side,
      right: Side,
      shared: SharedShuffles,
      groups: CountedGroups
  ): Option[Verdict] =
    if (Subqueries.contain(join) || !left.canWait && !right.canWait) None
    else if (join.isStreaming) Some(Verdict(Left(Reason.StreamingPlan)))
    else if (SelectJoinOperator.isHinted(join)) Some(Verdict(Left(Reason.HintObeyed)))
    else {
      // A broadcast is decided when the side has run: by the limits of that phase.
      JoinProblem.of(join, Phase.Adaptive, Cluster.of(session)) match {
        case None => Some(Verdict(Left(Reason.NoStatistics)))
        case Some(problem) =>
          val choice = problem.asExpected.choice(stock = None)
          val evidence = problem.evidence(choice)
          choice.best.flatMap(_.operator.broadcastSide) match {
            case Some(build) if problem.hasEqualities =>
              val (first, other) = if (build == BuildLeft) (left, right) else (right, left)
              val (building, waiting) =
                if (build == BuildLeft) (join.left, join.right) else (join.right, join.left)
              lazy val counting = first.grouped.map(counted(problem, build, _, groups))
              lazy val shown = evidence ++ counting.map(_._2)
              val acts = if (first.grouped.isEmpty) BuildSideAwaited else GroupsCounted
              if (!other.canWait || first.grouped.nonEmpty && !groups.mayCount(join)) None
              else if (
                RaisedErrors.mayRaise(waiting) || other.keysMayRaise ||
                first.grouped.nonEmpty && groupsMayRaise(building) ||
                SelectJoinOperator.errorsDependOnOperator(join)
              ) {
                Some(Verdict(Left(Reason.MayRaise), evidence))
              } else if (counting.exists { case (saved, cost) => saved <= cost.value }) {
                Some(Verdict(Left(MeasuringCostly), shown))
              } else if (places(first, shared) > 1) {
                Some(Verdict(Left(Reason.SharedSubplan), evidence))
              } else if (places(other, shared) > 1) {
                val input = (if (build == BuildLeft) problem.right else problem.left).side
                val (isBetterShared, costs) = weigh(problem.cost, input, other, shared)
                val verdict = if (isBetterShared) Left(Reason.SharedSubplan) else Right(build)
                Some(Verdict(verdict, shown ++ costs, acts))
              } else Some(Verdict(Right(build), shown, acts))
            case _ => Some(Verdict(Left(Reason.NoSmallSide), evidence))
          }
      }
    }

  /**
   * What a broadcast of groups is expected to save, and what it costs to shuffle them, by which they are
   * counted, if the filters on them keep all: a share for each join that counts the same groups.
   */
  private def counted(
      problem: JoinProblem,
      build: BuildSide,
      side: SparkPlan,
      groups: CountedGroups
  ): (Double, Evidence) = {
    val isLeft = build == BuildLeft
    val (plan, input) =
      if (isLeft) (problem.join.left, problem.left) else (problem.join.right, problem.right)
    // Whatever their keys are, they need no shuffle without the rule.
    val there = input.copy(side = input.side.copy(shuffleExists = true))
    val known = if (isLeft) problem.copy(left = there) else problem.copy(right = there)
    val (broadcasts, others) = known.asExpected
      .choice(stock = None)
      .candidates
      .partition(_.operator.broadcastSide.contains(build))
    val saved = for {
      broadcast <- broadcasts.map(_.seconds).minOption
      other <- others.map(_.seconds).minOption
    } yield other - broadcast
    val all = LeafStatistics.estimator.estimate(unfiltered(plan)).map(_.rows.value)
    val shuffled = input.side.copy(
      rows = all.fold(input.side.rows)(math.max(_, input.side.rows)),
      shuffleExists = false
    )
    val seconds = (problem.cost.shuffled(shuffled) + problem.cost.stage) / groups.places(side)
    (saved.getOrElse(0.0), Evidence("cost of shuffling all groups", seconds, "s", Origin.Derived))
  }

  /**
   * All groups are completed and filtered to be counted, also those that the join would not have asked for.
   * What is below their shuffle runs in any case.
   */
  private def groupsMayRaise(plan: LogicalPlan): Boolean = plan match {
    case stage: LogicalQueryStage => groupsMayRaise(stage.logicalPlan)
    case aggregate: Aggregate => RaisedErrors.operatorMayRaise(aggregate, ExactSums.fits)
    case other =>
      RaisedErrors.operatorMayRaise(other, ExactSums.fits) || other.children.exists(groupsMayRaise)
  }

  private def unfiltered(plan: LogicalPlan): LogicalPlan = plan match {
    case Filter(_, child) => unfiltered(child)
    case Project(_, child) => unfiltered(child)
    case groups => groups
  }

  private def places(side: Side, shared: SharedShuffles): Int = side.exchange.fold(1)(shared.places)

  /** Whether a side that several places ask for should be shuffled for all of them, and the numbers. */
  private def weigh(
      cost: JoinCost,
      input: JoinSide,
      side: Side,
      shared: SharedShuffles
  ): (Boolean, Seq[Evidence]) = {
    val asking = places(side, shared)
    val rows = input.copy(shuffleExists = side.exchange.exists(shared.isShuffled))
    val work = side.exchange.fold(0.0)(exchange => new StageWork(cost).of(exchange.child))
    val costs = Seq(
      Evidence("places that ask for the side that would wait", asking, "places", Origin.Exact),
      Evidence("cost of computing that side", work, "s", Origin.Derived),
      Evidence("cost of its shuffle", cost.shuffled(rows), "s", Origin.Derived)
    )
    (cost.isBetterShared(asking, work, rows), costs)
  }

  private def record(
      join: Join,
      outcome: Outcome,
      reason: Reason,
      first: Option[BuildSide],
      evidence: Seq[Evidence]
  ): Unit =
    Decision.record(
      join,
      Decision(
        rule = AwaitBuildSide.id,
        node = NodeText.of(join),
        key = NodeText.key(join),
        outcome = outcome,
        reason = reason,
        phase = if (QueryStages.begun(join)) Phase.Adaptive else Phase.Static,
        chosen =
          first.map(side => if (side == BuildLeft) "left side first" else "right side first"),
        stock = first.map(_ => "both sides at once"),
        detail = UnknownRows.detail(reason, join.left, join.right),
        evidence = evidence,
        setting = reason match {
          case Reason.NoSmallSide => Some(JoinSettings.broadcastKey(Phase.Adaptive))
          case BuildSideAwaited | GroupsCounted => Some(AwaitBuildSide.switch)
          // Nothing but another query would change it.
          case _ => None
        },
        settingTo = Option.when(first.nonEmpty)("false"),
        title = Some(RelationNames.titleOf(join)),
        sides = Some(RelationNames.sidesOf(join))
      )
    )
}

object AwaitBuildSide
    extends RuleDescription(
      "awaitBuildSide",
      RuleKind.Adaptive,
      "Shuffles first the side of a join that may turn out small enough to be broadcast, and the " +
        "other side only if it is still needed."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.EachPlan(
      "Which joins belong to a subquery can be seen only from the root of the plan.",
      this,
      SelingerConf.switches
    )(Subqueries.mark),
    Hook.StagePreparation(
      "All shuffles of the plan are there by then, and none of those that wait has begun."
    )(new AwaitBuildSide(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.HintObeyed,
    Reason.NoStatistics,
    Reason.NoSmallSide,
    Reason.MayRaise,
    Reason.SharedSubplan,
    MeasuringCostly,
    GroupsCounted,
    BuildSideAwaited
  )

  private[strategy] val GroupsCounted: Reason = Reason(
    "GROUPS_COUNTED_FIRST",
    "One side is an aggregation with HAVING, which may leave so few groups that they can be broadcast. They " +
      "are counted first, in a shuffle that is added for it, and the other side is shuffled only if it is " +
      "still needed.",
    "Switch spark.selinger.awaitBuildSide.enabled off if waiting costs more than it saves."
  )

  private[strategy] val MeasuringCostly: Reason = Reason(
    "MEASURING_COSTLY",
    "One side is an aggregation with HAVING, which may leave so few groups that they can be broadcast. A " +
      "shuffle that counts them first may cost more than the broadcast saves, so nothing waits.",
    "Nothing to do."
  )

  override def example: String =
    "SELECT * FROM sales s JOIN returns r ON s.ticket = r.ticket " +
      "JOIN reasons x ON r.reason = x.id WHERE x.text = 'broken'"

  /**
   * @param first the side to shuffle first, or why neither is
   * @param acts why it is
   */
  private final case class Verdict(
      first: Either[Reason, BuildSide],
      evidence: Seq[Evidence] = Nil,
      acts: Reason = BuildSideAwaited
  )

  /**
   * @param exchange a shuffle that has not begun; none where it runs, or there is none
   * @param grouped groups that are where the join needs them, without a shuffle
   */
  private final case class Side(
      exchange: Option[ShuffleExchangeExec],
      grouped: Option[SparkPlan] = None
  ) {
    def canWait: Boolean = exchange.nonEmpty

    /** The shuffle evaluates them for all rows. */
    def keysMayRaise: Boolean = exchange.map(_.outputPartitioning).exists {
      case hashed: HashPartitioning => !hashed.expressions.forall(RaisedErrors.isSafe)
      case _ => true
    }
  }

  /** A join whose sides are to be shuffled, or are being, or are groups that need no shuffle. */
  private object Shuffled {
    def unapply(plan: SparkPlan): Option[(Join, Side, Side)] = plan match {
      case joined: ShuffledJoin =>
        for {
          join <- joined.logicalLink.collect { case join: Join => join }
          left <- sideOf(joined.left)
          right <- sideOf(joined.right)
        } yield (join, left, right)
      case _ => None
    }

    private def sideOf(plan: SparkPlan): Option[Side] = plan match {
      case sort: SortExec => sideOf(sort.child)
      case SparkShuffle(exchange) =>
        Option.when(!SparkShuffle.isHeld(exchange))(Side(Some(exchange)))
      case stage: ShuffleQueryStageExec if !stage.isMaterialized => Some(Side(None))
      case Grouped(_) => Some(Side(None, Some(plan)))
      case _ => None
    }
  }

  /**
   * Groups that several joins of a plan ask for are counted once. Each plan that is prepared has marks of
   * its own: all its joins then wait for the same stage, and none for one that has finished before.
   */
  private final class CountedGroups(plan: SparkPlan) {
    // Adaptive execution refuses a plan with more shuffles than the one that it has.
    private lazy val isFirst = !plan.exists(_.isInstanceOf[QueryStageExec])

    private lazy val found: Map[SparkPlan, (Int, BuildSideFirstExec.Mark)] =
      plan
        .collect {
          case Shuffled(join, left, right) if mayTakePart(join) =>
            Seq((left, right), (right, left)).collect {
              case (Side(_, Some(groups)), other) if other.canWait => groups.canonicalized
            }
        }
        .flatten
        .groupBy(identity)
        .map { case (side, same) => side -> ((same.size, new BuildSideFirstExec.Mark)) }

    private def mayTakePart(join: Join): Boolean =
      mayCount(join) && !SelectJoinOperator.isHinted(join) && !Subqueries.contain(join)

    def mayCount(join: Join): Boolean = isFirst || CountedGroups.areRemembered(join)

    def places(side: SparkPlan): Int =
      if (SQLConf.get.exchangeReuseEnabled) found.get(side.canonicalized).fold(1)(_._1) else 1

    def mark(side: SparkPlan): BuildSideFirstExec.Mark =
      found.get(side.canonicalized).fold(new BuildSideFirstExec.Mark)(_._2)
  }

  private object CountedGroups {
    private val tag = TreeNodeTag[Unit]("selinger.countsGroups")

    /** Whether a join counts groups in the plan that is made now. */
    def remember(join: Join, counts: Boolean): Unit =
      if (counts) join.setTagValue(tag, ()) else join.unsetTagValue(tag)

    def areRemembered(join: Join): Boolean = join.getTagValue(tag).isDefined
  }

  /**
   * A join whose large side can be reduced to the keys of its small side.
   *
   * @param source the shuffle that the keys come from
   * @param waiting the shuffles of the large side, at least one
   */
  private final case class Reducible(
      joined: ShuffledJoin,
      reduction: JoinReduction,
      source: Side,
      waiting: Seq[Side]
  ) {
    private def isLeftSmall = reduction.small == BuildLeft

    def waitingPlan: SparkPlan = {
      def first(side: SparkPlan) = onSource(side)(awaitedInput)
      def later(side: SparkPlan) = onShuffles(side)(awaitingInput)
      joined.withNewChildren(
        if (isLeftSmall) Seq(first(joined.left), later(joined.right))
        else Seq(later(joined.left), first(joined.right))
      )
    }
  }

  private object Reducible {
    def unapply(plan: SparkPlan): Option[Reducible] = plan match {
      case joined: ShuffledJoin if SelingerConf.switches.enabled(ReduceJoinInput) =>
        for {
          join <- joined.logicalLink.collect { case join: Join => join }
          if !Subqueries.contain(join) && !SelectJoinOperator.isHinted(join)
          reduction <- JoinReduction.of(join)
          if reduction.canWait
          (small, large) =
            if (reduction.small == BuildLeft) (joined.left, joined.right)
            else (joined.right, joined.left)
          source <- sourceOf(small, AttributeSet(reduction.keys.flatMap(_._2.references)))
          waiting = shufflesOf(large)
          if waiting.nonEmpty
        } yield new Reducible(joined, reduction, source, waiting)
      case _ => None
    }

    /** The shuffle below semi and anti joins of the small side, if its rows have the keys. */
    private def sourceOf(plan: SparkPlan, keys: AttributeSet): Option[Side] = plan match {
      case _ if !keys.subsetOf(plan.outputSet) => None
      case Passing(child) => sourceOf(child, keys)
      case SparkShuffle(exchange) =>
        // Another join may have it run first already.
        if (exchange.child.isInstanceOf[WaitForBuildSideExec]) None else Some(Side(Some(exchange)))
      case stage: ShuffleQueryStageExec if !stage.isMaterialized => Some(Side(None))
      case _ => None
    }

    private def shufflesOf(plan: SparkPlan): Seq[Side] = plan match {
      case SparkShuffle(exchange) =>
        if (SparkShuffle.isHeld(exchange)) Nil else Seq(Side(Some(exchange)))
      case _: Exchange => Nil
      case other => other.children.flatMap(shufflesOf)
    }
  }

  /** Operators each of whose rows is made of one row of the first child. */
  private object Passing {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case sort: SortExec => Some(sort.child)
      case project: ProjectExec => Some(project.child)
      case join: BaseJoinExec if join.joinType == LeftSemi || join.joinType == LeftAnti =>
        Some(join.left)
      case _ => None
    }
  }

  private def onSource(plan: SparkPlan)(change: SparkPlan => SparkPlan): SparkPlan = plan match {
    case Passing(child) =>
      plan.withNewChildren(onSource(child)(change) +: plan.children.tail)
    case SparkShuffle(exchange) if !SparkShuffle.isHeld(exchange) =>
      exchange.withNewChildren(Seq(change(exchange.child)))
    case other => other
  }

  private def onShuffles(plan: SparkPlan)(change: SparkPlan => SparkPlan): SparkPlan = plan match {
    case SparkShuffle(exchange) if !SparkShuffle.isHeld(exchange) =>
      exchange.withNewChildren(Seq(change(exchange.child)))
    case exchange: Exchange => exchange
    case other => other.withNewChildren(other.children.map(onShuffles(_)(change)))
  }

  private def awaitingInput(input: SparkPlan): SparkPlan =
    WaitForBuildSideExec(input, new OneRoundStage)

  private def awaitedInput(input: SparkPlan): SparkPlan =
    BuildSideFirstExec(input, new BuildSideFirstExec.Mark)

  /** Its shuffle begins in a later round. */
  private def awaiting(side: SparkPlan): SparkPlan =
    onShuffle(side)(awaitingInput)

  /** Its shuffle is one of its own; groups get one, in the order and the partitions that they have. */
  private def awaited(side: SparkPlan, groups: CountedGroups): SparkPlan = side match {
    case sort: SortExec => sort.withNewChildren(Seq(awaited(sort.child, groups)))
    case Grouped(partitioning) =>
      val counted = BuildSideFirstExec(side, groups.mark(side))
      val shuffle = ShuffleExchangeExec(partitioning, counted)
      if (side.outputOrdering.isEmpty) shuffle
      else SortExec(side.outputOrdering, global = false, shuffle)
    case _ => onShuffle(side)(awaitedInput)
  }

  private def onShuffle(side: SparkPlan)(change: SparkPlan => SparkPlan): SparkPlan = side match {
    case sort: SortExec => sort.withNewChildren(Seq(onShuffle(sort.child)(change)))
    case exchange: ShuffleExchangeExec => exchange.withNewChildren(Seq(change(exchange.child)))
    case running => running
  }
}
