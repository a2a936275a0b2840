package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import scala.util.Try

/** All values from `low` to `high`, both included, of a type whose values can be counted. */
private[rule] final case class ValueRange(low: BigInt, high: BigInt) {
  def isEmpty: Boolean = low > high

  def contains(other: ValueRange): Boolean = low <= other.low && other.high <= high

  def meet(other: ValueRange): ValueRange = ValueRange(low.max(other.low), high.min(other.high))
}

/** A set of values: ranges in ascending order, none of them empty, none next to another. */
private[rule] final case class ValueRanges private (ranges: Seq[ValueRange]) {

  def within(limits: ValueRange): ValueRanges = ValueRanges.of(ranges.map(_.meet(limits)))

  def meet(other: ValueRanges): ValueRanges =
    ValueRanges.of(for (one <- ranges; another <- other.ranges) yield one.meet(another))

  /** The values of `all` that are in no range. */
  def complement(all: ValueRange): ValueRanges = {
    val lows = all.low +: ranges.map(_.high + 1)
    val highs = ranges.map(_.low - 1) :+ all.high
    ValueRanges.of(lows.zip(highs).map { case (low, high) => ValueRange(low, high) }).within(all)
  }

  /** The only value, if there is just one. */
  def single: Option[BigInt] = ranges match {
    case Seq(ValueRange(low, high)) if low == high => Some(low)
    case _ => None
  }
}

private[rule] object ValueRanges {

  def of(ranges: Seq[ValueRange]): ValueRanges = {
    val sorted = ranges.filterNot(_.isEmpty).sortBy(_.low)
    ValueRanges(sorted.foldLeft(Vector.empty[ValueRange]) {
      case (before :+ last, next) if next.low <= last.high + 1 =>
        before :+ ValueRange(last.low, last.high.max(next.high))
      case (before, next) => before :+ next
    })
  }

  def of(low: BigInt, high: BigInt): ValueRanges = of(Seq(ValueRange(low, high)))
}

/** Types whose values can be counted: whole numbers, days, microseconds. */
private[rule] object CountedType {

  /** All values of a type; none for other types. */
  def domain(kind: DataType): Option[ValueRange] = kind match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampType |
        TimestampNTZType =>
      val size = BigInt(1) << (8 * kind.defaultSize - 1)
      Some(ValueRange(-size, size - 1))
    case _ => None
  }

  /** The value of a literal of such a type that is not null. */
  def valueOf(value: Any): Option[BigInt] = value match {
    case number: Byte => Some(BigInt(number.toInt))
    case number: Short => Some(BigInt(number.toInt))
    case number: Int => Some(BigInt(number))
    case number: Long => Some(BigInt(number))
    case _ => None
  }

  // Before these, legacy files have another calendar, or other time zones, and Spark converts what it
  // pushes into them. After the last one, years have five digits.
  private val firstDay = day(1582, 10, 16)
  private val firstMicros = day(1900, 1, 2) * LocalTimes.microsOfDay
  private val lastDay = day(9999, 12, 31)

  private def day(year: Int, month: Int, day: Int): BigInt =
    BigInt(java.time.LocalDate.of(year, month, day).toEpochDay)

  /** Whether a day is one for which a predicate may be written. */
  def isUsual(days: BigInt): Boolean = days >= firstDay && days <= lastDay

  /**
   * A literal that Spark can push into any file format; none for days and times that are so far away that
   * calendars differ, or that `java.sql.Date`, as which Spark pushes days, does not have in the time zone
   * of the driver.
   */
  def literal(value: BigInt, kind: DataType): Option[Literal] = kind match {
    case _ if !domain(kind).exists(_.contains(ValueRange(value, value))) => None
    case ByteType => Some(Literal(value.toByte))
    case ShortType => Some(Literal(value.toShort))
    case IntegerType => Some(Literal(value.toInt))
    case LongType => Some(Literal(value.toLong))
    case DateType if isUsual(value) && survives(value.toInt) => Some(Literal(value.toInt, DateType))
    case TimestampType | TimestampNTZType
        if value >= firstMicros && value <= lastDay * LocalTimes.microsOfDay =>
      Some(Literal(value.toLong, kind))
    case _ => None
  }

  private def survives(days: Int): Boolean =
    Try(DateTimeUtils.fromJavaDate(DateTimeUtils.toJavaDate(days)) == days).getOrElse(false)
}
