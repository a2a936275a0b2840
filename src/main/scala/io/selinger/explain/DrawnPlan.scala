package io.selinger.explain

import io.selinger.core.{JoinSymbol, Quantity, RowTree}
import org.apache.spark.sql.catalyst.plans.RightOuter
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** A physical plan as it is now, with the rows of its operators as far as they are known, to be drawn. */
private[explain] object DrawnPlan {

  private val operators = "selectJoinOperator"

  def of(root: SparkPlan): RowTree = {
    val tree = new DrawnPlan(CountedInput.estimates(root).map { case (key, (_, evidence)) =>
      def rows(name: String) =
        evidence.find(_.name == name).map(found => Quantity(found.value, found.origin))
      key -> (rows("left rows"), rows("right rows"))
    }).of(root)
    // Counters are 0 before a query runs.
    if (hasRows(tree)) tree else withoutRows(tree)
  }

  private def hasRows(tree: RowTree): Boolean =
    tree.rows.exists(_ > 0.0) || tree.inputs.exists(hasRows)

  private def withoutRows(tree: RowTree): RowTree =
    tree.copy(rows = None, isReduced = false, inputs = tree.inputs.map(withoutRows))
}

/** @param expected rows of both sides of joins, by the keys of their decisions */
private final class DrawnPlan(expected: Map[String, (Option[Quantity], Option[Quantity])]) {
  import DrawnPlan.operators

  def of(plan: SparkPlan): RowTree = plan match {
    case adaptive: AdaptiveSparkPlanExec => of(adaptive.executedPlan)
    case stage: QueryStageExec => of(stage.plan)
    case command: CommandResultExec => of(command.commandPhysicalPlan)
    case codegen: WholeStageCodegenExec => of(codegen.child)
    case input: InputAdapter => of(input.child)
    case reused: ReusedExchangeExec => node(reused, Seq(of(reused.child)))
    case join: BaseJoinExec =>
      val rows =
        PlanDecisions.ofNode(join).find(_.rule == operators).map(_.key).flatMap(expected.get)
      val sides = Seq(
        side(join.left, rows.flatMap(_._1)),
        side(join.right, rows.flatMap(_._2))
      )
      // A right outer join is a left one, sides exchanged: the symbol points to the second.
      node(join, if (join.joinType == RightOuter) sides.reverse else sides)
        .copy(symbol = Some(JoinSymbol.of(join.joinType)))
    case other => node(other, other.children.map(of))
  }

  private def side(plan: SparkPlan, rows: Option[Quantity]): RowTree =
    of(plan).copy(estimated = rows, isReduced = CountedInput.Rows.isReduced(plan))

  private def node(plan: SparkPlan, inputs: Seq[RowTree]): RowTree =
    RowTree(
      plan.nodeName.trim,
      table = ScanNames.of(plan),
      rows = CountedInput.Rows.counted(plan),
      inputs = inputs ++ plan.subqueries.map(of)
    )
}
