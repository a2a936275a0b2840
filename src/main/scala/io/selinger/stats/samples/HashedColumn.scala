package io.selinger.stats.samples

import io.selinger.stats.ColumnSample
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import scala.util.hashing.byteswap64

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
   * Rows with a value, ascending by its hash. Whatever predicates leave of a sample is in this order
   * without being sorted.
   */
  lazy val order: Array[Int] = {
    // A sort of whole numbers with the row in their lower half.
    val sorted = new Array[Long](hashes.length - nulls.cardinality)
    var (row, next) = (0, 0)
    while (row < hashes.length) {
      if (!nulls.get(row)) {
        sorted(next) = (hashes(row).toLong << 32) | row.toLong
        next += 1
      }
      row += 1
    }
    java.util.Arrays.sort(sorted)
    sorted.map(_.toInt)
  }

  /** Driver memory, in bytes. */
  def bytes: Long = 200L + 4L * (2 * hashes.length + neighbours.length) + nulls.size / 8
}

object HashedColumn {

  /** The hashes of a column; `None` where equal values may have different hashes. */
  def hash(column: ColumnSample, kind: DataType): Option[HashedColumn] = Option.when(isKey(kind)) {
    val values = column.chunks.iterator.flatten.toArray
    val absent = new java.util.BitSet(values.length)
    values.indices.foreach(row => if (values(row) == null) absent.set(row))
    HashedColumn(
      widened(kind),
      values.map(hashOf),
      absent,
      column.neighbours.iterator.map(hashOf).toArray
    )
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

  private def hashOf(value: Any): Int = value match {
    case null => 0
    case text: UTF8String => text.hashCode
    case number: Byte => hashOf(number.toLong)
    case number: Short => hashOf(number.toLong)
    case number: Int => hashOf(number.toLong)
    case number: Long => (byteswap64(number) >>> 32).toInt
    case other => other.hashCode
  }
}
