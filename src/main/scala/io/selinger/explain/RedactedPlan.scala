package io.selinger.explain

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec
import org.apache.spark.sql.execution.joins.{BaseJoinExec, BroadcastNestedLoopJoinExec, HashJoin}

/**
 * A physical plan without values. It is built from what is known to be harmless (classes of operators,
 * names of functions, of tables and of their columns, types) rather than by searching Spark's text for
 * literals, which may be anywhere there: in names of columns, in file names, in pushed filters.
 */
private[explain] object RedactedPlan {

  private val mostExpressions = 40
  private val mostDepth = 60

  def lines(root: SparkPlan): Seq[String] = new RedactedPlan(root).of(root, depth = 0)

  private def columnsOf(plan: SparkPlan): Seq[Attribute] = plan match {
    case adaptive: AdaptiveSparkPlanExec => columnsOf(adaptive.executedPlan)
    case stage: QueryStageExec => columnsOf(stage.plan)
    case command: CommandResultExec => columnsOf(command.commandPhysicalPlan)
    case scan: FileSourceScanExec => scan.output
    case scan: BatchScanExec => scan.output
    case other => (other.children ++ other.subqueries).flatMap(columnsOf)
  }
}

private[explain] final class RedactedPlan(root: SparkPlan) {
  import RedactedPlan._

  // Columns of tables only: Spark names others after the expression, with its literals.
  private val names: Map[ExprId, String] =
    columnsOf(root).map(column => column.exprId -> column.name).toMap

  private def of(plan: SparkPlan, depth: Int): Seq[String] = plan match {
    case adaptive: AdaptiveSparkPlanExec =>
      val state = if (adaptive.isFinalPlan) "as it ran" else "not final"
      line(depth, s"AdaptiveSparkPlan ($state)") +: of(adaptive.executedPlan, depth + 1)
    case stage: QueryStageExec =>
      line(depth, kind(stage)) +: of(stage.plan, depth + 1)
    case command: CommandResultExec =>
      line(depth, kind(command)) +: of(command.commandPhysicalPlan, depth + 1)
    case codegen: WholeStageCodegenExec => of(codegen.child, depth)
    case input: InputAdapter => of(input.child, depth)
    case other =>
      val subqueries = other.subqueries.flatMap { subquery =>
        line(depth + 1, "Subquery") +: of(subquery, depth + 2)
      }
      line(depth, node(other)) +: (subqueries ++ other.children.flatMap(of(_, depth + 1)))
  }

  private def line(depth: Int, text: String): String = "  " * math.min(depth, mostDepth) + text

  private def kind(plan: SparkPlan): String = plan.getClass.getSimpleName.stripSuffix("Exec")

  private def node(plan: SparkPlan): String = {
    val what = plan match {
      case join: HashJoin => Seq(join.joinType.toString, join.buildSide.toString)
      case join: BroadcastNestedLoopJoinExec =>
        Seq(join.joinType.toString, join.buildSide.toString)
      case join: BaseJoinExec => Seq(join.joinType.toString)
      case scan: FileSourceScanExec =>
        Seq(
          scan.relation.fileFormat.getClass.getSimpleName,
          ScanNames.of(scan).fold("")(BugReport.withoutValues)
        )
      case _ => Nil
    }
    val expressions = plan.expressions.take(mostExpressions).map(shape(_, 0))
    val more = if (plan.expressions.size > mostExpressions) Seq("…") else Nil
    (kind(plan) +: what).mkString(" ") + (expressions ++ more).mkString(" [", ", ", "]")
  }

  private def shape(expression: Expression, depth: Int): String = expression match {
    case _ if depth > mostDepth => "…"
    case literal: Literal => s"?:${literal.dataType.typeName}"
    case column: Attribute =>
      s"${names.getOrElse(column.exprId, "")}#${column.exprId.id}"
    case alias: Alias => s"${shape(alias.child, depth + 1)} AS #${alias.exprId.id}"
    case cast: Cast => s"cast(${shape(cast.child, depth + 1)} as ${cast.dataType.typeName})"
    case binary: BinaryOperator =>
      s"(${shape(binary.left, depth + 1)} ${binary.symbol} ${shape(binary.right, depth + 1)})"
    case other =>
      val name = other.getClass.getSimpleName.stripSuffix("$")
      if (other.children.isEmpty) name
      else
        other.children.take(mostExpressions).map(shape(_, depth + 1)).mkString(s"$name(", ", ", ")")
  }
}
