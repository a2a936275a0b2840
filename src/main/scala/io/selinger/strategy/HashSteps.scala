package io.selinger.strategy

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
}
