package io.selinger.stats.files

import io.selinger.stats.OrderedNumbers
import java.util.BitSet
import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.UTF8String
import scala.jdk.CollectionConverters._

/** Values of one column as Catalyst holds them, nulls among them, in little memory. */
sealed abstract class SampledValues extends scala.collection.immutable.AbstractSeq[Any]
    with IndexedSeq[Any] {

  /** Driver memory, about. */
  def bytes: Long
}

object SampledValues {

  /** Numbers without an object for each, equal texts with one for all. */
  def compact(values: Array[Any]): SampledValues =
    values.find(_ != null).flatMap(encodingOf).flatMap(numbers(values, _)).getOrElse(
      shared(values)
    )

  /** @param isOrdered whether values compare as their codes do */
  private final class Encoding(
      val encode: PartialFunction[Any, Long],
      val decode: Long => Any,
      val isOrdered: Boolean = true
  )

  private val longs = new Encoding({ case n: Long => n }, identity[Long])
  private val ints = new Encoding({ case n: Int => n.toLong }, _.toInt)

  /** Numbers of type `bigint`; nulls are marked. */
  def ofLongs(numbers: Array[Long], nulls: BitSet): SampledValues =
    new Ordered(numbers, nulls, longs)

  /** Numbers of type `int`; nulls are marked. */
  def ofInts(numbers: Array[Long], nulls: BitSet): SampledValues =
    new Ordered(numbers, nulls, ints)

  private def encodingOf(example: Any): Option[Encoding] = example match {
    case _: Long => Some(longs)
    case _: Int => Some(ints)
    case _: Double =>
      Some(new Encoding(
        { case n: Double => java.lang.Double.doubleToRawLongBits(n) },
        java.lang.Double.longBitsToDouble(_),
        isOrdered = false
      ))
    case decimal: Decimal if decimal.precision <= Decimal.MAX_LONG_DIGITS =>
      val (precision, scale) = (decimal.precision, decimal.scale)
      Some(new Encoding(
        { case d: Decimal if d.precision == precision && d.scale == scale => d.toUnscaledLong },
        Decimal.createUnsafe(_, precision, scale)
      ))
    case _ => None
  }

  private def numbers(values: Array[Any], by: Encoding): Option[Numbers] = {
    val nulls = new BitSet()
    val encoded = new Array[Long](values.length)
    val all = values.indices.forall { i =>
      val value = values(i)
      if (value == null) nulls.set(i)
      else if (by.encode.isDefinedAt(value)) encoded(i) = by.encode(value)
      value == null || by.encode.isDefinedAt(value)
    }
    Option.when(all) {
      if (by.isOrdered) new Ordered(encoded, nulls, by) else new Numbers(encoded, nulls, by)
    }
  }

  private def shared(values: Array[Any]): Objects = {
    val texts = new java.util.HashMap[UTF8String, UTF8String]()
    val found = values.map {
      case text: UTF8String =>
        val before = texts.putIfAbsent(text, text)
        if (before == null) text else before
      case other => other
    }
    val others = values.iterator.filterNot(_.isInstanceOf[UTF8String]).map(bytesOf).sum
    val distinct = texts.keySet.asScala.iterator.map(bytesOf).sum
    new Objects(found, values.length * pointer + distinct + others)
  }

  private sealed class Numbers(codes: Array[Long], nulls: BitSet, by: Encoding)
      extends SampledValues {
    override def length: Int = codes.length
    override def apply(i: Int): Any = if (nulls.get(i)) null else by.decode(codes(i))
    override def bytes: Long = 100L + 8L * codes.length + nulls.size / 8
  }

  private final class Ordered(codes: Array[Long], nulls: BitSet, by: Encoding)
      extends Numbers(codes, nulls, by)
      with OrderedNumbers {
    override def isNull(i: Int): Boolean = nulls.get(i)
    override def number(i: Int): Long = codes(i)
    override def numberOf(value: Any): Option[Long] = by.encode.lift(value)
  }

  private final class Objects(values: Array[Any], val bytes: Long) extends SampledValues {
    override def length: Int = values.length
    override def apply(i: Int): Any = values(i)
  }

  private val pointer = 8L

  /** Of a value by itself. */
  private[stats] def bytesOf(value: Any): Long = value match {
    case null => 0L
    case text: UTF8String => 64L + text.numBytes
    case bytes: Array[Byte] => 32L + bytes.length
    case _: Decimal => 64L
    case _ => 24L
  }
}
