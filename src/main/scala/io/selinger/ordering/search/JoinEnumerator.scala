package io.selinger.ordering.search

import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{Hypergraph, JoinKind, RelationSet}
import io.selinger.ordering.tree.{JoinTree, JoinTrees, RoughTrees}
import scala.annotation.tailrec

/**
 * Finds a cheap bushy tree, whatever the number of relations.
 *
 * All trees are looked at where the pairs of what they join are no more than `maxPairs`
 * ([[ExactSearch]]). Beyond, or after half of the time, the cheapest is taken of
 *   - the order written,
 *   - the greedy order ([[GreedyOperatorOrdering]]),
 *   - where several joins compare the same column, and up to `mostRough` pairs, the best tree of those
 *     few that are on the cheapest trees at a rough cost ([[CoarseToFinePruning]]),
 *   - else, up to `mostLinear` relations, the best trees that keep a good linear order, of several, and that
 *     of each of the first two ([[IkkbzLinearization]], [[LinDp]]),
 * and improved part by part ([[Idp2Refinement]]), by moving subtrees ([[SubtreeMoves]]) and by its own
 * linear order, while there is time; where joins are dense or share keys, a second time with more moves.
 * So no result costs more than the greedy order or the order written. Where relations or joins are many
 * (not `isFull`) these searches, beyond `mostGreedy` relations the greedy one too, go by [[RoughTrees]],
 * what they find is costed in full, and no subtree is moved. The same graph and costs give the same tree
 * unless time runs out.
 *
 * @param written the order written, which must be a valid one
 * @param used share of the time that is used up
 */
