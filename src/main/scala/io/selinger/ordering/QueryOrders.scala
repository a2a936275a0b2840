package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core.{PlanningPass, Reason}
import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{AntiJoins, JoinRegion, SharedPlans, SubqueryJoins}
import io.selinger.ordering.search.JoinEnumerator
import io.selinger.ordering.search.JoinEnumerator.Found
import io.selinger.ordering.sharing.SharedOrders
import io.selinger.ordering.tree.JoinTree
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import scala.collection.mutable

/**
 * The orders of all regions of one query: each by itself, then together where regions share joins.
 *
 * @param sharingMs to compare orders of several regions in any case, even if the budget is used up
 */
private[ordering] final class QueryOrders(session: SparkSession, sharingMs: Double) {
  import QueryOrders._

  /** The plan with every region in the order that was chosen for it. */
  def ordered(plan: LogicalPlan): LogicalPlan = {
    val keepsForm =
      OrderDecisions.advising || SQLConf.get.joinReorderEnabled || plan.isStreaming
    val joined = if (keepsForm) plan else SubqueryJoins.rewritten(plan)
    val shared = SharedPlans.of(joined)
    val alone = new Visit(shared, IndexedSeq.empty, None)
    val visited = alone(joined)
    val result = alone.sharing match {
      case NotShared(isPartial) =>
        if (isPartial) OrderDecisions.noteLimit(visited)
        visited
      // What is chosen for a region may change what its surroundings look like: all are built anew.
      case together: Together => new Visit(shared, alone.found, Some(together))(joined)
    }
    if (joined eq plan) result else AntiJoins.restored(result)
  }

  /**
   * One walk through a query, which comes to its regions in the same order each time.
   *
   * @param before by region, what an earlier walk has found
   * @param together what was chosen for several regions together
   */
  private final class Visit(
      shared: SharedPlans,
      before: IndexedSeq[Option[Found]],
      together: Option[Together]
  ) {
    private val visited = mutable.ArrayBuffer.empty[Option[Visited]]

    private lazy val begunMs = PlanningPass.current.usedMs

    /** By region, the best order by itself. */
    def found: IndexedSeq[Option[Found]] = visited.toIndexedSeq.map(_.flatMap(_.found))

    def apply(plan: LogicalPlan): LogicalPlan = JoinRegion.at(plan, shared) match {
      case Some(region) if region.relations.size > 1 =>
        val relations = region.relations.map(apply)
        val renewed = replaced(region, relations)
        if (relations.size > 2) reordered(renewed)
        else {
          renewed.barriers.headOption.foreach(OrderDecisions.declined(renewed, _))
          renewed.root
        }
      case _ => plan.mapChildren(apply)
    }

    private def reordered(region: JoinRegion): LogicalPlan = {
      def declined(reason: Reason) = {
        OrderDecisions.declined(region, reason)
        (region.root, None)
      }
      val number = visited.size
      val (plan, order) = OrderProblem.of(session, region) match {
        case Left(reason) => declined(reason)
        case Right(problem) =>
          val found = before
            .lift(number)
            .flatten
            .map(f => f.copy(tree = problem.trees.recosted(f.tree)))
            .orElse(searched(problem, searchTime()))
          val chosen = together match {
            case Some(together) if together.better.orders.contains(number) =>
              Some(chosenTogether(problem, found, together, together.better.orders(number)))
            case _ => found.map(chosenAlone(problem, _))
          }
          chosen match {
            case Some(Chosen(plan, tree)) =>
              val order =
                SharedOrders.Region(problem.graph, problem.trees, problem.written, tree)
              (plan, Some(Visited(order, found)))
            case None => declined(Reason.BudgetExceeded)
          }
      }
      visited += order
      plan
    }

    /** Share of the time of a search that begins now that is used up. */
    private def searchTime(): () => Double = {
      val ofAll = begunMs + leastSearchesMs - PlanningPass.current.usedMs
      usedShare(math.max(1.0, math.min(leastSearchMs, ofAll)))
    }

    /** Orders of the same regions that are better together than the best of each, if there are any. */
    def sharing: Sharing =
      if (
        OrderDecisions.advising || !SQLConf.get.exchangeReuseEnabled ||
        !Mechanism.SharedOrders.isOn
      ) NotShared(isPartial = false)
      else {
        val (regions, numbers) = visited.toIndexedSeq.zipWithIndex.collect {
          case (Some(region), number) => (region.order, number)
        }.unzip
        val used = usedShare(sharingMs)
        val sharing = new SharedOrders(regions, () => used() > 1.0)
        sharing.better(SelingerConf.ORDER_MIN_GAIN.value * sharedGainShare) match {
          case None => NotShared(sharing.isPartial)
          case Some(better) =>
            val orders = better.orders.map { case (region, tree) => numbers(region) -> tree }
            Together(better.copy(orders = orders), sharing.isPartial)
        }
      }
  }

  /** The region over relations that were rewritten themselves. */
  private def replaced(region: JoinRegion, relations: Seq[LogicalPlan]): JoinRegion = {
    val changed = region.relations.zip(relations).filterNot { case (a, b) => a eq b }
    if (changed.isEmpty) region
    else {
      val root = region.root.transformDown {
        case node if changed.exists(_._1 eq node) => changed.find(_._1 eq node).map(_._2).get
      }
      region.copy(root = root, relations = relations)
    }
  }

  private def searched(problem: OrderProblem, used: () => Double): Option[Found] =
    new JoinEnumerator(
      problem.graph.shape,
      problem.trees,
      Some(problem.written),
      SelingerConf.ORDER_MAX_PAIRS.value,
      used
    ).best()

  /**
   * Share of the time from now on that is used up.
   *
   * @param least ms that there are in any case. A first look at files may have used the budget up, and
   *   would be in vain without an order
   */
  private def usedShare(least: Double): () => Double = {
    val pass = PlanningPass.current
    val begun = pass.usedMs
    val allowed = math.max(least, SelingerConf.PLANNING_BUDGET_MS.value - begun)
    () => (pass.usedMs - begun) / allowed
  }

  private def chosenAlone(problem: OrderProblem, found: Found): Chosen = {
    import problem.{margin, region, trees, written}
    def saves(share: Double) = found.tree.seconds < written.seconds * (1.0 - share)
    def isRobust = Mechanism.RobustGain.isOn && saves(margin * robustShare) &&
      trees.isNoWorse(found.tree, written)
    lazy val better = problem.planOf(found.tree)
    val gains = (saves(margin) || isRobust) && !OrderProblem.isForbidden(better)
    val result = if (gains) better else region.root
    OrderDecisions.alone(problem, found, gains, result)
    Chosen(result, if (gains) found.tree else written)
  }

  /** @param order none for the order written */
  private def chosenTogether(
      problem: OrderProblem,
      found: Option[Found],
      together: Together,
      order: Option[JoinTree]
  ): Chosen = {
    val other = order.map(problem.trees.recosted)
    val plan = other.map(problem.planOf).filterNot(OrderProblem.isForbidden)
    val tree = other.filter(_ => plan.isDefined).getOrElse(problem.written)
    val result = plan.getOrElse(problem.region.root)
    OrderDecisions.together(
      problem,
      found,
      together.better,
      together.isPartial,
      tree,
      changes = plan.isDefined,
      result
    )
    Chosen(result, tree)
  }
}

