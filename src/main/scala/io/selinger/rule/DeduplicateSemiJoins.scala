package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedRule,
  Hook,
  Mode,
  NodeText,
  Origin,
  Outcome,
  Precondition,
  Quantity,
  RaisedErrors,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinCost, JoinSide}
import io.selinger.estimate.plans.{LeafStatistics, RelationNames, TaskGroups, UnknownRows}
import io.selinger.exec.AggregatePerTask
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression, NamedExpression}
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType, LeftAnti, LeftSemi}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession

/**
 * Removes duplicates from the right side of a semi, anti or existence join before it is shuffled, where
 * it has many: IN, EXISTS, INTERSECT and EXCEPT only ask whether there is a match.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                             else STREAMING_PLAN
 *   2. the join has no hint                                 else HINT_OBEYED
 *   3. equal values of all columns have the same bits       else PARTIAL_KEYS_UNSUITABLE
 *   4. the join's condition cannot raise errors             else ERRORS_DEPEND_ON_PLAN
 *   5. no other part of the query computes the right side
 *      for something else                                   else SHARED_SUBPLAN
 *   6. rows and their distinct values can be estimated      else NO_STATISTICS
 *   7. the number of distinct values is more than assumed   else GROUPS_UNKNOWN
 *   8. it saves enough rows, and enough of the shuffle      else FEW_DUPLICATES
 * A right side that is grouped by its columns already is passed over. 6 to 8 do not matter where
 * aggregate.deduplicateMinGain is 0.
 *
 * {{{
 *   SELECT brand FROM a INTERSECT SELECT brand FROM b
 *   Before:  Join LeftSemi (brand <=> brand)     After:  Join LeftSemi (brand <=> brand)
 *            :- a                                        :- a
 *            +- b                                        +- Aggregate [brand]
 *                                                           +- b
 * }}}
 *
 * Correct because: whether a row of the left side has a match does not depend on how often the match is
 * there, and the columns grouped by are all that the condition can read. Nulls are one group, and stay.
 * The aggregate runs in each task by itself, without a shuffle (see AggregatePerTask), so some
 * duplicates remain, which does no harm. A condition that could raise might be evaluated for other pairs.
 * Not done: floating-point numbers and collated texts, whose equal values differ; duplicates of the left
 * side, which all stay in the answer.
 * Cost: planning O(1) estimates for each such join. May lose when there are more distinct values than
 * estimated: then each row is hashed once more, in memory that can spill.
 * Runs in experimental.extraOptimizations, after orders of joins have been chosen; no rule runs later
 * that takes groups for unique. A second run finds the aggregate and passes by.
 * Conf: spark.selinger.deduplicateSemiJoins.enabled.  References: Larson, Data Reduction by Partial
 * Preaggregation, ICDE 2002; most systems build a set of keys for IN.
 */
final class DeduplicateSemiJoins(session: SparkSession)
    extends GuardedRule(DeduplicateSemiJoins, SelingerConf.switches) {
  import DeduplicateSemiJoins._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // It may still become part of another plan, and then meet rules that take groups for unique.
    case _: Subquery => plan
    case _ =>
      val query = new WholeQuery(plan)
      plan.transformDownWithSubqueries {
        case join: Join if concerns(join) && !isLate => decide(join, query)
      }
  }

  private def decide(join: Join, query: WholeQuery): LogicalPlan = {
    val saving = savingOf(join)
    val declined = Precondition.firstUnmet(preconditions(query), Subject(join, saving))
    val acts = declined.isEmpty && SelingerConf.switches.mode == Mode.On
    val result = if (acts) deduplicated(join) else join
    Decision.record(result, decision(join, declined, saving))
    result
  }

  private def savingOf(join: Join): Option[Saving] =
    for {
      input <- LeafStatistics.estimator.estimate(join.right)
      cluster = Cluster.of(session)
      read = TaskGroups.of(join.right, input, cluster.slots)
      distinct <- read.groupsBy(join.right.output)
    } yield {
      val left = read.inAllTasks(distinct, join.right.output)
      val (cost, width) =
        (new JoinCost(cluster, SelingerConf.CBO_WEIGHT.value), input.rowBytes(join.right.output))
      def shuffled(rows: Double) = {
        val side = JoinSide(rows, width, shuffleExists = false)
        cost.shuffled(side) + cost.sorted(side)
      }
      Saving(
        input.rows,
        left,
        stock = shuffled(input.rows.value),
        chosen = cost.grouped(input.rows.value) + shuffled(left.value)
      )
    }

  private def decision(join: Join, declined: Option[Reason], saving: Option[Saving]): Decision = {
    val remedy = declined match {
      case None => saving.flatMap(known => Remedy.above(known.gain)) match {
          case Some(gain) => Some(Remedy(SelingerConf.DEDUPLICATE_MIN_GAIN.key, Some(gain)))
          case None => Some(Remedy(info.switch, Some("false")))
        }
      case Some(FewDuplicates) => saving.map { known =>
          if (known.gain < SelingerConf.DEDUPLICATE_MIN_GAIN.value) {
            Remedy(SelingerConf.DEDUPLICATE_MIN_GAIN.key, Remedy.below(known.gain))
          } else Remedy(SelingerConf.EAGER_MIN_ROWS.key, Some(known.saved.toLong.toString))
        }
      case _ => None
    }
    Decision(
      rule = info.id,
      node = NodeText.of(join),
      key = NodeText.key(join),
      outcome = Outcome.of(declined, SelingerConf.switches.mode),
      reason = declined.getOrElse(Deduplicated),
      chosen = Option.when(declined.isEmpty)("right side without duplicates"),
      stock = Option.when(declined.isEmpty)("all rows of the right side"),
      detail = declined.flatMap(UnknownRows.detail(_, join.right)),
      evidence = saving.toSeq.flatMap(_.evidence),
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      title = Some(RelationNames.titleOf(join)),
      sides = Some(RelationNames.sidesOf(join))
    )
  }
}

