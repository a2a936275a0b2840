package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  Mode,
  Outcome,
  Precondition,
  RaisedErrors,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinCost, PlanWork, Work}
import io.selinger.estimate.plans.{LeafStatistics, RowsRead}
import org.apache.spark.sql.catalyst.expressions.ScalarSubquery
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * Aggregations without groups that read the same data under different filters become one aggregation,
 * so that the data is read once, and joined once.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. Spark computes equal subqueries once                  else SUBQUERY_REUSE_OFF
 *   3. the user has not set how Spark merges subqueries      else MERGE_SETTINGS_OBEYED
 * and of each subplan
 *   4. it gives the same values whenever it runs             else RANDOM_VALUES
 *   5. nothing below its aggregation can raise an error      else ERRORS_DEPEND_ON_PLAN
 * and of a group of them
 *   6. Spark can merge them                                  else SUBPLANS_DIFFER
 *   7. the rows of all of them can be estimated              else NO_STATISTICS
 *   8. one plan for all takes less than all of them apart    else CHEAPER_APART
 *
 * {{{
 *   SELECT (SELECT sum(amount) FROM sales WHERE item = 1), (SELECT count(*) FROM sales WHERE item = 2)
 *   Before:  Project [subquery 1, subquery 2]      After:  Project [subquery.a, subquery.b]
 *            1: Aggregate [sum(amount)]                    Aggregate [sum(amount) FILTER (p) AS a,
 *               +- Filter (item = 1)                       |          count(1) FILTER (q) AS b]
 *                  +- sales                                +- Project [amount, item = 1 AS p, item = 2 AS q]
 *            2: Aggregate [count(1)]                          +- Filter (item = 1 OR item = 2)
 *               +- Filter (item = 2)                             +- sales
 *                  +- sales
 * }}}
 *
 * Correct because: Spark's own PlanMerger makes the plan. Each function sees the rows that its own
 * filter keeps, so the result over no rows stays 0 or null by itself; a filter that is null keeps
 * nothing in either plan. Filters pass joins only on sides that these preserve, and joins with unlike
 * hints are not merged. A filter, and what is computed below an aggregation, is evaluated for rows of
 * the other subplans too, so all of it must be unable to raise errors. An aggregation without groups
 * returns one row, and so does what takes its place: a scalar subquery, of which Spark computes equal
 * ones once.
 * Not done: aggregations with groups, whose groups the filters of others would add; correlated
 * subqueries; subplans in subqueries that are relations; subplans that contain others; what Spark's
 * PlanMerger cannot merge, such as subplans with a limit, or with filters on both sides of a join.
 * Cost: planning O(n × groups) merges of two subplans, and each group is optimized once more. May lose
 * where a filter alone would leave out most row groups, or would make a join small: both are part of
 * the work that is compared. A filter that compares a column with a merged value is not handed to the
 * reader of files, as it is with a value of its own; no number is known for that.
 * Runs in injectPreCBORule: predicates have been pushed down, and joins still have the order written,
 * which is the same in subplans that are alike. Spark merges what is left later, by its own settings. A
 * second run passes over what has been merged, and decides the same of all others.
 * Conf: spark.selinger.mergeSubplansByCost.enabled.
 */
final class MergeSubplansByCost(session: SparkSession)
    extends GuardedRule(MergeSubplansByCost, SelingerConf.switches) {
  import MergeSubplansByCost._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Its subplans are merged when the query around it comes here.
    case _: Subquery => plan
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ =>
      val found = Subplans.in(plan)
      if (found.map(_.canonicalized).distinct.size < 2) plan
      else
        Precondition.firstUnmet(ofQuery, plan) match {
          case Some(reason) =>
            found.foreach(decline(_, reason))
            plan
          case None => merged(plan, found)
        }
  }

  private def merged(plan: LogicalPlan, found: Seq[Aggregate]): LogicalPlan = {
    val usable = found.filter { subplan =>
      val unmet = Precondition.firstUnmet(ofSubplan, subplan)
      unmet.foreach(decline(subplan, _))
      unmet.isEmpty
    }
    val (groups, single) =
      new SubplanGroups(workOf, SelingerConf.MERGE_MIN_GAIN.value, () => isLate)
        .of(usable)
        .partition(_.distinct.size > 1)
    if (usable.size > 1) {
      val read = usable.map(SubplanGroups.dataOf)
      def isShared(group: SubplanGroup) = read.count(_ == SubplanGroups.dataOf(group.plan)) > 1
      // Of those that read what no other reads one stands for all.
      val (shared, others) = single.partition(isShared)
      (shared ++ others.take(1)).foreach(declineAlone)
    }
    if (groups.isEmpty) plan
    else if (SelingerConf.switches.mode == Mode.Advise) {
      groups.foreach { group =>
        group.subplans.foreach(Decision.record(_, decision(group, Outcome.Advised)))
      }
      plan
    } else {
      val by = groups.flatMap { group =>
        val subquery = ScalarSubquery(optimized(group))
        group.members.map { case (subplan, columns) => subplan -> Replacement(subquery, columns) }
      }
      Subplans.replaced(
        plan,
        subplan => by.collectFirst { case (known, to) if known eq subplan => to }
      )
    }
  }

  private def workOf(subplan: Aggregate): Option[Work] =
    new PlanWork(
      new JoinCost(Cluster.of(session), SelingerConf.CBO_WEIGHT.value),
      LeafStatistics.estimator.estimate,
      RowsRead.of
    ).of(TidyPlan(subplan))

  /** As Spark optimizes every subquery, before it optimizes the query around it. */
  private def optimized(group: SubplanGroup): LogicalPlan = {
    val subquery = Subquery(Subplans.packed(group.plan), correlated = false)
    val result = session.sessionState.optimizer.execute(subquery) match {
      case Subquery(plan, _) => plan
      case other => other
    }
    Decision.record(result, decision(group, Outcome.Changed))
    result
  }
}

