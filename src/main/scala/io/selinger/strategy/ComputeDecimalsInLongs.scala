package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedPhysicalRule,
  GuardedStrategy,
  Hook,
  Mode,
  NodeText,
  Outcome,
  RaisedErrors,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.ExactSums
import io.selinger.exec.PlanAggregatePerTask
import io.selinger.exec.decimals.{
  CompareInLongs,
  Comparison,
  ComputeInLongs,
  Formula,
  InLongs,
  SumInInt128
}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LocalRelation, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.window.WindowExec
import org.apache.spark.sql.types.{Decimal, DecimalType}

/**
 * Computes decimals in machine integers: arithmetic and comparisons in longs, sums and averages in
 * 128 bits. Spark
 * multiplies and divides decimals as BigDecimal objects, compares a column with a constant as such, and keeps
 * sums of more than 18 digits as bytes, which it turns into an object and back for each row.
 *
 * Fires on sums and averages when
 *   1. their values have at most 28 digits, by their
 *      type or by the footers of files (ExactSums)  else DECIMAL_SUM_TOO_WIDE
 * and on arithmetic and comparisons in projections, filters, conditions of joins, aggregates and windows
 * whose inputs raise no errors.
 *
 * {{{
 *   SELECT store, sum(price * quantity) FROM sales GROUP BY store
 *   Before:  HashAggregate [store], [sum(decimal)]     After:  HashAggregate [store], [sum(two longs)]
 *            +- price * quantity, as BigDecimal                +- price * quantity, as long
 * }}}
 *
 * Correct because: a row is computed in longs only if each intermediate value provably fits: by its
 * type, or by a check of the row. All others are computed by Spark's own code: overflow, division by
 * zero, digits beyond a long. So results, types, rounding, nulls and ANSI errors are Spark's. A null
 * input makes all of the arithmetic null in Spark as well, unless an error comes first: where there can be
 * errors, Spark's code computes rows with nulls. All inputs are evaluated first, so
 * arithmetic over an input that can raise an error, or that is random, is left alone (RaisedErrors). A sum
 * of 128 bits is exact, and of values of at most 28 digits it is never too long. A sum whose filter
 * may hide an error is left alone, since generated code may compute its value first.
 * Not done: remainders, casts without arithmetic, IN, <=>; sums inside streams, whose stored state
 * must keep its form. CASE and COALESCE stay Spark's; arithmetic inside them is computed in longs.
 * Cost: planning O(n) in the expressions. May lose on rows whose values do not fit longs, which are
 * tried first: some nanoseconds against a BigDecimal.
 * Runs as a planner strategy for sums, whose buffers must be the same in all phases of an aggregation,
 * and before columnar transitions for arithmetic, when plans are otherwise complete. A second run finds no
 * arithmetic of decimals any more, and gives the same plan for the same logical plan.
 * Conf: spark.selinger.computeDecimalsInLongs.enabled.  References: Spark's DecimalAggregates does this
 * for sums of at most 8 digits; DuckDB and Velox compute decimals in 64 and 128 bits.
 */
