package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  GuardedPhysicalRule,
  GuardedRule,
  GuardedStrategy,
  Hook,
  Mode,
  OnDemandProbe,
  Reason,
  RuleDescription
}
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans.logical.{
  LocalRelation,
  LogicalPlan,
  OneRowRelation,
  Project
}
import org.apache.spark.sql.execution.{LocalTableScanExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.types.IntegerType

/** Rules that go wrong in the place of others. */
object BrokenRules {

  /** What a rule does instead of its work. */
  sealed abstract class Way(val name: String) {

    /** What the guard says of it. */
    def reason: Reason

    def logical(plan: LogicalPlan): LogicalPlan
    def physical(plan: SparkPlan): SparkPlan
    def operators(plan: LogicalPlan): Seq[SparkPlan]
  }

  /** The ways that mean something at a hook: no result is used of what looks at a plan, or is asked. */
  def ways(hook: Hook): Seq[Way] = hook match {
    case _: Hook.OnDemand | _: Hook.EachPlan => raising
    case _ => raising ++ Seq(LosesColumn, OtherColumns)
  }

  private final class Raises(name: String)(error: => Throwable) extends Way(name) {
    override def reason: Reason = Reason.RuleFailed
    override def logical(plan: LogicalPlan): LogicalPlan = throw error
    override def physical(plan: SparkPlan): SparkPlan = throw error
    override def operators(plan: LogicalPlan): Seq[SparkPlan] = throw error
  }

  private val raising: Seq[Way] = Seq(
    new Raises("throws")(new IllegalStateException("boom")),
    new Raises("does not link")(new NoSuchMethodError("boom"))
  )

  /** Says that it returns all columns, and reads one that its input has no longer. */
  private object LosesColumn extends Way("loses a column in the middle of the plan") {
    override def reason: Reason = Reason.InvalidResult
    override def logical(plan: LogicalPlan): LogicalPlan =
      Project(plan.output, Project(plan.output.drop(1), plan))
    override def physical(plan: SparkPlan): SparkPlan =
      ProjectExec(plan.output, ProjectExec(plan.output.drop(1), plan))
    override def operators(plan: LogicalPlan): Seq[SparkPlan] =
      // Nothing to lose is nothing to break.
      if (plan.output.isEmpty) Nil
      else Seq(ProjectExec(plan.output, LocalTableScanExec(plan.output.drop(1), Nil, None)))
  }

  private object OtherColumns extends Way("returns other columns") {
    private def other = Seq(AttributeReference("other", IntegerType)())
    override def reason: Reason = Reason.InvalidResult
    override def logical(plan: LogicalPlan): LogicalPlan = LocalRelation(other)
    override def physical(plan: SparkPlan): SparkPlan = LocalTableScanExec(other, Nil, None)
    override def operators(plan: LogicalPlan): Seq[SparkPlan] =
      Seq(LocalTableScanExec(other, Nil, None))
  }

  /** The rule, broken at one of its hooks, by its place among them; none where Spark has no such hook. */
  def at(rule: RuleDescription, place: Int, way: Way): Option[RuleDescription] =
    instead(rule, rule.hooks(place), way).map { broken =>
      new RuleDescription(rule.id, rule.kind, rule.summary, rule.onByDefault) {
        private val all = rule.hooks.updated(place, broken)
        override def hooks: Seq[Hook] = all
        override def reasons: Seq[Reason] = rule.reasons
        override def example: String = rule.example
      }
    }

  private def instead(rule: RuleDescription, hook: Hook, way: Way): Option[Hook] = {
    val switches = SelingerConf.switches
    def onPlans = new GuardedRule(rule, switches) {
      override protected def rewrite(plan: LogicalPlan): LogicalPlan = way.logical(plan)
    }
    def onOperators = new GuardedPhysicalRule(rule, switches) {
      override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = way.physical(plan)
    }
    def strategy = new GuardedStrategy(rule, switches) {
      override protected def concerns(plan: LogicalPlan): Boolean = true
      override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] =
        way.operators(plan)
    }
    hook match {
      case _: Hook.OnDemand => None
      case known: Hook.EachPlan =>
        Some(Hook.EachPlan(known.why, rule, switches) { root =>
          val _ = way.logical(root)
        })
      case known: Hook.OptimizerBatch => Some(Hook.OptimizerBatch(known.why)(_ => onPlans))
      case known: Hook.PreCbo => Some(Hook.PreCbo(known.why)(_ => onPlans))
      case known: Hook.LateBatch => Some(Hook.LateBatch(known.why)(_ => onPlans))
      case known: Hook.RuntimeOptimizer => Some(Hook.RuntimeOptimizer(known.why)(_ => onPlans))
      case known: Hook.StagePreparation => Some(Hook.StagePreparation(known.why)(_ => onOperators))
      case known: Hook.StageOptimization =>
        Some(Hook.StageOptimization(known.why)(_ => onOperators))
      case known: Hook.BeforeColumnar => Some(Hook.BeforeColumnar(known.why)(_ => onOperators))
      case known: Hook.AfterColumnar => Some(Hook.AfterColumnar(known.why)(_ => onOperators))
      case known: Hook.PlannerStrategy => Some(Hook.PlannerStrategy(known.why)(_ => strategy))
    }
  }

  /** Breaks what one rule does on demand, and counts how often it was asked. */
  final class OnDemand(broken: RuleDescription, way: Way) extends OnDemandProbe {
    @volatile private var calls = 0

    def asked: Int = calls

    override def around[A](rule: RuleDescription)(work: => A): A = {
      if (rule == broken) {
        calls += 1
        val _ = way.logical(OneRowRelation())
      }
      work
    }
  }
}
