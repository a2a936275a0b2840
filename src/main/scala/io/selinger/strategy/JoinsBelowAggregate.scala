package io.selinger.strategy

import org.apache.spark.sql.catalyst.expressions.{Alias, Attribute, AttributeSet}
import org.apache.spark.sql.catalyst.plans.logical._

/** Which joins feed an aggregation, and by which of their columns it groups. */
object JoinsBelowAggregate {

  def of(aggregate: Aggregate): Seq[(Join, AttributeSet)] =
    if (aggregate.groupingExpressions.isEmpty) Nil
    else below(aggregate.child, AttributeSet(aggregate.groupingExpressions.flatMap(_.references)))

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
