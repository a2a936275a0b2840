package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Max, Min}
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * A table that a region of inner joins joins with itself, by a key and by two different values of one other
 * column, and of which nothing but the key is used.
 *
 * @param one of the two readings of the table
 * @param other reading
 * @param keys of `one`
 * @param value of `one` that the two rows differ in
 * @param filters of both readings, over columns of `one`
 * @param conditions of the region that concern neither of the readings alone, over keys of `one`
 * @param columns of the region, with their values over keys of `one` and other relations
 */
private[rule] final case class KeyedSelfJoin(
    region: InnerRegion,
    one: LeafNode,
    other: LeafNode,
    keys: Seq[Attribute],
    value: Attribute,
    filters: Seq[Expression],
    conditions: Seq[Expression],
    columns: Seq[(Attribute, Expression)]
) {

  /** The keys that have rows with different values. */
  val groups: Aggregate = {
    val present = ExpressionSets.distinct(filters ++ keys.map(IsNotNull(_)))
    val results = keys ++ Seq(least, most)
    Aggregate(keys, results, Filter(present.reduce(And(_, _)), one))
  }

  private lazy val least = Alias(Min(value).toAggregateExpression(), s"min_${value.name}")()
  private lazy val most = Alias(Max(value).toAggregateExpression(), s"max_${value.name}")()

  /** The region without duplicates of its rows that come from more than one pair of the table's rows. */
  def replacement: LogicalPlan = {
    val differing = Filter(LessThan(least.toAttribute, most.toAttribute), groups)
    val others = region.relations.filterNot(relation => (relation eq one) || (relation eq other))
    val results = columns.map {
      case (column, same: Attribute) if same.exprId == column.exprId => same
      case (column, value) => Alias(value, column.name)(column.exprId, column.qualifier)
    }
    Project(results, InnerRegion.joined(differing +: others, conditions))
  }
}

private[rule] object KeyedSelfJoin {

  /** The first one in a region, if there is one. */
  def in(region: InnerRegion): Option[KeyedSelfJoin] =
    if (!region.hasOwnColumns) None
    else {
      val tables = region.relations.collect { case leaf: LeafNode => leaf }
      val pairs = for {
        (one, i) <- tables.iterator.zipWithIndex
        other <- tables.iterator.drop(i + 1)
        if one.sameResult(other)
        found <- of(region, one, other).iterator
      } yield found
      pairs.nextOption()
    }

  private def of(region: InnerRegion, one: LeafNode, other: LeafNode): Option[KeyedSelfJoin] = {
    val equal = EqualColumns.by(region.conditions)
    val (keys, free) = one.output.zip(other.output).partition { case (a, b) =>
      equal.areEqual(a, b)
    }
    val keySet = AttributeSet(keys.map(_._1))
    val keysOfOne = AttributeMap(keys.map(_.swap))
    val columnsOfOne = AttributeMap(free.map(_.swap))
    def swapped(expression: Expression, of: AttributeMap[Attribute]) =
      expression.transform { case column: Attribute => of.getOrElse(column, column) }
    def usesKeys(expression: Expression) = {
      val ofPair = expression.references.filter(column =>
        one.outputSet.contains(column) || other.outputSet.contains(column)
      )
      ofPair.subsetOf(keySet)
    }

    val conditions = ExpressionSets
      .distinct(region.conditions.map(swapped(_, keysOfOne)))
      .filterNot(isTrivial)
    val (ofOther, rest) = conditions.partition(_.references.exists(other.outputSet.contains))
    val (filtersOfOther, between) = ofOther.partition(_.references.subsetOf(other.outputSet))
    val (filtersOfOne, staying) = rest.partition { condition =>
      condition.references.nonEmpty && condition.references.subsetOf(one.outputSet)
    }
    val columns = region.columns.map { case (column, value) => column -> swapped(value, keysOfOne) }
    between match {
      case Seq(Differ(a, b)) if keys.nonEmpty && AggregatePush.isComparable(a) =>
        val value = Seq(a, b).find(one.outputSet.contains)
        val isOneColumn = value.exists(mine =>
          Seq(a, b).exists(columnsOfOne.get(_).exists(_.exprId == mine.exprId))
        )
        // A comparison holds for no null.
        def tested(filters: Seq[Expression]) = filters.filterNot {
          case IsNotNull(column: Attribute) if value.exists(_.exprId == column.exprId) => true
          case condition => condition.references.subsetOf(keySet)
        }
        val hasSameRows = ExpressionSets.isSameSet(
          tested(filtersOfOne),
          tested(filtersOfOther.map(swapped(_, columnsOfOne)))
        )
        value.filter(_ =>
          isOneColumn && hasSameRows && staying.forall(usesKeys) &&
            columns.forall { case (_, result) => usesKeys(result) }
        ).map(
          KeyedSelfJoin(region, one, other, keys.map(_._1), _, filtersOfOne, staying, columns)
        )
      case _ => None
    }
  }

  /** Rows of two readings that have different values: which of them is larger does not matter. */
  private object Differ {
    def unapply(condition: Expression): Option[(Attribute, Attribute)] = condition match {
      case Not(EqualTo(a: Attribute, b: Attribute)) => Some((a, b))
      case LessThan(a: Attribute, b: Attribute) => Some((a, b))
      case GreaterThan(a: Attribute, b: Attribute) => Some((a, b))
      case _ => None
    }
  }

  /** A key compared with itself, which is not null. */
  private def isTrivial(condition: Expression): Boolean = condition match {
    case EqualTo(a, b) => ExpressionSets.isSame(a, b)
    case _ => false
  }
}
