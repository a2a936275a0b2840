package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedRule,
  Hook,
  Mode,
  Origin,
  Outcome,
  Phase,
  PlanningPass,
  Precondition,
  RaisedErrors,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinCost, JoinSettings}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.estimate.predicates.Selectivity
import io.selinger.ordering.graph.{AntiJoins, JoinGraph, JoinRegion, SharedPlans}
import io.selinger.ordering.search.JoinEnumerator
import io.selinger.ordering.search.JoinEnumerator.Found
import io.selinger.ordering.sharing.SharedOrders
import io.selinger.ordering.tree.{JoinTree, JoinTreeCost, JoinTreePlan, OperatorLimits}
import io.selinger.stats.footers.ReadFooterStatistics
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import scala.collection.mutable

/**
 * Joins in the order that costs least, where Spark joins in the order in which a query names its
 * tables: selective joins come before those that multiply rows.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                            else STREAMING_PLAN
 *   2. Spark's own join reordering is not switched on      else SPARK_REORDERS
 *   3. no column of a relation is computed by what can
 *      raise errors                                        else ERRORS_DEPEND_ON_PLAN
 *   4. no product of two sides, where the user wants
 *      Spark to refuse these                               else CROSS_PRODUCT
 *   5. the rows of every relation can be estimated         else NO_STATISTICS
 *   6. conditions connect all relations                    else CROSS_PRODUCT
 * and where the order found costs less than the order written by more than estimates are worth, or by
 * a quarter of that where it costs no more even if every relation has as many rows as is feared, else
 * ORDER_CHEAP_ENOUGH; ORDER_SHARED where it serves several regions together. Regions of two relations
 * have no order and are passed over.
 *
 * {{{
 *   SELECT … FROM sales JOIN inventory ON item JOIN dates ON sold_date WHERE dates.year = 2000
 *   Before:  Join (sold_date)                   After:  Join (item)
 *            :- Join (item)                             :- Join (sold_date)
 *            :  :- sales                                :  :- sales
 *            :  +- inventory                            :  +- Filter (year) +- dates
 *            +- Filter (year) +- dates                  +- inventory
 * }}}
 *
 * Correct because: joins of every type change places only as the conflict detector allows (see
 * ConflictDetector), which knows which of them keep, fill or drop rows, and whether a condition is
 * ever true of nulls; a conjunct of an inner join may be evaluated as soon as its columns are there.
 * Only conditions that cannot raise errors and always give the same answer take part
 * (RaisedErrors.isSafe). Hinted joins, NOT IN over nullable columns, conditions that may raise, filters
 * of what an outer join returns, and columns computed below one that fills them with nulls bound the
 * region (see JoinRegion). Equalities of inner joins are transitive where nothing must come before
 * them, so each equivalence class gives a join one key, and null keys match nothing under any of them.
 * LEFT JOIN with WHERE key IS NULL moves as the anti join that it is (AntiJoins).
 * IN and EXISTS become joins by Spark's own rule, earlier than it would apply it; what several of them
 * ask for alike stays as it is, so that Spark goes on to compute it once (SharedPlans).
 * What several regions join alike Spark computes once: their orders are compared together, too
 * (SharedOrders).
 * Not done: cross products between relations that conditions connect; an inner join's conjunct as a
 * filter above an outer join.
 * Cost: planning O(pairs) up to ordering.maxPairs, roughly so up to 60 times as many, then O(n³) up to
 * a hundred relations, greedy beyond; where orders of several regions are changed to share, all are
 * built a second time.
 * May lose when estimates mislead: the gain must exceed a margin that grows with doubt.
 * Runs in injectPreCBORule: once, after predicates have been pushed down and before Spark prunes
 * columns of scans. A second run finds the order written to be the cheapest.
 * Conf: spark.selinger.reorderJoins.enabled.  References: see JoinEnumerator; Selinger et al., 1979.
 *
 * @param sharingMs to compare orders of several regions in any case, even if the budget is used up
 */
