package io.selinger.estimate

import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions._

/** `a < b` and its like between two columns: how often a value of one is below one of the other. */
private[estimate] object ColumnComparison {

  def of(comparison: BinaryComparison, input: PlanEstimate): Option[Selectivity] =
    comparison match {
      case LessThan(left, right) => below(left, right, ties = 0.0, input)
      case LessThanOrEqual(left, right) => below(left, right, ties = 1.0, input)
      case GreaterThan(left, right) => below(right, left, ties = 0.0, input)
      case GreaterThanOrEqual(left, right) => below(right, left, ties = 1.0, input)
      case _ => None
    }

  /** @param ties what two equal values count for */
  private def below(left: Expression, right: Expression, ties: Double, input: PlanEstimate) =
    for {
      low <- input.column(left)
      high <- input.column(right)
      share <-
        if (low.quantiles.isEmpty && high.quantiles.isEmpty) evenly(low, high)
        else spread(low, high, ties)
      if !share.isNaN
    } yield {
      val present = Seq(low, high).map(c => 1.0 - c.nullFraction.getOrElse(0.0)).product
      Selectivity.derived(share * present)
    }

  private def evenly(low: ColumnStatistics, high: ColumnStatistics): Option[Double] =
    for {
      (from, to) <- low.min.zip(low.max)
      (start, end) <- high.min.zip(high.max)
    } yield probability(from, to, start, end)

  /** By how the values of either side are spread, where that is known. */
  private def spread(
      low: ColumnStatistics,
      high: ColumnStatistics,
      ties: Double
  ): Option[Double] =
    for (of <- placesOf(low); others <- placesOf(high)) yield {
      val pairs =
        for (one <- of; other <- others)
          yield if (one < other) 1.0 else if (one == other) ties else 0.0
      pairs.sum / pairs.size
    }

  /** Places that divide the values into parts of the same size, in the middle of each. */
  private def placesOf(column: ColumnStatistics): Option[IndexedSeq[Double]] = {
    val shares = (0 until parts).map(i => (i + 0.5) / parts)
    column.quantiles
      .map(quantiles => shares.map(quantiles.placeOf))
      .orElse(column.min.zip(column.max).map { case (from, to) =>
        shares.map(share => from + (to - from) * share)
      })
  }

  private val parts = 32

  /** That a uniform value of [from, to] is below one of [start, end]. */
  private[estimate] def probability(
      from: Double,
      to: Double,
      start: Double,
      end: Double
  ): Double = {
    // The area under the first one's distribution function, up to x.
    def area(x: Double): Double =
      if (x <= from) 0.0
      else if (x >= to) x - (from + to) / 2
      else (x - from) * ((x - from) / (2 * (to - from)))
    if (to <= start) 1.0
    else if (end <= from) 0.0
    else if (end > start) Selectivity.clamp((area(end) - area(start)) / (end - start))
    else Selectivity.clamp((start - from) / (to - from))
  }
}
