package io.selinger.estimate.predicates

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.unsafe.types.UTF8String

/**
 * Share of rows that a predicate keeps.
 *
 * @param expected best estimate, 0 to 1
 * @param upperBound the upper bound of the share; 1 unless rows were counted, for a range of values
 *   says nothing of how often each occurs
 */
final case class Selectivity(expected: Double, upperBound: Double, origin: Origin)

/**
 * Selectivity of predicates from column statistics.
 *
 * The expected share assumes uniform distribution within [min, max] and independence, with damped
 * exponents in conjunctions (their full product underestimates correlated columns). The upper bound
 * assumes neither: one value can hold almost all rows, and one outlier can stretch a range.
 */
object Selectivity {

  private val keepsAll = Selectivity(1.0, 1.0, Origin.Exact)
  private val keepsNone = Selectivity(0.0, 0.0, Origin.Exact)

  // Assumed where statistics say nothing; System R's values, of 1979, where it had one.
  private val assumedEquality = 0.1
  private val assumedRange = 1.0 / 3
  private val assumedBetween = 0.05
  private val assumedPattern = 0.1
  private val assumedOther = 0.25

  /** What the second, third, … conjunct adds counts as a power of it. */
  private val damping = 0.75

  private[estimate] def derived(share: Double): Selectivity =
    Selectivity(clamp(share), 1.0, Origin.Derived)

  /** A share of rows that were counted: certain if they are just the rows that were counted. */
  private def counted(share: Double, input: PlanEstimate): Selectivity =
    if (!input.nullsCounted) derived(share)
    else Selectivity(clamp(share), clamp(share), Origin.Derived)

  private[estimate] def assumed(share: Double): Selectivity =
    Selectivity(share, 1.0, Origin.Default)

  /** `input` after the conjuncts in `predicates`, with its columns' statistics narrowed. */
  def filter(input: PlanEstimate, predicates: Seq[Expression]): PlanEstimate = {
    val (ranges, others) = Interval.collect(predicates, input)
    val total = conjunction(ranges, others, input)
    val kept = input.rows.value * total.expected
    val narrowed = others.foldLeft(ranges.foldLeft(input)((known, range) => range.narrow(known)))(
      narrow
    )
    val left = withFewerRows(input, narrowed.columns, kept)
    left
      .copy(
        columns = left.columns ++ narrowedRanges(ranges, input, narrowed, kept),
        domains = narrowed.domains,
        nullSupplied = narrowed.nullSupplied
      )
      .withRows(
        Quantity(kept, input.rows.origin.worse(total.origin)),
        input.upperBound * total.upperBound,
        input.bound
      )
  }

  /** Columns with an interval: their own predicate has taken its values already. */
  private def narrowedRanges(
      ranges: Seq[Interval],
      input: PlanEstimate,
      narrowed: PlanEstimate,
      kept: Double
  ): Seq[(ExprId, ColumnStatistics)] =
    for {
      range <- ranges
      attribute <- PlanEstimate.columnOf(range.value)
      column <- narrowed.columns.get(attribute.exprId)
      before = input.rows.value * range.selectivity(input).expected
    } yield attribute.exprId ->
      column.copy(distinct =
        column.distinct.map(d => if (kept < before) survivors(d, before, kept) else d)
      )

  /** Selectivity of all of these predicates together. */
  private[estimate] def all(predicates: Seq[Expression], input: PlanEstimate): Selectivity = {
    val (ranges, others) = Interval.collect(predicates, input)
    conjunction(ranges, others, input)
  }

  private def conjunction(
      ranges: Seq[Interval],
      others: Seq[Expression],
      input: PlanEstimate
  ): Selectivity = {
    // Two ends that are known only at run time, such as a subquery's result, enclose a small part.
    val ends = others.collect { case end @ UnknownEnd(column) => end -> column.exprId }
    val rest = others.diff(ends.map(_._1))
    val enclosed = ends.map(_._2).distinct.map { column =>
      assumed(if (ends.count(_._2 == column) > 1) assumedBetween else assumedRange)
    }
    and(ranges.map(_.selectivity(input)) ++ enclosed ++ rest.map(estimate(_, input)))
  }

  /** A column's comparison with a value that no column of these rows has. */
  private object UnknownEnd {
    def unapply(comparison: BinaryComparison): Option[Attribute] = comparison match {
      case _: EqualTo | _: EqualNullSafe => None
      case BinaryComparison(Interval.OnColumn(column), end) if isUnknown(end) => Some(column)
      case BinaryComparison(end, Interval.OnColumn(column)) if isUnknown(end) => Some(column)
      case _ => None
    }

    private def isUnknown(end: Expression): Boolean = end.references.isEmpty && !end.foldable
  }

