package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  Outcome,
  Precondition,
  RaisedErrors,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinCost, Work}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * Aggregations that group the same tables by the same columns, and differ in conditions on these columns,
 * are computed once, for the rows of all of them. Each place of the query takes its groups from the
 * result. They come from common table expressions that a query names several times, with another year
 * each time, say.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                               else STREAMING_PLAN
 *   2. Spark computes equal shuffles once                     else EXCHANGE_REUSE_OFF
 * and of each aggregation
 *   3. it gives the same values whenever it runs              else RANDOM_VALUES
 *   4. no join in it has a hint                               else HINT_OBEYED
 *   5. reading other columns of its files raises no error     else ERRORS_DEPEND_ON_PLAN
 * and of a group of aggregations over the same relations
 *   6. they differ only in conditions on grouping columns,
 *      in columns and in functions                            else AGGREGATES_DIFFER
 *   7. one for all fails only if one of them fails            else ERRORS_DEPEND_ON_PLAN
 *   8. the rows of all of them can be estimated               else NO_STATISTICS
 *   9. one for all saves at least merge.minGain               else CHEAPER_APART
 *
 * {{{
 *   WITH t AS (SELECT item, year, sum(amount) AS s FROM sales GROUP BY item, year)
 *   SELECT * FROM t a JOIN t b ON a.item = b.item WHERE a.year = 2024 AND b.year = 2025
 *   Before:  Join                              After:  Join
 *            :- Aggregate [item, year]                 :- Filter (year = 2024)
 *            |  +- Filter (year = 2024)                |  +- Aggregate [item, year]
 *            |     +- sales                            |     +- Filter (year = 2024 OR year = 2025)
 *            +- Aggregate [item, year]                 |        +- sales
 *               +- Filter (year = 2025)                +- Filter (year = 2025)
 *                  +- sales                               +- (the same aggregation)
 * }}}
 *
 * Correct because: a condition on grouping columns keeps or drops whole groups, so it may be tested after
 * the aggregation, and on its way up each operator passes it (see CoveringPlan). Inner joins of the same
 * relations return the same rows in any order. A copy of the common aggregation stands in each place;
 * since they are equal, Spark computes the shuffle in them once, and if it ever did not, the answer would
 * be the same. If one of them has no condition there at all, the common one has none either. It fails
 * only if one of them fails (see CoveringPlan); Spark may then report the shared stage once for each place
 * (STAGE_MATERIALIZATION_MULTIPLE_FAILURES).
 * Not done: aggregations without groups (see mergeSubplansByCost); conditions that would change what is in
 * a group; conditions other than IS [NOT] NULL on columns whose equal values may differ in bits
 * (floating-point numbers, collated texts); dynamic partition pruning; EXISTS inside an OR; DISTINCTs of
 * different columns; joins in different orders with columns computed between them; subplans that differ
 * below limits, GROUPING SETS or LATERAL VIEWs; sources other than Parquet and ORC files and cached tables.
 * Cost: planning O(n²) comparisons for n similar aggregations, and estimates of their work. May lose where
 * there are far more groups than estimated, since each place reads the groups of all, and where another
 * place reuses the shuffle of a part of one of them, which is another shuffle then.
 * Runs in experimental.extraOptimizations: no rule of Spark pushes conditions down any more, and joins
 * have their order. A second run finds equal aggregations.
 * Conf: spark.selinger.shareSimilarAggregates.enabled.  References: see CoveringPlan.
 */
