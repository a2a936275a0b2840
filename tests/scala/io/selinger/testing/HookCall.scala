package io.selinger.testing

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  GuardedObserver,
  GuardedPhysicalRule,
  GuardedRule,
  GuardedStrategy,
  Hook,
  OpenPlanningPass
}
import io.selinger.strategy.JoinReduction
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan, ReturnAnswer, Statistics}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{
  ColumnarToRowExec,
  InputAdapter,
  QueryExecution,
  SparkPlan,
  WholeStageCodegenExec
}
import org.apache.spark.sql.execution.adaptive.{
  AdaptiveSparkPlanExec,
  LogicalQueryStage,
  QueryStageExec,
  ShuffleQueryStageExec
}
import scala.util.Try

/**
 * A query as stock Spark has planned it. Each use gets copies, which carry nothing of what another rule
 * has done.
 */
final class StockPlan(
    beforeCboOnce: LogicalPlan,
    optimizedOnce: LogicalPlan,
    preparedOnce: SparkPlan,
    run: => QueryExecution
) {

  private lazy val execution: Option[QueryExecution] = Try(run).toOption

  /** As rules of injectPreCBORule get it: IN and EXISTS are no joins yet. */
  def beforeCbo: LogicalPlan = beforeCboOnce.clone()

  def optimized: LogicalPlan = optimizedOnce.clone()

  /** With the shuffles and sorts that its operators require. */
  def prepared: SparkPlan = preparedOnce.clone()

  /**
   * The plans of all stages as they were before code was generated for them, with the stages that they
   * read, which have finished. None where the query fails.
   */
  lazy val stages: Seq[SparkPlan] =
    execution.toSeq.flatMap(known => StockPlan.stagesOf(known.executedPlan))

  /** Logical plans of which one shuffle has finished; the other sides of all joins wait for it. */
  lazy val begun: Seq[LogicalPlan] = execution.toSeq.flatMap { known =>
    Plans.operators(known.executedPlan).distinct.collect { case stage: ShuffleQueryStageExec =>
      stage.logicalLink.collect { case LogicalQueryStage(shuffled, _) =>
        known.optimizedPlan.clone().transformDown {
          case plan if plan == shuffled => LogicalQueryStage(plan, stage)
        }
      }
    }.flatten.filter(_.exists(_.isInstanceOf[LogicalQueryStage])).map { plan =>
      // As awaitBuildSide leaves them.
      plan.foreach { case join: Join => JoinReduction.await(join); case _ => () }
      plan
    }
  }
}

object StockPlan {

  def of(session: SparkSession, text: String): StockPlan =
    SharedSession.withConf(session, Seq(SelingerConf.MODE.key -> "off")) {
      val (execution, beforeCbo) = BeforeCbo.during {
        val execution = Plans.execution(session.sql(text))
        val _ = execution.optimizedPlan
        execution
      }
      val prepared = execution.executedPlan match {
        case adaptive: AdaptiveSparkPlanExec => adaptive.initialPlan
        case plan => plan
      }
      new StockPlan(
        beforeCbo.getOrElse(execution.optimizedPlan),
        execution.optimizedPlan,
        prepared,
        ran(session, text)
      )
    }

  private def ran(session: SparkSession, text: String): QueryExecution = {
    // Rules that act while a query runs use what others have read when it was planned.
    SharedSession.withConf(session, Seq(SelingerConf.MODE.key -> "on")) {
      Plans.execution(session.sql(text)).executedPlan
    }
    SharedSession.withConf(session, Seq(SelingerConf.MODE.key -> "off")) {
      val df = session.sql(text)
      df.collect()
      Plans.execution(df)
    }
  }

  private def stagesOf(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => stagesOf(adaptive.executedPlan)
    case _ =>
      withoutGeneratedCode(plan) +: plan.collect { case stage: QueryStageExec =>
        stagesOf(stage.plan)
      }.flatten
  }

  private def withoutGeneratedCode(plan: SparkPlan): SparkPlan = plan.transformUp {
    case generated: WholeStageCodegenExec => generated.child
    case input: InputAdapter => input.child
    case rows: ColumnarToRowExec => rows.child
  }
}

/** A rule at one of its hooks, called as Spark would call it. */
sealed abstract class HookCall {

  /** Whether the plan, or what Spark's statistics say of it, is another one afterwards. */
  def changes(query: StockPlan): Boolean

