package io.selinger.ordering

import scala.collection.mutable

/**
 * The cheapest tree of all, by dynamic programming over the pairs that [[ConnectedPairs]] lists. Of
 * equal costs the first in that order wins, which depends on the graph alone.
 */
object ExactSearch {

  /** None where the time was up. */
  def best(
      graph: Hypergraph,
      relations: Int => JoinTree,
      trees: JoinTrees,
      pairs: IndexedSeq[ConnectedPairs.Pair],
      expired: () => Boolean
  ): Option[JoinTree] = {
    val known = mutable.HashMap.empty[RelationSet, JoinTree]
    (0 until graph.size).foreach(i => known.update(RelationSet.single(i), relations(i)))
    pairs.iterator.takeWhile(_ => !expired()).foreach { pair =>
      val (one, other) = (known(pair.one), known(pair.other))
      val set = pair.one | pair.other
      val best = known.get(set)
      // What both inputs cost is a lower bound.
      if (best.forall(_.seconds > one.seconds + other.seconds)) {
        val joined = Joining.join(one, other, pair.how, trees)
        if (best.forall(_.seconds > joined.seconds)) known.update(set, joined)
      }
    }
    // A set may have pairs to the very end.
    if (expired()) None else known.get(graph.all)
  }
}

/** What all searches do with two trees. */
object Joining {

  def join(one: JoinTree, other: JoinTree, how: Connection, trees: JoinTrees): JoinTree =
    if (how.swapped) trees.join(other, one, how) else trees.join(one, other, how)

  def join(
      one: JoinTree,
      other: JoinTree,
      graph: Hypergraph,
      trees: JoinTrees
  ): Option[JoinTree] =
    graph.connection(one.set, other.set).map(join(one, other, _, trees))
}
