package io.selinger.ordering.sharing

import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{JoinGraph, RelationSet}
import io.selinger.ordering.tree.{JoinTree, JoinTreeCost}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import scala.annotation.tailrec
import scala.collection.mutable

/**
 * Orders of several regions of one query, chosen together. What is alike in two of them, as in the
 * parts of a query that name the same common table expression, Spark computes once, if there is an
 * exchange above it; the cheapest order of each region may destroy that, and another may create it.
 *
 * Candidates for a region are the order written, those of regions that join alike, and its own and
 * these with the relations in which the two regions differ at a later place (Postponement). Starting
 * from the best order of each region, the change of one region, or of all that have an order to it,
 * that makes the whole cheapest is made, until none makes it cheaper. No region changes to an order
 * that costs more than the one written at the upper bounds of rows: a gain that only estimates promise
 * must not cost a multiple where they are wrong.
 */
private[selinger] final class SharedOrders(
    regions: IndexedSeq[SharedOrders.Region],
    expired: () => Boolean
) {
  import SharedOrders._

  private var cut = false

  private def isExpired: Boolean = {
    cut ||= expired()
    cut
  }

  /** Whether the time was up before all candidates had been compared. */
  def isPartial: Boolean = cut

  // Relations, columns, conditions and subtrees are compared between regions by what they are numbered.
  private val numbers = mutable.HashMap.empty[Any, Int]

  /** The same for what is equal. */
  private def number(of: Any): Int = numbers.getOrElseUpdate(of, numbers.size)

  private lazy val named: IndexedSeq[Named] = regions.map(new Named(_))

  /**
   * The best orders found until the time was up, if the whole is cheaper with them. What an order saves
   * by itself is not in question here.
   *
   * @param minGain share of the whole that computing things once must save
   */
  def better(minGain: Double): Option[Better] =
    if (sharing.size < 2) None
    else {
      val best = regions.indices.map(i => named(i).candidate(regions(i).best))
      val found = improved(best, regions.indices.map(candidates))
      val least = total(best) * minGain
      def gains(now: Double, before: Double) = before - now > least
      Option.when(gains(total(found), total(best)) && gains(saved(best), saved(found))) {
        val changed = regions.indices.filter(i => found(i) ne best(i)).map { i =>
          i -> Option.unless(found(i).tree eq regions(i).written)(found(i).tree)
        }
        Better(changed.toMap, total(best), total(found))
      }
    }

  /** Regions with a relation that others have too; of very many, some. */
  private lazy val sharing: Seq[Int] =
    if (regions.size < 2) Nil
    else {
      val times = named.flatMap(_.relations).groupMapReduce(identity)(_ => 1)(_ + _)
      regions.indices.filter(named(_).relations.exists(times(_) > 1)).take(mostRegions)
    }

  private def candidates(i: Int): Seq[Candidate] = if (!sharing.contains(i)) Nil
  else {
    val region = regions(i)
    val alike = sharing.filter(j => j != i && regions(j).isLike(region))
    val others = alike
      .map(regions)
      .filterNot(other => other.best eq other.written)
      .map(_.best)
      .distinctBy(orderOf)
      .take(mostOrders)
      .map(region.trees.recosted)
    val own = orderOf(region.best)
    val orders = (others ++ postponed(i, alike, region.best +: others))
      .filterNot(_ => isExpired)
      .distinctBy(orderOf)
      .filterNot(orderOf(_) == own)
    (region.written +: orders).filterNot(_ => isExpired).map(named(i).candidate)
  }

  /** Orders of a region in which relations that it has instead of those of another come later. */
  private def postponed(
      i: Int,
      alike: Seq[Int],
      orders: Seq[JoinTree]
  ): Seq[JoinTree] = if (!Mechanism.Postponement.isOn) Nil
  else {
    val region = regions(i)
    val differing = alike.map { j =>
      RelationSet.of(region.graph.relations.indices.filter { relation =>
        named(i).relations(relation) != named(j).relations(relation)
      })
    }
    for {
      later <- differing.distinct.take(mostDifferences)
      if later.nonEmpty && later.size <= region.graph.relations.size / 2
      order <- orders
      other <- new Postponement(region.graph.shape, region.trees, later)
        .orders(order)
        .takeWhile(_ => !isExpired)
    } yield other
  }

  private def improved(
      best: IndexedSeq[Candidate],
      candidates: IndexedSeq[Seq[Candidate]]
  ): IndexedSeq[Candidate] = {
    val byOrder = candidates.map(_.reverseIterator.map(c => c.order -> c).toMap)
    val orders = candidates.flatten.map(_.order).distinct
    @tailrec
    def step(now: IndexedSeq[Candidate]): IndexedSeq[Candidate] = {
      val one = for {
        i <- now.indices.iterator
        candidate <- candidates(i)
        if candidate ne now(i)
      } yield now.updated(i, candidate)
      // Two regions that could be alike in another order gain nothing if one of them changes.
      val several =
        orders.iterator.map(order => now.indices.map(i => byOrder(i).getOrElse(order, now(i))))
      val before = total(now)
      val cheaper = (one ++ several)
        .takeWhile(_ => !isExpired)
        .map(changed => changed -> total(changed))
        .filter(_._2 < before)
        .toSeq
        .sortBy(_._2)
        .map(_._1)
      cheaper.find(changed =>
        now.indices.forall(i => (changed(i) eq now(i)) || isNoWorse(i, changed(i)))
      ) match {
        case Some(changed) => step(changed)
        case None => now
      }
    }
    step(best)
  }

  private val noWorse = mutable.HashMap.empty[(Int, Seq[RelationSet]), Boolean]

  /** Than the order written, at the upper bounds of rows. */
  private def isNoWorse(i: Int, candidate: Candidate): Boolean = {
    val region = regions(i)
    (candidate.tree eq region.written) || (candidate.tree eq region.best) ||
    noWorse.getOrElseUpdate(
      i -> candidate.order,
      region.trees.isNoWorse(candidate.tree, region.written)
    )
  }

  /** Seconds of all regions in their best orders, for the ablation; exchanges that are alike run once. */
  def secondsOfBest: Double = total(regions.indices.map(i => named(i).candidate(regions(i).best)))

  /** Seconds of all regions, of which exchanges that are alike run once. */
  private def total(orders: IndexedSeq[Candidate]): Double =
    orders.map(_.tree.seconds).sum - saved(orders)

  private def saved(orders: IndexedSeq[Candidate]): Double = {
    val seen = mutable.HashSet.empty[Int]
    def again(exchanges: Seq[Exchange]): Double =
      exchanges.map(e => if (seen.add(e.signature)) again(e.below) else e.seconds).sum
    orders.map(order => again(order.exchanges)).sum
  }

  /** A region in terms that are the same in every region: numbers, instead of ids of columns. */
  private final class Named(region: Region) {
    private val graph = region.graph

    // Of relations that are alike, the first ones, the second ones …
    val relations: IndexedSeq[Int] = {
      val before = mutable.HashMap.empty[LogicalPlan, Int].withDefaultValue(0)
      graph.relations.map { relation =>
        val canonical = relation.canonicalized
        before.update(canonical, before(canonical) + 1)
        number((canonical, before(canonical)))
      }
    }

    private val columns: Map[ExprId, Int] = graph.relations.indices.flatMap { i =>
      graph.relations(i).output.zipWithIndex.map { case (column, position) =>
        column.exprId -> number((relations(i), position))
      }
    }.toMap

    private val required = mutable.HashMap.empty[RelationSet, Set[Int]]

    private def requiredOf(set: RelationSet): Set[Int] =
      required.getOrElseUpdate(
        set,
        graph.requiredOf(set).flatMap(column => columns.get(column.exprId)).toSet
      )

    private def named(expression: Expression): Expression = expression.transform {
      case column: Attribute if columns.contains(column.exprId) =>
        BoundReference(columns(column.exprId), column.dataType, nullable = true)
    }.canonicalized

    def candidate(tree: JoinTree): Candidate = {
      // A region that stays as written has its own sides and projections.
      val built = !(tree eq region.written)
      val subtrees = mutable.HashMap.empty[RelationSet, Int]
      def visit(tree: JoinTree): Seq[Exchange] = tree match {
        case relation: JoinTree.Relation =>
          subtrees.update(relation.set, relations(relation.index))
          Nil
        case join: JoinTree.Joined =>
          val sides = Seq(join.left, join.right)
          val below = sides.map(side => side.set -> visit(side)).toMap
          subtrees.update(join.set, number((built, alike(join, subtrees))))
          val moved = region.trees.exchanges(join).map(e => e.input.set -> e).toMap
          sides.flatMap { side =>
            moved.get(side.set) match {
              case Some(exchange) =>
                val keys = exchange.keys.map(named)
                val signature =
                  (subtrees(side.set), requiredOf(side.set), keys, exchange.isBroadcast)
                val seconds = side.seconds + exchange.seconds
                Seq(Exchange(number(signature), seconds, below(side.set)))
              case None => below(side.set)
            }
          }
      }
      Candidate(tree, visit(tree))
    }

    /** The sides of what commutes in one order, whichever they have. */
    private def alike(join: JoinTree.Joined, subtrees: collection.Map[RelationSet, Int]): Any = {
      val sides = Seq(subtrees(join.left.set), subtrees(join.right.set))
      val condition = graph.conditionBetween(join.left.set, join.right.set, join.how)
      (
        join.how.kind,
        if (join.how.kind.commutes) sides.sorted else sides,
        condition.map(named)
      )
    }
  }
}

