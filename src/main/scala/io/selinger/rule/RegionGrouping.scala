package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.plans.{FileColumns, LeafStatistics}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * An aggregation of a region of inner joins.
 *
 * @param written what it groups by, over the columns of its input
 * @param keys the same over the columns of the relations
 */
private[rule] final case class RegionGrouping(
    aggregate: Aggregate,
    region: InnerRegion,
    written: Seq[Expression],
    keys: Seq[Expression]
) {

  val functions: Seq[AggregateExpression] = Functions.of(aggregate)

  /** Whether neither what it groups by nor what it makes of its functions can raise errors. */
  def hasSafeResults: Boolean =
    keys.forall(RaisedErrors.isSafe) &&
      aggregate.aggregateExpressions.forall(result =>
        RaisedErrors.isSafe(result.transform { case function: AggregateExpression =>
          AttributeReference("result", function.dataType)(function.resultId)
        })
      )

  private val relations: IndexedSeq[LogicalPlan] = region.relations.toIndexedSeq
  private val equal = EqualColumns.by(region.conditions)
  private val usedByFunctions = AttributeSet(functions.flatMap(region.over(_).references))
  private val columnsGroupedBy = keys.collect { case column: Attribute => column }

  /** The relations of which an expression has columns. */
  private def placesOf(expression: Expression): Set[Int] =
    relations.indices
      .filter(place => expression.references.exists(relations(place).outputSet.contains))
      .toSet

  /** Conditions of several relations, with these. */
  private val between: Seq[(Expression, Set[Int])] =
    region.conditions.map(condition => condition -> placesOf(condition)).filter(_._2.size > 1)

  /**
   * The ways to join tables to the groups: each table that gives a column to group by, with all tables that
   * it takes along.
   */
  def ways: Seq[LaterJoins] =
    relations.indices
      .filter(place => keys.exists(_.references.exists(relations(place).outputSet.contains)))
      .flatMap(place => closure(Set(place)))
      .distinct
      .flatMap(ordered)

  /** The tables of several ways together. */
  def together(some: LaterJoins, others: LaterJoins): Seq[LaterJoins] =
    ordered(some.places ++ others.places)

  /**
   * Whether a relation gives nothing but columns to group by. A group has 0.0 where its rows have -0.0,
   * so those of floating-point numbers have to be grouped by.
   */
  private def groupsOnly(place: Int): Boolean = {
    val own = relations(place).outputSet
    !usedByFunctions.exists(own.contains) &&
    keys.forall(key =>
      !key.references.exists(own.contains) ||
        key.references.subsetOf(own) && AggregatePush.isComparable(key)
    )
  }

  /** Tables, and others that are joined by what their groups do not have. None if one has to stay. */
  private def closure(places: Set[Int]): Option[Set[Int]] =
    if (!places.forall(groupsOnly)) None
    else {
      val owned = AttributeSet(places.toSeq.flatMap(relations(_).output))
      val told = AttributeSet(places.toSeq.flatMap(comparedWithKeyed))
      val more = between
        .filter(_._2.exists(places))
        .flatMap(_._1.references)
        .filterNot(column => owned.contains(column) || told.contains(column) || isGroupedBy(column))
        .flatMap(placesOf)
      if (more.isEmpty) Some(places) else closure(places ++ more)
    }

  // A group shows other bits than those of its rows where equal values may differ in them.
  private def isGroupedBy(column: Attribute): Boolean =
    AggregatePush.isComparable(column) && columnsGroupedBy.exists(equal.areEqual(_, column))

  /** Columns of others that a join compares with a table, of which the aggregation groups by another key. */
  private def comparedWithKeyed(place: Int): Seq[Attribute] =
    if (ownKey(place).isEmpty) Nil else between.flatMap(one => compared(place, one._1)).map(_._2)

  /** Columns that a condition compares for equality: one of a relation, and one of others. */
  private def compared(place: Int, condition: Expression): Option[(Attribute, Attribute)] = {
    val own = relations(place).outputSet
    condition match {
      case EqualTo(left, right) =>
        for {
          a <- FileColumns.renamed(left)
          b <- FileColumns.renamed(right)
          if own.contains(a) != own.contains(b)
          if AggregatePush.isComparable(a) && AggregatePush.isComparable(b)
        } yield if (own.contains(a)) (a, b) else (b, a)
      case _ => None
    }
  }

  /**
   * Tables in an order in which the columns that each is joined by are those of groups, or of tables
   * before it. Each is identified by what its join compares, if possible; or else by another key that is
   * grouped by, if possible.
   */
  private def ordered(places: Set[Int]): Seq[LaterJoins] =
    Seq(true, false)
      .flatMap(byJoinFirst => ordered(places, byJoinFirst))
      .distinctBy(_.tables.map(_.key))
      .flatMap(joins => Seq(joins, joins.copy(merges = true)))
      .filter(_.isPossible)

  private def ordered(places: Set[Int], byJoinFirst: Boolean): Option[LaterJoins] = {
    def next(tables: Seq[GroupTable], added: Seq[Attribute]): Option[LaterJoins] = {
      val left = places -- tables.map(_.place)
      if (left.isEmpty) Some(LaterJoins(this, tables, added.distinctBy(_.exprId), merges = false))
      else
        left.toSeq.sorted.iterator
          .flatMap(table(_, tables, left, byJoinFirst))
          .nextOption()
          .flatMap { case (found, columns) => next(tables :+ found, added ++ columns) }
    }
    if (places.size == relations.size) None else next(Nil, Nil)
  }

  /**
   * A table of which each group has one row, with the columns of the rows that it is joined by.
   *
   * @param before tables that are joined before
   * @param left this one and those that are joined after it
   */
  private def table(
      place: Int,
      before: Seq[GroupTable],
      left: Set[Int],
      byJoinFirst: Boolean
  ): Option[(GroupTable, Seq[Attribute])] = {
    val joined = AttributeSet(before.flatMap(_.rows.output))
    val conditions = between.collect {
      case (condition, places) if places(place) && !(left - place).exists(places) => condition
    }
    val foreign = AttributeSet(conditions.flatMap(_.references)) -- relations(place).output
    val pairs = conditions.flatMap(compared(place, _))
    def isKnown(column: Attribute) = joined.contains(column) || isGroupedBy(column)
    def found(key: Seq[Attribute], isComparedByJoin: Boolean) =
      (GroupTable(place, filtered(place), key, isComparedByJoin), (foreign -- joined).toSeq)
    val compares = pairs.collect { case (key, other) if isKnown(other) => key }.distinctBy(_.exprId)
    val byJoin =
      Option.when(mayIdentify(place, compares) && foreign.forall(isKnown))(found(compares, true))
    // Its row tells what it is compared with.
    val isTold =
      foreign.forall(column => isKnown(column) || pairs.exists(_._2.exprId == column.exprId))
    val byOwnKey = ownKey(place).filter(_ => pairs.nonEmpty && isTold).map(key =>
      found(Seq(key), isComparedByJoin = false)
    )
    if (byJoinFirst) byJoin.orElse(byOwnKey) else byOwnKey.orElse(byJoin)
  }

  private def filtered(place: Int): LogicalPlan = {
    val relation = relations(place)
    val own = region.conditions.filter { condition =>
      condition.references.nonEmpty && condition.references.subsetOf(relation.outputSet)
    }
    own.reduceOption(And(_, _)).fold(relation)(Filter(_, relation))
  }

  /** The column to group by that may identify the rows of a table. */
  private def ownKey(place: Int): Option[Attribute] =
    columnsGroupedBy
      .filter(relations(place).outputSet.contains)
      .maxByOption(shareOfRows(place, _))
      .filter(column => mayIdentify(place, Seq(column)))

  /** Whether columns may be a key, judging by estimates; it is proven only where that matters. */
  private def mayIdentify(place: Int, key: Seq[Attribute]): Boolean = key match {
    case Seq(column) => shareOfRows(place, column) >= RegionGrouping.leastShare
    case columns => columns.nonEmpty
  }

  /** Distinct values for each row; 1 where nothing is known. */
  private def shareOfRows(place: Int, column: Attribute): Double =
    LeafStatistics.estimator.estimate(relations(place)).flatMap { known =>
      known.distinct(column).map(_ / math.max(1.0, known.rows.value))
    }.getOrElse(1.0)
}

private[rule] object RegionGrouping {

  // Estimated distinct values for each row of a column that may be a key.
  private val leastShare = 0.8

  /** An aggregation over inner joins of relations whose columns have different ids. */
  def of(aggregate: Aggregate): Option[RegionGrouping] =
    if (aggregate.groupingExpressions.isEmpty || aggregate.hint.nonEmpty) None
    else {
      val region = InnerRegion.of(aggregate.child)
      val keys = aggregate.groupingExpressions.map(region.over)
      // Spark leaves out what has no rows.
      val hasRows = !region.relations.exists(_.maxRows.contains(0L))
      Option.when(region.relations.size > 1 && region.hasOwnColumns && hasRows)(
        RegionGrouping(aggregate, region, aggregate.groupingExpressions, keys)
      )
    }
}
