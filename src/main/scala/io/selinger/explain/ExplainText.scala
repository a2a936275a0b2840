package io.selinger.explain

import io.selinger.conf.SelingerConf
import io.selinger.core.{Amounts, Decision, Evidence, Outcome}

/** Decisions for people: one paragraph each, what was done before why. */
object ExplainText {

  def render(decisions: Seq[ShownDecision]): String = {
    val mode = SelingerConf.MODE.value
    // A plan that was made before the mode was set has its decisions all the same.
    if (mode == "off" && decisions.isEmpty) "mode off: plans are Spark's own"
    else if (decisions.isEmpty) s"mode $mode: nothing to decide"
    else {
      val counts = decisions
        .groupBy(_.decision.outcome.label)
        .toSeq
        .sortBy(_._1)
        .map { case (label, same) => s"${same.size} $label" }
      (s"mode $mode: ${counts.mkString(", ")}" +: decisions.map(paragraph)).mkString("\n")
    }
  }

  private def paragraph(shown: ShownDecision): String = {
    val d = shown.decision
    val what = (d.outcome, d.chosen, d.stock) match {
      case (Outcome.Changed, Some(chosen), Some(stock)) => s"$chosen instead of $stock"
      case (Outcome.Advised, Some(chosen), Some(stock)) => s"would be $chosen instead of $stock"
      // An order is written, an operator is Spark's.
      case (Outcome.Same, Some(chosen), Some(_)) if d.rule == "reorderJoins" =>
        s"$chosen, as written"
      case (Outcome.Same, Some(chosen), Some(_)) => s"$chosen, as Spark"
      case (_, Some(chosen), _) => chosen
      case (Outcome.Informed, _, _) => "statistics"
      case (outcome, _, _) => outcome.label
    }
    val first = shown.first.flatMap(_.chosen).map(c => s" (before it ran: $c)").getOrElse("")
    val lines = Seq(
      s"* ${d.node}: $what$first",
      s"    ${d.reason.code} (${d.rule}, ${d.phase.label}): ${d.reason.sentence}"
    ) ++
      d.detail.map(detail => s"    $detail") ++
      evidence(d.evidence) ++
      d.setting.map(key => s"    setting: $key (now ${readable(key)})")
    lines.mkString("\n")
  }

  private def evidence(numbers: Seq[Evidence]): Option[String] =
    if (numbers.isEmpty) None
    else Some(numbers.map(n => s"${n.name} ${amount(n)} (${n.origin.label})").mkString(
      "    ",
      ", ",
      ""
    ))

  private def amount(number: Evidence): String = number.unit match {
    case "bytes" => Amounts.bytes(number.value)
    case "rows" | "files" | "groups" | "places" => Amounts.count(number.value)
    case unit => s"${Amounts.number(number.value)} $unit"
  }

  /** The present value of the setting that a decision names, ours or Spark's. */
  def setting(key: String): String =
    SelingerConf.textOf(key).getOrElse("unset")

  /** The same as people read it: 0 and an empty text mean that nothing was set. */
  private def readable(key: String): String = setting(key) match {
    case "0" if key == SelingerConf.BROADCAST_MAX_BYTES.key => "0: automatic"
    case "" => "empty"
    case value => value
  }

  def settingOf(decision: Decision): Option[(String, String)] =
    decision.setting.map(key => key -> setting(key))
}
