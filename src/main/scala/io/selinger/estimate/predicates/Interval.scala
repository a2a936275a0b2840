package io.selinger.estimate.predicates

import io.selinger.estimate.PlanEstimate
import io.selinger.stats.{ColumnStatistics, FrequentValue, NumericAxis}
import org.apache.spark.sql.catalyst.expressions._

/**
 * What comparisons with literals leave of the axis of one column, or of what is computed from it.
 *
 * @param value the column, or the expression
 */
private[estimate] final case class Interval(
    value: Expression,
    low: Option[Interval.End],
    high: Option[Interval.End]
) {
  import Interval._

  private def intersect(other: Interval): Interval =
    Interval(
      value,
      // Of two ends at one place, the exclusive one is the stricter.
      (low ++ other.low).reduceOption((a, b) => if (stricter(a, b, a.place > b.place)) a else b),
      (high ++ other.high).reduceOption((a, b) => if (stricter(a, b, a.place < b.place)) a else b)
    )

  private def isPoint: Boolean =
    (for (l <- low; h <- high) yield l.place == h.place && l.inclusive && h.inclusive)
      .getOrElse(false)

  def selectivity(input: PlanEstimate): Selectivity = {
    val known = input.column(value)
    val nulls = known.flatMap(_.nullFraction).getOrElse(0.0)
    val nullSupplied = PlanEstimate.columnOf(value).flatMap(c => input.nullSupplied.get(c.exprId))
    val present = (1.0 - nulls) * (1.0 - nullSupplied.getOrElse(0.0))
    val one = known
      .filter(_ => isPoint)
      .flatMap(FrequentValues.fromColumn(_, input.distinct(value)))
      .flatMap(values => low.map(end => values.shareOf(end.place)))
      .orElse(input.distinct(value).map(1.0 / _))
    byQuantiles(known, input).map(share => Selectivity.derived(share * present)).getOrElse(
      byRange(known, present, one, input)
    )
  }

  /** From quantiles, where they are known; they say too little of a single value. */
  private def byQuantiles(known: Option[ColumnStatistics], input: PlanEstimate): Option[Double] =
    for (column <- known; quantiles <- column.quantiles if !isPoint) yield {
      val step = column.step
      val from = low.fold(0.0)(end =>
        if (end.inclusive) quantiles.shareBelow(end.place, step)
        else quantiles.shareUpTo(end.place, step)
      )
      val to = high.fold(1.0)(end =>
        if (end.inclusive) quantiles.shareUpTo(end.place, step)
        else quantiles.shareBelow(end.place, step)
      )
      // Never zero: what lies between two places is not known exactly.
      math.max(input.oneRow, math.min(1.0, to - from))
    }

  private def byRange(
      known: Option[ColumnStatistics],
      present: Double,
      one: Option[Double],
      input: PlanEstimate
  ): Selectivity = {
    def ofPoint =
      one.fold(Selectivity.assumed(assumedPoint))(share => Selectivity.derived(share * present))
    (known.flatMap(_.min), known.flatMap(_.max)) match {
      case (Some(min), Some(max)) =>
        val step = known.fold(0.0)(_.step)
        val from = low.fold(min)(end => math.max(min, end.first(step)))
        val to = high.fold(max)(end => math.min(max, end.last(step)))
        // Never zero: bounds may come from a part of the files.
        if (from > to) Selectivity.derived(input.oneRow)
        else if (isPoint) ofPoint
        else {
          val width = if (max > min) (to - from + step) / (max - min + step) else 1.0
          // An axis that ends at infinity says nothing of shares.
          if (width.isNaN) Selectivity.assumed(assumedPart)
          else Selectivity.derived(math.max(math.min(width, 1.0), one.getOrElse(0.0)) * present)
        }
      case _ =>
        if (isPoint) ofPoint
        else if (low.isDefined && high.isDefined) Selectivity.assumed(assumedPart / 2)
        else Selectivity.assumed(assumedPart)
    }
  }

  /** Share of the column's values, rather than of its rows: a few values can have most rows. */
  private def valuesLeft(column: ColumnStatistics, input: PlanEstimate): Double =
    if (column.quantiles.isEmpty) selectivity(input).expected
    else byRange(Some(column), 1.0, None, input).expected

  /** What is left of the frequent values, as shares of the rows that are left. */
  private def frequentLeft(column: ColumnStatistics, input: PlanEstimate): Seq[FrequentValue] = {
    val left = byQuantiles(Some(column), input).getOrElse(valuesLeft(column, input))
    FrequentValues.within(column, left)(f => NumericAxis.place(f.value).forall(contains))
  }

  private def contains(place: Double): Boolean =
    low.forall(end => place > end.place || (end.inclusive && place == end.place)) &&
      high.forall(end => place < end.place || (end.inclusive && place == end.place))

  /** `input` with the column within the interval. */
  def narrow(input: PlanEstimate): PlanEstimate =
    PlanEstimate.columnOf(value) match {
      case None => input
      case Some(column) =>
        val before = input.columns.getOrElse(column.exprId, ColumnStatistics())
        val values = valuesLeft(before, input)
        val (from, to) = (low.map(_.place), high.map(_.place))
        val after = before.copy(
          nullFraction = Some(0.0),
          min = (before.min ++ from).maxOption,
          max = (before.max ++ to).minOption,
          distinct =
            if (isPoint) Some(1.0) else before.distinct.map(d => math.max(1.0, d * values)),
          frequent = if (isPoint) Nil else frequentLeft(before, input),
          quantiles =
            if (isPoint) None
            else
              before.quantiles.flatMap(
                _.within(
                  from.getOrElse(Double.NegativeInfinity),
                  to.getOrElse(Double.PositiveInfinity)
                )
              )
        )
        val domains = input.domains.map {
          case (id, domain) if id == column.exprId =>
            id -> (if (isPoint) domain.atMost(1) else domain.narrowed(values))
          case other => other
        }
        input.copy(
          columns = input.columns.updated(column.exprId, after),
          domains = domains,
          nullSupplied = input.nullSupplied - column.exprId
        )
    }
}

