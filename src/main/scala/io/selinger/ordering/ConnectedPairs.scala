package io.selinger.ordering

import scala.collection.mutable

/**
 * All pairs of sets of relations that some plan joins, each once, every set after all of its parts:
 * DPhyp [1], which grows connected sets along the edges of a hypergraph.
 *
 * References: [1] Moerkotte, Neumann, Dynamic Programming Strikes Back, SIGMOD 2008.
 *
 * @param most pairs, and not more than some times as many sets and pairs looked at in vain
 */
final class ConnectedPairs(graph: Hypergraph, most: Long, expired: () => Boolean) {
  import ConnectedPairs._

  private val found = mutable.ArrayBuffer.empty[Pair]
  // Sets for which there is a plan.
  private val planned = mutable.HashSet.empty[RelationSet]
  private var steps = 0L

  private def full: Boolean =
    found.size > most || steps > most * stepsAPair + graph.size * 64L || expired()

  /** The pairs, and whether these are all. */
  def result(): (IndexedSeq[Pair], Boolean) =
    if (atLeast > most) (IndexedSeq.empty, false) else enumerated()

  /** Pairs that there are if no rule forbids any: those of a chain, or of the largest star. */
  private def atLeast: Double = {
    val n = graph.size.toDouble
    val chain = (n * n * n - n) / 6
    val widest = graph.adjacent.iterator.map(_.size).maxOption.getOrElse(0)
    math.max(chain, widest * math.pow(2.0, widest - 1.0))
  }

  private def enumerated(): (IndexedSeq[Pair], Boolean) = {
    (0 until graph.size).foreach(i => planned += RelationSet.single(i))
    (0 until graph.size).reverse.takeWhile(_ => !full).foreach { i =>
      val start = RelationSet.single(i)
      withComplements(start)
      grown(start, RelationSet.first(i + 1))(withComplements)
    }
    (found.toIndexedSeq, !full)
  }

  private def around(set: RelationSet, excluded: RelationSet): RelationSet =
    graph.neighbours(set).without(excluded)

  /** Every planned set that contains `set` and none of `excluded`. */
  private def grown(set: RelationSet, excluded: RelationSet)(emit: RelationSet => Unit): Unit = {
    val next = around(set, excluded)
    if (next.nonEmpty) {
      next.subsets.takeWhile(_ => !full).foreach { more =>
        steps += 1
        val larger = set | more
        if (planned(larger)) emit(larger)
      }
      next.subsets
        .takeWhile(_ => !full)
        .foreach(more => grown(set | more, excluded | next)(emit))
    }
  }

  private def withComplements(set: RelationSet): Unit = {
    val excluded = RelationSet.first(set.lowest + 1) | set
    val next = around(set, excluded)
    next.members.reverse.takeWhile(_ => !full).foreach { i =>
      val start = RelationSet.single(i)
      emit(set, start)
      val smaller = RelationSet.first(i + 1) & next
      grown(start, excluded | smaller)(emit(set, _))
    }
  }

  private def emit(one: RelationSet, other: RelationSet): Unit = {
    steps += 1
    graph.connection(one, other).foreach { how =>
      found += Pair(one, other, how)
      val _ = planned += (one | other)
    }
  }
}

object ConnectedPairs {

  final case class Pair(one: RelationSet, other: RelationSet, how: Connection)

  private val stepsAPair = 3L
}
