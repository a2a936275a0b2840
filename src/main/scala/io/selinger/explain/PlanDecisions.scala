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
 * @param isOrdered whether it is about a join whose cost is part of the cost of an order
 */
final case class ShownDecision(
    decision: Decision,
    first: Option[Decision],
    isOrdered: Boolean = false
)

/** Collects the decisions that a physical plan carries, each once, root first, facts last. */
object PlanDecisions {

  def shown(plan: SparkPlan): Seq[ShownDecision] = {
    val last = collect(plan, current = true)
    val first = collect(plan, current = false)
    val ordered = orderedJoins(plan)
    val known = first.map(decision => keyOf(decision) -> decision).toMap
    val shown = last.map { decision =>
      val before = known
        .get(keyOf(decision))
        .filter(d => d.phase == Phase.Static && decision.phase == Phase.Adaptive)
        .filter(_.chosen != decision.chosen)
      ShownDecision(decision, before, ordered(decision.key))
    }
    // What adaptive execution found to be empty is no longer in the plan, but it was decided.
    val present = last.map(keyOf).toSet
    val emptied = first.filterNot(decision => present(keyOf(decision)))
      .map(decision => ShownDecision(decision, None, ordered(decision.key)))
    val (facts, decisions) = (shown ++ emptied).partition(_.decision.outcome == Outcome.Informed)
    decisions ++ facts
  }

  private def keyOf(decision: Decision): (String, String) = (decision.rule, decision.key)

  /** Keys of decisions about joins that are part of an order. */
  private def orderedJoins(plan: SparkPlan): Set[String] = {
    val keys = mutable.HashSet.empty[String]
    visit(plan, current = false) { node =>
      if (node.logicalLink.exists(Decision.isOrdered(_))) {
        // The order itself is recorded at one of its joins.
        keys ++= ofNode(node).filter(_.sides.isDefined).map(_.key)
      }
    }
    keys.toSet
  }

  /** @param current the plan as it is now, rather than as it was before the query ran */
  private[explain] def collect(root: SparkPlan, current: Boolean): Seq[Decision] = {
    val found = mutable.LinkedHashMap.empty[(String, String), Decision]

    def add(decisions: Seq[Decision]): Unit = decisions.foreach { decision =>
      val _ = found.getOrElseUpdate(keyOf(decision), decision)
    }

    visit(root, current)(node => add(ofNode(node)))
    found.values.toSeq
  }

  /** All operators from the root on, those of stages, commands and subqueries included. */
  private def visit(plan: SparkPlan, current: Boolean)(see: SparkPlan => Unit): Unit = {
    see(plan)
    plan match {
      case adaptive: AdaptiveSparkPlanExec =>
        visit(if (current) adaptive.executedPlan else adaptive.initialPlan, current)(see)
      case stage: QueryStageExec => visit(stage.plan, current)(see)
      case command: CommandResultExec => visit(command.commandPhysicalPlan, current)(see)
      // Shown where the exchange is first.
      case _: ReusedExchangeExec => ()
      case other =>
        other.children.foreach(visit(_, current)(see))
        other.subqueries.foreach(visit(_, current)(see))
    }
  }

  /** Of the operator itself, and of the logical one that it runs: its own come first. */
  private[explain] def ofNode(plan: SparkPlan): Seq[Decision] =
    Decision.recordedAt(plan) ++ plan.logicalLink.toSeq.flatMap {
      case leaf: LeafNode => Decision.recordedAtLeaf(leaf)
      case node => Decision.recordedAt(node)
    }
}
