package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.LessThan
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Self-joins that become groups: where, and that the answers stay. */
class GroupSelfJoinsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = GroupSelfJoins
  private val always = SelingerConf.MERGE_MIN_GAIN.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  /** The keys of each table that is grouped. */
  private def grouped(df: DataFrame): Seq[Set[String]] =
    Plans.execution(df).optimizedPlan.collectWithSubqueries {
      case Filter(condition, Aggregate(keys, results, _, _))
          if condition.exists(_.isInstanceOf[LessThan]) && results.size == keys.size + 2 =>
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

  /** Asserts that tables are grouped by these keys, with the answer of stock Spark, in each mode. */
  private def assertFires(text: String, keys: Set[String]*): Unit = {
    val expected = stockAnswer()(spark.sql(text))
    for (mode <- Grid.firstAndOne(modes, text)) withClue(Grid.clue) {
      withConf(mode: _*) {
        val df = spark.sql(text)
        assert(grouped(df) == keys, Plans.execution(df).optimizedPlan)
        Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
        assert(decisions(df).count(_.outcome == Outcome.Changed) == keys.size)
      }
    }
  }

  private def assertPasses(text: String): Unit = {
    val expected = stockAnswer()(spark.sql(text))
    withConf(always) {
      val df = spark.sql(text)
      assert(grouped(df).isEmpty && decisions(df).isEmpty, Plans.execution(df).optimizedPlan)
      Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
    }
  }

  private def assertDeclines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    withConf(settings: _*) {
      val df = spark.sql(text)
      assert(grouped(df).isEmpty)
      assert(decisions(df).map(_.reason) == Seq(reason))
    }

  private def pairs(table: String, value: String = "s") =
    s"SELECT a.k FROM $table a JOIN $table b ON a.k = b.k AND a.$value <> b.$value"

  test("fires on IN and NOT IN, EXISTS and NOT EXISTS, with duplicates and nulls") {
    for (table <- Seq("facts", "dupes", "nulls", "nothing")) {
      assertFires(s"SELECT id FROM dims WHERE k IN (${pairs(table)})", Set("k"))
      assertFires(s"SELECT id FROM dims WHERE k NOT IN (${pairs(table)})", Set("k"))
    }
    val correlated = "SELECT 1 FROM facts a JOIN facts b ON a.k = b.k WHERE a.s < b.s AND b.k = m.k"
    assertFires(s"SELECT id FROM dims m WHERE EXISTS ($correlated)", Set("k"))
    assertFires(s"SELECT id FROM dims m WHERE NOT EXISTS ($correlated)", Set("k"))
    assertFires(s"SELECT id FROM dims m WHERE m.flag OR EXISTS ($correlated)", Set("k"))
  }

  test("fires on values of each type that may be compared, whichever comparison it is") {
    for (value <- Seq("amount", "day", "at", "s", "flag", "big"); is <- Seq("<>", "<", ">"))
      assertFires(
        s"SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.$value $is b.$value",
        Set("k")
      )
  }

  test("fires on DISTINCT, MIN and MAX, and below semi and anti joins that are written so") {
    assertFires(s"SELECT k FROM (${pairs("facts")}) GROUP BY k", Set("k"))
    assertFires(s"SELECT max(k), min(k + 1), count(DISTINCT k) FROM (${pairs("facts")})", Set("k"))
    assertFires(
      s"SELECT id FROM dims d LEFT SEMI JOIN (${pairs("dupes")}) p ON d.k = p.k",
      Set("k")
    )
    assertFires(
      s"SELECT id FROM dims d LEFT ANTI JOIN (${pairs("dupes")}) p ON d.k = p.k",
      Set("k")
    )
    assertFires(s"SELECT k FROM dims INTERSECT ${pairs("dupes")}", Set("k"))
    assertFires(s"SELECT k FROM dims EXCEPT ${pairs("dupes")}", Set("k"))
  }

  test("fires where the pair is joined with others, by either of its keys") {
    assertFires(
      "SELECT id FROM facts WHERE k IN " +
        "(SELECT b.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s JOIN dims d ON d.k = a.k)",
      Set("k")
    )
    assertFires(
      "SELECT DISTINCT d.s FROM dims d JOIN dupes a ON d.k = a.k JOIN dupes b ON d.k = b.k " +
        "WHERE a.day < b.day AND b.k < d.id",
      Set("k")
    )
  }

  test("fires on several keys, on filters of both readings, and on two pairs") {
    assertFires(
      "SELECT DISTINCT b.k, a.flag FROM dupes a JOIN dupes b " +
        "ON a.k = b.k AND a.flag = b.flag AND a.s <> b.s",
      Set("k", "flag")
    )
    assertFires(
      "SELECT DISTINCT a.k FROM facts a JOIN facts b ON a.k = b.k AND a.s <> b.s " +
        "WHERE a.day > DATE'2000-01-01' AND b.day > DATE'2000-01-01' AND a.k > 0",
      Set("k")
    )
    assertFires(
      s"SELECT id FROM dims WHERE k IN (${pairs("dupes")}) AND k NOT IN (${pairs("facts", "day")})",
      Set("k"),
      Set("k")
    )
  }

  test("passes over pairs whose number matters, or of which more than keys is used") {
    assertPasses(s"SELECT k, count(*) FROM (${pairs("dupes")}) GROUP BY k")
    assertPasses(s"SELECT sum(DISTINCT k), sum(k) FROM (${pairs("dupes")})")
    assertPasses(pairs("dupes"))
    assertPasses(s"SELECT id FROM dims d JOIN (${pairs("dupes")}) p ON d.k = p.k")
    assertPasses(
      "SELECT DISTINCT a.k, a.s FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s"
    )
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
        "JOIN dims d ON d.s = a.s"
    )
    assertPasses(s"SELECT id FROM dims WHERE k IN (${pairs("dupes")} ORDER BY 1 LIMIT 2)")
  }

  test("passes over other pairs: tables, filters, columns and comparisons that differ") {
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN facts b ON a.k = b.k AND a.s <> b.s"
    )
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s WHERE a.flag"
    )
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
        "WHERE a.day > DATE'2000-01-01' AND b.day > DATE'2010-01-01'"
    )
    assertPasses("SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.id AND a.s <> b.s")
    assertPasses("SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <= b.s")
    assertPasses("SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.id < b.big")
    assertPasses("SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k")
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s AND a.day <> b.day"
    )
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND (a.s <> b.s OR a.day = b.day)"
    )
    assertPasses("SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k <=> b.k AND a.s <> b.s")
    assertPasses("SELECT DISTINCT a.k FROM dupes a LEFT JOIN dupes b ON a.k = b.k AND a.s <> b.s")
  }

  test("passes over values and keys whose equal values have different bits") {
    assertPasses("SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.d <> b.d")
    assertPasses("SELECT DISTINCT a.d FROM dupes a JOIN dupes b ON a.d = b.d AND a.s <> b.s")
    spark.sql("SELECT k, s COLLATE UTF8_LCASE AS s FROM dupes").createOrReplaceTempView("loose")
    assertPasses("SELECT DISTINCT a.k FROM loose a JOIN loose b ON a.k = b.k AND a.s <> b.s")
  }

  test("passes over what is computed anew for each reading, and conditions that can raise errors") {
    assertPasses(
      "SELECT DISTINCT a.k FROM (SELECT k, rand() AS r, s FROM dupes) a " +
        "JOIN (SELECT k, rand() AS r, s FROM dupes) b ON a.k = b.k AND a.s <> b.s WHERE a.r < 2"
    )
    withConf("spark.sql.ansi.enabled" -> "true") {
      assertPasses(
        "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
          "WHERE 10 / a.id > 0 AND 10 / b.id > 0"
      )
    }
  }

  test("a condition that is met by no null stays, also where it compares the same on both sides") {
    assertFires(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
        "AND nullif(a.k, 5) = nullif(b.k, 5)",
      Set("k")
    )
    assertFires(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
        "JOIN dims d ON d.k = b.k AND coalesce(nullif(a.k, 5), d.big) = coalesce(nullif(b.k, 5), d.big)",
      Set("k")
    )
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
        "AND nullif(b.day, DATE'2000-01-01') = nullif(b.day, DATE'2000-01-01')"
    )
  }

  test("passes over readings of a folder before and after files were added") {
    withFolder { folder =>
      def added(value: Int) = spark.range(1).selectExpr("id AS k", s"$value AS v")
        .write.mode("append").parquet(s"$folder/growing")
      added(10)
      spark.read.parquet(s"$folder/growing").createOrReplaceTempView("before")
      added(20)
      spark.read.parquet(s"$folder/growing").createOrReplaceTempView("after")
      def keys(one: String, other: String) =
        s"SELECT DISTINCT a.k FROM $one a JOIN $other b ON a.k = b.k AND a.v <> b.v"
      assertPasses(keys("before", "after"))
      assertFires(keys("after", "after"), Set("k"))
    }
  }

  test("a CROSS JOIN beside the pair stays one, where Spark forbids others") {
    withConf("spark.sql.crossJoin.enabled" -> "false") {
      assertFires(
        "SELECT DISTINCT a.k, d.s FROM dupes a JOIN dupes b ON a.k = b.k AND a.day <> b.day " +
          "CROSS JOIN dims d",
        Set("k")
      )
    }
  }

  test("of several pairs of readings it takes each that it can") {
    assertFires(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
        "JOIN facts c ON c.k = a.k JOIN facts d ON d.k = c.k AND c.day < d.day",
      Set("k"),
      Set("k")
    )
    assertPasses(
      "SELECT DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s " +
        "JOIN dupes c ON c.k = a.k AND c.day <> b.day"
    )
  }

  test("by cost, fires where the table has many rows of few keys, and says what it saves") {
    withFolder { folder =>
      spark.range(2000000).selectExpr("id % 5000 AS k", "id % 7 AS v", "id")
        .write.parquet(s"$folder/sales")
      spark.read.parquet(s"$folder/sales").createOrReplaceTempView("sales")
      val text = "SELECT count(*) FROM sales WHERE k IN " +
        "(SELECT a.k FROM sales a JOIN sales b ON a.k = b.k AND a.v <> b.v)"
      val df = spark.sql(text)
      assert(grouped(df) == Seq(Set("k")))
      val made = decisions(df).head
      assert(made.reason == rule.Grouped && made.work.exists(work => work.chosen < work.stock))
      assert(made.chosen.contains("sales grouped by k"))
      withConf(made.setting.get -> made.settingTo.get)(assert(grouped(spark.sql(text)).isEmpty))
      withConf(SelingerConf.MODE.key -> "advise") {
        val advised = spark.sql(text)
        assert(grouped(advised).isEmpty)
        assert(decisions(advised).map(_.outcome) == Seq(Outcome.Advised))
      }
    }
  }

  test("does not fire with a hint") {
    assertDeclines(
      "SELECT /*+ MERGE(b) */ DISTINCT a.k FROM dupes a JOIN dupes b ON a.k = b.k AND a.s <> b.s",
      Reason.HintObeyed,
      always
    )
  }

  test("a second run changes nothing") {
    withConf(always) {
      val text = s"SELECT id FROM dims WHERE k IN (${pairs("dupes")})"
      val plan = Plans.execution(spark.sql(text)).optimizedPlan
      assert(new GroupSelfJoins(spark)(plan) fastEquals plan)
    }
  }
}
