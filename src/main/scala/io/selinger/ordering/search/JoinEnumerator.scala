package io.selinger.ordering.search

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
 *   - of up to `mostRough` pairs, the best tree of those few that are on the cheapest trees at a
 *     rough cost ([[CoarseToFinePruning]]),
 *   - of more, up to `mostLinear` relations, the best trees that keep a good linear order, of several,
 *     and that of each of the first two ([[IkkbzLinearization]], [[LinDp]]),
 * and improved part by part ([[Idp2Refinement]]), by moving subtrees ([[SubtreeMoves]]) and by its own
 * linear order, while there is time; where rough costs mislead most, all this is done a second time
 * with more work. So no result costs more than the greedy order or the order written. Where relations or
 * joins are many (not `isFull`) these searches, beyond `mostGreedy` relations the greedy one too, go by
 * [[RoughTrees]], what they find is costed in full, and no subtree is moved. The same graph and costs
 * give the same tree unless time runs out.
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
    val (pairs, complete) = new CsgCmpPairs(graph, maxPairs, expired(exactShare)).result()
    val exact =
      if (!complete) None
      else {
        // The greedy tree's parts are among those that are looked at anyway.
        val known = (if (pairs.size > fewPairs && isFull) greedy else None).toSeq ++ written
        val bound = known.minByOption(_.seconds)
        ExactSearch.best(graph, relations, trees, pairs, bound, expired(exactShare))
      }
    exact.map(Found(_, Method.Exact, None)).orElse {
      if (isUsed(exactShare)) heuristic(Some(Limit.Time))
      else heuristic(Option.unless(complete)(Limit.Pairs))
    }
  }

  /** In full wherever that takes little: a rough cost may lead it to trees that cost far more. */
  private lazy val greedy: Option[JoinTree] = {
    val costs = if (graph.size <= mostGreedy) trees else searched
    GreedyOperatorOrdering.best(relations, graph, costs, tried, expired(1.0)).flatMap { tree =>
      if (costs eq trees) Some(tree) else again(tree)
    }
  }

  private def heuristic(limit: Option[Limit]): Option[Found] = {
    val start = written.filterNot(_ => isUsed(1.0))
    val known = (greedy ++ start).toSeq
    val searches = guided(known, mostListed, rounds = 1) match {
      case Some(better) => better.toSeq.map(Found(_, Method.Guided, limit))
      case None => linear(known).map(Found(_, Method.Linear, limit))
    }
    val candidates = searches ++
      greedy.map(Found(_, Method.Greedy, limit)) ++
      start.map(Found(_, Method.Written, limit))
    candidates
      .minByOption(_.tree.seconds)
      .map(found => found.copy(tree = improved(found.tree, joinsForMoves)))
      .map(thorough)
      .map(found => if (cut) found.copy(limit = Some(Limit.Time)) else found)
  }

  /** With several times the work, if that does not take the time of what comes after. */
  private def thorough(found: Found): Found =
    if (!isThorough || isUsed(thoroughShare)) found
    else {
      val better = guided(Seq(found.tree), mostRough, guidedRounds).flatten
      val tree = improved(better.getOrElse(found.tree), mostJoinsForMoves)
      found.copy(tree, better.fold(found.method)(_ => Method.Guided))
    }

  private def mostListed: Long = {
    val most = if (graph.edges.isEmpty) mostRough else mostComplex
    if (isSmallest) most else most / fewerBeyond
  }

  /**
   * None where this cannot be searched; a tree only if it is cheaper than those that are known.
   *
   * @param most pairs to list
   */
  private def guided(known: Seq[JoinTree], most: Long, rounds: Int): Option[Option[JoinTree]] =
    if (!isFull) None
    else {
      val wanted = mostGuided.min(maxPairs).toInt
      val promising = new CoarseToFinePruning(graph, rough, most, wanted, expired(exactShare))
      // What one round has estimated in full corrects the next one.
      @tailrec def again(
          pairs: IndexedSeq[CsgCmpPairs.Pair],
          best: Option[JoinTree],
          rounds: Int
      ): Option[JoinTree] =
        ExactSearch.best(graph, relations, trees, pairs, best, expired(linearShare)) match {
          case None => best
          case better if rounds == 1 => better
          case better => again(promising.result(), better, rounds - 1)
        }
      val bound = known.minByOption(_.seconds)
      val pairs = promising.result()
      Option.unless(pairs.isEmpty) {
        again(pairs, bound, rounds).filterNot(tree => bound.exists(_ eq tree))
      }
    }

  private def linear(known: Seq[JoinTree]): Seq[JoinTree] = {
    // The more joins there are between two sets, the longer it takes to cost one.
    val affordable = math.max(0, (mostLinearWork / linearWork).toInt)
    val orders = (known.iterator.map(_.leaves.toIndexedSeq) ++
      (if (isSmall) linearized else Nil)).distinct.take(affordable).toSeq
    val found = orders.flatMap { order =>
      LinDp.best(order.map(relations), graph, searched, expired(linearShare))
    }
    // What was costed roughly is costed in full once only.
    val promising = if (isFull) found else found.minByOption(_.seconds).toSeq
    promising.flatMap(again)
  }

  /**
   * Part by part, then by moves, then with the order of leaves that this has led to, as long as that
   * helps: the neighbourhoods of all three are different ones.
   */
  private def improved(tree: JoinTree, joins: Double): JoinTree = {
    val parts = (refinedParts * effort / density).toInt
    def refined(tree: JoinTree): JoinTree =
      new Idp2Refinement(graph, trees, refinedInputs, parts, expired(refinedShare)).refined(tree)
    def reordered(tree: JoinTree): JoinTree =
      LinDp
        .best(tree.leaves.map(relations).toIndexedSeq, graph, trees, expired(refinedShare))
        .filter(_.seconds < tree.seconds)
        .getOrElse(tree)
    def rearranged(tree: JoinTree): JoinTree =
      new SubtreeMoves(
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
    if (isFull) again(first, (improvingRounds * effort).toInt) else first
  }

  /** Of many relations, most trees are looked at roughly. */
  private lazy val searched: JoinTrees = if (isFull) trees else rough

  private lazy val rough: RoughTrees = new RoughTrees(relations, graph, trees, inFull = isFull)

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

  /** Where nearly all orders are possible, or keys are not independent, rough costs mislead most. */
  private lazy val isThorough: Boolean =
    isSmallest && (density > dense || trees.haveCommonKeys)

  private def linearWork: Double =
    math.pow(graph.size.toDouble, 3) / 6 * math.max(1.0, linkCount / (2.0 * graph.size))

  private def linearized: Seq[IndexedSeq[Int]] =
    IkkbzLinearization.of(
      graph.size,
      relations(_).estimate.rows.value,
      links,
      most = if (isSmallest) linearOrders else if (isFull) linearOrders / 2 else 1
    )

  /** All neighbours; of very many, those on the most selective spanning tree. */
  private def tried: IndexedSeq[RelationSet] =
    if (linkCount <= mostTried * graph.size) GreedyOperatorOrdering.neighbours(graph)
    else {
      val near = IkkbzLinearization
        .spanning(graph.size, links)
        .flatMap(link => Seq(link.one -> link.other, link.other -> link.one))
        .groupMap(_._1)(_._2)
      (0 until graph.size).map { i =>
        val others = graph.edgesAt(i).filter(_.kind != JoinKind.Inner).map(_.relations)
        RelationSet.union(RelationSet.of(near.getOrElse(i, Nil)) +: others)
      }
    }
}

