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
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{LeafStatistics, TaskGroups, UnknownRows}
import io.selinger.exec.RankFilterExec
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions.{Attribute, DenseRank}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, WindowGroupLimit}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.window.{Partial, WindowGroupLimitExec}
import org.apache.spark.sql.types._

/**
 * For queries that keep the first rows of each window partition, such as `rank() <= 10`: leaves most of
 * the other rows out before they are sorted, where Spark sorts all rows of a task to find them.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the first column of the order has a sort prefix      else ORDER_WITHOUT_PREFIX
 *   2. the ranks asked for are not too many                 else TOO_MANY_RANKS
 *   3. rows and partitions can be estimated                 else NO_STATISTICS
 *   4. enough rows are left out                             else RANKS_KEEP_MOST_ROWS
 *
 * {{{
 *   SELECT * FROM (SELECT *, rank() OVER (PARTITION BY a ORDER BY v) AS r FROM t) WHERE r <= 10
 *   Before:  WindowGroupLimit final           After:  WindowGroupLimit final
 *            +- Sort                                  +- Sort
 *               +- Exchange                              +- Exchange
 *                  +- WindowGroupLimit partial              +- WindowGroupLimit partial
 *                     +- Sort                                  +- Sort
 *                        +- t                                     +- RankFilter
 *                                                                    +- t
 * }}}
 *
 * Correct because: a row is left out only if its task has read as many rows of its partition as the
 * limit, or as many different values for `dense_rank`, with smaller sort prefixes; all of them come
 * before it in any order of the window. Equal prefixes are kept, whatever the further columns are. Nulls
 * have prefixes by NULLS FIRST or LAST, NaN and -0.0 those of Spark's sort. Keys of partitions are
 * compared by their bytes: where equal keys have different ones, more rows are kept. Spark's own
 * operators above count the ranks. For `row_number` with ties Spark keeps those rows that it sorts first,
 * and the filter leaves out none that could be among them. Keys and order are computed for all rows, as
 * by Spark's sort, so they raise the same errors.
 * Not done: ranks that Spark does not limit itself (above spark.sql.optimizer.windowGroupLimitThreshold).
 * Cost: planning O(1), an estimate of partitions. May lose where rows come in the opposite order, for
 * which each row is kept: the filter stops after a million of them.
 * Runs as a planner strategy, before Spark's own, which plans the two operators around it; at each
 * adaptive re-plan too. A second run gives the same plan.
 * Conf: spark.selinger.filterRanksBeforeSort.enabled.  References: top-N ranking without a full sort is
 * usual (Trino's TopNRanking); expected rows that pass: records of a random order, Rényi 1962.
 */
final class FilterRanksBeforeSort(session: SparkSession)
    extends GuardedStrategy(FilterRanksBeforeSort, SelingerConf.switches) {
  import FilterRanksBeforeSort._

  override protected def concerns(plan: LogicalPlan): Boolean = plan.isInstanceOf[WindowGroupLimit]

  override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] = plan match {
    case limit: WindowGroupLimit =>
      val left = leftOut(limit)
      Precondition.firstUnmet(preconditions, Subject(limit, left)) match {
        case Some(reason) =>
          record(limit, decision(limit, Outcome.Declined, reason, left))
          Nil
        case None =>
          val outcome = Outcome.acting(mode)
          val made = decision(limit, outcome, LeftOutBeforeSort, left).copy(
            chosen = Some("filter by rank before the sort"),
            stock = Some("sort of all rows")
          )
          record(limit, made)
          session.sessionState.planner.WindowGroupLimit(limit).map { planned =>
            val filtered = planned.transformUp {
              case partial: WindowGroupLimitExec if partial.mode == Partial =>
                partial.withNewChildren(Seq(filter(limit, partial.child)))
            }
            Decision.record(filtered, made)
            filtered
          }
      }
    case _ => Nil
  }

  private def filter(limit: WindowGroupLimit, child: SparkPlan) = RankFilterExec(
    limit.partitionSpec,
    limit.orderSpec,
    countsValues(limit),
    limit.limit,
    child
  )

  private def leftOut(limit: WindowGroupLimit): Option[LeftOut] =
    for {
      input <- LeafStatistics.estimator.estimate(limit.child)
      read = TaskGroups.of(limit.child, input, Cluster.of(session).slots)
      keys <- columnsOf(limit)
      partitions <- read.groupsBy(keys)
    } yield {
      val perPartition = read.rows.value / read.tasks / read.inOneTask(partitions.value)
      val values = input.distinct(limit.orderSpec.head.child)
      val kept =
        if (countsValues(limit)) keptValues(limit.limit, perPartition, values)
        else keptRows(limit.limit, perPartition, values)
      LeftOut(
        1.0 - kept,
        Seq(
          Evidence("input", read.rows.value, "rows", read.rows.origin),
          Evidence("partitions", partitions.value, "rows", partitions.origin),
          Evidence(
            "sorted",
            kept * read.rows.value,
            "rows",
            read.rows.origin.worse(partitions.origin).worse(Origin.Derived)
          )
        )
      )
    }

  private def record(limit: WindowGroupLimit, made: Decision): Unit =
    (made +: limit.child.collectLeaves().flatMap(PlanningPass.current.informed))
      .foreach(Decision.record(limit, _))

  private def decision(
      limit: WindowGroupLimit,
      outcome: Outcome,
      reason: Reason,
      left: Option[LeftOut]
  ): Decision = {
    val remedy = reason match {
      case MostRowsKept =>
        Some(Remedy(
          SelingerConf.RANK_FILTER_MIN_GAIN.key,
          left.flatMap(l => Remedy.below(l.share))
        ))
      case LeftOutBeforeSort => Some(Remedy(info.switch, Some("false")))
      case _ => None
    }
    Decision(
      rule = info.id,
      node = NodeText.shorten(
        s"${limit.rankLikeFunction.prettyName}() <= ${limit.limit} " +
          (if (limit.partitionSpec.isEmpty) "of all rows"
           else limit.partitionSpec.map(_.sql).mkString("partitioned by ", ", ", ""))
      ),
      key = NodeText.key(limit),
      outcome = outcome,
      reason = reason,
      phase = if (QueryStages.begun(limit)) Phase.Adaptive else Phase.Static,
      detail = UnknownRows.detail(reason, limit),
      evidence = left.toSeq.flatMap(_.evidence),
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value)
    )
  }
}

