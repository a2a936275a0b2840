package io.selinger.exec.decimals

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Average, DeclarativeAggregate, Sum}
import org.apache.spark.sql.types._

/**
 * Spark's sum or average of decimals, with the sum in two longs instead of a decimal. Spark keeps sums
 * of more than 18 digits as bytes in its buffers, and turns them into objects and back for each row.
 *
 * Only the first column of the buffer differs: what Spark keeps besides (whether there was a value, how
 * many), and how it makes a result of both, stays its own.
 *
 * @param function a Sum or Average of decimals that no group has enough rows to bring beyond 38 digits:
 *   where a sum may have more, operators of Spark differ in when they notice
 */
final case class SumInInt128(function: DeclarativeAggregate) extends DeclarativeAggregate {
  private val child: Expression = function.children.head

  private val sumType: DecimalType = function.aggBufferAttributes.head.dataType match {
    case decimal: DecimalType => decimal
    case other => throw new IllegalArgumentException(s"not a sum of decimals: ${other.sql}")
  }

  override def children: Seq[Expression] = Seq(child)
  override def nullable: Boolean = function.nullable
  override def dataType: DataType = function.dataType
  override def prettyName: String = function.prettyName
  override def stringArgs: Iterator[Any] = Iterator(child)

  private lazy val high = AttributeReference("high", LongType, nullable = false)()
  private lazy val low = AttributeReference("low", LongType, nullable = false)()

  /** What Spark keeps beside the sum. */
  private def others: Seq[AttributeReference] = function.aggBufferAttributes.tail

  override lazy val aggBufferAttributes: Seq[AttributeReference] = Seq(high, low) ++ others

  override lazy val initialValues: Seq[Expression] =
    Seq(Literal(0L), Literal(0L)) ++ function.initialValues.tail

  override lazy val updateExpressions: Seq[Expression] = {
    val value = ToInt128(child)
    // Whether there is a value is asked of the one that is computed anyway.
    val besides = function.updateExpressions.tail.map(_.transformUp {
      case same if same.fastEquals(child) => value
    })
    Seq(AddHigh(high, low, value), AddLow(low, value)) ++ besides
  }

  override lazy val mergeExpressions: Seq[Expression] = {
    // Spark's expressions read the second buffer by columns of its own.
    val otherOf = function.inputAggBufferAttributes.tail
      .map(_.exprId)
      .zip(inputAggBufferAttributes.drop(2))
      .toMap
    val besides = function.mergeExpressions.tail.map(_.transform {
      case attribute: AttributeReference => otherOf.getOrElse(attribute.exprId, attribute)
    })
    Seq(MergeHigh(high, low, high.right, low.right), MergeLow(low, low.right)) ++ besides
  }

  override lazy val evaluateExpression: Expression = {
    val sum = function.aggBufferAttributes.head
    function.evaluateExpression.transform {
      case attribute: AttributeReference if attribute.exprId == sum.exprId =>
        FromInt128(high, low, sumType)
    }
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): SumInInt128 =
    copy(function = SumInInt128.declarative(function.withNewChildren(newChildren)))
}

object SumInInt128 {

  /** Whether it is a sum or average of decimals, which Spark keeps as a decimal. */
  def isOfDecimals(function: Expression): Boolean = function match {
    case sum: Sum => isDecimal(sum.child)
    case average: Average => isDecimal(average.child)
    case _ => false
  }

  def declarative(function: Expression): DeclarativeAggregate = function match {
    case declarative: DeclarativeAggregate => declarative
    case other => throw new IllegalArgumentException(s"no sum or average: $other")
  }

  private def isDecimal(value: Expression): Boolean = value.dataType.isInstanceOf[DecimalType]
}
