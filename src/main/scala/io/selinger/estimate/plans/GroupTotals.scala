package io.selinger.estimate.plans

import io.selinger.estimate.{ComputedColumn, PlanEstimate}
import io.selinger.stats.{ColumnStatistics, Quantiles}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types.NumericType

/**
 * The distribution of counts, sums and averages over groups, for conditions on them (HAVING): a normal
 * distribution with the mean and the variance that follow from those of the column. Groups are taken to
 * be as large as if each row belonged to a random one.
 */
private[estimate] object GroupTotals {

  /**
   * @param rows of an average group
   * @param input what is grouped
   */
  def distribution(expression: Expression, rows: Double, input: PlanEstimate): Option[Quantiles] =
    expression match {
      case AggregateExpression(function, _, false, None, _) =>
        function match {
          case Count(Seq(value)) => counts(present(value, rows, input))
          case Sum(value, _) => total(value, rows, input)
          case Average(value, _) =>
            momentsOf(value, input).flatMap(m => normalDistribution(m.mean, m.variance / rows))
          case _ => None
        }
      // As Spark adds up decimals of few digits.
      case MakeDecimal(
            AggregateExpression(Sum(UnscaledValue(value), _), _, false, None, _),
            _,
            _,
            _
          ) =>
        total(value, rows, input)
      case Multiply(ComputedColumn.Place(by), totals, _) => scaled(totals, by, rows, input)
      case Multiply(totals, ComputedColumn.Place(by), _) => scaled(totals, by, rows, input)
      case Divide(totals, ComputedColumn.Place(by), _) => scaled(totals, 1.0 / by, rows, input)
      case Cast(totals, to: NumericType, _, _)
          if totals.dataType.isInstanceOf[NumericType] && Cast.canUpCast(totals.dataType, to) =>
        distribution(totals, rows, input)
      case _ => None
    }

  private def scaled(
      totals: Expression,
      by: Double,
      rows: Double,
      input: PlanEstimate
  ): Option[Quantiles] =
    if (by == 0 || by.isInfinite) None
    else distribution(totals, rows, input).flatMap(_.moved(_ * by))

  private final case class Moments(mean: Double, variance: Double)

  /** A group has a row at least, so that few are not spread as the normal distribution is. */
  private def counts(rows: Double): Option[Quantiles] =
    if (rows < leastCounted) None else normalDistribution(rows, rows)

  private def total(value: Expression, rows: Double, input: PlanEstimate): Option[Quantiles] = {
    val counted = present(value, rows, input)
    momentsOf(value, input).flatMap(m =>
      normalDistribution(counted * m.mean, counted * m.variance + counted * m.mean * m.mean)
    )
  }

  /** Nulls are neither counted nor added. */
  private def present(value: Expression, rows: Double, input: PlanEstimate): Double = {
    val nulls = input.column(value).flatMap(_.nullFraction).getOrElse(0.0)
    val nullSupplied =
      value.references.toSeq.flatMap(c => input.nullSupplied.get(c.exprId)).maxOption.getOrElse(0.0)
    rows * math.max(0.0, 1.0 - math.max(nulls, nullSupplied))
  }

  private def momentsOf(value: Expression, input: PlanEstimate): Option[Moments] =
    input.column(value).flatMap(column =>
      column.quantiles.flatMap(ofQuantiles).orElse(ofRange(column))
    )

  private def ofQuantiles(quantiles: Quantiles): Option[Moments] = {
    val places = (0 until parts).map(i => quantiles.placeOf((i + 0.5) / parts))
    Option.unless(places.exists(_.isInfinite)) {
      val mean = places.sum / parts
      Moments(mean, places.map(p => (p - mean) * (p - mean)).sum / parts)
    }
  }

  private def ofRange(column: ColumnStatistics): Option[Moments] =
    for (low <- column.min; high <- column.max if !low.isInfinite && !high.isInfinite)
      yield Moments((low + high) / 2, (high - low) * (high - low) / 12)

  private def normalDistribution(mean: Double, variance: Double): Option[Quantiles] = {
    val deviation = math.sqrt(variance)
    if (deviation > 0 && !mean.isNaN && !deviation.isInfinite)
      Quantiles.fromPoints(standardNormal.map { case (z, share) =>
        (mean + z * deviation, share, share)
      })
    else None
  }

  private val parts = 50
  private val leastCounted = 5.0

  // Of the standard normal distribution: a place, and the share of values below.
  private val standardNormal: Seq[(Double, Double)] = {
    val upper = Seq(
      0.5 -> 0.3085375,
      1.0 -> 0.1586553,
      1.5 -> 0.0668072,
      2.0 -> 0.0227501,
      2.5 -> 0.0062097,
      3.0 -> 0.0013499,
      3.5 -> 0.0002326,
      4.5 -> 3.4e-6,
      6.0 -> 1e-9
    )
    upper.reverse.map { case (z, above) => (-z, above) } ++ Seq(0.0 -> 0.5) ++
      upper.map { case (z, above) => (z, 1.0 - above) }
  }
}
