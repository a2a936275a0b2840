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
 * @param conditions of the region that are not of the readings alone, over keys of `one`
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

  private val least = Alias(Min(value).toAggregateExpression(), s"min_${value.name}")()
  private val most = Alias(Max(value).toAggregateExpression(), s"max_${value.name}")()

  /** The rows that pass the filters of both readings. */
  private val rows: Filter =
    Filter(ExpressionSets.distinct(filters ++ keys.map(IsNotNull(_))).reduce(And(_, _)), one)

  /** Each key, with the smallest and the largest of its values. */
  val groups: Aggregate = Aggregate(keys, keys ++ Seq(least, most), rows)

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

  def in(region: InnerRegion): Iterator[KeyedSelfJoin] = {
    val tables = region.relations.collect { case leaf: LeafNode => leaf }
    for {
      i <- tables.indices.iterator
      other <- tables.iterator.drop(i + 1)
      if SameRows.areIn(tables(i), other) && region.hasOwnColumns
      found <- new Readings(region, tables(i), other).selfJoin.iterator
    } yield found
  }

  /** Two readings of one table in a region. */
  private final class Readings(region: InnerRegion, one: LeafNode, other: LeafNode) {

    private val (keyPairs, otherPairs) = {
      val equal = EqualColumns.by(region.conditions)
      one.output.zip(other.output).partition { case (mine, its) => equal.areEqual(mine, its) }
    }
    private val keys = AttributeSet(keyPairs.map(_._1))
    private val keyOfOne = AttributeMap(keyPairs.map(_.swap))
    private val columnOfOne = AttributeMap(otherPairs.map(_.swap))

    // The keys of both readings are equal in all rows, so those of one stand for those of the other.
    private val conditions = ExpressionSets
      .distinct(region.conditions.map(swapped(_, keyOfOne)))
      .filterNot(comparesKeyWithItself)
    private val columns = region.columns.map { case (column, value) =>
      column -> swapped(value, keyOfOne)
    }

    def selfJoin: Option[KeyedSelfJoin] = {
      val (ofOther, rest) = conditions.partition(uses(_, other))
      val (filtersOfOther, between) = ofOther.partition(_.references.subsetOf(other.outputSet))
      val (filters, staying) =
        rest.partition(condition => uses(condition, one) && isOver(condition, one.outputSet))
      for {
        value <- only(between).flatMap(valueThatDiffers)
        used = staying ++ columns.map(_._2)
        if keys.nonEmpty && used.forall(each => each.deterministic && usesKeysOnly(each))
        if haveSameFilters(value, filters, filtersOfOther)
      } yield KeyedSelfJoin(
        region,
        one,
        other,
        keyPairs.map(_._1),
        value,
        filters,
        staying,
        columns
      )
    }

    /** The column of which the two readings have different values: which one is larger does not matter. */
    private def valueThatDiffers(condition: Expression): Option[Attribute] = {
      val compared = condition match {
        case Not(EqualTo(a: Attribute, b: Attribute)) => Some((a, b))
        case LessThan(a: Attribute, b: Attribute) => Some((a, b))
        case GreaterThan(a: Attribute, b: Attribute) => Some((a, b))
        case _ => None
      }
      compared.flatMap { case (a, b) =>
        val (mine, its) = if (one.outputSet.contains(a)) (a, b) else (b, a)
        Option.when(
          columnOfOne.get(its).exists(_.exprId == mine.exprId) && AggregatePush.isComparable(mine)
        )(mine)
      }
    }

    /** Filters on keys stand for both; no null differs from anything. */
    private def haveSameFilters(
        value: Attribute,
        ofOne: Seq[Expression],
        ofOther: Seq[Expression]
    ): Boolean = {
      def that(filters: Seq[Expression]) = filters.filterNot {
        case IsNotNull(column: Attribute) if column.exprId == value.exprId => true
        case filter => isOver(filter, keys)
      }
      ExpressionSets.isSameSet(that(ofOne), that(ofOther.map(swapped(_, columnOfOne))))
    }

    private def usesKeysOnly(expression: Expression): Boolean =
      !uses(expression, other) &&
        expression.references.filter(one.outputSet.contains).subsetOf(keys)

    // Neither is null, as a row is only there if they are equal.
    private def comparesKeyWithItself(condition: Expression): Boolean = condition match {
      case EqualTo(a: Attribute, b: Attribute) => a.exprId == b.exprId && keys.contains(a)
      case _ => false
    }
  }

  private def swapped(expression: Expression, to: AttributeMap[Attribute]): Expression =
    expression.transform { case column: Attribute => to.getOrElse(column, column) }

  private def uses(expression: Expression, relation: LogicalPlan): Boolean =
    expression.references.exists(relation.outputSet.contains)

  private def isOver(expression: Expression, columns: AttributeSet): Boolean =
    expression.references.subsetOf(columns)

  private def only[A](all: Seq[A]): Option[A] = if (all.size == 1) all.headOption else None
}
