package io.selinger.ordering.sharing

import io.selinger.ordering.graph.{Hypergraph, RelationSet}
import io.selinger.ordering.tree.{JoinTree, JoinTrees, Joining}
import scala.annotation.tailrec

/**
 * Orders in which some relations come later than in another: below the exchange that they come after,
 * regions that differ in nothing but these relations join alike.
 *
 * @param later the relations
 */
private[ordering] final class Postponement(
    graph: Hypergraph,
    trees: JoinTrees,
    later: RelationSet
) {

  /**
   * For each join of a tree that has some of them, and others, below one side: with these right above
   * it. The latest come first.
   */
  def orders(tree: JoinTree): Iterator[JoinTree] =
    for {
      join <- tree.joins.reverseIterator
      (side, other) <- Iterator((join.left, join.right), (join.right, join.left))
      if side.set.meets(later) && !side.set.within(later)
      kept <- without(side)
      joined <- Joining.join(kept, other, graph, trees)
      part <- withAll(joined, postponed(side))
      order <- Joining.replaced(tree, join, part, trees)
    } yield order

  /** None where the others are not connected. */
  private def without(tree: JoinTree): Option[JoinTree] = tree match {
    case tree if !tree.set.meets(later) => Some(tree)
    case join: JoinTree.Joined if join.left.set.within(later) => without(join.right)
    case join: JoinTree.Joined if join.right.set.within(later) => without(join.left)
    case join: JoinTree.Joined =>
      for {
        left <- without(join.left)
        right <- without(join.right)
        joined <- Joining.join(left, right, graph, trees)
      } yield joined
    case _ => None
  }

  /** The largest parts of nothing else. */
  private def postponed(tree: JoinTree): Seq[JoinTree] = tree match {
    case tree if tree.set.within(later) => Seq(tree)
    case join: JoinTree.Joined => postponed(join.left) ++ postponed(join.right)
    case _ => Nil
  }

  @tailrec
  private def withAll(tree: JoinTree, parts: Seq[JoinTree]): Option[JoinTree] = {
    val next = parts.iterator.flatMap(part => Joining.join(tree, part, graph, trees).map(part -> _))
    next.nextOption() match {
      case Some((part, joined)) => withAll(joined, parts.filterNot(_ eq part))
      case None => Option.when(parts.isEmpty)(tree)
    }
  }
}
