package io.selinger.estimate

import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/** Width of the values that an expression computes. */
object ValueWidth {

  /** Longest text of a number, date or timestamp. */
  private val scalarText = 40.0

  /**
   * Bytes of a value on average, from above: known for columns with statistics, for literals, and
   * for functions that return no more than they are given. `None` for everything else, which must
   * not be taken for small.
   */
  def bytes(expression: Expression, columns: Map[ExprId, ColumnStatistics]): Option[Double] =
    expression match {
      case fixed if UnsafeRow.isFixedLength(fixed.dataType) => Some(0.0)
      case attribute: Attribute => columns.get(attribute.exprId).flatMap(_.averageBytes)
      case Literal(null, _) => Some(1.0)
      case Literal(text: UTF8String, _) => Some(math.max(1.0, text.numBytes.toDouble))
      case _: Lower | _: Upper | _: String2TrimExpression | _: Substring | _: Left | _: Concat |
          _: Coalesce | _: If | _: CaseWhen | _: KnownNotNull =>
        sum(expression.children, columns)
      case cast: Cast if cast.dataType == StringType =>
        if (UnsafeRow.isFixedLength(cast.child.dataType)) Some(scalarText)
        else bytes(cast.child, columns)
      case _ => None
    }

  private def sum(
      expressions: Seq[Expression],
      columns: Map[ExprId, ColumnStatistics]
  ): Option[Double] = {
    val widths = expressions.map(bytes(_, columns))
    if (widths.forall(_.isDefined)) Some(widths.flatten.sum) else None
  }
}