  /** Whether the rule does its work at all. */
  def runs(query: StockPlan): Boolean = changes(query)

  /** Whether a second run leaves the result of the first as it is. */
  def isSettled(query: StockPlan): Boolean
}

object HookCall {

  /** None where Spark has no such hook. */
  def of(hook: Hook, session: SparkSession): Option[HookCall] = hook match {
    case _: Hook.OnDemand => None
    case known: Hook.EachPlan => Some(new OfObserver(known))
    case known: Hook.OptimizerBatch => Some(new OfRule(known.create(session)))
    case known: Hook.PreCbo => Some(new OfRule(known.create(session), _.beforeCbo))
    case known: Hook.LateBatch => Some(new OfRule(known.create(session)))
    case known: Hook.RuntimeOptimizer => Some(new OfReplan(known.create(session)))
    case known: Hook.StagePreparation => Some(new OfPhysicalRule(known.create(session)))
    case known: Hook.StageOptimization => Some(new OfPhysicalRule(known.create(session)))
    case known: Hook.BeforeColumnar => Some(new OfPhysicalRule(known.create(session)))
    case known: Hook.AfterColumnar => Some(new OfPhysicalRule(known.create(session)))
    case known: Hook.PlannerStrategy => Some(new OfStrategy(known.create(session)))
  }

  private def statistics(plan: LogicalPlan): Seq[Statistics] = plan.map(_.stats)

  private final class OfRule(rule: GuardedRule, planOf: StockPlan => LogicalPlan = _.optimized)
      extends HookCall {

    override def changes(query: StockPlan): Boolean = {
      val plan = planOf(query)
      val before = statistics(plan)
      (rule(plan) ne plan) || statistics(plan) != before
    }

    override def isSettled(query: StockPlan): Boolean = {
      val once = rule(planOf(query))
      val before = statistics(once)
      rule(once).fastEquals(once) && statistics(once) == before
    }
  }

  private final class OfReplan(rule: GuardedRule) extends HookCall {

    override def changes(query: StockPlan): Boolean =
      query.begun.exists(plan => rule(plan) ne plan)

    override def isSettled(query: StockPlan): Boolean = query.begun.forall { plan =>
      val once = rule(plan)
      rule(once).fastEquals(once)
    }
  }

  private final class OfPhysicalRule(rule: GuardedPhysicalRule) extends HookCall {

    override def changes(query: StockPlan): Boolean = {
      val plan = query.prepared
      (rule(plan) ne plan) || query.stages.exists(stage => rule(stage) ne stage)
    }

    override def isSettled(query: StockPlan): Boolean =
      (query.prepared +: query.stages).forall { plan =>
        val once = rule(plan)
        rule(once).fastEquals(once)
      }
  }

  private final class OfStrategy(rule: GuardedStrategy) extends HookCall {

    private def planned(plan: LogicalPlan): Seq[Seq[SparkPlan]] = {
      val _ = OpenPlanningPass(ReturnAnswer(plan)) ++ rule(ReturnAnswer(plan))
      plan.collect { case node => rule(node) }
    }

    override def changes(query: StockPlan): Boolean = planned(query.optimized).exists(_.nonEmpty)

    override def isSettled(query: StockPlan): Boolean = {
      // Columns that a strategy makes, such as the buffers of an aggregation, are new each time.
      def again = planned(query.optimized).map(_.map(_.canonicalized))
      again == again
    }
  }

  private final class OfObserver(hook: Hook.EachPlan) extends HookCall {

    /** Whether it was run, and what Spark knows of the plan then. */
    private def observed(plan: LogicalPlan): (Boolean, Seq[Statistics]) = {
      var ran = false
      val observer = new GuardedObserver(
        hook.rule,
        hook.switches,
        plan => {
          ran = true
          hook.action(plan)
        }
      )
      val _ = OpenPlanningPass(ReturnAnswer(plan)) ++ observer(ReturnAnswer(plan))
      (ran, statistics(plan))
    }

    override def changes(query: StockPlan): Boolean = {
      val plan = query.optimized
      val before = statistics(plan)
      observed(plan)._2 != before
    }

    override def runs(query: StockPlan): Boolean = observed(query.optimized)._1

    override def isSettled(query: StockPlan): Boolean = {
      val plan = query.optimized
      observed(plan) == observed(plan)
    }
  }
}