final class ShareSimilarAggregates(session: SparkSession)
    extends GuardedRule(ShareSimilarAggregates, SelingerConf.switches) {
  import ShareSimilarAggregates._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Its aggregations are compared with those of the query around it.
    case _: Subquery => plan
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ =>
      val similar = similarIn(plan)
      if (similar.isEmpty) plan
      else
        Precondition.firstUnmet(ofQuery, plan) match {
          case Some(reason) =>
            similar.foreach(decline(info, _, reason))
            plan
          case None => shared(plan, similar.flatMap(ofSameData))
        }
  }

  private def shared(plan: LogicalPlan, groups: Seq[SimilarAggregates]): LogicalPlan = {
    val outcome = Outcome.acting(SelingerConf.switches.mode)
    val replacements = new Replacements
    // A part of what has been replaced: its turn is the next time.
    groups
      .sortBy(-_.aggregates.map(each => each.collect { case node => node }.size).max)
      .iterator
      .filterNot(_.aggregates.exists(replacements.isGone))
      .foreach { group =>
        group.replaced match {
          case Some(plans) =>
            val nodes = if (outcome == Outcome.Changed) plans else group.aggregates
            nodes.foreach(Decision.record(_, decision(group, outcome)))
            group.aggregates.zip(plans).foreach { case (from, to) => replacements.put(from, to) }
          case None => decline(info, group.aggregates, Differ)
        }
      }
    if (outcome == Outcome.Changed) replacements.in(plan) else plan
  }

  /** Those that are worth it. Each aggregation goes to the first group with which it costs less. */
  private def ofSameData(aggregates: Seq[Aggregate]): Seq[SimilarAggregates] = {
    val usable = aggregates.filter { aggregate =>
      val unmet = Precondition.firstUnmet(ofAggregate, aggregate)
      unmet.foreach(decline(info, Seq(aggregate), _))
      unmet.isEmpty
    }
    val groups = usable.foldLeft(Vector.empty[SimilarAggregates]) { (known, aggregate) =>
      val tries = LazyList.from(known.indices).map(i => i -> including(known(i), aggregate))
      tries.collectFirst { case (i, Right(larger)) => known.updated(i, larger) }.getOrElse {
        val refused = tries.collect { case (_, Left(why)) => why }
        known ++ SimilarAggregates.of(aggregate)
          .map(_.copy(refused = refused.maxByOption(why => reasons.indexOf(why.reason))))
      }
    }
    val (several, single) = groups.partition(_.distinct.size > 1)
    single.foreach { group =>
      group.refused.foreach(why => decline(info, group.aggregates, why.reason, why.compared))
    }
    several
  }

  private def including(
      group: SimilarAggregates,
      aggregate: Aggregate
  ): Either[Refused, SimilarAggregates] =
    if (isLate) Left(Refused(Reason.BudgetExceeded, ComputedTogether.unknown))
    else
      group.including(aggregate) match {
        case Nil =>
          val reason =
            if (CoveringPlan.isPossible(group.aggregates :+ aggregate)) Reason.MayRaise
            else Differ
          Left(Refused(reason, ComputedTogether.unknown))
        case larger +: _ if larger.distinct.size == group.distinct.size => Right(larger)
        case inOrders => priced(group, inOrders.minBy(workOf(_).fold(Double.MaxValue)(_.seconds)))
      }

  private val work = new SimilarAggregatesWork(
    new JoinCost(Cluster.of(session), SelingerConf.CBO_WEIGHT.value)
  )

  private def workOf(group: SimilarAggregates): Option[Work] =
    work.together(group.cover.plan, group.aggregates.size)

  /** Compares `larger` with `group` and the last aggregation by itself. */
  private def priced(
      group: SimilarAggregates,
      larger: SimilarAggregates
  ): Either[Refused, SimilarAggregates] = {
    val together = workOf(larger)
    val step = ComputedTogether(
      if (group.distinct.size == 1) work.apart(larger.distinct)
      else
        for (before <- workOf(group); one <- work.of(larger.aggregates.last))
          yield before + one,
      together
    )
    val minGain = SelingerConf.MERGE_MIN_GAIN.value
    if (step.saves(minGain) || minGain == 0.0) {
      Right(larger.copy(compared = ComputedTogether(work.apart(larger.distinct), together)))
    } else {
      val reason = if (step.isKnown) MergeSubplansByCost.CheaperApart else Reason.NoStatistics
      Left(Refused(reason, step))
    }
  }

  private def decision(group: SimilarAggregates, outcome: Outcome): Decision =
    ComputedTogether.decision(
      info,
      group.aggregates,
      group.distinct.size,
      outcome,
      Shared,
      "aggregation" -> "aggregations",
      group.compared
    )
}

