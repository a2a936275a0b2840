package io.selinger.rule

import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}

/**
 * Which columns have the same value in each row of a plan: those that inner joins and filters equate, and
 * those that projections rename. Only of types whose equal values are the same bits.
 */
private[rule] final class EqualColumns private (classes: Seq[Set[Attribute]]) {

  /** An expression over `wanted` columns where it is over columns that are equal to them. */
  def over(wanted: Seq[Expression], expression: Expression): Expression =
    expression.transform {
      case column: Attribute if !ExpressionSets.has(wanted, column) =>
        classes
          .find(_.exists(_.exprId == column.exprId))
          .flatMap(_.find(ExpressionSets.has(wanted, _)))
          .getOrElse(column)
    }

  def areEqual(one: Attribute, other: Attribute): Boolean =
    one.exprId == other.exprId || classes.exists { same =>
      same.exists(_.exprId == one.exprId) && same.exists(_.exprId == other.exprId)
    }
}

private[rule] object EqualColumns {

  def of(plan: LogicalPlan): EqualColumns = ofPairs(pairs(plan))

  /** In rows that fulfil all these conditions. */
  def by(conditions: Seq[Expression]): EqualColumns = ofPairs(conditions.flatMap(equated))

  private def ofPairs(pairs: Seq[(Attribute, Attribute)]): EqualColumns =
    new EqualColumns(
      pairs
        .filter { case (a, b) => a.dataType == b.dataType && AggregatePush.isComparable(a) }
        .foldLeft(Seq.empty[Set[Attribute]]) { case (classes, (a, b)) =>
          val (same, others) = classes.partition(known =>
            known.exists(column => column.exprId == a.exprId || column.exprId == b.exprId)
          )
          others :+ same.foldLeft(Set(a, b))(_ ++ _)
        }
    )

  private def pairs(plan: LogicalPlan): Seq[(Attribute, Attribute)] = plan match {
    case Project(list, child) =>
      list.collect { case alias @ Alias(column: Attribute, _) => alias.toAttribute -> column } ++
        pairs(child)
    case Filter(condition, child) => equated(condition) ++ pairs(child)
    case Join(left, right, _: InnerLike, condition, _) =>
      condition.toSeq.flatMap(equated) ++ pairs(left) ++ pairs(right)
    case _ => Nil
  }

  private def equated(condition: Expression): Seq[(Attribute, Attribute)] =
    Selectivity.conjuncts(condition).collect { case EqualTo(a: Attribute, b: Attribute) =>
      a -> b
    }
}
