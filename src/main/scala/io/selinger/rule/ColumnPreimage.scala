package io.selinger.rule

import io.selinger.core.Reason
import io.selinger.estimate.plans.ValueBounds
import io.selinger.stats.NumericAxis
import java.time.{DayOfWeek, LocalDate, ZoneId}
import java.time.temporal.TemporalAdjusters
import java.util.Locale
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.DateTimeUtils
import org.apache.spark.sql.types._
import scala.util.Try

/** Why a function is not taken off; no reason where there is nothing to say to a user. */
private[rule] final case class Refusal(reason: Option[Reason])

private[rule] object Refusal {
  val silent: Refusal = Refusal(None)
}

/** The values of a column for which a predicate is true; for others it is false, and null for null. */
private[rule] final case class ColumnRanges(column: Attribute, ranges: ValueRanges)

/** The year, and perhaps the month, that a date is known to lie in. */
private[rule] final case class KnownPeriod(year: Int, month: Option[Int])

/**
 * For which values of a column a function of it is in given ranges.
 *
 * Most functions here never decrease when their argument grows. So the arguments for which f is in
 * [a, b] are those from `lower(a)` to just before `lower(b + 1)`, where `lower(c)` is the smallest argument
 * with f ≥ c. Sums may wrap around: then they turn a circle, and a range is still the image of one
 * range, or of two at the ends of the type. Each function is null for null, and none raises an error: where it
 * could, for values far away, footers must prove that there are none.
 *
 * @param plan whose rows are filtered
 * @param isStored whether a column is read as it is stored
 * @param periods of dates, by their canonical form: only rows of this period matter
 */