object JoinEnumerator {

  // Of the time, up to which each search may go on. The rest is that of the greedy one.
  private val exactShare = 0.5
  private val linearShare = 0.8
  private val refinedShare = 0.9
  private val thoroughShare = 0.3

  // So few are costed sooner than a bound on their costs is found.
  private val fewPairs = 50

  // Relations for whose searches each tree is costed in full, whatever the number of joins.
  private val mostSmallest = 18
  private val dense = 3.0
  // The same where joins are few.
  private val mostFull = 24
  // Of relations times joins: cliques of twelve, and anything that is sparse.
  private val mostFullWork = 900
  private val mostLinear = 100
  private val mostRough = 300000L
  // The same where each pair is checked for rules.
  private val mostComplex = 40000L
  private val mostGuided = 1500L
  private val guidedRounds = 2
  // Of relations that are more than the smallest, since most of what is listed then turns out too much.
  private val fewerBeyond = 3
  // Of pairs of intervals, all orders together: three orders of a hundred relations in a chain.
  private val mostLinearWork = 510000.0
  private val linearOrders = 4
  private val refinedInputs = 6
  private val refinedParts = 24
  private val improvingRounds = 4
  private val lessEffort = 0.5
  private val joinsForMoves = 1500.0
  private val mostJoinsForMoves = 9000.0
  // Relations for which the greedy order is costed in full, whatever the number of joins.
  private val mostGreedy = 30
  // Joins a relation, on average.
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
