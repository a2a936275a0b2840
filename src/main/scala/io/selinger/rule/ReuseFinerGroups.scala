package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  Outcome,
  Precondition,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinCost}
import org.apache.spark.sql.catalyst.expressions.aggregate.DeclarativeAggregate
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession

/**
 * Computes an aggregation from the groups of another one, if that groups the same rows by more columns: a
 * total from the totals of each shop, say. The rows are then read, joined and grouped once.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                             else STREAMING_PLAN
 *   2. Spark computes equal shuffles once                   else EXCHANGE_REUSE_OFF
 * and of each aggregation
 *   3. it gives the same values whenever it runs            else RANDOM_VALUES
 *   4. no join in it has a hint                             else HINT_OBEYED
 *   5. reading other columns of its files raises no error   else ERRORS_DEPEND_ON_PLAN
 * and where one aggregation groups the rows of another one by some of its columns, or by none
 *   6. its functions can be merged from partial results     else AGGREGATE_NOT_DIVISIBLE
 *   7. expressions that would be evaluated for more rows
 *      cannot raise errors                                  else ERRORS_DEPEND_ON_PLAN
 *   8. the rows of both can be estimated                    else NO_STATISTICS
 *   9. it saves at least merge.minGain                      else CHEAPER_APART
 *
 * {{{
 *   SELECT shop, sum(price) FROM sales GROUP BY shop UNION ALL SELECT null, sum(price) FROM sales
 *   Before:  Union                          After:  Union
 *            :- Aggregate [shop]                    :- Aggregate [shop], [sum(price) AS s]
 *            |  +- sales                            |  +- sales
 *            +- Aggregate                           +- Aggregate [sum(s)]
 *               +- sales                               +- (the same aggregation by shop)
 * }}}
 *
 * Correct because: a group of the coarser aggregation is made of whole groups of the finer one, and its
 * functions are merged as PartialAggregate says, with the same types and overflow. Where the two also
 * differ in conditions, these are on columns that the finer one groups by, and are tested above it; the
 * finer one then groups the rows of both (see CoveringPlan). If there are no rows, there are no groups, and
 * a total of no groups is the same as a total of no rows. Equal copies of the finer aggregation stand in all
 * places; Spark computes the shuffle in them once.
 * Not done: functions that cannot be merged (DISTINCT, lists, percentiles); finer aggregations whose
 * functions keep objects, since each copy would finish them by itself; rows that differ in other conditions; one
 * aggregation in a subquery of the other; the rest as in ShareSimilarAggregates.
 * Cost: planning O(n²) comparisons for n aggregations of the same tables. May lose where the finer groups
 * are nearly as many as the rows: stopped by the cost.
 * Runs in experimental.extraOptimizations after ShareSimilarAggregates, whose results it may use. A second
 * run finds no other aggregation of the same rows.
 * Conf: spark.selinger.reuseFinerGroups.enabled.  References: Harinarayan, Rajaraman, Ullman, Implementing
 * Data Cubes Efficiently, SIGMOD 1996 (lattice of groupings).
 */
