package io.selinger.estimate

import io.selinger.core.{OneToOne, Origin, Quantity}
import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions.{Attribute, Cast, ExprId, Expression}
import org.apache.spark.sql.types.NumericType

/**
 * What is believed of the rows that an operator returns. Three numbers, for three questions:
 *
 * @param rows the expected number, for comparing costs
 * @param upperBound the upper confidence bound of the rows, for decisions that lose if there are more.
 *   Where a sample tells, rows exceed it once in a thousand times (99.9 %, one-sided: see
 *   [[io.selinger.stats.SampledShare.upperBound]]). Rows that were counted are their own bound; rows of
 *   a relation that are only extrapolated, or known from Spark, count twice. Where nothing tells, a
 *   predicate keeps everything and a join returns the product of its sides. Each operator contributes
 *   its own bound: no confidence is claimed for a whole plan
 * @param bound a number that cannot be exceeded, for decisions that must not go wrong; at least
 *   `upperBound`
 * @param columns statistics of output columns, where known
 * @param measuredRowBytes width of a row as measured, where these rows exist already
 * @param nullsCounted whether null fractions are counts of just these rows: those of a whole
 *   relation say nothing certain of a part of it, or of rows that a join repeats
 * @param domains of columns that come from a relation: see [[Domain]]
 * @param sourceRows rows of each relation (by [[Domain.relation]]) that are left, each counted once
 *   however often joins repeat it
 * @param nullSupplied of columns on the null-supplied side of an outer join, the expected share of
 *   rows in which the join has made them null
 * @param determinants functional dependencies: for a relation (by [[Domain.relation]]) of which a join
 *   finds at most one row by its key, the columns that the key is compared with. They determine all
 *   columns of that relation
 * @param fanOut the upper bound of how often a row of a relation occurs here: see
 *   [[joins.KeyDegrees]]. Nothing is known of relations that it does not name
 * @param extremes columns with the least or the largest value that a group has in a column of that
 *   name
 */
final case class PlanEstimate(
    rows: Quantity,
    upperBound: Double,
    bound: Option[Double],
    columns: Map[ExprId, ColumnStatistics] = Map.empty,
    measuredRowBytes: Option[Double] = None,
    nullsCounted: Boolean = false,
    domains: Map[ExprId, Domain] = Map.empty,
    sourceRows: Map[Long, Double] = Map.empty,
    nullSupplied: Map[ExprId, Double] = Map.empty,
    determinants: Map[Long, Seq[Attribute]] = Map.empty,
    fanOut: Map[Long, Double] = Map.empty,
    extremes: Map[ExprId, String] = Map.empty
) {

  require(!rows.value.isNaN && rows.value >= 0 && !rows.value.isInfinite, s"rows = ${rows.value}")

  /** Statistics of a column, or of what an expression makes of one. */
  def column(expression: Expression): Option[ColumnStatistics] =
    PlanEstimate.columnOf(expression) match {
      case Some(attribute) => columns.get(attribute.exprId)
      case None => ComputedColumn.statistics(expression, this)
    }

  /** The domain of the only column that an expression depends on. */
  def domain(expression: Expression): Option[Domain] =
    PlanEstimate.columnOf(expression) match {
      case Some(attribute) => domains.get(attribute.exprId)
      case None if expression.references.size == 1 =>
        domains.get(expression.references.head.exprId).map { known =>
          // Other values than the column's: of these there is neither sample nor sketch.
          val others = known.copy(
            values = None,
            sample = None,
            keys = None,
            unique = false,
            reductions = Map.empty
          )
          column(expression).flatMap(_.distinct).fold(others)(others.atMost)
        }
      case None => None
    }

  /** This estimate of a relation, as the origin of its columns' values. */
  def asRelation(output: Seq[Attribute]): PlanEstimate =
    if (domains.nonEmpty || output.isEmpty) this
    else {
      val relation = output.head.exprId.id
      copy(
        domains = output
          .map(c =>
            c.exprId -> Domain(columns.get(c.exprId).flatMap(_.distinct), rows.value, relation)
          )
          .toMap,
        sourceRows = Map(relation -> rows.value),
        fanOut = Map(relation -> 1.0)
      )
    }

  /** Distinct values of an expression, at most one a row; `None` where nothing bounds them. */
  def distinct(expression: Expression): Option[Double] =
    column(expression).flatMap(_.distinct).map(d => math.max(1.0, math.min(d, rows.value)))

  /** The share of the rows that a single one is. */
  def oneRow: Double = 1.0 / math.max(1.0, rows.value)

  /** The same rows with no nulls in a column. */
  def without(nullsOf: Attribute): PlanEstimate = {
    val known = columns.getOrElse(nullsOf.exprId, ColumnStatistics())
    copy(
      columns = columns.updated(nullsOf.exprId, known.copy(nullFraction = Some(0.0))),
      nullSupplied = nullSupplied - nullsOf.exprId
    )
  }

  /** The same rows with just so many values in a column, and no nulls. */
  def atMost(column: Attribute, count: Int): PlanEstimate = {
    val rest = without(nullsOf = column)
    val known = rest.columns(column.exprId)
    val distinct = math.max(1.0, math.min(known.distinct.getOrElse(count.toDouble), count.toDouble))
    rest.copy(
      columns = rest.columns
        .updated(column.exprId, known.copy(distinct = Some(distinct), frequent = Nil)),
      domains = rest.domains ++
        rest.domains.get(column.exprId).map(column.exprId -> _.atMost(count.toDouble))
    )
  }

  /** The same rows without samples: they occur another number of times than in their relations. */
  def unsampled: PlanEstimate =
    copy(domains = domains.map { case (id, domain) => id -> domain.copy(sample = None) })

  /** The same plan with other rows: `upperBound` and `bound` stay consistent with them. */
  def withRows(rows: Quantity, upperBound: Double, bound: Option[Double]): PlanEstimate = {
    val most = bound.getOrElse(PlanEstimate.most)
    // Never zero, unless it is certain: a product of small shares is no proof.
    val expected = math.min(math.max(rows.value, 1.0), most)
    copy(
      rows = Quantity(expected, rows.origin),
      upperBound = math.min(math.max(upperBound, expected), most),
      bound = bound,
      nullsCounted = false
    )
  }

  /** Whether the width of a row is measured or computed from statistics of every column. */
  def widthIsKnown(output: Seq[Attribute]): Boolean =
    measuredRowBytes.isDefined || RowSize.isKnown(output, columns)

  /** Bytes of one row of `output` in Spark's row format. */
  def rowBytes(output: Seq[Attribute]): Double =
    measuredRowBytes.getOrElse(RowSize.bytes(output, columns))
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

  /** The column whose every value an expression shows, if need be in a wider type, or by a number. */
  def columnOf(expression: Expression): Option[Attribute] = expression match {
    case attribute: Attribute => Some(attribute)
    case same: OneToOne => columnOf(same.value)
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
