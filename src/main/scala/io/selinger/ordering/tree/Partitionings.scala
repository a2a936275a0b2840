package io.selinger.ordering.tree

import io.selinger.ordering.graph.JoinGraph
import io.selinger.ordering.tree.JoinTree.Partitioning
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types._
import scala.collection.mutable

/**
 * By which keys rows come partitioned, so that a join by the same keys needs no shuffle of them. Keys
 * are numbers: of their class, since its members are equal wherever they are joined, and numbers of
 * their own for columns that belong to none. A join must have just these keys, as Spark demands unless
 * told otherwise (`spark.sql.requireAllClusterKeysForCoPartition`).
 */
private[ordering] final class Partitionings(graph: JoinGraph) {

  private val numbers: mutable.HashMap[ExprId, Int] = mutable.HashMap.from(
    graph.keys.zipWithIndex.flatMap { case (key, k) =>
      key.members.collect { case (_, column: Attribute) => column.exprId -> k }
    }
  )

  private def numberOf(column: ExprId): Int =
    numbers.getOrElseUpdate(column, graph.keys.size + numbers.size)

  /** By these classes and columns; none where a key is computed. */
  def by(classes: Seq[Int], keys: Seq[Expression]): Partitioning =
    if (keys.isEmpty) classes
    else if (keys.forall(_.isInstanceOf[Attribute])) {
      (classes ++ keys.collect { case column: Attribute => numberOf(column.exprId) }).sorted
    } else Nil

  /** What a relation brings along: the rows of an aggregation are partitioned by its groups. */
  def ofRelation(relation: LogicalPlan): Seq[Partitioning] = relation match {
    // Of what is partitioned by some of its groups already, Spark makes no other partitions.
    case aggregate: Aggregate if aggregate.hint.isEmpty && !isPartitioned(aggregate) =>
      val groups = aggregate.groupingExpressions
      val returned = aggregate.outputSet
      if (groups.nonEmpty && groups.forall(_.references.subsetOf(returned))) {
        Seq(by(Nil, groups)).filter(_.nonEmpty)
      } else Nil
    case Filter(_, child) => ofRelation(child)
    case Project(_, child) => ofRelation(child)
    case _ => Nil
  }

  /** Whether what is below may be partitioned by some of several groups, or as the user wants it. */
  private def isPartitioned(aggregate: Aggregate): Boolean = aggregate.child.exists {
    case _: RepartitionOperation => true
    case _: Join | _: Aggregate | _: Window => aggregate.groupingExpressions.size > 1
    case _ => false
  }
}

private[ordering] object Partitionings {

  /** Whether Spark hashes keys of a type by themselves: equal ones have the same bits. */
  def areAsIs(keys: DataType): Boolean = keys match {
    case FloatType | DoubleType => false
    case _: NumericType | StringType | DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }
}
