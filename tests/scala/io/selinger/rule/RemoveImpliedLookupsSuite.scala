package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Lookups of IN that others imply: which are left out, and that the answers stay. */
class RemoveImpliedLookupsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = RemoveImpliedLookups
  private val off = SelingerConf.MODE.key -> "off"
  private val ansi = "spark.sql.ansi.enabled" -> "true"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def lookups(df: DataFrame): Int =
    Plans.execution(df).optimizedPlan.collectWithSubqueries {
      case Join(_, _, LeftSemi, _, _) => 1
    }.size

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def isSame(text: String, settings: (String, String)*): DataFrame =
    withConf(settings: _*) {
      val expected = stockAnswer()(spark.sql(text))
      val df = spark.sql(text)
      Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
      df
    }

  /** Asserts that so many lookups are left, which are fewer than Spark's. */
  private def fires(text: String, left: Int = 1): DataFrame = {
    val df = isSame(text)
    assert(lookups(df) == left, Plans.execution(df).optimizedPlan)
    assert(withConf(off)(lookups(spark.sql(text))) > left, "Spark has no more itself")
    val made = decisions(df).filter(_.outcome == Outcome.Changed)
    assert(made.nonEmpty && made.forall(_.reason == rule.Removed), decisions(df))
    df
  }

  private def doesNotFire(text: String, settings: (String, String)*): DataFrame = {
    val df = isSame(text, settings: _*)
    assert(!decisions(df).exists(_.outcome == Outcome.Changed), decisions(df))
    df
  }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    assert(decisions(doesNotFire(text, settings: _*)).map(_.reason).contains(reason))

  test("fires where Spark infers the filter for the other side, with nulls and duplicates") {
    fires(
      "SELECT f.id, d.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)"
    )
    fires(
      "SELECT f.id, d.id FROM facts f JOIN dims d ON f.k = d.k WHERE d.k IN (SELECT k FROM nulls)"
    )
    isSame(
      "SELECT f.id FROM facts f JOIN nothing d ON f.k = d.k WHERE d.k IN (SELECT k FROM dupes)"
    )
    fires("SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM nothing)")
  }

  test("fires on texts, days, decimals and several columns") {
    Seq("big", "s", "day", "amount", "at", "flag").foreach(column =>
      fires(
        s"SELECT f.id, d.id FROM dupes f JOIN dims d ON f.$column = d.$column AND f.k = d.k " +
          s"WHERE f.$column IN (SELECT $column FROM facts WHERE id % 3 = 0)"
      )
    )
    fires(
      "SELECT f.id, d.id FROM facts f JOIN dims d ON f.k = d.k AND f.s = d.s " +
        "WHERE (f.k, f.s) IN (SELECT k, s FROM dupes) AND (d.k, d.s) IN (SELECT k, s FROM dupes)"
    )
  }

  test("fires on each of several subqueries, and says so of each") {
    val several = fires(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes) " +
        "AND d.k IN (SELECT k FROM facts WHERE id < 700)",
      left = 2
    )
    assert(decisions(several).count(_.outcome == Outcome.Changed) == 2)
  }

  test("fires on two columns of one table, however large it is") {
    withConf("spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      assert(lookups(
        isSame("SELECT id FROM dupes WHERE big = id AND big IN (SELECT id FROM facts)")
      ) == 1)
    }
  }

  test("does not fire where the other table is joined with a third one before, or with a hint") {
    declines(
      "SELECT f.id FROM facts f JOIN dupes e ON f.s = e.s JOIN dims d ON f.k = d.k " +
        "WHERE f.k IN (SELECT k FROM nulls)",
      rule.KeptLarge
    )
    declines(
      "SELECT /*+ MERGE(d) */ f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)",
      Reason.HintObeyed
    )
  }

  test("fires where the columns that are read fit into a broadcast, however wide the table is") {
    val limit = "spark.selinger.join.broadcastMaxBytes" -> "12000"
    def of(columns: String) =
      s"SELECT f.id, $columns FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM nulls)"
    withConf(limit)(fires(of("d.k")))
    declines(of("d.*"), rule.KeptLarge, limit)
  }

  test("fires on three tables of one key, and inside subqueries and grouped queries") {
    fires(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k JOIN dupes e ON d.k = e.k " +
        "WHERE f.k IN (SELECT k FROM nulls UNION ALL SELECT k FROM dims WHERE id < 20)"
    )
    fires(
      "SELECT id, (SELECT count(*) FROM facts f JOIN dims d ON f.k = d.k " +
        "WHERE f.k IN (SELECT k FROM dupes)) AS n FROM dupes"
    )
    fires(
      "SELECT d.s, count(*) FROM facts f JOIN dims d ON f.k = d.k " +
        "WHERE f.k IN (SELECT k FROM dupes) GROUP BY d.s"
    )
  }

  test("fires on an order of joins that two lookups in the same rows would forbid") {
    val text = "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k JOIN dupes e ON f.s = e.s " +
      "WHERE f.k IN (SELECT k FROM nulls)"
    val orders = Plans.decisions(fires(text), "reorderJoins").map(_.reason)
    assert(orders.nonEmpty && !orders.contains(Reason.RepeatedColumns), orders)
  }

  test("does not fire on columns that are not compared, NOT IN and EXISTS") {
    doesNotFire(
      "SELECT f.id FROM facts f JOIN dims d ON f.s = d.s WHERE f.k IN (SELECT k FROM dupes) " +
        "AND d.k IN (SELECT k FROM dupes)"
    )
    doesNotFire(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k NOT IN (SELECT k FROM dupes)"
    )
    doesNotFire(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k " +
        "WHERE EXISTS (SELECT 1 FROM dupes e WHERE e.k = f.k)"
    )
  }

  test("does not fire across outer joins, nor where a filter asks for one lookup or another") {
    doesNotFire(
      "SELECT f.id, d.id FROM facts f LEFT JOIN (SELECT * FROM dims WHERE k IN (SELECT k FROM dupes)) d " +
        "ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)"
    )
    doesNotFire(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k " +
        "WHERE f.k IN (SELECT k FROM dupes) OR d.k IN (SELECT k FROM dupes)"
    )
  }

  test("does not fire on floating-point numbers and collated texts, whose equal values differ") {
    doesNotFire(
      "SELECT f.id FROM dupes f JOIN dims d ON f.d = d.d WHERE f.d IN (SELECT d FROM facts)"
    )
    doesNotFire(
      "SELECT f.id FROM (SELECT id, s COLLATE UTF8_LCASE AS s FROM dupes) f " +
        "JOIN (SELECT id, s COLLATE UTF8_LCASE AS s FROM dims) d ON f.s = d.s " +
        "WHERE f.s IN (SELECT s COLLATE UTF8_LCASE FROM facts)"
    )
  }

  test(
    "does not fire where a condition in between can raise, rows are unknown or both sides large"
  ) {
    val text = "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k AND 100 / (f.id + d.id) < 90 " +
      "WHERE f.k IN (SELECT k FROM dupes)"
    declines(text, Reason.MayRaise, ansi)
    fires(text.replace("100 / (f.id + d.id) < 90", "f.id < d.id"))
    declines(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes) " +
        "AND f.s IN (SELECT s FROM dims e WHERE 100 / (f.id - e.id) > 5)",
      Reason.MayRaise,
      ansi
    )
    declines(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)",
      rule.KeptLarge,
      "spark.sql.autoBroadcastJoinThreshold" -> "-1"
    )
  }

  test("advises without a change") {
    withConf(SelingerConf.MODE.key -> "advise") {
      val df = spark.sql(
        "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k WHERE f.k IN (SELECT k FROM dupes)"
      )
      assert(lookups(df) == 2 && decisions(df).map(_.outcome) == Seq(Outcome.Advised))
    }
  }
}
