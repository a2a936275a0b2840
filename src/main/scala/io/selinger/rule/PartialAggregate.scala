package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.plans.ExactSums
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._

/**
 * An aggregate function computed in two steps.
 *
 * @param parts what is computed of each group below a join
 * @param merged the function's own value above the join, with its type
 */
private[rule] final case class PartialAggregate(parts: Seq[Alias], merged: Expression)

/**
 * How functions are computed of rows that each stand for several: sums of parts, or, for functions
 * of other columns, values times the number of rows that a row stands for.
 *
 * Types, rounding and overflow stay Spark's: totals are added up as the function itself says, so that
 * one that exceeds its type is null, or an error, as in Spark. A sum of decimals has ten digits more
 * than its values; the sum of such sums is cast back, which checks that. Sums of bigint are taken apart
 * only where they wrap around or cannot overflow (ExactSums). Averages end with Spark's own expression, over the sum of sums
 * and the sum of counts.
 * Sums of floating-point numbers may differ in their last digits, as they do with the order of rows.
 */
private[rule] object PartialAggregate {

  /** Of the names of parts. */
  val prefix = "partial_"

  /**
   * For a function whose inputs are columns below. None if it cannot be taken apart.
   *
   * @param input the rows below
   * @param condition what the rows above must fulfil
   */
  def of(
      function: AggregateExpression,
      input: LogicalPlan,
      condition: Option[Expression] = None
  ): Option[PartialAggregate] = {
    def part(name: String, aggregate: AggregateFunction): Alias =
      Alias(
        aggregate.toAggregateExpression(isDistinct = false, function.filter),
        s"$prefix$name"
      )()
    def one(part: Alias)(merge: Attribute => Expression) =
      Some(PartialAggregate(Seq(part), merge(part.toAttribute)))
    function.aggregateFunction match {
      case _ if function.isDistinct || !function.deterministic => None
      case count: Count => one(part("count", count))(part => orZero(total(part, condition)))
      case min: Min if keepsExtremes(min.dataType) =>
        one(part("min", min))(part => whole(Min(part), condition))
      case max: Max if keepsExtremes(max.dataType) =>
        one(part("max", max))(part => whole(Max(part), condition))
      case sum: Sum if ExactSums.isExact(sum, input) =>
        one(part("sum", sum))(merged(_, sum, condition))
      case average: Average if ExactSums.isExact(average, input) =>
        val sum = sumOf(average)
        val summed = part("sum", sum)
        val counted = part("count", Count(average.child))
        val total = merged(summed.toAttribute, sum, condition)
        val count = orZero(this.total(counted.toAttribute, condition))
        Some(PartialAggregate(Seq(summed, counted), finished(average, total, count)))
      case _ => None
    }
  }

  /**
   * For a function of other columns. None if it depends on repeated rows in a way that is not known.
   *
   * @param weight the number of rows that a row stands for
   * @param input all rows, with their weights or without
   */
  def weighted(
      function: AggregateExpression,
      weight: Expression,
      input: LogicalPlan
  ): Option[Expression] =
    function.aggregateFunction match {
      case _ if !function.deterministic => None
      // Repeated rows make no difference.
      case _: Min | _: Max => Some(function)
      case _ if function.isDistinct => Some(function)
      case count: Count => Some(weightedCount(count.children, function.filter, weight))
      case sum: Sum if ExactSums.isExact(sum, input) =>
        times(sum.child, weight, sum).map(merged(_, sum, function.filter))
      case average: Average if ExactSums.isExact(average, input) =>
        val sum = sumOf(average)
        times(sum.child, weight, sum).map { value =>
          finished(
            average,
            merged(value, sum, function.filter),
            weightedCount(Seq(average.child), function.filter, weight)
          )
        }
      case _ => None
    }

  /** Whether it can be computed for rows that the query would not compute it for. */
  def isSafe(function: AggregateExpression): Boolean =
    (function.aggregateFunction.children ++ function.filter).forall {
      case UnscaledValue(value) => RaisedErrors.isSafe(value)
      case input => RaisedErrors.isSafe(input)
    }

  private val wrapping = NumericEvalContext(EvalMode.LEGACY, allowDecimalPrecisionLoss = true)

  private def whole(
      function: AggregateFunction,
      filter: Option[Expression]
  ): AggregateExpression = function.toAggregateExpression(isDistinct = false, filter)

  private def total(count: Expression, filter: Option[Expression]): Expression =
    whole(Sum(count, wrapping), filter)

  private def orZero(count: Expression): Expression = Coalesce(Seq(count, Literal(0L)))

  private def weightedCount(
      children: Seq[Expression],
      filter: Option[Expression],
      weight: Expression
  ): Expression = {
    val conditions = filter.toSeq ++ children.filter(_.nullable).map(IsNotNull(_))
    orZero(total(weight, conditions.reduceOption(And(_, _))))
  }

  /** The total of sums, with the type and the overflow of `sum` itself. */
  private def merged(parts: Expression, sum: Sum, filter: Option[Expression]): Expression = {
    val total = whole(Sum(parts, sum.evalContext), filter)
    if (total.dataType == sum.dataType) total
    else Cast(total, sum.dataType, None, sum.evalContext.evalMode)
  }

  /** What Spark's average adds up. */
  private def sumOf(average: Average): Sum = average.child.dataType match {
    case _: DecimalType =>
      Sum(average.child, NumericEvalContext(average.evalMode, allowDecimalPrecisionLoss = true))
    case _ => Sum(Cast(average.child, DoubleType, None, EvalMode.LEGACY), wrapping)
  }

  /** Spark's own end of an average. */
  private def finished(average: Average, sum: Expression, count: Expression): Expression = {
    val buffers = average.aggBufferAttributes.map(_.exprId).zip(Seq(sum, count)).toMap
    average.evaluateExpression.transform {
      case buffer: Attribute => buffers.getOrElse(buffer.exprId, buffer)
    }
  }

  private def times(value: Expression, weight: Expression, sum: Sum): Option[Expression] =
    value.dataType match {
      case ByteType | ShortType | IntegerType | LongType =>
        Some(Multiply(Cast(value, LongType, None, EvalMode.LEGACY), weight, EvalMode.LEGACY))
      case FloatType | DoubleType =>
        def double(number: Expression) = Cast(number, DoubleType, None, EvalMode.LEGACY)
        Some(Multiply(double(value), double(weight), EvalMode.LEGACY))
      case decimal: DecimalType if decimal.precision + 21 <= DecimalType.MAX_PRECISION =>
        val factor = Cast(weight, DecimalType(20, 0), None, EvalMode.LEGACY)
        Some(Multiply(value, factor, sum.evalContext.evalMode))
      case _ => None
    }

  /** Whether it is kept in a hash table, and does not depend on which of 0.0 and -0.0 comes first. */
  private def keepsExtremes(kind: DataType): Boolean = kind match {
    case FloatType | DoubleType => false
    case other => UnsafeRow.isMutable(other)
  }
}
