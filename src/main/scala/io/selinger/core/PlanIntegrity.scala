package io.selinger.core

import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, LogicalPlanIntegrity}
import org.apache.spark.sql.execution.SparkPlan

/**
 * What is wrong with a plan that a rule returned. The cheap checks run always: the same output, every
 * column that an operator reads is there, no id for two columns. Under `failOnError` Spark's other
 * checks of optimized plans run as well. A problem that was there before the rule ran is not its own.
 */
object PlanIntegrity {

  /** @param thorough also run the checks that take long on large plans */
  def problemOf(
      before: LogicalPlan,
      after: LogicalPlan,
      thorough: Boolean
  ): Option[String] =
    if (after eq before) None
    else if (!after.resolved && before.resolved) Some("the result is not resolved")
    else if (signature(after) != signature(before)) {
      Some(s"the output changed from ${described(before)} to ${described(after)}")
    } else {
      // A plan that Spark's checks refuse already is not the fault of the rule that passes it on.
      checks(thorough).iterator.flatMap { check =>
        check(after).filter(_ => check(before).isEmpty)
      }.nextOption()
    }

  private def checks(thorough: Boolean): Seq[LogicalPlan => Option[String]] = {
    val cheap = Seq[LogicalPlan => Option[String]](
      LogicalPlanIntegrity.validateNoDanglingReferences(_),
      LogicalPlanIntegrity.hasUniqueExprIdsForOutput(_)
    )
    def all(plan: LogicalPlan) =
      LogicalPlanIntegrity.validateOptimizedPlan(plan, plan, lightweight = false)
    if (thorough) cheap :+ all _ else cheap
  }

  private def signature(plan: LogicalPlan) =
    plan.output.map(attribute => (attribute.exprId, attribute.name, attribute.dataType))

  private def described(plan: LogicalPlan): String =
    plan.output.map(column => s"$column: ${column.dataType.sql}").mkString("[", ", ", "]")

  /** The same for operators that a strategy or a rule on physical plans returned. */
  def problemOf(expected: LogicalPlan, plan: SparkPlan): Option[String] =
    physical(expected, expected.output, plan)

  def problemOf(before: SparkPlan, after: SparkPlan): Option[String] =
    if (after eq before) None else physical(before, before.output, after)

  private def physical(
      before: QueryPlan[_],
      output: Seq[Attribute],
      plan: SparkPlan
  ): Option[String] = {
    def columns(of: Seq[Attribute]) = of.map(column => (column.exprId, column.dataType))
    if (columns(plan.output) != columns(output)) {
      Some(s"the output changed from $output to ${plan.output}")
    } else {
      // What was missing before is not the fault of the rule.
      lazy val missing = AttributeSet.fromAttributeSets(before.collect { case node: QueryPlan[_] =>
        node.missingInput
      })
      plan.collectFirst {
        case node if node.missingInput.exists(!missing.contains(_)) =>
          val lost = node.missingInput.filterNot(missing.contains).mkString(", ")
          s"${node.nodeName} reads $lost, which its input does not return"
      }
    }
  }
}
