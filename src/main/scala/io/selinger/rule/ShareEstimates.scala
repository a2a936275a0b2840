package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedRule,
  Hook,
  Mode,
  NodeText,
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
import io.selinger.cost.JoinSettings
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions.{
  AttributeReference,
  BloomFilterMightContain,
  Expression,
  InSubquery,
  SortOrder,
  SubqueryExpression
}
import org.apache.spark.sql.catalyst.expressions.aggregate.{
  AggregateExpression,
  AggregateFunction,
  BloomFilterAggregate,
  Count,
  Max,
  Min
}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.selinger.PlanStatistics

/**
 * Puts our sizes of filtered relations into Spark's own statistics, where its rules and strategies
 * would take a relation's files for its size, whatever a filter leaves of them.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                                else STREAMING_PLAN
 *   2. Spark's cost-based optimizer is not switched on         else SPARK_ESTIMATES
 *   3. nothing in or below a join can raise an error           else ERRORS_DEPEND_ON_PLAN
 *   4. the rows of the relation can be estimated               else NO_STATISTICS
 *   5. they were counted or sampled, and widths are known      else ESTIMATE_UNCERTAIN
 *   6. the size would not grow above a threshold that the user
 *      has set, so that what Spark broadcasts by it stays      else USER_THRESHOLD_OBEYED
 * and where the number differs from Spark's.
 *
 * {{{
 *   SELECT * FROM sales JOIN items ON item WHERE items.category = 'Books'
 *   Before:  Filter (category), sizeInBytes = 40 MB        After:  Filter (category), sizeInBytes = 4 MB
 *            +- items, sizeInBytes = 40 MB                         +- items, sizeInBytes = 90 MB
 * }}}
 *
 * Correct because: statistics choose among plans that all give the same rows, and the same errors
 * where nothing that a join or a runtime filter could leave out raises any. The size is that of the
 * rows that would be surprising to exceed (`upperBound`), in memory, so that a broadcast is no bet.
 * Not done: nothing above a join or an aggregation, where numbers are derived; Spark goes on from
 * ours as it does from its own. A plan that is cached keeps the size that it had when it was cached,
 * until it is loaded.
 * Cost: planning as for the join operators, which need the same estimates; may lose where Spark's
 * rules were lucky with the wrong size, so it is off unless it is asked for.
 * Runs in injectPreCBORule, for dynamic partition pruning and runtime filters, and again as a
 * strategy, since Spark copies plans before it plans them, and copies lose these numbers. Both see
 * copies that are no other query's. Rules in between copy some nodes, which then have Spark's numbers
 * again. A second run finds the same numbers.
 * Conf: spark.selinger.shareEstimates.enabled.
 */
