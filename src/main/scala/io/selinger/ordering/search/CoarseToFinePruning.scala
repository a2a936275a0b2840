package io.selinger.ordering.search

import io.selinger.cost.JoinSide
import io.selinger.estimate.PlanEstimate
import io.selinger.ordering.graph.{BitSets, Connection, Hypergraph, JoinKind, RelationSet}
import io.selinger.ordering.tree.RoughTrees
import java.util.Arrays

/**
 * Those of the pairs of [[CsgCmpPairs]] that are on cheap trees, where there are too many to cost all
 * in full: a dynamic program at rough costs says for each pair what the cheapest tree costs that has
 * it, and the pairs of the cheapest trees remain (coarse-to-fine dynamic programming [1]). With a pair,
 * all pairs of its cheapest tree remain too.
 *
 * References: [1] Charniak et al., Multilevel Coarse-to-Fine PCFG Parsing, HLT-NAACL 2006.
 *
 * @param most pairs that are looked at; of graphs that have more, none remain
 * @param wanted pairs that remain, at most
 */
final class CoarseToFinePruning(
    graph: Hypergraph,
    costs: RoughTrees,
    most: Long,
    wanted: Int,
    expired: () => Boolean
) {
  import CoarseToFinePruning._

  private val rough = costs.rough
  private val sets = new BitSets
  // By number of the set: what its first pair leaves of the product, its rows, expected and at most,
  // whether they were counted, and the seconds of its cheapest tree.
  private var shares = new Array[Double](1024)
  private var rows = new Array[Double](1024)
  private var bounds = new Array[Double](1024)
  private var counted = new Array[Boolean](1024)
  private var inside = new Array[Double](1024)

  // By pair, in the order in which they come, every set after all of its parts: numbers of its two
  // sets and of both together, how they are joined, and the seconds of that.
  private var lefts = new Array[Int](4096)
  private var rights = new Array[Int](4096)
  private var unions = new Array[Int](4096)
  private var kinds = new Array[JoinKind](4096)
  private var own = new Array[Double](4096)
  private var count = 0

  private lazy val isComplete: Boolean = {
    (0 until graph.size).foreach(i => sets.add(1L << i))
    new CsgCmpPairs(graph, most, expired).foreach(add(_, _, _)) && sets.contains(graph.all.bits)
  }

  /**
   * In the order of [[CsgCmpPairs]]; none where there are too many or the time was up.
   */
  def result(): IndexedSeq[CsgCmpPairs.Pair] =
    if (!isComplete) IndexedSeq.empty
    else {
      cost()
      onCheapestTrees()
    }

  private def add(one: Long, other: Long, how: Connection): Unit = {
    val (left, right) = if (how.swapped) (other, one) else (one, other)
    val (l, r) = (sets(left), sets(right))
    val known = sets.size
    val both = sets.add(one | other)
    if (both == known) {
      if (both == rows.length) {
        shares = Arrays.copyOf(shares, both * 2)
        rows = Arrays.copyOf(rows, both * 2)
        bounds = Arrays.copyOf(bounds, both * 2)
        counted = Arrays.copyOf(counted, both * 2)
        inside = Arrays.copyOf(inside, both * 2)
      }
      shares(both) = costs.between(RelationSet.ofBits(left), RelationSet.ofBits(right), how)
    }
    if (count == own.length) {
      lefts = Arrays.copyOf(lefts, count * 2)
      rights = Arrays.copyOf(rights, count * 2)
      unions = Arrays.copyOf(unions, count * 2)
      kinds = Arrays.copyOf(kinds, count * 2)
      own = Arrays.copyOf(own, count * 2)
    }
    lefts(count) = l
    rights(count) = r
    unions(count) = both
    kinds(count) = how.kind
    count += 1
  }

  private def cost(): Unit = {
    Arrays.fill(inside, -1.0)
    (0 until graph.size).foreach { i =>
      val number = sets(1L << i)
      know(number, costs.relation(i).estimate)
      inside(number) = 0.0
    }
    var i = 0
    while (i < count) {
      val (l, r, both, kind) = (lefts(i), rights(i), unions(i), kinds(i))
      if (inside(both) < 0.0) {
        size(both, kind, l, r)
        inside(both) = Double.PositiveInfinity
      }
      own(i) = rough.seconds(
        kind,
        rows(l),
        bounds(l),
        counted(l),
        rows(r),
        bounds(r),
        counted(r),
        rows(both)
      )
      inside(both) = math.min(inside(both), inside(l) + inside(r) + own(i))
      i += 1
    }
  }

  private def know(set: Int, estimate: PlanEstimate): Unit = {
    rows(set) = estimate.rows.value
    bounds(set) = estimate.upperBound
    counted(set) = JoinSide.areCounted(estimate.rows)
  }

  /** Rows of a set, as its first pair makes it. */
  private def size(both: Int, kind: JoinKind, left: Int, right: Int): Unit = {
    val share = shares(both)
    rows(both) = RoughTrees.expected(kind, rows(left), rows(right), share)
    bounds(both) = RoughTrees.upperBound(kind, rows(both), bounds(left), bounds(right), share)
  }

  private def onCheapestTrees(): IndexedSeq[CsgCmpPairs.Pair] = {
    val least = math.max(inside(sets(graph.all.bits)), Double.MinPositiveValue)
    val kept = costsOfTrees.map(seconds => stepOf(seconds / least - 1.0))
    val last = lastStep(kept)
    kept.indices.filter(i => kept(i) <= last).map { i =>
      val csg = RelationSet.ofBits(sets.bits(lefts(i)))
      val cmp = RelationSet.ofBits(sets.bits(rights(i)))
      CsgCmpPairs.Pair(csg, cmp, graph.connection(csg, cmp).get)
    }
  }

  /** By pair, the seconds of the cheapest tree of all that has it. */
  private def costsOfTrees: Array[Double] = {
    // By set, what is added to it to make a tree of all.
    val outside = Array.fill(sets.size)(Double.PositiveInfinity)
    outside(sets(graph.all.bits)) = 0.0
    val through = new Array[Double](count)
    var i = count - 1
    while (i >= 0) {
      val (one, other) = (lefts(i), rights(i))
      val above = outside(unions(i)) + own(i)
      through(i) = above + inside(one) + inside(other)
      outside(one) = math.min(outside(one), above + inside(other))
      outside(other) = math.min(outside(other), above + inside(one))
      i -= 1
    }
    through
  }

  /** The last step up to which there are no more pairs than wanted. */
  private def lastStep(steps: Array[Int]): Int = {
    val counts = new Array[Int](mostSteps + 1)
    steps.foreach(step => counts(step) += 1)
    counts.init.scanLeft(0)(_ + _).tail.lastIndexWhere(_ <= wanted)
  }
}

object CoarseToFinePruning {

  // Trees are told apart by what they cost more than the cheapest, as a share of its cost: from 2⁻³⁰,
  // in steps of a sixteenth of a power of two (640 of them), to 2¹⁰ times.
  private val leastExcess = math.pow(2.0, -30)
  private val mostSteps = 640

  /** The leading bits of the number, which are as quick as a logarithm is slow. */
  private def stepOf(excess: Double): Int =
    if (!(excess > leastExcess)) 0
    else math.min(mostSteps.toLong, leadingBits(excess) - leadingBits(leastExcess) + 1).toInt

  private def leadingBits(number: Double): Long =
    java.lang.Double.doubleToRawLongBits(number) >>> 48
}
