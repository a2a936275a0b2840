package io.selinger.stats.samples

import io.selinger.stats.{ColumnSample, ColumnSummary, OrderedNumbers}
import java.math.RoundingMode
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import scala.util.hashing.{byteswap64, MurmurHash3}

/**
 * The sampled values of a column as hashes of 32 bits, four bytes a value. Between two samples of
 * 10,000 rows without a common value, one pair of rows in forty joins has equal hashes by chance.
 *
 * @param kind values of one kind are equal if and only if their hashes are, up to collisions
 * @param hashes by the row's place in the sample, nulls as zero
 * @param nulls places of the rows without a value
 * @param neighbours hashes of values in pairs of rows next to each other
 */
final case class HashedColumn(
    kind: DataType,
    hashes: Array[Int],
    nulls: java.util.BitSet,
    neighbours: Array[Int]
) {

  /**
   * Rows with a value, ascending by its hash, taken as a number without a sign. Whatever predicates
   * leave of a sample is in this order without being sorted.
   */
  lazy val order: Array[Int] = ordered(Array.range(0, hashes.length))

  /** The same of some rows, ascending, which are also given as a set. */
  private[samples] def orderOf(rows: Array[Int], set: java.util.BitSet): Array[Int] =
    if (rows.length < hashes.length / HashedColumn.fewRows) ordered(rows)
    else java.util.Arrays.stream(order).filter(set.get(_)).toArray

  /**
   * What the values of some rows amount to.
   *
   * @param sorted those of the rows that have a value, those of equal hashes together
   */
  private[samples] def summary(rows: Int, sorted: Array[Int], values: ColumnSample): ColumnSummary =
    ColumnSummary.ofRuns(rows, sorted, (one, other) => hashes(one) == hashes(other), values)

  private[samples] def summaryOfAll(values: ColumnSample): ColumnSummary =
    summary(hashes.length, order, values)

  private def ordered(rows: Array[Int]): Array[Int] = {
    // The row in the lower half, which is not looked at.
    val keys = new Array[Long](rows.length)
    var i = 0
    var next = 0
    while (i < rows.length) {
      val row = rows(i)
      if (!nulls.get(row)) {
        keys(next) = (hashes(row).toLong << 32) | row.toLong
        next += 1
      }
      i += 1
    }
    val sorted = HashSort.sorted(keys, next, from = 32)
    i = 0
    val places = new Array[Int](next)
    while (i < next) {
      places(i) = sorted(i).toInt
      i += 1
    }
    places
  }

  /** Driver memory, in bytes. */
  def bytes: Long = 200L + 4L * (2 * hashes.length + neighbours.length) + nulls.size / 8
}

object HashedColumn {

  // Rows fewer than this part of all are sorted by themselves, rather than found in the order of all. Set
  // by hand.
  private val fewRows = 8

  /** A hash with a lowest bit that keeps the half of the sample that the row belongs to. */
  private[samples] def halved(hash: Int, row: Int): Long =
    (java.lang.Integer.toUnsignedLong(hash) << 1) | (row & 1L)

  /** The hashes of a column; `None` where equal values may have different hashes. */
  def hash(column: ColumnSample, kind: DataType): Option[HashedColumn] = Option.when(isKey(kind)) {
    val absent = new java.util.BitSet()
    HashedColumn(
      widened(kind),
      hashesOf(column.chunks, kind, absent),
      absent,
      hashesOf(Seq(column.neighbours), kind, new java.util.BitSet())
    )
  }

  /** @param absent takes the places of nulls */
  private def hashesOf(
      chunks: Seq[IndexedSeq[Any]],
      kind: DataType,
      absent: java.util.BitSet
  ): Array[Int] = {
    val hashes = new Array[Int](chunks.map(_.length).sum)
    var row = 0
    chunks.foreach {
      // Decimals may have another scale than the column.
      case numbers: OrderedNumbers if !kind.isInstanceOf[DecimalType] =>
        var i = 0
        while (i < numbers.length) {
          if (numbers.isNull(i)) absent.set(row) else hashes(row) = mixed(numbers.number(i))
          row += 1
          i += 1
        }
      case values =>
        values.foreach { value =>
          if (value == null) absent.set(row) else hashes(row) = hashOf(value, kind)
          row += 1
        }
    }
    hashes
  }

  // Floating-point keys have several zeros and not-a-numbers, and are rare; collated texts are
  // equal without being the same.
  private def isKey(kind: DataType): Boolean = kind match {
    case StringType | ByteType | ShortType | IntegerType | LongType | BooleanType => true
    case DateType | TimestampType | TimestampNTZType | _: DecimalType => true
    case _ => false
  }

  /** Whole numbers of all widths are one kind, for Spark widens them to compare them. */
  private def widened(kind: DataType): DataType = kind match {
    case ByteType | ShortType | IntegerType => LongType
    case other => other
  }

  private def hashOf(value: Any, kind: DataType): Int = value match {
    case text: UTF8String => text.hashCode
    case number: Byte => mixed(number.toLong)
    case number: Short => mixed(number.toLong)
    case number: Int => mixed(number.toLong)
    case number: Long => mixed(number)
    case number: Decimal => hashOf(number, kind)
    case other => other.hashCode
  }

  // Keys often have one number in their upper half and another in the lower one, which hashes of
  // decimals only add up.
  private def hashOf(number: Decimal, kind: DataType): Int = {
    val scale = kind match {
      case decimal: DecimalType => decimal.scale
      case _ => number.scale
    }
    if (number.scale == scale && number.precision <= Decimal.MAX_LONG_DIGITS)
      mixed(number.toUnscaledLong)
    else {
      val unscaled = number.toJavaBigDecimal.setScale(scale, RoundingMode.HALF_UP).unscaledValue
      if (unscaled.bitLength < java.lang.Long.SIZE) mixed(unscaled.longValue)
      else MurmurHash3.bytesHash(unscaled.toByteArray)
    }
  }

  private def mixed(number: Long): Int = (byteswap64(number) >>> 32).toInt
}
