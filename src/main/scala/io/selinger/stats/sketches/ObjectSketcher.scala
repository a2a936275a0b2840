package io.selinger.stats.sketches

import io.selinger.stats.NumericAxis
import java.util.Arrays
import org.apache.datasketches.frequencies.{ErrorType, ItemsSketch}
import org.apache.spark.sql.types.DataType
import org.apache.spark.sql.vectorized.ColumnVector

/** Texts, binary values and decimals of many digits. */
private[sketches] abstract class ObjectSketcher(kind: DataType, sizes: SketchSizes)
    extends ColumnSketcher(sizes) {

  private val longest = 256
  private var total = 0L
  private var low = Double.PositiveInfinity
  private var high = Double.NegativeInfinity
  private var values = new Array[AnyRef](64)
  private val counts = new ItemsSketch[Any](ColumnSketcher.counters)

  protected def read(vector: ColumnVector, row: Int): AnyRef
  protected def owned(value: AnyRef): AnyRef = value
  protected def hash(value: Any): Long
  protected def width(value: Any): Int

  override protected def resize(size: Int): Unit = values = Arrays.copyOf(values, size)

  override protected def isAt(id: Int, vector: ColumnVector, row: Int): Boolean =
    ColumnSketch.keyOf(values(id)) == ColumnSketch.keyOf(read(vector, row))

  override protected def load(id: Int, vector: ColumnVector, row: Int): Unit = {
    val value = owned(read(vector, row))
    values(id) = value
    see(value)
    val _ = theta.update(hash(value))
  }

  override protected def weigh(id: Int, count: Long): Unit = {
    val value = values(id)
    total += count * width(value)
    NumericAxis.place(value, kind).foreach { place =>
      val times = drawn(count)
      if (times > 0) kll.update(place, times)
    }
    if (width(value) <= longest) counts.update(ColumnSketch.keyOf(value), count)
  }

  private def see(value: Any): Unit = NumericAxis.place(value, kind).foreach { place =>
    low = math.min(low, place)
    high = math.max(high, place)
  }

  override protected def addPlain(vector: ColumnVector, count: Int, nullable: Boolean): Unit = {
    var i = 0
    var next = if (stride == 1) 0 else random.nextInt(stride)
    while (i < count) {
      if (!nullable || !vector.isNullAt(i)) {
        val value = read(vector, i)
        total += width(value)
        val hashed = hash(value)
        if (isNew(hashed)) {
          see(value)
          val _ = theta.update(hashed)
        }
        if (next == 0) {
          next = stride
          NumericAxis.place(value, kind).foreach(place => kll.update(place))
          if (width(value) <= longest)
            counts.update(ColumnSketch.keyOf(owned(value)), stride.toLong)
        }
        next -= 1
      }
      i += 1
    }
  }

  override protected def valueAt(vector: ColumnVector, row: Int): Any = owned(read(vector, row))

  override protected def range: Option[(Double, Double)] = Option.when(low <= high)((low, high))

  override protected def bytes: Option[Long] = Some(total)

  override protected def frequent: FrequentCounts =
    FrequentCounts.fromBounds(counts.getFrequentItems(0L, ErrorType.NO_FALSE_NEGATIVES).toSeq.map {
      row =>
        (plain(row.getItem), row.getLowerBound, row.getUpperBound)
    })

  private def plain(item: Any): Any = item match {
    case buffer: java.nio.ByteBuffer => buffer.array
    case other => other
  }
}
