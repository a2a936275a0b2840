package io.selinger.explain

import io.selinger.conf.SelingerConf
import io.selinger.core.Outcome
import org.apache.spark.sql.execution.SparkPlan

/**
 * All that explain says of a plan, in whatever form.
 *
 * @param inputs the inputs of joins, estimated and counted, as far as the plan has run
 * @param nothing why nothing was decided, where that is so; empty where nobody would ask
 */
final case class Explained(
    mode: String,
    decisions: Seq[ShownDecision],
    inputs: Seq[CountedInput],
    nothing: Option[String]
) {

  /** The first line: what came of it all. */
  def verdict: String = nothing.getOrElse(Verdict.of(mode, decisions))

  /** What is shown where not everything is asked for. */
  def changes: Seq[ShownDecision] = decisions.filter(Explained.isChange)

  /** How to see what is not shown; none where all is. */
  def more: Option[String] = {
    val (facts, kept) =
      decisions.filterNot(Explained.isChange).partition(_.decision.outcome == Outcome.Informed)
    val parts = Seq(
      Verdict.counted(kept.size, "decision that changes nothing", "decisions that change nothing"),
      Verdict.counted(facts.size, "note about statistics", "notes about statistics")
    ).flatten
    Option.when(parts.nonEmpty)(
      s"Not shown: ${parts.mkString(" and ")}. To see all: SET ${SelingerConf.EXPLAIN_ALL.key} = " +
        "true, or selinger.explain(df, all=True) in Python."
    )
  }

  /** What the run said of the estimates. */
  def truth: Option[String] = CountedInput.summary(inputs)
}

object Explained {

  def of(plan: SparkPlan): Explained = {
    val decisions = PlanDecisions.shown(plan)
    val mode = SelingerConf.MODE.value
    Explained(
      mode,
      decisions,
      CountedInput.of(plan),
      Option.when(decisions.isEmpty)(NothingDecided.why(plan, mode))
    )
  }

  private val changing = Set[Outcome](Outcome.Changed, Outcome.Advised, Outcome.Failed)

  private[explain] def isChange(shown: ShownDecision): Boolean = changing(shown.decision.outcome)
}