object DeduplicateSemiJoins
    extends RuleDescription(
      "deduplicateSemiJoins",
      RuleKind.Logical,
      "Removes duplicates from the right side of IN, EXISTS, INTERSECT and EXCEPT before it is shuffled."
    ) {

  val Deduplicated: Reason = Reason(
    "DUPLICATES_REMOVED",
    "The query only needs to know whether a match exists on the right side of this join, which may have many " +
      "duplicates. Each task removes those that it has before they are shuffled.",
    "Set spark.selinger.aggregate.deduplicateMinGain higher to do so less often."
  )

  val FewDuplicates: Reason = Reason(
    "FEW_DUPLICATES",
    "Removing duplicates from the right side of this join would save too little time, or too few rows.",
    "Set spark.selinger.aggregate.deduplicateMinGain or spark.selinger.aggregate.eager.minRows lower to " +
      "do so more often."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.LateBatch(
      "Orders of joins have been chosen by then, and no later rule of Spark could wrongly assume that " +
        "the remaining rows are unique."
    )(new DeduplicateSemiJoins(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.HintObeyed,
    PushAggregateBelowJoin.KeysUnsuitable,
    Reason.MayRaise,
    Reason.SharedSubplan,
    Reason.NoStatistics,
    PushAggregateBelowJoin.GroupsUnknown,
    FewDuplicates,
    Deduplicated
  )

  override def example: String =
    "SELECT name FROM items WHERE id IN (SELECT item FROM sales WHERE amount > 1)"

  /**
   * @param rows of the right side
   * @param left of them when each task has removed duplicates
   * @param stock seconds that it takes to shuffle and to sort the rows
   * @param chosen the same without duplicates, and to remove them
   */
  private final case class Saving(rows: Quantity, left: Quantity, stock: Double, chosen: Double) {
    def gain: Double = if (stock > 0.0) math.max(0.0, 1.0 - chosen / stock) else 0.0

    def saved: Double = math.max(0.0, rows.value - left.value)

    def isEnough: Boolean =
      gain >= SelingerConf.DEDUPLICATE_MIN_GAIN.value &&
        saved >= SelingerConf.EAGER_MIN_ROWS.value.toDouble

    def evidence: Seq[Evidence] = Seq(
      Evidence("right side", rows.value, "rows", rows.origin),
      Evidence("without duplicates", left.value, "rows", left.origin.worse(rows.origin)),
      Evidence("cost as written", stock, "s", Origin.Derived),
      Evidence("cost without duplicates", chosen, "s", Origin.Derived)
    )
  }

  private final case class Subject(join: Join, saving: Option[Saving])

  private def always: Boolean = SelingerConf.DEDUPLICATE_MIN_GAIN.value == 0.0

  private def preconditions(query: WholeQuery): Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(_ => !query.isStreaming),
    Precondition(Reason.HintObeyed)(_.join.hint == JoinHint.NONE),
    Precondition(PushAggregateBelowJoin.KeysUnsuitable)(subject =>
      subject.join.right.output.forall(AggregatePush.isComparable)
    ),
    Precondition(Reason.MayRaise)(_.join.condition.forall(RaisedErrors.isSafe)),
    Precondition(Reason.SharedSubplan)(subject => !query.sharesSideOf(subject.join)),
    Precondition(Reason.NoStatistics)(always || _.saving.isDefined),
    Precondition(PushAggregateBelowJoin.GroupsUnknown)(
      always || _.saving.forall(_.left.origin != Origin.Default)
    ),
    Precondition(FewDuplicates)(always || _.saving.forall(_.isEnough))
  )

  private def concerns(join: Join): Boolean =
    asksForMatch(join.joinType) && join.right.output.nonEmpty && !isGrouped(join.right)

  private def asksForMatch(joinType: JoinType): Boolean = joinType match {
    case LeftSemi | LeftAnti | ExistenceJoin(_) => true
    case _ => false
  }

  /** Whether rows are grouped by their columns already. */
  private def isGrouped(plan: LogicalPlan): Boolean = plan match {
    case Aggregate(keys, results, _, _) =>
      keys.forall(key => results.exists(isColumn(_, key)))
    case Project(columns, child) => columns.size == child.output.size && isGrouped(child)
    case Filter(_, child) => isGrouped(child)
    case _ => plan.maxRows.exists(_ <= 1)
  }

  private def isColumn(result: NamedExpression, key: Expression): Boolean = result match {
    case Alias(value, _) => value.semanticEquals(key)
    case column => column.semanticEquals(key)
  }

  private def deduplicated(join: Join): Join = {
    val columns = join.right.output
    val made = join.copy(right = Aggregate(columns, columns, join.right, Some(AggregatePerTask)))
    made.copyTagsFrom(join)
    made
  }
}
