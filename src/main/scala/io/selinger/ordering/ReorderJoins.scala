package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core._
import io.selinger.cost.{Cluster, JoinCost, JoinSettings}
import io.selinger.estimate.LeafStatistics
import io.selinger.stats.{FileRelation, ImportedStatistics, KeyColumns}
import org.apache.spark.sql.catalyst.expressions.AttributeSet
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * Joins in the order that costs least, where Spark joins in the order in which a query names its
 * tables: selective joins come before those that multiply rows.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                            else STREAMING_PLAN
 *   2. Spark's own join reordering is not switched on      else SPARK_REORDERS
 *   3. there are no more relations than the search can do  else TOO_MANY_RELATIONS
 *   4. no column of a relation is computed by what can
 *      raise errors                                        else ERRORS_DEPEND_ON_PLAN
 *   5. the rows of every relation can be estimated         else NO_STATISTICS
 *   6. equalities connect all relations                    else CROSS_PRODUCT
 * and where the order found costs less than the order written by more than estimates are worth,
 * else ORDER_CHEAP_ENOUGH. Regions of two relations have no order and are passed over.
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
 * Correct because: inner joins commute and associate, and a conjunct of theirs may be evaluated as
 * soon as its columns are there. Only conditions that cannot raise errors and always give the same
 * answer take part (RaisedErrors.isSafe); all others, hinted joins, outer, semi and anti joins, and
 * projections that compute something bound the region. Equalities are transitive, so each
 * equivalence class gives a join one key, and null keys match nothing under any of them. Duplicates
 * and empty inputs are the same under every order.
 * Not done yet: orders through outer, semi and anti joins; cross products.
 * Cost: planning O(pairs) up to ordering.maxPairs, then O(n³). May lose when estimates mislead: the
 * gain must exceed a margin, doubled where one of the numbers is only a default.
 * Runs in injectPreCBORule: once, after predicates have been pushed down and before Spark prunes
 * columns of scans. A second run finds the order written to be the cheapest.
 * Conf: spark.selinger.reorderJoins.enabled.  References: see JoinEnumerator; Selinger et al., 1979.
 */
