package io.selinger.estimate

import io.selinger.core.{Origin, Quantity}
import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, ExprId, Expression}
import org.apache.spark.sql.types.NumericType

/**
 * What is believed of the rows that an operator returns. Three numbers, for three questions:
 *
 * @param rows the expected number, for comparing costs
 * @param high a number that would be surprising to exceed, for decisions that lose if it is: a
 *   predicate counts as keeping everything unless rows were counted
 * @param bound a number that cannot be exceeded, for decisions that must not go wrong
 * @param columns statistics of output columns, where known
 * @param measuredRowBytes width of a row as measured, where these rows exist already
 * @param nullsCounted whether null fractions are counts of just these rows: those of a whole
 *   relation say nothing certain of a part of it, or of rows that a join repeats
 */
final case class PlanEstimate(
    rows: Quantity,
    high: Double,
    bound: Option[Double],
    columns: Map[ExprId, ColumnStatistics] = Map.empty,
    measuredRowBytes: Option[Double] = None,
    nullsCounted: Boolean = false
) {

  require(!rows.value.isNaN && rows.value >= 0 && !rows.value.isInfinite, s"rows = ${rows.value}")

  def column(expression: Expression): Option[ColumnStatistics] =
    PlanEstimate.columnOf(expression).flatMap(attribute => columns.get(attribute.exprId))

  /** Distinct values of an expression, at most one a row; `None` where nothing bounds them. */
  def distinct(expression: Expression): Option[Double] =
    column(expression).flatMap(_.distinct).map(d => math.max(1.0, math.min(d, rows.value)))

  /** The same plan with other rows: `high` and `bound` stay consistent with them. */
  def withRows(rows: Quantity, high: Double, bound: Option[Double]): PlanEstimate = {
    val most = bound.getOrElse(PlanEstimate.most)
    // Never zero, unless it is certain: a product of small shares is no proof.
    val expected = math.min(math.max(rows.value, 1.0), most)
    copy(
      rows = Quantity(expected, rows.origin),
      high = math.min(math.max(high, expected), most),
      bound = bound,
      nullsCounted = false
    )
  }

  /** Whether the width of a row is measured or computed from statistics of every column. */
  def widthIsKnown(output: Seq[Attribute]): Boolean =
    measuredRowBytes.isDefined || RowSize.isKnown(output, columns)

  /** Bytes of one row of `output` in Spark's row format. */
  def rowBytes(output: Seq[Attribute]): Double =
    measuredRowBytes.getOrElse(RowSize.of(output, columns))
}

object PlanEstimate {

  /** Products of estimates stay finite: no plan is larger. */
  val most: Double = 1e18

  def exactly(
      rows: Double,
      origin: Origin,
      columns: Map[ExprId, ColumnStatistics] = Map.empty
  ): PlanEstimate =
    PlanEstimate(Quantity(rows, origin), rows, Some(rows), columns)

  /** The column whose every value an expression shows, if need be in a wider type. */
  def columnOf(expression: Expression): Option[Attribute] = expression match {
    case attribute: Attribute => Some(attribute)
    case cast: Cast =>
      (cast.child.dataType, cast.dataType) match {
        case (from, to) if from == to => columnOf(cast.child)
        // A narrower type turns values into others, into null, or into errors.
        case (from: NumericType, to: NumericType) if Cast.canUpCast(from, to) =>
          columnOf(cast.child)
        case _ => None
      }
    case _ => None
  }
}
