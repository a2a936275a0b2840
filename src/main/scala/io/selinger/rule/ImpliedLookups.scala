package io.selinger.rule

import io.selinger.estimate.plans.LeafStatistics
import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions.{
  And,
  Attribute,
  EqualTo,
  ExprId,
  Expression,
  InSubquery,
  ListQuery
}
import org.apache.spark.sql.catalyst.plans.InnerLike
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint, LogicalPlan, Project}

/** Finds filters with IN that say the same of the rows of one region of inner joins. */
private[rule] object ImpliedLookups {

  /** A conjunct of a filter: columns, compared with the columns of a subquery. */
  final case class Lookup(filter: Filter, condition: InSubquery, columns: Seq[Attribute]) {

    /** The rows that are looked up: how many of them are found is not known yet. */
    def input: LogicalPlan = Selectivity
      .conjuncts(filter.condition)
      .filterNot(_.isInstanceOf[InSubquery])
      .reduceOption(And)
      .fold(filter.child)(Filter(_, filter.child))
  }

  /**
   * @param region the joins, filters and projections that hold both
   * @param kept the lookup that stays, that of fewer rows
   * @param removed the one that follows from it
   * @param between conditions of the region, but for lookups that only compare columns
   */
  final case class Implied(
      region: LogicalPlan,
      kept: Lookup,
      removed: Lookup,
      between: Seq[Expression]
  ) {

    def isOneFilter: Boolean = kept.filter eq removed.filter

    /** The joins that both lookups are below. */
    private def joins: Seq[Join] = region.collect {
      case join: Join if join.exists(_ eq removed.filter) => join
    }

    /** Whether what is looked up no more is first joined with what still is. */
    def meetsKeptFirst: Boolean = joins.lastOption.exists(_.exists(_ eq kept.filter))

    /** Columns of the side that stays with which it is joined: Spark reads no others. */
    def columns: Seq[Attribute] = {
      val above = region.collect { case node if node.exists(_ eq kept.filter) => node }
      val used = above.takeWhile(_ ne kept.filter).reverse match {
        case (project: Project) +: _ => project.outputSet
        case _ => kept.filter.outputSet
      }
      kept.filter.output.filter(used.contains)
    }

    def hints: Seq[JoinHint] = region.collect { case join: Join => join.hint }
  }

  /** Those of a plan, without its subqueries; each is removed at most once. */
  def in(plan: LogicalPlan): Seq[Implied] = {
    val operators = regionAt(plan)
    impliedIn(plan, operators) ++ below(plan, operators).flatMap(in)
  }

  /** Operators of the region whose topmost one is `plan`; none where it begins none. */
  private def regionAt(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case Join(_, _, _: InnerLike, _, _) | Filter(_, _) => plan +: plan.children.flatMap(regionAt)
    case Project(columns, child) if columns.forall(_.isInstanceOf[Attribute]) =>
      plan +: regionAt(child)
    case _ => Nil
  }

  private def below(plan: LogicalPlan, region: Seq[LogicalPlan]): Seq[LogicalPlan] =
    if (region.isEmpty) plan.children
    else region.flatMap(_.children).filterNot(child => region.exists(_ eq child))

  private def impliedIn(region: LogicalPlan, operators: Seq[LogicalPlan]): Seq[Implied] = {
    val lookups = operators.collect { case filter: Filter => lookupsOf(filter) }.flatten
    if (lookups.size < 2 || !haveOwnColumns(below(region, operators))) Nil
    else {
      val classes = classesOf(operators)
      val alike = lookups.groupBy(lookup =>
        (
          lookup.columns.map(column => classes.getOrElse(column.exprId, column.exprId)),
          lookup.columns.map(_.dataType),
          lookup.condition.query.canonicalized
        )
      )
      alike.values.toSeq.filter(_.size > 1).flatMap { same =>
        val kept = same.minBy(lookup => rowsOf(lookup.input))
        same
          .filterNot(_.condition eq kept.condition)
          .map(Implied(region, kept, _, conditionsIn(operators)))
      }
    }
  }

  /** Columns are told apart by their ids. */
  private def haveOwnColumns(plans: Seq[LogicalPlan]): Boolean = {
    val ids = plans.flatMap(_.output.map(_.exprId))
    ids.distinct.size == ids.size
  }

  private def conditionsIn(operators: Seq[LogicalPlan]): Seq[Expression] =
    operators.flatMap(_.expressions).flatMap(Selectivity.conjuncts).filter {
      case InSubquery(values, query) =>
        isCorrelated(query) || values.exists(!_.isInstanceOf[Attribute])
      case _ => true
    }

  /** A correlated subquery has conditions of its own for each row. */
  private def isCorrelated(query: ListQuery): Boolean =
    query.outerAttrs.nonEmpty || query.joinCond.nonEmpty

  private def rowsOf(plan: LogicalPlan): Double =
    LeafStatistics.estimator.estimate(plan).fold(Double.MaxValue)(_.rows.value)

  private def lookupsOf(filter: Filter): Seq[Lookup] =
    Selectivity.conjuncts(filter.condition).collect {
      case in @ InSubquery(values, query) if query.plan.deterministic && !isCorrelated(query) =>
        val columns = values.collect {
          case column: Attribute if AggregatePush.isComparable(column) => column
        }
        Option.when(columns.size == values.size)(Lookup(filter, in, columns))
    }.flatten

  /** Columns that are equal in each row of the region, by one of them. */
  private def classesOf(operators: Seq[LogicalPlan]): Map[ExprId, ExprId] = {
    val conditions = operators.flatMap(_.expressions).flatMap(Selectivity.conjuncts)
    conditions.foldLeft(Map.empty[ExprId, ExprId]) {
      case (known, EqualTo(a: Attribute, b: Attribute)) if a.dataType == b.dataType =>
        def classOf(column: Attribute) = known.getOrElse(column.exprId, column.exprId)
        val (one, other) = (classOf(a), classOf(b))
        val merged = known.map { case (column, now) => column -> (if (now == other) one else now) }
        merged ++ Seq(a.exprId -> one, b.exprId -> one)
      case (known, _) => known
    }
  }
}
