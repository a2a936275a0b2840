package io.selinger.rule

import io.selinger.estimate.joins.EquiJoin
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Average}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.DecimalType

/**
 * A table of which an aggregation uses columns to group by only, and of which each group has one row, if
 * `key` is one.
 *
 * @param place among the relations of the region
 * @param rows of the table, filtered by its own conditions
 * @param key what identifies its rows
 * @param isComparedByJoin whether the table is joined by `key`; if not, the aggregation groups by it
 */
private[rule] final case class GroupTable(
    place: Int,
    rows: LogicalPlan,
    key: Seq[Attribute],
    isComparedByJoin: Boolean
) {

  /**
   * Whether no two rows have the same key. Rows with a null are left aside where the join compares the
   * key, since they have no match; all rows whose null is grouped by would be one group.
   */
  lazy val isProven: Boolean =
    ProvenKeys.areUnique(key, rows) &&
      (isComparedByJoin || ProvenKeys.areNeverNull(key, rows))
}

/**
 * An aggregation, and tables that can be joined to its groups instead of its rows.
 *
 * @param tables in an order in which each is joined by columns of groups, or of tables before it
 * @param added columns of rows that joins of the groups compare, and that rows are grouped by for that
 * @param merges whether the groups are merged after the joins, so that they need not have one row each of
 *   the tables
 */
private[rule] final case class LaterJoins(
    grouping: RegionGrouping,
    tables: Seq[GroupTable],
    added: Seq[Attribute],
    merges: Boolean
) {
  import grouping.region

  val places: Set[Int] = tables.map(_.place).toSet

  private val later: AttributeSet = AttributeSet(tables.flatMap(_.rows.output))

  private val (ofGroups, ofRows) =
    region.conditions.partition(_.references.exists(later.contains))

  private val remaining: Seq[LogicalPlan] =
    region.relations.indices.filterNot(places).map(region.relations)

  private val rows: LogicalPlan = InnerRegion.joined(remaining, ofRows)

  /** Each key that rows are grouped by, with its column. */
  private val firstKeys: Seq[(Expression, NamedExpression)] =
    grouping.keys.filterNot(_.references.exists(later.contains)).map(key => key -> named(key))

  private def named(key: Expression): NamedExpression = key match {
    case column: Attribute => column
    case computed => Alias(computed, "key")()
  }

  /** What is computed of each group, and each function's value above the joins. */
  private val functions: Seq[(AggregateExpression, Option[PartialAggregate])] =
    grouping.functions.map { function =>
      region.over(function) match {
        case below: AggregateExpression if merges =>
          function -> Option.unless(isRounded(below))(below).flatMap(PartialAggregate.of(_, rows))
        case below =>
          val whole = Alias(below, function.aggregateFunction.prettyName)()
          function -> Some(PartialAggregate(Seq(whole), whole.toAttribute))
      }
    }

  /** Whether Spark will compute an average of decimals in double (DecimalAggregates), which rounds. */
  private def isRounded(function: AggregateExpression): Boolean = function.aggregateFunction match {
    case Average(value, _) =>
      value.dataType match {
        case decimal: DecimalType => decimal.precision + 4 <= mostDigitsOfDouble
        case _ => false
      }
    case _ => false
  }

  private def mostDigitsOfDouble = 15

  /** The rows without the tables, grouped. */
  val groups: Aggregate = {
    val keys = (firstKeys.map(_._2.toAttribute) ++ added).distinctBy(_.exprId)
    Aggregate(
      keys,
      keys ++ functions.flatMap(_._2).flatMap(_.parts),
      withComputed(firstKeys.map(_._2), rows)
    )
  }

  private def withComputed(columns: Seq[NamedExpression], plan: LogicalPlan): LogicalPlan = {
    val computed = columns.collect { case alias: Alias => alias }
    if (computed.isEmpty) plan else Project(plan.output ++ computed, plan)
  }

  /** What the aggregation groups by, over groups and tables. */
  private val lastKeys: Seq[(Expression, NamedExpression)] =
    grouping.written.zip(grouping.keys).map { case (written, key) =>
      written -> firstKeys.find(_._1 eq key).fold(named(key))(_._2.toAttribute)
    }

  /** What takes the place of the aggregation. */
  val result: LogicalPlan = {
    val joined = tables.foldLeft(groups: LogicalPlan) { (plan, table) =>
      val known = plan.outputSet ++ table.rows.outputSet
      val between = ofGroups.filter { condition =>
        condition.references.subsetOf(known) &&
        condition.references.exists(table.rows.outputSet.contains) &&
        condition.references.exists(plan.outputSet.contains)
      }
      Join(plan, table.rows, Inner, between.reduceOption(And(_, _)), JoinHint.NONE)
    }
    val results = grouping.aggregate.aggregateExpressions.map(overGroups)
    val keyed = withComputed(lastKeys.map(_._2), joined)
    if (merges) Aggregate(lastKeys.map(_._2.toAttribute).distinctBy(_.exprId), results, keyed)
    else Project(results, keyed)
  }

  /** Whether an aggregation is that of the rows, or that of the groups. */
  def isOwn(aggregate: Aggregate): Boolean = {
    def idsOf(keys: Seq[Expression]) = keys.flatMap(_.references.map(_.exprId)).toSet
    val ids = idsOf(aggregate.groupingExpressions)
    ids == idsOf(groups.groupingExpressions) || merges && ids == lastKeys.map(_._2.exprId).toSet
  }

  private def overGroups(result: NamedExpression): NamedExpression = {
    def over(expression: Expression): Expression = expression match {
      case function: AggregateExpression =>
        functions.collectFirst {
          case (same, Some(value)) if same.semanticEquals(function) => value.merged
        }.getOrElse(function)
      case key if lastKeys.exists(_._1.semanticEquals(key)) =>
        lastKeys.find(_._1.semanticEquals(key)).map(_._2.toAttribute).get
      case other => other.mapChildren(over)
    }
    over(ExpressionSets.unnamed(result)) match {
      case same: Attribute if same.exprId == result.exprId => result
      case other =>
        Alias(other, result.name)(result.exprId, result.qualifier, Some(result.metadata))
    }
  }

  /**
   * Whether rows are grouped by something that is no key of them, the rows that are left are joined by
   * equalities, and the functions can be merged where that is needed.
   */
  def isPossible: Boolean = {
    val equalities = ofRows.collect { case equality: EqualTo => equality.references }
    def reached(from: Set[Int]): Set[Int] = {
      val columns = AttributeSet(from.toSeq.flatMap(remaining(_).output))
      val next = remaining.indices.filterNot(from).filter { i =>
        equalities.exists { compared =>
          compared.exists(columns.contains) && compared.exists(remaining(i).outputSet.contains)
        }
      }
      if (next.isEmpty) from else reached(from ++ next)
    }
    val keys = groups.groupingExpressions
    keys.nonEmpty && functions.forall(_._2.isDefined) &&
    reached(Set(0)).size == remaining.size &&
    !EquiJoin.areUnique(EquiJoin.uniqueKeys(groups.child), keys) &&
    !(merges && remaining.exists(isGrouped))
  }

  /** Whether a relation has groups already that are to be merged, or is grouped by some of the keys. */
  private def isGrouped(relation: LogicalPlan): Boolean = relation match {
    case Aggregate(keys, results, _, _) =>
      ExpressionSets.hasAll(groups.groupingExpressions, keys) ||
      results.exists(_.name.startsWith(PartialAggregate.prefix))
    case _ => false
  }
}
