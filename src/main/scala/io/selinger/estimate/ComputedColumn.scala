package io.selinger.estimate

import io.selinger.core.OneToOne
import io.selinger.stats.{ColumnStatistics, NumericAxis}
import java.time.LocalDate
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.types._

/**
 * What is known of a value that an expression computes from columns. A function has at most as many
 * results as it has inputs, and many have a range of their own. `None` where nothing is known.
 */
object ComputedColumn {

  def statistics(expression: Expression, input: PlanEstimate): Option[ColumnStatistics] =
    expression match {
      case Literal(value, kind) => Some(literal(value, kind))
      case Add(column, Place(by), _) => input.column(column).map(moved(_, _ + by))
      case Add(Place(by), column, _) => input.column(column).map(moved(_, _ + by))
      case Subtract(column, Place(by), _) => input.column(column).map(moved(_, _ - by))
      case Subtract(Place(from), column, _) => input.column(column).map(moved(_, from - _))
      case DateAdd(column, Place(days)) => input.column(column).map(moved(_, _ + days))
      case DateSub(column, Place(days)) => input.column(column).map(moved(_, _ - days))
      case Multiply(column, Place(by), _) => input.column(column).map(moved(_, _ * by))
      case Multiply(Place(by), column, _) => input.column(column).map(moved(_, _ * by))
      case Divide(column, Place(by), _) if by != 0 => input.column(column).map(moved(_, _ / by))
      case UnaryMinus(column, _) => input.column(column).map(moved(_, -_))
      case Year(column) => input.column(column).map(years)
      case part: GetDateField => input.column(part.child).map(calendar(part, _))
      case TruncDate(column, _) => input.column(column).map(values)
      case Cast(column @ Microseconds(), DateType, _, _) => input.column(column).map(days)
      // Narrowed, or written as a text: other values, but no more of them.
      case cast: Cast => input.column(cast.child).map(values)
      case _: Lower | _: Upper | _: String2TrimExpression | _: Round | _: Abs | _: KnownNotNull =>
        input.column(expression.children.head).map(values)
      case Substring(column, _, Literal(length: Int, _)) if length > 0 =>
        Some(prefixes(input.column(column), length))
      case same: OneToOne => input.column(same.value).map(values)
      case Coalesce(children) => input.column(children.head).map(orElse(_, children.tail))
      case choice: ConditionalExpression => choices(choice)
      case AggregateExpression(function, _, _, _, _) => aggregated(function, input)
      case _: Predicate => Some(ColumnStatistics(min = Some(0), max = Some(1), distinct = Some(2)))
      case _ => None
    }

  private def literal(value: Any, kind: DataType): ColumnStatistics = {
    val place = NumericAxis.place(value, kind)
    ColumnStatistics(
      nullFraction = Some(if (value == null) 1.0 else 0.0),
      min = place,
      max = place,
      distinct = Some(1.0)
    )
  }

  /** Through a function of the axis that rises or falls everywhere. */
  private def moved(column: ColumnStatistics, to: Double => Double): ColumnStatistics = {
    val ends = (column.min ++ column.max).map(to).filterNot(_.isNaN).toSeq
    val both = ends.size == 2
    column.copy(
      min = if (both) ends.minOption else None,
      max = if (both) ends.maxOption else None,
      averageBytes = None,
      frequent = Nil,
      quantiles = column.quantiles.filter(_ => both).flatMap(_.moved(to))
    )
  }

  /** Through a function of which nothing is known. */
  private def values(column: ColumnStatistics): ColumnStatistics =
    ColumnStatistics(nullFraction = column.nullFraction, distinct = column.distinct)

  private def limited(column: ColumnStatistics, min: Double, max: Double): ColumnStatistics =
    ColumnStatistics(
      column.nullFraction,
      Some(min),
      Some(max),
      Some(math.min(column.distinct.getOrElse(Double.MaxValue), max - min + 1))
    )

