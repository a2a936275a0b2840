package io.selinger.estimate

import io.selinger.core.{Origin, Quantity}
import io.selinger.stats.{ColumnStatistics, NumericAxis}
import org.apache.spark.sql.catalyst.expressions._

/**
 * Share of rows that a predicate keeps.
 *
 * @param expected best estimate, 0 to 1
 * @param high a share that would be surprising to exceed; 1 unless rows were counted, for a
 *   range of values says nothing of how often each occurs
 */
final case class Selectivity(expected: Double, high: Double, origin: Origin)

/**
 * Selectivity of predicates from column statistics.
 *
 * Uniform distribution within [min, max] and independence are assumed for what is expected, with
 * damped exponents in conjunctions (their full product underestimates correlated columns). What is
 * feared assumes neither: one value can hold almost all rows, and one outlier can stretch a range.
 */
object Selectivity {

  private val keepsAll = Selectivity(1.0, 1.0, Origin.Exact)

  // Assumed where statistics say nothing; System R's values, of 1979, where it had one.
  private val assumedEquality = 0.1
  private val assumedRange = 1.0 / 3
  private val assumedPattern = 0.1
  private val assumedOther = 0.25

  private def derived(share: Double): Selectivity = Selectivity(clamp(share), 1.0, Origin.Derived)

  /** A share of rows that were counted: certain if they are just the rows that were counted. */
  private def counted(share: Double, input: PlanEstimate): Selectivity =
    if (!input.nullsCounted) derived(share)
    else Selectivity(clamp(share), clamp(share), Origin.Derived)

  private def assumed(share: Double): Selectivity = Selectivity(share, 1.0, Origin.Default)

  /** `input` after the conjuncts in `predicates`, with its columns' statistics narrowed. */
  def filter(input: PlanEstimate, predicates: Seq[Expression]): PlanEstimate = {
    val (ranges, others) = Interval.collect(predicates)
    val parts = ranges.map(_.selectivity(input)) ++ others.map(of(_, input))
    val total = and(parts)
    val kept = input.rows.value * total.expected
    val narrowed = ranges.foldLeft(input.columns)((columns, range) =>
      columns.updated(range.column.exprId, range.narrow(input, columns.get(range.column.exprId)))
    )
    input
      .copy(columns = scaled(narrowed, input.rows.value, kept))
      .withRows(
        Quantity(kept, input.rows.origin.worse(total.origin)),
        input.high * total.high,
        input.bound
      )
  }

  /** Selectivity of one predicate. */
  def of(predicate: Expression, input: PlanEstimate): Selectivity = predicate match {
    case Literal(value: Boolean, _) => if (value) keepsAll else Selectivity(0.0, 0.0, Origin.Exact)
    case Literal(null, _) => Selectivity(0.0, 0.0, Origin.Exact)
    // Filters that Spark adds at run time have their effect from elsewhere in the plan.
    case _: DynamicPruning | _: BloomFilterMightContain => keepsAll
    case _: And =>
      val (ranges, others) = Interval.collect(conjuncts(predicate))
      and(ranges.map(_.selectivity(input)) ++ others.map(of(_, input)))
    case Or(left, right) => or(Seq(of(left, input), of(right, input)))
    case Not(child) => not(of(child, input))
    case IsNull(child) =>
      nulls(child, input).map(counted(_, input)).getOrElse(assumed(assumedEquality))
    case IsNotNull(child) =>
      nulls(child, input).map(share => counted(1.0 - share, input)).getOrElse(assumed(1.0))
    case In(value, list) => in(value, list.size, input)
    case InSet(value, set) => in(value, set.size, input)
    case EqualTo(left, right) => equality(left, right, input)
    case EqualNullSafe(value, Literal(null, _)) => of(IsNull(value), input)
    case EqualNullSafe(left, right) => equality(left, right, input)
    case _: BinaryComparison => assumed(assumedRange)
    case _: StartsWith | _: EndsWith | _: Contains | _: Like | _: RLike => assumed(assumedPattern)
    case _ => assumed(assumedOther)
  }

