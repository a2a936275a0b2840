package io.selinger.core

import org.slf4j.LoggerFactory
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import scala.util.control.NonFatal

/**
 * Runs a rule: switched off? → within budget? → run, timed → check → record. Whatever goes wrong
 * inside, the caller gets `unchanged` and the query goes on. Only what opens a planning pass, and
 * what asks whether a rule concerns a node, runs outside it (see GuardedRules).
 */
object Guard {
  private val log = LoggerFactory.getLogger("io.selinger")

  /**
   * @param rule who runs
   * @param node the operator concerned, where failures are recorded
   * @param unchanged what the caller goes on with when the rule does not act
   * @param problem what is wrong with a result, if anything; is told whether to look closely
   * @param fired whether a result is another one than Spark's
   * @param largest bytes of the largest table of the query: see [[LargestTable]]
   * @param body the rule; is told whether it may act (`on`) or only advise
   */
  def run[A <: AnyRef](rule: RuleDescription, switches: Switches, node: LogicalPlan, unchanged: A)(
      problem: (A, Boolean) => Option[String],
      fired: A => Boolean,
      largest: => Double = LargestTable.current
  )(body: Mode => A): A =
    try
      if (!active(rule, switches) || isSmall(rule, switches, largest)) unchanged
      else if (PlanningPass.current.usedMs > switches.budgetMs.toDouble) {
        Decision.record(
          node,
          stopped(
            rule,
            node,
            Reason.BudgetExceeded,
            Outcome.Declined,
            None,
            Some(switches.budgetMs)
          )
        )
        unchanged
      } else {
        val begun = System.nanoTime()
        val result = counted(rule, begun)(PlanningPass.current.timed(body(switches.mode)))
        val wrong = problem(result, switches.failOnError)
        val acts = wrong.isEmpty && switches.mode == Mode.On
        RuleActivity.count(rule, acts && fired(result), System.nanoTime() - begun)
        wrong.foreach { what =>
          if (switches.failOnError) {
            throw new IllegalStateException(s"${rule.id} returned an invalid plan: $what")
          } else
            failed(rule, node, Reason.InvalidResult, what, None)(Decision.recordFailure(node, _))
        }
        if (acts) result else unchanged
      }
    catch {
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError)
          if !failOnError(switches) =>
        failed(rule, node, Reason.RuleFailed, error.toString, Some(error)) {
          Decision.recordFailure(node, _)
        }
        unchanged
    }

  /** For what a rule does with a whole plan before any node is planned; counts as no call. */
  def observe(rule: RuleDescription, switches: Switches, root: LogicalPlan)(body: => Unit): Unit =
    try {
      val pass = PlanningPass.current
      if (
        active(rule, switches) && !isSmall(rule, switches, LargestTable.current) &&
        pass.usedMs <= switches.budgetMs.toDouble
      ) pass.timed(body)
    } catch {
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError)
          if !failOnError(switches) =>
        failed(rule, root, Reason.RuleFailed, error.toString, Some(error)) {
          Decision.record(root, _)
        }
    }

  /**
   * For code beside the plan (statistics): `fallback` when switched off or when it fails, which is then
   * said of `leaf` in the decisions that rest on it.
   */
  def value[A](rule: RuleDescription, switches: Switches, leaf: LogicalPlan, fallback: => A)(
      body: => A
  ): A =
    try
      if (!active(rule, switches)) fallback
      else {
        val begun = System.nanoTime()
        val result = counted(rule, begun)(OnDemandProbe.around(rule)(body))
        RuleActivity.count(rule, result != None, System.nanoTime() - begun)
        result
      }
    catch {
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError)
          if !failOnError(switches) =>
        failed(rule, leaf, Reason.RuleFailed, error.toString, Some(error)) {
          PlanningPass.current.inform(leaf, _)
        }
        fallback
    }

  /** A call that raises an error is a call, too. */
  private def counted[A](rule: RuleDescription, begun: Long)(body: => A): A =
    try body
    catch {
      case error: Throwable =>
        RuleActivity.count(rule, fired = false, System.nanoTime() - begun)
        throw error
    }

  /** Whether all tables are so small that a plan is left to Spark. */
  private[selinger] def isSmall(switches: Switches, largest: => Double): Boolean = {
    val most = switches.smallTableBytes
    most > 0 && largest <= most.toDouble
  }

  private def isSmall(rule: RuleDescription, switches: Switches, largest: => Double): Boolean =
    !rule.paysOnSmallTables && isSmall(switches, largest)

  private def active(rule: RuleDescription, switches: Switches): Boolean =
    switches.mode != Mode.Off && switches.enabled(rule)

  // A conf that cannot even be read must not turn one failure into two.
  private def failOnError(switches: Switches): Boolean =
    try switches.failOnError
    catch { case NonFatal(_) => false }

  private def failed(
      rule: RuleDescription,
      node: LogicalPlan,
      reason: Reason,
      what: String,
      error: Option[Throwable]
  )(record: Decision => Unit): Unit = {
    if (!RuleActivity.isSilent)
      log.warn(s"${rule.id} failed and the plan went on without it: $what", error.orNull)
    // The node may be what the rule stumbled over; that it cannot be described must not matter.
    try record(stopped(rule, node, reason, Outcome.Failed, Some(what)))
    catch { case NonFatal(_) | _: LinkageError | _: StackOverflowError => () }
  }

  private def stopped(
      rule: RuleDescription,
      node: LogicalPlan,
      reason: Reason,
      outcome: Outcome,
      detail: Option[String],
      budgetMs: Option[Long] = None
  ): Decision = {
    val remedy =
      if (reason == Reason.BudgetExceeded) {
        Remedy("spark.selinger.planning.budgetMs", budgetMs.map(ms => (ms * 2).toString))
      } else Remedy(rule.switch, Some("false"))
    Decision(
      rule = rule.id,
      node = NodeText.of(node),
      key = NodeText.key(node),
      outcome = outcome,
      reason = reason,
      detail = detail,
      setting = Some(remedy.key),
      settingTo = remedy.value
    )
  }
}
