package io.selinger.core

import org.apache.spark.sql.{SparkSession => ApiSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{ColumnarRule, SparkPlan, SparkStrategy}
import org.slf4j.LoggerFactory
import scala.util.control.NonFatal

/**
 * A place at which Spark calls a rule, with what it calls there. A rule names its hooks in its
 * description, and the extension injects them in the order of the registry.
 *
 * @param label Spark's own name of the place
 * @param why the reason for this place rather than another, one sentence
 */
sealed abstract class Hook(val label: String) {
  def why: String

  /** Registers the rule with Spark. */
  def inject(extensions: SparkSessionExtensions): Unit
}

object Hook {

  /** Not called by Spark: other rules ask for it while they estimate. */
  final case class OnDemand(why: String) extends Hook("on demand") {
    override def inject(extensions: SparkSessionExtensions): Unit = ()
  }

  /**
   * When a plan is about to be planned, before any strategy sees its operators, and again at each
   * adaptive re-plan. For what has to be remembered of a whole plan.
   */
  final case class EachPlan(why: String, rule: RuleDescription, switches: Switches)(
      val action: LogicalPlan => Unit
  ) extends Hook("injectPlannerStrategy") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectPlannerStrategy(_ => new GuardedObserver(rule, switches, action))
  }

  /** In Spark's operator batches, to a fixed point; IN and EXISTS are still expressions. */
  final case class OptimizerBatch(why: String)(val create: SparkSession => GuardedRule)
      extends Hook("injectOptimizerRule") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectOptimizerRule(session => made(create(classicOf(session)), NoRule))
  }

  /** Once, after predicates have been pushed down, before scans are pruned and joins reordered. */
  final case class PreCbo(why: String)(val create: SparkSession => GuardedRule)
      extends Hook("injectPreCBORule") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectPreCBORule(session => made(create(classicOf(session)), NoRule))
  }

  /**
   * After everything else of Spark's optimizer, to a fixed point: IN and EXISTS are joins, filters
   * injected.
   */
  final case class LateBatch(why: String)(val create: SparkSession => GuardedRule)
      extends Hook("experimental.extraOptimizations") {
    override def inject(extensions: SparkSessionExtensions): Unit = {
      val injection = new LateRule.Injection
      extensions.injectPostHocResolutionRule { session =>
        made(
          new AppendLateRule(session, new LateRule(injection, create(classicOf(session)))),
          NoRule
        )
      }
    }
  }

  /** On the logical plan of what is left to run, at each adaptive re-plan. */
  final case class RuntimeOptimizer(why: String)(val create: SparkSession => GuardedRule)
      extends Hook("injectRuntimeOptimizerRule") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectRuntimeOptimizerRule(session => made(create(classicOf(session)), NoRule))
  }

  /** Asked for the operators of each logical node, before Spark's strategies, at each re-plan too. */
  final case class PlannerStrategy(why: String)(val create: SparkSession => GuardedStrategy)
      extends Hook("injectPlannerStrategy") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectPlannerStrategy(session => made(create(classicOf(session)), NoStrategy))
  }

  /** On the physical plan, with its shuffles, before adaptive execution makes stages of it. */
  final case class StagePreparation(why: String)(val create: SparkSession => GuardedPhysicalRule)
      extends Hook("injectQueryStagePrepRule") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectQueryStagePrepRule(session =>
        made(create(classicOf(session)), NoRuleOnOperators)
      )
  }

  /** On the plan of one stage, when it is about to run. */
  final case class StageOptimization(why: String)(val create: SparkSession => GuardedPhysicalRule)
      extends Hook("injectQueryStageOptimizerRule") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectQueryStageOptimizerRule(session =>
        made(create(classicOf(session)), NoRuleOnOperators)
      )
  }

  /** On the physical plan before Spark puts in transitions between rows and columns. */
  final case class BeforeColumnar(why: String)(val create: SparkSession => GuardedPhysicalRule)
      extends Hook("injectColumnar (before transitions)") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectColumnar { session =>
        val rule: Rule[SparkPlan] = made(create(classicOf(session)), NoRuleOnOperators)
        new ColumnarRule { override def preColumnarTransitions: Rule[SparkPlan] = rule }
      }
  }

  /** On the physical plan after that, before code is generated for whole stages. */
  final case class AfterColumnar(why: String)(val create: SparkSession => GuardedPhysicalRule)
      extends Hook("injectColumnar (after transitions)") {
    override def inject(extensions: SparkSessionExtensions): Unit =
      extensions.injectColumnar { session =>
        val rule: Rule[SparkPlan] = made(create(classicOf(session)), NoRuleOnOperators)
        new ColumnarRule { override def postColumnarTransitions: Rule[SparkPlan] = rule }
      }
  }

  private val log = LoggerFactory.getLogger("io.selinger")

  /** A rule that cannot even be made (it does not link, say) must not cost the session. */
  private def made[A](rule: => A, instead: A): A =
    try rule
    catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        log.warn(s"A rule could not be loaded and is left out of this session: $error", error)
        instead
    }

  private object NoRule extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = plan
  }

  private object NoRuleOnOperators extends Rule[SparkPlan] {
    override def apply(plan: SparkPlan): SparkPlan = plan
  }

  private object NoStrategy extends SparkStrategy {
    override def apply(plan: LogicalPlan): Seq[SparkPlan] = Nil
  }

  /** Extensions are applied where queries run, and every session there is a classic one. */
  private[selinger] def classicOf(session: ApiSession): SparkSession = session match {
    case known: SparkSession => known
    case other => throw new IllegalStateException(s"not a classic Spark session: ${other.getClass}")
  }
}

/**
 * A rule as it stands in the late batch of a session.
 *
 * @param injection that it comes from; a rule may have several late hooks
 */
private final class LateRule(val injection: LateRule.Injection, rule: GuardedRule)
    extends Rule[LogicalPlan] {
  override val ruleName: String = rule.ruleName

  override def apply(plan: LogicalPlan): LogicalPlan = {
    RootDecisions.restore(plan)
    rule(plan)
  }
}

private object LateRule {

  /** One hook of one rule, the same for all sessions that it is injected into. */
  final class Injection
}

/**
 * Appends a rule to the session's late batch when the first query is analysed, since Spark has no
 * injection point for that batch. Changes no plan.
 */
private final class AppendLateRule(session: ApiSession, rule: LateRule) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan = {
    val late = session.experimental
    if (!late.extraOptimizations.exists(_ eq rule)) {
      late.synchronized {
        // A cloned session starts with the rules of the one that it was cloned from.
        val known = late.extraOptimizations.indexWhere {
          case other: LateRule => other.injection eq rule.injection
          case _ => false
        }
        late.extraOptimizations =
          if (known < 0) late.extraOptimizations :+ rule
          else late.extraOptimizations.updated(known, rule)
      }
    }
    plan
  }
}
