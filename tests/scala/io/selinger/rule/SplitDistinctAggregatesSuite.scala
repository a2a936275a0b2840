package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.aggregate.Sum
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Expand, Union}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite
import java.nio.file.Files

/** Several DISTINCT without copies of rows: where, and that the answers stay. */
class SplitDistinctAggregatesSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = SplitDistinctAggregates
  private val always = SelingerConf.SPLIT_DISTINCT_MIN_GAIN.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  /** Of each aggregation that was split, the columns that each of its parts groups. */
  private def parts(df: DataFrame): Seq[Seq[Set[String]]] =
    Plans.execution(df).optimizedPlan.collectWithSubqueries {
      case union: Union if union.output.exists(_.name == "gid") =>
        union.children.flatMap(_.collectFirst { case Aggregate(keys, _, _, _) =>
          keys.map(_.sql.replaceAll(".*\\.|`", "")).toSet
        })
    }

  private def copies(df: DataFrame): Int =
    Plans.execution(df).optimizedPlan.collectWithSubqueries { case expand: Expand => expand }.size

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private val modes =
    for (adaptive <- Seq("true", "false"); ansi <- Seq("true", "false"))
      yield Seq(always, "spark.sql.adaptive.enabled" -> adaptive, "spark.sql.ansi.enabled" -> ansi)

  /** Asserts that no rows are copied, with the answer of stock Spark, in each mode. */
  private def assertFires(text: String, times: Int = 1): Unit =
    for (mode <- Grid.firstAndOne(modes, text)) withClue(Grid.clue) {
      withConf(mode: _*) {
        val expected = stockAnswer()(spark.sql(text))
        val df = spark.sql(text)
        assert(copies(df) == 0 && parts(df).size == times, Plans.execution(df).optimizedPlan)
        Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
        assert(decisions(df).count(_.outcome == Outcome.Changed) >= 1)
      }
    }

  private def assertDeclines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    withConf(settings: _*) {
      val df = spark.sql(text)
      assert(copies(df) > 0 && parts(df).isEmpty)
      assert(decisions(df).map(_.reason).contains(reason), decisions(df))
    }

  test("fires on several DISTINCT of one key, with nulls, and reads only their columns") {
    val text =
      "SELECT k, count(DISTINCT s), count(DISTINCT big), count(DISTINCT day) FROM facts GROUP BY k"
    assertFires(text)
    withConf(always) {
      assert(parts(spark.sql(text)).map(_.toSet) == Seq(Set(
        Set("k", "s"),
        Set("k", "big"),
        Set("k", "day")
      )))
    }
  }

  test("fires without keys, with rows and without, where there is one group in any case") {
    Seq("facts", "nothing", "nulls").foreach { table =>
      assertFires(s"SELECT count(DISTINCT k), count(DISTINCT s), count(*), sum(id) FROM $table")
      assertFires(s"SELECT k, count(DISTINCT s), sum(DISTINCT big), max(s) FROM $table GROUP BY k")
    }
    assertFires(
      "SELECT count(DISTINCT k), sum(DISTINCT big), min(d), count(*) FROM facts WHERE id < 0"
    )
  }

  test("functions without DISTINCT are computed once, from all rows") {
    assertFires(
      """SELECT k, count(DISTINCT s), count(DISTINCT flag), count(*), count(big), sum(big), avg(d), max(at),
        |  min(amount), first(k), count_if(flag), collect_set(s) IS NULL, bit_or(id)
        |FROM facts GROUP BY k""".stripMargin
    )
    val text = "SELECT count(DISTINCT s), count(DISTINCT flag), sum(big) FROM facts"
    withConf(always) {
      val df = spark.sql(text)
      val sums = Plans.execution(df).optimizedPlan.collect {
        case aggregate @ Aggregate(_, results, _, _)
            if results.exists(_.exists(_.isInstanceOf[Sum])) =>
          aggregate
      }
      assert(sums.size == 1)
    }
  }

  test("fires on FILTER, on DISTINCT of several columns, and of expressions") {
    assertFires(
      """SELECT k, count(DISTINCT s) FILTER (WHERE id > 100), count(DISTINCT big) FILTER (WHERE flag),
        |  count(DISTINCT s), sum(id) FILTER (WHERE s = 'a')
        |FROM facts GROUP BY k""".stripMargin
    )
    assertFires("SELECT k, count(DISTINCT s, flag), count(DISTINCT day, s) FROM facts GROUP BY k")
    assertFires(
      "SELECT k % 7, count(DISTINCT CASE WHEN flag THEN s END), count(DISTINCT big % 5), " +
        "count(DISTINCT upper(s)) FROM facts GROUP BY k % 7"
    )
    assertFires(
      "SELECT k, count(DISTINCT s), count(DISTINCT id) FROM facts WHERE flag AND k > 3 GROUP BY k"
    )
  }

  test("fires on values that are equal with other bits, and on any type of keys") {
    assertFires(
      "SELECT d, count(DISTINCT d), count(DISTINCT -d), sum(DISTINCT id) FROM facts GROUP BY d"
    )
    assertFires(
      "SELECT amount, count(DISTINCT amount), count(DISTINCT at) FROM facts GROUP BY amount"
    )
    assertFires("SELECT point, count(DISTINCT k), count(DISTINCT tags) FROM nested GROUP BY point")
    assertFires(
      "SELECT s, flag, day, count(DISTINCT k), count(DISTINCT big) FROM facts GROUP BY s, flag, day"
    )
  }

  test("fires on ORC files and on partition columns") {
    val folder = Files.createTempDirectory("selinger-distinct").toString
    SharedSession.stock
      .range(0, 300, 1, 2)
      .selectExpr(
        "if(id % 7 = 0, null, id % 5) AS a",
        "id % 11 AS b",
        "if(id % 9 = 0, null, id % 3) AS p"
      )
      .write
      .mode("overwrite")
      .partitionBy("p")
      .orc(folder)
    assertFires(
      s"SELECT p, count(DISTINCT a), count(DISTINCT b), count(*) FROM orc.`$folder` GROUP BY p"
    )
    assertFires(
      s"SELECT b, count(DISTINCT p), count(DISTINCT a) FROM orc.`$folder` WHERE p < 2 GROUP BY b"
    )
  }

  test("reads only the columns of each part, also where one is computed and used twice") {
    def read(text: String): Set[Set[String]] =
      withConf(always, "spark.sql.adaptive.enabled" -> "false") {
        Plans.execution(spark.sql(text)).executedPlan.collect { case scan: FileSourceScanExec =>
          scan.requiredSchema.fieldNames.toSet
        }.toSet
      }
    assert(
      read(
        "SELECT k, count(DISTINCT s), count(DISTINCT big), sum(id) FROM facts WHERE flag GROUP BY k"
      ) ==
        Set(Set("id", "k", "flag"), Set("k", "s", "flag"), Set("k", "big", "flag"))
    )
    val twice =
      "SELECT day, count(DISTINCT CASE WHEN u <> '' THEN u END), count(DISTINCT big) " +
        "FROM (SELECT day, upper(s) AS u, big FROM facts) GROUP BY day"
    assert(read(twice) == Set(Set("day", "s"), Set("day", "big")))
    assertFires(twice)
  }

  test("fires below joins, unions, HAVING and in subqueries") {
    val counts = "SELECT k, count(DISTINCT s) AS a, count(DISTINCT big) AS b FROM facts GROUP BY k"
    assertFires(s"$counts UNION ALL SELECT id, id, id FROM dims")
    assertFires(s"SELECT * FROM dims JOIN ($counts) c ON dims.k = c.k WHERE c.a > 1")
    assertFires(s"$counts HAVING count(DISTINCT flag) > 1 ORDER BY b")
    assertFires(
      s"SELECT x.k, x.a, y.b, x.b + y.a FROM ($counts) x JOIN ($counts) y ON x.k = y.k",
      times = 2
    )
    assertFires(
      "SELECT id, (SELECT count(DISTINCT s) + count(DISTINCT big) FROM facts) AS n FROM dims"
    )
    assertFires(s"SELECT k FROM dims WHERE k IN (SELECT a + b FROM ($counts))")
  }

  test("an error in a column is raised as before") {
    withConf(always, "spark.sql.ansi.enabled" -> "true") {
      val text = "SELECT k, count(DISTINCT 1 / (id - 5)), count(DISTINCT s) FROM facts GROUP BY k"
      assert(parts(spark.sql(text)).size == 1)
      assert(Answer.difference(stockAnswer()(spark.sql(text)), Answer.of(spark.sql(text))).isEmpty)
    }
    // Each part would raise these.
    Seq(
      "SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts WHERE 1 / (id - 5) > 0 GROUP BY k",
      "SELECT 1 / (id - 5), count(DISTINCT s), count(DISTINCT big) FROM facts GROUP BY 1"
    ).foreach(assertDeclines(_, Reason.MayRaise, always, "spark.sql.ansi.enabled" -> "true"))
  }

  test("does not fire on rows that are computed, cached, or read from lines") {
    Seq(
      "SELECT f.k, count(DISTINCT f.s), count(DISTINCT f.big) FROM facts f JOIN dims d ON f.id = d.id GROUP BY f.k",
      "SELECT a, count(DISTINCT b), count(DISTINCT c) FROM VALUES (1, 2, 3), (1, 2, 4) AS v(a, b, c) GROUP BY a",
      "SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts WHERE id < (SELECT max(id) FROM dims) GROUP BY k",
      "SELECT k, flag, count(DISTINCT s), count(DISTINCT big) FROM facts GROUP BY ROLLUP (k, flag)"
    ).foreach(assertDeclines(_, rule.ReadOnce, always))
    withConf("spark.sql.files.ignoreCorruptFiles" -> "true") {
      assertDeclines(
        "SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts GROUP BY k",
        rule.ReadOnce,
        always
      )
    }
    val cached = spark.table("facts").filter("id > 7").cache()
    cached.createOrReplaceTempView("held")
    try
      assertDeclines(
        "SELECT k, count(DISTINCT s), count(DISTINCT big) FROM held GROUP BY k",
        rule.ReadOnce,
        always
      )
    finally { val _ = cached.unpersist() }
  }

  test("does not fire where rows differ from one reading to the next (RANDOM_VALUES)") {
    assertDeclines(
      "SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts WHERE rand() < 0.5 GROUP BY k",
      MergeSubplansByCost.RandomValues,
      always
    )
    assertDeclines(
      "SELECT k, count(DISTINCT s), count(DISTINCT r) FROM (SELECT *, rand() AS r FROM facts) GROUP BY k",
      MergeSubplansByCost.RandomValues,
      always
    )
  }

  test("does not fire where equal values differ (EQUAL_VALUES_DIFFER)") {
    Seq(
      "SELECT s COLLATE UTF8_LCASE AS c, count(DISTINCT k), count(DISTINCT s) FROM facts GROUP BY c",
      "SELECT k, max(DISTINCT s COLLATE UTF8_LCASE), count(DISTINCT s COLLATE UTF8_LCASE), count(DISTINCT big) " +
        "FROM facts GROUP BY k"
    ).foreach(assertDeclines(_, rule.EqualValuesDiffer, always))
  }

  test("by cost, fires on many rows, and not where a filter keeps few of them") {
    val folder = Files.createTempDirectory("selinger-distinct").toString
    SharedSession.stock
      .range(0, 4000000, 1, 2)
      .selectExpr(
        "id % 10 AS k",
        "id % 1000 AS a",
        "id % 777 AS b",
        "id % 333 AS c",
        "id % 100 AS f"
      )
      .write
      .mode("overwrite")
      .parquet(folder)
    val counts =
      s"SELECT k, count(DISTINCT a), count(DISTINCT b), count(DISTINCT c) FROM parquet.`$folder`"
    val made = decisions(spark.sql(s"$counts GROUP BY k")).head
    assert(
      made.reason == rule.Split && made.setting.contains(SelingerConf.SPLIT_DISTINCT_MIN_GAIN.key)
    )
    withConf(made.setting.get -> made.settingTo.get)(
      assert(parts(spark.sql(s"$counts GROUP BY k")).isEmpty)
    )
    assertDeclines(s"$counts WHERE f = 7 GROUP BY k", rule.CopiesCostLess)
  }

  test("by cost, does not fire on few rows") {
    assertDeclines(
      "SELECT k, count(DISTINCT s), count(DISTINCT big) FROM facts GROUP BY k",
      rule.CopiesCostLess
    )
  }

  test("passes over one DISTINCT and grouping sets, which have other rules") {
    withConf(always) {
      Seq(
        "SELECT k, count(DISTINCT s), sum(big) FROM facts GROUP BY k",
        "SELECT k, flag, count(*) FROM facts GROUP BY CUBE (k, flag)"
      ).foreach(text => assert(decisions(spark.sql(text)).isEmpty))
    }
  }
}
