package io.selinger.stats.sketches

import java.util.{Arrays, Random}
import org.apache.datasketches.kll.KllDoublesSketch
import org.apache.datasketches.theta.UpdateSketch
import org.apache.spark.sql.catalyst.expressions.XXH64
import org.apache.spark.sql.catalyst.util.CollationFactory
import org.apache.spark.sql.execution.vectorized.WritableColumnVector
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.types.UTF8String

/**
 * Sizes of what is collected of one part of a file.
 *
 * @param entries of the theta sketch
 * @param stride of how many values one goes into quantiles and frequent values; dictionaries'
 *   values go in with their number of rows
 */
final case class SketchSizes(entries: Int, stride: Int)

/**
 * Collects one column batch by batch, on one thread. All values go into the theta sketch. Where a
 * batch carries dictionary ids, a value is decoded and hashed once for all its rows; that these ids
 * still mean the same is checked once a batch and id, since Spark does not tell when a row group
 * brings another dictionary.
 *
 * Mutable, and written for speed: some billions of values go through here.
 */
private[sketches] abstract class ColumnSketcher(sizes: SketchSizes) {

  private var rows = 0L
  private var nulls = 0L
  protected val theta: UpdateSketch =
    UpdateSketch.builder().setNominalEntries(sizes.entries).build()
  protected val kll: KllDoublesSketch = KllDoublesSketch.newHeapInstance()
  protected val random = new Random(42)

  // By dictionary id: the last batch that it was checked in, and its rows since it was decoded.
  private var stamps = new Array[Int](64)
  private var counts = new Array[Long](64)
  private var known = new Array[Boolean](64)
  private var batch = 0

  // Values seen lately, so that a run or a handful of values is hashed once.
  private val recent = new Array[Long](1024)

  final def add(vector: ColumnVector, count: Int): Unit = {
    batch += 1
    rows += count
    val missing = if (vector.hasNull) countNulls(vector, count) else 0
    nulls += missing
    if (missing < count) {
      vector match {
        case coded: WritableColumnVector if coded.hasDictionary =>
          addCoded(coded, coded.getDictionaryIds, count, missing > 0)
        case plain => addPlain(plain, count, missing > 0)
      }
    }
  }

  private def countNulls(vector: ColumnVector, count: Int): Int = {
    var (i, n) = (0, 0)
    while (i < count) {
      if (vector.isNullAt(i)) n += 1
      i += 1
    }
    n
  }

  private def addCoded(
      vector: ColumnVector,
      ids: WritableColumnVector,
      count: Int,
      nullable: Boolean
  ): Unit = {
    var i = 0
    while (i < count) {
      if (!nullable || !vector.isNullAt(i)) {
        val id = ids.getDictId(i)
        if (id >= stamps.length) grow(id)
        if (stamps(id) != batch) {
          if (!known(id) || !isAt(id, vector, i)) {
            settle(id)
            load(id, vector, i)
            known(id) = true
          }
          stamps(id) = batch
        }
        counts(id) += 1
      }
      i += 1
    }
  }

  private def grow(id: Int): Unit = {
    val size = math.max(id + 1, stamps.length * 2)
    stamps = Arrays.copyOf(stamps, size)
    counts = Arrays.copyOf(counts, size)
    known = Arrays.copyOf(known, size)
    resize(size)
  }

  private def settle(id: Int): Unit =
    if (counts(id) > 0) {
      weigh(id, counts(id))
      counts(id) = 0
    }

  /** Of how many values drawn at random one in `stride` would be, of `count` equal ones. */
  protected final def drawn(count: Long): Long =
    if (sizes.stride == 1) count
    else {
      val whole = count / sizes.stride
      if (random.nextInt(sizes.stride) < count % sizes.stride) whole + 1 else whole
    }

  protected final def stride: Int = sizes.stride

  protected final def isNew(hash: Long): Boolean = {
    val slot = ((hash * 0x9e3779b97f4a7c15L) >>> 54).toInt
    // The slot of 0 itself is never taken for filled.
    if (recent(slot) == hash && hash != 0) false
    else {
      recent(slot) = hash
      true
    }
  }

  // ---- by type ------------------------------------------------------------------------------

  /** Makes room for values of dictionary ids below `size`. */
  protected def resize(size: Int): Unit

  /** Whether the value kept for a dictionary id is that of this row. */
  protected def isAt(id: Int, vector: ColumnVector, row: Int): Boolean

  /** Keeps a row's value for a dictionary id; it is new. */
  protected def load(id: Int, vector: ColumnVector, row: Int): Unit

  /** The value of a dictionary id had so many rows. */
  protected def weigh(id: Int, count: Long): Unit

  protected def addPlain(vector: ColumnVector, count: Int, nullable: Boolean): Unit

  /** A row's value as Catalyst holds it, for good. */
  protected def valueAt(vector: ColumnVector, row: Int): Any

  protected def frequent: FrequentCounts

  /** Ends of the values on the axis. */
  protected def range: Option[(Double, Double)]

  /** Of values of variable width. */
  protected def bytes: Option[Long] = None

  final def sampled(vector: ColumnVector, row: Int): Any =
    if (vector.isNullAt(row)) null else valueAt(vector, row)

  final def result(share: Double, sample: Option[SampledRows]): ColumnSketch = {
    counts.indices.foreach(settle)
    val ends = range
    ColumnSketch(
      share,
      rows,
      nulls,
      ends.map(_._1),
      ends.map(_._2),
      bytes,
      Some(theta.rebuild().compact()),
      sizes.stride,
      Option.when(!kll.isEmpty)(kll),
      frequent,
      sample
    )
  }
}

