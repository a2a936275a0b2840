package io.selinger.strategy

import io.selinger.conf.{SelingerConf, Setting}
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
  Precondition,
  Quantity,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.exec.aggregates.HeapHashAggregateExec
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  AggregateFunction,
  CollectList,
  ListAgg,
  TypedImperativeAggregate
}
import org.apache.spark.sql.catalyst.expressions.{RowOrdering, UnevaluableAggregateFunc}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{SortPrefixUtils, SparkPlan}
import org.apache.spark.sql.execution.aggregate.{
  BaseAggregateExec,
  ObjectHashAggregateExec,
  SortAggregateExec
}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.StructField

/**
 * Groups in a hash table where Spark sorts: its hash aggregation takes only buffers of a fixed width, so
 * that `max` of a text, `first` of a struct, and `dropDuplicates` with any such column sort all rows
 * twice; and its aggregation of objects (collect_list, percentiles) sorts after 128 keys.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                             else STREAMING_PLAN
 *   2. equal keys have equal bytes, those of DISTINCT too   else KEYS_HAVE_COLLATION
 *   3. there are not too many groups of objects             else SORT_AS_FAST
 *
 * {{{
 *   SELECT k, max(name) FROM t GROUP BY k
 *   Before:  SortAggregate final                 After:  HeapHashAggregate final
 *            +- Sort                                     +- Exchange
 *               +- Exchange                                 +- HeapHashAggregate partial
 *                  +- SortAggregate partial                    +- t
 *                     +- Sort
 *                        +- t
 * }}}
 *
 * Correct because: only the way in which rows of a group find each other differs. The phases are those
 * that Spark plans, for one DISTINCT too, with Spark's own updates, merges and results, so nulls, NaN,
 * types, FILTER and errors are the same. NaN and -0.0 in keys are normalized by Spark before.
 * Functions whose result depends on the order of rows (first, collect_list) see the rows of a group in
 * the order in which they come, as in Spark where nothing is spilled. A partial aggregation may return
 * a group several times, which the final one merges. Rows come out in another order; Spark sorts again
 * where an operator above asks for one.
 * Not done: aggregations without keys, which need no sort; collated keys; streams; Python functions.
 * Cost: planning O(1), plus planning the aggregation by Spark's strategy, and an estimate of groups.
 * Functions that keep objects (lists, medians) may lose where there are many groups: Spark sorts one key
 * of a fixed width by its digits, and then has one object at a time. So their groups are limited
 * (measured by `make bench-aggregates`, q18 to q22 and q33). Where the input is sorted by the keys
 * already, the operator does not hash. May lose when memory is far too small for the groups: then it
 * sorts as Spark does, after having hashed.
 * Runs as a planner strategy, before Spark's Aggregation; at each adaptive re-plan too. A second run
 * gives the same plan.
 * Conf: spark.selinger.selectAggregateOperator.enabled.  References: Graefe, Query Evaluation
 * Techniques for Large Databases, 1993, section 4; partial aggregation that stops: Velox, Trino.
 */
final class SelectAggregateOperator(session: SparkSession)
    extends GuardedStrategy(SelectAggregateOperator, SelingerConf.switches) {

  override protected def concerns(plan: LogicalPlan): Boolean = plan match {
    case aggregate: Aggregate => SelectAggregateOperator.isSorted(aggregate)
    case _ => false
  }

  override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] = plan match {
    case aggregate: Aggregate =>
      SelectAggregateOperator.chosen(
        aggregate,
        session.sessionState.planner.Aggregation(aggregate),
        mode
      )
    case _ => Nil
  }
}

