package io.selinger.rule

import io.selinger.estimate.plans.{FileColumn, FileColumns}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * One side of an inner or a semi join, whose rows look up a key among all rows of a table.
 *
 * @param rows the side whose rows look it up
 * @param table the other side
 * @param key of `rows`
 * @param tableKey of `table`
 * @param all the column of files that has the values of `tableKey`
 */
private[rule] final case class Lookup(
    rows: LogicalPlan,
    table: LogicalPlan,
    key: Attribute,
    tableKey: Attribute,
    all: FileColumn
) {

  /** Whether each row is proven to have a match, unless its key is null. */
  def findsAll: Boolean = ProvenKeys.areAmong(key, rows, all)

  /** Whether it is plain from the plan that the key is null in no row. */
  def hasNoNulls: Boolean = !key.nullable || rows.constraints.contains(IsNotNull(key))
}

private[rule] object Lookup {

  /** None where a condition, a filter of the table, or anything else may leave a row without a match. */
  def of(join: Join, fromLeft: Boolean): Option[Lookup] = {
    val (rows, table) = sides(join, fromLeft)
    keysOf(join, fromLeft) match {
      case Seq((own, other)) if join.condition.exists(_.isInstanceOf[EqualTo]) =>
        for {
          key <- FileColumns.renamed(own)
          tableKey <- FileColumns.renamed(other)
          all <- allRows(table, tableKey, rows, key)
        } yield Lookup(rows, table, key, tableKey, all)
      case _ => None
    }
  }

  /** A side of a join, and the other one. */
  def sides(join: Join, fromLeft: Boolean): (LogicalPlan, LogicalPlan) =
    if (fromLeft) (join.left, join.right) else (join.right, join.left)

  /** What is compared for equality: of that side, and of the other one. */
  def keysOf(join: Join, fromLeft: Boolean): Seq[(Expression, Expression)] =
    ProvenKeys.comparedBy(join).map(pair => if (fromLeft) pair else pair.swap)

  /**
   * The column of files that `column` is, where `plan` has all its values, but for those that join with no
   * row of `kept` anyway.
   */
  private def allRows(
      plan: LogicalPlan,
      column: Attribute,
      kept: LogicalPlan,
      key: Attribute
  ): Option[FileColumn] = plan match {
    case Project(list, child) =>
      ProvenKeys.renamed(column, list).flatMap(allRows(child, _, kept, key))
    case Filter(condition, child) =>
      def isImplied(predicate: Expression) = predicate match {
        case IsNotNull(known: Attribute) if known.exprId == column.exprId => true
        case other =>
          val ofKept =
            other.transform { case known: Attribute if known.exprId == column.exprId => key }
          other.references.forall(_.exprId == column.exprId) && other.deterministic &&
          column.dataType == key.dataType && kept.constraints.contains(ofKept)
      }
      if (Selectivity.conjuncts(condition).forall(isImplied)) allRows(child, column, kept, key)
      else None
    // Each value has a group.
    case aggregate: Aggregate =>
      ProvenKeys.renamed(column, aggregate.aggregateExpressions)
        .filter(ExpressionSets.has(aggregate.groupingExpressions, _))
        .flatMap(allRows(aggregate.child, _, kept, key))
    case FileRelation(relation) =>
      relation.plan.output.find(_.exprId == column.exprId).map(FileColumn(relation, _))
    case _ => None
  }
}
