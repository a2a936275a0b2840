package io.selinger.core

import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan, LogicalPlanIntegrity}
import org.apache.spark.sql.execution.{BinaryExecNode, SparkPlan}
import org.apache.spark.sql.execution.exchange.ValidateRequirements
import org.apache.spark.sql.types.DataType

/**
 * What is wrong with a plan that a rule returned. The cheap checks run always: the same output, the
 * same commands, every column that an operator reads is there, in subqueries too, no id for two
 * columns. On physical plans also that columns are read as the types that they have. Under
 * `failOnError` also that no column is newly said never to be null, and Spark's other checks.
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
      Some(s"the output changed from ${described(before.output)} to ${described(after.output)}")
    } else {
      // What was wrong with the input already is not the fault of the rule.
      CommandIntegrity
        .problemOf(before, after)
        .orElse(missing(after, missingIn(before)))
        .orElse {
          invalid(before, after, thorough).filter(_ => invalid(before, before, thorough).isEmpty)
        }
        .orElse(if (thorough) newlyCertain(before, after) else None)
    }

  /**
   * References may still say that a column can be null where Spark has found since that it cannot: a text
   * that was cast to a number, say, and has become a literal.
   */
  private def newlyCertain(before: LogicalPlan, after: LogicalPlan): Option[String] =
    nullability(before.output, after.output).filter { _ =>
      nullability(UpdateAttributeNullability(before).output, after.output).isDefined
    }

  /** Columns that operators read and their inputs do not return. */
  private def missingIn(plan: QueryPlan[_]): AttributeSet =
    AttributeSet.fromAttributeSets(operators(plan).map(_.missingInput))

  private def missing(plan: QueryPlan[_], known: => AttributeSet): Option[String] =
    operators(plan).collectFirst {
      case node if node.missingInput.nonEmpty && !node.missingInput.subsetOf(known) =>
        s"${node.nodeName} reads ${node.missingInput.mkString(", ")}, which its input does not return"
    }

  /** Those of subqueries included. */
  private def operators(plan: QueryPlan[_]): Seq[QueryPlan[_]] =
    plan.collectWithSubqueries { case node: QueryPlan[_] => node }

  private def invalid(
      before: LogicalPlan,
      plan: LogicalPlan,
      thorough: Boolean
  ): Option[String] =
    LogicalPlanIntegrity
      .validateNoDanglingReferences(plan)
      .orElse(LogicalPlanIntegrity.hasUniqueExprIdsForOutput(plan))
      .orElse {
        if (thorough) LogicalPlanIntegrity.validateOptimizedPlan(before, plan, lightweight = false)
        else None
      }

  private def signature(plan: LogicalPlan) =
    plan.output.map(attribute => (attribute.exprId, attribute.name, attribute.dataType))

  private def described(output: Seq[Attribute]): String =
    output.map(column => s"$column: ${column.dataType.sql}").mkString("[", ", ", "]")

  /** A column that may be null must not be said never to be: code that Spark generates relies on it. */
  private def nullability(before: Seq[Attribute], after: Seq[Attribute]): Option[String] =
    before.zip(after).collectFirst {
      case (b, a) if b.nullable && !a.nullable => s"$a can be null and is said never to be"
    }

  /** The same for operators that a strategy returned for a logical one. */
  def problemOf(expected: LogicalPlan, plan: SparkPlan): Option[String] =
    physical(expected.output, AttributeSet.empty, plan, expected.exists(sharesIds))
      .orElse(CommandIntegrity.problemOf(expected, plan))

  /** The same for a rule on physical plans, whose operators must have their rows where they need them. */
  def problemOf(before: SparkPlan, after: SparkPlan, thorough: Boolean): Option[String] =
    if (after eq before) None
    else {
      physical(before.output, missingIn(before), after, mistaken(before).nonEmpty)
        .orElse(CommandIntegrity.problemOf(before, after))
        .orElse(if (thorough) misplaced(before, after) else None)
    }

  private def misplaced(before: SparkPlan, after: SparkPlan): Option[String] =
    nullability(before.output, after.output).orElse {
      Option.when(ValidateRequirements.validate(before) && !ValidateRequirements.validate(after)) {
        "an operator's input is not distributed or sorted as it requires"
      }
    }

  private def physical(
      expected: Seq[Attribute],
      known: => AttributeSet,
      plan: SparkPlan,
      wasMistaken: => Boolean
  ): Option[String] = {
    def columns(output: Seq[Attribute]) = output.map(column => (column.exprId, column.dataType))
    if (columns(plan.output) != columns(expected)) {
      Some(s"the output changed from ${described(expected)} to ${described(plan.output)}")
    } else missing(plan, known).orElse(mistaken(plan).filterNot(_ => wasMistaken))
  }

  /** Spark itself joins a plan with a copy that has the same ids, where it has copied a subquery. */
  private def sharesIds(plan: LogicalPlan): Boolean = plan match {
    case Join(left, right, _, _, _) => left.outputSet.intersect(right.outputSet).nonEmpty
    case _ => false
  }

  /** A column that is read as another type than it has, or whose id both inputs of a join have. */
  private def mistaken(plan: SparkPlan): Option[String] =
    operators(plan).iterator
      .flatMap { node =>
        val inputs = node.children.map(_.asInstanceOf[QueryPlan[_]])
        val types = inputs.flatMap(_.output).map(column => column.exprId -> column.dataType).toMap
        val retyped = node.references.find { column =>
          types.get(column.exprId).exists(!DataType.equalsStructurally(_, column.dataType, true))
        }
        def repeated = node match {
          case join: BinaryExecNode =>
            join.left.outputSet.intersect(join.right.outputSet).headOption
          case _ => None
        }
        retyped
          .map(column => s"${node.nodeName} reads $column as another type than its input returns")
          .orElse(repeated.map(column => s"both inputs of ${node.nodeName} return $column"))
      }
      .nextOption()
}
