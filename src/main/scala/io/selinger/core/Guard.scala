package io.selinger.core

import org.slf4j.LoggerFactory
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import scala.util.control.NonFatal

/**
 * The one way by which Selinger's code is entered: switched off? → within budget? → run, timed →
 * check → record. Whatever goes wrong inside, the caller gets `unchanged` and the query goes on.
 */
object Guard {
  private val log = LoggerFactory.getLogger("io.selinger")

  /**
   * @param rule who runs
   * @param node the operator concerned, where failures are recorded
   * @param unchanged what the caller goes on with when the rule does not act
   * @param problem what is wrong with a result, if anything
   * @param body the rule; is told whether it may act (`on`) or only advise
   */
  def run[A <: AnyRef](rule: RuleInfo, switches: Switches, node: LogicalPlan, unchanged: A)(
      problem: A => Option[String]
  )(body: Mode => A): A =
    try
      if (!active(rule, switches)) unchanged
      else if (PlanningPass.current.usedMs > switches.budgetMs.toDouble) {
        Decision.record(node, stopped(rule, node, Reason.BudgetExceeded, Outcome.Declined, None))
        unchanged
      } else {
        val result = PlanningPass.current.timed(body(switches.mode))
        problem(result) match {
          case Some(what) if switches.failOnError =>
            throw new IllegalStateException(s"${rule.id} returned an invalid plan: $what")
          case Some(what) =>
            failed(rule, node, Reason.InvalidResult, what, None)
            unchanged
          case None => if (switches.mode == Mode.On) result else unchanged
        }
      }
    catch {
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError)
          if !failOnError(switches) =>
        failed(rule, node, Reason.RuleFailed, error.toString, Some(error))
        unchanged
    }

  /** For code beside the plan (statistics): `fallback` when switched off or when it fails. */
  def value[A](rule: RuleInfo, switches: Switches, fallback: => A)(body: => A): A =
    try if (active(rule, switches)) body else fallback
    catch {
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError)
          if !failOnError(switches) =>
        log.warn(s"${rule.id} failed and was skipped: $error", error)
        fallback
    }

  private def active(rule: RuleInfo, switches: Switches): Boolean =
    switches.mode != Mode.Off && switches.enabled(rule)

  // A conf that cannot even be read must not turn one failure into two.
  private def failOnError(switches: Switches): Boolean =
    try switches.failOnError
    catch { case NonFatal(_) => false }

  private def failed(
      rule: RuleInfo,
      node: LogicalPlan,
      reason: Reason,
      what: String,
      error: Option[Throwable]
  ): Unit = {
    log.warn(s"${rule.id} failed and the plan went on without it: $what", error.orNull)
    // The node may be what the rule stumbled over; that it cannot be described must not matter.
    try Decision.record(node, stopped(rule, node, reason, Outcome.Failed, Some(what)))
    catch { case NonFatal(_) | _: LinkageError => () }
  }

  private def stopped(
      rule: RuleInfo,
      node: LogicalPlan,
      reason: Reason,
      outcome: Outcome,
      detail: Option[String]
  ): Decision = {
    val setting =
      if (reason == Reason.BudgetExceeded) "spark.selinger.planning.budgetMs" else rule.switch
    Decision(
      rule = rule.id,
      node = NodeText.of(node),
      key = NodeText.key(node),
      outcome = outcome,
      reason = reason,
      detail = detail,
      setting = Some(setting)
    )
  }
}

/** A logical rule behind the guard: the result must be resolved and have the input's output. */
abstract class GuardedRule(val info: RuleInfo, switches: Switches) extends Rule[LogicalPlan] {

  override val ruleName: String = s"io.selinger.${info.id}"

  /** Called before the rule runs, even if it is switched off; must be cheap and must not fail. */
  protected def begin(): Unit = ()

  /** Returns the input object itself where nothing changes. */
  protected def rewrite(plan: LogicalPlan): LogicalPlan

  final override def apply(plan: LogicalPlan): LogicalPlan = {
    begin()
    Guard.run(info, switches, plan, plan)(problemOf(plan))(_ => rewrite(plan))
  }

  private def problemOf(before: LogicalPlan)(after: LogicalPlan): Option[String] =
    if (after eq before) None
    else if (!after.resolved) Some("the result is not resolved")
    else if (signature(after) != signature(before)) {
      Some(s"the output changed from ${before.output} to ${after.output}")
    } else None

  private def signature(plan: LogicalPlan) =
    plan.output.map(attribute => (attribute.exprId, attribute.name, attribute.dataType))
}

/** A planner strategy behind the guard. `Nil` hands the node to Spark's own strategies. */
abstract class GuardedStrategy(val info: RuleInfo, switches: Switches) extends SparkStrategy {

  /** Called with the root of a plan before its nodes are planned. */
  protected def begin(root: LogicalPlan): Unit = ()

  /** Whether `choose` has anything to say about this kind of node; must be cheap. */
  protected def concerns(plan: LogicalPlan): Boolean

  protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan]

  final override def apply(plan: LogicalPlan): Seq[SparkPlan] = plan match {
    case ReturnAnswer(root) =>
      val _ = PlanningPass.start()
      Guard.run[Seq[SparkPlan]](info, switches, root, Nil)(_ => None) { _ => begin(root); Nil }
    case node if concerns(node) =>
      Guard.run[Seq[SparkPlan]](info, switches, node, Nil)(problemOf(node))(choose(node, _))
    case _ => Nil
  }

  private def problemOf(node: LogicalPlan)(plans: Seq[SparkPlan]): Option[String] =
    plans.find(_.output.map(_.exprId) != node.output.map(_.exprId)).map { physical =>
      s"the output changed from ${node.output} to ${physical.output}"
    }
}

/** A rule on physical plans behind the guard, which Spark applies each time it has planned a query. */
abstract class GuardedPreparation(val info: RuleInfo, switches: Switches) extends Rule[SparkPlan] {

  override val ruleName: String = s"io.selinger.${info.id}"

  /** Returns the input object itself where nothing changes. */
  protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan

  final override def apply(plan: SparkPlan): SparkPlan = plan.logicalLink match {
    case Some(root) => Guard.run(info, switches, root, plan)(problemOf(plan))(prepare(plan, _))
    case None => plan
  }

  private def problemOf(before: SparkPlan)(after: SparkPlan): Option[String] =
    Option.when(after.output.map(_.exprId) != before.output.map(_.exprId)) {
      s"the output changed from ${before.output} to ${after.output}"
    }
}