object SelectAggregateOperator
    extends RuleDescription(
      "selectAggregateOperator",
      RuleKind.Strategy,
      "Groups in hash tables where Spark sorts: max of texts, first of any column (dropDuplicates), " +
        "collect_list and other objects."
    ) {

  val HashedInstead: Reason = Reason(
    "HASHED_INSTEAD_OF_SORTED",
    "An aggregate function here keeps text, arrays or objects, for which Spark sorts rows by the " +
      "keys. A hash table needs no sort.",
    "Nothing to do."
  )

  val KeysHaveCollation: Reason = Reason(
    "KEYS_HAVE_COLLATION",
    "A grouping key, or a column of a DISTINCT, has a collation or a type whose equal values can have " +
      "different bytes. A hash table would not find them.",
    "Group by a column of the default collation, if that is acceptable."
  )

  val SortAsFast: Reason = Reason(
    "SORT_AS_FAST",
    "A function here keeps an object for each group, such as a list, a set or the values of a percentile. " +
      "There is one key of a fixed width, which Spark sorts by its digits. For so many groups, " +
      "sorting is as fast, since it needs one object at a time.",
    "Set spark.selinger.aggregate.maxHashedObjects (for lists maxHashedLists) higher to group in hash " +
      "tables all the same."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PlannerStrategy(
      "Strategies are asked before Spark's own aggregation, whose phases it plans with other operators."
    )(new SelectAggregateOperator(_))
  )

  override def reasons: Seq[Reason] =
    Seq(Reason.StreamingPlan, KeysHaveCollation, SortAsFast, HashedInstead)

  override def example: String =
    "SELECT customer, max(string(item)) FROM sales GROUP BY customer"

  /** @param sorting operators of Spark's plan, one for each phase, that sort or may begin to */
  private final case class Planned(aggregate: Aggregate, sorting: Seq[BaseAggregateExec])

  private val preconditions: Seq[Precondition[Planned]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.aggregate.isStreaming),
    // With DISTINCT, the first phases group by its columns too.
    Precondition(KeysHaveCollation)(_.sorting.flatMap(_.groupingExpressions).forall { key =>
      UnsafeRowUtils.isBinaryStable(key.dataType) && RowOrdering.isOrderable(key.dataType)
    }),
    Precondition(SortAsFast)(planned => !isSortedFast(planned.aggregate))
  )

  /** Whether Spark sorts by the digits of a key, and objects of so many groups cost more than that. */
  private def isSortedFast(aggregate: Aggregate): Boolean = aggregate.groupingExpressions match {
    case Seq(key) =>
      SQLConf.get.enableRadixSort &&
      SortPrefixUtils.canSortFullyWithPrefix(StructField("key", key.dataType)) &&
      mostHashed(aggregate).exists(most => knownGroups(aggregate).exists(_.value > most.value))
    case _ => false
  }

  /** Limits the groups of an aggregation that keeps objects; none for any other. */
  private def mostHashed(aggregate: Aggregate): Option[Setting[Long]] = {
    val objects = functionsOf(aggregate).map(_.aggregateFunction).collect {
      case function: TypedImperativeAggregate[_] => function
    }
    if (objects.isEmpty) None
    else if (objects.forall(isList)) Some(SelingerConf.MAX_HASHED_LISTS)
    else Some(SelingerConf.MAX_HASHED_OBJECTS)
  }

  private def isList(function: AggregateFunction): Boolean = function match {
    case _: CollectList | _: ListAgg => true
    case _ => false
  }

  /** Groups by statistics, not only by an assumption. */
  private def knownGroups(aggregate: Aggregate): Option[Quantity] =
    groupsOf(aggregate).filter(_.origin != Origin.Default)

  private def groupsOf(aggregate: Aggregate): Option[Quantity] =
    LeafStatistics.estimator.estimate(aggregate).map(_.rows)

  /** Whether Spark's hash aggregation does not take an aggregation. */
  private def isSorted(aggregate: Aggregate): Boolean =
    aggregate.groupingExpressions.nonEmpty && aggregate.hint.isEmpty && {
      val functions = functionsOf(aggregate).map(_.aggregateFunction)
      // Functions in Python have no buffers, and operators of their own.
      !functions.exists(_.isInstanceOf[UnevaluableAggregateFunc]) &&
      !Aggregate.supportsHashAggregate(
        functions.flatMap(_.aggBufferAttributes),
        aggregate.groupingExpressions
      )
    }

  private def functionsOf(aggregate: Aggregate): Seq[AggregateExpression] =
    aggregate.aggregateExpressions.flatMap(_.collect { case made: AggregateExpression => made })

  /**
   * An aggregation that a strategy of ours has had planned by Spark, with the operators that fit it;
   * the plan itself where this rule has nothing to do.
   */
  private[strategy] def selected(aggregate: Aggregate, planned: Seq[SparkPlan]): Seq[SparkPlan] = {
    val switches = SelingerConf.switches
    val acts = switches.enabled(this) && switches.mode == Mode.On && isSorted(aggregate)
    if (!acts) planned
    else
      chosen(aggregate, planned, switches.mode) match {
        case Nil => planned
        case other => other
      }
  }

  /** `Nil` where Spark's operators are the right ones. */
  private def chosen(aggregate: Aggregate, planned: Seq[SparkPlan], mode: Mode): Seq[SparkPlan] = {
    val sorting = planned.flatMap(_.collect { case Sorting(operator) => operator })
    if (sorting.isEmpty) Nil
    else
      Precondition.firstUnmet(preconditions, Planned(aggregate, sorting)) match {
        case Some(reason) =>
          Decision.record(aggregate, decision(aggregate, Outcome.Declined, reason))
          Nil
        case None =>
          val outcome = Outcome.acting(mode)
          val made = decision(aggregate, outcome, HashedInstead).copy(
            chosen = Some("hash aggregation"),
            stock = Some(
              if (sorting.exists(_.isInstanceOf[SortAggregateExec])) "sort aggregation"
              else "aggregation of objects, which sorts after 128 keys"
            )
          )
          Decision.record(aggregate, made)
          planned.map { plan =>
            val hashed = plan.transformUp { case Sorting(operator) =>
              hash(operator, testedRows(aggregate, operator))
            }
            Decision.record(hashed, made)
            hashed
          }
      }
  }

  private object Sorting {
    def unapply(plan: SparkPlan): Option[BaseAggregateExec] = plan match {
      case operator: SortAggregateExec if isFree(operator) => Some(operator)
      case operator: ObjectHashAggregateExec if isFree(operator) => Some(operator)
      case _ => None
    }

    private def isFree(operator: BaseAggregateExec) =
      operator.groupingExpressions.nonEmpty && !operator.isStreaming
  }

  private def hash(operator: BaseAggregateExec, testedRows: Long): SparkPlan =
    HeapHashAggregateExec(
      operator.requiredChildDistributionExpressions,
      operator.numShufflePartitions,
      operator.groupingExpressions,
      operator.aggregateExpressions,
      operator.aggregateAttributes,
      operator.initialInputBufferOffset,
      operator.resultExpressions,
      SelingerConf.PARTIAL_STOP_RATIO.value,
      testedRows,
      operator.child
    )

  private def testedRows(aggregate: Aggregate, operator: BaseAggregateExec): Long = {
    // With DISTINCT, the first phases group by more columns.
    val isOfItsKeys = operator.groupingExpressions.size == aggregate.groupingExpressions.size
    HeapHashAggregateExec.testedRows(
      knownGroups(aggregate).filter(_ => isOfItsKeys).map(_.value),
      LeafStatistics.estimator.estimate(aggregate.child).map(_.rows.value),
      SelingerConf.PARTIAL_STOP_RATIO.value
    )
  }

  private def decision(aggregate: Aggregate, outcome: Outcome, reason: Reason): Decision = Decision(
    rule = id,
    node = NodeText.of(aggregate),
    key = NodeText.key(aggregate),
    outcome = outcome,
    reason = reason,
    phase = if (QueryStages.begun(aggregate)) Phase.Adaptive else Phase.Static,
    evidence = groupsOf(aggregate).filter(_.value > 0.0).toSeq.map { groups =>
      Evidence("groups", groups.value, "rows", groups.origin)
    },
    setting = reason match {
      case SortAsFast => mostHashed(aggregate).map(_.key)
      case HashedInstead => Some(switch)
      case _ => None
    }
  )
}
