package io.selinger.estimate

import io.selinger.core.{Origin, PlanningPass, Quantity}
import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Rows and column statistics of any logical plan, from those of its leaves.
 *
 * A pure function of the plan and `leaf`; `None` means that nothing is known, which is never the
 * same as zero or a product. Results are shared within one planning pass.
 *
 * @param leaf statistics of a leaf under the predicates directly above it, and those predicates
 *   that the answer has already taken into account
 */
final class CardinalityEstimator(
    leaf: (LeafNode, Seq[Expression]) => Option[(PlanEstimate, Seq[Expression])]
) {

  def estimate(plan: LogicalPlan): Option[PlanEstimate] =
    PlanningPass.current.memo[Option[PlanEstimate]](plan)(compute(plan))

  private def compute(plan: LogicalPlan): Option[PlanEstimate] = plan match {
    case Filter(condition, source: LeafNode) =>
      val predicates = Selectivity.conjuncts(condition)
      leaf(source, predicates).map { case (input, applied) =>
        Selectivity.filter(input, predicates.filterNot(applied.contains))
      }
    case source: LeafNode => leaf(source, Nil).map(_._1)
    case Filter(condition, child) =>
      estimate(child).map(Selectivity.filter(_, Selectivity.conjuncts(condition)))
    case project: Project => estimate(project.child).map(projected(_, project.projectList))
    case join: Join => JoinEstimator.estimate(join, estimate(join.left), estimate(join.right))
    case aggregate: Aggregate => grouped(aggregate)
    case Distinct(child) => estimate(child).map(distinctRows(_, child.output))
    case union: Union => united(union)
    case Limit(Literal(most: Int, _), child) => limited(child, most.toDouble)
    case Offset(Literal(skipped: Int, _), child) =>
      estimate(child).map(without(_, skipped.toDouble))
    case sample: Sample if !sample.withReplacement =>
      estimate(sample.child).map { input =>
        val share = Selectivity.clamp(sample.upperBound - sample.lowerBound)
        input.withRows(
          Quantity(input.rows.value * share, input.rows.origin.worse(Origin.Derived)),
          input.high * share * 1.5,
          input.bound
        )
      }
    case expand: Expand =>
      estimate(expand.child).map { input =>
        val copies = expand.projections.size.toDouble
        repeated(input)
          .withRows(
            input.rows.copy(value = input.rows.value * copies),
            input.high * copies,
            input.bound.map(_ * copies)
          )
      }
    case generate: Generate => estimate(generate.child).map(generated(_, generate))
    case window: Window => estimate(window.child).map(_.copy(measuredRowBytes = None))
    // A local limit holds for each partition, of which there may be any number.
    case unary @ (_: LocalLimit | _: Sort | _: RepartitionOperation | _: SubqueryAlias | _: View | _: GlobalLimit |
        _: WithWindowDefinition | _: ReturnAnswer | _: RebalancePartitions | _: WindowGroupLimit) =>
      estimate(unary.children.head)
    case other => unknownOperator(other)
  }

  /** Operators that run user code or came after this was written: no bound, and nothing certain. */
  private def unknownOperator(plan: LogicalPlan): Option[PlanEstimate] = plan.children match {
    case Seq(child) =>
      estimate(child).map { input =>
        PlanEstimate(
          Quantity(input.rows.value, Origin.Default),
          high = PlanEstimate.most,
          bound = None,
          columns = input.columns
        )
      }
    case _ => None
  }

  private def projected(input: PlanEstimate, list: Seq[NamedExpression]): PlanEstimate = {
    val columns = list.flatMap { named =>
      val (value, shown) = named match {
        case Alias(child, _) => (child, input.column(child))
        case attribute => (attribute, input.column(attribute))
      }
      val computed = ValueWidth
        .of(value, input.columns)
        .filter(_ > 0)
        .map(width => ColumnStatistics(averageBytes = Some(width)))
      shown.orElse(computed).map(named.exprId -> _)
    }
    // A projection that keeps all columns as they are keeps the measured width.
    val same = list.forall(_.isInstanceOf[Attribute]) && list.size == input.columns.size
    input.copy(
      columns = columns.toMap,
      measuredRowBytes = if (same) input.measuredRowBytes else None
    )
  }

  private def grouped(aggregate: Aggregate): Option[PlanEstimate] =
    if (aggregate.groupingExpressions.isEmpty) Some(PlanEstimate.exactly(1, Origin.Exact))
    else
      estimate(aggregate.child).map { input =>
        val groups = projected(
          groupRows(input, aggregate.groupingExpressions),
          aggregate.aggregateExpressions
        )
        groups.copy(measuredRowBytes = None)
      }

  private def distinctRows(input: PlanEstimate, output: Seq[Attribute]): PlanEstimate =
    groupRows(input, output)

  /** One row a combination of `keys`; at most the input's rows, which is also the cautious guess. */
  private def groupRows(input: PlanEstimate, keys: Seq[Expression]): PlanEstimate = {
    val counts = keys.filterNot(_.foldable).map(input.distinct)
    val known = counts.flatten.product
    val unknown = counts.count(_.isEmpty)
    // Of a key without statistics, Spark's users group by one value in ten rows, say.
    val expected =
      if (unknown == 0) known else math.max(known, input.rows.value * 0.1)
    val origin = if (unknown == 0) Origin.Derived else Origin.Default
    input.withRows(
      Quantity(math.min(expected, input.rows.value), input.rows.origin.worse(origin)),
      input.high,
      input.bound
    )
  }

  private def united(union: Union): Option[PlanEstimate] = {
    val inputs = union.children.map(estimate)
    if (inputs.exists(_.isEmpty)) None
    else {
      val parts = inputs.flatten
      val bounds = parts.map(_.bound)
      val columns = union.output.zipWithIndex.flatMap { case (column, i) =>
        val sources = union.children.zip(parts).map { case (child, part) =>
          part.columns.get(child.output(i).exprId).map(part.rows.value -> _)
        }
        if (sources.exists(_.isEmpty)) None
        else Some(column.exprId -> unitedColumn(sources.flatten))
      }
      Some(
        PlanEstimate(
          Quantity(
            math.min(PlanEstimate.most, parts.map(_.rows.value).sum),
            Origin.worst(parts.map(_.rows.origin))
          ),
          math.min(PlanEstimate.most, parts.map(_.high).sum),
          if (bounds.forall(_.isDefined)) Some(bounds.flatten.sum) else None,
          columns.toMap
        )
      )
    }
  }

  private def unitedColumn(parts: Seq[(Double, ColumnStatistics)]): ColumnStatistics = {
    val rows = math.max(1.0, parts.map(_._1).sum)
    def all(pick: ColumnStatistics => Option[Double]): Option[Seq[Double]] = {
      val values = parts.map(part => pick(part._2))
      if (values.forall(_.isDefined)) Some(values.flatten) else None
    }
    def average(pick: ColumnStatistics => Option[Double]): Option[Double] =
      all(pick).map(_.zip(parts).map { case (value, (n, _)) => value * n }.sum / rows)
    ColumnStatistics(
      nullFraction = average(_.nullFraction),
      min = all(_.min).map(_.min),
      max = all(_.max).map(_.max),
      // The parts of one column usually draw from one domain.
      distinct = all(_.distinct).map(_.max),
      averageBytes = average(_.averageBytes)
    )
  }

  private def limited(child: LogicalPlan, most: Double): Option[PlanEstimate] =
    estimate(child) match {
      case Some(input) =>
        Some(
          input.withRows(
            input.rows.copy(value = math.min(input.rows.value, most)),
            math.min(input.high, most),
            Some(math.min(input.bound.getOrElse(most), most))
          )
        )
      case None => Some(PlanEstimate(Quantity(most, Origin.Default), most, Some(most)))
    }

  private def without(input: PlanEstimate, skipped: Double): PlanEstimate =
    input.withRows(
      input.rows.copy(value = math.max(0.0, input.rows.value - skipped)),
      input.high,
      input.bound
    )

  /** Rows that return several times, with other columns. */
  private def repeated(input: PlanEstimate): PlanEstimate = input.copy(measuredRowBytes = None)

  /** Explode and its like: lists have ten elements until something is known of them. */
  private def generated(input: PlanEstimate, generate: Generate): PlanEstimate = {
    val factor = generate.generator match {
      case stack: Stack => stack.children.head.eval().toString.toDouble
      case _ => 10.0
    }
    repeated(input)
      .withRows(
        Quantity(math.min(input.rows.value * factor, PlanEstimate.most), Origin.Default),
        PlanEstimate.most,
        None
      )
  }
}

