package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.exec.GroupingSetCascadeExec
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.{ExpandExec, SparkPlan}
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.scalatest.funsuite.AnyFunSuite

/** The rule `cascadeGroupingSets` on real plans. */
class CascadeGroupingSetsSuite extends AnyFunSuite with SharedSession {

  private val rule = CascadeGroupingSets
  private val always = SelingerConf.CASCADE_MIN_GAIN.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def decisionOf(df: DataFrame): Decision = Plans.decisions(df, rule.id) match {
    case Seq(decision) => decision
    case others => fail(s"expected one decision, got $others\n${Plans.execution(df).executedPlan}")
  }

  private def cascades(df: DataFrame): Seq[GroupingSetCascadeExec] =
    Plans.physical(df).collect { case cascade: GroupingSetCascadeExec => cascade }

  private def copies(df: DataFrame): Seq[SparkPlan] =
    Plans.physical(df).collect { case expand: ExpandExec => expand }

  /** Asserts that a query is a cascade with the rows of stock Spark, in each mode of Spark. */
  private def assertFires(text: String, settings: (String, String)*): Unit = {
    // Stock Spark answers the same in each way.
    val expected = stockAnswer(settings: _*)(spark.sql(text))
    assert(expected.isInstanceOf[Answer.Rows], text)
    for (way <- waysToRun(text)) withClue(Grid.clue) {
      val modes = settings ++ way
      withConf(modes :+ always: _*) {
        val df = spark.sql(text)
        // As it was planned: adaptive execution drops what turns out empty.
        assert(cascades(df).nonEmpty && copies(df).isEmpty, Plans.execution(df).executedPlan)
        val found = Answer.of(df)
        assert(Answer.difference(expected, found).isEmpty, s"$text, $way")
        val made = Plans.decisions(df, rule.id)
        assert(made.forall(_.reason == CascadeGroupingSets.ReadsFewerRows), made)
        assert(made.forall(_.outcome == Outcome.Changed))
      }
    }
  }

  private def assertDeclines(text: String, reason: Reason, settings: (String, String)*): Unit = {
    val expected = stockAnswer(settings: _*)(spark.sql(text))
    withConf(always +: settings: _*) {
      val df = spark.sql(text)
      assert(Answer.difference(expected, Answer.of(df)).isEmpty)
      assert(cascades(df).isEmpty)
      val decision = decisionOf(df)
      assert(decision.outcome == Outcome.Declined)
      assert(decision.reason == reason)
      ()
    }
  }

  /** What each grouping set of a query is computed from. */
  private def sourcesOf(text: String): Seq[Int] = withConf(always) {
    cascades(spark.sql(text)).head.sources
  }

  private val every =
    "count(*), count(day), sum(k), avg(k), min(day), max(at), sum(d), avg(d), bit_xor(big)"

  test("fires on ROLLUP, with nulls in keys and values") {
    assertFires(s"SELECT k, s, flag, $every FROM facts GROUP BY ROLLUP (k, s, flag)")
    assertFires(s"SELECT k, s, $every FROM nulls GROUP BY ROLLUP (k, s)")
  }

  test("fires on CUBE") {
    assertFires(s"SELECT s, flag, day, $every FROM facts GROUP BY CUBE (s, flag, day)")
  }

  test("fires on GROUPING SETS, also if no set has all keys") {
    assertFires(s"SELECT k, s, $every FROM facts GROUP BY GROUPING SETS ((k), (s))")
    assertFires(s"SELECT k, s, flag, $every FROM facts GROUP BY GROUPING SETS ((k, s), (flag), ())")
  }

  test("fires on equal grouping sets, which stay apart") {
    assertFires("SELECT k, count(*) FROM facts GROUP BY GROUPING SETS ((k), (k), (), ())")
    assertFires("SELECT k, s, count(*) FROM facts GROUP BY ROLLUP (k, s), ROLLUP (k)")
  }

