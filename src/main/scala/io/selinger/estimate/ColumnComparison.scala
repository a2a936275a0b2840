package io.selinger.estimate

import org.apache.spark.sql.catalyst.expressions._

/** `a < b` and its like between two columns: how often one uniform value is below another. */
private[estimate] object ColumnComparison {

  def of(comparison: BinaryComparison, input: PlanEstimate): Option[Selectivity] =
    comparison match {
      case LessThan(left, right) => below(left, right, input)
      case LessThanOrEqual(left, right) => below(left, right, input)
      case GreaterThan(left, right) => below(right, left, input)
      case GreaterThanOrEqual(left, right) => below(right, left, input)
      case _ => None
    }

  private def below(left: Expression, right: Expression, input: PlanEstimate) =
    for {
      low <- input.column(left)
      high <- input.column(right)
      (from, to) <- low.min.zip(low.max)
      (start, end) <- high.min.zip(high.max)
      share = probability(from, to, start, end)
      if !share.isNaN
    } yield {
      val present = Seq(low, high).map(c => 1.0 - c.nullFraction.getOrElse(0.0)).product
      Selectivity.derived(share * present)
    }

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