private[rule] final class ColumnPreimage(
    plan: LogicalPlan,
    isStored: Attribute => Boolean,
    periods: Map[Expression, KnownPeriod]
) {
  import ColumnPreimage._
  import LocalTimes.ceilDiv

  def of(value: Expression, wanted: ValueRanges): Found[ColumnRanges] = value match {
    case column: Attribute =>
      domainOf(column).flatMap { domain =>
        if (isStored(column)) Right(ColumnRanges(column, wanted.within(domain))) else silent
      }
    case Widened(child) => domainOf(child).flatMap(domain => of(child, wanted.within(domain)))
    case Year(day) => stepped(value, day, wanted)(year => firstDay(year, 1))
    case Month(Known(day, period)) =>
      stepped(value, day, wanted)(month => firstDay(BigInt(period.year), month))
    case Quarter(Known(day, period)) =>
      stepped(value, day, wanted)(quarter => firstDay(BigInt(period.year), quarter * 3 - 2))
    case DayOfMonth(Known(day, KnownPeriod(year, Some(month)))) =>
      val first = LocalDate.of(year, month, 1)
      stepped(value, day, wanted) { number =>
        Right(BigInt(first.toEpochDay) + (number - 1).max(0).min(first.lengthOfMonth))
      }
    // Cut down to days or less, the result is null.
    case TruncDate(day, PeriodName(period)) if period.isDays && period != Days =>
      proven(day, mostDaysOfType)(stepped(value, day, wanted)(firstUnitFrom(_, period)))
    case DayOf(instant, zone) => stepped(value, instant, wanted)(day => startOf(day, zone))
    case StartOf(day, zone) =>
      proven(day, mostDays)(stepped(value, day, wanted)(firstDayFrom(_, zone)))
    case TruncTimestamp(PeriodName(period), instant, Some(id)) =>
      val zone = DateTimeUtils.getZoneId(id)
      proven(instant, mostMicros)(stepped(value, instant, wanted) { micros =>
        if (period.isDays) firstUnitFrom(micros, period, zone)
        else firstPartFrom(micros, period.micros, zone)
      })
    case DateAdd(day, Whole(n)) => summed(value, day, wanted, 1, n, EvalMode.LEGACY)
    case DateSub(day, Whole(n)) => summed(value, day, wanted, 1, -n, EvalMode.LEGACY)
    case DateDiff(day, Whole(n)) => summed(value, day, wanted, 1, -n, EvalMode.LEGACY)
    case DateDiff(Whole(n), day) => summed(value, day, wanted, -1, n, EvalMode.LEGACY)
    case sum @ Add(child, Whole(n), _) => summed(value, child, wanted, 1, n, sum.evalMode)
    case sum @ Add(Whole(n), child, _) => summed(value, child, wanted, 1, n, sum.evalMode)
    case sum @ Subtract(child, Whole(n), _) => summed(value, child, wanted, 1, -n, sum.evalMode)
    case sum @ Subtract(Whole(n), child, _) => summed(value, child, wanted, -1, n, sum.evalMode)
    case Multiply(child, Whole(n), _) => multiplied(value, child, wanted, n)
    case Multiply(Whole(n), child, _) => multiplied(value, child, wanted, n)
    case _ => silent
  }

  /** A function that never decreases, by `lower` (see above). */
  private def stepped(value: Expression, child: Expression, wanted: ValueRanges)(
      lower: BigInt => Found[BigInt]
  ): Found[ColumnRanges] =
    for {
      domain <- domainOf(value)
      from <- domainOf(child)
      found <- all(wanted.within(domain).ranges.map { range =>
        for {
          low <- if (range.low == domain.low) Right(from.low) else lower(range.low)
          next <- if (range.high == domain.high) Right(from.high + 1) else lower(range.high + 1)
        } yield ValueRange(low, next - 1)
      })
      result <- of(child, ValueRanges.of(found))
    } yield result

  /** `sign × child + n`. */
  private def summed(
      value: Expression,
      child: Expression,
      wanted: ValueRanges,
      sign: Int,
      n: BigInt,
      mode: EvalMode.Value
  ): Found[ColumnRanges] =
    for {
      domain <- domainOf(value)
      from <- domainOf(child)
      ranges = wanted.within(domain).ranges
      found <-
        if (domain.contains(image(spanOf(child), sign, n))) {
          Right(ranges.map { range =>
            val at = image(range, sign, -sign * n)
            // All sums are between the ends of the type.
            val (toLow, toHigh) = (range.low == domain.low, range.high == domain.high)
            val (openLow, openHigh) = if (sign > 0) (toLow, toHigh) else (toHigh, toLow)
            ValueRange(if (openLow) from.low else at.low, if (openHigh) from.high else at.high)
          })
        } else if (mode == EvalMode.LEGACY && domain == from) {
          Right(ranges.flatMap(range => around(image(range, sign, -sign * n), domain)))
        } else if (mode == EvalMode.TRY) silent
        else overflow
      result <- of(child, ValueRanges.of(found))
    } yield result

  private def multiplied(
      value: Expression,
      child: Expression,
      wanted: ValueRanges,
      n: BigInt
  ): Found[ColumnRanges] = domainOf(value).flatMap { domain =>
    val span = spanOf(child)
    if (n <= 0) silent
    else if (!domain.contains(ValueRange(span.low * n, span.high * n))) overflow
    else stepped(value, child, wanted)(least => Right(ceilDiv(least, n)))
  }

  /** Goes on if the values of a day or an instant are known to be at most so far from 1970. */
  private def proven(child: Expression, most: BigInt)(found: => Found[ColumnRanges]) =
    if (ValueRange(-most, most).contains(spanOf(child))) found else overflow

  /** Between what values an expression is known to be, by its type and by footers. */
  private def spanOf(value: Expression): ValueRange = {
    val ofType = CountedType.domain(value.dataType).getOrElse(ValueRange(0, -1))
    // Without a footer it is the end of the type.
    def known(room: BigInt) = ValueBounds.largest(value, plan).fold(ofType) { bound =>
      val most = bound.setScale(0, BigDecimal.RoundingMode.CEILING).toBigInt + room
      ofType.meet(ValueRange(-most, most))
    }
    value match {
      case _ if NumericAxis.isWhole(value.dataType) => known(room = 0)
      // Calendars of legacy files differ by some days.
      case column: Attribute =>
        known(if (column.dataType == DateType) 100000 else LocalTimes.microsOfDay * 100000)
      case DayOf(_, _) => ValueRange(-mostDaysOfMicros, mostDaysOfMicros)
      case StartOf(day, _) =>
        val days = spanOf(day)
        ofType.meet(
          ValueRange(
            (days.low - 2) * LocalTimes.microsOfDay,
            (days.high + 2) * LocalTimes.microsOfDay
          )
        )
      case _ => ofType
    }
  }

  private object Known {
    def unapply(day: Expression): Option[(Expression, KnownPeriod)] =
      periods.get(day.canonicalized).map(day -> _)
  }
}