private[estimate] object Interval {

  // System R's values, of 1979.
  private val assumedPoint = 0.1
  private val assumedPart = 1.0 / 3

  /** An end of an interval; values lie a `step` apart on the axis, or anywhere if that is 0. */
  final case class End(place: Double, inclusive: Boolean) {
    def first(step: Double): Double = if (inclusive) place else place + step
    def last(step: Double): Double = if (inclusive) place else place - step
  }

  private def stricter(a: End, b: End, beyond: Boolean): Boolean =
    beyond || (a.place == b.place && !a.inclusive)

  /** The comparisons with literals, one interval a value, and the predicates that are none. */
  def collect(
      predicates: Seq[Expression],
      input: PlanEstimate
  ): (Seq[Interval], Seq[Expression]) = {
    val (found, others) = predicates.partitionMap(p => fromComparison(p, input).toLeft(p))
    val merged = found
      .groupBy(_.value.canonicalized)
      .values
      .map(_.reduce(_ intersect _))
      .toSeq
      .sortBy(interval => found.indexWhere(_.value.canonicalized == interval.value.canonicalized))
    // A comparison says already that the column is not null.
    val compared = merged.flatMap(_.value.references.map(_.exprId)).toSet
    // A column that equals one value has nothing left that another predicate could take.
    val settled = predicates.collect {
      case EqualTo(OnColumn(column), value) if value.foldable => column.exprId
      case EqualTo(value, OnColumn(column)) if value.foldable => column.exprId
    }.toSet
    val rest = others.filterNot {
      case IsNotNull(OnColumn(column)) => compared(column.exprId) || settled(column.exprId)
      case In(OnColumn(column), _) => settled(column.exprId)
      case InSet(OnColumn(column), _) => settled(column.exprId)
      case Not(EqualTo(OnColumn(column), value)) => value.foldable && settled(column.exprId)
      case _ => false
    }
    (merged, rest)
  }

  def fromComparison(predicate: Expression, input: PlanEstimate): Option[Interval] = {
    def onAxis(value: Expression): Boolean =
      PlanEstimate.columnOf(value).isDefined ||
        (!value.foldable && input.column(value).exists(_.min.isDefined))
    def from(value: Expression, place: Double, inclusive: Boolean) =
      Option.when(onAxis(value))(Interval(value, Some(End(place, inclusive)), None))
    def upTo(value: Expression, place: Double, inclusive: Boolean) =
      Option.when(onAxis(value))(Interval(value, None, Some(End(place, inclusive))))
    def at(value: Expression, place: Double) = {
      val end = Some(End(place, inclusive = true))
      Option.when(onAxis(value))(Interval(value, end, end))
    }
    predicate match {
      case EqualTo(value, AtPlace(place)) => at(value, place)
      case EqualTo(AtPlace(place), value) => at(value, place)
      case GreaterThan(value, AtPlace(place)) => from(value, place, inclusive = false)
      case GreaterThan(AtPlace(place), value) => upTo(value, place, inclusive = false)
      case GreaterThanOrEqual(value, AtPlace(place)) => from(value, place, inclusive = true)
      case GreaterThanOrEqual(AtPlace(place), value) => upTo(value, place, inclusive = true)
      case LessThan(value, AtPlace(place)) => upTo(value, place, inclusive = false)
      case LessThan(AtPlace(place), value) => from(value, place, inclusive = false)
      case LessThanOrEqual(value, AtPlace(place)) => upTo(value, place, inclusive = true)
      case LessThanOrEqual(AtPlace(place), value) => from(value, place, inclusive = true)
      case _ => None
    }
  }

  object OnColumn {
    def unapply(expression: Expression): Option[Attribute] = PlanEstimate.columnOf(expression)
  }

  object AtPlace {
    def unapply(expression: Expression): Option[Double] = expression match {
      case Literal(value, kind) => NumericAxis.place(value, kind)
      case _ => None
    }
  }
}
