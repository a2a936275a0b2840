package io.selinger.stats.sketches

import io.selinger.stats.Quantiles
import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.util.Random
import org.apache.datasketches.kll.KllDoublesSketch
import org.apache.datasketches.memory.Memory
import org.apache.datasketches.quantilescommon.QuantileSearchCriteria.{EXCLUSIVE, INCLUSIVE}
import org.apache.datasketches.theta.{CompactSketch, SetOperation, Sketch => ThetaSketch}
import org.apache.spark.sql.types.DataType
import scala.collection.immutable.ArraySeq

/**
 * Values that are frequent in a part of a column.
 *
 * @param counts rows of each value, at least; the most frequent first
 * @param rest rows that any other value has at most
 */
final case class FrequentCounts(counts: Seq[(Any, Long)], rest: Long)

object FrequentCounts {

  /** From what a sketch has kept: items with bounds of how often each occurred. */
  def fromBounds(items: Seq[(Any, Long, Long)]): FrequentCounts = {
    val sure = items.collect { case (item, least, _) if least > 0 => (item, least) }
    val sorted = ColumnSketch.sortedCounts(sure)
    val kept = sorted.take(ColumnSketch.mostFrequent)
    // What the sketch has forgotten had at most as many as it is in doubt of each.
    val forgotten = items.headOption.fold(0L) { case (_, least, most) => most - least }
    FrequentCounts(kept, sorted.drop(kept.size).headOption.fold(0L)(_._2).max(forgotten))
  }
}

/**
 * Some rows of a column.
 *
 * @param id the same for the same rows of the same part
 * @param values of these rows; a null is a row's value too
 * @param neighbours values of rows next to each other, in pairs one after the other
 */
final case class SampledRows(id: Long, values: IndexedSeq[Any], neighbours: IndexedSeq[Any])

/**
 * What is collected of one column of one file, or of a part of it. Parts can be merged.
 *
 * @param share of the file that was read, by bytes
 * @param rows read
 * @param nulls among them
 * @param low the smallest place on the axis of `ColumnStatistics`
 * @param high the largest
 * @param bytes of all values of variable width
 * @param distinct theta sketch of all values but nulls; none for types whose values are not compared
 * @param stride of how many values one went into `quantiles` and, weighted, into `frequent`
 * @param quantiles of the places of values on the axis, where the type has one
 * @param sample none where values are too long to be kept
 */
final case class ColumnSketch(
    share: Double,
    rows: Long,
    nulls: Long,
    low: Option[Double],
    high: Option[Double],
    bytes: Option[Long],
    distinct: Option[CompactSketch],
    stride: Int,
    quantiles: Option[KllDoublesSketch],
    frequent: FrequentCounts,
    sample: Option[SampledRows]
) {
  def present: Long = rows - nulls
}

object ColumnSketch {

  /** Distinct values that a merged theta sketch keeps; those of one file may keep fewer. */
  val mostEntries: Int = 4096

  /** Frequent values that are kept of a part. */
  val mostFrequent: Int = 64

  // ---- merging ------------------------------------------------------------------------------

  /** Parts of one file, read together; the order of sampled rows becomes that of `seed`. */
  def mergeParts(parts: Seq[ColumnSketch], seed: Long): ColumnSketch =
    if (parts.size == 1) parts.head
    else {
      val samples = parts.map(_.sample)
      val sample = Option.when(samples.forall(_.isDefined)) {
        val rows = samples.flatten
        SampledRows(
          rows.map(_.id).foldLeft(17L)((id, next) => id * 31 + next),
          shuffled(rows.flatMap(_.values).toArray, seed),
          rows.flatMap(_.neighbours).toIndexedSeq
        )
      }
      ColumnSketch(
        math.min(1.0, parts.map(_.share).sum),
        parts.map(_.rows).sum,
        parts.map(_.nulls).sum,
        parts.flatMap(_.low).minOption,
        parts.flatMap(_.high).maxOption,
        Option.when(parts.exists(_.bytes.isDefined))(parts.flatMap(_.bytes).sum),
        united(parts.map(_.distinct)),
        parts.head.stride,
        mergedQuantiles(parts.flatMap(_.quantiles)),
        mergedFrequent(parts.map(_.frequent)),
        sample
      )
    }

