package io.selinger.estimate.plans

import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.files.FooterReader
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}

/** Ranges that no value of a column leaves, as the footers of all files that a plan reads say. */
object ExactRange {

  /**
   * Of a column of a relation below `plan`, on the axis of [[io.selinger.stats.ColumnStatistics]].
   * Unlike an estimate it may decide whether an error is possible: files are known by path, length and
   * modification time, and the plan reads just these.
   */
  def of(column: Attribute, plan: LogicalPlan): Option[(Double, Double)] =
    for {
      (relation, predicates) <- sourceOf(column, plan)
      statistics <- ReadFooterStatistics.read(relation, predicates)
      // All footers were read.
      _ <- statistics.bound
      known <- statistics.columns.get(FooterReader.columnName(column.name))
      low <- known.min
      high <- known.max
    } yield (low, high)

  private def sourceOf(
      column: Attribute,
      plan: LogicalPlan
  ): Option[(FileRelation, Seq[Expression])] = plan match {
    case _ if !plan.children.exists(_.outputSet.contains(column)) && plan.children.nonEmpty => None
    case Filter(condition, FileRelation(relation)) =>
      Some((relation, Selectivity.conjuncts(condition)))
    case FileRelation(relation) if plan.outputSet.contains(column) => Some((relation, Nil))
    case _ => plan.children.find(_.outputSet.contains(column)).flatMap(sourceOf(column, _))
  }
}