  def conjuncts(predicate: Expression): Seq[Expression] = predicate match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }

  private def equality(left: Expression, right: Expression, input: PlanEstimate): Selectivity = {
    val counts = Seq(left, right).filterNot(_.foldable).flatMap(input.distinct)
    if (counts.isEmpty) assumed(assumedEquality) else derived(1.0 / counts.max)
  }

  private def in(value: Expression, size: Int, input: PlanEstimate): Selectivity =
    input.distinct(value) match {
      case Some(distinct) => derived(size / distinct)
      case None => assumed(clamp(size * assumedEquality).min(0.5))
    }

  private def nulls(expression: Expression, input: PlanEstimate): Option[Double] =
    input.column(expression).flatMap(_.nullFraction)

  /** Damped: the most selective counts fully, the next by its square root, and so on. */
  private def and(parts: Seq[Selectivity]): Selectivity =
    if (parts.isEmpty) keepsAll
    else {
      val damped = parts.map(_.expected).sorted.zipWithIndex.map { case (share, i) =>
        math.pow(share, 1.0 / (1 << math.min(i, 10)))
      }
      Selectivity(damped.product, parts.map(_.high).min, Origin.worst(parts.map(_.origin)))
    }

  private def or(parts: Seq[Selectivity]): Selectivity =
    Selectivity(
      1.0 - parts.map(1.0 - _.expected).product,
      clamp(parts.map(_.high).sum),
      Origin.worst(parts.map(_.origin))
    )

  private def not(part: Selectivity): Selectivity =
    Selectivity(1.0 - part.expected, 1.0, part.origin)

  /** Distinct values that are left of each column when `before` rows shrink to `after` at random. */
  private def scaled(
      columns: Map[ExprId, ColumnStatistics],
      before: Double,
      after: Double
  ): Map[ExprId, ColumnStatistics] =
    if (before <= 0 || after >= before) columns
    else
      columns.map { case (id, column) =>
        id -> column.copy(distinct = column.distinct.map(survivors(_, before, after)))
      }

  /** Yao's formula, in Cardenas' approximation: each value survives unless all its rows go. */
  private[estimate] def survivors(distinct: Double, before: Double, after: Double): Double = {
    val rowsPerValue = math.max(1.0, before / math.max(distinct, 1.0))
    math.max(1.0, distinct * (1.0 - math.pow(1.0 - after / before, rowsPerValue)))
  }

  private[estimate] def clamp(share: Double): Double = math.max(0.0, math.min(1.0, share))

  /** What the conjuncts on one column leave of its axis. */
  private final case class Interval(column: Attribute, low: Option[Double], high: Option[Double]) {

    private def meet(other: Interval): Interval =
      Interval(
        column,
        (low ++ other.low).maxOption,
        (high ++ other.high).minOption
      )

    def selectivity(input: PlanEstimate): Selectivity = {
      val known = input.columns.get(column.exprId)
      val present = 1.0 - known.flatMap(_.nullFraction).getOrElse(0.0)
      val point = low.isDefined && low == high
      (known.flatMap(_.min), known.flatMap(_.max)) match {
        case (Some(min), Some(max)) =>
          val from = low.fold(min)(math.max(min, _))
          val to = high.fold(max)(math.min(max, _))
          val atLeastOne = input.distinct(column).map(1.0 / _)
          // Never zero: bounds may come from a part of the files.
          if (from > to) derived(1.0 / math.max(1.0, input.rows.value))
          else if (point) {
            atLeastOne.map(share => derived(share * present)).getOrElse(assumed(assumedEquality))
          } else {
            val width = if (max > min) (to - from) / (max - min) else 1.0
            // An axis that ends at infinity says nothing of shares.
            if (width.isNaN) assumed(assumedRange)
            else derived(math.max(width, atLeastOne.getOrElse(0.0)) * present)
          }
        case _ =>
          if (point) {
            input.distinct(
              column
            ).map(d => derived(present / d)).getOrElse(assumed(assumedEquality))
          } else assumed(if (low.isDefined && high.isDefined) assumedRange / 2 else assumedRange)
      }
    }

    /** Statistics of the column within the interval. */
    def narrow(input: PlanEstimate, known: Option[ColumnStatistics]): ColumnStatistics = {
      val before = known.getOrElse(ColumnStatistics())
      val share = selectivity(input).expected
      before.copy(
        nullFraction = Some(0.0),
        min = (before.min ++ low).maxOption.filter(_ => before.min.isDefined || low.isDefined),
        max = (before.max ++ high).minOption,
        distinct =
          if (low.isDefined && low == high) Some(1.0)
          else before.distinct.map(d => math.max(1.0, d * share))
      )
    }
  }

  private object Interval {

    /** The comparisons with literals, one interval a column, and the predicates that are none. */
    def collect(predicates: Seq[Expression]): (Seq[Interval], Seq[Expression]) = {
      val (found, others) = predicates.partitionMap(p => comparison(p).toLeft(p))
      val merged = found.groupBy(_.column.exprId).values.map(_.reduce(_ meet _)).toSeq
      // A comparison says already that the column is not null.
      val compared = merged.map(_.column.exprId).toSet
      val rest = others.filterNot {
        case IsNotNull(child) => PlanEstimate.columnOf(child).exists(c => compared(c.exprId))
        case _ => false
      }
      (merged.sortBy(_.column.exprId.id), rest)
    }

    private def comparison(predicate: Expression): Option[Interval] = predicate match {
      case EqualTo(OnAxis(column), AtPlace(place)) =>
        Some(Interval(column, Some(place), Some(place)))
      case EqualTo(AtPlace(place), OnAxis(column)) =>
        Some(Interval(column, Some(place), Some(place)))
      case GreaterThan(OnAxis(column), AtPlace(place)) => Some(Interval(column, Some(place), None))
      case GreaterThan(AtPlace(place), OnAxis(column)) => Some(Interval(column, None, Some(place)))
      case GreaterThanOrEqual(OnAxis(column), AtPlace(p)) => Some(Interval(column, Some(p), None))
      case GreaterThanOrEqual(AtPlace(p), OnAxis(column)) => Some(Interval(column, None, Some(p)))
      case LessThan(OnAxis(column), AtPlace(place)) => Some(Interval(column, None, Some(place)))
      case LessThan(AtPlace(place), OnAxis(column)) => Some(Interval(column, Some(place), None))
      case LessThanOrEqual(OnAxis(column), AtPlace(place)) =>
        Some(Interval(column, None, Some(place)))
      case LessThanOrEqual(AtPlace(place), OnAxis(column)) =>
        Some(Interval(column, Some(place), None))
      case _ => None
    }
  }

  private object OnAxis {
    def unapply(expression: Expression): Option[Attribute] = PlanEstimate.columnOf(expression)
  }

  private object AtPlace {
    def unapply(expression: Expression): Option[Double] = expression match {
      case Literal(value, kind) => NumericAxis.of(value, kind)
      case _ => None
    }
  }
}
