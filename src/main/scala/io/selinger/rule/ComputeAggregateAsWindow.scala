package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  ExpectedWork,
  GuardedRule,
  Hook,
  NodeText,
  Outcome,
  Precondition,
  RaisedErrors,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{ExactSums, RelationNames, UnknownRows}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{AGGREGATE, JOIN}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types._

/**
 * Computes an aggregation that is joined with the very rows it aggregates as window functions over these
 * rows. The rows are then read and joined once, not twice.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. it gives the same values whenever it runs             else RANDOM_VALUES
 *   3. none of the joins, nor the aggregation, has a hint    else HINT_OBEYED
 *   4. no other part of the query has the same groups        else SHARED_SUBPLAN
 *   5. all functions can be window functions, with values
 *      that do not depend on the order of rows               else AGGREGATE_NOT_WINDOWED
 *   6. nothing that would be computed for other rows can
 *      raise errors                                          else ERRORS_DEPEND_ON_PLAN
 *   7. no sum or average can overflow                        else SUM_MAY_OVERFLOW
 *   8. the rows can be estimated                             else NO_STATISTICS
 *   9. it saves at least merge.minGain                       else WINDOW_SAVES_LITTLE
 * Without a decision, an aggregation is passed over if the rows beside it are not those that it aggregates.
 *
 * {{{
 *   SELECT sum(s.price) FROM sales s JOIN items i ON s.item = i.id
 *   WHERE i.brand = 'b' AND s.amount < (SELECT 0.2 * avg(amount) FROM sales WHERE item = i.id)
 *   Before:  Join Inner (item = key AND amount < a)         After:  Filter (amount < 0.2 * w)
 *            :- Join Inner (item = id)                              +- Window [avg(amount) BY item AS w]
 *            |  :- sales                                               +- Join Inner (item = id)
 *            |  +- Filter (brand = b)                                     :- sales
 *            |     +- items                                               +- Filter (brand = b)
 *            +- Aggregate [item], [0.2 * avg(amount) AS a, item AS key]      +- items
 *               +- sales
 * }}}
 *
 * Correct because: relations and conditions of the aggregation are among those of the inner joins around it,
 * and the joins compare its groups with the row's own keys. So a row whose key is not null has just one
 * group, of all rows with its key, and a row with a null key is dropped before and after. Conditions that the
 * aggregation lacks are tested above the windows. Others that are below them, and other relations that are
 * joined below them, are compared only with the keys: they drop a partition as a whole, or repeat each of
 * its rows equally often. That changes neither a minimum nor a maximum nor an average; below sums and
 * counts no other relation is joined. Averages of decimals must have room for the sum (ExactSums). Keys, and
 * what minima and maxima are taken of, have types whose equal values are the same bits.
 * Averages of floating-point numbers are left alone: their last digits depend on the order of rows, and a
 * comparison with them decides which rows are returned. If there are no rows, there are no groups either.
 * Not done: outer joins with the aggregation (a scalar subquery in the SELECT list), IN and EXISTS; several
 * aggregations of the same rows (the second one stays); relations that are no tables, such as groups.
 * Cost: planning O(aggregations × relations) comparisons, and estimates of four plans for each aggregation
 * found. May lose where many rows reach the windows, which shuffle and sort all of them, where the
 * aggregation shuffles its groups only: that is compared, with an aggregation whose input ReduceGroupedInput
 * reduces.
 * Runs in injectPreCBORule: Spark has turned subqueries into joins and pushed predicates down, and
 * ReorderJoins has not yet chosen an order with the second reading. A second run finds no aggregation.
 * Conf: spark.selinger.computeAggregateAsWindow.enabled.  References: Zuzarte, Pirahesh, Ma, Cheng, Liu, Wong,
 * WinMagic: Subquery Elimination Using Window Aggregation, SIGMOD 2003.
 */