  test("fires on grouping() and grouping_id()") {
    assertFires(
      "SELECT k, s, grouping(k), grouping_id(), sum(k) FROM facts GROUP BY CUBE (k, s) " +
        "HAVING grouping(s) + count(*) > 3"
    )
  }

  test("fires on no rows, and returns none") {
    assertFires("SELECT k, s, count(*), sum(k) FROM nothing GROUP BY ROLLUP (k, s)")
  }

  test("fires on keys that are aggregated too, and on keys without aggregates") {
    assertFires("SELECT k, d, sum(k), max(k), count(d) FROM facts GROUP BY CUBE (k, d)")
    assertFires("SELECT k, s FROM facts GROUP BY ROLLUP (k, s)")
  }

  test("fires on NaN and -0.0 as keys") {
    assertFires("SELECT d, flag, count(*) FROM facts GROUP BY CUBE (d, flag)")
    assertFires(
      "SELECT p, flag, count(*) FROM (SELECT struct(d, k % 3) AS p, flag FROM facts) " +
        "GROUP BY CUBE (p, flag)"
    )
  }

  test("fires on decimals and on keys of many types") {
    assertFires(
      "SELECT v, at, flag, sum(v), avg(v), min(v), max(amount), sum(w) FROM " +
        "(SELECT *, cast(k AS decimal(7,2)) AS v, cast(k AS decimal(28,2)) AS w FROM facts) " +
        "GROUP BY ROLLUP (flag, v, at)"
    )
    assertFires("SELECT amount, flag, count(*) FROM facts GROUP BY CUBE (amount, flag)")
  }

  test("fires on aggregates with FILTER, and on results computed from them") {
    assertFires(
      "SELECT k, s, sum(k) FILTER (WHERE flag), count(*) FILTER (WHERE d > 1) * 2 + max(id) " +
        "FROM facts GROUP BY ROLLUP (k, s)"
    )
  }

  test("fires on columns beside grouping sets, and on computed keys") {
    assertFires("SELECT flag, k % 5, s, count(*) FROM facts GROUP BY flag, ROLLUP (k % 5, s)")
    assertFires(
      "SELECT a, b, count(*) FROM (SELECT k AS a, k AS b FROM facts) GROUP BY CUBE (a, b)"
    )
    assertFires("SELECT k, 1 AS one, count(*) FROM facts GROUP BY ROLLUP (k, 1)")
  }

  test("fires above a join, and below a window and another aggregation") {
    assertFires(
      "SELECT s, sum(n) FROM (SELECT d.s, f.flag, count(*) AS n, " +
        "rank() OVER (PARTITION BY d.s ORDER BY count(*)) AS r FROM facts f JOIN dims d " +
        "ON f.k = d.k GROUP BY ROLLUP (d.s, f.flag)) WHERE r < 3 GROUP BY s"
    )
  }

  test("fires on sums of bigint where they wrap around") {
    assertFires(
      "SELECT k, s, sum(big * 9000000000) FROM facts GROUP BY ROLLUP (k, s)",
      "spark.sql.ansi.enabled" -> "false"
    )
  }

  test("does not fire on one grouping set, or DISTINCT aggregates") {
    assertDeclines("SELECT k, count(*) FROM facts GROUP BY GROUPING SETS ((k), (k))", rule.OneSet)
    assertDeclines("SELECT count(*) FROM facts GROUP BY GROUPING SETS ((), ())", rule.OneSet)
    assertDeclines(
      "SELECT k, s, count(DISTINCT day) FROM facts GROUP BY ROLLUP (k, s)",
      rule.DistinctAggregate
    )
  }

  test("does not fire on more grouping sets than are allowed") {
    val text = "SELECT k, s, count(*) FROM facts GROUP BY ROLLUP (k, s)"
    assertDeclines(text, rule.TooManySets, SelingerConf.CASCADE_MAX_SETS.key -> "2")
  }

