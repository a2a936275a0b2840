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
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinCost, JoinSide}
import io.selinger.estimate.plans.{LeafStatistics, UnknownRows}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import scala.collection.mutable

/**
 * Computes each of several DISTINCT from its own column, instead of copying all rows for each of them and
 * grouping the copies by the columns of all.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                             else STREAMING_PLAN
 *   2. the rows are the same whenever they are read         else RANDOM_VALUES
 *   3. equal values of the keys are the same values         else EQUAL_VALUES_DIFFER
 *   4. they are read from Parquet or ORC files              else INPUT_READ_ONCE
 *   5. what is evaluated several times raises no errors     else ERRORS_DEPEND_ON_PLAN
 *   6. the number of rows can be estimated                  else NO_STATISTICS
 *   7. reading them again costs less than their copies      else COPIES_COST_LESS
 * 6 and 7 do not matter where aggregate.splitDistinctMinGain is 0.
 *
 * {{{
 *   SELECT day, count(DISTINCT visitor), count(DISTINCT page) FROM visits GROUP BY day
 *   Before:  Aggregate [day]                           After:  Aggregate [day]
 *            +- Aggregate [day, visitor, page, copy]           +- Union
 *               +- Expand (two copies of each row)                :- Aggregate [day, visitor]
 *                  +- visits                                      |  +- visits
 *                                                                 +- Aggregate [day, page]
 *                                                                    +- visits
 * }}}
 *
 * Correct because: the copies are groups of their own, since each has its number among the keys, and in
 * each copy the columns of the other DISTINCT are null. So the groups of one copy are those of the rows by
 * its own columns. A function without DISTINCT is computed in the copy that it is read for. A copy
 * without keys is grouped by its number, so no rows make no group. Conditions (FILTER) are part of the
 * copies' columns, and stay. An error in the column of one DISTINCT is raised once, as before.
 * Not done: rows of joins, of other aggregations, or of a cache, which would be computed several times;
 * files of lines, which are parsed as a whole; damaged files that are skipped, since a damaged column would
 * be skipped alone; scans of DataSource V2, whose columns are chosen by then; tables in buckets; grouping
 * sets (see CascadeGroupingSets); one DISTINCT without FILTER, which Spark does not copy; more than 16.
 * Cost: planning O(columns x DISTINCT). May lose where a filter keeps few of the rows that are read: stopped
 * by the cost.
 * Runs in experimental.extraOptimizations, after RewriteDistinctAggregates has made the copies, and after
 * rules that reduce the rows, which makes copies cheap. A second run finds none.
 * Conf: spark.selinger.splitDistinctAggregates.enabled.  References: Galindo-Legaria, Joshi, Orthogonal
 * Optimization of Subqueries and Aggregation, SIGMOD 2001; Trino chooses among such plans by cost.
 */
final class SplitDistinctAggregates(session: SparkSession)
    extends GuardedRule(SplitDistinctAggregates, SelingerConf.switches) {
  import SplitDistinctAggregates._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // It may still become part of another plan, whose aggregations are computed together.
    case _: Subquery => plan
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ =>
      val isStreaming = plan.isStreaming
      // What was computed together stands in each subquery that it was put together from.
      val decided = mutable.HashMap.empty[Aggregate, Aggregate]
      plan.transformDownWithSubqueries {
        case aggregate: Aggregate if decided.contains(aggregate) || !isLate =>
          DistinctCopies.of(aggregate).fold(aggregate) { copies =>
            decided.getOrElseUpdate(aggregate, decide(copies, isStreaming))
          }
      }
  }

  private def decide(copies: DistinctCopies, isStreaming: Boolean): Aggregate = {
    val subject = new Subject(copies, isStreaming, compared(copies))
    val declined = Precondition.firstUnmet(preconditions, subject)
    val split = copies.apart.filter(_ => declined.isEmpty && SelingerConf.switches.mode == Mode.On)
    val result =
      split.fold(copies.aggregate)(parts => copies.aggregate.copy(child = copies.united(parts)))
    if (split.isDefined) result.copyTagsFrom(copies.aggregate)
    Decision.record(result, decision(subject, declined))
    result
  }

  private def compared(copies: DistinctCopies): Option[Compared] = {
    val cost = new JoinCost(Cluster.of(session), SelingerConf.CBO_WEIGHT.value)
    val work = new SimilarAggregatesWork(cost)
    for {
      input <- LeafStatistics.estimator.estimate(copies.input)
      made <- LeafStatistics.estimator.estimate(copies.expand)
      distinct <- LeafStatistics.estimator.estimate(copies.groups)
      results <- LeafStatistics.estimator.estimate(copies.aggregate)
      together <- work.of(copies.groups)
      parts <- copies.apart
      apart <- ExpressionSets.all(parts.map(work.of))
    } yield {
      val side = JoinSide(made.rows.value, copies.bytesOfCopy(input), shuffleExists = true)
      // Groups of copies need no shuffle of their own (see ShuffleByCommonKeys). Those of a union do, and
      // each of its tasks may have groups of all keys.
      val tasks = SQLConf.get.numShufflePartitions.toDouble * copies.expand.projections.size
      val again = math.min(distinct.rows.value, results.rows.value * tasks)
      val shuffle = cost.shuffled(
        JoinSide(again, results.rowBytes(copies.aggregate.output), shuffleExists = false)
      )
      Compared(
        Evidence("rows", input.rows.value, "rows", input.rows.origin),
        copies.expand.projections.size,
        together.seconds + cost.copied(side),
        apart.map(_.seconds).sum + shuffle
      )
    }
  }

  private def decision(subject: Subject, declined: Option[Reason]): Decision = {
    val aggregate = subject.copies.aggregate
    val reason = declined.getOrElse(Split)
    val compared = if (byCost(reason)) subject.compared else None
    val remedy = declined match {
      case None =>
        val gain = compared.flatMap(known => Remedy.above(known.gain))
        gain.fold(Some(Remedy(info.switch, Some("false")))) { value =>
          Some(Remedy(SelingerConf.SPLIT_DISTINCT_MIN_GAIN.key, Some(value)))
        }
      case Some(CopiesCostLess) =>
        compared.map { known =>
          Remedy(SelingerConf.SPLIT_DISTINCT_MIN_GAIN.key, Remedy.below(known.gain))
        }
      case _ => None
    }
    Decision(
      rule = info.id,
      node = NodeText.of(aggregate),
      key = NodeText.key(aggregate),
      outcome = Outcome.of(declined, SelingerConf.switches.mode),
      reason = reason,
      chosen = Option.when(declined.isEmpty)("each DISTINCT from its own column"),
      stock = Option.when(declined.isEmpty)("copies of all rows"),
      detail = UnknownRows.detail(reason, aggregate.child),
      evidence = compared.toSeq.flatMap(_.evidence),
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value)
    )
  }
}