object ComputeDecimalsInLongs
    extends RuleDescription(
      "computeDecimalsInLongs",
      RuleKind.Strategy,
      "Computes decimals in machine integers where their values fit, which is several times as " +
        "fast as decimal objects."
    ) {

  val DecimalsInLongs: Reason = Reason(
    "DECIMALS_IN_LONGS",
    "Decimals are computed as machine integers where their values fit. The results are the same.",
    "Nothing to do."
  )

  val DecimalSumTooWide: Reason = Reason(
    "DECIMAL_SUM_TOO_WIDE",
    "The values that are summed up have a type of more than 28 digits, and nothing proves that they need " +
      "at most 28. The sum could have more than 38 digits, so Spark computes it.",
    "Cast the values to a decimal of at most 28 digits, if they fit. It is also enough if the footers of " +
      "Parquet or ORC files prove it."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PlannerStrategy(
      "The phases of an aggregation must agree on their buffers, so they are planned together."
    )(new SumDecimals(_)),
    Hook.BeforeColumnar(
      "Rules and statistics before it see the arithmetic that the query has."
    )(_ => new ComputeDecimals)
  )

  override def reasons: Seq[Reason] = Seq(DecimalSumTooWide, DecimalsInLongs)

  override def example: String =
    "SELECT item, sum(CAST(amount AS DECIMAL(12, 2)) * 1.19) FROM sales GROUP BY item"

  /** The same expression with its arithmetic and comparisons of decimals in longs; itself where there are none. */
  private[strategy] def inLongs(expression: Expression): Expression = expression.transformDown {
    case Computed(computed) => computed
  }

  /** Operations whose value is null where one of their inputs is, and which [[Formula]] and [[Comparison]] know. */
  private object Operation {
    def unapply(expression: Expression): Option[Seq[Expression]] = expression match {
      case _: Add | _: Subtract | _: Multiply | _: Divide | _: UnaryMinus
          if isDecimal(expression) && expression.children.forall(isDecimal) =>
        Some(expression.children)
      case cast: Cast if isDecimal(cast) && Formula.accepts(cast.child.dataType) =>
        Some(cast.children)
      case Comparison.Compared(left, right, _) => Some(Seq(left, right))
      case _ => None
    }
  }

  /** The largest tree of operations at this place. */
  private object Computed {
    def unapply(expression: Expression): Option[InLongs] =
      Option.when(hasOperations(expression))(inputsOf(expression).distinct).flatMap { inputs =>
        val isSafe = isSmall(expression, inputs) &&
          inputs.forall(input => input.deterministic && RaisedErrors.isSafe(input))
        if (isSafe) computed(expression, inputs) else None
      }

    private def computed(expression: Expression, inputs: Seq[Expression]): Option[InLongs] = {
      val tree = bound(expression, inputs)
      val raises = !RaisedErrors.isSafe(expression)
      if (isDecimal(expression))
        Formula.of(tree).map(_ => ComputeInLongs(inputs.map(inLongs), tree, raises))
      else Comparison.of(tree).map(_ => CompareInLongs(inputs.map(inLongs), tree, raises))
    }
  }

  /** Methods of Java have at most 255 parameters, and Java compiles long ones badly. */
  private def isSmall(expression: Expression, inputs: Seq[Expression]): Boolean =
    inputs.size <= 60 && expression.collect { case operation: BinaryArithmetic =>
      operation
    }.size <= 60

  /**
   * Whether Spark would compute with objects here. It compares decimals of more than 18 digits that a column
   * has as objects, which is as fast.
   */
  private def hasOperations(expression: Expression): Boolean = expression match {
    case Comparison.Compared(left, right, _) if Seq(left, right).forall(isShort) => true
    case Operation(_) => expression.exists(_.isInstanceOf[BinaryArithmetic])
    case _ => false
  }

  private def isShort(value: Expression): Boolean = value.dataType match {
    case decimal: DecimalType => decimal.precision <= Decimal.MAX_LONG_DIGITS
    case _ => false
  }

  private def inputsOf(expression: Expression): Seq[Expression] = expression match {
    case Operation(operands) => operands.flatMap(inputsOf)
    case _: Literal => Nil
    case input => Seq(input)
  }

  private def bound(expression: Expression, inputs: Seq[Expression]): Expression =
    expression match {
      case Operation(operands) => expression.withNewChildren(operands.map(bound(_, inputs)))
      case literal: Literal => literal
      // What may be null is asked of the inputs.
      case input => BoundReference(inputs.indexOf(input), input.dataType, nullable = true)
    }

  private def isDecimal(expression: Expression): Boolean =
    expression.dataType.isInstanceOf[DecimalType]

  /**
   * The same expression with its sums and averages of decimals in 128 bits.
   *
   * @param input the rows that are added up
   */
  private[strategy] def withSums(expression: Expression, input: LogicalPlan): Expression =
    expression.transformUp {
      case aggregate: AggregateExpression if accepts(aggregate, input) =>
        val function = aggregate.aggregateFunction
        val computed = function.withNewChildren(function.children.map(inLongs))
        aggregate.copy(aggregateFunction = SumInInt128(SumInInt128.declarative(computed)))
    }

  private[strategy] def accepts(aggregate: AggregateExpression, input: LogicalPlan): Boolean = {
    val values = aggregate.aggregateFunction.children
    SumInInt128.isOfDecimals(aggregate.aggregateFunction) &&
    values.forall(ExactSums.fitsSum(_, input)) &&
    (aggregate.filter.isEmpty || values.forall(RaisedErrors.isSafe))
  }

  /** The functions of an aggregation that another strategy plans, if this rule may act. */
  private[strategy] def withSums(
      functions: Seq[AggregateExpression],
      input: LogicalPlan
  ): Seq[AggregateExpression] = {
    val switches = SelingerConf.switches
    if (switches.mode != Mode.On || !switches.enabled(this)) functions
    else
      functions.map(function => withSums(function: Expression, input)).collect {
        case known: AggregateExpression => known
      }
  }

  private[strategy] def decision(plan: LogicalPlan, outcome: Outcome, reason: Reason): Decision =
    Decision(
      rule = id,
      node = NodeText.of(plan),
      key = NodeText.key(plan),
      outcome = outcome,
      reason = reason,
      setting = Option.unless(outcome == Outcome.Declined)(switch),
      settingTo = Option.unless(outcome == Outcome.Declined)("false")
    )
}