  /** Selectivity of one predicate. */
  def estimate(predicate: Expression, input: PlanEstimate): Selectivity = predicate match {
    case Literal(value: Boolean, _) => if (value) keepsAll else keepsNone
    case Literal(null, _) => keepsNone
    // Filters that Spark adds at run time have their effect from elsewhere in the plan.
    case _: DynamicPruning | _: BloomFilterMightContain => keepsAll
    case _: And => all(conjuncts(predicate), input)
    case _: Or => or(disjuncts(predicate), input)
    case Not(child) => not(child, input)
    case IsNull(child) =>
      nulls(child, input).fold(assumed(assumedEquality))(ofNulls(_, child, input))
    case IsNotNull(child) =>
      nulls(child, input).fold(assumed(1.0))(share => ofNulls(1.0 - share, child, input))
    case In(value, list) => in(value, list, input)
    case InSet(value, set) => in(value, set.toSeq.map(Literal(_, value.dataType)), input)
    case EqualTo(left, right) => equality(left, right, input)
    case EqualNullSafe(value, Literal(null, _)) => estimate(IsNull(value), input)
    case EqualNullSafe(left, right) => equality(left, right, input)
    case comparison: BinaryComparison => Interval.fromComparison(comparison, input) match {
        case Some(range) => range.selectivity(input)
        case None =>
          ColumnComparison.selectivity(comparison, input).getOrElse(assumed(assumedRange))
      }
    case StartsWith(_, text) => pattern(text, input)
    case EndsWith(_, text) => pattern(text, input)
    case Contains(_, text) => pattern(text, input)
    case _: Like | _: RLike | _: MultiLikeBase => assumed(assumedPattern)
    case flag: Attribute => isTrue(flag, input)
    case _ => assumed(assumedOther)
  }

  private def isTrue(flag: Attribute, input: PlanEstimate): Selectivity =
    input.columns
      .get(flag.exprId)
      .flatMap(FrequentValues.fromColumn(_, Some(2.0)))
      .map(_.shareOf(true) * present(flag, input))
      .orElse(input.distinct(flag).map(_ => 0.5))
      .fold(assumed(assumedOther))(derived)

  def conjuncts(predicate: Expression): Seq[Expression] = predicate match {
    case And(left, right) => conjuncts(left) ++ conjuncts(right)
    case other => Seq(other)
  }

  private[estimate] def disjuncts(predicate: Expression): Seq[Expression] = predicate match {
    case Or(left, right) => disjuncts(left) ++ disjuncts(right)
    case other => Seq(other)
  }

  private def equality(left: Expression, right: Expression, input: PlanEstimate): Selectivity =
    (left, right) match {
      case (_, Literal(null, _)) | (Literal(null, _), _) => keepsNone
      case _ =>
        Interval.fromComparison(EqualTo(left, right), input)
          .map(_.selectivity(input))
          .orElse(frequency(left, right, input))
          .getOrElse {
            val sides = Seq(left, right).filterNot(_.foldable)
            val counts = sides.flatMap(input.distinct)
            if (counts.isEmpty) assumed(assumedEquality)
            else derived(sides.map(present(_, input)).product / counts.max)
          }
    }

  /** Of a column that equals a literal. */
  private def frequency(
      left: Expression,
      right: Expression,
      input: PlanEstimate
  ): Option[Selectivity] = (left, right) match {
    case (value, Literal(wanted, _)) if !value.foldable =>
      input.column(value)
        .flatMap(FrequentValues.fromColumn(_, input.distinct(value)))
        .map(values => derived(values.shareOf(wanted) * present(value, input)))
    case (_: Literal, value) if !value.foldable => frequency(right, left, input)
    case _ => None
  }

  /** Literals outside of the column's range find nothing; a longer list never keeps less. */
  private def in(value: Expression, list: Seq[Expression], input: PlanEstimate): Selectivity =
    input.distinct(value) match {
      case Some(distinct) =>
        val range = input.column(value).flatMap(c => for (l <- c.min; h <- c.max) yield (l, h))
        val inside = list.distinct.filter {
          case Interval.AtPlace(place) => range.forall { case (l, h) => place >= l && place <= h }
          case Literal(null, _) => false
          case _ => true
        }
        val values = input.column(value).flatMap(FrequentValues.fromColumn(_, Some(distinct)))
        val share = values.fold(inside.size / distinct) { known =>
          inside.map {
            case Literal(wanted, _) => known.shareOf(wanted)
            case _ => known.each
          }.sum
        }
        derived(math.max(share * present(value, input), input.oneRow))
      case None => assumed(clamp(list.size * assumedEquality).min(0.5))
    }

  /**
   * The longer the text that a value must contain, the fewer do: a tenth for up to three
   * characters, and half of that for each three more.
   */
  private def pattern(text: Expression, input: PlanEstimate): Selectivity = text match {
    case Literal(value: UTF8String, _) =>
      val beyond = math.max(0, math.min(value.numChars(), 12) - 3) / 3
      assumed(math.max(input.oneRow, assumedPattern / (1 << beyond)))
    case _ => assumed(assumedPattern)
  }

  private def present(expression: Expression, input: PlanEstimate): Double =
    1.0 - nulls(expression, input).getOrElse(0.0)

