package io.selinger.estimate.plans

import io.selinger.stats.NumericAxis
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.types._

/**
 * Which sums and averages give the same value in whatever order, and in whatever parts, their values are
 * added up: those that cannot exceed their type on the way. A sum has that room by its type, or by what
 * is known of the values: those of bigint must fit into an int, those of decimals have at most 28 digits
 * (see [[ValueBounds]]).
 */
object ExactSums {

  private val moreDigits = 10
  private val largestInt = BigDecimal(BigInt(1) << 31)

  /** @param input the rows that are aggregated */
  def isExact(function: AggregateFunction, input: LogicalPlan): Boolean = function match {
    case Sum(UnscaledValue(Of(value)), _) =>
      value.precision + moreDigits <= Decimal.MAX_LONG_DIGITS
    case Sum(value, context) =>
      value.dataType match {
        case _: DecimalType => fitsSum(value, input)
        case ByteType | ShortType | IntegerType | FloatType | DoubleType => true
        // Without errors it wraps around, in any order to the same value.
        case LongType => context.evalMode == EvalMode.LEGACY || fitsInt(value, input)
        case _ => false
      }
    case Average(value @ Of(_), _) => fitsSum(value, input)
    case Average(value, _) => value.dataType.isInstanceOf[NumericType]
    case _ => true
  }

  /** Whether no sum of a value in the rows of a plan leaves the type of the sum. */
  def fits(value: Expression, plan: LogicalPlan): Boolean =
    fitsInt(value, plan) || fitsSum(value, plan)

  /** Whether a decimal has so few digits that no sum of it exceeds the 38 digits of the largest type. */
  def fitsSum(value: Expression, input: LogicalPlan): Boolean = value.dataType match {
    case decimal: DecimalType =>
      val digits = DecimalType.MAX_PRECISION - moreDigits
      decimal.precision <= digits ||
      ValueBounds.largest(value, input).exists(_ < ValueBounds.power(digits - decimal.scale))
    case _ => false
  }

  /** Whether all values of a whole number in the rows of a plan are known to fit into an int. */
  def fitsInt(value: Expression, plan: LogicalPlan): Boolean =
    NumericAxis.isWhole(value.dataType) &&
      ValueBounds.largest(value, plan).exists(_ <= largestInt)

  private object Of {
    def unapply(value: Expression): Option[DecimalType] = value.dataType match {
      case decimal: DecimalType => Some(decimal)
      case _ => None
    }
  }
}
