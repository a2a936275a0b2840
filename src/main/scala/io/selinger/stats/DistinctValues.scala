package io.selinger.stats

import org.apache.spark.sql.types.DataType

/**
 * Distinct values of a column of a whole relation, from what is known of parts of it. Pure
 * functions; all numbers of values and rows leave nulls out.
 */
object DistinctValues {

  /**
   * Best source first: counts of some chunks, then the steps between the smallest and the largest
   * value. Never more than the rows, nor than these steps.
   */
  def estimate(
      kind: DataType,
      rows: Double,
      column: ColumnStatistics,
      chunks: Seq[ChunkDistinct]
  ): Option[Double] = {
    val range = for (low <- column.min; high <- column.max) yield (low, high)
    val domain = range.flatMap { case (low, high) => NumericAxis.domain(low, high, kind) }
    val counted = Option.when(chunks.nonEmpty)(merged(chunks, rows, range, domain))
    val most = math.min(math.max(1.0, rows), domain.getOrElse(Double.MaxValue))
    column.distinct.orElse(counted).orElse(domain).map(math.min(_, most))
  }

  /**
   * Distinct values of `rows` rows, of which the `chunks` are a part at even distances.
   *
   * The axis is cut into tiles as wide as the average chunk's range: one tile where all chunks have
   * the same range, as many as there are chunks where the column is sorted. Tiles share no value,
   * so their counts add. [[together]] estimates what the chunks of one tile have in common.
   */
  def merged(
      chunks: Seq[ChunkDistinct],
      rows: Double,
      range: Option[(Double, Double)],
      domain: Option[Double]
  ): Double = {
    val perChunk = math.max(1.0, mean(chunks.map(_.rows)))
    val copies = math.max(1.0, rows / perChunk)
    val widths = chunks.flatMap(c => for (low <- c.min; high <- c.max) yield high - low)
      .filterNot(width => width.isNaN || width.isInfinite)
    val tiles = range match {
      case Some((low, high))
          if widths.size == chunks.size && high > low && !(high - low).isInfinite =>
        math.min(copies, math.max(1.0, (high - low) / mean(widths)))
      case _ => 1.0
    }
    val seen = chunks.map(_.values)
    val most = math.min(math.max(1.0, rows), domain.getOrElse(Double.MaxValue))
    val total = tiles * together(seen, perChunk, copies / tiles, domain.map(_ / tiles))
    math.min(most, math.max(seen.max, total))
  }

  /**
   * Distinct values of `copies` chunks that draw from the same values.
   *
   *   - as many values as rows: a key, which grows with the rows;
   *   - the chunks count the same: they have seen all there is. Random draws from a larger domain
   *     would differ, by [[scatter]];
   *   - otherwise they are draws from the domain, and more draws find more of it;
   *   - a domain that is almost empty (hashed keys, say) proves neither, so the middle is taken.
   *
   * @param seen values in each chunk that was counted
   */
  private def together(
      seen: Seq[Double],
      perChunk: Double,
      copies: Double,
      domain: Option[Double]
  ): Double = {
    val average = mean(seen)
    def closed = seen.max
    if (copies < 1.5) average
    else if (average >= 0.999 * perChunk) average * copies
    else
      domain match {
        case Some(size) if average >= 0.99 * size => size
        case Some(size) =>
          val draws = -math.log1p(-average / size)
          val grown = -size * math.expm1(-draws * copies)
          if (variance(seen) <= 0.02 * scatter(size, draws)) closed
          else if (average < 0.01 * size) math.sqrt(closed * grown)
          else grown
        // Most rows have their own value: random draws say from how many.
        case None if average > 0.5 * perChunk =>
          val rows = perChunk * copies
          drawn(source(average, perChunk), rows)
        case None => closed
      }
  }

  /** Distinct values that `rows` draws from `size` equally likely ones find, on average. */
  def drawn(size: Double, rows: Double): Double =
    if (size.isInfinite) rows else math.min(rows, -size * math.expm1(-rows / size))

  /** Equally likely values of which `rows` draws find `values`: the inverse of [[drawn]]. */
  def source(values: Double, rows: Double): Double =
    if (values >= rows) Double.PositiveInfinity
    else if (drawn(values * 1e9, rows) <= values) values * 1e9
    else bisect(values, values * 1e9)(drawn(_, rows) < values)

  /** Where `below` ends to hold, on a logarithmic scale. */
  private def bisect(low: Double, high: Double)(below: Double => Boolean): Double = {
    val (found, _) = (0 until 60).foldLeft((low, high)) { case ((from, to), _) =>
      val middle = math.sqrt(from * to)
      if (below(middle)) (middle, to) else (from, middle)
    }
    found
  }

  /** Variance of the number of values found by `draws` draws for each of `size` values. */
  private def scatter(size: Double, draws: Double): Double = {
    val missed = math.exp(-draws)
    math.max(0.0, size * missed * (1.0 - (1.0 + draws) * missed))
  }

  /**
   * Distinct values of `rows` rows from a sample of them: Duj1 of Haas and Stokes, "Estimating the
   * Number of Classes in a Finite Population", JASA 1998, which PostgreSQL uses as well.
   *
   * @param values in the sample
   * @param once those among them that the sample has once
   */
  def extrapolated(sample: Double, values: Double, once: Double, rows: Double): Double =
    if (sample >= rows || sample <= 0) values
    else {
      val estimate = sample * values / (sample - once + once * sample / rows)
      math.min(rows, math.max(values, estimate))
    }

  private def mean(values: Seq[Double]): Double = values.sum / values.size

  private def variance(values: Seq[Double]): Double =
    if (values.size < 2) 0.0
    else {
      val average = mean(values)
      values.map(value => (value - average) * (value - average)).sum / (values.size - 1)
    }
}
