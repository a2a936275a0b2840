package io.selinger.stats

import io.selinger.core.PlanningPass
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, ExprId, Expression}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, LogicalPlan}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * The columns that a plan joins or groups by. A leaf cannot know them, and how many values these
 * have matters most.
 */
object KeyColumns {

  private final case class Keys(ids: Set[ExprId], all: Boolean = false)

  /** Remembers those of the plan that is about to be planned. */
  def note(root: LogicalPlan): Unit = PlanningPass.current.note(this, Keys(of(root)))

  /** Those of the plan that is being planned. */
  def current: Set[ExprId] = PlanningPass.current.noted[Keys](this).fold(Set.empty[ExprId])(_.ids)

  /** Asks for these columns in this pass, also for those whose values dictionaries count. */
  def ask(ids: Set[ExprId]): Unit = PlanningPass.current.note(this, Keys(ids, all = true))

  /** Whether values are wanted of columns that have been counted, too. */
  def askedForAll: Boolean = PlanningPass.current.noted[Keys](this).exists(_.all)

  private[stats] def of(root: LogicalPlan): Set[ExprId] = {
    val plans = everything(root)
    val keys = plans.flatMap {
      case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => left ++ right
      case aggregate: Aggregate => aggregate.groupingExpressions
      case _ => Nil
    }
    val renamed = plans.iterator
      .filterNot(_.isInstanceOf[Join])
      .flatMap(_.expressions)
      .flatMap(_.collect { case alias @ Alias(child, _) => alias.exprId -> ids(child) })
      .toMap
    sources(keys.flatMap(ids).toSet, renamed)
  }

  private def everything(plan: LogicalPlan): Seq[LogicalPlan] = plan.collect {
    case stage: LogicalQueryStage => stage +: everything(stage.logicalPlan)
    case other => Seq(other)
  }.flatten

  private def ids(expression: Expression): Set[ExprId] =
    expression.references.iterator.map((attribute: Attribute) => attribute.exprId).toSet

  /** With the columns that these are computed from, however often they are renamed. */
  private def sources(found: Set[ExprId], renamed: Map[ExprId, Set[ExprId]]): Set[ExprId] = {
    val more = found ++ found.flatMap(id => renamed.getOrElse(id, Set.empty[ExprId]))
    if (more.size == found.size) found else sources(more, renamed)
  }
}
