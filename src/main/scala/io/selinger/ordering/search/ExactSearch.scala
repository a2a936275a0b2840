package io.selinger.ordering.search

import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{Hypergraph, RelationSet}
import io.selinger.ordering.tree.{JoinTree, JoinTrees, Joining}
import scala.collection.mutable

/**
 * The cheapest tree of all, by dynamic programming over the pairs that [[CsgCmpPairs]] lists. Since
 * no tree costs less than its parts, those that cost as much as a tree that is known already are left
 * out: accumulated-cost bounding [1]. Of equal costs that tree wins, then the first in the order of
 * pairs, which depends on the graph alone.
 *
 * References: [1] DeHaan, Tompa, Optimal Top-Down Join Enumeration, SIGMOD 2007.
 */
object ExactSearch {

  /**
   * None where the time was up.
   *
   * @param bound a tree of all relations
   */
  def best(
      graph: Hypergraph,
      relations: Int => JoinTree,
      trees: JoinTrees,
      pairs: IndexedSeq[CsgCmpPairs.Pair],
      bound: Option[JoinTree],
      expired: () => Boolean
  ): Option[JoinTree] = {
    val bounds = Mechanism.CostBounding.isOn
    val most = bound.filter(_ => bounds).fold(Double.PositiveInfinity)(_.seconds)
    val known = mutable.HashMap.empty[RelationSet, JoinTree]
    (0 until graph.size).foreach(i => known.update(RelationSet.single(i), relations(i)))
    pairs.iterator.takeWhile(_ => !expired()).foreach { pair =>
      for (one <- known.get(pair.csg); other <- known.get(pair.cmp)) {
        val set = pair.csg | pair.cmp
        val limit = known.get(set).fold(most)(_.seconds)
        if (!bounds || one.seconds + other.seconds < limit) {
          val joined = Joining.join(one, other, pair.how, trees)
          if (joined.seconds < limit) known.update(set, joined)
        }
      }
    }
    // A set may have pairs to the very end.
    if (expired()) None else known.get(graph.all).orElse(bound)
  }
}
