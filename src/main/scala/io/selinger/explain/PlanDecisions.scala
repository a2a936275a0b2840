package io.selinger.explain

import io.selinger.core.{Decision, Outcome, Phase}
import org.apache.spark.sql.catalyst.plans.logical.LeafNode
import org.apache.spark.sql.execution.{CommandResultExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import scala.collection.mutable

/**
 * A decision as explain shows it.
 *
 * @param first what had been chosen before the query ran, where a re-plan chose something else
 */
final case class ShownDecision(decision: Decision, first: Option[Decision])

/** Collects the decisions that a physical plan carries, each once, root first, facts last. */
object PlanDecisions {

  def shown(plan: SparkPlan): Seq[ShownDecision] = {
    val last = collect(plan, current = true)
    val first = collect(plan, current = false)
    val known = first.map(decision => keyOf(decision) -> decision).toMap
    val shown = last.map { decision =>
      val before = known
        .get(keyOf(decision))
        .filter(d => d.phase == Phase.Static && decision.phase == Phase.Adaptive)
        .filter(_.chosen != decision.chosen)
      ShownDecision(decision, before)
    }
    // What adaptive execution found to be empty is no longer in the plan, but it was decided.
    val present = last.map(keyOf).toSet
    val emptied = first.filterNot(decision => present(keyOf(decision))).map(ShownDecision(_, None))
    val (facts, decisions) = (shown ++ emptied).partition(_.decision.outcome == Outcome.Informed)
    decisions ++ facts
  }

  private def keyOf(decision: Decision): (String, String) = (decision.rule, decision.key)

  /** @param current the plan as it is now, rather than as it was before the query ran */
  private def collect(root: SparkPlan, current: Boolean): Seq[Decision] = {
    val found = mutable.LinkedHashMap.empty[(String, String), Decision]

    def add(decisions: Seq[Decision]): Unit = decisions.foreach { decision =>
      val _ = found.getOrElseUpdate(keyOf(decision), decision)
    }

    def visit(plan: SparkPlan): Unit = {
      add(ofNode(plan))
      plan match {
        case adaptive: AdaptiveSparkPlanExec =>
          visit(if (current) adaptive.executedPlan else adaptive.initialPlan)
        case stage: QueryStageExec => visit(stage.plan)
        case command: CommandResultExec => visit(command.commandPhysicalPlan)
        // Shown where the exchange is first.
        case _: ReusedExchangeExec => ()
        case other =>
          other.children.foreach(visit)
          other.subqueries.foreach(visit)
      }
    }

    visit(root)
    found.values.toSeq
  }

  /** Of the operator itself, and of the logical one that it runs: its own come first. */
  private def ofNode(plan: SparkPlan): Seq[Decision] =
    Decision.recordedAt(plan) ++ plan.logicalLink.toSeq
      .filterNot(_.isInstanceOf[LeafNode])
      .flatMap(Decision.recordedAt(_))
}
