package io.selinger.estimate.predicates

import io.selinger.stats.{ColumnStatistics, FrequentValue, NumericAxis}

/**
 * How often single values of a column occur, where some are known to be frequent: each of these has
 * the share that was counted, and all others have equal shares of the rest.
 *
 * @param shares of the rows without nulls, by [[FrequentValues.key]]
 * @param each of the other values' share
 */
private[estimate] final case class FrequentValues(shares: Map[Any, Double], each: Double) {

  def shareOf(value: Any): Double = shares.getOrElse(FrequentValues.key(value), each)

  /** Share of the rows whose value is none of those that are frequent. */
  val rest: Double = math.max(0.0, 1.0 - shares.values.sum)
}

private[estimate] object FrequentValues {

  /** @param distinct values of the column, if known */
  def fromColumn(column: ColumnStatistics, distinct: Option[Double]): Option[FrequentValues] =
    Option.when(column.frequent.nonEmpty) {
      val shares = column.frequent.map(f => key(f.value) -> Selectivity.clamp(f.share)).toMap
      val rest = math.max(0.0, 1.0 - shares.values.sum)
      // None of the others is more frequent than the least frequent one of those that are.
      val others = distinct.map(_ - shares.size).filter(_ >= 1).map(rest / _)
      FrequentValues(shares, math.min(shares.values.min, others.getOrElse(rest)))
    }

  /** The same for equal values of types that Spark compares with each other. */
  def key(value: Any): Any = NumericAxis.place(value).getOrElse(value)

  /** What predicates leave of those values, with their shares of what is left. */
  def within(column: ColumnStatistics, share: Double)(
      inside: FrequentValue => Boolean
  ): Seq[FrequentValue] =
    column.frequent.filter(inside).map(f =>
      f.copy(share = Selectivity.clamp(f.share / math.max(share, f.share)))
    )

  /**
   * Share of the pairs of rows that have equal keys: those of values that are frequent on either side,
   * and those of all others, which are as rare as if there were `size` values.
   */
  def equalShare(
      left: ColumnStatistics,
      right: ColumnStatistics,
      size: Double
  ): Option[Double] =
    for {
      leftValues <- fromColumn(left, Some(size))
      rightValues <- fromColumn(right, Some(size))
    } yield {
      val heavy = (leftValues.shares.keySet ++ rightValues.shares.keySet).toSeq
      def shares(values: FrequentValues) = heavy.map(v => values.shares.getOrElse(v, values.each))
      val (l, r) = (shares(leftValues), shares(rightValues))
      val frequent = l.zip(r).map { case (a, b) => a * b }.sum
      val others = math.max(0.0, 1.0 - l.sum) * math.max(0.0, 1.0 - r.sum)
      Selectivity.clamp(frequent + others / math.max(1.0, size - heavy.size))
    }
}
