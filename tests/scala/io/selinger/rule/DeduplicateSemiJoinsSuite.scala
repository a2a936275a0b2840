package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.exec.AggregatePerTask
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Right sides of semi and anti joins without duplicates: where, and that the answers stay. */
class DeduplicateSemiJoinsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = DeduplicateSemiJoins
  private val always = SelingerConf.DEDUPLICATE_MIN_GAIN.key -> "0"
  private val anyRows = SelingerConf.EAGER_MIN_ROWS.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  /** The columns of right sides that each task groups. */
  private def grouped(df: DataFrame): Seq[Set[String]] =
    Plans.execution(df).optimizedPlan.collectWithSubqueries {
      case Join(_, Aggregate(keys, results, _, Some(AggregatePerTask)), _, _, _) =>
        assert(keys == results)
        keys.map(_.toString.replaceAll("#.*", "")).toSet
    }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private val modes =
    for (adaptive <- Seq("true", "false"); broadcast <- Seq("-1", "10m"))
      yield Seq(
        always,
        "spark.sql.adaptive.enabled" -> adaptive,
        "spark.sql.autoBroadcastJoinThreshold" -> broadcast
      )

  /** Asserts that so many right sides are grouped, with the answer of stock Spark, in each mode. */
  private def assertFires(text: String, times: Int = 1): Unit = {
    // Stock Spark answers the same in each mode.
    val expected = stockAnswer()(spark.sql(text))
    for (mode <- Grid.firstAndOne(modes, text)) withClue(Grid.clue) {
      withConf(mode: _*) {
        val df = spark.sql(text)
        assert(grouped(df).size == times, Plans.execution(df).optimizedPlan)
        Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
        assert(decisions(df).count(_.outcome == Outcome.Changed) >= 1)
      }
    }
  }

  private def assertDeclines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    withConf(settings: _*) {
      val df = spark.sql(text)
      assert(grouped(df).isEmpty)
      assert(decisions(df).map(_.reason).contains(reason), decisions(df))
    }

  test("fires on IN and EXISTS, with nulls on both sides") {
    assertFires("SELECT id, s FROM dims WHERE k IN (SELECT k FROM facts)")
    assertFires(
      "SELECT id FROM dims WHERE EXISTS (SELECT 1 FROM facts f WHERE f.s = dims.s AND f.flag)"
    )
    assertFires("SELECT id FROM dims WHERE k IN (SELECT k FROM nulls)")
    assertFires("SELECT id FROM nothing WHERE k IN (SELECT k FROM facts)")
  }

  test("fires on NOT IN and NOT EXISTS, also with nulls and without rows") {
    assertFires("SELECT id FROM dims WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.k = dims.k)")
    assertFires("SELECT id FROM dims WHERE k NOT IN (SELECT k FROM facts)")
    assertFires("SELECT id FROM dims WHERE k NOT IN (SELECT k FROM facts WHERE k IS NOT NULL)")
    assertFires("SELECT id FROM dims WHERE k NOT IN (SELECT k FROM nulls)")
  }

  test("fires on conditions between columns, whose values are all kept") {
    assertFires(
      "SELECT id FROM dims a WHERE EXISTS (SELECT 1 FROM facts f WHERE f.k = a.k AND f.day > a.day)"
    )
    assertFires(
      "SELECT id FROM dims a WHERE NOT EXISTS " +
        "(SELECT 1 FROM facts f WHERE f.k = a.k AND (f.s <> a.s OR f.flag <=> a.flag))"
    )
    val text =
      "SELECT id FROM dims a WHERE EXISTS (SELECT 1 FROM facts f WHERE f.k = a.k AND f.day > a.day)"
    withConf(always)(assert(grouped(spark.sql(text)) == Seq(Set("k", "day"))))
  }

  test("fires on EXISTS inside an OR, whose flag stays") {
    assertFires(
      "SELECT id FROM dims a WHERE a.flag OR EXISTS (SELECT 1 FROM facts f WHERE f.k = a.k)"
    )
  }

  test("fires on INTERSECT and EXCEPT, with duplicates and nulls on both sides") {
    assertFires("SELECT k, s FROM facts INTERSECT SELECT k, s FROM dupes")
    assertFires("SELECT k FROM facts EXCEPT SELECT k FROM dims")
    assertFires(
      "SELECT k FROM facts INTERSECT SELECT k FROM dims INTERSECT SELECT k FROM dupes",
      times = 2
    )
  }

  test("fires on right sides that are joins, and on two for one left side") {
    assertFires(
      "SELECT id FROM dims WHERE k IN (SELECT f.k FROM facts f JOIN dupes b ON f.k = b.k WHERE b.flag)"
    )
    assertFires(
      "SELECT id FROM dims WHERE k IN (SELECT k FROM facts) AND s NOT IN (SELECT s FROM dupes)",
      times = 2
    )
  }

  test("fires on decimals, days, times and texts") {
    Seq("amount", "day", "at", "s", "flag", "big").foreach(column =>
      assertFires(s"SELECT id FROM dims WHERE $column IN (SELECT $column FROM facts)")
    )
  }

  test("fires inside a scalar subquery") {
    assertFires(
      "SELECT (SELECT count(*) FROM dims WHERE k IN (SELECT k FROM facts)) AS n, id FROM dupes"
    )
  }

  test("by estimates, fires only where duplicates are many") {
    withConf(anyRows, "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      val many = spark.sql("SELECT id FROM dims WHERE k IN (SELECT k FROM facts)")
      assert(grouped(many) == Seq(Set("k")))
      val made = decisions(many)
      assert(made.map(_.reason) == Seq(rule.Deduplicated))
      assert(made.head.evidence.map(_.name).contains("without duplicates"))
    }
    assertDeclines(
      "SELECT id FROM dims WHERE id IN (SELECT id FROM facts)",
      rule.FewDuplicates,
      anyRows
    )
    // Fewer than aggregate.eager.minRows.
    assertDeclines("SELECT id FROM dims WHERE k IN (SELECT k FROM facts)", rule.FewDuplicates)
  }

  test("passes over right sides that are grouped already, and what is set undoes it") {
    withConf(always) {
      val grouping = spark.sql("SELECT id FROM dims WHERE k IN (SELECT k FROM facts GROUP BY k)")
      assert(grouped(grouping).isEmpty && decisions(grouping).isEmpty)
    }
    withConf(anyRows) {
      val text = "SELECT id FROM dims WHERE k IN (SELECT k FROM facts)"
      val made = decisions(spark.sql(text)).head
      withConf(made.setting.get -> made.settingTo.get)(assert(grouped(spark.sql(text)).isEmpty))
    }
  }

  test("does not fire where equal values have different bits (PARTIAL_KEYS_UNSUITABLE)") {
    val unsuitable = PushAggregateBelowJoin.KeysUnsuitable
    assertDeclines("SELECT id FROM dims WHERE d IN (SELECT d FROM facts)", unsuitable, always)
    assertDeclines(
      "SELECT id FROM dims WHERE s COLLATE UTF8_LCASE IN (SELECT s COLLATE UTF8_LCASE FROM facts)",
      unsuitable,
      always
    )
    assertDeclines(
      "SELECT k FROM nested WHERE point IN (SELECT point FROM nested)",
      unsuitable,
      always
    )
  }

  test("does not fire on conditions that can raise, with a hint, or where the rows are shared") {
    assertDeclines(
      "SELECT id FROM dims WHERE EXISTS (SELECT 1 FROM facts f WHERE f.k = dims.k AND 1 / f.big > dims.big)",
      Reason.MayRaise,
      always,
      "spark.sql.ansi.enabled" -> "true"
    )
    assertDeclines(
      "SELECT id FROM dims WHERE EXISTS (SELECT /*+ MERGE(facts) */ 1 FROM facts WHERE facts.k = dims.k)",
      Reason.HintObeyed,
      always
    )
    assertDeclines(
      "SELECT id FROM dims WHERE k IN (SELECT f.k FROM facts f JOIN dupes b ON f.k = b.k) " +
        "UNION ALL SELECT f.k FROM facts f JOIN dupes b ON f.k = b.k",
      Reason.SharedSubplan,
      always
    )
  }
}