  /** `values` in an order that depends on nothing but their number and the seed. */
  def shuffled(values: Array[Any], seed: Long): IndexedSeq[Any] = {
    val random = new Random(seed)
    var i = values.length - 1
    while (i > 0) {
      val j = random.nextInt(i + 1)
      val value = values(i)
      values(i) = values(j)
      values(j) = value
      i -= 1
    }
    ArraySeq.unsafeWrapArray(values)
  }

  /** The union; none where a part has no sketch. */
  def united(parts: Seq[Option[CompactSketch]]): Option[CompactSketch] =
    if (parts.isEmpty || parts.exists(_.isEmpty)) None
    else {
      val union = SetOperation.builder().setNominalEntries(mostEntries).buildUnion()
      parts.flatten.foreach(part => union.union(part))
      Some(union.getResult)
    }

  private def mergedQuantiles(parts: Seq[KllDoublesSketch]): Option[KllDoublesSketch] =
    Option.when(parts.nonEmpty) {
      val merged = KllDoublesSketch.newHeapInstance()
      parts.foreach(part => merged.merge(part))
      merged
    }

  /** Of all parts: those that were sketched alike are merged, the others mixed by their rows. */
  def quantilesOf(parts: Seq[ColumnSketch]): Option[Quantiles] = {
    val known = parts.filter(part => part.present > 0)
    if (known.isEmpty || known.exists(_.quantiles.isEmpty)) None
    else
      Quantiles.mixed(
        known.groupBy(_.stride).toSeq.sortBy(_._1).flatMap { case (_, alike) =>
          mergedQuantiles(alike.flatMap(_.quantiles))
            .flatMap(places)
            .map(alike.map(_.present.toDouble).sum -> _)
        }
      )
  }

  private def places(sketch: KllDoublesSketch): Option[Quantiles] =
    if (sketch.isEmpty) None
    else {
      val most = Quantiles.most
      val ranks = Array.tabulate(most)(i => i.toDouble / (most - 1))
      val places = sketch.getQuantiles(ranks, INCLUSIVE).distinct.sorted
      val below = sketch.getRanks(places, EXCLUSIVE)
      val upTo = sketch.getRanks(places, INCLUSIVE)
      Quantiles.fromPoints(places.toSeq.lazyZip(below.toSeq).lazyZip(upTo.toSeq).toSeq)
    }

  /** Counts add up; of a value that a part does not name it has `rest` at most. */
  def mergedFrequent(parts: Seq[FrequentCounts]): FrequentCounts = {
    val counts = new java.util.HashMap[Any, (Any, Long)]()
    for (part <- parts; (value, n) <- part.counts) {
      val _ = counts.merge(
        keyOf(value),
        (value, n),
        (a: (Any, Long), b: (Any, Long)) => (a._1, a._2 + b._2)
      )
    }
    val sorted = sortedCounts(counts.values.toArray(Array.empty[(Any, Long)]).toSeq)
    val left = sorted.drop(mostFrequent).headOption.fold(0L)(_._2)
    FrequentCounts(sorted.take(mostFrequent), left + parts.map(_.rest).sum)
  }

  def sortedCounts(counts: Seq[(Any, Long)]): Seq[(Any, Long)] =
    counts.sortBy { case (value, n) => (-n, textOf(value)) }

  private def textOf(value: Any): String = value match {
    case bytes: Array[Byte] => java.util.Arrays.toString(bytes)
    case other => other.toString
  }