object FilterRanksBeforeSort
    extends RuleDescription(
      "filterRanksBeforeSort",
      RuleKind.Strategy,
      "Where a query keeps the first rows of each window partition, drops many of the others before " +
        "they are sorted. For rank, dense_rank and row_number."
    ) {

  val LeftOutBeforeSort: Reason = Reason(
    "RANKS_FILTERED_BEFORE_SORT",
    "Only the first rows of each window partition are asked for. Each task drops rows that cannot be " +
      "among them before it sorts the rest.",
    "Set spark.selinger.aggregate.rankFilterMinGain higher to change fewer plans."
  )
  val MostRowsKept: Reason = Reason(
    "RANKS_KEEP_MOST_ROWS",
    "Fewer rows than spark.selinger.aggregate.rankFilterMinGain asks for can be dropped before the sort: " +
      "the others may be among the first of their window partition in a task.",
    "Set spark.selinger.aggregate.rankFilterMinGain lower, or run selinger.analyze for better estimates."
  )
  val OrderWithoutPrefix: Reason = Reason(
    "ORDER_WITHOUT_PREFIX",
    "The first column of the window's ORDER BY is a struct, an array or a text with a collation. Spark " +
      "has no number for these by which rows could be compared.",
    "Order by the first field of the struct instead, if that is the same order."
  )

  val TooManyRanks: Reason = Reason(
    "TOO_MANY_RANKS",
    "More than 4,096 rows of each window partition are asked for. Keeping track of so many would cost as " +
      "much as the sort.",
    "Nothing to do."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PlannerStrategy(
      "Strategies are asked before Spark plans the limits of ranks, so one can add a filter below them."
    )(new FilterRanksBeforeSort(_))
  )

  override def reasons: Seq[Reason] =
    Seq(OrderWithoutPrefix, TooManyRanks, Reason.NoStatistics, MostRowsKept, LeftOutBeforeSort)

  override def example: String =
    """SELECT item, amount FROM (
      |  SELECT item, amount, rank() OVER (PARTITION BY item ORDER BY ticket) AS place FROM sales
      |) WHERE place <= 2""".stripMargin

  /** @param left none if unknown */
  private final case class Subject(limit: WindowGroupLimit, left: Option[LeftOut])

  /** @param share of the rows that are not sorted */
  private final case class LeftOut(share: Double, evidence: Seq[Evidence])

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(OrderWithoutPrefix)(subject => hasPrefix(subject.limit)),
    Precondition(TooManyRanks)(_.limit.limit <= mostRanks),
    // Asked for even if nothing is known.
    Precondition(
      Reason.NoStatistics
    )(_.left.isDefined || SelingerConf.RANK_FILTER_MIN_GAIN.value == 0.0),
    Precondition(MostRowsKept)(_.left.forall(_.share >= SelingerConf.RANK_FILTER_MIN_GAIN.value))
  )

  // A number that is inserted moves all that follow it: 4,096 of them in about a microsecond.
  private val mostRanks = 4096

  private def hasPrefix(limit: WindowGroupLimit): Boolean = limit.orderSpec.head.dataType match {
    case _: StructType | _: ArrayType | _: MapType | _: UserDefinedType[_] | NullType => false
    // Collated texts all have the same one.
    case text: StringType => text == StringType
    case _ => true
  }

  private def countsValues(limit: WindowGroupLimit): Boolean =
    limit.rankLikeFunction.isInstanceOf[DenseRank]

  /** The columns that a partition is made by; none where it is made by something computed. */
  private def columnsOf(limit: WindowGroupLimit): Option[Seq[Attribute]] = {
    val columns = limit.partitionSpec.collect { case column: Attribute => column }
    Option.when(columns.size == limit.partitionSpec.size)(columns)
  }

  /**
   * The share of rows that are among the first `limit` of those that came before them, if they come in
   * a random order. Rows of the last value that is kept all stay.
   */
  private[strategy] def keptRows(limit: Int, rows: Double, values: Option[Double]): Double =
    if (!(rows > limit)) 1.0
    else {
      val early = limit / rows
      math.min(1.0, early * (1.0 - math.log(early)) + values.fold(0.0)(1.0 / _))
    }

  /** The same for the first `limit` different values. */
  private[strategy] def keptValues(limit: Int, rows: Double, values: Option[Double]): Double = {
    val met = values.fold(rows)(all => all * -math.expm1(-rows / all))
    keptRows(limit, met, None)
  }
}
