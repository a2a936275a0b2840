package io.selinger.rule

import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Cross, Inner}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{
  AGGREGATE,
  CTE,
  PLAN_EXPRESSION,
  SCALAR_SUBQUERY
}

/**
 * Where the result of a subplan is found from now on.
 *
 * @param merged a subquery whose only value is a struct
 * @param columns for each column of the subplan, its place in that struct
 */
private[rule] final case class Replacement(merged: ScalarSubquery, columns: Seq[Int]) {

  def value(column: Int): Expression = GetStructField(merged, columns(column))
}

/**
 * The subplans of a query that may be merged: aggregations without groups, which return one row each.
 * They stand in the place of a value (a scalar subquery) or of a relation. None contains another one,
 * a subquery, or a part of a common table expression.
 */
private[rule] object Subplans {

  /** Name of the struct; what has it is merged already. */
  val mergedName = "selinger_merged"

  /** All of them, in the order of the plan, each object once. */
  def in(plan: LogicalPlan): Seq[Aggregate] = {
    val seen = new IdentityHashMap[LogicalPlan, LogicalPlan]
    visit(plan).filter(found => seen.put(found, found) == null)
  }

  private def visit(plan: LogicalPlan): Seq[Aggregate] =
    if (!plan.containsAnyPattern(AGGREGATE, SCALAR_SUBQUERY)) Nil
    else
      plan match {
        case aggregate: Aggregate if isSubplan(aggregate) => Seq(aggregate)
        case node =>
          val values = node.expressions.flatMap(_.collect { case Value(aggregate) => aggregate })
          values ++ node.children.flatMap(visit)
      }

  /** A scalar subquery that depends on nothing around it. */
  private object Value {
    def unapply(expression: Expression): Option[Aggregate] = expression match {
      case subquery: ScalarSubquery if !subquery.isCorrelated =>
        subquery.plan match {
          case aggregate: Aggregate if isSubplan(aggregate) => Some(aggregate)
          case _ => None
        }
      case _ => None
    }
  }

  private def isSubplan(aggregate: Aggregate): Boolean =
    isGlobal(aggregate) && aggregate.output.nonEmpty &&
      !aggregate.output.exists(_.name == mergedName) &&
      !aggregate.containsAnyPattern(PLAN_EXPRESSION, CTE) &&
      !aggregate.child.exists {
        case inner: Aggregate => isGlobal(inner)
        case _ => false
      }

  private def isGlobal(aggregate: Aggregate): Boolean = aggregate.groupingExpressions.isEmpty

  /** One row with one value: a struct of all columns of `subplan`. */
  def packed(subplan: LogicalPlan): LogicalPlan = {
    val fields = subplan.output.flatMap(column => Seq(Literal(column.name), column))
    Project(Seq(Alias(CreateNamedStruct(fields), mergedName)()), subplan)
  }

  /** The query with other places for results of its subplans. */
  def replaced(plan: LogicalPlan, by: Aggregate => Option[Replacement]): LogicalPlan = {
    val result = plan.transformDown {
      case aggregate: Aggregate if by(aggregate).isDefined => row(aggregate, by(aggregate).get)
      case node =>
        node.transformExpressionsDown { case subquery @ Value(aggregate) =>
          by(aggregate).fold[Expression](subquery)(_.value(0))
        }
    }
    joined(result)
  }

  /** A relation of one row. */
  private def row(aggregate: Aggregate, by: Replacement): LogicalPlan =
    Project(
      aggregate.output.zipWithIndex.map { case (column, i) =>
        val value = if (column.nullable) by.value(i) else KnownNotNull(by.value(i))
        Alias(value, column.name)(
          exprId = column.exprId,
          qualifier = column.qualifier,
          explicitMetadata = Some(column.metadata)
        )
      },
      OneRowRelation()
    )

  /** One row next to one other row is one row. */
  private def joined(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case Join(
          Project(left, _: OneRowRelation),
          Project(right, one: OneRowRelation),
          kind,
          None,
          hint
        )
        if (kind == Inner || kind == Cross) && hint == JoinHint.NONE =>
      Project(left ++ right, one)
  }
}
