package io.selinger.ordering

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate

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

  // By two relations, in both orders, and by edge: of all pairs of their rows, those that join.
  private val shares = Array.fill(graph.size, graph.size)(1.0)
  private val fears = Array.fill(graph.size, graph.size)(1.0)
  for {
    one <- 0 until graph.size
    other <- graph.adjacent(one).members
    if one < other
  } {
    val known = if (inFull) estimated(one, other) else None
    val share = known.getOrElse(Share(trees.selectivity(one, other), 1.0))
    shares(one)(other) = share.expected
    shares(other)(one) = share.expected
    fears(one)(other) = share.feared
    fears(other)(one) = share.feared
  }
  private val ofEdges: Array[Share] = graph.edges.indices.map { e =>
    val edge = graph.edges(e)
    val feared =
      if (inFull && edge.kind != JoinKind.Inner) {
        estimated(edge.left.lowest, edge.right.lowest).fold(1.0)(_.feared)
      } else 1.0
    Share(trees.selectivityOfEdge(e), feared)
  }.toArray
  private val hasInnerEdges = graph.edges.exists(_.kind == JoinKind.Inner)

  private def estimated(one: Int, other: Int): Option[Share] = {
    val (left, right) = (relations(one).estimate, relations(other).estimate)
    Joining.join(relations(one), relations(other), graph, trees).map { joined =>
      Share(
        joined.estimate.rows.value / atLeastOne(left.rows.value * right.rows.value),
        math.min(1.0, joined.estimate.high / atLeastOne(left.high * right.high))
      )
    }
  }

  override def relation(index: Int): JoinTree = relations(index)

  override def selectivity(one: Int, other: Int): Double = shares(one)(other)

  override def selectivityOfEdge(edge: Int): Double = ofEdges(edge).expected

  override def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree = {
    val (l, r) = (left.estimate.rows.value, right.estimate.rows.value)
    val share = between(left.set, right.set, how)
    val rows = expected(how.kind, l, r, share)
    val high = feared(how.kind, rows, left.estimate.high, right.estimate.high, share)
    val bytes = how.kind match {
      case JoinKind.Semi | JoinKind.Anti | JoinKind.Existence => left.rowBytes
      case _ => left.rowBytes + right.rowBytes
    }
    val own = rough.seconds(l, left.estimate.high, r, right.estimate.high, rows, rows)
    JoinTree.Joined(
      left,
      right,
      how,
      PlanEstimate(Quantity(rows, Origin.Derived), high, None),
      bytes,
      left.seconds + right.seconds + own
    )
  }

  /** Of all pairs of rows of two sets, those that a join returns. */
  def between(left: RelationSet, right: RelationSet, how: Connection): Share = how.edge match {
    case Some(edge) => ofEdges(edge)
    case None =>
      val (few, many) = if (left.size <= right.size) (left, right) else (right, left)
      var (expected, feared) = (1.0, 1.0)
      few.foreach { i =>
        val (shared, share, fear) = (graph.adjacent(i) & many, shares(i), fears(i))
        if (shared.nonEmpty) shared.foreach { j =>
          expected *= share(j)
          feared *= fear(j)
        }
      }
      if (hasInnerEdges) {
        graph.foreachCrossing(left, right) { e =>
          if (graph.edges(e).kind == JoinKind.Inner) {
            expected *= ofEdges(e).expected
            feared *= ofEdges(e).feared
          }
        }
      }
      Share(expected, feared)
  }
}

object RoughTrees {

  /** Of all pairs of rows, those that a join is expected to return, and those that are feared. */
  final case class Share(expected: Double, feared: Double) {
    def and(other: Share): Share = Share(expected * other.expected, feared * other.feared)
  }

  object Share {
    val all: Share = Share(1.0, 1.0)
  }

  private val leastUnmatched = 0.1

  private def atLeastOne(rows: Double): Double = math.max(1.0, rows)

  /** Rows that a join returns. */
  def expected(kind: JoinKind, left: Double, right: Double, share: Share): Double =
    returned(kind, left, right, left * right * share.expected)

  /** The same that are feared, at least so many as are expected. */
  def feared(
      kind: JoinKind,
      expected: Double,
      left: Double,
      right: Double,
      share: Share
  ): Double = {
    val rows =
      if (kind == JoinKind.Anti) left else returned(kind, left, right, left * right * share.feared)
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
