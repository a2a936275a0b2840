package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression

/**
 * Expressions compared by how they compute: the same operations in the same order. An order of additions,
 * say, decides what is lost to rounding, and what overflows.
 */
private[rule] object ExpressionSets {

  /** What a result column is computed by. */
  def unnamed(expression: Expression): Expression = expression match {
    case Alias(value, _) => value
    case other => other
  }

  def has(expressions: Seq[Expression], one: Expression): Boolean =
    expressions.exists(isSame(_, one))

  def isSame(one: Expression, other: Expression): Boolean =
    one.semanticEquals(other) && formOf(one) == formOf(other)

  /** Without names, and without what only says where a result is found. */
  private def formOf(expression: Expression): Expression = expression.transform {
    case column: Attribute => AttributeReference("", column.dataType)(column.exprId)
    case function: AggregateExpression => function.copy(resultId = ExprId(0L))
  }

  def hasAll(expressions: Seq[Expression], others: Seq[Expression]): Boolean =
    others.forall(has(expressions, _))

  def isSameSet(some: Seq[Expression], others: Seq[Expression]): Boolean =
    hasAll(some, others) && hasAll(others, some)

  def isSameSequence(some: Seq[Expression], others: Seq[Expression]): Boolean =
    some.size == others.size && some.zip(others).forall { case (a, b) => isSame(a, b) }

  def distinct(expressions: Seq[Expression]): Seq[Expression] =
    expressions.foldLeft(Vector.empty[Expression]) { (known, one) =>
      if (has(known, one)) known else known :+ one
    }

  /** All of them, or none where one is missing. */
  def all[A](each: Seq[Option[A]]): Option[Seq[A]] =
    Option.when(each.forall(_.isDefined))(each.flatten)
}
