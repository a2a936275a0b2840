package io.selinger.ordering.search

import io.selinger.ordering.graph.Hypergraph
import io.selinger.ordering.tree.{JoinTree, JoinTrees, Joining}
import scala.annotation.tailrec

/**
 * Makes a tree cheaper by moving parts of it, each to where else a join leads to it: a dimension to
 * the table that it makes small, say. The first move that helps is made, from the costliest joins on,
 * until none does. Where [[Idp2Refinement]] orders anew what is close together in the tree, this brings
 * together what is far apart.
 *
 * @param most joins that are made to try moves
 */
final class SubtreeMoves(graph: Hypergraph, trees: JoinTrees, most: Int, expired: () => Boolean) {

  private var made = 0

  /** A tree that costs no more. */
  @tailrec
  def improved(tree: JoinTree): JoinTree = {
    val better = moves(tree).takeWhile(_ => made < most && !expired()).flatMap { case (part, to) =>
      moved(tree, part, to).filter(_.seconds < tree.seconds)
    }
    val next = better.nextOption().getOrElse(tree)
    if (next eq tree) tree else improved(next)
  }

  /** What to move, and the node that it is to be joined with. */
  private def moves(tree: JoinTree): Iterator[(JoinTree, JoinTree)] =
    for {
      above <- tree.joins.sortBy(-_.ownSeconds).iterator
      part <- Iterator(above.left, above.right)
      target <- nodes(tree).iterator
      if !target.set.within(part.set) && (target ne above) && !isChild(above, target)
      if graph.connection(target.set.without(part.set), part.set).isDefined
    } yield (part, target)

  private def isChild(join: JoinTree.Joined, node: JoinTree): Boolean =
    (join.left eq node) || (join.right eq node)

  private def nodes(tree: JoinTree): Seq[JoinTree] = tree match {
    case joined: JoinTree.Joined => nodes(joined.left) ++ nodes(joined.right) :+ joined
    case relation => Seq(relation)
  }

  /** None where rules forbid what becomes of it. */
  private def moved(tree: JoinTree, part: JoinTree, target: JoinTree): Option[JoinTree] = {
    def at(node: JoinTree): Option[JoinTree] = {
      val inside = node match {
        case joined: JoinTree.Joined if joined.left eq part => at(joined.right)
        case joined: JoinTree.Joined if joined.right eq part => at(joined.left)
        case joined: JoinTree.Joined
            if part.set.within(joined.set) || target.set.within(joined.set) =>
          for {
            left <- at(joined.left)
            right <- at(joined.right)
            again <- join(left, right)
          } yield again
        case other => Some(other)
      }
      if (node eq target) inside.flatMap(join(_, part)) else inside
    }
    at(tree)
  }

  private def join(one: JoinTree, other: JoinTree): Option[JoinTree] = {
    made += 1
    Joining.join(one, other, graph, trees)
  }
}
