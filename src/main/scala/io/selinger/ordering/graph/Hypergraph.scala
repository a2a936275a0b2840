package io.selinger.ordering.graph

import scala.collection.immutable.ArraySeq

/**
 * How two inputs are joined.
 *
 * @param edge index of the join among [[Hypergraph.edges]]; none for an inner join, which evaluates
 *   all conjuncts that come together
 * @param swapped whether the second input is the left one
 */
final case class Connection(kind: JoinKind, edge: Option[Int], swapped: Boolean)

object Connection {
  val inner: Connection = Connection(JoinKind.Inner, None, swapped = false)
}

/**
 * The joins of a region without their order: which relations can be joined, and how.
 *
 * @param adjacent for each relation those that an unconditional inner join connects it with
 * @param edges all other joins
 * @param keyNeighbours for each relation those that are in an equivalence class with it; whether rules
 *   allow a join of just these two is another question
 */
final class Hypergraph(
    val adjacent: IndexedSeq[RelationSet],
    val edges: IndexedSeq[JoinEdge],
    val keyNeighbours: IndexedSeq[RelationSet]
) {

  val size: Int = adjacent.size

  val all: RelationSet = RelationSet.first(size)

  // Of each of `edges`, how many relations come together in it.
  private val sizes: Array[Int] = edges.iterator.map(_.tes.size).toArray

  // Indices of those of `edges` that concern a relation, smallest first.
  private val at: Array[Array[Int]] = {
    val found = Array.fill(size)(Array.newBuilder[Int])
    edges.indices.sortBy(sizes(_)).foreach(e => edges(e).tes.foreach(found(_) += e))
    found.map(_.result())
  }

  // By relation, of each of these edges: the other relation, where it concerns just two; else -1.
  private val partners: Array[Array[Int]] = Array.tabulate(size) { i =>
    at(i).map { e =>
      if (sizes(e) == 2) edges(e).tes.without(RelationSet.single(i)).lowest else -1
    }
  }

  /** Those of `edges` that concern a relation. */
  def edgesAt(relation: Int): Seq[JoinEdge] = at(relation).toIndexedSeq.map(edges)

  /** How these are joined, if a join connects them and no rule forbids it. */
  def connection(one: RelationSet, other: RelationSet): Option[Connection] = {
    val near = isAdjacent(one, other)
    if (edges.isEmpty) Option.when(near)(Connection.inner)
    else complex(one, other, near)
  }

  private def isAdjacent(one: RelationSet, other: RelationSet): Boolean = {
    val (few, many) = if (one.size <= other.size) (one, other) else (other, one)
    few.exists(i => adjacent(i).meets(many))
  }

  /**
   * Visits the numbers of those of `edges` whose relations come together in a join of two sets that
   * share none.
   */
  def foreachCrossing(one: RelationSet, other: RelationSet)(visit: Int => Unit): Unit = {
    val both = one | other
    val most = both.size
    val (few, many) = if (one.size <= other.size) (one, other) else (other, one)
    def crosses(member: Int, edge: JoinEdge): Boolean =
      // Each edge once, whatever number of its relations are in the smaller set.
      edge.tes.meets(many) && edge.tes.lowestShared(few) == member &&
        edge.tes.within(both)
    few.foreach { member =>
      val (candidates, others) = (at(member), partners(member))
      var i = 0
      while (i < candidates.length && sizes(candidates(i)) <= most) {
        val found =
          if (others(i) >= 0) many.contains(others(i)) else crosses(member, edges(candidates(i)))
        if (found) visit(candidates(i))
        i += 1
      }
    }
  }

  /** A join that is not simple takes place alone; all others that come together must be inner. */
  private def complex(
      one: RelationSet,
      other: RelationSet,
      near: Boolean
  ): Option[Connection] = {
    val both = one | other
    var (inner, connected, allowed) = (false, near, true)
    var (others, single) = (0, -1)
    foreachCrossing(one, other) { e =>
      val edge = edges(e)
      val holds = edge.rulesHold(both)
      def split = edge.splits(one, other) || edge.splits(other, one)
      if (edge.kind == JoinKind.Inner || edge.optional) {
        connected ||= holds && split
        if (!edge.optional) {
          inner = true
          allowed &&= holds && (edge.anySplit || split)
        }
      } else {
        others += 1
        single = e
      }
    }
    if (others == 0) Option.when(allowed && connected)(Connection.inner)
    else if (near || inner || others > 1) None
    else {
      val edge = edges(single)
      if (!edge.rulesHold(both)) None
      else if (edge.splits(one, other)) Some(Connection(edge.kind, Some(single), swapped = false))
      else if (edge.splits(other, one)) Some(Connection(edge.kind, Some(single), swapped = true))
      else None
    }
  }

  /** Whether any join leads from each relation to each other. */
  def isConnected: Boolean = {
    val parts = edges.map(_.tes) ++
      adjacent.zipWithIndex.map { case (near, i) => near | RelationSet.single(i) }
    def reached(set: RelationSet): RelationSet = {
      val more = RelationSet.union(parts.filter(_.meets(set))) | set
      if (more == set) set else reached(more)
    }
    size == 0 || reached(RelationSet.single(0)) == all
  }
}

object Hypergraph {

  /** @param keys relations of each equivalence class */
  def of(size: Int, edges: Seq[JoinEdge], keys: Seq[RelationSet] = Nil): Hypergraph = {
    val (simple, complex) = edges.partition(_.isSimple)
    val adjacent = Array.fill(size)(RelationSet.empty)
    simple.foreach { edge =>
      val (left, right) = (edge.left.lowest, edge.right.lowest)
      adjacent(left) = adjacent(left) | edge.right
      adjacent(right) = adjacent(right) | edge.left
    }
    val keyNeighbours = adjacent.clone()
    for (key <- keys; i <- key.members)
      keyNeighbours(i) = keyNeighbours(i) | key.without(RelationSet.single(i))
    new Hypergraph(ArraySeq.from(adjacent), ArraySeq.from(complex), ArraySeq.from(keyNeighbours))
  }
}
