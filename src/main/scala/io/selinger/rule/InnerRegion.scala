package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Cross, Inner, InnerLike}
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Inner joins, filters and projections, taken apart: the rows of all relations side by side that fulfil all
 * conditions. Conditions and columns that can raise errors, or have subqueries, stay in the relations.
 *
 * @param relations in the order written
 * @param conditions over columns of the relations, each once
 * @param columns of the plan, each with its value over columns of the relations
 * @param hints of the joins
 */
private[rule] final case class InnerRegion(
    relations: Seq[LogicalPlan],
    conditions: Seq[Expression],
    columns: Seq[(Attribute, Expression)],
    hints: Seq[JoinHint]
) {

  private val values = AttributeMap(columns)

  /** An expression over columns of the plan, over those of the relations. */
  def over(expression: Expression): Expression =
    expression.transformUp { case column: Attribute => values.getOrElse(column, column) }

  /** Whether columns of different relations have different ids. */
  def hasOwnColumns: Boolean = {
    val ids = relations.flatMap(_.output.map(_.exprId))
    ids.distinct.size == ids.size
  }
}

private[rule] object InnerRegion {

  def of(plan: LogicalPlan): InnerRegion = {
    val parts = visit(plan)
    InnerRegion(
      parts.relations,
      ExpressionSets.distinct(parts.conditions),
      plan.output.map(column => column -> parts.over(column)),
      parts.hints
    )
  }

  private final case class Parts(
      relations: Seq[LogicalPlan],
      conditions: Seq[Expression] = Nil,
      values: Map[ExprId, Expression] = Map.empty,
      hints: Seq[JoinHint] = Nil
  ) {
    // From below, since what takes the place of a column may have a column of the same id.
    def over(expression: Expression): Expression =
      if (values.isEmpty) expression
      else
        expression.transformUp { case column: Attribute =>
          values.getOrElse(column.exprId, column)
        }

    def filtered(condition: Expression): Parts =
      copy(conditions = conditions ++ Selectivity.conjuncts(over(condition)))
  }

  private def visit(plan: LogicalPlan): Parts = plan match {
    case Filter(condition, child) if RaisedErrors.isSafe(condition) =>
      visit(child).filtered(condition)
    case Project(list, child) if list.forall(RaisedErrors.isSafe) =>
      val below = visit(child)
      val computed = list.collect { case alias: Alias => alias.exprId -> below.over(alias.child) }
      below.copy(values = below.values ++ computed)
    case Join(left, right, _: InnerLike, condition, hint)
        if condition.forall(RaisedErrors.isSafe) =>
      val (a, b) = (visit(left), visit(right))
      val both = Parts(
        a.relations ++ b.relations,
        a.conditions ++ b.conditions,
        a.values ++ b.values,
        a.hints ++ b.hints :+ hint
      )
      condition.fold(both)(both.filtered)
    case relation => Parts(Seq(relation))
  }

  /** Relations joined in an order in which conditions connect each with those before it, where there is one. */
  def joined(relations: Seq[LogicalPlan], conditions: Seq[Expression]): LogicalPlan = {
    val numbered = relations.toIndexedSeq
    val connecting = conditions.flatMap(placesIn(numbered, _)).filter(_.size > 1)
    def add(joined: LogicalPlan, places: Set[Int], left: Seq[Int]): LogicalPlan =
      if (left.isEmpty) joined
      else {
        val connected =
          left.find(i => connecting.exists(tested => tested(i) && tested.subsetOf(places + i)))
        val next = connected.getOrElse(left.head)
        // Where cross products are forbidden, Spark lets those pass that are called so.
        val joinType = if (connected.isDefined) Inner else Cross
        add(
          Join(joined, numbered(next), joinType, None, JoinHint.NONE),
          places + next,
          left.filterNot(_ == next)
        )
      }
    conditions.reduceOption(And(_, _)).foldLeft(
      add(numbered.head, Set(0), numbered.indices.tail)
    )((plan, condition) => Filter(condition, plan))
  }

  /** The relations of which a condition has columns; none where it has others as well. */
  private def placesIn(
      relations: IndexedSeq[LogicalPlan],
      condition: Expression
  ): Option[Set[Int]] = {
    val places = condition.references.toSeq.map { column =>
      relations.indexWhere(_.outputSet.contains(column))
    }
    Option.when(!places.contains(-1))(places.toSet)
  }
}