final class ComputeAggregateAsWindow(session: SparkSession)
    extends GuardedRule(ComputeAggregateAsWindow, SelingerConf.switches) {
  import ComputeAggregateAsWindow._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ if !plan.containsAllPatterns(AGGREGATE, JOIN) => plan
    case _ =>
      val query = new WholeQuery(plan)
      val costs = new WindowCosts(new GroupedInputCost(Cluster.of(session)))
      changed(plan, decide(_, query, costs))
  }

  /** @param decide what takes the place of a region, where an aggregation is to go */
  private def changed(
      plan: LogicalPlan,
      decide: RepeatedRows => Option[LogicalPlan]
  ): LogicalPlan =
    if (isLate || !plan.containsAllPatterns(AGGREGATE, JOIN)) plan
    else {
      val region = InnerRegion.of(plan)
      def below(part: LogicalPlan): LogicalPlan =
        if (region.relations.exists(_ eq part)) part.mapChildren(changed(_, decide))
        else part.mapChildren(below)
      RepeatedRows.in(region).iterator.flatMap(decide(_)).nextOption() match {
        // It may have another aggregation.
        case Some(made) => changed(made, decide)
        case None => below(plan)
      }
    }

  /** The region without the aggregation, if that is to go. */
  private def decide(
      found: RepeatedRows,
      query: WholeQuery,
      costs: WindowCosts
  ): Option[LogicalPlan] = {
    val subject = new Subject(found, query, costs.compared(found))
    val unmet = Precondition.firstUnmet(preconditions, subject)
    val outcome = Outcome.of(unmet, SelingerConf.switches.mode)
    val made = decision(subject, outcome, unmet.getOrElse(Windowed))
    if (outcome == Outcome.Changed) {
      val chosen = subject.compared.window
      val plan = chosen.plan
      plan
        .collectFirst { case window: Window if chosen.isOwn(window) => window }
        .foreach(Decision.record(_, made))
      Some(plan)
    } else {
      Decision.record(found.aggregate, made)
      None
    }
  }

  private def decision(subject: Subject, outcome: Outcome, reason: Reason): Decision = {
    val aggregate = subject.found.aggregate
    val tables = aggregate.collectLeaves().map(RelationNames.ofLeaf).distinct.mkString(", ")
    val costs = if (isPossible(reason)) subject.compared.costs else None
    val acts = reason == Windowed
    val remedy = remedyOf(reason, costs)
    Decision(
      rule = info.id,
      node = NodeText.shorten(s"Aggregation over $tables"),
      key = NodeText.key(aggregate),
      outcome = outcome,
      reason = reason,
      chosen = Option.when(acts)("window functions over rows that the query reads anyway"),
      stock = Option.when(acts)("a second reading of the rows, and groups"),
      detail = UnknownRows.detail(reason, aggregate.child),
      evidence = costs.toSeq.flatMap(_.evidence),
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      work = costs.filter(_ => acts).map(known => ExpectedWork(known.stock, known.chosen))
    )
  }

  private def remedyOf(reason: Reason, costs: Option[ComparedCosts]): Option[Remedy] = {
    val share = SelingerConf.MERGE_MIN_GAIN.key
    reason match {
      case Windowed =>
        Some(costs.flatMap(known => Remedy.above(known.gain)) match {
          case Some(gain) => Remedy(share, Some(gain))
          case None => Remedy(info.switch, Some("false"))
        })
      case SavesLittle => Some(Remedy(share, costs.flatMap(known => Remedy.below(known.gain))))
      case _ => None
    }
  }
}