  /** Share of nulls: counted ones, and those that outer joins are expected to have made. */
  private def nulls(expression: Expression, input: PlanEstimate): Option[Double] = {
    val known = input.column(expression).flatMap(_.nullFraction)
    val nullSupplied =
      PlanEstimate.columnOf(expression).flatMap(c => input.nullSupplied.get(c.exprId))
    nullSupplied.fold(known)(share => Some(clamp(share + (1.0 - share) * known.getOrElse(0.0))))
  }

  /** A share of rows by whether they are null: counted, unless an outer join adds nulls. */
  private def ofNulls(share: Double, value: Expression, input: PlanEstimate): Selectivity =
    if (PlanEstimate.columnOf(value).exists(c => !input.nullSupplied.contains(c.exprId)))
      counted(share, input)
    else derived(share)

  /** Damped: the most selective counts fully, each further one as a lower power of itself. */
  private[estimate] def and(parts: Seq[Selectivity]): Selectivity =
    if (parts.isEmpty) keepsAll
    else {
      val damped = parts.map(_.expected).sorted.zipWithIndex.map { case (share, i) =>
        math.pow(share, math.pow(damping, i.toDouble))
      }
      Selectivity(damped.product, parts.map(_.upperBound).min, Origin.worst(parts.map(_.origin)))
    }

  /** Alternatives of one column exclude each other; those of several are independent. */
  private def or(alternatives: Seq[Expression], input: PlanEstimate): Selectivity = {
    val parts = alternatives.map(part => part -> estimate(part, input))
    val shares = parts
      .groupBy { case (part, _) => part.references.toSeq.map(_.exprId.id).sorted }
      .map { case (columns, members) =>
        val shares = members.map(_._2.expected)
        if (columns.size == 1) clamp(shares.sum) else 1.0 - shares.map(1.0 - _).product
      }
      .toSeq
      .sorted
    Selectivity(
      clamp(1.0 - shares.map(1.0 - _).product),
      clamp(parts.map(_._2.upperBound).sum),
      Origin.worst(parts.map(_._2.origin))
    )
  }

  /** The rest; a null is in neither part. */
  private def not(child: Expression, input: PlanEstimate): Selectivity = {
    val part = estimate(child, input)
    val unknown = child match {
      case _: IsNull | _: IsNotNull | _: EqualNullSafe => 0.0
      case _ =>
        val columns = child.references.toSeq
        if (columns.size == 1) nulls(columns.head, input).getOrElse(0.0) else 0.0
    }
    Selectivity(clamp(1.0 - unknown - part.expected), 1.0, part.origin)
  }

  /** What a predicate that is no interval says of its column. */
  private def narrow(input: PlanEstimate, predicate: Expression): PlanEstimate = predicate match {
    case IsNotNull(Interval.OnColumn(column)) => input.without(nullsOf = column)
    case EqualTo(Interval.OnColumn(column), other) if other.foldable => input.atMost(column, 1)
    case EqualTo(other, Interval.OnColumn(column)) if other.foldable => input.atMost(column, 1)
    case In(Interval.OnColumn(column), list) if list.forall(_.foldable) =>
      input.atMost(column, list.size)
    case InSet(Interval.OnColumn(column), set) => input.atMost(column, set.size)
    case StringPredicateOn(column) => input.without(nullsOf = column)
    case _ => input
  }

  private object StringPredicateOn {
    def unapply(predicate: StringPredicate): Option[Attribute] =
      PlanEstimate.columnOf(predicate.left)
  }

  /**
   * `input` when its rows shrink to `after` at random: values and source rows go with them.
   *
   * @param atOnce columns whose values go with all of their rows or stay with all of them
   */
  private[estimate] def withFewerRows(
      input: PlanEstimate,
      columns: Map[ExprId, ColumnStatistics],
      after: Double,
      atOnce: Set[ExprId] = Set.empty
  ): PlanEstimate = {
    val before = input.rows.value
    if (before <= 0 || after >= before) input.copy(columns = columns)
    else
      input.copy(
        columns = columns.map { case (id, column) =>
          id -> column.copy(
            distinct = column.distinct.map { values =>
              if (atOnce(id)) math.max(1.0, values * (after / before))
              else survivors(values, before, after)
            },
            rangeSeen = false
          )
        },
        sourceRows = input.sourceRows.map { case (relation, rows) =>
          relation -> survivors(rows, before, after)
        }
      )
  }

  /** Yao's formula, in Cardenas' approximation: each value survives unless all its rows go. */
  private[estimate] def survivors(distinct: Double, before: Double, after: Double): Double = {
    val rowsPerValue = math.max(1.0, before / math.max(distinct, 1.0))
    // Where all rows stay, the last bits may say that there are more than before.
    math.max(1.0, distinct * (1.0 - math.pow(1.0 - clamp(after / before), rowsPerValue)))
  }

  private[estimate] def clamp(share: Double): Double = math.max(0.0, math.min(1.0, share))
}
