package io.selinger.ordering.search

import io.selinger.ordering.graph.{Hypergraph, RelationSet}
import io.selinger.ordering.tree.{JoinTree, JoinTrees, Joining}
import scala.collection.mutable

/**
 * The join that adds least cost first: greedy operator ordering [1], with cost for size.
 *
 * References: [1] Fegaras, A New Heuristic for Optimizing Large Queries, DEXA 1998.
 */
object GreedyOperatorOrdering {

  private final case class Candidate(one: Int, other: Int, tree: JoinTree, added: Double)

  /**
   * None where the time was up, or where rules leave no way on.
   *
   * @param tried for each relation those that it is tried with: its `neighbours`, or some of them
   *   where these are very many
   */
  def best(
      relations: IndexedSeq[JoinTree],
      graph: Hypergraph,
      trees: JoinTrees,
      tried: IndexedSeq[RelationSet],
      expired: () => Boolean
  ): Option[JoinTree] = {
    // By the number of each tree, too.
    val near = mutable.HashMap.from(tried.zipWithIndex.map(_.swap))
    // By the number under which each was made, which settles equal costs.
    val forest = mutable.LinkedHashMap.from(relations.indices.map(i => i -> relations(i)))
    var next = relations.size
    def candidate(one: Int, other: Int): Option[Candidate] =
      if (!near(one).meets(forest(other).set) && !near(other).meets(forest(one).set)) None
      else
        Joining.join(forest(one), forest(other), graph, trees).map { tree =>
          Candidate(one, other, tree, tree.seconds - forest(one).seconds - forest(other).seconds)
        }
    var candidates: IndexedSeq[Candidate] = for {
      one <- relations.indices
      other <- one + 1 until relations.size
      if !expired()
      found <- candidate(one, other)
    } yield found
    while (forest.size > 1 && candidates.nonEmpty && !expired()) {
      val chosen = candidates.minBy(_.added)
      val gone = Set(chosen.one, chosen.other)
      near.update(next, near(chosen.one) | near(chosen.other))
      gone.foreach(forest.remove)
      val others = forest.keys.toIndexedSeq
      forest.update(next, chosen.tree)
      candidates = candidates.filterNot(c => gone(c.one) || gone(c.other)) ++
        others.flatMap(candidate(_, next))
      next += 1
    }
    forest.values.headOption.filter(_ => forest.size == 1)
  }

  /** For each relation those that it has any join with. */
  def neighbours(graph: Hypergraph): IndexedSeq[RelationSet] = (0 until graph.size).map { i =>
    RelationSet.union(graph.adjacent(i) +: graph.edgesAt(i).map(_.tes))
  }
}
