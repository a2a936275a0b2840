package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Outcome, Reason}
import io.selinger.exec.GroupingSetCascadeExec
import io.selinger.exec.aggregates.HeapHashAggregateExec
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** The rule `stopPartialAggregation` on real plans. */
class StopPartialAggregationSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.grouped

  private val rule = StopPartialAggregation
  private val anyRows = SelingerConf.MEASURED_PARTIAL_MIN_ROWS.key -> "0"
  private val always = SelingerConf.MEASURED_PARTIAL_RATIO.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def measured(df: DataFrame): Seq[HeapHashAggregateExec] = Plans.physical(df).collect {
    case first: HeapHashAggregateExec if first.aggregateExpressions.forall(_.mode == Partial) =>
      first
  }

  /** Asserts that rows may be passed on, with the answer of stock Spark, in each mode. */
  private def assertFires(text: String, settings: (String, String)*): Unit = {
    // Stock Spark answers the same in each way.
    val expected = stockAnswer(settings ++ Seq(anyRows, always): _*)(spark.sql(text))
    for (way <- waysToRun(text)) withClue(Grid.clue) {
      val modes = settings ++ Seq(anyRows, always) ++ way
      withConf(modes: _*) {
        val df = spark.sql(text)
        val found = Answer.of(df)
        Answer.difference(expected, found).foreach(difference => fail(s"$text: $difference"))
        assert(measured(df).nonEmpty, Plans.execution(df).executedPlan)
        val made = Plans.decisions(df, rule.id)
        assert(made.nonEmpty && made.forall(_.outcome == Outcome.Changed), made)
      }
    }
  }

  private def assertDeclines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    withConf((anyRows +: settings): _*) {
      val df = spark.sql(text)
      assert(measured(df).isEmpty)
      assert(Plans.decisions(df, rule.id).map(_.reason) == Seq(reason))
    }

  test(
    "fires on counts, sums, averages, least and greatest values, with nulls in keys and values"
  ) {
    assertFires(
      "SELECT k, count(*), count(k), sum(k), avg(k), min(day), max(id) FROM facts GROUP BY k"
    )
    assertFires("SELECT id, sum(d), avg(d), bit_or(k), max(flag) FROM facts GROUP BY id")
    assertFires("SELECT k, count(*) FROM nulls GROUP BY k")
    assertFires("SELECT s, day, sum(k) FILTER (WHERE flag), count(*) FROM facts GROUP BY s, day")
  }

  test("fires on keys that are texts, decimals, structs, NaN and -0.0, and on computed ones") {
    assertFires("SELECT s, count(*) FROM facts GROUP BY s")
    assertFires("SELECT amount, d, count(*) FROM facts GROUP BY amount, d")
    assertFires("SELECT point, count(*), sum(k) FROM nested GROUP BY point")
    assertFires("SELECT concat(s, 'x') AS t, id % 5 AS r, sum(k) FROM facts GROUP BY 1, 2")
  }

  test("fires on decimals and on DISTINCT rows without functions") {
    assertFires(
      "SELECT id, sum(cast(k AS decimal(9,2))), avg(cast(k AS decimal(9,2))) FROM facts GROUP BY id"
    )
    assertFires("SELECT id, sum(cast(k AS decimal(9,2)) * 3) FROM facts GROUP BY id")
    assertFires("SELECT DISTINCT k, s FROM facts")
  }

  test("fires on no rows, and below joins, windows and other aggregations") {
    withConf(anyRows, always, "spark.sql.adaptive.enabled" -> "false") {
      val df = spark.sql("SELECT id, sum(k) FROM nothing GROUP BY id")
      assert(df.collect().isEmpty && measured(df).size == 1)
    }
    assertFires(
      "SELECT n, count(*) FROM (SELECT id, count(*) AS n FROM dupes GROUP BY id) GROUP BY n"
    )
    assertFires(
      "SELECT g.id, d.s, rank() OVER (ORDER BY g.n, g.id) FROM " +
        "(SELECT id, sum(k) AS n FROM facts GROUP BY id) g JOIN dims d ON g.id = d.id"
    )
  }

  test("fires below the cascade of grouping sets") {
    val text = "SELECT id, k, sum(k) FROM facts GROUP BY ROLLUP (id, k)"
    withConf(anyRows, always, SelingerConf.CASCADE_MIN_GAIN.key -> "0") {
      val df = spark.sql(text)
      val expected = stockAnswer()(spark.sql(text))
      assert(Answer.difference(expected, Answer.of(df)).isEmpty)
      assert(Plans.physical(df).exists(_.isInstanceOf[GroupingSetCascadeExec]))
      assert(measured(df).size == 1)
      assert(Plans.decisions(df, rule.id).map(_.reason) == Seq(rule.MayStop))
    }
  }

  test("fires where unique keys are expected, and passes rows on") {
    val text =
      "SELECT a, count(*), sum(b) FROM (SELECT id * 7919 % 400000 AS a, int(id % 7) AS b FROM range(0, 400000, 1, 1)) GROUP BY a"
    withConf("spark.sql.adaptive.enabled" -> "false", anyRows, always) {
      val df = spark.sql(text)
      assert(df.collect().length == 400000)
      assert(measured(df).map(_.metrics("numPassedRows").value) == Seq(300000L))
      // Spark's final phase stays.
      assert(Plans.physical(df).exists(_.isInstanceOf[HashAggregateExec]))
    }
  }

  test("does not fire on inputs of few rows, and says nothing") {
    val df = spark.sql("SELECT id, count(*) FROM facts GROUP BY id")
    assert(measured(df).isEmpty && Plans.decisions(df, rule.id).isEmpty)
  }

  test("does not fire where groups are far fewer, and says what to set (GROUPS_FAR_FEWER)") {
    val text = "SELECT flag, count(*) FROM facts GROUP BY flag"
    assertDeclines(text, rule.FarFewer)
    val half = "SELECT id % 1000 AS m, count(*) FROM facts GROUP BY id % 1000"
    withConf(anyRows, SelingerConf.MEASURED_PARTIAL_RATIO.key -> "1") {
      val made = Plans.decisions(spark.sql(half), rule.id)
      assert(made.map(_.reason) == Seq(rule.FarFewer))
      withConf(made.head.setting.get -> made.head.settingTo.get)(
        assert(measured(spark.sql(half)).nonEmpty)
      )
    }
  }

  test(
    "does not fire where merging loses digits or depends on the order (AGGREGATE_NOT_MERGEABLE)"
  ) {
    Seq("stddev(k)", "corr(k, id)", "first(k)", "min(d)").foreach(function =>
      assertDeclines(s"SELECT id, $function FROM facts GROUP BY id", Reason.NotMergeable, always)
    )
  }

  test("under ANSI mode, does not fire on sums of bigint that may overflow (SUM_MAY_OVERFLOW)") {
    val ansi = "spark.sql.ansi.enabled" -> "true"
    assertDeclines(
      "SELECT id, sum(big * 1000) FROM facts GROUP BY id",
      Reason.SumMayOverflow,
      ansi,
      always
    )
    assertDeclines(
      "SELECT id, sum(big + 3000000000) FROM facts GROUP BY id",
      Reason.SumMayOverflow,
      ansi,
      always
    )
    val lenient = "spark.sql.ansi.enabled" -> "false"
    assertFires("SELECT k, sum(big * 1000) FROM facts GROUP BY k", lenient)
  }

  test("under ANSI mode, fires on sums of bigint columns whose values fit into an int") {
    val ansi = "spark.sql.ansi.enabled" -> "true"
    assertFires("SELECT k, sum(big), sum(id) FROM facts GROUP BY k", ansi)
    assertFires("SELECT k, sum(coalesce(big, 0) + 1) FROM facts GROUP BY k", ansi)
  }

  test("does not fire on DISTINCT aggregates, nor without keys") {
    withConf(anyRows, always) {
      assert(measured(spark.sql("SELECT id, count(DISTINCT k) FROM facts GROUP BY id")).isEmpty)
      assert(measured(spark.sql("SELECT count(*) FROM facts")).isEmpty)
    }
  }
}
