package io.selinger.ordering.tree

import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{JoinGraph, RelationSet}
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}
import scala.collection.mutable

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
  val areFew: Boolean = graph.keys.size <= few || !Mechanism.ComparedKeys.isOn

  // By relation, most selective first.
  private lazy val keysAt: Array[Array[Int]] = {
    val order = graph.keys.indices.sortBy(k => (-distinct(k).valuesIterator.max, k))
    val at = Array.fill(graph.relations.size)(Array.newBuilder[Int])
    order.foreach(k => graph.keys(k).relations.foreach(at(_) += k))
    at.map(_.result())
  }

  // Relations of each key; where these are two, as nearly always, the sum of their numbers.
  private lazy val connected: Array[RelationSet] = graph.keys.map(_.relations).toArray
  private lazy val ofTwo: Array[Int] =
    graph.keys.map(k => if (k.members.size == 2) k.members.map(_._1).sum else -1).toArray

  private def connects(key: Int, relation: Int, others: RelationSet): Boolean =
    if (ofTwo(key) >= 0) others.contains(ofTwo(key) - relation)
    else connected(key).meets(others)

  private lazy val inPredicates: Set[ExprId] =
    graph.predicates.flatMap(_.condition.references.map(_.exprId)).toSet

  /** Numbers of the classes that count for a join of these sets, ascending. */
  def between(left: RelationSet, right: RelationSet): Seq[Int] =
    if (areFew) graph.keyNumbersBetween(left, right)
    else {
      val (one, other) = if (left.size <= right.size) (left, right) else (right, left)
      mostSelective(one, other)
    }

  /** Whether joins of `set` with others are estimated by a column. */
  def columns(set: RelationSet): ExprId => Boolean =
    // Of one relation, nearly all keys are the most selective ones with some other.
    if (areFew || set.size == 1) graph.isCompared(_, set)
    else {
      val wanted = mutable.HashSet.empty[ExprId]
      mostSelective(graph.all.without(set), set).foreach { key =>
        graph.keys(key).members.foreach { case (relation, member) =>
          if (set.contains(relation)) member match {
            case column: Attribute => wanted += column.exprId
            case other => wanted ++= other.references.map(_.exprId)
          }
        }
      }
      id => wanted(id) || inPredicates(id) && graph.isCompared(id, set)
    }

  /** Those of each of `relations` that count for its joins with `others`. */
  private def mostSelective(relations: RelationSet, others: RelationSet): Seq[Int] = {
    val found = mutable.BitSet.empty
    relations.foreach { relation =>
      val keys = keysAt(relation)
      var (i, count) = (0, 0)
      while (i < keys.length && count < mostOfOne) {
        if (connects(keys(i), relation, others)) {
          found += keys(i)
          count += 1
        }
        i += 1
      }
    }
    found.toSeq
  }
}

private[ordering] object ComparedKeys {

  // Limits of work, set by hand: keys up to which an estimate uses all of them, and those of each relation
  // that it uses beyond. `python -m benchmarks.ablation --mechanisms comparedKeys` shows both.
  private val few = 128
  private val mostOfOne = 2
}
