package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  Mode,
  Orders,
  Origin,
  Outcome,
  Reason,
  Remedy
}
import io.selinger.estimate.plans.{LeafStatistics, UnknownRows}
import io.selinger.ordering.graph.JoinRegion
import io.selinger.ordering.search.JoinEnumerator.Found
import io.selinger.ordering.sharing.SharedOrders
import io.selinger.ordering.tree.{JoinTree, JoinTreePlan}
import io.selinger.stats.footers.ReadFooterStatistics
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.internal.SQLConf

/** What explain says of the order of each region: outcome, reason, and the costs compared. */
private[ordering] object OrderDecisions {

  private val rule = ReorderJoins.id

  private val partly =
    s"orders of several places were compared in part: ${SelingerConf.PLANNING_BUDGET_MS.key} was reached"

  /** Whether decisions are made and explained, and plans stay as they are. */
  def advising: Boolean = SelingerConf.switches.mode == Mode.Advise

  /**
   * An order that was found for a region alone.
   *
   * @param changes whether it is cheaper by enough
   * @param result the region in that order, or as it was
   */
  def alone(problem: OrderProblem, found: Found, changes: Boolean, result: LogicalPlan): Unit =
    record(
      problem,
      found.tree,
      changes,
      if (changes) Reason.OrderCheaper else Reason.OrderCheapEnough,
      limits(found, problem.region),
      if (advising) problem.region.root else result,
      costs = Seq(
        Evidence("cost of the best order", found.tree.seconds, "s", Origin.Derived),
        Evidence("rows joined at best", rowsJoined(found.tree), "rows", Origin.Derived)
      ),
      remedy = if (changes) undo else moreChanges(problem, found)
    )

  /** Certain, whatever the numbers: the margin depends on the origin of the rows as well. */
  private val undo = Some(Remedy(ReorderJoins.switch, Some("false")))

  // Costs that differ by less read the same: nothing to recommend. Three digits are shown.
  private val leastVisible = 0.005

  /** The least gain at which the best order would be taken. */
  private def moreChanges(problem: OrderProblem, found: Found): Option[Remedy] = {
    val set = SelingerConf.ORDER_MIN_GAIN.value
    val doubt = if (set > 0.0) problem.margin / set else 1.0
    val gain = 1.0 - found.tree.seconds / problem.written.seconds
    Some(Remedy(
      SelingerConf.ORDER_MIN_GAIN.key,
      Option.when(gain > leastVisible)(gain / doubt).flatMap(Remedy.below)
    ))
  }

  /**
   * An order that was chosen together with those of other regions.
   *
   * @param found the best order of the region alone
   * @param changes whether it is another one than the order written
   * @param isPartial whether there was no time to compare all orders
   */
  def together(
      problem: OrderProblem,
      found: Option[Found],
      better: SharedOrders.Better,
      isPartial: Boolean,
      tree: JoinTree,
      changes: Boolean,
      result: LogicalPlan
  ): Unit = {
    val limited = found.flatMap(limits(_, problem.region))
    record(
      problem,
      tree,
      changes,
      Reason.OrderShared,
      joined(limited, Option.when(isPartial)(partly)),
      result,
      costs = Seq(
        Evidence("cost of this order by itself", tree.seconds, "s", Origin.Derived),
        Evidence("rows joined in this order", rowsJoined(tree), "rows", Origin.Derived),
        Evidence("cost of all places at their own best", better.alone, "s", Origin.Derived),
        Evidence("cost of all places as chosen", better.together, "s", Origin.Derived)
      ),
      remedy = undo
    )
  }

  /** A region that stays as it is. */
  def declined(region: JoinRegion, reason: Reason): Unit = {
    val remedy = reason match {
      case Reason.SparkReorders => Some(Remedy(SQLConf.JOIN_REORDER_ENABLED.key, Some("false")))
      case Reason.NoStatistics =>
        Option.unless(
          SelingerConf.switches.enabled(ReadFooterStatistics)
        )(Remedy(ReadFooterStatistics.switch, Some("true")))
      case Reason.BudgetExceeded =>
        val budget = SelingerConf.PLANNING_BUDGET_MS
        Some(Remedy(budget.key, Some((budget.value * 2).toString)))
      // Nothing but another query would change it.
      case _ => None
    }
    // In the order in which they were asked.
    val relations = LeafStatistics.smallestFirst(region.relations)
    val detail = UnknownRows.detail(reason, relations: _*)
    decide(region, region.root, Outcome.Declined, reason, remedy = remedy, detail = detail)
  }

  /** Says at all orders of a plan that they might be others, had there been time to compare them. */
  def noteLimit(plan: LogicalPlan): Unit = plan.foreach {
    case join: Join =>
      Decision.recordedAt(join).filter(d => d.rule == rule && d.chosen.isDefined).foreach {
        decision =>
          Decision.record(join, decision.copy(detail = joined(decision.detail, Some(partly))))
      }
    case _ => ()
  }

  private def limits(found: Found, region: JoinRegion): Option[String] = {
    val limited = found.limit.map(limit => s"${found.method.label}: ${limit.setting} was reached")
    val bounded = Option.when(region.barriers.nonEmpty)(
      s"joins below stay where they are: ${region.barriers.map(_.code).mkString(", ")}"
    )
    joined(limited, bounded)
  }

  private def joined(details: Option[String]*): Option[String] =
    details.flatten.reduceOption((a, b) => s"$a; $b")

  private def record(
      problem: OrderProblem,
      tree: JoinTree,
      changes: Boolean,
      reason: Reason,
      detail: Option[String],
      plan: LogicalPlan,
      costs: Seq[Evidence],
      remedy: Option[Remedy]
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
      remedy = remedy,
      detail = detail,
      orders = Option.when(changes)(
        Orders(JoinTree.rows(written, names), JoinTree.rows(tree, names))
      ),
      // Of orders that share, the cost by itself is not what is paid.
      work = Option.unless(reason == Reason.OrderShared)(
        ExpectedWork(written.seconds, (if (changes) tree else written).seconds)
      )
    )
    if (reason != Reason.OrderShared) markJoins(plan, region.relations.size - 1)
  }

  /** The topmost joins of a plan, those of the region's result. */
  private def markJoins(plan: LogicalPlan, count: Int): Unit = {
    val joins = LazyList
      .iterate(Seq(plan))(_.flatMap(inRegion))
      .takeWhile(_.nonEmpty)
      .flatten
      .collect { case join: Join => join }
    joins.take(count).foreach(Decision.markOrdered)
  }

  private def inRegion(plan: LogicalPlan): Seq[LogicalPlan] = plan match {
    case _: Join | _: Project | _: Filter => plan.children
    case _ => Nil
  }

  private def decide(
      region: JoinRegion,
      plan: LogicalPlan,
      outcome: Outcome,
      reason: Reason,
      chosen: Option[String] = None,
      stock: Option[String] = None,
      evidence: Seq[Evidence] = Nil,
      remedy: Option[Remedy],
      detail: Option[String],
      orders: Option[Orders] = None,
      work: Option[ExpectedWork] = None
  ): Unit =
    plan.find(_.isInstanceOf[Join]).foreach { join =>
      val columns = region.root.output.map(_.exprId.id).sorted
      val relations = region.relations.map(_.output.headOption.map(_.exprId.id).mkString).sorted
      val decision = Decision(
        rule = rule,
        node = s"Order of ${region.relations.size} joined relations",
        key = s"${columns.mkString(",")} ${relations.mkString(",")}",
        outcome = outcome,
        reason = reason,
        chosen = chosen,
        stock = stock,
        evidence = evidence,
        setting = remedy.map(_.key),
        settingTo = remedy.flatMap(_.value),
        detail = detail,
        title = Some(s"Order of ${region.relations.size} tables"),
        tables = Some(region.relations.size),
        orders = orders,
        work = work
      )
      // Subqueries come here by themselves, and again within the query.
      val before =
        Decision.recordedAt(join).find(d => d.rule == decision.rule && d.key == decision.key)
      if (outcome != Outcome.Same || !before.exists(_.outcome == Outcome.Changed)) {
        Decision.record(join, decision)
      }
    }

  private def rowsJoined(tree: JoinTree): Double = tree match {
    case joined: JoinTree.Joined =>
      joined.estimate.rows.value + rowsJoined(joined.left) + rowsJoined(joined.right)
    case _ => 0.0
  }
}