object ShareEstimates
    extends RuleDescription(
      "shareEstimates",
      RuleKind.Statistics,
      "Puts sizes of filtered relations that were counted or sampled into Spark's own statistics, " +
        "for its broadcasts, dynamic partition pruning and runtime filters.",
      onByDefault = false
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "The rules of Spark that read sizes run later, on the order of joins that was chosen."
    )(_ =>
      new ForRules
    ),
    Hook.EachPlan(
      "Spark copies plans before it plans them, and copies lose these sizes.",
      this,
      SelingerConf.switches
    )(share)
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.SparkEstimates,
    Reason.MayRaise,
    Reason.NoStatistics,
    Reason.EstimateUncertain,
    Reason.UserThreshold,
    Reason.EstimateShared
  )

  override def example: String =
    "SELECT * FROM sales JOIN items ON sales.item = items.id WHERE items.category = 'Books'"

  /** Before Spark's late rules. */
  final class ForRules extends GuardedRule(ShareEstimates, SelingerConf.switches) {
    override protected def rewrite(plan: LogicalPlan): LogicalPlan = {
      share(plan)
      plan
    }
  }

  private[rule] def share(plan: LogicalPlan): Unit = {
    val relations = relationsOf(plan)
    if (relations.nonEmpty) {
      // What Spark computes by itself, and nothing that it has kept from before.
      plan.invalidateStatsCache()
      val unmet = Precondition.firstUnmet(preconditions, plan)
      val found = relations.map(top => top -> chain(top).map(node => node -> sizeOf(node, unmet)))
      plan.invalidateStatsCache()
      if (SelingerConf.switches.mode == Mode.On) {
        for ((_, nodes) <- found; (node, Right(size)) <- nodes)
          PlanStatistics.set(node, size.shared)
      }
      found.foreach { case (top, nodes) => record(top, nodes.head._2) }
    }
  }

  private val preconditions: Seq[Precondition[LogicalPlan]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.SparkEstimates)(_ => !SQLConf.get.cboEnabled),
    Precondition(Reason.MayRaise)(!mayRaise(_))
  )

  /** Whether anything can raise an error whose rows depend on operators and on runtime filters. */
  private def mayRaise(plan: LogicalPlan): Boolean =
    if (joins(plan)) plan.exists(node => !node.expressions.forall(isQuiet))
    else plan.children.exists(mayRaise)

  private def joins(plan: LogicalPlan): Boolean =
    plan.isInstanceOf[Join] || plan.expressions.exists(SubqueryExpression.hasSubquery)

  private def isQuiet(expression: Expression): Boolean = {
    val plans = expression.collect { case subquery: SubqueryExpression => subquery.plan }
    val looked = expression.collect { case in: InSubquery => in.values }.flatten
    !plans.exists(_.exists(node => !node.expressions.forall(isQuiet))) && looked.forall(isQuiet) &&
    RaisedErrors.isSafe(expression.transformDown {
      // From above, since it takes no other kind of subquery.
      case in: InSubquery => anything(in)
      case subquery: SubqueryExpression if subquery.children.forall(RaisedErrors.isSafe) =>
        anything(subquery)
      case result: AggregateExpression
          if isQuiet(result.aggregateFunction) && result.filter.forall(RaisedErrors.isSafe) =>
        anything(result)
      case order: SortOrder if RaisedErrors.isSafe(order.child) => anything(order)
      case filter: BloomFilterMightContain => anything(filter)
    })
  }

  private def isQuiet(function: AggregateFunction): Boolean = function match {
    case _: Count | _: Min | _: Max => function.children.forall(RaisedErrors.isSafe)
    case _: BloomFilterAggregate => true
    case _ => false
  }

  private def anything(expression: Expression): Expression =
    AttributeReference("value", expression.dataType)()

  /** The uppermost filters and projections of each relation of files. */
  private def relationsOf(plan: LogicalPlan): Seq[LogicalPlan] =
    if (isRelation(plan)) Seq(plan) else plan.children.flatMap(relationsOf)

  private def isRelation(plan: LogicalPlan): Boolean = plan match {
    case FileRelation(_) => true
    case Filter(_, child) => isRelation(child)
    case Project(_, child) => isRelation(child)
    case _ => false
  }

  private def chain(top: LogicalPlan): Seq[LogicalPlan] =
    top +: top.children.flatMap(chain)

  private final case class Size(stock: Statistics, shared: Statistics, estimate: PlanEstimate)

  private def sizeOf(node: LogicalPlan, unmet: Option[Reason]): Either[Reason, Size] =
    for {
      _ <- unmet.toLeft(())
      estimate <- LeafStatistics.estimator.estimate(node).toRight(Reason.NoStatistics)
      _ <- Either.cond(isCertain(estimate, node), (), Reason.EstimateUncertain)
      size = sizeFrom(node, estimate)
      _ <- Either.cond(!exceedsUsers(size), (), Reason.UserThreshold)
    } yield size

  private def isCertain(estimate: PlanEstimate, node: LogicalPlan): Boolean =
    Set[Origin](Origin.Exact, Origin.Measured, Origin.Sampled)(estimate.rows.origin) &&
      estimate.widthIsKnown(node.output) && estimate.upperBound < PlanEstimate.most

  private def sizeFrom(node: LogicalPlan, estimate: PlanEstimate): Size = {
    val stock = node.stats
    val bytes = math.max(1.0, math.ceil(estimate.upperBound * estimate.rowBytes(node.output)))
    val rows = math.max(1.0, math.ceil(estimate.rows.value))
    val shared = stock.copy(
      sizeInBytes = BigDecimal(bytes).toBigInt,
      rowCount = Some(BigDecimal(rows).toBigInt)
    )
    Size(stock, shared, estimate)
  }

  private def exceedsUsers(size: Size): Boolean =
    JoinSettings.userThreshold(Phase.Static).nonEmpty &&
      size.shared.sizeInBytes > size.stock.sizeInBytes

  /** With the leaf, from where explain takes it to the joins above. */
  private def record(top: LogicalPlan, found: Either[Reason, Size]): Unit =
    top.collectLeaves().headOption.foreach { leaf =>
      val name = leaf match {
        case FileRelation(relation) => relation.name
        case other => other.nodeName
      }
      PlanningPass.current.inform(
        leaf,
        Decision(
          rule = id,
          node = NodeText.shorten(s"Size of $name"),
          key = NodeText.key(top),
          outcome = Outcome.Informed,
          reason = found.fold(identity, _ => Reason.EstimateShared),
          evidence = found.toSeq.flatMap { size =>
            val origin = size.estimate.rows.origin
            Seq(
              Evidence("by Spark", size.stock.sizeInBytes.toDouble, "bytes", Origin.Derived),
              Evidence("at most", size.shared.sizeInBytes.toDouble, "bytes", origin),
              Evidence("rows", size.estimate.rows.value, "rows", origin)
            )
          },
          setting = Some(switch),
          settingTo = Some("false")
        )
      )
    }
}
