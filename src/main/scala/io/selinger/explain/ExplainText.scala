package io.selinger.explain

import io.selinger.conf.SelingerConf
import io.selinger.core.{Amounts, Decision, Evidence, JoinSides, Origin, Outcome, Phase}

/** Decisions for people: a verdict, then one paragraph each, what was done before why. */
object ExplainText {

  /** @param all whether to show what changes nothing, and all numbers */
  def render(explained: Explained, all: Boolean): String = {
    val shown = if (all) explained.decisions else explained.changes
    val paragraphs = shown.map(decision => bulleted(paragraph(decision, all)))
    val truth =
      if (all && explained.inputs.nonEmpty) {
        explained.truth.toSeq ++ explained.inputs.map(input => s"    ${input.text}")
      } else explained.truth.toSeq
    val more = if (all) None else explained.more
    (explained.verdict +: (paragraphs ++ truth ++ more)).mkString("\n")
  }

  private def bulleted(lines: Seq[String]): String =
    (s"* ${lines.head}" +: lines.tail.map(line => s"    $line")).mkString("\n")

  /** The first line says what was done; those after it why, by which numbers, and how to change it. */
  def paragraph(shown: ShownDecision, all: Boolean): Seq[String] = {
    val d = shown.decision
    val labels = new Labels(d.sides)
    Seq(headline(shown, labels)) ++
      Option.when(all && d.title.isDefined && d.sides.isDefined)(d.node) ++
      Seq(s"${d.reason.sentence} [${d.reason.code}]") ++
      d.detail.map(_ + ".") ++
      (if (all) Numbers.all(d, labels) else Numbers.brief(d, labels)) ++
      toChange(d)
  }

  private def headline(shown: ShownDecision, labels: Labels): String = {
    val d = shown.decision
    def chosen = d.chosen.map(labels.action)
    // The operator that Spark would run is named, not described.
    def stock = d.stock.map(labels.operator)
    val what = (d.outcome, chosen, stock) match {
      case (Outcome.Changed, Some(chosen), Some(stock)) => s"$chosen instead of $stock"
      case (Outcome.Advised, Some(chosen), Some(stock)) => s"would be $chosen instead of $stock"
      // An order is written, an operator is Spark's.
      case (Outcome.Same, Some(chosen), Some(_)) if d.tables.isDefined => s"$chosen, as written"
      case (Outcome.Same, Some(chosen), Some(_)) => s"$chosen, as in Spark's own plan"
      case (_, Some(chosen), _) => chosen
      case (Outcome.Informed, _, _) => "statistics"
      case (Outcome.Changed | Outcome.Advised, _, _) if Verdict.changes.contains(d.rule) =>
        Verdict.changes(d.rule)._1
      case (Outcome.Advised, _, _) => "would change"
      case (Outcome.Declined, _, _) => "left to Spark"
      case (outcome, _, _) => outcome.label
    }
    val first = shown.first.flatMap(_.chosen).map(labels.operator)
    val when =
      if (d.phase == Phase.Adaptive) {
        val before = first.fold("")(c => s"; before it ran: $c")
        s" (decided while the query ran$before)"
      } else ""
    s"${d.title.getOrElse(d.node)}: $what$when"
  }

  private def toChange(d: Decision): Option[String] = {
    val purpose =
      if (Explained.isChange(ShownDecision(d, None))) "To undo it" else "To change it"
    def set(key: String, to: String) =
      if (to.isEmpty) s"$purpose: RESET $key (now ${readable(key)})"
      else s"$purpose: SET $key = $to (now ${readable(key)})"
    (for (key <- d.setting; to <- d.settingTo) yield set(key, to))
      .orElse(Option.when(d.outcome == Outcome.Declined && d.reason.advice != "Nothing to do.")(
        s"What you can do: ${d.reason.advice}"
      ))
  }

  /** The present value of the setting that a decision names, ours or Spark's. */
  def setting(key: String): String =
    SelingerConf.textOf(key).getOrElse("unset")

  /** The same as people read it: 0 and an empty text mean that nothing was set. */
  private def readable(key: String): String = setting(key) match {
    case "0" if key == SelingerConf.BROADCAST_MAX_BYTES.key => "0, which means automatic"
    case "" => "empty"
    case value => value
  }

  def settingOf(decision: Decision): Option[(String, String)] =
    decision.setting.map(key => key -> setting(key))

  /** Operators that build one side, said with the name of that side. */
  private[explain] final class Labels(sides: Option[JoinSides]) {

    private def named(text: String): String = sides.fold(text) { known =>
      text.replace("(left)", s" of ${known.left}").replace("(right)", s" of ${known.right}")
    }

    /** `ShuffledHashJoin of customers`. */
    def operator(label: String): String = side(named(label))

    /** `broadcast customers (BroadcastHashJoin)`. */
    def action(label: String): String = (label, sides) match {
      case (Built(operator, isLeft), Some(known)) =>
        val build = if (isLeft) known.left else known.right
        if (operator.startsWith("Broadcast")) s"broadcast $build ($operator)"
        else s"shuffle both sides and hash $build ($operator)"
      case _ => operator(label)
    }

    private def side(label: String): String = sides.fold(label) { known =>
      label.replace("left side", known.left).replace("right side", known.right)
    }
  }