/** Rows out of joins. */
object JoinEstimator {

  private val assumedResidual = 1.0 / 3

  def estimate(
      join: Join,
      leftRows: Option[PlanEstimate],
      rightRows: Option[PlanEstimate]
  ): Option[PlanEstimate] =
    for (left <- leftRows; right <- rightRows) yield {
      val matches = inner(join, left, right)
      join.joinType match {
        case _: InnerLike => matches
        case LeftOuter | LeftSingle => outer(matches, Seq(left), padded = Seq(right))
        case RightOuter => outer(matches, Seq(right), padded = Seq(left))
        case FullOuter => outer(matches, Seq(left, right), padded = Seq(left, right))
        case LeftSemi => reduced(left, matches, semi = true)
        case LeftAnti => reduced(left, matches, semi = false)
        case _: ExistenceJoin => left.copy(measuredRowBytes = None)
        case _ => matches
      }
    }

  /** Pairs of rows that satisfy the condition, whatever the type of the join. */
  def inner(join: Join, left: PlanEstimate, right: PlanEstimate): PlanEstimate = {
    val product = math.min(PlanEstimate.most, left.rows.value * right.rows.value)
    val inputs = left.rows.origin.worse(right.rows.origin)
    val (rows, origin, residual) = join match {
      case ExtractEquiJoinKeys(_, leftKeys, rightKeys, other, _, _, _, _) =>
        val (pairs, source) = matches(leftKeys, rightKeys, left, right)
        (pairs, source, other)
      case _ => (product, Origin.Default, join.condition)
    }
    val kept = residual.map(residualShare).getOrElse(1.0)
    val (leftKey, rightKey) =
      (matchedByKey(join, isLeft = true), matchedByKey(join, isLeft = false))
    val feared = Seq(
      Some(math.min(PlanEstimate.most, left.high * right.high)),
      if (rightKey) Some(left.high) else None,
      if (leftKey) Some(right.high) else None
    ).flatten.min
    PlanEstimate(
      Quantity(0, Origin.Exact),
      0,
      None,
      left.columns ++ right.columns
    )
      .withRows(Quantity(rows * kept, inputs.worse(origin)), feared, boundOf(join, left, right))
  }

