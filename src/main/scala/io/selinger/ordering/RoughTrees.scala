package io.selinger.ordering

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate

/**
 * Trees at a rough cost, for searches that look at hundreds of thousands of them: rows of a join are
 * those of its inputs times the selectivity of each pair of relations that it joins, and its cost is
 * by rows and bytes alone. What such a search finds is costed anew.
 *
 * @param share of all pairs of rows that an inner join of two relations returns
 * @param shareOfEdge the same of a join of [[Hypergraph.edges]]
 */
final class RoughTrees(
    relations: IndexedSeq[JoinTree],
    graph: Hypergraph,
    share: (Int, Int) => Double,
    shareOfEdge: Int => Double
) extends JoinTrees {
  import RoughTrees._

  override def relation(index: Int): JoinTree = relations(index)

  override def selectivity(one: Int, other: Int): Double = share(one, other)

  override def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree = {
    val (l, r) = (left.estimate.rows.value, right.estimate.rows.value)
    val kept = how.edge.fold(between(left.set, right.set))(shareOfEdge)
    val pairs = math.min(PlanEstimate.most, l * r * kept)
    val rows = how.kind match {
      case JoinKind.Inner => pairs
      case JoinKind.LeftOuter => math.max(l, pairs)
      case JoinKind.FullOuter => math.max(pairs, math.max(l, r))
      case JoinKind.Semi => math.min(l, pairs)
      case JoinKind.Anti => math.max(leastUnmatched * l, l - pairs)
      case JoinKind.Existence => l
    }
    val bytes = how.kind match {
      case JoinKind.Semi | JoinKind.Anti | JoinKind.Existence => left.rowBytes
      case _ => left.rowBytes + right.rowBytes
    }
    val expected = math.max(1.0, rows)
    JoinTree.Joined(
      left,
      right,
      how,
      PlanEstimate(Quantity(expected, Origin.Derived), expected, None),
      bytes,
      left.seconds + right.seconds + own(left, right, pairs, expected)
    )
  }

  /** Of conjuncts that come together. */
  private def between(one: RelationSet, other: RelationSet): Double = {
    val (few, many) = if (one.size <= other.size) (one, other) else (other, one)
    few.members.foldLeft(1.0) { (product, i) =>
      (graph.adjacent(i) & many).members.foldLeft(product)((all, j) => all * share(i, j))
    }
  }

  private def own(left: JoinTree, right: JoinTree, pairs: Double, rows: Double): Double = {
    val (l, r) = (left.estimate.rows.value, right.estimate.rows.value)
    val (small, large) = (math.min(l, r), math.max(l, r))
    val shuffled = (l + r) * shuffledNs
    val moved =
      if (small > mostBroadcast) shuffled
      else math.min(shuffled, small * broadcastNs + large * probedNs)
    (moved + pairs * pairNs + rows * rowNs) * 1e-9
  }
}

object RoughTrees {

  // As in JoinCost, of rows of usual width.
  private val shuffledNs = 400.0
  private val broadcastNs = 500.0
  private val probedNs = 60.0
  private val pairNs = 20.0
  private val rowNs = 60.0
  private val mostBroadcast = 1e5
  private val leastUnmatched = 0.1
}
