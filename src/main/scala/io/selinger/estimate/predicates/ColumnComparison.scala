package io.selinger.estimate.predicates

import io.selinger.estimate.PlanEstimate
import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions._

/** `a < b` and its like between two columns: how often a value of one is below one of the other. */
private[estimate] object ColumnComparison {

  def selectivity(comparison: BinaryComparison, input: PlanEstimate): Option[Selectivity] =
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
      l <- input.column(left)
      r <- input.column(right)
      share <-
        if (l.quantiles.isEmpty && r.quantiles.isEmpty) ofRanges(l, r)
        else ofQuantiles(l, r, ties)
      if !share.isNaN
    } yield {
      val present = Seq(l, r).map(c => 1.0 - c.nullFraction.getOrElse(0.0)).product
      Selectivity.derived(share * present)
    }

  private def ofRanges(left: ColumnStatistics, right: ColumnStatistics): Option[Double] =
    for {
      (from, to) <- left.min.zip(left.max)
      (start, end) <- right.min.zip(right.max)
    } yield probability(from, to, start, end)

  /** From the quantiles of either side, where they are known. */
  private def ofQuantiles(
      left: ColumnStatistics,
      right: ColumnStatistics,
      ties: Double
  ): Option[Double] =
    for (lefts <- placesOf(left); rights <- placesOf(right)) yield {
      val pairs =
        for (l <- lefts; r <- rights) yield if (l < r) 1.0 else if (l == r) ties else 0.0
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
