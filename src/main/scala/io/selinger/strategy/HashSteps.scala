package io.selinger.strategy

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.types._

/** The two steps of Spark's hash aggregation, between which it shuffles: (partial, final). */
private[strategy] object HashSteps {

  def unapply(plan: SparkPlan): Option[(HashAggregateExec, HashAggregateExec)] = plan match {
    case last: HashAggregateExec if last.aggregateExpressions.forall(_.mode == Final) =>
      last.child match {
        case first: HashAggregateExec if first.aggregateExpressions.forall(_.mode == Partial) =>
          Some((first, last))
        case _ => None
      }
    case _ => None
  }

  /** Whether partial results of an aggregate can be merged in any order to the same value. */
  def isMergeable(aggregate: AggregateExpression): Boolean =
    aggregate.deterministic && (aggregate.aggregateFunction match {
      case _: Count | _: Sum | _: Average => true
      // Of equal values with different bytes, such as -0.0 and 0.0, the one that comes first stays.
      case _: Min | _: Max => hasOneForm(aggregate.aggregateFunction.dataType)
      case _: BitAndAgg | _: BitOrAgg | _: BitXorAgg => true
      case _ => false
    })

  private def hasOneForm(values: DataType): Boolean = values match {
    case FloatType | DoubleType => false
    case struct: StructType => struct.forall(field => hasOneForm(field.dataType))
    case array: ArrayType => hasOneForm(array.elementType)
    case other => UnsafeRowUtils.isBinaryStable(other)
  }

  /**
   * Whether sums are exact whatever the order. They have ten digits, or a factor of 2³², more than their
   * values, which no group has enough rows to exceed.
   */
  def hasRoom(aggregate: AggregateExpression): Boolean =
    aggregate.aggregateFunction match {
      case Sum(UnscaledValue(Of(value)), _) => value.precision + 10 <= Decimal.MAX_LONG_DIGITS
      case Sum(value, context) =>
        (value.dataType, aggregate.aggregateFunction.dataType) match {
          case (from: DecimalType, to: DecimalType) => to.precision >= from.precision + 10
          case (ByteType | ShortType | IntegerType | FloatType | DoubleType, _) => true
          // Without errors it wraps around, in any order to the same value.
          case (LongType, _) => context.evalMode == EvalMode.LEGACY
          case _ => false
        }
      case Average(Of(value), _) => value.precision + 10 <= DecimalType.MAX_PRECISION
      case Average(value, _) => value.dataType.isInstanceOf[NumericType]
      case _ => true
    }

  private object Of {
    def unapply(value: Expression): Option[DecimalType] = value.dataType match {
      case decimal: DecimalType => Some(decimal)
      case _ => None
    }
  }
}