  test("does not fire on the copies that Spark makes for several DISTINCT aggregates") {
    withConf(always) {
      val several = "count(DISTINCT day), count(DISTINCT flag)"
      Seq(
        s"SELECT k, $several FROM facts GROUP BY k",
        s"SELECT k, s, $several FROM facts GROUP BY ROLLUP (k, s)"
      ).foreach { text =>
        val df = spark.sql(text)
        assert(cascades(df).isEmpty && copies(df).nonEmpty && Plans.decisions(df, rule.id).isEmpty)
      }
    }
  }

  test("does not fire on collated keys") {
    assertDeclines(
      "SELECT c, k, count(*) FROM (SELECT s COLLATE UTF8_LCASE AS c, k FROM facts) GROUP BY CUBE (c, k)",
      rule.KeysNotBinary
    )
  }

  test("does not fire on aggregates that depend on the order of rows") {
    Seq("first(k)", "stddev(k)", "max_by(k, id)", "collect_list(k)", "min(d)").foreach { function =>
      withConf(always) {
        val df = spark.sql(s"SELECT s, flag, $function FROM facts GROUP BY ROLLUP (s, flag)")
        assert(decisionOf(df).reason == Reason.NotMergeable)
      }
    }
  }

  test("does not fire on sums that may overflow") {
    val ansi = "spark.sql.ansi.enabled" -> "true"
    assertFires("SELECT s, flag, sum(big), try_sum(id) FROM facts GROUP BY ROLLUP (s, flag)", ansi)
    Seq("sum(big * 9)", "try_sum(big * 9)", "sum(amount)", "avg(amount)").foreach(sum =>
      assertDeclines(
        s"SELECT s, flag, $sum FROM facts GROUP BY ROLLUP (s, flag)",
        Reason.SumMayOverflow,
        ansi
      )
    )
  }

  test("does not fire on buffers without a fixed width") {
    assertDeclines(
      "SELECT k, flag, min(s) FROM facts GROUP BY ROLLUP (k, flag)",
      rule.NoHashAggregate
    )
  }

  test("does not fire without statistics, or if it saves little") {
    val text = "SELECT id, k, count(*) FROM facts GROUP BY GROUPING SETS ((id, k), (id))"
    assert(decisionOf(spark.sql(text)).reason == rule.SavesLittle)
    withConf("spark.selinger.readFooterStatistics.enabled" -> "false") {
      assert(decisionOf(spark.sql(text)).reason == Reason.NoStatistics)
    }
  }

  test("each set is computed from the one with the fewest groups that has its keys") {
    assert(sourcesOf("SELECT k, s, flag, count(*) FROM facts GROUP BY ROLLUP (k, s, flag)") ==
      Seq(-1, -1, 1, 2))
    // (k, flag), (k, s), (flag), (s), (k), ()
    assert(
      sourcesOf(
        "SELECT k, s, flag, count(*) FROM facts " +
          "GROUP BY GROUPING SETS ((k, flag), (k, s), (flag), (s), (k), ())"
      ) == Seq(-1, -1, 0, 1, 0, 2)
    )
  }

  test("equal aggregations of a query still share one shuffle") {
    val text = "WITH t AS (SELECT k, s, count(*) AS n FROM facts GROUP BY ROLLUP (k, s)) " +
      "SELECT a.k, b.s, a.n FROM t a JOIN t b ON a.n = b.n"
    withConf(always, "spark.sql.adaptive.enabled" -> "false") {
      val df = spark.sql(text)
      assert(cascades(df).size == 1)
      assert(Plans.physical(df).exists(_.isInstanceOf[ReusedExchangeExec]))
    }
    assertFires(text)
  }

  test("mode advise changes nothing and says what it would do") {
    withConf(always, SelingerConf.MODE.key -> "advise") {
      val df = spark.sql("SELECT k, s, count(*) FROM facts GROUP BY ROLLUP (k, s)")
      assert(cascades(df).isEmpty && copies(df).nonEmpty)
      assert(decisionOf(df).outcome == Outcome.Advised)
    }
  }
}
