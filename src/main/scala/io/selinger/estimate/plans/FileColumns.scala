package io.selinger.estimate.plans

import io.selinger.stats.NumericAxis
import io.selinger.stats.files.FooterReader
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

/** A column of files. */
final case class FileColumn(relation: FileRelation, column: Attribute)

/** From which columns of files the values of a plan's columns come. These are proofs, not estimates. */
object FileColumns {

  /**
   * Columns of files such that each value of `column` in the rows of `plan` is null or a value of one of
   * them. `None` where a value may come from elsewhere.
   */
  def origins(column: Attribute, plan: LogicalPlan): Option[Seq[FileColumn]] = plan match {
    case Project(list, child) => ofResult(column, list, child)
    case aggregate: Aggregate =>
      ofResult(column, aggregate.aggregateExpressions, aggregate.child)
    case union: Union =>
      val place = union.output.indexWhere(_.exprId == column.exprId)
      all(union.children.map(child => child.output.lift(place).flatMap(origins(_, child))))
    case FileRelation(relation) =>
      relation.plan.output.find(_.exprId == column.exprId).map(found =>
        Seq(FileColumn(relation, found))
      )
    // A column of the same id has the values of the child, or is null.
    case _: Filter | _: Join | _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset | _: Distinct |
        _: RepartitionOperation | _: Window | _: WindowGroupLimit | _: Sample | _: SubqueryAlias =>
      all(plan.children.filter(_.outputSet.contains(column)).map(origins(column, _)))
        .filter(_.nonEmpty)
    case _ => None
  }

  private def ofResult(
      column: Attribute,
      results: Seq[NamedExpression],
      child: LogicalPlan
  ): Option[Seq[FileColumn]] = all(results.filter(_.exprId == column.exprId).map {
    case Alias(value, _) => renamed(value).flatMap(origins(_, child))
    case other => renamed(other).flatMap(origins(_, child))
  }).filter(_.nonEmpty)

  /** The column that a value is, or from which it is cast to a wider type of whole numbers. */
  def renamed(value: Expression): Option[Attribute] = value match {
    case column: Attribute => Some(column)
    case Cast(child, to, _, _)
        if NumericAxis.isWhole(to) && NumericAxis.isWhole(child.dataType) &&
          child.dataType.defaultSize <= to.defaultSize =>
      renamed(child)
    case _ => None
  }

  private def all(found: Seq[Option[Seq[FileColumn]]]): Option[Seq[FileColumn]] =
    if (found.exists(_.isEmpty)) None else Some(found.flatMap(_.toSeq.flatten))

  /**
   * Whether the footers of all files prove that no value of the column is less than `least` or more than
   * `most`. Only for whole numbers.
   */
  def liesWithin(column: FileColumn, least: Long, most: Long): Boolean = {
    // Wider numbers of a file wrap around where they are read as narrower ones.
    val bits = 8 * column.column.dataType.defaultSize - 1
    val (low, high) = (math.max(least, -1L << bits), math.min(most, ~(-1L << bits)))
    // Beyond these, doubles are no longer exact.
    val isExact = math.max(math.abs(least.toDouble), math.abs(most.toDouble)) < exactBelow
    NumericAxis.isWhole(column.column.dataType) && isExact &&
    ReadFooterStatistics.ofAllFiles(column.relation, Nil).exists { files =>
      files.rows.value == 0.0 ||
      files.columns.get(FooterReader.columnName(column.column.name)).exists(known =>
        known.isWhole && known.min.exists(_ >= low.toDouble) && known.max.exists(_ <= high.toDouble)
      )
    }
  }

  private val exactBelow = (1L << 53).toDouble
}
