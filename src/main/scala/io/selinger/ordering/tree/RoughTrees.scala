package io.selinger.ordering.tree

import io.selinger.core.{Origin, Quantity}
import io.selinger.cost.JoinSide
import io.selinger.estimate.PlanEstimate
import io.selinger.ordering.graph.{Connection, Hypergraph, JoinKind, RelationSet}

/**
 * Trees at a rough cost, for searches that look at many thousands of them: rows of a join are those of
 * its inputs times the share of its pairs that each two relations leave which it joins, and its cost is
 * by rows alone. What such a search finds is costed anew.
 */
final class RoughTrees(relations: IndexedSeq[JoinTree], graph: Hypergraph, trees: JoinTrees)
    extends JoinTrees {
  import RoughTrees._

  override val rough: RoughCost = trees.rough

  private val shared = trees.sharedKeys.toArray

  // By two relations, in both orders: of all pairs of their rows those that keys leave which no third
  // relation has.
  private val ofPairs = ones
  // By shared key, of those that this one leaves.
  private val ofShared = shared.map(_ => ones)
  for {
    one <- 0 until graph.size
    other <- graph.keyNeighbours(one).members
    if one < other
  } {
    val common = shared.indices.filter { k =>
      shared(k).relations.contains(one) && shared(k).relations.contains(other)
    }
    val all = trees.selectivity(one, other)
    val byShared = common.map(shared(_).share(one, other))
    set(ofPairs, one, other, if (byShared.isEmpty) all else math.min(1.0, all / byShared.product))
    common.zip(byShared).foreach { case (k, share) => set(ofShared(k), one, other, share) }
  }
  private val ofEdges: Array[Double] = graph.edges.indices.map(trees.selectivityOfEdge).toArray
  private val hasInnerEdges = graph.edges.exists(_.kind == JoinKind.Inner)

  private def ones: Array[Array[Double]] = Array.fill(graph.size, graph.size)(1.0)

  private def set(shares: Array[Array[Double]], one: Int, other: Int, share: Double): Unit = {
    shares(one)(other) = share
    shares(other)(one) = share
  }

  override def relation(index: Int): JoinTree = relations(index)

  override def selectivity(one: Int, other: Int): Double =
    if (shared.isEmpty) ofPairs(one)(other) else trees.selectivity(one, other)

  override def sharedKeys: Seq[SharedKey] = trees.sharedKeys

  override def selectivityOfEdge(edge: Int): Double = ofEdges(edge)

  override def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree = {
    val (l, r) = (left.estimate.rows.value, right.estimate.rows.value)
    val share = between(left.set, right.set, how)
    val rows = expected(how.kind, l, r, share)
    val most =
      upperBound(how.kind, rows, left.estimate.upperBound, right.estimate.upperBound, share)
    val bytes = how.kind match {
      case JoinKind.Semi | JoinKind.Anti | JoinKind.Existence => left.rowBytes
      case _ => left.rowBytes + right.rowBytes
    }
    val own = rough.seconds(
      how.kind,
      l,
      left.estimate.upperBound,
      JoinSide.areCounted(left.estimate.rows),
      r,
      right.estimate.upperBound,
      JoinSide.areCounted(right.estimate.rows),
      rows
    )
    JoinTree.Joined(
      left,
      right,
      how,
      PlanEstimate(Quantity(rows, Origin.Derived), most, None),
      bytes,
      left.seconds + right.seconds + own
    )
  }

  /** Of all pairs of rows of two sets, those that a join returns. */
  def between(left: RelationSet, right: RelationSet, how: Connection): Double =
    if (how.edge.isDefined) ofEdges(how.edge.get)
    else {
      val (few, many) = if (left.size <= right.size) (left, right) else (right, left)
      var all = 1.0
      few.foreach { i =>
        val near = graph.keyNeighbours(i) & many
        if (near.nonEmpty) near.foreach(j => all *= ofPairs(i)(j))
      }
      shared.indices.foreach { k =>
        val (ones, others) = (shared(k).relations & few, shared(k).relations & many)
        if (ones.nonEmpty && others.nonEmpty) all *= leastOf(ofShared(k), ones, others)
      }
      if (hasInnerEdges) {
        graph.foreachCrossing(left, right) { e =>
          if (graph.edges(e).kind == JoinKind.Inner) all *= ofEdges(e)
        }
      }
      all
    }

  /** The members of a key are equal within each set: that of the relation with most values counts. */
  private def leastOf(
      shares: Array[Array[Double]],
      ones: RelationSet,
      others: RelationSet
  ): Double = {
    var least = 1.0
    ones.foreach(i => others.foreach(j => least = math.min(least, shares(i)(j))))
    least
  }
}

object RoughTrees {

  // Share of its rows that an anti join keeps at least, at a rough cost. Set by hand; what is found is
  // costed in full, and `make bench-planning` shows what the orders found cost.
  private val leastUnmatched = 0.1

  private def atLeastOne(rows: Double): Double = math.max(1.0, rows)

  /** Rows that a join returns, of the share of all pairs of rows. */
  def expected(kind: JoinKind, left: Double, right: Double, share: Double): Double =
    returned(kind, left, right, left * right * share)

  /** The same of the upper bounds of both sides, at least so many as are expected. */
  def upperBound(
      kind: JoinKind,
      expected: Double,
      left: Double,
      right: Double,
      share: Double
  ): Double = {
    val rows =
      if (kind == JoinKind.Anti) left else returned(kind, left, right, left * right * share)
    math.max(expected, rows)
  }

  private def returned(kind: JoinKind, left: Double, right: Double, pairs: Double): Double = {
    val rows = kind match {
      case JoinKind.Inner => pairs
      case JoinKind.LeftOuter => math.max(left, pairs)
      case JoinKind.FullOuter => math.max(pairs, math.max(left, right))
      case JoinKind.Semi => math.min(left, pairs)
      case JoinKind.Anti => math.max(leastUnmatched * left, left - pairs)
      case JoinKind.Existence => left
    }
    math.min(PlanEstimate.most, atLeastOne(rows))
  }
}