final class ReorderJoins(session: SparkSession)
    extends GuardedRule(SelingerConf.REORDER_JOINS, SelingerConf.switches) {
  import ReorderJoins._

  override protected def begin(): Unit = {
    val _ = PlanningPass.start()
  }

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = {
    KeyColumns.note(plan)
    visit(plan)
  }

  private def visit(plan: LogicalPlan): LogicalPlan = JoinRegion.at(plan) match {
    case Some(region) if region.relations.size > 1 =>
      val relations = region.relations.map(visit)
      val renewed = replaced(region, relations)
      if (relations.size < 3) renewed.root else reordered(renewed)
    case _ => plan.mapChildren(visit)
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

  private def reordered(region: JoinRegion): LogicalPlan =
    Precondition.firstUnmet(preconditions, region) match {
      case Some(reason) => declined(region, reason)
      case None =>
        val estimates = region.relations.map(LeafStatistics.estimator.estimate)
        JoinGraph.of(region.relations, region.conditions, region.root.output) match {
          case _ if estimates.exists(_.isEmpty) => declined(region, Reason.NoStatistics)
          case Some(graph) if graph.isConnected => search(region, graph)
          case _ => declined(region, Reason.CrossProduct)
        }
    }

  private def search(region: JoinRegion, graph: JoinGraph): LogicalPlan = {
    // Under the conditions that concern them alone, which the graph has moved to the relations.
    val estimates = graph.relations.flatMap(LeafStatistics.estimator.estimate(_))
    val cluster = Cluster.of(session)
    val cost = new JoinCost(cluster, SelingerConf.CBO_WEIGHT.value)
    val limits = OperatorLimits(
      JoinSettings.broadcastLimit(Phase.Static, cluster),
      cluster.taskMemoryBytes * SelingerConf.HASH_MEMORY_SHARE.value
    )
    val trees = new JoinTreeCost(graph, estimates, cluster, cost, limits)
    val pass = PlanningPass.current
    val begun = pass.usedMs
    // A first look at files may have used the budget up; without an order it would be in vain.
    val allowed = math.max(leastSearchMs, SelingerConf.PLANNING_BUDGET_MS.value - begun)
    val enumerator = new JoinEnumerator(
      graph,
      trees.relation,
      trees.join,
      SelingerConf.ORDER_MAX_PAIRS.value,
      () => (pass.usedMs - begun) / allowed
    )
    enumerator.best() match {
      case Some(found) => chosen(region, graph, trees, found)
      case None => declined(region, Reason.BudgetExceeded)
    }
  }

  private def chosen(
      region: JoinRegion,
      graph: JoinGraph,
      trees: JoinTreeCost,
      found: JoinEnumerator.Found
  ): LogicalPlan = {
    val written = treeOf(region.written, trees)
    val guessed = trees.estimates.exists(_.rows.origin == Origin.Default)
    val margin = SelingerConf.ORDER_MIN_GAIN.value * (if (guessed) 2.0 else 1.0)
    val gains = found.tree.seconds < written.seconds * (1.0 - math.min(margin, 0.9))
    val result = if (gains) planOf(found.tree, graph, region.root) else region.root
    record(region, graph, found, written, gains, if (advising) region.root else result)
    result
  }

  private def advising: Boolean = SelingerConf.switches.mode == Mode.Advise

  private def record(
      region: JoinRegion,
      graph: JoinGraph,
      found: JoinEnumerator.Found,
      written: JoinTree,
      gains: Boolean,
      plan: LogicalPlan
  ): Unit = {
    def text(tree: JoinTree) = JoinTree.text(tree, i => nameOf(graph.relations(i)))
    val outcome =
      if (!gains) Outcome.Same else if (advising) Outcome.Advised else Outcome.Changed
    val largest = RelationSet
      .members(graph.all)
      .map(i => (nameOf(graph.relations(i)), LeafStatistics.estimator.estimate(graph.relations(i))))
      .collect { case (name, Some(estimate)) => (name, estimate) }
      .sortBy { case (name, estimate) => (-estimate.rows.value, name) }
      .take(3)
    decide(
      region,
      plan,
      outcome,
      if (gains) Reason.OrderCheaper else Reason.OrderCheapEnough,
      chosen = Some(text(if (gains) found.tree else written)),
      stock = Some(text(written)),
      evidence = Seq(
        Evidence("cost of the order written", written.seconds, "s", Origin.Derived),
        Evidence("cost of the best order", found.tree.seconds, "s", Origin.Derived),
        Evidence("rows joined as written", rowsJoined(written), "rows", Origin.Derived),
        Evidence("rows joined at best", rowsJoined(found.tree), "rows", Origin.Derived)
      ) ++ largest.map { case (name, estimate) =>
        Evidence(s"$name rows", estimate.rows.value, "rows", estimate.rows.origin)
      },
      setting = Some(SelingerConf.ORDER_MIN_GAIN.key),
      detail = found.limit.map(limit =>
        s"found greedily: ${limit.setting} was reached"
      )
    )
  }

  private def declined(region: JoinRegion, reason: Reason): LogicalPlan = {
    val setting = reason match {
      case Reason.SparkReorders => Some(SQLConf.JOIN_REORDER_ENABLED.key)
      case Reason.NoStatistics =>
        val footers = SelingerConf.READ_FOOTER_STATISTICS
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
      Decision.record(
        join,
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
      )
    }
}

object ReorderJoins {

  private val leastSearchMs = 100.0

  private val preconditions: Seq[Precondition[JoinRegion]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.root.isStreaming),
    Precondition(Reason.SparkReorders)(_ => !SQLConf.get.joinReorderEnabled),
    Precondition(Reason.TooManyRelations)(_.relations.size <= RelationSet.most),
    Precondition(Reason.MayRaise)(!_.relations.exists(RaisedErrors.areLate))
  )

  private def treeOf(shape: JoinRegion.Shape, trees: JoinTreeCost): JoinTree = shape match {
    case JoinRegion.Leaf(index) => trees.relation(index)
    case JoinRegion.Pair(left, right) => trees.join(treeOf(left, trees), treeOf(right, trees))
  }

  private def rowsJoined(tree: JoinTree): Double = tree match {
    case joined: JoinTree.Joined =>
      joined.estimate.rows.value + rowsJoined(joined.left) + rowsJoined(joined.right)
    case _ => 0.0
  }

  /** The tree as a plan that returns what `root` returns. */
  private[ordering] def planOf(tree: JoinTree, graph: JoinGraph, root: LogicalPlan): LogicalPlan = {
    val joined = build(tree, graph)
    if (joined.output.map(_.exprId) == root.output.map(_.exprId)) joined
    else Project(root.output, joined)
  }

  /** The larger side streams, so it comes first. */
  private def build(tree: JoinTree, graph: JoinGraph): LogicalPlan = tree match {
    case relation: JoinTree.Relation => graph.relations(relation.index)
    case joined: JoinTree.Joined =>
      val (left, right) =
        if (bytes(joined.left) >= bytes(joined.right)) (joined.left, joined.right)
        else (joined.right, joined.left)
      Join(
        pruned(left, graph),
        pruned(right, graph),
        Inner,
        graph.conditionBetween(left.set, right.set),
        JoinHint.NONE
      )
  }

  private def bytes(tree: JoinTree): Double = tree.estimate.rows.value * tree.rowBytes

  private def pruned(tree: JoinTree, graph: JoinGraph): LogicalPlan = {
    val plan = build(tree, graph)
    val required = AttributeSet(graph.requiredOf(tree.set))
    if (plan.output.forall(required.contains)) plan
    else Project(plan.output.filter(required.contains), plan)
  }

  private def nameOf(plan: LogicalPlan): String = {
    val leaves = plan.collectLeaves()
    val first = leaves.headOption.map {
      case ImportedStatistics(index) => index.relation.name
      case FileRelation(relation) => relation.name.stripSuffix(".parquet")
      case other => other.nodeName
    }
    first.getOrElse(plan.nodeName) + (if (leaves.size > 1) "…" else "")
  }
}
