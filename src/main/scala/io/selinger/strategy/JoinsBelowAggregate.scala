package io.selinger.strategy

import io.selinger.core.PlanFact
import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._

/** Which joins feed an aggregation, and by which of their columns it groups. */
object JoinsBelowAggregate extends PlanFact[IdentityHashMap[Join, AttributeSet]] {

  /** The columns that an aggregation above this join of the present plan groups by, if any. */
  def groupedBy(join: Join): Option[AttributeSet] = Option(current.get(join))

  override private[selinger] def unknown: IdentityHashMap[Join, AttributeSet] =
    new IdentityHashMap[Join, AttributeSet]()

  override private[selinger] def compute(root: LogicalPlan): IdentityHashMap[Join, AttributeSet] = {
    val found = unknown
    root.foreach {
      case aggregate: Aggregate if aggregate.groupingExpressions.nonEmpty =>
        val columns = AttributeSet(aggregate.groupingExpressions.flatMap(_.references))
        below(aggregate.child, columns).foreach { case (join, sources) => found.put(join, sources) }
      case _ => ()
    }
    found
  }

  private def below(plan: LogicalPlan, columns: AttributeSet): Seq[(Join, AttributeSet)] =
    plan match {
      case Project(list, child) =>
        val sources = list.flatMap {
          case alias: Alias if columns.contains(alias.toAttribute) => alias.references.toSeq
          case attribute: Attribute if columns.contains(attribute) => Seq(attribute)
          case _ => Nil
        }
        below(child, AttributeSet(sources))
      case Filter(_, child) => below(child, columns)
      case join: Join => (join -> columns) +: join.children.flatMap(below(_, columns))
      case _ => Nil
    }
}
