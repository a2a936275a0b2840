package io.selinger.strategy

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.planning.PhysicalAggregation
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Expand, LogicalPlan, Project}

/**
 * An aggregation by grouping sets: what Spark makes of ROLLUP, CUBE and GROUPING SETS.
 *
 * @param grouping the grouping columns, as the aggregation reads them
 * @param functions aggregate functions over `source`; none where one reads what differs between sets
 * @param results of the aggregation, as Spark's planner computes them
 * @param projections for each grouping set the values of `grouping`, over `source`
 * @param source the rows that Spark would copy
 */
final case class GroupingSetAggregate(
    aggregate: Aggregate,
    grouping: Seq[NamedExpression],
    functions: Option[Seq[AggregateExpression]],
    results: Seq[NamedExpression],
    projections: Seq[Seq[Expression]],
    source: LogicalPlan
) {

  /** Whether each grouping set has columns of the source, or constants. */
  def hasPlainKeys: Boolean = grouping.forall(_.isInstanceOf[Attribute]) &&
    projections.flatten.forall(value => value.isInstanceOf[Attribute] || value.foldable)

  /** The columns of the source by which a grouping set groups. */
  lazy val kept: Seq[AttributeSet] = projections.map(AttributeSet(_))

  /** All of these. */
  lazy val keys: Seq[Attribute] =
    projections.flatten.collect { case key: Attribute => key }.distinctBy(_.exprId)

  /** Whether any set can be computed from another, or from groups of all keys. */
  def differ: Boolean = kept.distinct.size > 1
}

object GroupingSetAggregate {

  // Values of the columns of a plan in each copy of a row of its source.
  private type Copies = Seq[Map[ExprId, Expression]]

  def unapply(plan: LogicalPlan): Option[GroupingSetAggregate] = plan match {
    case aggregate @ Aggregate(_, _, child, hint) if hint.isEmpty && isExpanded(child) =>
      (aggregate, copiesOf(child)) match {
        case (PhysicalAggregation(grouping, functions, results, _), Some((source, copies)))
            if grouping.exists(isGroupingId(_, copies)) =>
          Some(
            GroupingSetAggregate(
              aggregate,
              grouping,
              alike(functions, copies),
              results,
              copies.map(copy => grouping.map(replaced(_, copy))),
              source
            )
          )
        case _ => None
      }
    case _ => None
  }

  /** Cheap, since it is asked for each operator of a plan. */
  def isOverExpand(plan: LogicalPlan): Boolean = plan match {
    case aggregate: Aggregate => isExpanded(aggregate.child)
    case _ => false
  }

  private def isExpanded(plan: LogicalPlan): Boolean = plan match {
    case _: Expand => true
    case Project(_, child) => isExpanded(child)
    case _ => false
  }

  /** Distinct aggregates become copies of rows as well, and have no grouping id of their own. */
  private def isGroupingId(column: NamedExpression, copies: Copies): Boolean =
    column.name == VirtualColumn.groupingIdName &&
      copies.forall(_.get(column.exprId).exists(_.foldable))

  private def copiesOf(plan: LogicalPlan): Option[(LogicalPlan, Copies)] = plan match {
    case Expand(projections, output, child) =>
      Some((child, projections.map(output.map(_.exprId).zip(_).toMap)))
    case Project(list, child) if list.forall(_.deterministic) =>
      copiesOf(child).map { case (source, copies) =>
        (
          source,
          copies.map(copy => list.map(column => column.exprId -> replaced(column, copy)).toMap)
        )
      }
    case _ => None
  }

  private def replaced(column: NamedExpression, copy: Map[ExprId, Expression]): Expression =
    column match {
      case Alias(value, _) => inCopy(value, copy)
      case other => inCopy(other, copy)
    }

  private def inCopy(expression: Expression, copy: Map[ExprId, Expression]): Expression =
    expression.transform { case column: Attribute => copy.getOrElse(column.exprId, column) }

  /** The functions over the source, if all copies of a row have the same values for them. */
  private def alike(
      functions: Seq[AggregateExpression],
      copies: Copies
  ): Option[Seq[AggregateExpression]] = {
    val read = AttributeSet(functions)
    val same = copies.headOption.filter { one =>
      read.forall(column =>
        one.get(column.exprId).exists(value =>
          copies.forall(_.get(column.exprId).exists(_.semanticEquals(value)))
        )
      )
    }
    // Buffers belong to the functions, which stay the same objects where nothing is replaced.
    same.map(copy =>
      functions.map(inCopy(_, copy)).collect { case function: AggregateExpression => function }
    )
  }
}
