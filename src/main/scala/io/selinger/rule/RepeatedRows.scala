package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * An aggregation in a region of inner joins that has the aggregated rows as well: relations of the region
 * are those of the aggregation, under the same conditions, and each row meets the group that it belongs to.
 *
 * @param region one of whose relations is the aggregation
 * @param block what is aggregated
 * @param own relations of the region that are those of the block
 * @param columns of the relations of the block, as columns of the region
 * @param keys of the groups, as columns of the region
 */
private[rule] final case class RepeatedRows(
    region: InnerRegion,
    aggregate: Aggregate,
    block: InnerRegion,
    own: Seq[LogicalPlan],
    columns: AttributeMap[Attribute],
    keys: Seq[Attribute]
) {

  /** An expression over the input of the aggregation, over columns of the region. */
  def over(expression: Expression): Expression =
    block.over(expression).transform { case column: Attribute => columns.getOrElse(column, column) }

  /** Conditions of the block. */
  val conditions: Seq[Expression] = block.conditions.map(over)

  /** Relations of the region that are neither. */
  val others: Seq[LogicalPlan] =
    region.relations.filterNot(relation => (relation eq aggregate) || own.exists(_ eq relation))
}

private[rule] object RepeatedRows {

  /** Those of a region, in the order of the aggregations. */
  def in(region: InnerRegion): Seq[RepeatedRows] =
    if (!region.hasOwnColumns) Nil
    else region.relations.collect { case aggregate: Aggregate => aggregate }.flatMap(of(region, _))

  // Which of several readings of one table is which is tried; beyond these tries nothing is found.
  private val mostTries = 20

  private def of(region: InnerRegion, aggregate: Aggregate): Option[RepeatedRows] = {
    val block = InnerRegion.of(aggregate.child)
    val free = region.relations.filterNot(_ eq aggregate)
    val isPossible = aggregate.groupingExpressions.nonEmpty && block.hasOwnColumns &&
      AggregateWindow.functionsOf(aggregate).nonEmpty && block.relations.size <= free.size
    if (!isPossible) None
    else {
      val equal = EqualColumns.by(region.conditions)
      matches(block.relations, free)
        .take(mostTries)
        .flatMap { pairs =>
          val columns = AttributeMap(pairs.flatMap(_.columns))
          keysOf(aggregate, block, columns, equal).map(
            RepeatedRows(region, aggregate, block, pairs.map(_.own), columns, _)
          )
        }
        .find(_.conditions.forall(isMet(_, region.conditions, equal)))
    }
  }

  /** A relation of the region with the rows of one of the block. */
  private final case class Pair(own: LogicalPlan, columns: Seq[(Attribute, Attribute)])

  private def matches(
      relations: Seq[LogicalPlan],
      free: Seq[LogicalPlan]
  ): Iterator[Seq[Pair]] =
    if (relations.isEmpty) Iterator(Nil)
    else
      for {
        own <- free.iterator
        columns <- sameRows(relations.head, own).iterator
        rest <- matches(relations.tail, free.filterNot(_ eq own))
      } yield Pair(own, columns) +: rest

  /** Columns of one relation as columns of another one, if that has the same rows. */
  private def sameRows(
      relation: LogicalPlan,
      other: LogicalPlan
  ): Option[Seq[(Attribute, Attribute)]] =
    Option.when(SameRows.areIn(relation, other))(relation.output.zip(other.output))

  /** None where a group is not found by its keys, or not by those of the row itself. */
  private def keysOf(
      aggregate: Aggregate,
      block: InnerRegion,
      columns: AttributeMap[Attribute],
      equal: EqualColumns
  ): Option[Seq[Attribute]] =
    ExpressionSets.all(aggregate.groupingExpressions.map { key =>
      block.over(key) match {
        case column: Attribute =>
          columns.get(column).filter { own =>
            aggregate.aggregateExpressions.exists { result =>
              ExpressionSets.isSame(ExpressionSets.unnamed(result), key) &&
              equal.areEqual(result.toAttribute, own)
            }
          }
        case _ => None
      }
    })

  /** Whether all rows of a region fulfil a condition. */
  private def isMet(
      condition: Expression,
      conditions: Seq[Expression],
      equal: EqualColumns
  ): Boolean = ExpressionSets.has(conditions, condition) || (condition match {
    case EqualTo(a: Attribute, b: Attribute) =>
      a.dataType == b.dataType && a.exprId != b.exprId && equal.areEqual(a, b)
    case IsNotNull(column: Attribute) =>
      conditions.exists {
        case EqualTo(a, b) => a.semanticEquals(column) || b.semanticEquals(column)
        case _ => false
      }
    case _ => false
  })
}