final class ReuseFinerGroups(session: SparkSession)
    extends GuardedRule(ReuseFinerGroups, SelingerConf.switches) {
  import ReuseFinerGroups._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Its aggregations are compared with those of the query around it.
    case _: Subquery => plan
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ =>
      val similar = similarIn(plan)
      if (similar.isEmpty) plan
      else
        Precondition.firstUnmet(ShareSimilarAggregates.ofQuery, plan) match {
          case Some(reason) =>
            similar.foreach(ShareSimilarAggregates.decline(info, _, reason))
            plan
          case None => changed(plan, similar.flatMap(ofSameData))
        }
  }

  private def changed(plan: LogicalPlan, found: Seq[FinerGroups]): LogicalPlan = {
    val outcome = Outcome.acting(SelingerConf.switches.mode)
    val replacements = new Replacements
    // A part of what has been replaced: its turn is the next time.
    found
      .sortBy(-_.fine.collect { case node => node }.size)
      .iterator
      .filterNot(_.aggregates.exists(replacements.isGone))
      .foreach { groups =>
        val places = plan.collectWithSubqueries {
          case same: Aggregate if same.sameResult(groups.fine) => same
        }
        for {
          fine <- ExpressionSets.all(places.map(groups.inPlaceOfFine))
          coarse <- groups.inPlacesOfCoarse
        } {
          val made = decision(groups, outcome)
          (places ++ groups.coarse).zip(fine ++ coarse).foreach { case (from, to) =>
            to.copyTagsFrom(from)
            Decision.record(if (outcome == Outcome.Changed) to else from, made)
            replacements.put(from, to)
          }
        }
      }
    if (outcome == Outcome.Changed) replacements.in(plan) else plan
  }

  /** The finest first; each aggregation is part of at most one. */
  private def ofSameData(aggregates: Seq[Aggregate]): Seq[FinerGroups] = {
    val usable = aggregates.filter { aggregate =>
      val unmet = Precondition.firstUnmet(ShareSimilarAggregates.ofAggregate, aggregate)
      unmet.foreach(ShareSimilarAggregates.decline(info, Seq(aggregate), _))
      unmet.isEmpty
    }
    val byKeys = usable.sortBy(-_.groupingExpressions.size).toVector
    val (found, refused) =
      byKeys.foldLeft((Vector.empty[FinerGroups], Vector.empty[(Aggregate, Refused)])) {
        case ((found, refused), fine) if isTaken(found, fine) || !isCheapTwice(fine) =>
          (found, refused)
        case ((found, refused), fine) =>
          val coarser = byKeys.filter(one => isCoarser(one, fine) && !isTaken(found, one))
          // What is equal stays equal, or Spark would compute it once for each place.
          val classes =
            coarser.map(_.canonicalized).distinct.map(same =>
              coarser.filter(_.canonicalized == same)
            )
          val (groups, left) = classes.foldLeft((FinerGroups.of(fine), refused)) {
            case ((known, left), more) =>
              including(known, more) match {
                case Right(larger) => (larger, left)
                case Left(why) => (known, left ++ why.toSeq.flatMap(why => more.map(_ -> why)))
              }
          }
          (if (groups.coarse.isEmpty) found else found :+ groups, left)
      }
    refused
      .filterNot { case (one, _) => isTaken(found, one) }
      .groupBy { case (one, _) => one.canonicalized }
      .values
      .foreach { same =>
        val (_, why) = same.last
        ShareSimilarAggregates.decline(info, same.map(_._1).distinct, why.reason, why.compared)
      }
    found
  }

  private def isTaken(found: Seq[FinerGroups], one: Aggregate): Boolean =
    found.exists(_.coarse.exists(_ eq one))

  /** Behind the shuffle, each place computes it for itself: of objects that would take long. */
  private def isCheapTwice(fine: Aggregate): Boolean =
    AggregatePush.functionsOf(fine).forall(_.aggregateFunction.isInstanceOf[DeclarativeAggregate])

  private val work = new SimilarAggregatesWork(
    new JoinCost(Cluster.of(session), SelingerConf.CBO_WEIGHT.value)
  )

  /** With equal ones more, where that saves enough. */
  private def including(
      known: FinerGroups,
      more: Seq[Aggregate]
  ): Either[Option[Refused], FinerGroups] =
    if (isLate) Left(Some(Refused(Reason.BudgetExceeded, ComputedTogether.unknown)))
    else
      FinerGroups.including(known, more) match {
        case Left(reason) => Left(reason.map(Refused(_, ComputedTogether.unknown)))
        case Right(larger) =>
          val all = larger.distinct
          val groups = larger.groups.plan
          val compared = ComputedTogether(
            work.apart(all),
            work.together(groups, all.size).map(_.plus(work.merging(all.size - 1, groups)))
          )
          val minGain = SelingerConf.MERGE_MIN_GAIN.value
          val reason =
            if (compared.isKnown) MergeSubplansByCost.CheaperApart else Reason.NoStatistics
          if (compared.saves(minGain) || minGain == 0.0) Right(larger.copy(compared = compared))
          else Left(Some(Refused(reason, compared)))
      }

  private def decision(groups: FinerGroups, outcome: Outcome): Decision =
    ComputedTogether.decision(
      info,
      groups.aggregates,
      groups.distinct.size,
      outcome,
      Reused,
      "aggregation" -> "aggregations",
      groups.compared
    )
}

object ReuseFinerGroups
    extends RuleDescription(
      "reuseFinerGroups",
      RuleKind.Logical,
      "Computes an aggregation from the groups of another one that groups the same rows by more columns."
    ) {

  val Reused: Reason = Reason(
    "FINER_GROUPS_REUSED",
    "Several aggregations group the same rows, one of them by more columns than the others. The others are " +
      "computed from its groups instead of from the rows.",
    "Set spark.selinger.merge.minGain higher to compute fewer aggregations together."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.LateBatch(
      "Joins have their order by then, so that it can be seen which aggregations read the same rows."
    )(new ReuseFinerGroups(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    ShareSimilarAggregates.ReuseOff,
    MergeSubplansByCost.RandomValues,
    Reason.HintObeyed,
    Reason.MayRaise,
    PushAggregateBelowJoin.NotDivisible,
    Reason.NoStatistics,
    MergeSubplansByCost.CheaperApart,
    Reused
  )

  override def example: String =
    "SELECT item, sum(amount) AS s FROM sales GROUP BY item " +
      "HAVING sum(amount) > (SELECT sum(amount) * 0.01 FROM sales)"

  /** Aggregations of the same relations, of which one may be coarser than another. */
  private def similarIn(plan: LogicalPlan): Seq[Seq[Aggregate]] = {
    val found = plan.collectWithSubqueries {
      case aggregate: Aggregate if aggregate.hint.isEmpty => aggregate
    }
    if (found.size < 2) Nil
    else
      found
        .groupBy(SubplanGroups.dataOf)
        .values
        .filter(same => same.exists(fine => same.exists(isCoarser(_, fine))))
        .toSeq
        .sortBy(-_.head.collect { case node => node }.size)
  }

  /** Whether one groups by fewer columns, and none of the two is computed of the other. */
  private def isCoarser(one: Aggregate, fine: Aggregate): Boolean =
    one.groupingExpressions.size < fine.groupingExpressions.size && !isPart(one, fine) &&
      !isPart(fine, one)

  private def isPart(one: Aggregate, whole: Aggregate): Boolean =
    whole.collectWithSubqueries { case same: Aggregate if same.sameResult(one) => same }.nonEmpty
}
