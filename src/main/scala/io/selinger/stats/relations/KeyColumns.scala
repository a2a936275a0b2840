package io.selinger.stats.relations

import io.selinger.core.{PlanFact, PlanningPass}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import scala.collection.mutable

/**
 * @param keys columns of joins and groups
 * @param mentioned these, and the columns of predicates, partitions and distinct rows
 */
final case class KeyColumnIds(keys: Set[ExprId], mentioned: Set[ExprId])

/**
 * The columns that a plan joins, groups by or filters on. A leaf cannot know them, and how many
 * values these have matters most.
 */
object KeyColumns extends PlanFact[KeyColumnIds] {

  override private[selinger] def unknown: KeyColumnIds = KeyColumnIds(Set.empty, Set.empty)

  /** Goes on in this pass as if a plan joined by these columns. */
  def ask(ids: Set[ExprId]): Unit = PlanningPass.current.assume(this, KeyColumnIds(ids, ids))

  /** Keys of the plan that is being planned. */
  def keys: Set[ExprId] = current.keys

  /** All columns of the plan that is being planned whose number of values says something. */
  def mentioned: Set[ExprId] = current.mentioned

  override private[selinger] def compute(root: LogicalPlan): KeyColumnIds = {
    val plans = everything(root)
    val keys = plans.flatMap {
      case join: Join => join.condition.toSeq.flatMap(compared)
      case aggregate: Aggregate => aggregate.groupingExpressions
      case _ => Nil
    }
    val others = plans.flatMap {
      case Filter(condition, _) => Seq(condition)
      case join: Join => join.condition.toSeq
      case window: Window => window.partitionSpec
      case limit: WindowGroupLimit => limit.partitionSpec
      case Distinct(child) => child.output
      case _ => Nil
    }
    val computed = plans.flatMap(computedFrom).groupMapReduce(_._1)(_._2)(_ ++ _)
    val ofKeys = ColumnIds.named(keys)
    KeyColumnIds(
      ColumnIds.withSources(ofKeys, computed),
      ColumnIds.withSources(ofKeys ++ ColumnIds.named(others), computed)
    )
  }

  private def compared(condition: Expression): Seq[Expression] = {
    val found = mutable.ListBuffer.empty[Expression]
    def add(conjunct: Expression): Unit = conjunct match {
      case And(left, right) =>
        add(left)
        add(right)
      case Equality(left, right) if !left.foldable && !right.foldable =>
        val _ = found ++= Seq(left, right)
      case _ => ()
    }
    add(condition)
    found.toList
  }

  /** What an operator computes, from what. */
  private def computedFrom(plan: LogicalPlan): Seq[(ExprId, Set[ExprId])] = plan match {
    case _: Join | _: Filter => Nil
    case union: Union =>
      union.output.zipWithIndex.map { case (column, i) =>
        column.exprId -> union.children.map(_.output(i).exprId).toSet
      }
    case expand: Expand =>
      expand.output.zipWithIndex.map { case (column, i) =>
        column.exprId -> expand.projections.flatMap(list => ColumnIds.named(Seq(list(i)))).toSet
      }
    case other =>
      other.expressions.flatMap(_.collect { case alias @ Alias(child, _) =>
        alias.exprId -> ColumnIds.named(Seq(child))
      })
  }

  private def everything(plan: LogicalPlan): Seq[LogicalPlan] = plan.collect {
    case stage: LogicalQueryStage => stage +: everything(stage.logicalPlan)
    case other => Seq(other)
  }.flatten
}
