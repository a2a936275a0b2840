package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Evidence, ExpectedWork, NodeText, Origin, Reason, Remedy}
import io.selinger.cost.Work
import io.selinger.estimate.plans.RelationNames
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * What it takes to compute subplans each by itself, and all together; none where that is not known.
 */
private[rule] final case class ComputedTogether(apart: Option[Work], together: Option[Work]) {

  def isKnown: Boolean = apart.isDefined && together.isDefined

  /** The share of their cost that computing them together saves. */
  def gain: Option[Double] =
    for (one <- apart; other <- together if one.seconds > 0.0)
      yield 1.0 - other.seconds / one.seconds

  def saves(minGain: Double): Boolean =
    (for (one <- apart; other <- together)
      yield other.seconds <= one.seconds * (1.0 - minGain)).contains(true)

  def evidence: Seq[Evidence] =
    Seq("apart" -> apart, "together" -> together).flatMap { case (how, known) =>
      known.toSeq.flatMap { work =>
        Seq(
          Evidence(s"cost $how", work.seconds, "s", Origin.Derived),
          Evidence(s"rows read $how", work.rowsRead, "rows", work.origin)
        )
      }
    }

  def expected: Option[ExpectedWork] =
    for (one <- apart; other <- together) yield ExpectedWork(one.seconds, other.seconds)

  /** What would keep them apart: a higher gain asked for, or `switch` off. */
  def undo(switch: String): Remedy = gain.flatMap(Remedy.above) match {
    case Some(more) => Remedy(SelingerConf.MERGE_MIN_GAIN.key, Some(more))
    case None => Remedy(switch, Some("false"))
  }

  /** What would put them together; none where nothing but another query would. */
  def remedy(reason: Reason): Option[Remedy] = reason match {
    case MergeSubplansByCost.CheaperApart =>
      Some(Remedy(SelingerConf.MERGE_MIN_GAIN.key, gain.flatMap(Remedy.below)))
    case Reason.BudgetExceeded =>
      val budget = SelingerConf.PLANNING_BUDGET_MS
      Some(Remedy(budget.key, Some((budget.value * 2).toString)))
    case _ => None
  }
}

private[rule] object ComputedTogether {
  val unknown: ComputedTogether = ComputedTogether(None, None)

  /** How explain calls `count` subplans like this one. */
  def nameOf(count: Int, subplan: LogicalPlan): String = {
    val relations = subplan.collectLeaves().map(RelationNames.ofLeaf).distinct
    val what = if (count == 1) "Aggregation" else s"$count aggregations"
    NodeText.shorten(s"$what over ${relations.mkString(", ")}")
  }
}
