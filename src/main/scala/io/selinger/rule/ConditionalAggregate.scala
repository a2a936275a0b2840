package io.selinger.rule

import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._

/**
 * Takes the conditions out of an aggregate function: `sum(CASE WHEN c THEN v END)` is `sum(v)` of the
 * rows in which `c` is true, since these functions pass over nulls.
 */
private[rule] object ConditionalAggregate {

  /** A function without a filter, and all the conditions that a row must fulfil to count. */
  def split(function: AggregateExpression): (AggregateExpression, Seq[Expression]) = {
    val filters = function.filter.toSeq.flatMap(Selectivity.conjuncts)
    val (inner, conditions) = function.aggregateFunction match {
      case other if function.isDistinct => (other, Nil)
      case Sum(Conditional(condition, value), context) =>
        (Sum(value, context), Selectivity.conjuncts(condition))
      case Average(Conditional(condition, value), mode) =>
        (Average(value, mode), Selectivity.conjuncts(condition))
      case Min(Conditional(condition, value)) => (Min(value), Selectivity.conjuncts(condition))
      case Max(Conditional(condition, value)) => (Max(value), Selectivity.conjuncts(condition))
      case Count(Seq(Conditional(condition, value))) =>
        (Count(value), Selectivity.conjuncts(condition))
      case other => (other, Nil)
    }
    (function.copy(aggregateFunction = inner, filter = None), filters ++ conditions)
  }

  /** A value that is null unless a condition is true. */
  private object Conditional {
    def unapply(value: Expression): Option[(Expression, Expression)] = value match {
      case If(condition, value, Literal(null, _)) => Some((condition, value))
      case CaseWhen(Seq((condition, value)), None | Some(Literal(null, _))) =>
        Some((condition, value))
      case UnscaledValue(Conditional(condition, value)) => Some((condition, UnscaledValue(value)))
      case _ => None
    }
  }

}
