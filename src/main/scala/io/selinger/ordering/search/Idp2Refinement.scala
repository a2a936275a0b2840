package io.selinger.ordering.search

import io.selinger.ordering.graph.{Hypergraph, RelationSet}
import io.selinger.ordering.tree.{JoinTree, JoinTrees, Joining}
import scala.collection.mutable

/**
 * Makes a tree cheaper part by part: some joins that are neighbours in it are ordered anew, exactly,
 * with what they join as it is; the costliest first (iterative dynamic programming [1]).
 *
 * References: [1] Kossmann, Stocker, Iterative Dynamic Programming: A New Class of Query Optimization
 * Algorithms, TODS 2000 (IDP-2).
 *
 * @param inputs that are ordered anew at a time, at most
 * @param parts that are tried, at most
 */
final class Idp2Refinement(
    graph: Hypergraph,
    trees: JoinTrees,
    inputs: Int,
    parts: Int,
    expired: () => Boolean
) {

  /** A tree that costs no more. */
  def refined(tree: JoinTree): JoinTree = {
    var best = tree
    val tried = mutable.HashSet.empty[Seq[RelationSet]]
    var improving = true
    def done = expired() || tried.size >= parts
    while (improving && !done)
      improving = best.joins.sortBy(-_.ownSeconds).exists { join =>
        val inputsOf = partsOf(join)
        if (inputsOf.size < 3 || done || !tried.add(inputsOf.map(_.set))) false
        else
          reordered(inputsOf)
            .filter(_.seconds < join.seconds)
            .flatMap(Joining.replaced(best, join, _, trees)) match {
            case Some(better) if better.seconds < best.seconds =>
              best = better
              true
            case _ => false
          }
      }
    best
  }

  /** What the joins at and below `top` join, of which the costliest ones are taken apart. */
  private def partsOf(top: JoinTree.Joined): Seq[JoinTree] = {
    def split(parts: Seq[JoinTree]): Seq[JoinTree] = {
      val joined = parts.collect { case join: JoinTree.Joined => join }
      if (parts.size >= inputs || joined.isEmpty) parts
      else {
        val costliest = joined.maxBy(_.ownSeconds)
        split(parts.flatMap(p =>
          if (p eq costliest) Seq(costliest.left, costliest.right) else Seq(p)
        ))
      }
    }
    split(Seq(top.left, top.right))
  }

  /** All trees of these parts are looked at. */
  private def reordered(parts: Seq[JoinTree]): Option[JoinTree] = {
    val all = (1 << parts.size) - 1
    val known = Array.fill(all + 1)(Option.empty[JoinTree])
    parts.zipWithIndex.foreach { case (part, i) => known(1 << i) = Some(part) }
    (1 to all).iterator.filter(m => (m & (m - 1)) != 0).takeWhile(_ => !expired()).foreach { set =>
      var half = (set - 1) & set
      while (half > 0) {
        val rest = set & ~half
        if (half < rest) {
          for (one <- known(half); other <- known(rest)) {
            val below = one.seconds + other.seconds
            if (known(set).forall(_.seconds > below)) {
              Joining.join(one, other, graph, trees).foreach { joined =>
                if (known(set).forall(_.seconds > joined.seconds)) known(set) = Some(joined)
              }
            }
          }
        }
        half = (half - 1) & set
      }
    }
    if (expired()) None else known(all)
  }
}
