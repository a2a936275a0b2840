package io.selinger.ordering.search

import io.selinger.ordering.graph.Hypergraph
import io.selinger.ordering.tree.{JoinTree, JoinTrees, Joining}

/**
 * The cheapest of all bushy trees that keep a given order of their relations, by dynamic programming
 * over its intervals, in O(n³) [1]. Joins that conflict rules forbid are left out [2].
 *
 * Every tree keeps the order of its own leaves: with that order, the result costs no more than it.
 *
 * References: [1] Neumann, Radke, Adaptive Optimization of Very Large Join Queries, SIGMOD 2018;
 * [2] Radke, Neumann, LinDP++: Generalizing Linearized DP to Crossproducts and Non-Inner Joins, BTW
 * 2019.
 */
object LinDp {

  /** None where the time was up, or where no tree keeps this order. */
  def best(
      order: IndexedSeq[JoinTree],
      graph: Hypergraph,
      trees: JoinTrees,
      expired: () => Boolean
  ): Option[JoinTree] = {
    val n = order.size
    val known = Array.fill(n, n)(Option.empty[JoinTree])
    order.indices.foreach(i => known(i)(i) = Some(order(i)))
    for {
      length <- (2 to n).iterator.takeWhile(_ => !expired())
      first <- 0 to n - length
    } {
      val last = first + length - 1
      var best = Option.empty[JoinTree]
      var cut = first
      while (cut < last) {
        for (one <- known(first)(cut); other <- known(cut + 1)(last))
          if (best.forall(_.seconds > one.seconds + other.seconds)) {
            Joining.join(one, other, graph, trees).foreach { joined =>
              if (best.forall(_.seconds > joined.seconds)) best = Some(joined)
            }
          }
        cut += 1
      }
      known(first)(last) = best
    }
    if (n == 0) None else known(0)(n - 1)
  }
}
