package io.selinger.ordering.tree

import io.selinger.ordering.graph.{Connection, Hypergraph}

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

  /** `tree` with `part` in the place of `old`, which joins the same relations; none if that is not there. */
  def replaced(
      tree: JoinTree,
      old: JoinTree,
      part: JoinTree,
      trees: JoinTrees
  ): Option[JoinTree] =
    if (tree eq old) Some(part)
    else
      tree match {
        case join: JoinTree.Joined =>
          val (left, right) =
            if (old.set.within(join.left.set))
              (replaced(join.left, old, part, trees), Some(join.right))
            else (Some(join.left), replaced(join.right, old, part, trees))
          for (l <- left; r <- right) yield trees.join(l, r, join.how)
        case _ => None
      }
}
