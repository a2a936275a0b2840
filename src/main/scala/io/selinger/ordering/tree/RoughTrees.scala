package io.selinger.ordering.tree

import io.selinger.core.{Origin, Quantity}
import io.selinger.cost.JoinSide
import io.selinger.estimate.PlanEstimate
import io.selinger.ordering.graph.{Connection, Hypergraph, JoinKind, RelationSet}

/**
 * Trees at a rough cost, for searches that look at hundreds of thousands of them: rows of a join are
 * those of its inputs times the share of its pairs that each two relations leave which it joins, and
 * its cost is by rows alone. What such a search finds is costed anew.
 *
 * @param inFull whether shares are those of estimated joins of two relations, which takes some time
 */
final class RoughTrees(
    relations: IndexedSeq[JoinTree],
    graph: Hypergraph,
    trees: JoinTrees,
    inFull: Boolean
) extends JoinTrees {
  import RoughTrees._

  override val rough: RoughCost = trees.rough

  private val shared = trees.sharedKeys.toArray

  // By two relations, in both orders: of all pairs of their rows those that keys leave which no third
  // relation has.
  private val ofPairs = new Shares
  // By shared key, of those that this one leaves.
  private val ofShared = shared.map(_ => new Shares)
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
    val own = if (byShared.isEmpty) all else math.min(1.0, all / byShared.product)
    // Upper bounds of several keys together are not to be told apart.
    val known =
      if (inFull && common.size <= 1) Some(estimated(one, other, Connection.inner)) else None
    val isOwn = common.isEmpty || own < 1.0
    val ofOwn = if (common.isEmpty) known else known.filter(_ => isOwn).map(_.copy(expected = own))
    ofPairs.set(one, other, ofOwn.getOrElse(unbounded(own)))
    common.zip(byShared).foreach { case (k, share) =>
      ofShared(k).set(one, other, known.filterNot(_ => isOwn).getOrElse(unbounded(share)))
    }
  }
  private val ofEdges: Array[Share] = graph.edges.indices.map { e =>
    val edge = graph.edges(e)
    val how = Connection(edge.kind, Some(e), swapped = false)
    val share = trees.selectivityOfEdge(e)
    val ofTwo = edge.left.size == 1 && edge.right.size == 1
    if (inFull && ofTwo && edge.kind != JoinKind.Inner) {
      Share(share, estimated(edge.left.lowest, edge.right.lowest, how).upperBound)
    } else unbounded(share)
  }.toArray
  private val hasInnerEdges = graph.edges.exists(_.kind == JoinKind.Inner)

  /** No upper bound is known: all pairs, or what is expected where only that counts. */
  private def unbounded(share: Double): Share = Share(share, if (inFull) 1.0 else share)

  private def estimated(one: Int, other: Int, how: Connection): Share = {
    val (left, right) = (relations(one).estimate, relations(other).estimate)
    val joined = trees.join(relations(one), relations(other), how).estimate
    Share(
      joined.rows.value / atLeastOne(left.rows.value * right.rows.value),
      math.min(1.0, joined.upperBound / atLeastOne(left.upperBound * right.upperBound))
    )
  }

  override def relation(index: Int): JoinTree = relations(index)

  override def selectivity(one: Int, other: Int): Double =
    if (shared.isEmpty) ofPairs.expected(one)(other) else trees.selectivity(one, other)

  override def sharedKeys: Seq[SharedKey] = trees.sharedKeys

  override def known(set: RelationSet): Option[PlanEstimate] = trees.known(set)

  override def selectivityOfEdge(edge: Int): Double = ofEdges(edge).expected

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
      rows,
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
  def between(left: RelationSet, right: RelationSet, how: Connection): Share =
    if (how.edge.isDefined) ofEdges(how.edge.get)
    else {
      val (few, many) = if (left.size <= right.size) (left, right) else (right, left)
      val all = new Product
      few.foreach { i =>
        val near = graph.keyNeighbours(i) & many
        if (near.nonEmpty)
          near.foreach(j => all.add(ofPairs.expected(i)(j), ofPairs.upperBound(i)(j)))
      }
      shared.indices.foreach { k =>
        val (ones, others) = (shared(k).relations & few, shared(k).relations & many)
        if (ones.nonEmpty && others.nonEmpty) all.add(leastOf(ofShared(k), ones, others))
      }
      if (hasInnerEdges) {
        graph.foreachCrossing(left, right) { e =>
          if (graph.edges(e).kind == JoinKind.Inner) all.add(ofEdges(e))
        }
      }
      all.share
    }

  /** The members of a key are equal within each set: that of the relation with most values counts. */
  private def leastOf(shares: Shares, ones: RelationSet, others: RelationSet): Share = {
    var (expected, upperBound) = (1.0, 1.0)
    ones.foreach { i =>
      others.foreach { j =>
        expected = math.min(expected, shares.expected(i)(j))
        upperBound = math.min(upperBound, shares.upperBound(i)(j))
      }
    }
    Share(expected, upperBound)
  }

  private final class Shares {
    val expected: Array[Array[Double]] = Array.fill(graph.size, graph.size)(1.0)
    val upperBound: Array[Array[Double]] = Array.fill(graph.size, graph.size)(1.0)

    def set(one: Int, other: Int, share: Share): Unit =
      Seq(one -> other, other -> one).foreach { case (i, j) =>
        expected(i)(j) = share.expected
        upperBound(i)(j) = share.upperBound
      }
  }
}

object RoughTrees {

  /** Of all pairs of rows, those that a join is expected to return, and their upper bound. */
  final case class Share(expected: Double, upperBound: Double)

  private final class Product {
    private var expected = 1.0
    private var upperBound = 1.0

    def add(more: Double, moreAtMost: Double): Unit = {
      expected *= more
      upperBound *= moreAtMost
    }

    def add(share: Share): Unit = add(share.expected, share.upperBound)

    def share: Share = Share(expected, upperBound)
  }

  private val leastUnmatched = 0.1

  private def atLeastOne(rows: Double): Double = math.max(1.0, rows)

  /** Rows that a join returns. */
  def expected(kind: JoinKind, left: Double, right: Double, share: Share): Double =
    returned(kind, left, right, left * right * share.expected)

  /** The upper bound of the same, at least so many as are expected. */
  def upperBound(
      kind: JoinKind,
      expected: Double,
      left: Double,
      right: Double,
      share: Share
  ): Double = {
    val rows =
      if (kind == JoinKind.Anti) left
      else returned(kind, left, right, left * right * share.upperBound)
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
