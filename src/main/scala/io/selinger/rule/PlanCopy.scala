package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/** A plan that is equal to another one, with new ids of its columns, for another place of a query. */
private[rule] final class PlanCopy private (val plan: LogicalPlan, ids: Map[ExprId, ExprId]) {

  /** Where a column of the original is. */
  def column(original: Attribute): Attribute =
    original.withExprId(ids.getOrElse(original.exprId, original.exprId))

  /** An expression over the original's columns, over those of the copy. */
  def over(expression: Expression): Expression = expression.transform {
    case original: Attribute => column(original)
  }
}

private[rule] object PlanCopy {

  /** None where an operator has columns that cannot be given other ids. */
  def of(plan: LogicalPlan): Option[PlanCopy] = {
    val ids = plan
      .flatMap(node => node.output ++ node.expressions.flatMap(_.collect { case a: Alias => a }))
      .map(_.exprId)
      .distinct
      .map(_ -> NamedExpression.newExprId)
      .toMap
    def idOf(column: NamedExpression) = ids.getOrElse(column.exprId, column.exprId)
    val copy = plan.transformAllExpressions {
      case column: Attribute => column.withExprId(idOf(column))
      case alias: Alias =>
        Alias(alias.child, alias.name)(
          idOf(alias),
          alias.qualifier,
          alias.explicitMetadata,
          alias.nonInheritableMetadataKeys
        )
    }
    Option.when(
      copy.resolved && copy.sameResult(plan) && copy.outputSet.intersect(plan.outputSet).isEmpty
    )(new PlanCopy(copy, ids))
  }
}
