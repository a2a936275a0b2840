package io.selinger.estimate.plans

import io.selinger.core.{Origin, PassKey, PlanningPass, Quantity}
import io.selinger.estimate.{Domain, PlanEstimate, ValueWidth}
import io.selinger.estimate.joins.{EquiJoin, JoinEstimator}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.{ColumnStatistics, Quantiles}
import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Rows and column statistics of any logical plan, from those of its leaves.
 *
 * A pure function of the plan and `leaf`; `None` means that nothing is known, which is never the
 * same as zero or a product. Results are shared within one query: see [[EqualPlans]].
 *
 * @param leaf statistics of a leaf under the predicates directly above it, and those predicates
 *   that the answer has already taken into account
 * @param unfinished a leaf that stands for a plan, with what is known of the rows of that plan
 */
final class CardinalityEstimator(
    leaf: (LeafNode, Seq[Expression]) => Option[(PlanEstimate, Seq[Expression])],
    unfinished: LeafNode => Option[PlanEstimate] = _ => None
) {

  private val estimates = new PassKey[Option[PlanEstimate]]("estimates")
  private val equal = new EqualPlans

  def estimate(plan: LogicalPlan): Option[PlanEstimate] =
    PlanningPass.current.memo(estimates, plan)(equal.estimate(plan)(compute(plan)))

  /** Unlike a relation's, the rows of a plan are not independent of its columns. */
  private object Unfinished {
    def unapply(plan: LogicalPlan): Option[PlanEstimate] = plan match {
      case source: LeafNode => unfinished(source)
      case _ => None
    }
  }

  private def compute(plan: LogicalPlan): Option[PlanEstimate] = plan match {
    case Unfinished(known) => Some(known)
    case Filter(condition, Unfinished(known)) =>
      Some(Selectivity.filter(known, Selectivity.conjuncts(condition)))
    case Filter(condition, source: LeafNode) =>
      val predicates = Selectivity.conjuncts(condition)
      leaf(source, predicates).map { case (input, applied) =>
        Selectivity.filter(
          input.asRelation(source.output),
          predicates.filterNot(applied.contains)
        )
      }
    case source: LeafNode => leaf(source, Nil).map(_._1.asRelation(source.output))
    case Filter(condition, child) =>
      estimate(child).map(Selectivity.filter(_, Selectivity.conjuncts(condition)))
    case project: Project => estimate(project.child).map(projected(_, project.projectList))
    case join: Join =>
      for (left <- estimate(join.left); right <- estimate(join.right))
        yield JoinEstimator.estimate(EquiJoin.of(join), left, right)
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
          input.upperBound * share * 1.5,
          input.bound
        )
      }
    case expand: Expand => estimate(expand.child).map(expanded(_, expand))
    case generate: Generate => estimate(generate.child).map(generated(_, generate))
    case window: Window => estimate(window.child).map(ranked(_, window))
    case limit: WindowGroupLimit =>
      estimate(limit.child).map { input =>
        val groups = Combinations.of(limit.partitionSpec, input)
        val most = math.min(input.rows.value, groups.count * limit.limit)
        input.withRows(
          Quantity(most, input.rows.origin.worse(originOf(groups))),
          input.upperBound,
          input.bound
        )
      }
    case Intersect(left, right, _) =>
      for (l <- estimate(left); r <- estimate(right)) yield {
        val rows = math.min(l.rows.value, r.rows.value)
        l.unsampled.withRows(
          Quantity(rows, l.rows.origin.worse(r.rows.origin)),
          l.upperBound,
          l.bound
        )
      }
    case Except(left, _, _) =>
      estimate(left).map(l =>
        l.unsampled.withRows(
          Quantity(l.rows.value, l.rows.origin.worse(Origin.Default)),
          l.upperBound,
          l.bound
        )
      )
    // A local limit holds for each partition, of which there may be any number.
    case unary @ (_: LocalLimit | _: Sort | _: RepartitionOperation | _: SubqueryAlias | _: View | _: GlobalLimit |
        _: WithWindowDefinition | _: ReturnAnswer | _: RebalancePartitions) =>
      estimate(unary.children.head)
    case other => unknownOperator(other)
  }

  /** Operators that run user code or came after this was written: no bound, and nothing certain. */
  private def unknownOperator(plan: LogicalPlan): Option[PlanEstimate] = plan.children match {
    case Seq(child) =>
      estimate(child).map { input =>
        PlanEstimate(
          Quantity(input.rows.value, Origin.Default),
          upperBound = PlanEstimate.most,
          bound = None,
          columns = input.columns
        )
      }
    case _ => None
  }

  private def projected(input: PlanEstimate, list: Seq[NamedExpression]): PlanEstimate = {
    val columns = list.flatMap { named =>
      val value = valueOf(named)
      val shown = input.column(value)
      val width = ValueWidth.bytes(value, input.columns).filter(_ > 0)
      val columns = shown.getOrElse(ColumnStatistics())
      val sized = columns.copy(averageBytes = columns.averageBytes.orElse(width))
      Option.when(sized != ColumnStatistics())(named.exprId -> sized)
    }
    // A projection that keeps all columns as they are keeps the measured width.
    val same = list.forall(_.isInstanceOf[Attribute]) && list.size == input.columns.size
    // They determine columns that are kept.
    val joinedBy = input.determinants.valuesIterator.flatten.map(_.exprId).toSet
    input.copy(
      columns = input.columns.filter(known => joinedBy(known._1)) ++ columns,
      measuredRowBytes = if (same) input.measuredRowBytes else None,
      domains = input.domains.filter(known => joinedBy(known._1)) ++
        list.flatMap(named => input.domain(valueOf(named)).map(named.exprId -> _)),
      nullSupplied = renamed(input.nullSupplied, list),
      extremes = renamed(input.extremes, list)
    )
  }

  /** What is known of columns, by the names that `list` gives them. */
  private def renamed[A](known: Map[ExprId, A], list: Seq[NamedExpression]): Map[ExprId, A] =
    if (known.isEmpty) known
    else
      list.flatMap { named =>
        PlanEstimate
          .columnOf(valueOf(named))
          .flatMap(column => known.get(column.exprId))
          .map(named.exprId -> _)
      }.toMap

  private def valueOf(named: NamedExpression): Expression = named match {
    case Alias(child, _) => child
    case attribute => attribute
  }

  private def grouped(aggregate: Aggregate): Option[PlanEstimate] =
    if (aggregate.groupingExpressions.isEmpty) Some(PlanEstimate.exactly(1, Origin.Exact))
    else
      estimate(aggregate.child).map { input =>
        val keys = aggregate.groupingExpressions
        val groups = aggregate.child match {
          case expand: Expand => estimate(expand.child).map(groupingSets(expand, keys, _))
          case _ => None
        }
        val combinations =
          groups.getOrElse(Combinations.of(notComputed(keys, aggregate.child), input))
        val grouped = projected(
          groupRows(input, keys, inEachTask(aggregate, input, combinations)),
          aggregate.aggregateExpressions
        )
        val (totals, extremes) = computed(aggregate, input, grouped.rows.value)
        grouped.copy(
          measuredRowBytes = None,
          columns = grouped.columns ++ totals.map { case (id, quantiles) =>
            id -> grouped.columns.getOrElse(id, ColumnStatistics()).copy(quantiles =
              Some(quantiles)
            )
          },
          extremes = grouped.extremes ++ extremes
        )
      }

  /** Keys without those that are computed from others, or are others, which make no more groups. */
  private def notComputed(keys: Seq[Expression], input: LogicalPlan): Seq[Expression] = {
    val definitions = input match {
      case Project(list, _) => list.collect { case alias: Alias =>
          alias.exprId -> alias.child
        }.toMap
      case _ => Map.empty[ExprId, Expression]
    }
    def definition(key: Expression) = key match {
      case column: Attribute => definitions.getOrElse(column.exprId, column)
      case computed => computed
    }
    val columns = AttributeSet(keys.map(definition).collect { case column: Attribute => column })
    val (fixed, random) = keys.partition(definition(_).deterministic)
    val independent = fixed.distinctBy(definition(_).canonicalized).filterNot { key =>
      definition(key) match {
        case _: Attribute => false
        case made => made.references.nonEmpty && made.references.subsetOf(columns)
      }
    }
    independent ++ random
  }

  /**
   * An aggregate with a hint leaves the groups of each task, not of all tasks together. How many tasks
   * there are depends on the session's cores and settings.
   */
  private def inEachTask(
      aggregate: Aggregate,
      input: PlanEstimate,
      groups: Combinations
  ): Combinations =
    if (aggregate.hint.isEmpty) groups
    else {
      val slots = SparkSession.getActiveSession.fold(1)(_.sparkContext.defaultParallelism)
      val tasks = TaskGroups.of(aggregate.child, input, slots)
      val all = Quantity(groups.count, originOf(groups))
      groups.copy(count = tasks.inAllTasks(all, aggregate.groupingExpressions).value)
    }

  /** What is known of values that are computed from all rows of a group. */
  private def computed(
      aggregate: Aggregate,
      input: PlanEstimate,
      groups: Double
  ): (Seq[(ExprId, Quantiles)], Seq[(ExprId, String)]) = {
    val rows = math.max(1.0, input.rows.value / math.max(1.0, groups))
    val values = aggregate.aggregateExpressions.collect { case alias: Alias => alias }
    val totals = values.flatMap { alias =>
      GroupTotals.distribution(alias.child, rows, input).map(alias.exprId -> _)
    }
    val extremes = values.flatMap {
      case alias @ Alias(AggregateExpression(function @ (_: Min | _: Max), _, _, None, _), _) =>
        PlanEstimate.columnOf(function.children.head).map(alias.exprId -> _.name)
      case _ => None
    }
    (totals, extremes)
  }

  private def distinctRows(input: PlanEstimate, output: Seq[Attribute]): PlanEstimate =
    groupRows(input, output, Combinations.of(output, input))

  /**
   * Groups of all grouping sets (or of distinct aggregates, which Spark makes from the same
   * operator): each copy of the rows has groups of its own, by the keys that it does not blank.
   */
  private def groupingSets(
      expand: Expand,
      keys: Seq[Expression],
      source: PlanEstimate
  ): Combinations = {
    val sets = expand.projections.map { projection =>
      val values = expand.output.map(_.exprId).zip(projection).toMap
      Combinations.of(
        keys.map(_.transform {
          case column: Attribute => values.getOrElse(column.exprId, column)
        }),
        source
      )
    }
    Combinations(sets.map(_.count).sum, sets.forall(_.known))
  }

  private def originOf(groups: Combinations): Origin =
    if (groups.known) Origin.Derived else Origin.Default

  /** One row a combination of `keys`; at most the input's rows, which is also the cautious guess. */
  private def groupRows(
      input: PlanEstimate,
      keys: Seq[Expression],
      groups: Combinations
  ): PlanEstimate = {
    val rows = math.max(1.0, math.min(groups.count, input.rows.value))
    val counted = keys.flatMap(PlanEstimate.columnOf).map { key =>
      val column = input.columns.getOrElse(key.exprId, ColumnStatistics())
      // The groups of a single key are its values.
      val values = if (keys.size == 1) Some(rows) else column.distinct.map(math.min(_, rows))
      key.exprId -> column.copy(distinct = values, frequent = Nil)
    }
    input.unsampled
      .copy(columns = input.columns ++ counted)
      .withRows(
        Quantity(rows, input.rows.origin.worse(originOf(groups))),
        input.upperBound,
        input.bound
      )
  }

  /** Ranks count up to the rows of a partition, of which each is taken to have as many. */
  private def ranked(input: PlanEstimate, window: Window): PlanEstimate = {
    val partitions = Combinations.of(window.partitionSpec, input).count
    val most = math.max(1.0, input.rows.value / partitions)
    val rank = ColumnStatistics(Some(0.0), Some(1.0), Some(most), Some(most))
    val ranks = window.windowExpressions.collect {
      case alias @ Alias(WindowExpression(_: RankLike | _: RowNumberLike, _), _) =>
        alias.exprId -> rank
    }
    input.copy(columns = input.columns ++ ranks, measuredRowBytes = None)
  }

  private def united(union: Union): Option[PlanEstimate] = {
    val inputs = union.children.map(estimate)
    if (inputs.exists(_.isEmpty)) None
    else {
      val parts = inputs.flatten
      val bounds = parts.map(_.bound)
      Some(
        PlanEstimate(
          Quantity(
            math.min(PlanEstimate.most, parts.map(_.rows.value).sum),
            Origin.worst(parts.map(_.rows.origin))
          ),
          math.min(PlanEstimate.most, parts.map(_.upperBound).sum),
          if (bounds.forall(_.isDefined)) Some(bounds.flatten.sum) else None,
          unitedBy(union, parts) { (part, column) =>
            part.columns.get(column.exprId).map(part.rows.value -> _)
          }(unitedColumn),
          domains = unitedBy(union, parts)(_.domain(_)) { sources =>
            val values = sources.map(_.values)
            val most = if (values.forall(_.isDefined)) values.flatten.maxOption else None
            Domain(most, sources.map(_.rows).sum, unionOf(union))
          },
          sourceRows = Map(unionOf(union) -> parts.map(_.rows.value).sum)
        )
      )
    }
  }

  /** A union is a relation of its own: no leaf's number is negative. */
  private def unionOf(union: Union): Long = -1L - union.output.headOption.fold(0L)(_.exprId.id)

  /** Of each column, what follows from what is known of it in all parts. */
  private def unitedBy[A, B](union: Union, parts: Seq[PlanEstimate])(
      known: (PlanEstimate, Attribute) => Option[A]
  )(unite: Seq[A] => B): Map[ExprId, B] =
    union.output.zipWithIndex.flatMap { case (column, i) =>
      val sources = union.children.zip(parts).map { case (child, part) =>
        known(part, child.output(i))
      }
      Option.when(sources.forall(_.isDefined))(column.exprId -> unite(sources.flatten))
    }.toMap

  /** The parts of one column usually draw from one domain, unless each is a literal. */
  private def unitedDistinct(parts: Seq[ColumnStatistics], counts: Seq[Double]): Double =
    if (counts.exists(_ > 1)) counts.max
    else if (parts.forall(_.min.isDefined)) parts.flatMap(_.min).distinct.size.toDouble
    else parts.size.toDouble

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
      distinct = all(_.distinct).map(unitedDistinct(parts.map(_._2), _)),
      averageBytes = average(_.averageBytes)
    )
  }

  private def limited(child: LogicalPlan, most: Double): Option[PlanEstimate] =
    estimate(child) match {
      case Some(input) =>
        Some(
          input.withRows(
            input.rows.copy(value = math.min(input.rows.value, most)),
            math.min(input.upperBound, most),
            Some(math.min(input.bound.getOrElse(most), most))
          )
        )
      case None => Some(PlanEstimate(Quantity(most, Origin.Default), most, Some(most)))
    }

  private def without(input: PlanEstimate, skipped: Double): PlanEstimate =
    input.withRows(
      input.rows.copy(value = math.max(0.0, input.rows.value - skipped)),
      input.upperBound,
      input.bound
    )

  /** Rows that return several times, with other columns. */
  private def repeated(input: PlanEstimate): PlanEstimate =
    input.copy(measuredRowBytes = None, fanOut = Map.empty)

  /** Copies of the rows; a column of one source has its values, and nulls in an unknown part. */
  private def expanded(input: PlanEstimate, expand: Expand): PlanEstimate = {
    val copies = expand.projections.size.toDouble
    val sources = expand.output.zipWithIndex.flatMap { case (column, i) =>
      expand.projections.map(_(i)).filterNot(_.foldable).distinctBy(_.canonicalized) match {
        case Seq(only) => Some(column.exprId -> only)
        case _ => None
      }
    }
    val columns = sources.flatMap { case (id, source) =>
      input.column(source).map(id -> _.copy(nullFraction = None))
    }
    repeated(input).unsampled
      .copy(
        columns = input.columns ++ columns,
        domains = input.domains ++ sources.flatMap { case (id, source) =>
          input.domain(source).map(domain => id -> domain.copy(sample = None))
        }
      )
      .withRows(
        input.rows.copy(value = math.min(PlanEstimate.most, input.rows.value * copies)),
        math.min(PlanEstimate.most, input.upperBound * copies),
        input.bound.map(_ * copies)
      )
  }

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