final class ReorderJoins(
    session: SparkSession,
    sharingMs: Double = ReorderJoins.leastSharingMs
) extends GuardedRule(ReorderJoins, SelingerConf.switches) {
  import ReorderJoins._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = {
    val joined = asJoins(plan)
    val shared = SharedPlans.of(joined)
    val orders = new Orders(IndexedSeq.empty, None)
    val alone = visit(joined, shared, orders)
    // What is chosen for a region may change what its surroundings look like: all are built anew.
    val visited = orders.together match {
      case (Some(together), _) => visit(joined, shared, together)
      case (None, isPartial) =>
        if (isPartial) noteLimit(alone)
        alone
    }
    if (joined eq plan) visited else AntiJoins.restored(visited)
  }

  /**
   * Orders of the regions of one query, which come in the same order each time it is visited.
   *
   * @param before what the search has found for each
   * @param shared orders that are better together with those of the others
   */
  private final class Orders(before: IndexedSeq[Option[Found]], shared: Option[Shared]) {
    private val visited = mutable.ArrayBuffer.empty[Option[(SharedOrders.Region, Option[Found])]]

    def known: Option[Found] = before.lift(visited.size).flatten

    /** None where the region keeps its own order. */
    def decided: Option[Shared.Order] = shared.flatMap(_.of(visited.size))

    def add(region: Option[(SharedOrders.Region, Option[Found])]): Unit = visited += region

    private lazy val begunMs = PlanningPass.current.usedMs

    /** Share of the time of a search that begins now that is used up. */
    def searchTime(): () => Double = {
      val ofAll = begunMs + leastSearchesMs - PlanningPass.current.usedMs
      usedShare(math.max(1.0, math.min(leastSearchMs, ofAll)))
    }

    /**
     * The same regions in orders that are better together than the best of each, if there are any, and
     * whether the time was up before all had been compared.
     */
    def together: (Option[Orders], Boolean) =
      if (advising || !SQLConf.get.exchangeReuseEnabled) (None, false)
      else {
        val ordered = visited.toIndexedSeq.zipWithIndex.collect { case (Some((r, _)), i) => (r, i) }
        val used = usedShare(sharingMs)
        val sharing = new SharedOrders(ordered.map(_._1), () => used() > 1.0)
        val better = sharing.better(SelingerConf.ORDER_MIN_GAIN.value / 2).map { better =>
          val orders = better.orders.map { case (region, tree) => ordered(region)._2 -> tree }
          new Orders(
            visited.toIndexedSeq.map(_.flatMap(_._2)),
            Some(Shared(better.copy(orders = orders), sharing.isPartial))
          )
        }
        (better, sharing.isPartial)
      }
  }

  /** Says at all orders of a plan that they might be others, had there been time to compare them. */
  private def noteLimit(plan: LogicalPlan): Unit = plan.foreach {
    case join: Join =>
      Decision.of(join).filter(d => d.rule == info.id && d.chosen.isDefined).foreach { decision =>
        Decision.record(join, decision.copy(detail = joined(decision.detail, Some(partly))))
      }
    case _ => ()
  }

  /**
   * The plan with IN and EXISTS as joins, and with outer joins that only find rows without a partner as
   * anti joins, where these come to stand among others. IN and EXISTS become what Spark itself will
   * make of them, by the same rule, once it has left this batch.
   */
  private def asJoins(plan: LogicalPlan): LogicalPlan =
    if (advising || SQLConf.get.joinReorderEnabled || plan.isStreaming) plan
    else {
      val asked = plan.containsAnyPattern(TreePattern.IN_SUBQUERY, TreePattern.EXISTS_SUBQUERY)
      val rewritten = AntiJoins.of(if (asked) RewritePredicateSubquery(plan) else plan)
      def takePart = rewritten.exists { node =>
        JoinRegion.at(node).exists { region =>
          region.relations.size > 2 && region.written.joins.exists(_.joinType != Inner)
        }
      }
      if ((rewritten ne plan) && takePart) rewritten else plan
    }

  private def visit(plan: LogicalPlan, shared: SharedPlans, orders: Orders): LogicalPlan =
    JoinRegion.at(plan, shared) match {
      case Some(region) if region.relations.size > 1 =>
        val relations = region.relations.map(visit(_, shared, orders))
        val renewed = replaced(region, relations)
        if (relations.size > 2) reordered(renewed, orders)
        else {
          renewed.barriers.headOption.foreach(declined(renewed, _))
          renewed.root
        }
      case _ => plan.mapChildren(visit(_, shared, orders))
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

  private def reordered(region: JoinRegion, orders: Orders): LogicalPlan = {
    val (plan, order) = problem(session, region) match {
      case Left(reason) => (declined(region, reason), None)
      case Right(problem) =>
        val found = orders.known
          .map(f => f.copy(tree = problem.trees.recosted(f.tree)))
          .orElse(searched(problem, orders.searchTime()))
        val result = orders.decided match {
          case Some(order) => Some(together(problem, order, found.flatMap(detailOf(_, region))))
          case None => found.map(chosen(problem, _))
        }
        result match {
          case Some((plan, tree)) =>
            val order = SharedOrders.Region(problem.graph, problem.trees, problem.written, tree)
            (plan, Some((order, found)))
          case None => (declined(region, Reason.BudgetExceeded), None)
        }
    }
    orders.add(order)
    plan
  }

  private def searched(problem: Problem, used: () => Double): Option[Found] =
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

  /** The region in a better order, or as it is, and that order. */
  private def chosen(problem: Problem, found: Found): (LogicalPlan, JoinTree) = {
    import problem._
    val margin = marginOf(
      SelingerConf.ORDER_MIN_GAIN.value,
      trees.estimates.map(_.rows.origin),
      joins = region.relations.size - 1
    )
    def saves(share: Double) = found.tree.seconds < written.seconds * (1.0 - share)
    lazy val better = JoinTreePlan.planOf(found.tree, graph, region)
    val gains =
      (saves(margin) || saves(margin * robustShare) && trees.isNoWorse(found.tree, written)) &&
        !isForbidden(better)
    val result = if (gains) better else region.root
    record(
      problem,
      found.tree,
      gains,
      if (gains) Reason.OrderCheaper else Reason.OrderCheapEnough,
      detailOf(found, region),
      if (advising) region.root else result,
      costs = Seq(
        Evidence("cost of the best order", found.tree.seconds, "s", Origin.Derived),
        Evidence("rows joined at best", rowsJoined(found.tree), "rows", Origin.Derived)
      )
    )
    (result, if (gains) found.tree else written)
  }

  /** The region in an order that was chosen together with those of other regions, or as written. */
  private def together(
      problem: Problem,
      order: Shared.Order,
      detail: Option[String]
  ): (LogicalPlan, JoinTree) = {
    import problem._
    val other = order.tree.map(trees.recosted)
    val plan = other.map(JoinTreePlan.planOf(_, graph, region)).filterNot(isForbidden)
    val tree = other.filter(_ => plan.isDefined).getOrElse(written)
    val result = plan.getOrElse(region.root)
    record(
      problem,
      tree,
      plan.isDefined,
      Reason.OrderShared,
      joined(detail, Option.when(order.shared.isPartial)(partly)),
      result,
      costs = Seq(
        Evidence("cost of this order by itself", tree.seconds, "s", Origin.Derived),
        Evidence("rows joined in this order", rowsJoined(tree), "rows", Origin.Derived),
        Evidence("cost of all places at their own best", order.shared.alone, "s", Origin.Derived),
        Evidence("cost of all places as chosen", order.shared.together, "s", Origin.Derived)
      )
    )
    (result, tree)
  }

  private def detailOf(found: Found, region: JoinRegion): Option[String] = {
    val limited = found.limit.map(limit => s"${found.method.label}: ${limit.setting} was reached")
    val bounded = Option.when(region.barriers.nonEmpty)(
      s"joins below stay where they are: ${region.barriers.map(_.code).mkString(", ")}"
    )
    joined(limited, bounded)
  }

  private def joined(details: Option[String]*): Option[String] =
    details.flatten.reduceOption((a, b) => s"$a; $b")

  private def advising: Boolean = SelingerConf.switches.mode == Mode.Advise

  private def record(
      problem: Problem,
      tree: JoinTree,
      changes: Boolean,
      reason: Reason,
      detail: Option[String],
      plan: LogicalPlan,
      costs: Seq[Evidence]
  ): Unit = {
    import problem._
    val names = JoinTreePlan.namesOf(graph.relations)
    def text(tree: JoinTree) = JoinTree.text(tree, names)
    val outcome =
      if (!changes) Outcome.Same else if (advising) Outcome.Advised else Outcome.Changed
    val influential = trees.influential(written, tree, most = 3)
    decide(
      region,
      plan,
      outcome,
      reason,
      chosen = Some(text(if (changes) tree else written)),
      stock = Some(text(written)),
      evidence = Seq(
        Evidence("cost of the order written", written.seconds, "s", Origin.Derived),
        Evidence("rows joined as written", rowsJoined(written), "rows", Origin.Derived)
      ) ++ costs ++ influential.map { i =>
        val rows = trees.estimates(i).rows
        Evidence(s"${names(i)} rows", rows.value, "rows", rows.origin)
      },
      setting = Some(SelingerConf.ORDER_MIN_GAIN.key),
      detail = detail
    )
  }

  private def declined(region: JoinRegion, reason: Reason): LogicalPlan = {
    val setting = reason match {
      case Reason.SparkReorders => Some(SQLConf.JOIN_REORDER_ENABLED.key)
      case Reason.NoStatistics =>
        val footers = ReadFooterStatistics
        Option.unless(SelingerConf.switches.enabled(footers))(footers.switch)
      case Reason.BudgetExceeded => Some(SelingerConf.PLANNING_BUDGET_MS.key)
      // Nothing but another query would change it.
      case _ => None
    }
    decide(region, region.root, Outcome.Declined, reason, setting = setting)
    region.root
  }

  private def decide(
      region: JoinRegion,
      plan: LogicalPlan,
      outcome: Outcome,
      reason: Reason,
      chosen: Option[String] = None,
      stock: Option[String] = None,
      evidence: Seq[Evidence] = Nil,
      setting: Option[String],
      detail: Option[String] = None
  ): Unit =
    plan.find(_.isInstanceOf[Join]).foreach { join =>
      val decision =
        Decision(
          rule = info.id,
          node = s"Order of ${region.relations.size} joined relations",
          key = s"${region.root.output.map(_.exprId.id).sorted.mkString(",")} " +
            region.relations.map(
              _.output.headOption.map(_.exprId.id).mkString
            ).sorted.mkString(","),
          outcome = outcome,
          reason = reason,
          chosen = chosen,
          stock = stock,
          evidence = evidence,
          setting = setting,
          detail = detail
        )
      // Subqueries come here by themselves, and again within the query.
      val before = Decision.of(join).find(d => d.rule == decision.rule && d.key == decision.key)
      if (outcome != Outcome.Same || !before.exists(_.outcome == Outcome.Changed)) {
        Decision.record(join, decision)
      }
    }
}

object ReorderJoins
    extends RuleDescription(
      "reorderJoins",
      RuleKind.Logical,
      "Puts joins of every type into the order that costs least."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Predicates have been pushed down by then, and Spark still prunes the scans of the new order."
    )(new ReorderJoins(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.SparkReorders,
    Reason.MayRaise,
    Reason.CrossProduct,
    Reason.NoStatistics,
    Reason.JoinFixed,
    Reason.HintObeyed,
    Reason.NullAwareAntiJoin,
    Reason.SharedSubplan,
    Reason.OrderCheaper,
    Reason.OrderCheapEnough,
    Reason.OrderShared
  )

  override def example: String =
    "SELECT * FROM sales JOIN inventory ON sales.item = inventory.item " +
      "JOIN dates ON sales.sold = dates.day WHERE dates.year = 2000"

  // For one region, and for all of a query.
  private val leastSearchMs = 100.0
  private val leastSearchesMs = 1000.0
  // Of all regions together: what they share are whole scans and shuffles.
  private[ordering] val leastSharingMs = 300.0
  private val partly =
    s"orders of several places were compared in part: ${SelingerConf.PLANNING_BUDGET_MS.key} was reached"

  /** Orders that were chosen together, by number of the region. */
  private final case class Shared(better: SharedOrders.Better, isPartial: Boolean) {
    def of(region: Int): Option[Shared.Order] =
      better.orders.get(region).map(Shared.Order(_, this))
    def alone: Double = better.alone
    def together: Double = better.together
  }

  private object Shared {

    /** @param tree none for the order written */
    final case class Order(tree: Option[JoinTree], shared: Shared)
  }

  private val doubtAJoin = 0.02
  private val mostMargin = 0.9

  // Of the margin, where more rows than expected would make the order no worse than that written.
  private val robustShare = 0.25

  private val preconditions: Seq[Precondition[JoinRegion]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.root.isStreaming),
    Precondition(Reason.SparkReorders)(_ => !SQLConf.get.joinReorderEnabled),
    Precondition(Reason.MayRaise)(!_.relations.exists(RaisedErrors.areLate)),
    // Spark tells products that the query asks for from those that it is to refuse by their type.
    Precondition(Reason.CrossProduct)(region => !isForbidden(region.root))
  )

  /** Whether it has a product of two sides where the user wants Spark to refuse these. */
  private def isForbidden(plan: LogicalPlan): Boolean =
    !SQLConf.get.crossJoinEnabled && plan.exists {
      case join: Join =>
        !join.condition.toSeq.flatMap(Selectivity.conjuncts).exists(condition =>
          condition.references.exists(join.left.outputSet.contains) &&
            condition.references.exists(join.right.outputSet.contains)
        )
      case _ => false
    }

  /**
   * An order that is to be found.
   *
   * @param written the order written, at what it costs
   */
  private[selinger] final case class Problem(
      region: JoinRegion,
      graph: JoinGraph,
      trees: JoinTreeCost,
      written: JoinTree
  )

  /** What a search for the order of a region needs, or why there is none. */
  private[selinger] def problem(
      session: SparkSession,
      region: JoinRegion
  ): Either[Reason, Problem] =
    Precondition.firstUnmet(preconditions, region) match {
      case Some(reason) => Left(reason)
      case None =>
        val estimator = LeafStatistics.estimator
        JoinGraph.of(region.relations, region.written, region.needed) match {
          case _
              if LeafStatistics.smallestFirst(region.relations).exists(
                estimator.estimate(_).isEmpty
              ) =>
            Left(Reason.NoStatistics)
          case Some(graph) if graph.isConnected =>
            // Under the conditions that concern them alone, which have moved to the relations.
            val trees = costs(session, graph, graph.relations.flatMap(estimator.estimate(_)))
            JoinTreePlan.treeOf(region.written, graph, trees)
              .map(Problem(region, graph, trees, _))
              .toRight(Reason.CrossProduct)
          case _ => Left(Reason.CrossProduct)
        }
    }

  private def costs(
      session: SparkSession,
      graph: JoinGraph,
      estimates: IndexedSeq[PlanEstimate]
  ): JoinTreeCost = {
    val cluster = Cluster.of(session)
    val limits = OperatorLimits(
      JoinSettings.broadcastLimit(Phase.Static, cluster),
      cluster.taskMemoryBytes * SelingerConf.HASH_MEMORY_SHARE.value
    )
    val cost = new JoinCost(cluster, SelingerConf.CBO_WEIGHT.value)
    new JoinTreeCost(graph, estimates, cluster, cost, limits)
  }

  private def rowsJoined(tree: JoinTree): Double = tree match {
    case joined: JoinTree.Joined =>
      joined.estimate.rows.value + rowsJoined(joined.left) + rowsJoined(joined.right)
    case _ => 0.0
  }

  /**
   * Share of the cost that a change must save: the more, the less is known of the relations, and the
   * more often errors multiply.
   */
  private[ordering] def marginOf(minGain: Double, origins: Seq[Origin], joins: Int): Double = {
    val doubt = Origin.worst(origins) match {
      case Origin.Exact | Origin.Measured => 0.0
      case Origin.Sampled => 0.1
      case Origin.Derived => 0.2
      case Origin.Default => 1.0
    }
    math.min(mostMargin, minGain * (1.0 + doubt) * (1.0 + doubtAJoin * math.max(0, joins - 2)))
  }
}
