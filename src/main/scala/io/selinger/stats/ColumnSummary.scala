package io.selinger.stats

import java.nio.ByteBuffer
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
    var (rows, nulls, bytes, sized) = (0, 0, 0L, false)
    values.foreach { value =>
      rows += 1
      if (value == null) nulls += 1
      else {
        counts.computeIfAbsent(key(value), newCount).rows += 1
        widthOf(value).foreach { width =>
          bytes += width
          sized = true
        }
      }
    }
    val present = rows - nulls
    val average = if (counts.isEmpty) 0.0 else present.toDouble / counts.size
    val least = math.max(leastOccurrences.toDouble, leastSkew * average)
    val frequent = counts.asScala.iterator
      .filter { case (value, n) => n.rows >= least && !value.isInstanceOf[ByteBuffer] }
      .toSeq
      .sortBy { case (value, n) => (-n.rows, value.toString) }
      .take(mostFrequent)
      .map { case (value, n) => FrequentValue(value, n.rows.toDouble / present) }
    val places = counts.keySet.asScala.iterator.flatMap(NumericAxis.place(_)).toArray
    ColumnSummary(
      rows,
      nulls,
      counts.size,
      counts.values.asScala.count(_.rows == 1),
      frequent,
      Option.when(sized && present > 0)(bytes.toDouble / present),
      places.minOption,
      places.maxOption
    )
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

  private def widthOf(value: Any): Option[Int] = value match {
    case text: UTF8String => Some(text.numBytes)
    case bytes: Array[Byte] => Some(bytes.length)
    case _ => None
  }
}