private[selinger] object SharedOrders {

  // Limits of work, as each step compares all orders of all regions: of TPC-DS (`python -m
  // benchmarks.ablation`, rows sharedOrders and postponement) no query comes near them.
  private val mostRegions = 64
  // Orders that a region takes from others.
  private val mostOrders = 3
  // Sets of relations in which a region differs from others.
  private val mostDifferences = 3

  /**
   * @param orders those that change, by region; none for the order written
   * @param alone seconds of all regions, each in the order that is best for it
   * @param together the same in these orders
   */
  final case class Better(orders: Map[Int, Option[JoinTree]], alone: Double, together: Double)

  /** @param best its order if it were alone */
  final case class Region(
      graph: JoinGraph,
      trees: JoinTreeCost,
      written: JoinTree,
      best: JoinTree
  ) {

    /** Whether every order of the one is an order of the other. */
    def isLike(other: Region): Boolean =
      graph.shape.adjacent == other.graph.shape.adjacent &&
        graph.shape.edges == other.graph.shape.edges
  }

  private final case class Candidate(tree: JoinTree, exchanges: Seq[Exchange]) {
    val order: Seq[RelationSet] = orderOf(tree)
  }

  private def orderOf(tree: JoinTree): Seq[RelationSet] = tree.joins.map(_.set)

  /**
   * @param signature the same for exchanges of the same rows
   * @param seconds that it takes with all that is below
   * @param below exchanges within
   */
  private final case class Exchange(signature: Int, seconds: Double, below: Seq[Exchange])
}