object ShareSimilarAggregates
    extends RuleDescription(
      "shareSimilarAggregates",
      RuleKind.Logical,
      "Computes aggregations that differ in conditions on their grouping columns together."
    ) {

  val Shared: Reason = Reason(
    "SIMILAR_AGGREGATES_SHARED",
    "Several aggregations group the same tables by the same columns, under different conditions on these " +
      "columns. One is computed for the rows of all of them, and each place of the query takes its groups " +
      "from it.",
    "Set spark.selinger.merge.minGain higher to share fewer aggregations."
  )

  val Differ: Reason = Reason(
    "AGGREGATES_DIFFER",
    "This aggregation differs from the others over the same tables in more than conditions on grouping " +
      "columns and what is computed, so it is computed by itself.",
    "Nothing to do."
  )

  val ReuseOff: Reason = Reason(
    "EXCHANGE_REUSE_OFF",
    "spark.sql.exchange.reuse is off, so an aggregation that several places of the query share would be " +
      "computed once for each of them.",
    "Set spark.sql.exchange.reuse to true."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.LateBatch(
      "This is the last batch of the optimizer. After an earlier one, Spark would push the conditions " +
        "below the aggregations again."
    )(new ShareSimilarAggregates(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    ReuseOff,
    MergeSubplansByCost.RandomValues,
    Reason.HintObeyed,
    Differ,
    Reason.MayRaise,
    Reason.NoStatistics,
    MergeSubplansByCost.CheaperApart,
    Shared
  )

  override def example: String =
    "WITH t AS (SELECT item, amount, count(*) AS s FROM sales GROUP BY item, amount) " +
      "SELECT a.item, a.s, b.s FROM t a JOIN t b ON a.item = b.item " +
      "WHERE a.amount = 1 AND b.amount = 2"

  private[rule] val ofQuery: Seq[Precondition[LogicalPlan]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(ReuseOff)(_ => SQLConf.get.exchangeReuseEnabled)
  )

  private[rule] val ofAggregate: Seq[Precondition[Aggregate]] = Seq(
    Precondition(MergeSubplansByCost.RandomValues)(_.deterministic),
    Precondition(Reason.HintObeyed)(!_.exists {
      case join: Join => join.hint != JoinHint.NONE
      case _ => false
    }),
    // A file of text is parsed as far as its columns are read, and may have bad rows.
    Precondition(Reason.MayRaise)(!_.collectLeaves().exists(RaisedErrors.mayRaise(_)))
  )

  /** Says for a rule that computes aggregations together why it leaves these apart. */
  private[rule] def decline(
      rule: RuleDescription,
      aggregates: Seq[Aggregate],
      reason: Reason,
      compared: ComputedTogether = ComputedTogether.unknown
  ): Unit = {
    val remedy = reason match {
      case ReuseOff => Some(Remedy(SQLConf.EXCHANGE_REUSE_ENABLED.key, Some("true")))
      case other => compared.remedy(other)
    }
    aggregates.foreach(ComputedTogether.decline(rule, _, reason, compared, remedy))
  }

  /** Grouped aggregations of the same relations, the largest first; none where all of them are equal. */
  private def similarIn(plan: LogicalPlan): Seq[Seq[Aggregate]] = {
    val found = plan.collectWithSubqueries {
      case aggregate: Aggregate if isCandidate(aggregate) => aggregate
    }
    if (found.size < 2) Nil
    else
      found
        .groupBy(aggregate =>
          (aggregate.groupingExpressions.size, SubplanGroups.relationsOf(aggregate))
        )
        .values
        .filter(similar => similar.tail.exists(!_.sameResult(similar.head)))
        .toSeq
        .sortBy(-_.head.collect { case node => node }.size)
  }

  /** Each task's part of an aggregation is not shuffled, so there is nothing that Spark could share. */
  private def isCandidate(aggregate: Aggregate): Boolean =
    aggregate.groupingExpressions.nonEmpty && aggregate.hint.isEmpty
}
