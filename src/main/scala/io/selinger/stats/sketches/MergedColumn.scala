package io.selinger.stats.sketches

import io.selinger.stats.{DistinctValues, FrequentValue, Quantiles}
import org.apache.datasketches.theta.CompactSketch

/**
 * What is collected of a column of the files that a scan reads.
 *
 * @param files that have an entry
 * @param whole whether all files have one, of all their rows
 * @param rows that were read
 * @param nulls among them
 * @param bytes of all values of variable width
 */
private[stats] final case class MergedColumn(
    files: Int,
    whole: Boolean,
    rows: Double,
    nulls: Double,
    low: Option[Double],
    high: Option[Double],
    bytesOfValues: Option[Double],
    distinct: Option[CompactSketch],
    quantiles: Option[Quantiles],
    frequent: FrequentCounts
) extends SketchStore.Weighed {

  override def bytes: Long =
    1000L + distinct.fold(0L)(_.getRetainedEntries(true) * 8L) + 64L * 3 * 24

  def present: Double = rows - nulls

  def nullFraction: Option[Double] = Option.when(rows > 0)(nulls / rows)

  def averageBytes: Option[Double] = bytesOfValues.filter(_ => present > 0).map(_ / present)

  /** Distinct values among `total` rows with a value, of which these are all or some. */
  def distinctOf(total: Double): Option[Double] = distinct.map { sketch =>
    val seen = math.min(sketch.getEstimate, present)
    if (whole || total <= present || seen <= 0) seen
    // A key grows with the rows; other values are draws from a domain.
    else if (seen >= 0.95 * present) seen * total / present
    else DistinctValues.drawn(DistinctValues.source(seen, present), total)
  }

  /** Values that are much more frequent than the average one, and certainly so. */
  def frequentValues: Seq[FrequentValue] = {
    val average = distinct.fold(present)(d => present / math.max(1.0, d.getEstimate))
    val least = Seq(10.0, 2.0 * average, frequent.rest.toDouble).max
    frequent.counts
      .takeWhile { case (_, n) => n >= least }
      .take(MergedColumn.mostFrequent)
      .map { case (value, n) => FrequentValue(value, math.min(1.0, n / present)) }
  }
}

private[stats] object MergedColumn {

  // As many as a sample at planning time keeps.
  private val mostFrequent = 20

  /** @param files of the scan */
  def merge(parts: Seq[ColumnSketch], files: Int): MergedColumn =
    MergedColumn(
      parts.size,
      parts.size == files && parts.forall(_.share >= 0.999),
      parts.map(_.rows.toDouble).sum,
      parts.map(_.nulls.toDouble).sum,
      parts.flatMap(_.low).minOption,
      parts.flatMap(_.high).maxOption,
      Option.when(parts.exists(_.bytes.isDefined))(parts.flatMap(_.bytes).map(_.toDouble).sum),
      ColumnSketch.united(parts.map(_.distinct)),
      ColumnSketch.quantilesOf(parts),
      ColumnSketch.mergedFrequent(parts.map(_.frequent))
    )
}
