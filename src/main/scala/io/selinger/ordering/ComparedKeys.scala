package io.selinger.ordering

import org.apache.spark.sql.catalyst.expressions.ExprId

/**
 * The keys by which a join of two sets is estimated: all of them in ordinary queries. Where hundreds of
 * keys connect the relations, those between two sets may be thousands, and what the most selective ones
 * leave is what an estimate of all of them says as well. So only some of them count for each relation.
 *
 * @param distinct values of each class's members, by relation
 */
private[ordering] final class ComparedKeys(
    graph: JoinGraph,
    distinct: IndexedSeq[Map[Int, Double]]
) {
  import ComparedKeys._

  /** Whether all keys count. */
  val areFew: Boolean = graph.keys.size <= few

  // By relation, most selective first, with the relations that each key connects.
  private lazy val keysAt: Array[Array[(Int, RelationSet)]] = {
    val order = graph.keys.indices.sortBy(k => (-distinct(k).valuesIterator.max, k))
    val at = Array.fill(graph.relations.size)(Array.newBuilder[(Int, RelationSet)])
    order.foreach { k =>
      val connected = graph.keys(k).relations
      connected.members.foreach(i => at(i) += k -> connected)
    }
    at.map(_.result())
  }

  private lazy val inPredicates: Set[ExprId] =
    graph.predicates.flatMap(_.condition.references.map(_.exprId)).toSet

  /** Numbers of the classes that count for a join of these sets. */
  def between(left: RelationSet, right: RelationSet): Seq[Int] =
    if (areFew) graph.keyNumbersBetween(left, right)
    else {
      val (one, other) = if (left.size <= right.size) (left, right) else (right, left)
      one.members.flatMap(mostSelective(_, other)).distinct.sorted
    }

  /** Whether joins of `set` with others are estimated by a column. */
  def columns(set: RelationSet): ExprId => Boolean =
    if (areFew) graph.isCompared(_, set)
    else {
      val keys = graph.all.without(set).members.flatMap(mostSelective(_, set)).distinct
      val members = for {
        key <- keys
        (relation, member) <- graph.keys(key).members if set.contains(relation)
        column <- member.references
      } yield column.exprId
      val wanted = members.toSet
      id => wanted(id) || inPredicates(id) && graph.isCompared(id, set)
    }

  private def mostSelective(relation: Int, set: RelationSet): Seq[Int] =
    keysAt(relation).iterator.collect { case (key, others) if others.meets(set) => key }
      .take(mostOfOne)
      .toSeq
}

private[ordering] object ComparedKeys {
  private val few = 128
  private val mostOfOne = 3
}