  /** Pairs of rows with equal keys, and where that number comes from. */
  def matches(
      leftKeys: Seq[Expression],
      rightKeys: Seq[Expression],
      left: PlanEstimate,
      right: PlanEstimate
  ): (Double, Origin) = {
    val present = (leftKeys.map(nulls(_, left)) ++ rightKeys.map(nulls(_, right)))
      .map(1.0 - _)
      .product
    val product = math.min(PlanEstimate.most, left.rows.value * right.rows.value)
    (composite(leftKeys, left), composite(rightKeys, right)) match {
      case (Some(l), Some(r)) => (product * present / math.max(l, r), Origin.Derived)
      // Without a count of keys, one side is taken as the other's dimension.
      case _ => (math.max(left.rows.value, right.rows.value), Origin.Default)
    }
  }

  /** Whether a row of the other side is proven to find at most one row of this one. */
  private def matchedByKey(join: Join, isLeft: Boolean): Boolean = join match {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, l, r, _) =>
      if (isLeft) unique(l, leftKeys) else unique(r, rightKeys)
    case _ => false
  }

  /** A join returns no more rows than one side where the other side's keys are proven unique. */
  private def boundOf(join: Join, left: PlanEstimate, right: PlanEstimate): Option[Double] = {
    val product = for (l <- left.bound; r <- right.bound) yield l * r
    val proven = (if (matchedByKey(join, isLeft = false)) left.bound else None).toSeq ++
      (if (matchedByKey(join, isLeft = true)) right.bound else None)
    (proven ++ product).minOption
  }

  private def unique(plan: LogicalPlan, keys: Seq[Expression]): Boolean = {
    val joined = ExpressionSet(keys)
    plan.distinctKeys.exists(key => key.nonEmpty && key.subsetOf(joined))
  }

  private def residualShare(condition: Expression): Double =
    Selectivity.conjuncts(condition).map(_ => assumedResidual).min

  private def nulls(key: Expression, side: PlanEstimate): Double =
    side.column(key).flatMap(_.nullFraction).getOrElse(0.0)

  /** Distinct combinations of the keys: at most one a row, and no more than independence allows. */
  private def composite(keys: Seq[Expression], side: PlanEstimate): Option[Double] = {
    val counts = keys.map(side.distinct)
    // One key that is nearly unique settles it, whatever the others are.
    val settled = counts.flatten.exists(_ >= 0.9 * side.rows.value)
    if (settled) Some(math.max(1.0, side.rows.value))
    else if (counts.exists(_.isEmpty)) None
    else Some(math.max(1.0, math.min(counts.flatten.product, side.rows.value)))
  }

  /**
   * Rows of the preserved sides return at least once; how many are padded with nulls on the other
   * side is not known, so nothing is known of nulls there.
   */
  private def outer(
      matches: PlanEstimate,
      preserved: Seq[PlanEstimate],
      padded: Seq[PlanEstimate]
  ): PlanEstimate = {
    val bounds = matches.bound +: preserved.map(_.bound)
    val withNulls = padded.flatMap(_.columns.keys).toSet
    matches
      .copy(columns = matches.columns.map {
        case (id, column) if withNulls(id) => id -> column.copy(nullFraction = None)
        case other => other
      })
      .withRows(
        Quantity(
          (matches.rows.value +: preserved.map(_.rows.value)).max,
          Origin.worst(matches.rows.origin +: preserved.map(_.rows.origin))
        ),
        matches.high + preserved.map(_.high).sum,
        if (bounds.forall(_.isDefined)) Some(bounds.flatten.sum) else None
      )
  }

  private def reduced(left: PlanEstimate, matches: PlanEstimate, semi: Boolean): PlanEstimate = {
    val found = math.min(left.rows.value, matches.rows.value)
    // What an anti join keeps is a small difference of two guesses; a tenth at least is assumed.
    val kept = if (semi) found else math.max(left.rows.value - found, left.rows.value * 0.1)
    left.withRows(
      Quantity(kept, left.rows.origin.worse(matches.rows.origin)),
      left.high,
      left.bound
    )
  }
}
