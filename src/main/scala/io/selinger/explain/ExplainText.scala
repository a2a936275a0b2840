package io.selinger.explain

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Evidence, Outcome}
import org.apache.spark.sql.internal.SQLConf

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
      case (_, Some(chosen), _) => chosen
      case (outcome, _, _) => outcome.label
    }
    val first = shown.first.flatMap(_.chosen).map(c => s" (before it ran: $c)").getOrElse("")
    val lines = Seq(
      s"* ${d.node}: $what$first",
      s"    ${d.reason.code} (${d.rule}, ${d.phase.label}): ${d.reason.sentence}"
    ) ++
      d.detail.map(detail => s"    $detail") ++
      evidence(d.evidence) ++
      d.setting.map(key => s"    to change: $key = ${setting(key)}")
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
    case "bytes" => bytes(number.value)
    case "rows" | "files" | "groups" => grouped(number.value)
    case unit => f"${number.value}%.3g $unit"
  }

  private def grouped(value: Double): String =
    if (value >= 1e15) f"$value%.1e" else f"${math.round(value)}%,d"

  private def bytes(value: Double): String =
    if (value >= (1L << 30)) f"${value / (1L << 30)}%.1f GiB"
    else if (value >= (1L << 20)) f"${value / (1L << 20)}%.1f MiB"
    else f"${value / (1L << 10)}%.1f KiB"

  /** The present value of the setting that a decision names, ours or Spark's. */
  def setting(key: String): String =
    SelingerConf.all.find(_.key == key).map(_.text).getOrElse(SQLConf.get.getConfString(
      key,
      "unset"
    ))

  def settingOf(decision: Decision): Option[(String, String)] =
    decision.setting.map(key => key -> setting(key))
}