private[rule] object ColumnPreimage {

  type Found[A] = Either[Refusal, A]

  private val silent = Left(Refusal.silent)
  private val overflow = Left(Refusal(Some(UnwrapFunctionsInFilters.MayOverflow)))
  private val clockChange = Left(Refusal(Some(UnwrapFunctionsInFilters.ClockChange)))

  // Days and times that are nearer can be moved by a year, and have a place on the other scale.
  private val mostDays = BigInt(100000000)
  private val mostDaysOfType = BigInt(2000000000)
  private val mostMicros = BigInt(1) << 62
  // Of the largest number of microseconds.
  private val mostDaysOfMicros = BigInt(106751993)

  /** Whether an expression is one of the functions that can be taken off; cheap. */
  def isFunction(value: Expression): Boolean = value match {
    case _: Year | _: Month | _: Quarter | _: DayOfMonth | _: TruncDate | _: TruncTimestamp |
        _: DateAdd | _: DateSub | _: DateDiff =>
      true
    case _: Add | _: Subtract | _: Multiply => CountedType.domain(value.dataType).isDefined
    case DayOf(_, _) | StartOf(_, _) => true
    case _ => false
  }

  private def domainOf(value: Expression): Found[ValueRange] =
    CountedType.domain(value.dataType).toRight(Refusal.silent)

  private def all[A](found: Seq[Found[A]]): Found[Seq[A]] =
    found.collectFirst { case Left(refusal) => Left(refusal) }.getOrElse(
      Right(found.collect { case Right(one) => one })
    )

  private def image(range: ValueRange, sign: Int, n: BigInt): ValueRange =
    if (sign > 0) ValueRange(range.low + n, range.high + n)
    else ValueRange(n - range.high, n - range.low)

  /** A range on the circle that a type makes when it wraps around. */
  private def around(range: ValueRange, domain: ValueRange): Seq[ValueRange] = {
    val circle = domain.high - domain.low + 1
    val low = domain.low + (range.low - domain.low).mod(circle)
    val moved = ValueRange(low, low + (range.high - range.low))
    Seq(moved.meet(domain), ValueRange(domain.low, moved.high - circle))
  }

  /** The first day of a month; months before the first count as it, those after the last as the next year. */
  private def firstDay(year: BigInt, month: BigInt): Found[BigInt] =
    if (year < 1583 || year > 9999) silent
    else {
      val first = LocalDate.of(year.toInt, 1, 1).plusMonths((month - 1).max(0).min(12).toLong)
      Right(BigInt(first.toEpochDay))
    }

  private def dateOf(day: BigInt): Found[LocalDate] =
    if (CountedType.isUsual(day)) Right(LocalDate.ofEpochDay(day.toLong)) else silent

  private def startOf(day: BigInt, zone: ZoneId): Found[BigInt] =
    dateOf(day).flatMap(date =>
      LocalTimes.firstFrom(date.atStartOfDay, zone).fold[Found[BigInt]](
        clockChange
      )(Right(_))
    )

  /** The first day that begins at an instant or later. */
  private def firstDayFrom(micros: BigInt, zone: ZoneId): Found[BigInt] =
    usual(micros).flatMap { _ =>
      val near = LocalTimes.dayOf(micros, zone)
      val days = (-2 to 2).map(n => near.plusDays(n.toLong))
      days
        .find(LocalTimes.startOfDay(_, zone) >= micros)
        .filter(_ != days.head)
        .map(day => BigInt(day.toEpochDay))
        .toRight(Refusal.silent)
    }

  private def firstUnitFrom(day: BigInt, period: Period): Found[BigInt] = dateOf(day).map { date =>
    val begun = period.begin(date)
    BigInt((if (begun == date) begun else period.next(begun)).toEpochDay)
  }

  /**
   * The first instant from which on instants cut down to whole days, weeks, months or years are `micros` or
   * later. Cut down to days, an instant keeps its offset: so a midnight that comes twice has two values,
   * and one in the middle of a gap has another value than the beginning of the day.
   */
  private def firstUnitFrom(micros: BigInt, period: Period, zone: ZoneId): Found[BigInt] =
    usual(micros).flatMap { _ =>
      val begun = period.begin(LocalTimes.dayOf(micros, zone))
      val units = Seq(period.previous(begun), begun, period.next(begun))
      val starts = units.map(LocalTimes.startOfDay(_, zone))
      if (!units.forall(unit => LocalTimes.isPlain(unit.atStartOfDay, zone))) clockChange
      else if (starts(0) >= micros || starts(2) < micros) silent
      else startOf(BigInt(units(if (starts(1) >= micros) 1 else 2).toEpochDay), zone)
    }

  // Further away, an hour, a gap and an overlap together do not reach the instant.
  private val nearby: BigInt = LocalTimes.microsOfDay * 3

  /** The same for hours, minutes and seconds. */
  private def firstPartFrom(micros: BigInt, unit: BigInt, zone: ZoneId): Found[BigInt] =
    usual(micros).flatMap { _ =>
      LocalTimes
        .steadyOffset(micros - nearby, micros + nearby, zone)
        .map(offset => LocalTimes.ceilDiv(micros + offset, unit) * unit - offset)
        .toRight(Refusal(Some(UnwrapFunctionsInFilters.ClockChange)))
    }

  private def usual(micros: BigInt): Found[Unit] =
    if (CountedType.literal(micros, TimestampType).isDefined) Right(()) else silent

  /** A whole number or a day that is not null. */
  private object Whole {
    def unapply(value: Expression): Option[BigInt] = value match {
      case Literal(number, _) => CountedType.valueOf(number)
      case _ => None
    }
  }

  /** A whole number as a wider one. */
  private object Widened {
    def unapply(cast: Cast): Option[Expression] =
      Option.when(
        NumericAxis.isWhole(cast.child.dataType) && NumericAxis.isWhole(cast.dataType) &&
          Cast.canUpCast(cast.child.dataType, cast.dataType)
      )(cast.child)
  }

  /** The local day of an instant, or of a time without a zone. */
  private object DayOf {
    def unapply(value: Expression): Option[(Expression, ZoneId)] = value match {
      case Cast(child, DateType, zone, _) => zoneOf(child.dataType, zone).map(child -> _)
      case _ => None
    }
  }

  /** The beginning of a day. */
  private object StartOf {
    def unapply(value: Expression): Option[(Expression, ZoneId)] = value match {
      case Cast(child, kind, zone, _) if child.dataType == DateType =>
        zoneOf(kind, zone).map(child -> _)
      case _ => None
    }
  }

  private def zoneOf(kind: DataType, zone: Option[String]): Option[ZoneId] = kind match {
    case TimestampNTZType => Some(java.time.ZoneOffset.UTC)
    case TimestampType => zone.flatMap(id => Try(DateTimeUtils.getZoneId(id)).toOption)
    case _ => None
  }

  /** What instants or days are cut down to. */
  private sealed abstract class Period(val isDays: Boolean, val micros: BigInt = BigInt(0)) {
    def begin(day: LocalDate): LocalDate = day
    def next(begun: LocalDate): LocalDate = begun
    final def previous(begun: LocalDate): LocalDate = begin(begun.minusDays(1))
  }

  private final class Months(count: Int) extends Period(isDays = true) {
    override def begin(day: LocalDate): LocalDate =
      LocalDate.of(day.getYear, (day.getMonthValue - 1) / count * count + 1, 1)
    override def next(begun: LocalDate): LocalDate = begun.plusMonths(count.toLong)
  }

  private object Weeks extends Period(isDays = true) {
    override def begin(day: LocalDate): LocalDate =
      day.`with`(TemporalAdjusters.previousOrSame(DayOfWeek.MONDAY))
    override def next(begun: LocalDate): LocalDate = begun.plusDays(7)
  }

  private object Days extends Period(isDays = true) {
    override def next(begun: LocalDate): LocalDate = begun.plusDays(1)
  }

  private final class Seconds(count: Int)
      extends Period(isDays = false, LocalTimes.microsOfSecond * count)

  /** The names that `trunc` and `date_trunc` know; `trunc` returns null for those below a week. */
  private object PeriodName {
    def unapply(name: Expression): Option[Period] = name match {
      case Literal(text, _: StringType) if text != null =>
        text.toString.toUpperCase(Locale.ROOT) match {
          case "YEAR" | "YYYY" | "YY" => Some(new Months(12))
          case "QUARTER" => Some(new Months(3))
          case "MONTH" | "MM" | "MON" => Some(new Months(1))
          case "WEEK" => Some(Weeks)
          case "DAY" | "DD" => Some(Days)
          case "HOUR" => Some(new Seconds(3600))
          case "MINUTE" => Some(new Seconds(60))
          case "SECOND" => Some(new Seconds(1))
          case _ => None
        }
      case _ => None
    }
  }
}