  /** Equal for equal values. */
  def keyOf(value: Any): Any = value match {
    case bytes: Array[Byte] => java.nio.ByteBuffer.wrap(bytes)
    case other => other
  }

  // ---- bytes --------------------------------------------------------------------------------

  def toBytes(sketch: ColumnSketch): Array[Byte] = {
    val buffer = new ByteArrayOutputStream(4096)
    val out = new DataOutputStream(buffer)
    out.writeDouble(sketch.share)
    ValueCodec.writeLong(out, sketch.rows)
    ValueCodec.writeLong(out, sketch.nulls)
    out.writeDouble(sketch.low.getOrElse(Double.NaN))
    out.writeDouble(sketch.high.getOrElse(Double.NaN))
    ValueCodec.writeLong(out, sketch.bytes.getOrElse(-1L))
    ValueCodec.writeBytes(out, sketch.distinct.fold(Array.empty[Byte])(_.toByteArrayCompressed))
    ValueCodec.writeLong(out, sketch.stride.toLong)
    ValueCodec.writeBytes(out, sketch.quantiles.fold(Array.empty[Byte])(_.toByteArray))
    ValueCodec.writeLong(out, sketch.frequent.rest)
    ValueCodec.writeLong(out, sketch.frequent.counts.size.toLong)
    sketch.frequent.counts.foreach { case (value, n) =>
      ValueCodec.write(out, value)
      ValueCodec.writeLong(out, n)
    }
    ValueCodec.writeLong(out, sketch.sample.fold(-1L)(_.values.size.toLong))
    sketch.sample.foreach { sample =>
      out.writeLong(sample.id)
      sample.values.foreach(writeCell(out, _))
      ValueCodec.writeLong(out, sample.neighbours.size.toLong)
      sample.neighbours.foreach(writeCell(out, _))
    }
    out.flush()
    buffer.toByteArray
  }

  /** @throws java.lang.Exception of many kinds, where these are other bytes */
  def fromBytes(bytes: Array[Byte], kind: DataType): ColumnSketch = {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    val share = in.readDouble()
    val rows = ValueCodec.readLong(in)
    val nulls = ValueCodec.readLong(in)
    val (low, high) = (in.readDouble(), in.readDouble())
    val width = ValueCodec.readLong(in)
    val theta = ValueCodec.readBytes(in)
    val stride = ValueCodec.readLong(in).toInt
    val kll = ValueCodec.readBytes(in)
    val rest = ValueCodec.readLong(in)
    val counts = Seq.fill(ValueCodec.readLong(in).toInt)(
      (ValueCodec.read(in, kind), ValueCodec.readLong(in))
    )
    val sampled = ValueCodec.readLong(in).toInt
    val sample = Option.when(sampled >= 0) {
      val id = in.readLong()
      def cells(count: Int): IndexedSeq[Any] =
        ArraySeq.unsafeWrapArray(Array.fill[Any](count)(readCell(in, kind)))
      SampledRows(id, cells(sampled), cells(ValueCodec.readLong(in).toInt))
    }
    ColumnSketch(
      share,
      rows,
      nulls,
      Some(low).filterNot(_.isNaN),
      Some(high).filterNot(_.isNaN),
      Some(width).filter(_ >= 0),
      Option.when(theta.nonEmpty)(thetaOf(theta)),
      stride,
      Option.when(kll.nonEmpty)(KllDoublesSketch.heapify(Memory.wrap(kll))),
      FrequentCounts(counts, rest),
      sample
    )
  }

  private def writeCell(out: DataOutputStream, value: Any): Unit = {
    out.writeBoolean(value != null)
    if (value != null) ValueCodec.write(out, value)
  }

  private def readCell(in: DataInputStream, kind: DataType): Any =
    if (in.readBoolean()) ValueCodec.read(in, kind) else null

  private def thetaOf(bytes: Array[Byte]): CompactSketch =
    ThetaSketch.heapify(Memory.wrap(bytes)).compact()
}