object MergeSubplansByCost
    extends RuleDescription(
      "mergeSubplansByCost",
      RuleKind.Logical,
      "Computes several aggregations over the same data together, so that the data is read once."
    ) {

  val Merged: Reason = Reason(
    "SUBPLANS_MERGED",
    "Several aggregations read the same data under different filters. They are computed in one " +
      "pass, which costs less than one pass each.",
    "Set spark.selinger.merge.minGain higher to merge fewer aggregations."
  )

  val CheaperApart: Reason = Reason(
    "CHEAPER_APART",
    "This aggregation could be computed together with another one, but that would not save enough. " +
      "The costs of both are compared below.",
    "Set spark.selinger.merge.minGain lower to merge more aggregations."
  )

  val SubplansDiffer: Reason = Reason(
    "SUBPLANS_DIFFER",
    "This aggregation differs from the others of the query in more than filters and computed " +
      "columns, so it is computed by itself.",
    "Nothing to do."
  )

  val SubqueryReuseOff: Reason = Reason(
    "SUBQUERY_REUSE_OFF",
    "spark.sql.execution.reuseSubquery is off, so a merged aggregation would be computed once for " +
      "each of its results.",
    "Set spark.sql.execution.reuseSubquery to true."
  )

  val SettingsObeyed: Reason = Reason(
    "MERGE_SETTINGS_OBEYED",
    "The session says how Spark merges subqueries: by spark.sql.optimizer.mergeSubplans settings, " +
      "or because spark.sql.optimizer.excludedRules has MergeSubplans. That is obeyed.",
    "Unset these settings to let Selinger decide."
  )

  val RandomValues: Reason = Reason(
    "RANDOM_VALUES",
    "An expression here, such as rand(), may give another value each time it runs, so this part of the " +
      "query is planned as written.",
    "Nothing to do."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Predicates have been pushed down by then, and joins still have the order written, which is " +
        "the same in subplans that are alike."
    )(new MergeSubplansByCost(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    SubqueryReuseOff,
    SettingsObeyed,
    RandomValues,
    Reason.MayRaise,
    SubplansDiffer,
    Reason.NoStatistics,
    CheaperApart,
    Merged
  )

  override def example: String =
    "SELECT (SELECT sum(amount) FROM sales WHERE item = 1) AS one, " +
      "(SELECT count(*) FROM sales WHERE item = 2) AS two"

  // Spark has one name for it in each line; both end like this.
  private val sparkRule = ".MergeSubplans"

  private val sparkSettings = "spark.sql.optimizer.mergeSubplans."

  private val ofQuery: Seq[Precondition[LogicalPlan]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(SubqueryReuseOff)(_ => SQLConf.get.subqueryReuseEnabled),
    Precondition(SettingsObeyed) { _ =>
      val conf = SQLConf.get
      !conf.getAllConfs.keys.exists(_.startsWith(sparkSettings)) &&
      !conf.optimizerExcludedRules.exists(_.contains(sparkRule))
    }
  )

  private val ofSubplan: Seq[Precondition[Aggregate]] = Seq(
    Precondition(RandomValues)(_.deterministic),
    // Together, more rows and columns of the source are read, and all results are computed.
    Precondition(Reason.MayRaise) { subplan =>
      Functions
        .of(subplan)
        .forall { function =>
          (function.aggregateFunction.children ++ function.filter).forall(RaisedErrors.isSafeInput)
        } && !RaisedErrors.mayRaise(subplan.child) && !RaisedErrors.computesUnsafeColumns(subplan)
    }
  )

  private def declineAlone(group: SubplanGroup): Unit = {
    val refused = group.refused.getOrElse(Refused(SubplansDiffer, ComputedTogether.unknown))
    group.subplans.foreach(decline(_, refused.reason, refused.compared))
  }

  private def decline(
      subplan: Aggregate,
      reason: Reason,
      compared: ComputedTogether = ComputedTogether.unknown
  ): Unit = {
    val remedy = reason match {
      case SubqueryReuseOff => Some(Remedy(SQLConf.SUBQUERY_REUSE_ENABLED.key, Some("true")))
      case other => compared.remedy(other)
    }
    ComputedTogether.decline(this, subplan, reason, compared, remedy)
  }

  private def decision(group: SubplanGroup, outcome: Outcome): Decision =
    ComputedTogether.decision(
      this,
      group.subplans,
      group.distinct.size,
      outcome,
      Merged,
      "pass over the data" -> "passes",
      group.compared
    )
}
