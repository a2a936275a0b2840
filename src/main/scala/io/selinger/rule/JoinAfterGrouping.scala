package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  GuardedRule,
  Hook,
  NodeText,
  Origin,
  Outcome,
  Precondition,
  RaisedErrors,
  Reason,
  Remedy,
  RootDecisions,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{ExactSums, RelationNames, UnknownRows}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{AGGREGATE, JOIN}
import org.apache.spark.sql.classic.SparkSession
import scala.collection.mutable.ArrayBuffer

/**
 * Groups rows by the key of a table, and joins the table to the groups, where a query joins it to all rows
 * to group by its columns. Rows are then joined with fewer tables and hashed by narrow keys, and wide
 * columns go through no shuffle of the aggregation.
 *
 * Looks at aggregations over inner joins, and in these at tables of which columns are used to group by
 * only. Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. no join has a hint                                    else HINT_OBEYED
 *   3. nothing that would be computed for more groups can
 *      raise errors                                          else ERRORS_DEPEND_ON_PLAN
 *   4. no other part of the query computes the same join
 *      for something else                                    else SHARED_SUBPLAN
 *   5. the rows can be estimated                             else NO_STATISTICS
 *   6. it saves at least aggregate.joinLaterMinGain          else LATER_JOIN_SAVES_LITTLE
 *   7. the key of each such table is proven, or the groups
 *      are merged after the joins                            else GROUP_KEY_NOT_PROVEN
 * An aggregation without such a table is passed over.
 *
 * {{{
 *   SELECT c.id, c.name, c.street, sum(amount) FROM sales JOIN customers c ON customer = c.id
 *   GROUP BY c.id, c.name, c.street
 *   Before:  Aggregate [id, name, street]              After:  Project [id, name, street, s]
 *            +- Join (customer = id)                           +- Join (customer = id)
 *               :- sales                                          :- Aggregate [customer], [sum(amount) AS s]
 *               +- customers                                      |  +- sales
 *                                                                 +- customers
 * }}}
 *
 * Correct because: each such table is joined by equality, with columns that all rows of a group have in
 * common: columns grouped by, columns equal to these, or columns of tables joined before. Where what is
 * compared of the table is a key, a group finds one row of it at most, the one that each row of the group
 * would have found; so its columns depend on the group, and groups stay apart as they were. Or else a column
 * that the query groups by identifies the table's rows, and so also what these are compared with: that
 * is grouped by instead, and each row of the table finds the group that it would have had. Groups whose
 * rows would have found no match find none either. Keys are proven (ProvenKeys); a column grouped by
 * must have no null, since all nulls make one group. Only types are compared whose equal values are
 * the same bits. Where keys are not proven, the aggregation stays above the joins, and merges what is grouped:
 * all rows of a group find the same rows of the tables, and functions are merged as PartialAggregate says; a
 * row that a group finds twice repeats the group as it would have repeated its rows. Averages that Spark
 * computes in double later (of short decimals) are not merged: they would lose that rounding. Functions are
 * computed for groups that find no match, too: they must not raise errors.
 * Not done: outer joins; tables of which a function uses columns; tables of which no key is grouped by
 * (PushAggregateBelowJoin groups such rows in part); correlated subqueries.
 * Cost: planning O(n²) for n joined tables; a column of each such table is read, as EliminateJoins says. May
 * lose where tables leave far fewer rows than estimated, or where a table's filter would have come before
 * a larger join: the order written is compared, not the best one.
 * Runs in injectPreCBORule before EliminateJoins, which leaves out what is joined to groups for nothing, and
 * before orders are chosen of what is left. A second run finds no table to take out, or groups that are
 * grouped already.
 * Conf: spark.selinger.joinAfterGrouping.enabled, spark.selinger.aggregate.joinLaterMinGain.
 * References: Chaudhuri, Shim, Including Group-By in Query Optimization, VLDB 1994 (invariant grouping);
 * Yan, Larson, Eager Aggregation and Lazy Aggregation, VLDB 1995.
 */
