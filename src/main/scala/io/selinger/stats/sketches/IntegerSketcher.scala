package io.selinger.stats.sketches

import java.util.Arrays
import org.apache.datasketches.frequencies.{ErrorType, LongsSketch}
import org.apache.spark.sql.vectorized.ColumnVector

/** Values that fit into a long, ordered as these. */
private[sketches] abstract class IntegerSketcher(sizes: SketchSizes)
    extends ColumnSketcher(sizes) {

  private var low = Long.MaxValue
  private var high = Long.MinValue
  private var values = new Array[Long](64)
  private var buffer = new Array[Long](4096)
  private val counts = new LongsSketch(ColumnSketcher.counters)

  protected def keyAt(vector: ColumnVector, row: Int): Long
  protected def valueOf(key: Long): Any
  protected def place(key: Long): Double = key.toDouble

  /** What is hashed: the same for equal values of all types of a family. */
  protected def hashed(key: Long): Long = key

  /** The keys of the first rows; of a null any. */
  protected def fill(vector: ColumnVector, count: Int, keys: Array[Long]): Unit = {
    var i = 0
    while (i < count) {
      keys(i) = keyAt(vector, i)
      i += 1
    }
  }

  override protected def resize(size: Int): Unit = values = Arrays.copyOf(values, size)

  override protected def isAt(id: Int, vector: ColumnVector, row: Int): Boolean =
    values(id) == keyAt(vector, row)

  override protected def load(id: Int, vector: ColumnVector, row: Int): Unit = {
    val key = keyAt(vector, row)
    values(id) = key
    see(key)
    val _ = theta.update(hashed(key))
  }

  private def see(key: Long): Unit = {
    if (key < low) low = key
    if (key > high) high = key
  }

  override protected def weigh(id: Int, count: Long): Unit = {
    val times = drawn(count)
    if (times > 0) kll.update(place(values(id)), times)
    counts.update(values(id), count)
  }

  override protected def addPlain(vector: ColumnVector, count: Int, nullable: Boolean): Unit = {
    if (buffer.length < count) buffer = new Array[Long](count)
    val n =
      if (!nullable) {
        fill(vector, count, buffer)
        count
      } else {
        var (i, k) = (0, 0)
        while (i < count) {
          if (!vector.isNullAt(i)) {
            buffer(k) = keyAt(vector, i)
            k += 1
          }
          i += 1
        }
        k
      }
    var i = 0
    while (i < n) {
      val key = buffer(i)
      if (isNew(key)) {
        see(key)
        val _ = theta.update(hashed(key))
      }
      i += 1
    }
    i = if (stride == 1) 0 else random.nextInt(stride)
    while (i < n) {
      kll.update(place(buffer(i)))
      counts.update(buffer(i), stride.toLong)
      i += stride
    }
  }

  override protected def valueAt(vector: ColumnVector, row: Int): Any = valueOf(keyAt(vector, row))

  override protected def range: Option[(Double, Double)] =
    Option.when(low <= high)((place(low), place(high)))

  override protected def frequent: FrequentCounts =
    FrequentCounts.fromBounds(counts.getFrequentItems(0L, ErrorType.NO_FALSE_NEGATIVES).toSeq.map {
      row =>
        (valueOf(row.getItem): Any, row.getLowerBound, row.getUpperBound)
    })
}

/** Floating-point numbers as longs in their order; -0.0 is 0.0 and all NaN are one, as in Spark. */
private[sketches] abstract class FloatingSketcher(sizes: SketchSizes)
    extends IntegerSketcher(sizes) {

  protected def numberAt(vector: ColumnVector, row: Int): Double

  override protected def keyAt(vector: ColumnVector, row: Int): Long =
    FloatingSketcher.key(numberAt(vector, row))

  /** NaN is larger than any number: it lies at infinity. */
  override protected def place(key: Long): Double = {
    val number = FloatingSketcher.number(key)
    if (number.isNaN) Double.PositiveInfinity else number
  }

  /** Only numbers have a place. */
  override protected def range: Option[(Double, Double)] =
    super.range.filterNot { case (low, high) => low.isInfinite || high.isInfinite }
}

private[sketches] object FloatingSketcher {

  def key(number: Double): Long = {
    // Adding zero makes 0.0 of -0.0; the conversion makes one NaN of all.
    val bits = java.lang.Double.doubleToLongBits(number + 0.0)
    bits ^ ((bits >> 63) & Long.MaxValue)
  }

  def number(key: Long): Double =
    java.lang.Double.longBitsToDouble(key ^ ((key >> 63) & Long.MaxValue))
}
