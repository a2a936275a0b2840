package io.selinger.ordering

import scala.collection.mutable

/**
 * Finds the cheapest bushy tree without cross products for a connected graph.
 *
 * Exact by dynamic programming over connected subgraphs and their complements (DPccp), which looks
 * at each pair just once; beyond `maxPairs`, or after half of the time, greedily: the join that adds
 * least cost first (GOO, with cost for size). Equal costs are settled by the order of enumeration, which
 * depends on the graph alone.
 *
 * References: Moerkotte, Neumann, Analysis of Two Existing and One New Dynamic Programming Algorithm
 * for the Generation of Optimal Bushy Join Trees without Cross Products, VLDB 2006; Fegaras, A New
 * Heuristic for Optimizing Large Queries, DEXA 1998.
 *
 * @param relation the tree of one relation
 * @param join two trees joined; symmetric
 * @param used share of the time that is used up
 */
final class JoinEnumerator(
    graph: JoinGraph,
    relation: Int => JoinTree,
    join: (JoinTree, JoinTree) => JoinTree,
    maxPairs: Long,
    used: () => Double
) {
  import JoinEnumerator._

  private def expired: Boolean = used() >= exactShare

  /** None where the time is up before a tree is complete. */
  def best(): Option[Found] = {
    val (pairs, complete) = connectedPairs()
    val exact = if (complete) dynamic(pairs).map(Found(_, None)) else None
    exact.orElse {
      val limit = if (expired) Limit.Time else Limit.Pairs
      greedy().map(Found(_, Some(limit)))
    }
  }

  private def dynamic(pairs: Iterable[(Long, Long)]): Option[JoinTree] = {
    val trees = mutable.LongMap.empty[JoinTree]
    graph.relations.indices.foreach(i => trees.update(RelationSet.single(i), relation(i)))
    pairs.iterator.takeWhile(_ => !expired).foreach { case (left, right) =>
      val joined = join(trees(left), trees(right))
      if (trees.get(joined.set).forall(_.seconds > joined.seconds)) trees.update(joined.set, joined)
    }
    // The pairs of all relations come last: one of them is not yet the best.
    if (expired) None else trees.get(graph.all)
  }

  private def greedy(): Option[JoinTree] = {
    var forest: Seq[JoinTree] = graph.relations.indices.map(relation)
    val known = mutable.HashMap.empty[(Long, Long), JoinTree]
    while (forest.size > 1 && used() < 1.0) {
      val candidates = for {
        (left, i) <- forest.zipWithIndex
        right <- forest.drop(i + 1)
        if (graph.neighboursOf(left.set) & right.set) != 0L
      } yield known.getOrElseUpdate((left.set, right.set), join(left, right))
      val next = candidates.minBy(tree => added(tree))
      forest = forest.filterNot(tree => RelationSet.within(tree.set, next.set)) :+ next
    }
    forest.headOption.filter(_ => forest.size == 1)
  }

  private def added(tree: JoinTree): Double = tree match {
    case joined: JoinTree.Joined => joined.seconds - joined.left.seconds - joined.right.seconds
    case other => other.seconds
  }

  /** All pairs, by the size of what they make; false if these are too many. */
  private def connectedPairs(): (Iterable[(Long, Long)], Boolean) = {
    val found = mutable.ArrayBuffer.empty[(Long, Long)]
    def full: Boolean = found.size > maxPairs || expired

    def subgraphs(set: Long, excluded: Long)(emit: Long => Unit): Unit = {
      val around = RelationSet.without(graph.neighboursOf(set), excluded)
      nonEmptySubsets(around).takeWhile(_ => !full).foreach(more => emit(set | more))
      nonEmptySubsets(around)
        .takeWhile(_ => !full)
        .foreach(more => subgraphs(set | more, excluded | around)(emit))
    }

    def complements(set: Long): Unit = {
      val excluded = RelationSet.first(RelationSet.lowest(set) + 1) | set
      val around = RelationSet.without(graph.neighboursOf(set), excluded)
      RelationSet.members(around).reverse.foreach { i =>
        val start = RelationSet.single(i)
        found += ((set, start))
        val smaller = RelationSet.first(i + 1) & around
        subgraphs(start, excluded | smaller)(more => found += ((set, more)))
      }
    }

    graph.relations.indices.reverse.takeWhile(_ => !full).foreach { i =>
      val start = RelationSet.single(i)
      complements(start)
      subgraphs(start, RelationSet.first(i + 1))(complements)
    }
    (found.sortBy { case (left, right) => java.lang.Long.bitCount(left | right) }, !full)
  }

  /** Smaller ones first, as dynamic programming needs them. */
  private def nonEmptySubsets(set: Long): Iterator[Long] =
    Iterator.iterate((0L - set) & set)(subset => (subset - set) & set).takeWhile(_ != 0L)
}

object JoinEnumerator {

  /** Of the time, for the exact search. The rest is the greedy one's. */
  private val exactShare = 0.5

  /** What kept the search from looking at every tree. */
  sealed abstract class Limit(val setting: String)
  object Limit {
    case object Pairs extends Limit("ordering.maxPairs")
    case object Time extends Limit("planning.budgetMs")
  }

  /** @param limit none where every tree was considered */
  final case class Found(tree: JoinTree, limit: Option[Limit])
}