final class JoinEnumerator(
    graph: Hypergraph,
    trees: JoinTrees,
    written: Option[JoinTree],
    maxPairs: Long,
    used: () => Double
) {
  import JoinEnumerator._

  private val relations = (0 until graph.size).map(trees.relation)

  // Whether a search ended where the time was up.
  private var cut = false

  private def isUsed(share: Double): Boolean = used() >= share

  /** For a search to ask while there is more to look at. */
  private def expired(share: Double): () => Boolean = () => {
    val isUp = isUsed(share)
    cut ||= isUp
    isUp
  }

  /** None where the time is up before a tree is complete. */
  def best(): Option[Found] = {
    val (pairs, complete) =
      if (!Mechanism.ExactSearch.isOn) (IndexedSeq.empty, false)
      else new CsgCmpPairs(graph, maxPairs, expired(exactShare)).result()
    val exact =
      if (!complete) None
      else {
        // The greedy tree's parts are among those that are looked at anyway.
        val isBounded = Mechanism.CostBounding.isOn && pairs.size > fewPairs && isFull
        val known = (if (isBounded) greedy else None).toSeq ++ written
        val bound = known.minByOption(_.seconds)
        ExactSearch.best(graph, relations, trees, pairs, bound, expired(exactShare))
      }
    exact.map(Found(_, Method.Exact, None)).orElse {
      if (isUsed(exactShare)) heuristic(Some(Limit.Time))
      else heuristic(Option.unless(complete)(Limit.Pairs))
    }
  }

  /** In full wherever that takes little: a rough cost may lead it to trees that cost far more. */
  private lazy val greedy: Option[JoinTree] =
    if (!Mechanism.GreedyOrder.isOn) None
    else {
      val costs = if (graph.size <= mostGreedy) trees else searched
      GreedyOperatorOrdering.best(relations, graph, costs, tried, expired(1.0)).flatMap { tree =>
        if (costs eq trees) Some(tree) else again(tree)
      }
    }

  private def heuristic(limit: Option[Limit]): Option[Found] = {
    val start = written.filterNot(_ => isUsed(1.0))
    val known = (greedy ++ start).toSeq
    val searches =
      if (prunedPairs.nonEmpty) guided(known).map(Found(_, Method.Guided, limit)).toSeq
      else linear(known).map(Found(_, Method.Linear, limit))
    val candidates = searches ++
      greedy.map(Found(_, Method.Greedy, limit)) ++
      start.map(Found(_, Method.Written, limit))
    candidates
      .minByOption(_.tree.seconds)
      .map(found => found.copy(tree = improved(found.tree, joinsForMoves)))
      .map(thorough)
      .map(found => if (cut) found.copy(limit = Some(Limit.Time)) else found)
  }

  /** Improved a second time, with more moves, if that does not take the time of what comes after. */
  private def thorough(found: Found): Found =
    if (!isThorough || !Mechanism.LongerImprovement.isOn || isUsed(thoroughShare)) found
    else found.copy(tree = improved(found.tree, mostJoinsForMoves))

  /** Pairs on the cheapest trees at a rough cost; none where no keys are shared, or they are too many. */
  private lazy val prunedPairs: IndexedSeq[CsgCmpPairs.Pair] =
    if (!isFull || !trees.haveCommonKeys || !Mechanism.CoarseToFine.isOn) IndexedSeq.empty
    else {
      val wanted = mostGuided.min(maxPairs).toInt
      val most = if (graph.edges.isEmpty) mostRough else mostComplex
      new CoarseToFinePruning(graph, rough, most, wanted, expired(exactShare)).result()
    }

  /** The best tree of these pairs, if it is cheaper than those that are known. */
  private def guided(known: Seq[JoinTree]): Option[JoinTree] = {
    val bound = known.minByOption(_.seconds)
    ExactSearch
      .best(graph, relations, trees, prunedPairs, bound, expired(linearShare))
      .filterNot(tree => bound.exists(_ eq tree))
  }

  private def linear(known: Seq[JoinTree]): Seq[JoinTree] = {
    // The more joins there are between two sets, the longer it takes to cost one.
    val affordable =
      if (Mechanism.LinDp.isOn) math.max(0, (mostLinearWork / linearWork).toInt) else 0
    val orders = (known.iterator.map(_.leaves.toIndexedSeq) ++
      (if (isSmall && Mechanism.Ikkbz.isOn) linearized else Nil)).distinct.take(affordable).toSeq
    val found = orders.flatMap { order =>
      LinDp.best(order.map(relations), graph, searched, expired(linearShare))
    }
    // What was costed roughly is costed in full once only.
    val recosted = if (isFull) found else found.minByOption(_.seconds).toSeq
    recosted.flatMap(again)
  }

  /**
   * Part by part, then by moves, then with the order of leaves that this has led to, as long as that
   * helps: the neighbourhoods of all three are different ones.
   */
  private def improved(tree: JoinTree, joins: Double): JoinTree = {
    val parts = (refinedParts * effort / density).toInt
    def refined(tree: JoinTree): JoinTree =
      if (!Mechanism.Idp2.isOn) tree
      else
        new Idp2Refinement(graph, trees, refinedInputs, parts, expired(refinedShare)).refined(tree)
    def reordered(tree: JoinTree): JoinTree =
      if (!Mechanism.LinDp.isOn) tree
      else LinDp
        .best(tree.leaves.map(relations).toIndexedSeq, graph, trees, expired(refinedShare))
        .filter(_.seconds < tree.seconds)
        .getOrElse(tree)
    def rearranged(tree: JoinTree): JoinTree =
      if (!Mechanism.SubtreeMoves.isOn) tree
      else new SubtreeMoves(
        graph,
        trees,
        (joins * effort / density).toInt,
        expired(refinedShare)
      ).improved(tree)
    @tailrec def again(tree: JoinTree, rounds: Int): JoinTree = {
      val next = reordered(rearranged(tree))
      if (rounds == 0 || (next eq tree)) next else again(refined(next), rounds - 1)
    }
    val first = refined(tree)
    val rounds = if (Mechanism.RepeatedImprovement.isOn) (improvingRounds * effort).toInt else 0
    if (isFull) again(first, rounds) else first
  }

  /** Of many relations, most trees are looked at roughly. */
  private lazy val searched: JoinTrees =
    if (isFull || !Mechanism.RoughTrees.isOn) trees else rough

  private lazy val rough: RoughTrees = new RoughTrees(relations, graph, trees)

  /** The same tree at its full cost. */
  private def again(tree: JoinTree): Option[JoinTree] = tree match {
    case _ if searched eq trees => Some(tree)
    case relation: JoinTree.Relation => Some(relation)
    case joined: JoinTree.Joined =>
      for (left <- again(joined.left); right <- again(joined.right))
        yield trees.join(left, right, joined.how)
  }

  private lazy val links: Seq[IkkbzLinearization.Link] = {
    def link(one: Int, other: Int, share: Double) = {
      def rows(i: Int) = math.max(1.0, relations(i).estimate.rows.value)
      IkkbzLinearization.Link(one, other, share * rows(other), share * rows(one))
    }
    (for {
      one <- 0 until graph.size
      other <- graph.adjacent(one).members
      if one < other
    } yield link(one, other, rough.selectivity(one, other))) ++
      graph.edges.indices.map { e =>
        val edge = graph.edges(e)
        val (one, other) = (edge.left.lowest, edge.right.lowest)
        // An inner join under rules has keys beside its predicates.
        val byKeys = if (edge.kind == JoinKind.Inner) rough.selectivity(one, other) else 1.0
        link(one, other, byKeys * rough.selectivityOfEdge(e))
      }
  }

  private val linkCount = graph.adjacent.map(_.size).sum / 2 + graph.edges.size

  private def isSmall: Boolean = graph.size <= mostLinear

  /** Joins a relation; the more, the longer it takes to cost one. */
  private lazy val density: Double = math.max(1.0, linkCount.toDouble / graph.size)

  /** Whether there is time to cost every tree that is looked at in full. */
  private lazy val isFull: Boolean =
    isSmallest || graph.size <= mostFull && graph.size * linkCount <= mostFullWork

  private def isSmallest: Boolean = graph.size <= mostSmallest

  /** Share of the work that goes into improving a tree. */
  private def effort: Double = if (isSmallest) 1.0 else lessEffort

  /** Where joins are dense or share keys, a tree is improved a second time. */
  private lazy val isThorough: Boolean =
    isSmallest && (density > dense || trees.haveCommonKeys)

  private def linearWork: Double =
    math.pow(graph.size.toDouble, 3) / 6 * math.max(1.0, linkCount / (2.0 * graph.size))

  private def linearized: Seq[IndexedSeq[Int]] =
    IkkbzLinearization.linearOrders(
      graph.size,
      relations(_).estimate.rows.value,
      links,
      most = if (isSmallest) linearOrders else if (isFull) linearOrders / 2 else 1
    )

  /** All neighbours; of very many, those on the most selective spanning tree. */
  private def tried: IndexedSeq[RelationSet] =
    if (linkCount <= mostTried * graph.size || !Mechanism.SpanningNeighbours.isOn)
      GreedyOperatorOrdering.neighbours(graph)
    else {
      val near = IkkbzLinearization
        .spanning(graph.size, links)
        .flatMap(link => Seq(link.one -> link.other, link.other -> link.one))
        .groupMap(_._1)(_._2)
      (0 until graph.size).map { i =>
        val others = graph.edgesAt(i).filter(_.kind != JoinKind.Inner).map(_.tes)
        RelationSet.union(RelationSet.of(near.getOrElse(i, Nil)) +: others)
      }
    }
}