  private object Built {
    def unapply(label: String): Option[(String, Boolean)] =
      if (label.endsWith("(left)")) Some((label.stripSuffix("(left)"), true))
      else if (label.endsWith("(right)")) Some((label.stripSuffix("(right)"), false))
      else None
  }

  private object Numbers {

    private val cost = "cost of "

    /** What decides: rows, what must fit into memory, and what the choice is expected to cost. */
    def brief(d: Decision, labels: Labels): Seq[String] = lines(d, labels, all = false)

    def all(d: Decision, labels: Labels): Seq[String] = lines(d, labels, all = true)

    private def lines(d: Decision, labels: Labels, all: Boolean): Seq[String] = {
      val (costs, others) = d.evidence.partition(isOperatorCost(_, d))
      sides(d, others, all) ++ rest(d, others) ++ operatorCosts(d, costs, labels, all)
    }

    private def isOperatorCost(number: Evidence, d: Decision): Boolean =
      d.sides.isDefined && number.name.startsWith(cost) &&
        number.name.stripPrefix(cost).headOption.exists(_.isUpper)

    /** Each side of a join by its name: `customers: 2,699 rows (sampled), at most 4,839`. */
    private def sides(d: Decision, numbers: Seq[Evidence], all: Boolean): Seq[String] =
      d.sides.toSeq.flatMap { known =>
        val builds = d.chosen.collect { case Built(_, isLeft) => isLeft }
        Seq((known.left, "left ", true), (known.right, "right ", false)).flatMap {
          case (name, prefix, isLeft) =>
            val own = numbers.filter(_.name.startsWith(prefix))
            val shown = own.filter(n => all || !isTable(n) || builds.contains(isLeft))
            Option.when(shown.nonEmpty)(s"$name: ${shown.map(ofSide(_, prefix)).mkString(", ")}")
        }
      }

    private def isTable(number: Evidence): Boolean = number.name.endsWith("hash table")

    private def ofSide(number: Evidence, prefix: String): String =
      number.name.stripPrefix(prefix) match {
        case "rows" => s"${amount(number)} rows (${known(number.origin)})"
        case "rows at most" => s"at most ${amount(number)}"
        case "broadcast once for" => s"broadcast once for ${amount(number)}"
        case other => s"$other ${amount(number)}"
      }

    private def rest(d: Decision, numbers: Seq[Evidence]): Option[String] = {
      val others = numbers.filterNot { n =>
        d.sides.isDefined && (n.name.startsWith("left ") || n.name.startsWith("right "))
      }
      Option.when(others.nonEmpty)(others.map(single).mkString(", "))
    }

    private def single(number: Evidence): String = {
      val text = s"${number.name} ${amount(number)}"
      if (number.unit == "rows") s"$text${unitOf(number)} (${known(number.origin)})"
      else s"$text${unitOf(number)}"
    }

    private val countedAs = Seq("rows", "groups", "files", "footers", "columns", "places")

    /** A unit that the name does not tell. */
    private def unitOf(number: Evidence): String =
      if (!countedAs.contains(number.unit) || countedAs.exists(number.name.contains)) ""
      else s" ${number.unit}"

    /** What each operator is expected to cost; of those that read the same, that it decided nothing. */
    private def operatorCosts(
        d: Decision,
        costs: Seq[Evidence],
        labels: Labels,
        all: Boolean
    ): Option[String] = {
      def label(number: Evidence) = number.name.stripPrefix(cost)
      val mine = costs.find(number => d.chosen.contains(label(number)))
      mine match {
        case None if costs.isEmpty || !all => None
        case None => Some(costs.map(n => s"${labels.operator(label(n))} ${amount(n)}").mkString(
            "expected cost: ",
            ", ",
            ""
          ))
        case Some(chosen) =>
          val others = costs.filterNot(_ eq chosen)
          val (equal, different) = others.partition(amount(_) == amount(chosen))
          val listed =
            if (all) different else different.filter(n => d.stock.contains(label(n)))
          val same = Option.when(equal.nonEmpty)(
            s"${equal.map(n => labels.operator(label(n))).mkString(" and ")} the same"
          )
          val parts = s"expected cost ${amount(chosen)}" +:
            (listed.map(n => s"${labels.operator(label(n))} ${amount(n)}") ++ same)
          Some(parts.mkString(", "))
      }
    }
  }

  private[explain] def amount(number: Evidence): String = number.unit match {
    case "bytes" => Amounts.bytes(number.value)
    case "rows" | "files" | "groups" | "places" | "columns" => Amounts.count(number.value)
    case unit => s"${Amounts.number(number.value)} $unit"
  }

  /** How a number is known, in words. */
  private def known(origin: Origin): String = origin match {
    case Origin.Exact => "counted"
    case Origin.Measured => "measured"
    case Origin.Sampled => "sampled"
    case Origin.Derived => "estimated"
    case Origin.Default => "assumed"
  }
}