final class JoinAfterGrouping(session: SparkSession)
    extends GuardedRule(JoinAfterGrouping, SelingerConf.switches) {
  import JoinAfterGrouping._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    // Spark still looks for the aggregation at its root.
    case Subquery(_, true) => plan
    case _ if !plan.containsAllPatterns(AGGREGATE, JOIN) => plan
    // Which rows it takes depends on how these are spread.
    case _ if plan.exists(_.isInstanceOf[Sample]) => plan
    case _ =>
      val groupings = new Groupings(new WholeQuery(plan), new GroupedInputCost(Cluster.of(session)))
      val result = plan.transformDown {
        case aggregate: Aggregate if !isLate && aggregate.containsPattern(JOIN) =>
          groupings.changed(aggregate).getOrElse(aggregate)
      }
      // Conditions on results move below the joins, and columns that nobody needs go.
      RootDecisions.on(if (result eq plan) plan else TidyPlan(result), groupings.made)
  }

  private final class Groupings(query: WholeQuery, cost: GroupedInputCost) {
    private val decided = ArrayBuffer.empty[Decision]
    private val own = ArrayBuffer.empty[Aggregate]

    def made: Seq[Decision] = decided.toSeq

    def changed(aggregate: Aggregate): Option[LogicalPlan] =
      for {
        grouping <- if (own.exists(_ eq aggregate)) None else RegionGrouping.of(aggregate)
        best <- bestOf(grouping)
        unmet = unmetOf(best)
        outcome = Outcome.of(unmet, SelingerConf.switches.mode)
        _ = decided += decision(best, outcome, unmet.getOrElse(best.joined))
        if outcome == Outcome.Changed
      } yield {
        own += best.joins.groups
        best.joins.result
      }

    private def bestOf(grouping: RegionGrouping): Option[Subject] = {
      val ways = grouping.ways.map(new Subject(grouping, _, query, cost))
      // What holds for all of them is asked before any cost.
      ways.find(Precondition.firstUnmet(ofGrouping, _).isDefined).orElse(cheapest(ways))
    }
  }

  private def unmetOf(subject: Subject): Option[Reason] =
    Precondition.firstUnmet(ofGrouping ++ ofWay, subject)

  /** The cheapest tables to join later; more of them, as long as that saves more. */
  private def cheapest(all: Seq[Subject]): Option[Subject] = {
    val ways = worthPricing(all)
    val (possible, others) = ways.sortBy(_.laterCost).partition(unmetOf(_).isEmpty)
    possible match {
      case first +: more =>
        Some(more.foldLeft(first) { (best, other) =>
          worthPricing(best.together(other))
            .filter(both => both.laterCost < best.laterCost && unmetOf(both).isEmpty)
            .minByOption(_.laterCost)
            .getOrElse(best)
        })
      case _ => others.headOption
    }
  }

  /** Merging the groups costs more still, so it is not priced where the same joins alone save too little. */
  private def worthPricing(ways: Seq[Subject]): Seq[Subject] = {
    val little = ways.filter(way => !way.joins.merges && !savesEnough(way))
    ways.filterNot(way =>
      way.joins.merges && little.exists(_.joins.tables eq way.joins.tables)
    )
  }

  private def decision(subject: Subject, outcome: Outcome, reason: Reason): Decision = {
    val tables = subject.joins.tables.map(table => RelationNames.of(table.rows)).mkString(", ")
    val isProven = reason != KeyNotProven && reason != GroupsMerged
    val told = subject.joins.tables.filter(isProven || !_.isProven)
    val keys = told.map { table =>
      s"${RelationNames.of(table.rows)} by ${table.key.map(_.name).mkString(", ")}"
    }
    val acts = reason == subject.joined
    val remedy = remedyOf(reason, subject)
    Decision(
      rule = info.id,
      node = NodeText.of(subject.aggregate),
      key = NodeText.key(subject.aggregate),
      outcome = outcome,
      reason = reason,
      chosen = Option.when(acts)(s"$tables joined to groups"),
      stock = Option.when(acts)("to all rows"),
      detail = UnknownRows
        .detail(reason, subject.aggregate)
        .orElse(Option.when(isOfCosts(reason))(s"Keys: ${keys.mkString("; ")}")),
      evidence = if (isOfCosts(reason)) subject.evidence else Nil,
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      work = subject.costs.filter(_ => acts).map { case (stock, chosen) =>
        ExpectedWork(stock, chosen)
      }
    )
  }

  private def remedyOf(reason: Reason, subject: Subject): Option[Remedy] = {
    val share = SelingerConf.JOIN_LATER_MIN_GAIN.key
    reason match {
      case JoinedLater | GroupsMerged =>
        Some(subject.gain.flatMap(Remedy.above) match {
          case Some(gain) => Remedy(share, Some(gain))
          case None => Remedy(info.switch, Some("false"))
        })
      case SavesLittle => Some(Remedy(share, subject.gain.flatMap(Remedy.below)))
      case _ => None
    }
  }
}

