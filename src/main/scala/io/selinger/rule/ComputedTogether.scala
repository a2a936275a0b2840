package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  NodeText,
  Origin,
  Outcome,
  Reason,
  Remedy,
  RuleDescription
}
import io.selinger.cost.Work
import io.selinger.estimate.plans.{RelationNames, UnknownRows}
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
  private def nameOf(count: Int, subplan: LogicalPlan): String = {
    val relations = subplan.collectLeaves().map(RelationNames.ofLeaf).distinct
    val what = if (count == 1) "Aggregation" else s"$count aggregations"
    NodeText.shorten(s"$what over ${relations.mkString(", ")}")
  }

  /** Says of a subplan why it is computed by itself. */
  def decline(
      rule: RuleDescription,
      subplan: LogicalPlan,
      reason: Reason,
      compared: ComputedTogether,
      remedy: Option[Remedy]
  ): Unit = Decision.record(
    subplan,
    Decision(
      rule = rule.id,
      node = nameOf(1, subplan),
      key = NodeText.key(subplan),
      outcome = Outcome.Declined,
      reason = reason,
      // The rows of an aggregation without groups are known, whatever it reads.
      detail = UnknownRows.detail(reason, subplan.children: _*),
      evidence = compared.evidence,
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value)
    )
  )

  /**
   * About subplans that are computed together.
   *
   * @param subplans in all places, some of which may be equal
   * @param distinct number of different ones
   * @param unit what there is one of instead, such as a pass over the data, and its plural
   */
  def decision(
      rule: RuleDescription,
      subplans: Seq[LogicalPlan],
      distinct: Int,
      outcome: Outcome,
      reason: Reason,
      unit: (String, String),
      compared: ComputedTogether
  ): Decision = {
    val undo = compared.undo(rule.switch)
    Decision(
      rule = rule.id,
      node = nameOf(distinct, subplans.head),
      key = subplans.map(NodeText.key).mkString(" "),
      outcome = outcome,
      reason = reason,
      chosen = Some(s"1 ${unit._1}"),
      stock = Some(s"$distinct ${unit._2}"),
      evidence = compared.evidence,
      setting = Some(undo.key),
      settingTo = undo.value,
      work = compared.expected
    )
  }
}