object JoinEnumerator {

  // All of the following are set by hand, and are limits of work: beyond each, a cheaper search takes
  // over, and orders may cost more. `make bench-planning` shows what they come to: the time to find an
  // order from 5 to 100 relations, and its cost against the best order and the greedy one. What a
  // single search brings, `python -m benchmarks.ablation --mechanisms` shows, by the name given here.

  // Shares of the planning budget at which each search ends; the rest is for the greedy one. No command
  // shows them: only a query that uses up its budget meets them, and it then gets the best tree so far.
  private val exactShare = 0.5
  private val linearShare = 0.8
  private val refinedShare = 0.9
  private val thoroughShare = 0.3

  // csg-cmp pairs up to which no bound is looked for first, as to cost so few takes less time
  // (costBounding). The order found is the same.
  private val fewPairs = 50

  // Relations up to which each tree is costed in full, whatever the number of joins; with more of them,
  // the same up to so many relations times joins: cliques of twelve, and anything that is sparse.
  // Beyond, trees are searched at rough costs (roughTrees).
  private val mostSmallest = 18
  private val mostFull = 24
  private val mostFullWork = 900

  // Joins a relation above which a tree is improved a second time, with more moves (longerImprovement).
  private val dense = 3.0

  // csg-cmp pairs to list for pruning; the same where each of them is checked for conflict rules; and
  // those that remain (coarseToFine). Where there are more to list, LinDP searches instead.
  private val mostRough = 300000L
  private val mostComplex = 40000L
  private val mostGuided = 1500L

  // Relations up to which linear orders are made, how many, and what all of them may take: pairs of
  // intervals, as three orders of a hundred relations in a chain have them (linDp, ikkbz). Beyond,
  // LinDP has only the greedy order and the order written; and beyond that work, it is not used.
  private val mostLinear = 100
  private val linearOrders = 4
  private val mostLinearWork = 510000.0

  // Of IDP-2: subtrees that are ordered anew at a time (2⁶ sets), and how many times for one tree (idp2).
  private val refinedInputs = 6
  private val refinedParts = 24

  // How often IDP-2, moves and LinDP are repeated (repeatedImprovement); the joins that moves may try
  // each time (subtreeMoves), and the same when the tree is improved a second time (longerImprovement).
  // Beyond the smallest graphs a tree gets this share of all that.
  private val improvingRounds = 4
  private val joinsForMoves = 1500.0
  private val mostJoinsForMoves = 9000.0
  private val lessEffort = 0.5

  // Relations for which the greedy order is costed in full, whatever the number of joins (greedyOrder);
  // joins a relation, on average, up to which it tries all neighbours (spanningNeighbours).
  private val mostGreedy = 30
  private val mostTried = 8

  /** How the tree was found. */
  sealed abstract class Method(val label: String)
  object Method {
    case object Exact extends Method("every order was considered")
    case object Guided extends Method("found among the orders that are cheapest at a rough cost")
    case object Linear extends Method("found by linearised dynamic programming")
    case object Greedy extends Method("found greedily")
    case object Written extends Method("found from the order written")
  }

  /** What kept the search from looking at every tree. */
  sealed abstract class Limit(val setting: String)
  object Limit {
    case object Pairs extends Limit("ordering.maxPairs")
    case object Time extends Limit("planning.budgetMs")
  }

  /** @param limit none where every tree was considered */
  final case class Found(tree: JoinTree, method: Method, limit: Option[Limit])
}