object JoinAfterGrouping
    extends RuleDescription(
      "joinAfterGrouping",
      RuleKind.Logical,
      "Groups rows by the key of a table and joins the table to the groups, where a query joins the table " +
        "only to group by its columns."
    ) {

  val JoinedLater: Reason = Reason(
    "JOINED_AFTER_GROUPING",
    "The query groups by columns of a table that depend on a key. The rows are grouped by the key, and the " +
      "table is joined to the groups.",
    "Set spark.selinger.aggregate.joinLaterMinGain higher to do so less often."
  )

  val GroupsMerged: Reason = Reason(
    "GROUPS_MERGED_AFTER_JOIN",
    "The rows are grouped by the columns that a table is joined by, the table is joined to the groups, and " +
      "the groups are merged by its columns. They are merged because it is not proven that the key named below " +
      "has no duplicates and, if the table is joined by other columns, no nulls.",
    "Nothing to do. A proven key saves the merging: see GROUP_KEY_NOT_PROVEN. Set " +
      "spark.selinger.aggregate.joinLaterMinGain higher to join after grouping less often."
  )

  val SavesLittle: Reason = Reason(
    "LATER_JOIN_SAVES_LITTLE",
    "A table here could be joined to the groups instead of the rows, but that would not save enough. The " +
      "costs of both are compared below.",
    "Set spark.selinger.aggregate.joinLaterMinGain lower to do so more often."
  )

  val KeyNotProven: Reason = Reason(
    "GROUP_KEY_NOT_PROVEN",
    "A table here could be joined to the groups instead of the rows, if each group were proven to match one " +
      "row of it: the key named below must have no duplicates and, if the table is joined by other columns, " +
      "no nulls. Merging the groups afterwards is no way out: a function here cannot be merged, or merging " +
      "would cost too much.",
    "Nothing to do if the key has duplicates or nulls. Otherwise run selinger.declare_key, after each " +
      "change of the files: it checks the key in a job, whatever the size of the table. Or, if the table is not too large to be read while the " +
      "query is planned, set spark.selinger.keys.maxRows above its rows, and " +
      "spark.selinger.stats.sampling.budgetMs higher if reading them takes longer. Both work for Parquet and " +
      "ORC files, and for keys of integers, decimals, dates, timestamps without time zone, and texts without " +
      "a collation."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Spark has pruned columns by then, so it shows what a table is used for, and Selinger has not yet " +
        "chosen orders of joins."
    )(new JoinAfterGrouping(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.HintObeyed,
    Reason.MayRaise,
    Reason.SharedSubplan,
    Reason.NoStatistics,
    SavesLittle,
    KeyNotProven,
    GroupsMerged,
    JoinedLater
  )

  override def example: String =
    "SELECT i.id, i.name, sum(s.amount) AS total FROM sales s JOIN items i ON s.item = i.id " +
      "GROUP BY i.id, i.name"

  private def costOf(joins: LaterJoins, cost: GroupedInputCost): Option[Double] = {
    val result = TidyPlan(joins.result)
    val own = result.collect { case aggregate: Aggregate if joins.isOwn(aggregate) => aggregate }
    for {
      plan <- cost.computed(result)
      moved <- ExpressionSets.all(own.map(movedBy(_, cost)))
    } yield plan + moved.sum
  }

  /** What an aggregation takes, other than to compute its rows. */
  private def movedBy(aggregate: Aggregate, cost: GroupedInputCost): Option[Double] =
    for {
      whole <- cost.of(aggregate)
      plain <- cost.computed(aggregate)
      keyed <- cost.keyed(aggregate)
    } yield whole - plain + keyed

  private final class Subject(
      grouping: RegionGrouping,
      val joins: LaterJoins,
      query: WholeQuery,
      cost: GroupedInputCost
  ) {
    val aggregate: Aggregate = grouping.aggregate

    /** What is told of it where nothing speaks against it. */
    def joined: Reason = if (joins.merges) GroupsMerged else JoinedLater

    /** Seconds as written, and with later joins. */
    lazy val costs: Option[(Double, Double)] =
      for {
        plan <- cost.computed(aggregate)
        moved <- movedBy(aggregate, cost)
        later <- costOf(joins, cost)
      } yield (plan + moved, later)

    def laterCost: Double = costs.fold(Double.MaxValue)(_._2)

    /** With the tables of another one, too. */
    def together(other: Subject): Seq[Subject] =
      grouping.together(joins, other.joins).map(new Subject(grouping, _, query, cost))

    /** Whether tasks that group their rows by themselves, without a shuffle, leave few groups. */
    def reducesInTasks: Boolean = cost.shareInTasks(joins.groups).exists(_ < fewInTasks)

    def gain: Option[Double] = costs.map { case (stock, later) => 1 - later / stock }

    def isStreaming: Boolean = query.isStreaming

    def hasHint: Boolean = grouping.region.hints.exists(_ != JoinHint.NONE)

    /** Conditions on results may be tested for groups that find no match. */
    def mayRaise: Boolean =
      !grouping.hasSafeResults || query.testsUnsafely(aggregate) ||
        RaisedErrors.operatorMayRaise(joins.groups, ExactSums.fits) ||
        grouping.region.relations.exists(RaisedErrors.computesUnsafeColumns)

    def isShared: Boolean = query.isSharedBeyondAlike(aggregate)

    def evidence: Seq[Evidence] =
      cost.rowsOf(aggregate.child).map(rows =>
        Evidence("rows joined as written", rows.value, "rows", rows.origin)
      ).toSeq ++
        cost.rowsOf(joins.groups).map(rows =>
          Evidence("groups to join", rows.value, "rows", rows.origin)
        ) ++
        costs.toSeq.flatMap { case (stock, later) =>
          Seq(
            Evidence("cost as written", stock, "s", Origin.Derived),
            Evidence("cost with later joins", later, "s", Origin.Derived)
          )
        }
  }

  // Groups of all tasks for each row, below which each task may group its rows by itself.
  private val fewInTasks = 0.5

  private def always: Boolean = SelingerConf.JOIN_LATER_MIN_GAIN.value == 0.0

  private def savesEnough(subject: Subject): Boolean =
    always || subject.gain.forall(_ >= SelingerConf.JOIN_LATER_MIN_GAIN.value)

  private def isOfCosts(reason: Reason): Boolean =
    Seq(SavesLittle, KeyNotProven, GroupsMerged, JoinedLater).contains(reason)

  /** The same whichever tables are joined later. */
  private val ofGrouping: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.HintObeyed)(!_.hasHint),
    Precondition(Reason.MayRaise)(!_.mayRaise),
    Precondition(Reason.SharedSubplan)(!_.isShared)
  )

  private val ofWay: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.NoStatistics)(always || _.costs.isDefined),
    Precondition(SavesLittle)(savesEnough),
    // PushAggregateBelowJoin does that.
    Precondition(SavesLittle)(subject =>
      always || !subject.joins.merges || !subject.reducesInTasks
    ),
    Precondition(KeyNotProven)(subject =>
      subject.joins.merges || subject.joins.tables.forall(_.isProven)
    )
  )
}
