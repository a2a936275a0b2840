package io.selinger.ordering.search

import io.selinger.ordering.graph.{BitSets, Connection, Hypergraph, JoinEdge, RelationSet}
import scala.collection.mutable

/**
 * All csg-cmp pairs: pairs of sets of relations that some plan joins, each once, every set after all of
 * its parts. DPhyp [1] grows connected sets along the edges of a hypergraph. Sets are bits of one word
 * here: of more than 64 relations, there are more pairs than anybody waits for.
 *
 * References: [1] Moerkotte, Neumann, Dynamic Programming Strikes Back, SIGMOD 2008.
 *
 * @param most pairs, and not more than some times as many sets and pairs looked at in vain
 */
final class CsgCmpPairs(graph: Hypergraph, most: Long, expired: () => Boolean) {
  import CsgCmpPairs._

  private val adjacent: Array[Long] = graph.adjacent.iterator.map(_.bits).toArray
  private val edges: Array[JoinEdge] = graph.edges.toArray
  private val lefts: Array[Long] = edges.map(_.left.bits)
  private val rights: Array[Long] = edges.map(_.right.bits)

  /** Visits the pairs, until there are too many; whether it visited all. */
  def foreach(visitor: Visitor): Boolean =
    graph.size <= mostRelations && !tooMany && new Enumeration(visitor).isComplete

  /** The pairs, and whether these are all. */
  def result(): (IndexedSeq[Pair], Boolean) = {
    val found = mutable.ArrayBuffer.empty[Pair]
    val complete = foreach { (csg, cmp, how) =>
      val _ = found += Pair(RelationSet.ofBits(csg), RelationSet.ofBits(cmp), how)
    }
    (found.toIndexedSeq, complete)
  }

  /**
   * Whether there are more pairs than `most`: those of a tree of unconditional joins alone, or by all
   * appearances, if rules do not forbid nearly all.
   */
  private def tooMany: Boolean = {
    val all = graph.adjacent.toArray
    edges.foreach { edge =>
      val (one, other) = (edge.left.lowest, edge.right.lowest)
      all(one) = all(one) | RelationSet.single(other)
      all(other) = all(other) | RelationSet.single(one)
    }
    pairsOfTree(graph.adjacent) > most || pairsOfTree(all.toIndexedSeq) > math.max(
      most,
      mostUnlessForbidden
    )
  }

  private final class Enumeration(visitor: Visitor) {
    // Sets for which there is a plan.
    private val planned = new BitSets
    private var pairs = 0L
    private var steps = 0L
    private var nextLook = 0L
    private var late = false

    val isComplete: Boolean = {
      (0 until graph.size).foreach(i => planned.add(1L << i))
      var i = graph.size - 1
      while (i >= 0 && !full) {
        withComplements(1L << i)
        grow(1L << i, upTo(i), other = 0L)
        i -= 1
      }
      !full
    }

    private def full: Boolean = {
      if (steps >= nextLook) {
        late ||= expired()
        nextLook = steps + stepsALook
      }
      pairs > most || steps > most * stepsAPair + graph.size * 64L || late
    }

    /** Relations outside of `set` that a join leads to: of more than one on its other side the first. */
    private def around(set: Long, excluded: Long): Long = {
      var (found, rest) = (0L, set)
      while (rest != 0L) {
        found |= adjacent(java.lang.Long.numberOfTrailingZeros(rest))
        rest &= rest - 1
      }
      var e = 0
      while (e < edges.length) {
        val ahead =
          if ((lefts(e) & ~set) == 0L) rights(e)
          else if ((rights(e) & ~set) == 0L) lefts(e)
          else 0L
        if ((ahead & set) == 0L) found |= java.lang.Long.lowestOneBit(ahead)
        e += 1
      }
      found & ~set & ~excluded
    }

    /**
     * Every planned set that contains `set` and none of `excluded`: paired with `other`, or where there
     * is none yet, with whatever it can be joined with.
     */
    private def grow(set: Long, excluded: Long, other: Long): Unit = {
      val next = around(set, excluded)
      var more = (0L - next) & next
      while (more != 0L && !full) {
        steps += 1
        val larger = set | more
        if (planned.contains(larger)) {
          if (other == 0L) withComplements(larger) else pair(other, larger)
        }
        more = (more - next) & next
      }
      more = (0L - next) & next
      while (more != 0L && !full) {
        grow(set | more, excluded | next, other)
        more = (more - next) & next
      }
    }

    private def withComplements(set: Long): Unit = {
      val excluded = upTo(java.lang.Long.numberOfTrailingZeros(set)) | set
      val next = around(set, excluded)
      var rest = next
      while (rest != 0L && !full) {
        val start = java.lang.Long.highestOneBit(rest)
        val smaller = upTo(java.lang.Long.numberOfTrailingZeros(start)) & next
        pair(set, start)
        grow(start, excluded | smaller, set)
        rest &= ~start
      }
    }

    private def pair(csg: Long, cmp: Long): Unit = {
      steps += 1
      // Without complex edges, whatever is adjacent may be joined.
      val how =
        if (edges.isEmpty) alwaysInner
        else graph.connection(RelationSet.ofBits(csg), RelationSet.ofBits(cmp))
      if (how.isDefined) {
        pairs += 1
        planned.add(csg | cmp)
        visitor.visit(csg, cmp, how.get)
      }
    }
  }
}

object CsgCmpPairs {

  /** A connected subgraph, and a connected one of the rest that a join leads to. */
  final case class Pair(csg: RelationSet, cmp: RelationSet, how: Connection)

  /** Of each pair. The sets are bits, by the numbers of the relations. */
  trait Visitor {
    def visit(csg: Long, cmp: Long, how: Connection): Unit
  }

  val mostRelations = 64

  // Limits of work, set by hand; beyond them no pairs are listed, and the search goes on without them
  // (`make bench-planning`). Pairs of a spanning tree that conflict rules may still forbid; and steps for
  // each pair that may be listed.
  private val mostUnlessForbidden = 160000L
  private val stepsAPair = 3L
  // The time is not looked at in every step.
  private val stepsALook = 32L
  private val alwaysInner = Some(Connection.inner)

  /**
   * Pairs of a spanning tree, which are all that there are where joins form no cycle: each of its edges
   * joins any connected set on its one side with any on the other.
   */
  private def pairsOfTree(adjacent: IndexedSeq[RelationSet]): Double = {
    val parents = Array.fill(adjacent.size)(-1)
    val order = mutable.LinkedHashSet.empty[Int]
    // From relations with many neighbours, since stars have the most pairs.
    adjacent.indices.sortBy(i => -adjacent(i).size).foreach { root =>
      val next = mutable.Queue.from(Option.unless(order(root))(root))
      next.foreach(order += _)
      while (next.nonEmpty) {
        val relation = next.dequeue()
        adjacent(relation).members.filter(order.add).foreach { child =>
          parents(child) = relation
          next += child
        }
      }
    }
    val children = order.toSeq.filter(parents(_) >= 0)
    // Connected sets with a relation, of what is below it; and with its parent, of all else.
    val below = Array.fill(adjacent.size)(1.0)
    val above = Array.fill(adjacent.size)(0.0)
    children.reverseIterator.foreach(i => below(parents(i)) *= 1.0 + below(i))
    children.foreach { i =>
      above(i) = below(parents(i)) / (1.0 + below(i)) * (1.0 + above(parents(i)))
    }
    children.map(i => below(i) * above(i)).sum
  }

  /** Relations up to and with this one. */
  private def upTo(relation: Int): Long = -1L >>> (63 - relation)
}
