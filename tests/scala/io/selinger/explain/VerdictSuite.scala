package io.selinger.explain

import io.selinger.Registry
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  JoinSides,
  Origin,
  Outcome,
  Reason,
  Remedy,
  RuleKind
}
import org.scalatest.funsuite.AnyFunSuite

/** The words of explain, of decisions made by hand. */
class VerdictSuite extends AnyFunSuite {

  private var made = 0

  private def decision(
      rule: String,
      outcome: Outcome,
      tables: Option[Int] = None,
      work: Option[ExpectedWork] = None,
      isOrdered: Boolean = false
  ): ShownDecision = {
    made += 1
    ShownDecision(
      Decision(rule, "n", s"$made", outcome, Reason.OrderCheaper, tables = tables, work = work),
      None,
      isOrdered
    )
  }

  private def join(
      outcome: Outcome,
      work: Option[ExpectedWork] = None,
      isOrdered: Boolean = false
  ) =
    decision("selectJoinOperator", outcome, work = work, isOrdered = isOrdered)

  private def order(outcome: Outcome, tables: Int, work: Option[ExpectedWork] = None) =
    decision("reorderJoins", outcome, Some(tables), work)

  test("of a query with small tables, the rest is said to be left to Spark") {
    val small = decision("planning", Outcome.Declined)
    val told = small.copy(decision = small.decision.copy(reason = Reason.SmallTables))
    assert(
      Verdict.of("on", Seq(told, decision("sizeShuffles", Outcome.Changed))) ==
        "1 part of the query shuffled into fewer partitions; the rest is left to Spark, because " +
        "every table is small"
    )
    assert(
      Verdict.of("on", Seq(told)) ==
        "Nothing changed: every table of this query is small, and planning it otherwise would take " +
        "longer than it could save"
    )
  }

  test("joins, orders and other changes are counted, and the work is compared") {
    val some = Seq(
      join(Outcome.Changed),
      join(Outcome.Changed),
      join(Outcome.Same),
      join(Outcome.Declined),
      join(Outcome.Same),
      order(Outcome.Changed, 5, Some(ExpectedWork(31.0, 10.0))),
      decision("readFooterStatistics", Outcome.Informed)
    )
    assert(
      Verdict.of("on", some) ==
        "2 of 5 joins changed, order of 5 tables changed; expected work of these parts 3.1 × less"
    )
    assert(
      Verdict.of("on", Seq(decision("awaitBuildSide", Outcome.Changed))) ==
        "1 join waits for its small side"
    )
  }

  test("a join that is part of an order is not counted twice") {
    val region = order(Outcome.Changed, 3, Some(ExpectedWork(10.0, 5.0)))
    val inside = join(Outcome.Same, Some(ExpectedWork(4.0, 4.0)), isOrdered = true)
    assert(Verdict.of("on", Seq(region, inside)).endsWith("2 × less"))
    val outside = join(Outcome.Same, Some(ExpectedWork(5.0, 5.0)))
    assert(Verdict.of("on", Seq(region, outside)).endsWith("1.5 × less"))
  }

  test("a gain that does not show, or is not known, is not claimed") {
    val little = order(Outcome.Changed, 3, Some(ExpectedWork(10.0, 9.9)))
    val shared = order(Outcome.Changed, 3)
    Seq(little, shared).foreach { one =>
      val others = Seq(one, join(Outcome.Changed, Some(ExpectedWork(0.1, 0.099))))
      assert(!Verdict.of("on", others).contains("expected work"))
    }
  }

  test("advice, failures, and that nothing changed") {
    assert(
      Verdict.of("advise", Seq(join(Outcome.Advised), join(Outcome.Same))) ==
        "In mode on, 1 of 2 joins would change"
    )
    assert(
      Verdict.of("on", Seq(join(Outcome.Same), order(Outcome.Same, 3))) ==
        "Nothing changed: 1 join and the order of 3 tables stay as in Spark's own plan"
    )
    assert(
      Verdict.of("on", Seq(decision("shareEstimates", Outcome.Failed))) ==
        "Nothing changed: the plan is Spark's own; 1 rule failed and the query goes on without: " +
        "shareEstimates"
    )
  }

  test("every rule that changes plans is said in words") {
    val changing = Registry.all.rules.filterNot(_.kind == RuleKind.Statistics).map(_.id).toSet
    assert(changing -- Verdict.counting == Verdict.changes.keySet)
  }

  // ---- paragraphs ---------------------------------------------------------------------------

  private def seconds(name: String, value: Double) =
    Evidence(s"cost of $name", value, "s", Origin.Derived)

  private def told(decision: Decision, all: Boolean = false): String =
    ExplainText.paragraph(ShownDecision(decision, None), all).mkString("\n")

  private val hash = Decision(
    "selectJoinOperator",
    "Join Inner (a = b)",
    "k",
    Outcome.Changed,
    Reason.BroadcastCheapest,
    chosen = Some("BroadcastHashJoin(right)"),
    stock = Some("SortMergeJoin"),
    sides = Some(JoinSides("sales", "customers")),
    title = Some("sales ⋈ customers")
  )

  test("operators that cost the same to the eye are said to cost the same") {
    val costs = Seq(
      seconds("BroadcastHashJoin(right)", 0.12341),
      seconds("BroadcastHashJoin(left)", 0.12344),
      seconds("SortMergeJoin", 2.5)
    )
    val text = told(hash.copy(evidence = costs))
    assert(text.contains(
      "expected cost 0.123 s, SortMergeJoin 2.5 s, BroadcastHashJoin of sales the same"
    ))
  }

  test("numbers have their unit once, and sides have names") {
    val numbers = Seq(
      Evidence("left rows", 10000, "rows", Origin.Exact),
      Evidence("left rows at most", 10000, "rows", Origin.Exact),
      Evidence("right rows", 6.2e17, "rows", Origin.Derived),
      Evidence("right hash table", 1024, "bytes", Origin.Derived)
    )
    val text = told(hash.copy(evidence = numbers), all = true)
    assert(text.contains("sales: 10,000 rows (counted), at most 10,000"))
    assert(text.contains("customers: more than 1,000 trillion rows (estimated), hash table 1 KiB"))
    assert(!text.contains("rows rows") && !text.contains("e+"))
    val read = hash.copy(
      sides = None,
      evidence = Seq(
        Evidence("join input", 5, "rows", Origin.Exact),
        Evidence("rows sampled", 5, "rows", Origin.Exact),
        Evidence("time to read", 1.25, "ms", Origin.Measured)
      )
    )
    assert(told(
      read
    ).contains("join input 5 rows (counted), rows sampled 5 (counted), time to read 1.25 ms"))
  }

  test("shares that would change a choice are on the other side of the gain") {
    assert(Remedy.below(0.18).contains("0.17") && Remedy.below(0.181).contains("0.18"))
    assert(Remedy.below(0.004).contains("0") && Remedy.below(0.0).isEmpty)
    assert(Remedy.above(0.18).contains("0.18") && Remedy.above(0.181).contains("0.19"))
    assert(Remedy.above(0.991).isEmpty)
  }
}
