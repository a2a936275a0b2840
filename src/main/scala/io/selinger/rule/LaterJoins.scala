package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * A table of which an aggregation uses columns to group by only, and of which each group has one row.
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
      (isComparedByJoin || key.forall(ProvenKeys.isNeverNull(_, rows)))
}

/**
 * An aggregation, and tables that can be joined to its groups instead of its rows.
 *
 * @param tables in an order in which each is joined by columns of groups, or of tables before it
 * @param added columns of rows that joins of the groups compare, and that rows are grouped by for that
 */
private[rule] final case class LaterJoins(
    grouping: RegionGrouping,
    tables: Seq[GroupTable],
    added: Seq[Attribute]
) {
  import grouping.region

  val places: Set[Int] = tables.map(_.place).toSet

  private val later: AttributeSet = AttributeSet(tables.flatMap(_.rows.output))

  private val (ofGroups, ofRows) =
    region.conditions.partition(_.references.exists(later.contains))

  private val remaining: Seq[LogicalPlan] =
    region.relations.indices.filterNot(places).map(region.relations)

  /** Each key that rows are grouped by, with its column. */
  private val firstKeys: Seq[(Expression, NamedExpression)] =
    grouping.keys.filterNot(_.references.exists(later.contains)).map {
      case column: Attribute => column -> column
      case computed => computed -> Alias(computed, "key")()
    }

  private val functions: Seq[(AggregateExpression, Alias)] =
    grouping.functions.map(function => function -> aliasOf(function))

  private def aliasOf(function: AggregateExpression): Alias =
    Alias(region.over(function), function.aggregateFunction.prettyName)()

  /** The rows without the tables, grouped. */
  val groups: Aggregate = {
    val rows = InnerRegion.joined(remaining, ofRows)
    val computed = firstKeys.collect { case (_, alias: Alias) => alias }
    val input = if (computed.isEmpty) rows else Project(rows.output ++ computed, rows)
    val keys = (firstKeys.map(_._2.toAttribute) ++ added).distinctBy(_.exprId)
    Aggregate(keys, keys ++ functions.map(_._2), input)
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
    Project(grouping.aggregate.aggregateExpressions.map(overGroups), joined)
  }

  private def overGroups(result: NamedExpression): NamedExpression = {
    def over(expression: Expression): Expression = expression match {
      case function: AggregateExpression =>
        functions.find(_._1.semanticEquals(function)).fold[Expression](function)(_._2.toAttribute)
      case Key(value) => value
      case other => other.mapChildren(over)
    }
    over(ExpressionSets.unnamed(result)) match {
      case same: Attribute if same.exprId == result.exprId => result
      case other =>
        Alias(other, result.name)(result.exprId, result.qualifier, Some(result.metadata))
    }
  }

  /** What the aggregation groups by, over groups and tables. */
  private object Key {
    def unapply(written: Expression): Option[Expression] =
      grouping.written.zip(grouping.keys).collectFirst {
        case (same, key) if same.semanticEquals(written) =>
          firstKeys.find(_._1 eq key).fold(key)(_._2.toAttribute)
      }
  }

  /** Whether there is something to group by, and the rows that are left are joined by conditions. */
  def isPossible: Boolean = {
    def reached(from: Set[Int]): Set[Int] = {
      val columns = AttributeSet(from.toSeq.flatMap(remaining(_).output))
      val next = remaining.indices.filterNot(from).filter { i =>
        ofRows.exists { condition =>
          condition.references.exists(columns.contains) &&
          condition.references.exists(remaining(i).outputSet.contains)
        }
      }
      if (next.isEmpty) from else reached(from ++ next)
    }
    groups.groupingExpressions.nonEmpty && reached(Set(0)).size == remaining.size
  }
}
