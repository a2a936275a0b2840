package io.selinger.exec.aggregates

import org.apache.spark.sql.catalyst.expressions.BaseGenericInternalRow
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator
import org.apache.spark.sql.types.DataType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Buffers of many groups in two arrays: fields of a fixed width as words, all others as objects. Those
 * of one group lie side by side. As a row, it is the buffer of the group at which it stands: one
 * object for all groups, so that a group costs no object but its values.
 *
 * @param types of the fields of a buffer
 */
private[aggregates] final class GroupBuffers(types: Array[DataType])
    extends BaseGenericInternalRow {

  private val kinds = types.map(of => GroupBuffers.kinds.getOrElse(CodeGenerator.javaType(of), 0))
  private val isFixed = kinds.map(_ != GroupBuffers.Other)

  // Null flags of fixed fields come first, 64 in a word.
  private val flagWords = (isFixed.count(identity) + 63) / 64
  private val places = {
    val words = isFixed.scanLeft(0)((n, fixed) => if (fixed) n + 1 else n)
    val objects = isFixed.scanLeft(0)((n, fixed) => if (fixed) n else n + 1)
    types.indices.map(i => if (isFixed(i)) words(i) else objects(i)).toArray
  }
  private val wordsOfGroup = flagWords + isFixed.count(identity)
  private val objectsOfGroup = isFixed.count(!_)

  private var words = Array.empty[Long]
  private var objects = Array.empty[AnyRef]
  private var firstWord = 0
  private var firstObject = 0

  /** Bytes of the arrays for so many groups, without the objects themselves. */
  def bytesFor(groups: Int): Long = groups.toLong * (8L * wordsOfGroup + 8L * objectsOfGroup)

  /** Groups that arrays can have. */
  def most: Int = Int.MaxValue / 2 / math.max(1, math.max(wordsOfGroup, objectsOfGroup))

  def resize(groups: Int): Unit = {
    words = java.util.Arrays.copyOf(words, groups * wordsOfGroup)
    objects = java.util.Arrays.copyOf(objects, groups * objectsOfGroup)
  }

  def standAt(group: Int): Unit = {
    firstWord = group * wordsOfGroup
    firstObject = group * objectsOfGroup
  }

  /** Sets all fields of the group at which it stands to null. */
  def setAllNull(): Unit = {
    java.util.Arrays.fill(words, firstWord, firstWord + flagWords, -1L)
    java.util.Arrays.fill(objects, firstObject, firstObject + objectsOfGroup, null)
  }

  /**
   * Reads what buffers of groups hold (GroupTable.readAhead): words, and the first `most` of the objects.
   * What it gives means nothing.
   */
  def readAhead(groups: Array[Int], number: Int, most: Int): Long = {
    var (i, read) = (0, 0L)
    if (wordsOfGroup > 0)
      while (i < number) {
        read ^= words(groups(i) * wordsOfGroup)
        i += 1
      }
    var field = 0
    while (field < math.min(most, objectsOfGroup)) {
      i = 0
      while (i < number) {
        if (objects(groups(i) * objectsOfGroup + field) == null) read += 1
        i += 1
      }
      i = 0
      while (i < number) {
        objects(groups(i) * objectsOfGroup + field) match {
          case text: UTF8String => read ^= text.numBytes
          case _ =>
        }
        i += 1
      }
      i = 0
      while (i < number) {
        objects(groups(i) * objectsOfGroup + field) match {
          case text: UTF8String if text.numBytes > 0 => read ^= text.getByte(0)
          case _ =>
        }
        i += 1
      }
      field += 1
    }
    read
  }

  /** The objects of a group. */
  def objectsOf(group: Int): Array[AnyRef] =
    java.util.Arrays.copyOfRange(objects, group * objectsOfGroup, (group + 1) * objectsOfGroup)

  /** Forgets the objects of a group. */
  def clear(group: Int): Unit =
    java.util.Arrays.fill(objects, group * objectsOfGroup, (group + 1) * objectsOfGroup, null)

  private def word(field: Int): Long = words(firstWord + flagWords + places(field))

  private def set(field: Int, value: Long): Unit = {
    words(firstWord + flagWords + places(field)) = value
    val flags = firstWord + (places(field) >> 6)
    words(flags) = words(flags) & ~(1L << (places(field) & 63))
  }

  override def numFields: Int = types.length

  override def isNullAt(field: Int): Boolean =
    if (isFixed(field)) {
      (words(firstWord + (places(field) >> 6)) & (1L << (places(field) & 63))) != 0
    } else objects(firstObject + places(field)) == null

  override def setNullAt(field: Int): Unit =
    if (isFixed(field)) {
      val flags = firstWord + (places(field) >> 6)
      words(flags) = words(flags) | (1L << (places(field) & 63))
    } else objects(firstObject + places(field)) = null

  override protected def genericGet(field: Int): Any =
    if (!isFixed(field)) objects(firstObject + places(field))
    else if (isNullAt(field)) null
    else
      kinds(field) match {
        case GroupBuffers.OfBoolean => getBoolean(field)
        case GroupBuffers.OfByte => getByte(field)
        case GroupBuffers.OfShort => getShort(field)
        case GroupBuffers.OfInt => getInt(field)
        case GroupBuffers.OfLong => getLong(field)
        case GroupBuffers.OfFloat => getFloat(field)
        case _ => getDouble(field)
      }

  override def update(field: Int, value: Any): Unit = value match {
    case null => setNullAt(field)
    case one: Boolean if isFixed(field) => setBoolean(field, one)
    case one: Byte if isFixed(field) => setByte(field, one)
    case one: Short if isFixed(field) => setShort(field, one)
    case one: Int if isFixed(field) => setInt(field, one)
    case one: Long if isFixed(field) => setLong(field, one)
    case one: Float if isFixed(field) => setFloat(field, one)
    case one: Double if isFixed(field) => setDouble(field, one)
    case other => objects(firstObject + places(field)) = other.asInstanceOf[AnyRef]
  }

  override def getBoolean(field: Int): Boolean = word(field) != 0
  override def getByte(field: Int): Byte = word(field).toByte
  override def getShort(field: Int): Short = word(field).toShort
  override def getInt(field: Int): Int = word(field).toInt
  override def getLong(field: Int): Long = word(field)
  override def getFloat(field: Int): Float = java.lang.Float.intBitsToFloat(word(field).toInt)
  override def getDouble(field: Int): Double = java.lang.Double.longBitsToDouble(word(field))

  override def setBoolean(field: Int, value: Boolean): Unit = set(field, if (value) 1L else 0L)
  override def setByte(field: Int, value: Byte): Unit = set(field, value.toLong)
  override def setShort(field: Int, value: Short): Unit = set(field, value.toLong)
  override def setInt(field: Int, value: Int): Unit = set(field, value.toLong)
  override def setLong(field: Int, value: Long): Unit = set(field, value)
  override def setFloat(field: Int, value: Float): Unit =
    set(field, java.lang.Float.floatToRawIntBits(value).toLong)
  override def setDouble(field: Int, value: Double): Unit =
    set(field, java.lang.Double.doubleToRawLongBits(value))
}

private[aggregates] object GroupBuffers {
  private final val Other = 0
  private final val OfBoolean = 1
  private final val OfByte = 2
  private final val OfShort = 3
  private final val OfInt = 4
  private final val OfLong = 5
  private final val OfFloat = 6
  private final val OfDouble = 7

  private val kinds = Map(
    CodeGenerator.JAVA_BOOLEAN -> OfBoolean,
    CodeGenerator.JAVA_BYTE -> OfByte,
    CodeGenerator.JAVA_SHORT -> OfShort,
    CodeGenerator.JAVA_INT -> OfInt,
    CodeGenerator.JAVA_LONG -> OfLong,
    CodeGenerator.JAVA_FLOAT -> OfFloat,
    CodeGenerator.JAVA_DOUBLE -> OfDouble
  )
}
