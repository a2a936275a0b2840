package io.selinger.core

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, LogicalPlanIntegrity}
import org.apache.spark.sql.execution.SparkPlan

/**
 * What is wrong with a plan that a rule returned. The cheap checks run always: the same output, every
 * column that an operator reads is there, no id for two columns. Under `failOnError` Spark's other
 * checks of optimized plans run as well.
 */
object PlanIntegrity {

  /** @param thorough also run the checks that take long on large plans */
  def problemOf(
      before: LogicalPlan,
      after: LogicalPlan,
      thorough: Boolean
  ): Option[String] =
    if (after eq before) None
    else if (!after.resolved) Some("the result is not resolved")
    else if (signature(after) != signature(before)) {
      Some(s"the output changed from ${described(before)} to ${described(after)}")
    } else {
      LogicalPlanIntegrity
        .validateNoDanglingReferences(after)
        .orElse(LogicalPlanIntegrity.hasUniqueExprIdsForOutput(after))
        .orElse {
          if (thorough) {
            LogicalPlanIntegrity.validateOptimizedPlan(before, after, lightweight = false)
          } else None
        }
    }

  private def signature(plan: LogicalPlan) =
    plan.output.map(attribute => (attribute.exprId, attribute.name, attribute.dataType))

  private def described(plan: LogicalPlan): String =
    plan.output.map(column => s"$column: ${column.dataType.sql}").mkString("[", ", ", "]")

  /** The same for operators that a strategy or a rule on physical plans returned. */
  def problemOf(expected: LogicalPlan, plan: SparkPlan): Option[String] =
    physical(expected.output.map(c => (c.exprId, c.dataType)), expected.output.toString, plan)

  def problemOf(before: SparkPlan, after: SparkPlan): Option[String] =
    if (after eq before) None
    else physical(before.output.map(c => (c.exprId, c.dataType)), before.output.toString, after)

  private def physical(output: Seq[Any], described: String, plan: SparkPlan): Option[String] =
    if (plan.output.map(column => (column.exprId, column.dataType)) != output) {
      Some(s"the output changed from $described to ${plan.output}")
    } else {
      plan.collectFirst {
        case node if node.missingInput.nonEmpty =>
          s"${node.nodeName} reads ${node.missingInput.mkString(", ")}, which its input does not return"
      }
    }
}
