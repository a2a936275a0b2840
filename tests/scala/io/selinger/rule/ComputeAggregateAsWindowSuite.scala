package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.testing.{Answer, ExampleTables, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.functions.max
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Aggregations of rows that are joined with them, as window functions: where, and that the answers stay. */
class ComputeAggregateAsWindowSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] =
    SharedSession.interpreted ++ SharedSession.grouped

  private val rule = ComputeAggregateAsWindow
  private val always = SelingerConf.MERGE_MIN_GAIN.key -> "0"
  private val ansi = "spark.sql.ansi.enabled" -> "true"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
    ExampleTables.register(spark)
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def optimized(df: DataFrame): LogicalPlan = Plans.execution(df).optimizedPlan

  private def windows(df: DataFrame): Seq[Window] =
    optimized(df).collectWithSubqueries { case window: Window => window }

  private def isSame(text: String, settings: (String, String)*): DataFrame =
    withConf(settings: _*) {
      val expected = stockAnswer(settings: _*)(spark.sql(text))
      val df = spark.sql(text)
      Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
      df
    }

  /** Asserts that windows take the place of so many aggregations, whatever the cost, with stock's answer. */
  private def fires(text: String, times: Int, settings: (String, String)*): DataFrame = {
    val df = isSame(text, always +: settings: _*)
    assert(windows(df).size == times, optimized(df))
    val made = decisions(df).filter(_.outcome == Outcome.Changed)
    assert(made.size == times && made.forall(_.reason == rule.Windowed), decisions(df))
    df
  }

  private def passesOver(text: String, settings: (String, String)*): Assertion = {
    val df = isSame(text, always +: settings: _*)
    assert(windows(df).isEmpty, optimized(df))
    assert(decisions(df).isEmpty, decisions(df))
  }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion = {
    val df = isSame(text, settings: _*)
    assert(windows(df).isEmpty, optimized(df))
    assert(decisions(df).map(_.reason).contains(reason), decisions(df))
  }

  /** Rows of `facts` compared with an aggregate of those with the same key. */
  private def compared(function: String, by: String = "x.k = f.k", where: String = ""): String =
    s"SELECT f.id, f.k FROM facts f WHERE f.id > (SELECT $function FROM facts x WHERE $by $where)"

  private def scansOf(df: DataFrame): Int = optimized(df).collectLeaves().size

  test("fires on a subquery over the rows themselves, in each mode, and with ANSI") {
    for (adaptive <- Seq("true", "false"); broadcast <- Seq("-1", "10m")) {
      val df = fires(
        compared("avg(x.id)"),
        1,
        "spark.sql.adaptive.enabled" -> adaptive,
        "spark.sql.autoBroadcastJoinThreshold" -> broadcast
      )
      assert(scansOf(df) == 1)
      assert(!optimized(df).exists(node => node.isInstanceOf[Aggregate] || node.isInstanceOf[Join]))
    }
    fires(compared("avg(x.id)"), 1, ansi)
  }

  test("fires on each function") {
    Seq(
      "sum(x.k)",
      "min(x.id)",
      "greatest(max(x.k), min(x.id))",
      "avg(x.k)",
      "max(x.amount)",
      "avg(cast(x.k AS decimal(12, 2))) * 3",
      "sum(cast(x.k AS decimal(20, 2)))",
      "avg(x.k) + 2.5D"
    ).foreach(function => fires(compared(function), 1))
    fires(
      "SELECT f.id FROM facts f WHERE f.day > (SELECT min(x.day) FROM facts x WHERE x.s = f.s)",
      1
    )
    fires(
      "SELECT f.id FROM facts f WHERE f.s >= (SELECT max(x.s) FROM facts x WHERE x.day = f.day)",
      1
    )
  }

  test("fires on several keys, and on a subquery that compares by the key of another table") {
    fires(compared("avg(x.id)", "x.k = f.k AND x.s = f.s"), 1)
    val df = fires(
      "SELECT f.id FROM facts f JOIN dims e ON f.k = e.k WHERE e.id < 9 AND " +
        "f.id > (SELECT avg(id) FROM facts x WHERE x.k = e.k)",
      1
    )
    assert(windows(df).head.child.exists(_.isInstanceOf[Join]), "dims is joined below the windows")
    assert(scansOf(df) == 2)
  }

  test("fires on a table of groups that is joined, and returns its columns") {
    val groups = "(SELECT k, max(id) AS m, count(*) AS n FROM facts GROUP BY k)"
    fires(s"SELECT f.id, a.k, a.m, a.n FROM facts f JOIN $groups a ON f.k = a.k", 1)
    fires(
      s"SELECT f.id, a.k AS b, greatest(a.m, a.n) FROM $groups a JOIN facts f ON f.k = a.k AND f.id < a.m",
      1
    )
    fires(
      "SELECT f.id, a.m FROM facts f JOIN " +
        "(SELECT k, max(id) AS m FROM facts GROUP BY k HAVING count(*) > 25) a ON f.k = a.k",
      1
    )
    fires(s"SELECT a.n FROM facts f JOIN $groups a ON f.k = a.k JOIN dims d ON d.id = f.id", 1)
    // Without functions.
    passesOver(s"SELECT a.k FROM facts f JOIN $groups a ON f.k = a.k JOIN dims d ON d.id = f.id")
  }

  test("rows that another table repeats change no average, but sums and counts are below it") {
    def query(function: String) =
      "SELECT f.id, e.id AS other, a.v FROM facts f JOIN dupes e ON f.k = e.k " +
        s"JOIN (SELECT k, $function AS v FROM facts GROUP BY k) a ON f.k = a.k WHERE f.k < 9 AND f.id > a.v"
    Seq("avg(k)", "min(id)", "count(*)", "count(s)", "sum(k)").foreach { function =>
      val df = fires(query(function), 1)
      if (function.startsWith("count") || function.startsWith("sum")) {
        assert(!windows(df).head.child.exists(_.isInstanceOf[Join]))
      }
    }
  }

  test("conditions that only the rows around have are tested above the windows") {
    val df = fires(s"${compared("avg(x.id)")} AND f.flag AND f.s < 'b'", 1)
    assert(!windows(df).head.exists {
      case Filter(condition, _) => condition.references.exists(_.name == "flag")
      case _ => false
    })
    // On keys they drop whole partitions.
    val onKeys = fires(s"${compared("avg(x.id)")} AND f.k < 20", 1)
    assert(windows(onKeys).head.exists {
      case Filter(condition, _) => condition.toString.contains("< 20")
      case _ => false
    })
  }

  test("fires on joins that both sides have, and on conditions of both") {
    def block(f: String, d: String) =
      s"facts $f JOIN dims $d ON $f.big = $d.big WHERE $f.flag AND $d.id < 100"
    val df = fires(
      s"SELECT f.id, d.s FROM ${block("f", "d")} AND " +
        s"f.id >= (SELECT avg(x.id) FROM ${block("x", "y")} AND x.k = f.k)",
      1
    )
    assert(scansOf(df) == 2)
    fires(
      "SELECT f.id FROM facts f, dims d, dupes e WHERE f.k = d.k AND d.id = e.id AND e.flag AND " +
        "f.id > (SELECT min(x.id) FROM facts x, dims y WHERE x.k = y.k AND x.s = f.s)",
      1
    )
  }

  test("finds which of several readings of one table is meant") {
    fires(
      "SELECT a.id, b.id AS other FROM facts a JOIN facts b ON a.k = b.k AND a.day = b.day " +
        "WHERE b.flag AND b.id < 60 AND a.id > (SELECT avg(x.id) FROM facts x WHERE x.k = b.k AND x.day = a.day)",
      1
    )
    fires(
      "SELECT a.id FROM dims a JOIN dims b ON a.id = b.k WHERE " +
        "b.id > (SELECT min(y.id) FROM dims x JOIN dims y ON x.id = y.k WHERE x.s = a.s)",
      1
    )
  }

  test("nulls and no rows") {
    fires(
      "SELECT f.id FROM nulls f WHERE f.id > (SELECT avg(x.id) FROM nulls x WHERE x.k = f.k)",
      1
    )
    fires(
      "SELECT f.id FROM nulls f WHERE f.id > (SELECT avg(x.id) FROM nulls x WHERE x.s = f.s)",
      1
    )
    fires(
      "SELECT f.id FROM nothing f WHERE f.id > (SELECT avg(x.id) FROM nothing x WHERE x.k = f.k)",
      1
    )
    fires(
      "SELECT f.id FROM facts f JOIN nothing e ON f.k = e.k " +
        "WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = e.k)",
      1
    )
    // All values of a group are null.
    fires("SELECT f.id FROM nulls f WHERE f.id > (SELECT max(x.k) FROM nulls x WHERE x.s = f.s)", 1)
    fires(
      "SELECT f.id, a.m FROM nulls f JOIN (SELECT s, coalesce(max(k), 3) AS m FROM nulls GROUP BY s) a ON f.s = a.s",
      1
    )
  }

  test("fires in several parts of a query, and once on two aggregations of the same rows") {
    fires(
      s"${compared("avg(x.id)")} UNION ALL ${compared("max(x.k)")} UNION ALL " +
        "SELECT d.id, d.k FROM dims d WHERE d.id IN " +
        "(SELECT f.id FROM facts f WHERE f.id > (SELECT min(x.id) FROM facts x WHERE x.s = f.s))",
      3
    )
    val text =
      s"${compared("avg(x.id) - 900D")} AND f.id < (SELECT max(y.id) FROM facts y WHERE y.k = f.k)"
    val df = fires(text, 1)
    assert(scansOf(df) == 2)
  }

  test("fires on a self-join of a DataFrame, and beside a query with windows") {
    withConf(always) {
      val facts = spark.table("facts").select("id", "k")
      val groups = facts.groupBy("k").agg(max("id").as("m"))
      def joined = facts.join(groups, "k").filter("id = m")
      val expected = stockAnswer()(joined)
      assert(Answer.difference(expected, Answer.of(joined)).isEmpty)
      assert(windows(joined).size == 1)
    }
    val df = isSame(
      "SELECT f.id, r.n FROM facts f JOIN " +
        "(SELECT id, row_number() OVER (PARTITION BY s ORDER BY id) AS n FROM dims) r ON r.id = f.id " +
        "WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = f.k)",
      always
    )
    assert(decisions(df).map(_.outcome) == Seq(Outcome.Changed) && windows(df).size == 2)
  }

  test("fires on the result of a limit, and below one") {
    fires(s"SELECT count(*) FROM (${compared("avg(x.id)")} ORDER BY id LIMIT 20)", 1)
  }

  test("passes over rows that are not those of the aggregation") {
    // Another condition.
    passesOver(compared("avg(x.id)", where = "AND x.flag"))
    passesOver(s"${compared("avg(x.id)", where = "AND x.id < 90")} AND f.id < 91")
    // Another table, or another join.
    passesOver(
      "SELECT f.id FROM facts f WHERE f.id > (SELECT avg(x.id) FROM dims x WHERE x.k = f.k)"
    )
    passesOver(compared("avg(x.id)", where = "AND x.id IN (SELECT id FROM dims)"))
    passesOver(
      "SELECT f.id FROM facts f JOIN dims d ON f.big = d.big WHERE f.id > " +
        "(SELECT avg(x.id) FROM facts x JOIN dims y ON x.id = y.id WHERE x.k = f.k)"
    )
    // Not tables.
    Seq(
      "facts TABLESAMPLE (50 PERCENT) REPEATABLE (3)",
      "(SELECT DISTINCT id, k FROM facts)"
    ).foreach {
      rows =>
        passesOver(
          s"SELECT f.id FROM $rows f WHERE f.id > (SELECT avg(x.id) FROM $rows x WHERE x.k = f.k)"
        )
    }
    // Compared by another column, or not by equality.
    passesOver(compared("avg(x.id)", "x.k = f.id"))
    passesOver(
      "SELECT f.id FROM facts f JOIN dims e ON f.id = e.id " +
        "WHERE f.id > (SELECT avg(x.id) FROM facts x WHERE x.k = e.k)"
    )
    passesOver(compared("avg(x.id)", "x.k <=> f.k"))
    passesOver(
      "SELECT f.id FROM facts f JOIN (SELECT k, s, max(id) AS m FROM facts GROUP BY k, s) a ON f.k = a.k"
    )
    // Of all rows.
    passesOver("SELECT f.id FROM facts f WHERE f.id > (SELECT avg(x.id) FROM facts x)")
  }

  test("passes over outer joins, and keys whose equal values differ") {
    passesOver("SELECT f.id, (SELECT avg(x.id) FROM facts x WHERE x.k = f.k) AS a FROM facts f")
    passesOver(compared("count(*)"))
    passesOver(
      "SELECT f.id, a.m FROM facts f LEFT JOIN (SELECT k, max(id) AS m FROM facts GROUP BY k) a ON f.k = a.k"
    )
    passesOver(compared("avg(x.id)", "x.d = f.d"))
    passesOver(
      "SELECT f.id FROM (SELECT id, s COLLATE UTF8_LCASE AS t FROM facts) f WHERE f.id > " +
        "(SELECT avg(x.id) FROM (SELECT id, s COLLATE UTF8_LCASE AS t FROM facts) x WHERE x.t = f.t)"
    )
  }

  test("does not fire on functions that are no window functions, or depend on the order of rows") {
    Seq(
      "avg(x.d)",
      "sum(x.d)",
      "min(x.d)",
      "sum(DISTINCT x.k)",
      "max(x.id) FILTER (WHERE x.flag)",
      "stddev(x.id)",
      "percentile(x.id, 0.5)",
      "max(x.id) + avg(cast(x.k AS float))"
    ).foreach(function => declines(compared(function), rule.NotWindowed, always))
  }

  test("does not fire where a sum may overflow, or an average is not exact") {
    val legacy = "spark.sql.ansi.enabled" -> "false"
    def amounts(function: String) =
      s"SELECT f.id FROM facts f WHERE f.amount > (SELECT $function FROM facts x WHERE x.k = f.k)"
    declines(amounts("sum(x.amount)"), Reason.SumMayOverflow, always, legacy)
    declines(amounts("sum(x.amount)"), Reason.MayRaise, always, ansi)
    // Too large for exact sums of doubles.
    declines(compared("avg(x.big * 100000)"), Reason.SumMayOverflow, always, legacy)
    declines(compared("sum(x.big * 100000)"), Reason.MayRaise, always, ansi)
    fires(compared("sum(x.big * 100000)"), 1, legacy)
  }

  test("does not fire where errors depend on the plan") {
    declines(compared("avg(10 div (x.id + 1))"), Reason.MayRaise, always, ansi)
    declines(compared("avg(x.id) + 1 / sum(x.k)"), Reason.MayRaise, always, ansi)
  }

  test("does not fire on random values and hints") {
    declines(
      "SELECT f.id FROM facts f JOIN " +
        "(SELECT k, max(id) + 0 * rand(3) AS m FROM facts GROUP BY k) a ON f.k = a.k AND f.id = a.m",
      MergeSubplansByCost.RandomValues,
      always
    )
    declines(
      "SELECT /*+ MERGE(a) */ f.id FROM facts f JOIN " +
        "(SELECT k, max(id) AS m FROM facts GROUP BY k) a ON f.k = a.k AND f.id = a.m",
      Reason.HintObeyed,
      always
    )
  }

  test("does not fire where the groups are needed elsewhere, too") {
    declines(
      "WITH a AS (SELECT k, max(id) AS m FROM facts GROUP BY k) " +
        "SELECT f.id FROM facts f JOIN a ON f.k = a.k AND f.id = a.m UNION ALL " +
        "SELECT e.id FROM dupes e JOIN a ON e.k = a.k AND e.id = a.m",
      Reason.SharedSubplan,
      always
    )
  }

  test("does not fire where it saves little, or rows are not known") {
    declines(compared("avg(x.id)"), rule.SavesLittle, SelingerConf.MERGE_MIN_GAIN.key -> "0.9")
    declines(
      compared("max(x.id)"),
      Reason.NoStatistics,
      "spark.selinger.readFooterStatistics.enabled" -> "false"
    )
  }

  test("off: not called; advise: the plan stays, and a decision says what would be done") {
    val text = compared("avg(x.id)")
    val off = isSame(text, always, rule.switch -> "false")
    assert(windows(off).isEmpty && decisions(off).isEmpty)
    val advised = isSame(text, always, SelingerConf.MODE.key -> "advise")
    assert(windows(advised).isEmpty)
    assert(decisions(advised).map(_.outcome) == Seq(Outcome.Advised))
  }
}
