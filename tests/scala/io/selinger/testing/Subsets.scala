package io.selinger.testing

import io.selinger.ordering.graph.RelationSet

object Subsets {

  /** All subsets but the empty one, each after its own subsets, as dynamic programming needs them. */
  def of(set: RelationSet): Iterator[RelationSet] =
    set.members.foldRight(() => Iterator.empty[RelationSet]) { (relation, rest) => () =>
      val one = RelationSet.single(relation)
      // Of the others first, then each of these with the relation that is looked at now.
      rest() ++ Iterator.single(one) ++ rest().map(_ | one)
    }()
}