object SplitDistinctAggregates
    extends RuleDescription(
      "splitDistinctAggregates",
      RuleKind.Logical,
      "Computes each of several COUNT(DISTINCT …) from its own column, instead of copying all rows for each."
    ) {

  val Split: Reason = Reason(
    "DISTINCT_SPLIT",
    "Spark copies each row for each DISTINCT here, and groups the copies by the columns of all of them. " +
      "Instead, the files are read once for each DISTINCT, with only its own columns.",
    "Set spark.selinger.aggregate.splitDistinctMinGain higher to do so less often."
  )

  val EqualValuesDiffer: Reason = Reason(
    "EQUAL_VALUES_DIFFER",
    "A grouping key, or a column of a DISTINCT, has a collation, so equal values can have different " +
      "letters. Another plan could return other ones of them.",
    "Group by a column of the default collation, if that is acceptable."
  )

  val ReadOnce: Reason = Reason(
    "INPUT_READ_ONCE",
    "Only rows that come straight from a list of Parquet or ORC files are read once for each DISTINCT. " +
      "These come from a join, another aggregation, a subquery, a cache, buckets or another source, or " +
      "damaged files are to be skipped, so they are read once and copied.",
    "Write the rows to Parquet or ORC files first if many such queries need them."
  )

  val CopiesCostLess: Reason = Reason(
    "COPIES_COST_LESS",
    "Reading the files once and copying the rows for each DISTINCT costs less than reading them several " +
      "times, or hardly more.",
    "Set spark.selinger.aggregate.splitDistinctMinGain lower to read them several times all the same."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.LateBatch(
      "Spark makes the copies of rows near the end of its optimizer, and only the late batch sees them."
    )(new SplitDistinctAggregates(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    MergeSubplansByCost.RandomValues,
    EqualValuesDiffer,
    ReadOnce,
    Reason.MayRaise,
    Reason.NoStatistics,
    CopiesCostLess,
    Split
  )

  override def example: String =
    "SELECT customer, count(DISTINCT item), count(DISTINCT amount) FROM sales GROUP BY customer"

  /**
   * @param copies of each row
   * @param together seconds that it takes with copies
   * @param apart the same without
   */
  private final case class Compared(rows: Evidence, copies: Int, together: Double, apart: Double) {
    def gain: Double = if (together > 0.0) math.max(0.0, 1.0 - apart / together) else 0.0

    def evidence: Seq[Evidence] = Seq(
      rows,
      Evidence("copies of each row", copies.toDouble, "copies", Origin.Exact),
      Evidence("cost with copies", together, "s", Origin.Derived),
      Evidence("cost of reading several times", apart, "s", Origin.Derived)
    )
  }

  private final class Subject(
      val copies: DistinctCopies,
      val isStreaming: Boolean,
      work: => Option[Compared]
  ) {
    lazy val compared: Option[Compared] = work
  }

  /** Reasons for which costs were compared. */
  private val byCost = Set(Reason.NoStatistics, CopiesCostLess, Split)

  private def always: Boolean = SelingerConf.SPLIT_DISTINCT_MIN_GAIN.value == 0.0

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(MergeSubplansByCost.RandomValues)(_.copies.isDeterministic),
    Precondition(EqualValuesDiffer)(_.copies.hasPlainKeys),
    Precondition(ReadOnce)(subject => subject.copies.isOfFiles && subject.copies.apart.isDefined),
    Precondition(Reason.MayRaise)(_.copies.isSafe),
    Precondition(Reason.NoStatistics)(always || _.compared.isDefined),
    Precondition(CopiesCostLess)(subject =>
      always || subject.compared.forall(_.gain >= SelingerConf.SPLIT_DISTINCT_MIN_GAIN.value)
    )
  )
}