  private def years(column: ColumnStatistics): ColumnStatistics =
    (for (from <- column.min.flatMap(yearOf); to <- column.max.flatMap(yearOf))
      yield limited(column, from, to)).getOrElse(values(column))

  /** Of a day on the axis; none for days that no calendar has. */
  private def yearOf(day: Double): Option[Double] =
    if (math.abs(day) > 1e7) None else Some(LocalDate.ofEpochDay(day.toLong).getYear.toDouble)

  private def calendar(part: GetDateField, column: ColumnStatistics): ColumnStatistics =
    part match {
      case _: Month => limited(column, 1, 12)
      case _: Quarter => limited(column, 1, 4)
      case _: DayOfMonth => limited(column, 1, 31)
      case _: DayOfWeek => limited(column, 1, 7)
      case _: WeekDay => limited(column, 0, 6)
      case _: DayOfYear => limited(column, 1, 366)
      case _: WeekOfYear => limited(column, 1, 53)
      case _ => values(column)
    }

  private val microsADay = 86400e6

  private def days(column: ColumnStatistics): ColumnStatistics =
    (column.min, column.max) match {
      case (Some(from), Some(to)) =>
        limited(column, math.floor(from / microsADay), math.floor(to / microsADay))
      case _ => values(column)
    }

  /** Letters, digits and the rest of what texts begin with. */
  private val symbols = 30.0

  private def prefixes(column: Option[ColumnStatistics], length: Int): ColumnStatistics = {
    val most = math.pow(symbols, math.min(length, 8).toDouble)
    ColumnStatistics(
      nullFraction = column.flatMap(_.nullFraction),
      distinct = column.flatMap(_.distinct).map(math.min(_, most))
    )
  }

  /** CASE and IF over literals return no others. */
  private def choices(choice: ConditionalExpression): Option[ColumnStatistics] = {
    val results = choice match {
      case If(_, yes, no) => Seq(yes, no)
      case CaseWhen(branches, other) => branches.map(_._2) :+ other.getOrElse(Literal(null))
      case _ => Nil
    }
    val literals = results.collect { case Literal(value, kind) => value -> kind }
    if (results.isEmpty || literals.size < results.size) None
    else {
      val present = literals.filter(_._1 != null)
      val places = present.flatMap { case (value, kind) => NumericAxis.place(value, kind) }
      val onAxis = present.nonEmpty && places.size == present.size
      Some(
        ColumnStatistics(
          min = if (onAxis) places.minOption else None,
          max = if (onAxis) places.maxOption else None,
          distinct = Some(math.max(1.0, present.map(_._1).distinct.size.toDouble))
        )
      )
    }
  }

  /** Of the values of a group one is returned as it is. */
  private def aggregated(
      function: AggregateFunction,
      input: PlanEstimate
  ): Option[ColumnStatistics] =
    function match {
      case _: Min | _: Max | _: First | _: Last =>
        input
          .column(function.children.head)
          .map(_.copy(nullFraction = None, averageBytes = None, frequent = Nil, quantiles = None))
      case _ => None
    }

  private def orElse(column: ColumnStatistics, others: Seq[Expression]): ColumnStatistics = {
    val places = others.map {
      case Literal(value, kind) => NumericAxis.place(value, kind)
      case _ => None
    }
    val known = places.forall(_.isDefined)
    ColumnStatistics(
      nullFraction = None,
      min = if (known) column.min.map(min => (min +: places.flatten).min) else None,
      max = if (known) column.max.map(max => (max +: places.flatten).max) else None,
      distinct =
        if (others.forall(_.foldable)) column.distinct.map(_ + others.size.toDouble) else None
    )
  }

  private object Microseconds {
    def unapply(expression: Expression): Boolean =
      expression.dataType == TimestampType || expression.dataType == TimestampNTZType
  }

  /** A literal's place on the axis. */
  private[estimate] object Place {
    def unapply(expression: Expression): Option[Double] = expression match {
      case Literal(value, kind) => NumericAxis.place(value, kind).filterNot(_.isInfinite)
      case _ => None
    }
  }
}