private[stats] object ColumnSketcher {

  /** Counters of a sketch of frequent values. */
  val counters: Int = 1024

  /** Whether values of this type are collected; nested ones are not. */
  def supports(kind: DataType): Boolean = kind match {
    case text: StringType =>
      CollationFactory.fetchCollation(text.collationId).supportsBinaryEquality
    case other => io.selinger.stats.files.SampleReader.supports(other)
  }

  /** Values of one family are equal just where their hashes are. */
  def family(kind: DataType): String = kind match {
    case ByteType | ShortType | IntegerType | LongType => "integer"
    case FloatType | DoubleType => "double"
    case decimal: DecimalType => s"decimal${decimal.scale}${if (isShort(decimal)) "" else "+"}"
    case _: StringType => "string"
    case other => other.typeName
  }

  def isShort(decimal: DecimalType): Boolean = decimal.precision <= Decimal.MAX_LONG_DIGITS

  def forType(kind: DataType, sizes: SketchSizes): ColumnSketcher = kind match {
    case BooleanType =>
      new IntegerSketcher(sizes) {
        override protected def keyAt(v: ColumnVector, i: Int): Long = if (v.getBoolean(i)) 1 else 0
        override protected def valueOf(key: Long): Any = key == 1
      }
    case ByteType =>
      new IntegerSketcher(sizes) {
        override protected def keyAt(v: ColumnVector, i: Int): Long = v.getByte(i).toLong
        override protected def valueOf(key: Long): Any = key.toByte
      }
    case ShortType =>
      new IntegerSketcher(sizes) {
        override protected def keyAt(v: ColumnVector, i: Int): Long = v.getShort(i).toLong
        override protected def valueOf(key: Long): Any = key.toShort
      }
    case IntegerType | DateType =>
      new IntegerSketcher(sizes) {
        override protected def keyAt(v: ColumnVector, i: Int): Long = v.getInt(i).toLong
        override protected def valueOf(key: Long): Any = key.toInt
        override protected def fill(v: ColumnVector, n: Int, keys: Array[Long]): Unit = {
          var i = 0
          while (i < n) { keys(i) = v.getInt(i).toLong; i += 1 }
        }
      }
    case LongType | TimestampType | TimestampNTZType =>
      new IntegerSketcher(sizes) {
        override protected def keyAt(v: ColumnVector, i: Int): Long = v.getLong(i)
        override protected def valueOf(key: Long): Any = key
        override protected def fill(v: ColumnVector, n: Int, keys: Array[Long]): Unit = {
          var i = 0
          while (i < n) { keys(i) = v.getLong(i); i += 1 }
        }
      }
    case FloatType =>
      new FloatingSketcher(sizes) {
        override protected def numberAt(v: ColumnVector, i: Int): Double = v.getFloat(i).toDouble
        override protected def valueOf(key: Long): Any = FloatingSketcher.number(key).toFloat
      }
    case DoubleType =>
      new FloatingSketcher(sizes) {
        override protected def numberAt(v: ColumnVector, i: Int): Double = v.getDouble(i)
        override protected def valueOf(key: Long): Any = FloatingSketcher.number(key)
      }
    case decimal: DecimalType if isShort(decimal) =>
      val unit = math.pow(10, -decimal.scale.toDouble)
      val inInt = decimal.precision <= Decimal.MAX_INT_DIGITS
      new IntegerSketcher(sizes) {
        // Vectors of ORC have decimals in a form of their own.
        override protected def keyAt(v: ColumnVector, i: Int): Long = v match {
          case _: WritableColumnVector => if (inInt) v.getInt(i).toLong else v.getLong(i)
          case other => other.getDecimal(i, decimal.precision, decimal.scale).toUnscaledLong
        }
        override protected def valueOf(key: Long): Any =
          Decimal(key, decimal.precision, decimal.scale)
        override protected def place(key: Long): Double = key * unit
        override protected def fill(v: ColumnVector, n: Int, keys: Array[Long]): Unit = {
          var i = 0
          v match {
            case _: WritableColumnVector if inInt =>
              while (i < n) { keys(i) = v.getInt(i).toLong; i += 1 }
            case _: WritableColumnVector =>
              while (i < n) { keys(i) = v.getLong(i); i += 1 }
            case _ => super.fill(v, n, keys)
          }
        }
      }
    case decimal: DecimalType =>
      new ObjectSketcher(kind, sizes) {
        override protected def read(v: ColumnVector, i: Int): AnyRef =
          v.getDecimal(i, decimal.precision, decimal.scale)
        override protected def hash(value: Any): Long = value match {
          case number: Decimal =>
            val digits = number.toJavaBigDecimal.unscaledValue.toByteArray
            XXH64.hashUnsafeBytes(digits, Platform.BYTE_ARRAY_OFFSET.toLong, digits.length, seed)
          case _ => 0L
        }
        override protected def width(value: Any): Int = 0
        override protected def bytes: Option[Long] = None
      }
    case _: StringType =>
      new ObjectSketcher(kind, sizes) {
        override protected def read(v: ColumnVector, i: Int): AnyRef = v.getUTF8String(i)
        override protected def owned(value: AnyRef): AnyRef = value match {
          case text: UTF8String => text.copy()
          case other => other
        }
        override protected def hash(value: Any): Long = value match {
          case text: UTF8String => XXH64.hashUTF8String(text, seed)
          case _ => 0L
        }
        override protected def width(value: Any): Int = value match {
          case text: UTF8String => text.numBytes
          case _ => 0
        }
      }
    case _ =>
      new ObjectSketcher(kind, sizes) {
        override protected def read(v: ColumnVector, i: Int): AnyRef = v.getBinary(i)
        override protected def hash(value: Any): Long = value match {
          case b: Array[Byte] =>
            XXH64.hashUnsafeBytes(b, Platform.BYTE_ARRAY_OFFSET.toLong, b.length, seed)
          case _ => 0L
        }
        override protected def width(value: Any): Int = value match {
          case bytes: Array[Byte] => bytes.length
          case _ => 0
        }
      }
  }

  private val seed = 42L
}
