package io.selinger.stats.files

import io.selinger.stats.OrderedNumbers
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/**
 * What is wanted of one row group of a file.
 *
 * @param index of the row group
 * @param rows to sample, at random places
 * @param window rows that may be decoded for that, from the start of the row group
 * @param column with the type that queries see
 * @param neighbours whether pairs of rows next to each other are wanted as well
 */
final case class ChunkRequest(
    index: Int,
    rows: Int,
    window: Long,
    column: StructField,
    neighbours: Boolean = true
)

/**
 * Values of some rows of one column chunk, as Catalyst holds them; nobody changes them.
 *
 * @param neighbours of some of these rows the value and that of the next row, one after the other
 * @param covered rows that these were spread over
 * @param bytes of driver memory, about
 */
final case class SampledChunk(
    values: IndexedSeq[Any],
    neighbours: IndexedSeq[Any],
    covered: Long,
    bytes: Long
) {

  /** Whether predicates on the values take no long: columns of long texts are left to formulas. */
  def isShort: Boolean = values match {
    case _: OrderedNumbers => true
    case _ =>
      values.iterator.map(SampledValues.bytesOf).sum <= SampledChunk.mostValueBytes * values.size
  }
}

object SampledChunk {

  // On average.
  private val mostValueBytes = 512L

  def of(values: Array[Any], neighbours: Array[Any], covered: Long): SampledChunk = {
    val (all, pairs) = (SampledValues.compact(values), SampledValues.compact(neighbours))
    SampledChunk(all, pairs, covered, all.bytes + pairs.bytes)
  }

  /** Whole numbers, without pairs of neighbours. */
  def ofNumbers(numbers: SampledValues): SampledChunk =
    SampledChunk(numbers, IndexedSeq.empty, numbers.length.toLong, numbers.bytes)

  /** A value that does not change when the reader goes on. */
  def owned(value: Any): Any = value match {
    case text: UTF8String => text.copy()
    case bytes: Array[Byte] => bytes.clone()
    case other => other
  }
}

/** Reads single rows out of a file format's row groups. */
trait SampleReader {

  /**
   * Answers `requests` one after the other until `deadline` (on the clock of `System.nanoTime`).
   * Equal rows of the same row group give the same places in every column.
   *
   * @param answer takes each result; `None` for a column that cannot be sampled
   * @throws java.io.IOException or a format's own error, where the file cannot be read
   */
  def read(
      file: FileStatus,
      hadoop: Configuration,
      requests: Seq[ChunkRequest],
      deadline: Long
  )(answer: (ChunkRequest, Option[SampledChunk]) => Unit): Unit
}

object SampleReader {

  /** Nested columns and types that other engines store otherwise are left to formulas. */
  def supports(kind: DataType): Boolean = kind match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | FloatType | DoubleType |
        DateType | TimestampType | TimestampNTZType | BinaryType =>
      true
    case _: DecimalType | _: StringType => true
    case _ => false
  }

  /**
   * `count` places among `rows`, one at random in each of as many equal parts, so that nothing that
   * repeats in the data can fall into step with them. The same at every call.
   */
  def places(count: Int, rows: Long, seed: Int): Array[Long] =
    if (count >= rows) Array.tabulate(rows.toInt)(_.toLong)
    else
      Array.tabulate(count) { i =>
        val (from, to) = (rows * i / count, rows * (i + 1) / count)
        from + (unit(seed, i) * (to - from)).toLong
      }

  /** Of how many sampled rows one is read with the row next to it. */
  private val neighbourEvery = 8

  /** Whether the next row is read as well as the `i`-th sampled one. */
  def hasNeighbour(i: Int): Boolean = i % neighbourEvery == 0

  /** A number from 0 to 1 that looks random (SplitMix64). */
  private def unit(seed: Int, i: Int): Double = {
    val a = seed * 0x9e3779b97f4a7c15L + i * 0xd1b54a32d192ed03L
    val b = (a ^ (a >>> 30)) * 0xbf58476d1ce4e5b9L
    val c = (b ^ (b >>> 27)) * 0x94d049bb133111ebL
    ((c ^ (c >>> 31)) >>> 11) * (1.0 / (1L << 53))
  }
}