object ComputeAggregateAsWindow
    extends RuleDescription(
      "computeAggregateAsWindow",
      RuleKind.Logical,
      "Where a query compares rows with an aggregate of the same rows, computes it as a window function, so " +
        "that the rows are read once."
    ) {

  val Windowed: Reason = Reason(
    "COMPUTED_AS_WINDOW",
    "The query joins rows with an aggregation of the same rows. It is computed as window functions over the " +
      "rows, so they are not read a second time.",
    "Set spark.selinger.merge.minGain higher to do so less often."
  )

  val SavesLittle: Reason = Reason(
    "WINDOW_SAVES_LITTLE",
    "This aggregation could be computed as window functions, but that would not save enough: all rows would " +
      "be shuffled and sorted. The costs of both are compared below.",
    "Set spark.selinger.merge.minGain lower to do so more often."
  )

  val NotWindowed: Reason = Reason(
    "AGGREGATE_NOT_WINDOWED",
    "An aggregate here cannot be computed as a window function with the same result. These can: count, sum " +
      "and avg of whole numbers and decimals, min and max of types other than float and double, all without " +
      "DISTINCT and FILTER.",
    "Nothing to do."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Subqueries are joins by then, but Selinger has not yet chosen orders of joins."
    )(new ComputeAggregateAsWindow(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    MergeSubplansByCost.RandomValues,
    Reason.HintObeyed,
    Reason.SharedSubplan,
    NotWindowed,
    Reason.MayRaise,
    Reason.SumMayOverflow,
    Reason.NoStatistics,
    SavesLittle,
    Windowed
  )

  override def example: String =
    "SELECT sum(s.ticket) FROM sales s JOIN items i ON s.item = i.id WHERE i.name = 'car 1' AND " +
      "s.amount < (SELECT avg(amount) FROM sales x WHERE x.item = i.id)"

  /** Whether it is a matter of rows and costs only. */
  private def isPossible(reason: Reason): Boolean =
    Seq(Reason.NoStatistics, SavesLittle, Windowed).contains(reason)

  private def always: Boolean = SelingerConf.MERGE_MIN_GAIN.value == 0.0

  private final class Subject(
      val found: RepeatedRows,
      val query: WholeQuery,
      comparedAs: => ComparedWindow
  ) {
    lazy val compared: ComparedWindow = comparedAs
    def aggregate: Aggregate = found.aggregate
    def functions: Seq[AggregateExpression] = AggregateWindow.functionsOf(aggregate)
  }

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.query.isStreaming),
    Precondition(MergeSubplansByCost.RandomValues)(subject =>
      subject.aggregate.deterministic && subject.found.own.forall(_.deterministic)
    ),
    Precondition(Reason.HintObeyed)(subject =>
      subject.aggregate.hint.isEmpty &&
        (subject.found.region.hints ++ subject.found.block.hints).forall(_ == JoinHint.NONE)
    ),
    Precondition(Reason.SharedSubplan)(subject =>
      subject.query.equalTo(subject.aggregate).size <= 1
    ),
    Precondition(NotWindowed)(_.functions.forall(isWindowFunction)),
    Precondition(Reason.MayRaise)(subject =>
      !RaisedErrors.mayRaise(subject.aggregate, ExactSums.fits) &&
        !subject.found.region.relations.exists(RaisedErrors.computesUnsafeColumns)
    ),
    Precondition(Reason.SumMayOverflow)(subject =>
      subject.functions.forall(function =>
        hasOneValue(function.aggregateFunction, subject.aggregate.child)
      )
    ),
    Precondition(Reason.NoStatistics)(always || _.compared.costs.isDefined),
    Precondition(SavesLittle)(always || _.compared.costs.forall { costs =>
      costs.gain >= SelingerConf.MERGE_MIN_GAIN.value
    })
  )

  private def isWindowFunction(function: AggregateExpression): Boolean =
    !function.isDistinct && function.filter.isEmpty && (function.aggregateFunction match {
      case _: Count => true
      case Sum(value, _) => isExactType(value)
      case Average(value, _) => isExactType(value)
      case Min(value) => AggregatePush.isComparable(value)
      case Max(value) => AggregatePush.isComparable(value)
      case _ => false
    })

  /** Whether it is the same in any order of the rows. An average is that of floating-point numbers. */
  private def hasOneValue(function: AggregateFunction, input: LogicalPlan): Boolean =
    ExactSums.isExact(function, input) && (function match {
      case Average(value, _) if value.dataType == LongType => ExactSums.fitsInt(value, input)
      case _ => true
    })

  private def isExactType(value: Expression): Boolean = value.dataType match {
    case ByteType | ShortType | IntegerType | LongType | _: DecimalType => true
    case _ => false
  }
}
