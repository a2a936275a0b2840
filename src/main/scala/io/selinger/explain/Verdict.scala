package io.selinger.explain

import io.selinger.conf.SelingerConf
import io.selinger.core.{Amounts, Decision, ExpectedWork, Outcome, Reason}

/** What came of all decisions about a plan, in one line. */
private[explain] object Verdict {

  private val operators = "selectJoinOperator"
  private val orders = "reorderJoins"

  /** What one and several changes of a rule are called; a test asks for each rule that changes plans. */
  private[explain] val changes: Map[String, (String, String)] = Map(
    "reduceGroupedInput" -> (
      "aggregation or window without the rows that a join would drop",
      "aggregations or windows without the rows that joins would drop"
    ),
    "joinAfterGrouping" -> (
      "aggregation computed before its tables are joined",
      "aggregations computed before their tables are joined"
    ),
    "eliminateGrouping" -> ("GROUP BY or DISTINCT left out", "GROUP BYs or DISTINCTs left out"),
    "pushTopNBelowJoin" -> (
      "ORDER BY with LIMIT applied before a join",
      "ORDER BYs with LIMIT applied before joins"
    ),
    "pushAggregateBelowJoin" -> (
      "aggregation moved below a join",
      "aggregations moved below joins"
    ),
    "cascadeGroupingSets" ->
      (
        "GROUP BY with grouping sets computed without copies of rows",
        "GROUP BYs with grouping sets computed without copies of rows"
      ),
    "mergeSubplansByCost" ->
      ("group of aggregations computed in one pass", "groups of aggregations computed in one pass"),
    "computeAggregateAsWindow" -> (
      "aggregation computed as window functions",
      "aggregations computed as window functions"
    ),
    "shareSimilarAggregates" ->
      ("group of aggregations computed once", "groups of aggregations computed once"),
    "reuseFinerGroups" -> (
      "group of aggregations computed from the finest of them",
      "groups of aggregations computed from the finest of them"
    ),
    "sizeShuffles" -> (
      "part of the query shuffled into fewer partitions",
      "parts of the query shuffled into fewer partitions"
    ),
    "shuffleByCommonKeys" -> ("shuffle left out", "shuffles left out"),
    "awaitBuildSide" -> ("join waits for its small side", "joins wait for their small sides"),
    "reduceJoinInput" -> (
      "join reads only rows that have a key of its small side",
      "joins read only rows that have a key of their small sides"
    ),
    "pushJoinKeysIntoScan" -> (
      "scan skips what holds no key of a join",
      "scans skip what holds no key of a join"
    ),
    "selectAggregateOperator" ->
      ("aggregation hashed instead of sorted", "aggregations hashed instead of sorted"),
    "deduplicateSemiJoins" ->
      ("IN or EXISTS without duplicates", "INs or EXISTSs without duplicates"),
    "codeGroupedTexts" ->
      ("aggregation by numbers instead of texts", "aggregations by numbers instead of texts"),
    "splitDistinctAggregates" -> (
      "aggregation with each DISTINCT from its own column",
      "aggregations with each DISTINCT from its own column"
    ),
    "eliminateJoins" -> ("join left out", "joins left out"),
    "groupSelfJoins" -> (
      "table grouped instead of joined with itself",
      "tables grouped instead of joined with themselves"
    ),
    "removeImpliedLookups" ->
      ("superfluous lookup of an IN left out", "superfluous lookups of INs left out"),
    "unwrapFunctionsInFilters" ->
      ("filter by ranges instead of functions", "filters by ranges instead of functions"),
    "stopPartialAggregation" ->
      ("partial aggregation may stop", "partial aggregations may stop"),
    "filterRanksBeforeSort" ->
      ("window sorts fewer rows", "windows sort fewer rows"),
    "packSortKeys" -> (
      "sort by one packed number instead of several keys",
      "sorts by one packed number instead of several keys"
    ),
    "searchLikePatterns" ->
      ("LIKE without a regular expression", "LIKEs without a regular expression"),
    "computeDecimalsInLongs" ->
      ("operator computes decimals as integers", "operators compute decimals as integers")
  )

  private[explain] val counting: Set[String] = Set(operators, orders)

  def of(mode: String, decisions: Seq[ShownDecision]): String = {
    val made = decisions.map(_.decision)
    val (changed, failed) =
      (made.filter(isChange), made.filter(_.outcome == Outcome.Failed).map(_.rule).distinct)
    val advised = changed.exists(_.outcome == Outcome.Advised)
    val parts = joins(made, advised) ++ tables(changed, advised) ++ others(changed)
    val what =
      if (parts.isEmpty) unchanged(made)
      else if (advised) s"In mode on, ${parts.mkString(", ")}${gain(decisions)}"
      else capital(parts.mkString(", ")) + gain(decisions) + rest(made)
    val failures = counted(failed.size, "rule failed", "rules failed")
      .map(n => s"$n and the query goes on without: ${failed.mkString(", ")}")
    val note =
      if (mode == "advise" && !advised) s" (${SelingerConf.MODE.key} = advise)" else ""
    (Seq(what + note) ++ failures).mkString("; ")
  }

  private def rest(made: Seq[Decision]): String =
    if (isSmall(made)) "; the rest is left to Spark, because every table is small" else ""

  private def isSmall(made: Seq[Decision]): Boolean = made.exists(_.reason == Reason.SmallTables)

  /** `1 join`, `2 joins`; none for 0. */
  def counted(count: Int, one: String, many: String): Option[String] =
    Option.when(count > 0)(s"$count ${if (count == 1) one else many}")

  private def isChange(decision: Decision): Boolean =
    decision.outcome == Outcome.Changed || decision.outcome == Outcome.Advised

  private def joins(made: Seq[Decision], advised: Boolean): Option[String] = {
    val all = made.filter(d => d.rule == operators && d.outcome != Outcome.Failed)
    val changed = all.count(isChange)
    Option.when(changed > 0) {
      val noun = if (all.size == 1) "join" else "joins"
      s"$changed of ${all.size} $noun ${verb(advised)}"
    }
  }

  private def tables(changed: Seq[Decision], advised: Boolean): Option[String] = {
    val sizes = changed.filter(_.rule == orders).flatMap(_.tables)
    Option.when(sizes.nonEmpty) {
      val listed =
        if (sizes.size <= 3) sizes.map(n => s"$n tables").mkString(" and of ")
        else s"${sizes.sum} tables in ${sizes.size} parts of the query"
      s"order of $listed ${verb(advised)}"
    }
  }

  private def verb(advised: Boolean) = if (advised) "would change" else "changed"

  private def others(changed: Seq[Decision]): Seq[String] = {
    val rest = changed.filterNot(d => counting(d.rule))
    rest.map(_.rule).distinct.flatMap { rule =>
      val (one, many) = changes.getOrElse(rule, (s"change by $rule", s"changes by $rule"))
      counted(rest.count(_.rule == rule), one, many)
    }
  }

  private def unchanged(made: Seq[Decision]): String = {
    val operators = counted(made.count(_.rule == this.operators), "join", "joins")
    val sizes = made.filter(_.rule == orders).flatMap(_.tables)
    val order = Option.when(sizes.nonEmpty)(s"the order of ${sizes.sum} tables")
    (operators.toSeq ++ order) match {
      case Nil if isSmall(made) =>
        "Nothing changed: every table of this query is small, and planning it otherwise would take " +
          "longer than it could save"
      case Nil => "Nothing changed: the plan is Spark's own"
      case kept =>
        val verb = if (operators.contains("1 join") && order.isEmpty) "stays" else "stay"
        s"Nothing changed: ${kept.mkString(" and ")} $verb as in Spark's own plan"
    }
  }

  /** How much less the joins and what was merged are expected to cost, where that shows. */
  private def gain(decisions: Seq[ShownDecision]): String =
    Work.of(decisions).filter(w => w.chosen > 0.0 && w.stock / w.chosen >= 1.05).fold("") { work =>
      s"; expected work of these parts ${Amounts.factor(work.stock / work.chosen)} × less"
    }

  private def capital(text: String): String =
    text.take(1).toUpperCase(java.util.Locale.ROOT) + text.drop(1)

  private object Work {

    /**
     * Of all joins, each once: by the order that it is part of, or by itself; and of what was computed
     * together. None where an order was chosen for what several parts share: its cost is not known.
     */
    def of(decisions: Seq[ShownDecision]): Option[ExpectedWork] = {
      val changed = decisions.map(_.decision).filter(isChange)
      if (changed.exists(d => d.rule == orders && d.work.isEmpty)) None
      else {
        val works = decisions.flatMap { shown =>
          shown.decision.work.map { work =>
            // The order's cost has the operator's as it was chosen.
            if (shown.isOrdered) ExpectedWork(math.max(0.0, work.stock - work.chosen), 0.0)
            else work
          }
        }
        Option.when(works.nonEmpty)(ExpectedWork(works.map(_.stock).sum, works.map(_.chosen).sum))
      }
    }
  }
}
