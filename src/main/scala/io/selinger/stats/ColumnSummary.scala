package io.selinger.stats

import java.nio.ByteBuffer
import java.util.stream.IntStream
import org.apache.spark.unsafe.types.UTF8String
import scala.jdk.CollectionConverters._

/**
 * What some sampled values of a column amount to.
 *
 * @param rows sampled
 * @param nulls among them
 * @param distinct values other than null
 * @param once those among them that occur once
 * @param frequent values that occur much more often than the others
 * @param averageBytes of values of variable width
 * @param low the smallest place of a value on the axis of [[ColumnStatistics]]
 * @param high the largest
 * @param alike how much the values of a row group of the relation are alike, 0 to 1
 */
final case class ColumnSummary(
    rows: Int,
    nulls: Int,
    distinct: Int,
    once: Int,
    frequent: Seq[FrequentValue],
    averageBytes: Option[Double],
    low: Option[Double] = None,
    high: Option[Double] = None,
    alike: Double = 0.0
) {

  /** Share of rows that are null. */
  def nullFraction: Double = if (rows == 0) 0.0 else nulls.toDouble / rows

  /**
   * Ends of the values that these were sampled from: as far outside as sampled values are apart on
   * average.
   *
   * @param draws that are independent of each other, among the values sampled
   */
  def range(draws: Int): Option[(Double, Double)] =
    for (l <- low; h <- high if !l.isInfinite && !h.isInfinite) yield {
      val apart = (h - l) / math.max(1, math.min(draws, rows - nulls) - 1)
      (l - apart, h + apart)
    }

  /**
   * Distinct values in all `total` rows. A sorted column has other values elsewhere than where the
   * sample was taken.
   *
   * @param covered share of the rows that the sample was spread over
   */
  def distinctOf(total: Double, covered: Double = 1.0): Double =
    if (alike < ColumnSummary.leastSorted || covered <= 0 || covered >= 1) distinctAmong(total)
    else math.min(total, distinctAmong(total * covered) / covered)

  private def distinctAmong(total: Double): Double = {
    val present = (rows - nulls).toDouble
    DistinctValues.extrapolated(
      present,
      distinct.toDouble,
      once.toDouble,
      math.max(present, total * (1.0 - nullFraction))
    )
  }
}

object ColumnSummary {

  // Intraclass correlation of ranks, from which row groups hardly share values.
  private val leastSorted = 0.9

  // PostgreSQL keeps a hundred; more than some ten rarely matter to a plan.
  private val mostFrequent = 20
  // Rarer ones may be in a sample by chance.
  private val leastOccurrences = 10
  // As much more often than the average value, a value counts as frequent.
  private val leastSkew = 2.0

  def summarize(values: Iterator[Any]): ColumnSummary = {
    val counts = new java.util.HashMap[Any, Count]()
    var (rows, nulls) = (0, 0)
    values.foreach { value =>
      rows += 1
      if (value == null) nulls += 1 else counts.computeIfAbsent(key(value), newCount).rows += 1
    }
    val summary = new Builder(rows, rows - nulls, counts.size)
    counts.forEach((value, count) => summary.add(value, count.rows))
    val places = counts.keySet.asScala.iterator.flatMap(NumericAxis.place(_)).toArray
    summary.result(places.minOption, places.maxOption)
  }

  /**
   * The same where it is known which values are equal; only one of each is looked at.
   *
   * @param rows of which some have no value
   * @param sorted places of those with a value, those of equal values together
   * @param isSame whether the values at two places are equal
   */
  def ofRuns(
      rows: Int,
      sorted: Array[Int],
      isSame: (Int, Int) => Boolean,
      column: ColumnSample
  ): ColumnSummary = {
    val starts = IntStream
      .range(0, sorted.length)
      .filter(i => i == 0 || !isSame(sorted(i - 1), sorted(i)))
      .toArray
    val summary = new Builder(rows, sorted.length, starts.length)
    val ends = column.byGroup.map(new Ends(_))
    var run = 0
    while (run < starts.length) {
      val next = if (run + 1 < starts.length) starts(run + 1) else sorted.length
      val place = sorted(starts(run))
      val group = column.groupOf(place)
      val i = place - column.starts(group)
      ends(group).add(i)
      summary.add(column.byGroup(group), i, next - starts(run))
      run += 1
    }
    summary.result(ends.flatMap(_.low).minOption, ends.flatMap(_.high).maxOption)
  }

  /** Adds up distinct values, each with the rows that have it. */
  private final class Builder(rows: Int, present: Int, distinct: Int) {
    private val least =
      math.max(leastOccurrences.toDouble, leastSkew * present / math.max(1, distinct))
    private val frequent = Seq.newBuilder[(Any, Int)]
    private var once = 0
    private var bytes = 0L
    private var sized = false

    /** The `i`-th of `values`. Of numbers few are looked at, since an object is made for that. */
    def add(values: IndexedSeq[Any], i: Int, often: Int): Unit = values match {
      case _: OrderedNumbers if often < least => if (often == 1) once += 1
      case _ => add(values(i), often)
    }

    def add(value: Any, often: Int): Unit = {
      if (often == 1) once += 1
      if (often >= least) frequent += value -> often
      val width = widthOf(value)
      if (width >= 0) {
        sized = true
        bytes += width.toLong * often
      }
    }

    def result(low: Option[Double], high: Option[Double]): ColumnSummary = ColumnSummary(
      rows,
      rows - present,
      distinct,
      once,
      frequent
        .result()
        // Of bytes no value is kept.
        .filterNot { case (value, _) => value.isInstanceOf[ByteBuffer] }
        .sortBy { case (value, often) => (-often, value.toString) }
        .take(mostFrequent)
        .map { case (value, often) => FrequentValue(value, often.toDouble / present) },
      Option.when(sized && present > 0)(bytes.toDouble / present),
      low,
      high
    )
  }

  /** The least and the largest of some values; numbers are compared without objects. */
  private final class Ends(values: IndexedSeq[Any]) {
    private var (least, most) = (-1, -1)
    private var (from, to) = (Double.PositiveInfinity, Double.NegativeInfinity)
    private var hasPlaces = false

    def add(i: Int): Unit = values match {
      case numbers: OrderedNumbers =>
        if (least < 0 || numbers.number(i) < numbers.number(least)) least = i
        if (most < 0 || numbers.number(i) > numbers.number(most)) most = i
      case _ =>
        NumericAxis.place(values(i)).foreach { place =>
          hasPlaces = true
          from = math.min(from, place)
          to = math.max(to, place)
        }
    }

    def low: Option[Double] =
      if (least >= 0) NumericAxis.place(values(least)) else Option.when(hasPlaces)(from)

    def high: Option[Double] =
      if (most >= 0) NumericAxis.place(values(most)) else Option.when(hasPlaces)(to)
  }

  private final class Count {
    var rows = 0
  }

  private val newCount: java.util.function.Function[Any, Count] = _ => new Count

  /** Equal for equal values. */
  private def key(value: Any): Any = value match {
    case bytes: Array[Byte] => ByteBuffer.wrap(bytes)
    case other => other
  }

  /** Bytes of a value of variable width, -1 for others. */
  private def widthOf(value: Any): Int = value match {
    case text: UTF8String => text.numBytes
    case bytes: ByteBuffer => bytes.remaining
    case _ => -1
  }
}
