package io.selinger.core

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import scala.util.control.NonFatal

/**
 * A rule on logical plans behind the guard, for every hook that takes one: the operator batches, the
 * rules before Spark's join reordering, the late batch, adaptive re-planning.
 */
abstract class GuardedRule(val info: RuleDescription, switches: Switches)
    extends Rule[LogicalPlan] {

  override val ruleName: String = s"io.selinger.${info.id}"

  /** Returns the input object itself where nothing changes. */
  protected def rewrite(plan: LogicalPlan): LogicalPlan

  /** Whether the time for planning is used up, so that what is left stays as it is. */
  protected def isLate: Boolean = PlanningPass.current.usedMs > switches.budgetMs.toDouble

  final override def apply(plan: LogicalPlan): LogicalPlan = {
    val _ = PlanningPass.optimizing(plan)
    val result = Guard.run(info, switches, plan, plan)(
      PlanIntegrity.problemOf(plan, _, _),
      fired = (result: LogicalPlan) => result ne plan
    )(_ => rewrite(plan))
    RootDecisions.keep(result)
    result
  }
}

/** Opens the pass that all strategies share; the extension injects it before the first of them. */
object OpenPlanningPass extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ReturnAnswer(root) =>
      val _ = PlanningPass.planning(root)
      Nil
    case _ => Nil
  }
}

/** A planner strategy behind the guard. `Nil` hands the node to Spark's own strategies. */
abstract class GuardedStrategy(val info: RuleDescription, switches: Switches)
    extends SparkStrategy {

  /** Called with the root of a plan before its nodes are planned. */
  protected def begin(root: LogicalPlan): Unit = ()

  /** Whether `choose` has anything to say about this kind of node; must be cheap. */
  protected def concerns(plan: LogicalPlan): Boolean

  protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan]

  final override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ReturnAnswer(root) =>
      Guard.observe(info, switches, root)(begin(root))
      Nil
    case node if mayConcern(node) =>
      Guard.run[Seq[SparkPlan]](info, switches, node, Nil)(
        (plans, _) => plans.iterator.flatMap(PlanIntegrity.problemOf(node, _)).nextOption(),
        fired = _.exists(!isAsStock(_))
      )(choose(node, _))
    case _ => Nil
  }

  /** Where looking at a node fails, `choose` fails too, and the guard tells of it. */
  private def mayConcern(node: LogicalPlan): Boolean =
    try concerns(node)
    catch { case NonFatal(_) => true }

  /** Whether an operator is the one that Spark would have made, only with a decision on it. */
  private def isAsStock(plan: SparkPlan): Boolean =
    Decision.recordedAt(plan).exists(made => made.rule == info.id && made.outcome == Outcome.Same)
}

/** Looks at each plan that Spark's planner starts on, behind the guard; plans nothing. */
final class GuardedObserver(
    val info: RuleDescription,
    switches: Switches,
    action: LogicalPlan => Unit
) extends SparkStrategy {
  override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ReturnAnswer(root) =>
      Guard.observe(info, switches, root)(action(root))
      Nil
    case _ => Nil
  }
}

/**
 * A rule on physical plans behind the guard, for every hook that takes one: preparation of query
 * stages, their optimization, before and after columnar transitions. Plans that Spark made for no
 * logical plan are passed over.
 */
abstract class GuardedPhysicalRule(val info: RuleDescription, switches: Switches)
    extends Rule[SparkPlan] {

  override val ruleName: String = s"io.selinger.${info.id}"

  /** Returns the input object itself where nothing changes. */
  protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan

  // What Spark adds on top, such as the shuffle of a stage, belongs to no logical plan itself.
  final override def apply(plan: SparkPlan): SparkPlan = plan.collectFirst(linked) match {
    case Some(root) =>
      Guard.run(info, switches, root, plan)(
        PlanIntegrity.problemOf(plan, _: SparkPlan, _),
        fired = (after: SparkPlan) => after ne plan,
        // The pass may be that of a subquery.
        LargestTable.of(root)
      )(prepare(plan, _))
    case None => plan
  }

  private def linked = Function.unlift((plan: SparkPlan) => plan.logicalLink)
}
