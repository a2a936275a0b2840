package io.selinger.core

import org.apache.spark.sql.catalyst.expressions.{Attribute, Literal, PlanExpression}
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.command.{DataWritingCommandExec, ExecutedCommandExec}
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec

/**
 * Whether a rule kept the commands of a plan. They return no columns, so their output cannot tell that
 * a rule dropped one, or made it write somewhere else. And they write columns by position, so the
 * columns of their inputs must stay in their order. A rule may rewrite the inputs of a command and the
 * plans of its subqueries, nothing else of it.
 */
private[core] object CommandIntegrity {

  def problemOf(before: LogicalPlan, after: LogicalPlan): Option[String] =
    compared(commandsOf(before), commandsOf(after))

  def problemOf(before: SparkPlan, after: SparkPlan): Option[String] =
    compared(before.collect(command), after.collect(command))

  /** The same for a strategy: to plan commands is left to Spark. */
  def problemOf(before: LogicalPlan, after: SparkPlan): Option[String] =
    after.collectFirst(command).map(made =>
      s"the command ${made.nodeName} is Spark's to plan"
    ).orElse {
      commandsOf(before).find(_ eq before).map(lost => s"the command ${lost.nodeName} is lost")
    }

  private def commandsOf(plan: LogicalPlan): Seq[LogicalPlan] =
    if (plan.containsPattern(TreePattern.COMMAND)) plan.collect { case node: Command => node }
    // Streams write by operators that Spark does not call commands.
    else if (plan.output.isEmpty && plan.isStreaming) Seq(plan)
    else Nil

  private val command: PartialFunction[SparkPlan, SparkPlan] = {
    case node @ (_: DataWritingCommandExec | _: ExecutedCommandExec | _: V2CommandExec) => node
  }

  private def compared[P <: QueryPlan[P]](before: Seq[P], after: Seq[P]): Option[String] =
    if (before.size != after.size) {
      Some(s"the commands changed from ${named(before)} to ${named(after)}")
    } else before.zip(after).collectFirst(Function.unlift { case (b, a) => problem(b, a) })

  private def named(commands: Seq[QueryPlan[_]]): String =
    commands.map(_.nodeName).mkString("[", ", ", "]")

  private def problem[P <: QueryPlan[P]](before: P, after: P): Option[String] =
    if (before eq after) None
    else if (!isSame(before, after)) Some(s"the command ${before.nodeName} changed")
    else {
      inputs(before).zip(inputs(after)).collectFirst {
        case (b, a) if !areSame(b, a) =>
          s"the columns that ${before.nodeName} reads changed from " +
            s"${b.mkString("[", ", ", "]")} to ${a.mkString("[", ", ", "]")}"
      }
    }

  private def inputs(command: QueryPlan[_]): Seq[Seq[Attribute]] =
    command.children.collect { case input: QueryPlan[_] => input.output }

  private def areSame(before: Seq[Attribute], after: Seq[Attribute]): Boolean =
    before.size == after.size && before.zip(after).forall { case (b, a) =>
      b.exprId == a.exprId && b.name == a.name && b.dataType == a.dataType
    }

  private def isSame[P <: QueryPlan[P]](before: P, after: P): Boolean =
    before.getClass == after.getClass && before.children.size == after.children.size && {
      val other = after.withNewChildren(before.children)
      other == before || withoutSubqueries(other) == withoutSubqueries(before)
    }

  private def withoutSubqueries[P <: QueryPlan[P]](command: P): P =
    command.transformExpressions { case subquery: PlanExpression[_] =>
      Literal(null, subquery.dataType)
    }
}
