package io.selinger.rule

import io.selinger.core.RaisedErrors
import org.apache.spark.sql.catalyst.expressions.{Alias, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.ExistenceJoin
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{
  DYNAMIC_PRUNING_EXPRESSION,
  JOIN,
  PLAN_EXPRESSION
}
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/**
 * A plan that returns every value that some keys have on one side of a join, and maybe more, and that can
 * be computed a second time with the same rows.
 *
 * @param keys those of the other side of the join, each with its value over the columns of `plan`
 */
private[rule] final case class KeySource(plan: LogicalPlan, keys: Seq[(Expression, Expression)]) {

  /** The keys alone, in their order. */
  def columns: Project = columnsOf(plan, identity)

  /** The same of a copy of the plan, for another place of the query. */
  def columnsOfCopy: LogicalPlan = PlanCopy.of(plan) match {
    case Some(copy) =>
      val columns = columnsOf(copy.plan, copy.over)
      // A scan leaves out by itself what nobody needs; a join does not.
      if (plan.containsPattern(JOIN)) TidyPlan(columns) else columns
    case None => throw new IllegalStateException(s"no copy can be made of ${plan.nodeName}")
  }

  private def columnsOf(plan: LogicalPlan, over: Expression => Expression) =
    Project(keys.map { case (_, value) => Alias(over(value), "key")() }, plan)
}

private[rule] object KeySource {

  /**
   * The side itself, and the parts of it that its keys come from: the operators above them may drop or
   * repeat rows, but never add a key, except null.
   */
  def in(side: LogicalPlan, keys: Seq[(Expression, Expression)]): Seq[KeySource] =
    from(side, keys).filter(source => isRepeatable(source.plan))

  private def from(plan: LogicalPlan, keys: Seq[(Expression, Expression)]): Seq[KeySource] =
    plan match {
      case _ if keys.isEmpty => Nil
      // It has the same rows as its input.
      case Project(list, child) if originsOf(keys)(KeyOrigins.below(list, _)).size == keys.size =>
        from(child, originsOf(keys)(KeyOrigins.below(list, _)))
      // Its input has more rows, and takes as long to read.
      case Filter(_, child) => KeySource(plan, keys) +: below(child, keys)
      case _ => KeySource(plan, keys) +: below(plan, keys)
    }

  private def below(
      plan: LogicalPlan,
      keys: Seq[(Expression, Expression)]
  ): Seq[KeySource] = plan match {
    case Project(list, child) => from(child, originsOf(keys)(KeyOrigins.below(list, _)))
    case Filter(_, child) => from(child, keys)
    case limit: WindowGroupLimit => from(limit.child, keys)
    case aggregate: Aggregate =>
      from(aggregate.child, originsOf(keys)(KeyOrigins.belowGroups(aggregate, _)))
    case Window(_, _, _, child, _) =>
      from(child, keys.filter(_._2.references.subsetOf(child.outputSet)))
    case join: Join =>
      from(join.left, originsOf(keys)(KeyOrigins.onSide(join, left = true, _))) ++
        from(join.right, originsOf(keys)(KeyOrigins.onSide(join, left = false, _)))
    case _ => Nil
  }

  private def originsOf(keys: Seq[(Expression, Expression)])(
      origin: Expression => Option[Expression]
  ): Seq[(Expression, Expression)] =
    keys.flatMap { case (own, value) => origin(value).map(own -> _) }

  /**
   * Whether it has the same rows, and raises no error, when it is computed once more. A limit takes
   * others, and sums of floating-point numbers may differ in their last digits.
   */
  private def isRepeatable(plan: LogicalPlan): Boolean =
    plan.deterministic && !plan.isStreaming && !RaisedErrors.mayRaise(plan) &&
      !plan.exists(mayChange)

  private def mayChange(operator: LogicalPlan): Boolean = operator match {
    case _ if operator.containsAnyPattern(PLAN_EXPRESSION, DYNAMIC_PRUNING_EXPRESSION) => true
    case aggregate: Aggregate =>
      aggregate.aggregateExpressions.exists(_.exists(_.isInstanceOf[AggregateExpression]))
    // Parts of it may be computed again when they are read.
    case cached: InMemoryRelation =>
      val plan = cached.cacheBuilder.logicalPlan
      !plan.deterministic || plan.exists(mayChange)
    // Its column has an id that cannot be given another one.
    case Join(_, _, _: ExistenceJoin, _, _) => true
    case _: Project | _: Filter | _: Join | _: SubqueryAlias | _: View | _: LeafNode => false
    case _ => true
  }
}