/** Plans aggregations whose sums of decimals are kept in 128 bits. */
final class SumDecimals(session: SparkSession)
    extends GuardedStrategy(ComputeDecimalsInLongs, SelingerConf.switches) {
  import ComputeDecimalsInLongs._

  override protected def concerns(plan: LogicalPlan): Boolean = plan match {
    // The state of a stream must keep its form.
    case aggregate: Aggregate =>
      !aggregate.isStreaming &&
      functions(aggregate).exists(made => SumInInt128.isOfDecimals(made.aggregateFunction))
    case _ => false
  }

  override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] = plan match {
    case aggregate: Aggregate =>
      if (!functions(aggregate).exists(accepts(_, aggregate.child))) {
        Decision.record(aggregate, decision(aggregate, Outcome.Declined, DecimalSumTooWide))
        Nil
      } else {
        Decision.record(aggregate, decision(aggregate, Outcome.acting(mode), DecimalsInLongs))
        val inLongs = planned(aggregate.mapExpressions(withSums(_, aggregate.child)))
        StopPartialAggregation.selected(
          aggregate,
          SelectAggregateOperator.selected(aggregate, inLongs),
          Cluster.of(session)
        )
      }
    case _ => Nil
  }

  private def planned(aggregate: LogicalPlan): Seq[SparkPlan] =
    PlanAggregatePerTask(aggregate) match {
      case Nil => session.sessionState.planner.Aggregation(aggregate)
      case perTask => perTask
    }

  private def functions(aggregate: Aggregate): Seq[AggregateExpression] =
    aggregate.aggregateExpressions.flatMap(_.collect { case made: AggregateExpression => made })
}

/** Puts arithmetic and comparisons in longs into the operators that compute, and sums of windows into 128 bits. */
final class ComputeDecimals
    extends GuardedPhysicalRule(ComputeDecimalsInLongs, SelingerConf.switches) {
  import ComputeDecimalsInLongs._

  override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = plan.transformUp {
    case window: WindowExec =>
      changed(window, mode)(window.mapExpressions { expression =>
        inLongs(withSums(expression, inputOf(window)))
      })
    case operator => changed(operator, mode)(ComputedValues.changed(operator)(inLongs))
  }

  /** The rows of a window; none are known of a plan that nobody has planned. */
  private def inputOf(window: WindowExec): LogicalPlan =
    window.logicalLink.flatMap(_.children.headOption).getOrElse(LocalRelation())

  private def changed(operator: SparkPlan, mode: Mode)(rewritten: SparkPlan): SparkPlan =
    if (rewritten.fastEquals(operator)) operator
    else {
      val kept = if (mode == Mode.On) rewritten else operator
      for (logical <- operator.logicalLink)
        Decision.record(kept, decision(logical, Outcome.acting(mode), DecimalsInLongs))
      kept
    }
}