private[ordering] object QueryOrders {

  // ms that searches have in any case, for one region and for all of a query: several times what
  // `make bench-planning` shows for the most costly forms, for machines that are slower or busy.
  private val leastSearchMs = 100.0
  private val leastSearchesMs = 1000.0

  /** The same to compare orders of all regions together: what they share are scans and shuffles. */
  val leastSharingMs = 300.0

  // Of the margin, what an order must save that is no worse at the upper bounds of rows; the row
  // robustGain of `python -m benchmarks.ablation` shows what comes of it.
  private val robustShare = 0.25

  // Of the least gain of one order, what orders chosen together must save of the whole; the row
  // sharedOrders of `python -m benchmarks.ablation` shows what comes of it.
  private val sharedGainShare = 0.5

  /** A region as it is now, and the order that it is in. */
  private final case class Chosen(plan: LogicalPlan, tree: JoinTree)

  /** @param found the best order of the region by itself */
  private final case class Visited(order: SharedOrders.Region, found: Option[Found])

  /** Whether orders of several regions are better together than the best of each. */
  private sealed trait Sharing

  /** @param isPartial whether the time was up before all had been compared */
  private final case class NotShared(isPartial: Boolean) extends Sharing

  /** @param better its orders are by number of the region */
  private final case class Together(better: SharedOrders.Better, isPartial: Boolean)
      extends Sharing
}
