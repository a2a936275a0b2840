package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.{DataFrame, Encoder, Encoders}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.expressions.Aggregator
import org.apache.spark.sql.functions.{col, udaf}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Aggregations computed from the groups of a finer one, and that the answers stay. */
class ReuseFinerGroupsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = ReuseFinerGroups
  private val ansi = "spark.sql.ansi.enabled" -> "true"
  private val anyGain = SelingerConf.MERGE_MIN_GAIN.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def changed(df: DataFrame): Seq[Decision] =
    decisions(df).filter(_.outcome == Outcome.Changed)

  // What Spark computes once is there once.
  private def scans(df: DataFrame): Int =
    Plans.physical(df).collect { case scan: FileSourceScanExec => scan }.size

  private def isSame(text: String, settings: (String, String)*): DataFrame =
    withConf(settings: _*)(answers(text, stockAnswer()(spark.sql(text))))

  private def answers(text: String, expected: Answer): DataFrame = {
    val df = spark.sql(text)
    Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
    df
  }

  /** Asserts that the rule acts whatever the cost, and that so many scans remain, fewer than without. */
  private def fires(text: String, left: Int, settings: (String, String)*): DataFrame =
    withConf(settings :+ anyGain: _*) {
      val expected = stockAnswer()(spark.sql(text))
      val df = answers(text, expected)
      assert(changed(df).nonEmpty, Plans.execution(df).optimizedPlan)
      assert(changed(df).forall(_.reason == rule.Reused))
      assert(scans(df) == left, Plans.execution(df).executedPlan)
      val without = withConf(rule.switch -> "false")(answers(text, expected))
      assert(scans(without) > left, "without the rule there are no more")
      df
    }

  private def doesNotFire(text: String, settings: (String, String)*): DataFrame = {
    val df = isSame(text, anyGain +: settings: _*)
    assert(changed(df).isEmpty, decisions(df))
    df
  }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion = {
    val made = decisions(doesNotFire(text, settings: _*))
    assert(made.map(_.reason).contains(reason), made)
  }

  /** Groups of `facts`, each beside a total. */
  private def beside(fine: String, function: String, total: String, where: String = ""): String =
    s"SELECT a.*, b.* FROM (SELECT $fine, $function AS f FROM facts GROUP BY $fine) a " +
      s"CROSS JOIN (SELECT $total AS t FROM facts $where) b"

  test("fires on a total beside groups, of all functions that can be merged") {
    val functions =
      Seq("count(*)", "count(s)", "sum(k)", "avg(k)", "min(day)", "max(amount)", "sum(id)")
    functions.foreach { function =>
      // Of another function, or of the same.
      Grid.part(Seq("count(*)", function), share = 0.5, function).foreach { fine =>
        withClue(Grid.clue)(fires(beside("k, s", fine, function), left = 1))
      }
    }
    fires(beside("k", "max(id)", "avg(cast(k AS decimal(9, 2)))"), left = 1)
    fires(beside("k", "max(id)", "sum(k) FILTER (WHERE flag)"), left = 1)
    fires(beside("k", "max(id)", "sum(k) * 2 + count(*) / 3"), left = 1)
  }

  test("fires on groups by some of the columns, and on groups without functions") {
    fires(
      "SELECT k, s, flag, count(*) AS n FROM facts GROUP BY k, s, flag UNION ALL " +
        "SELECT k, s, null, count(*) FROM facts GROUP BY k, s UNION ALL " +
        "SELECT null, s, null, count(*) FROM facts GROUP BY s UNION ALL " +
        "SELECT null, null, null, count(*) FROM facts",
      left = 1
    )
    fires(
      "SELECT k, s FROM facts GROUP BY k, s UNION ALL SELECT k, 'all' FROM facts GROUP BY k",
      left = 1
    )
  }

  test("fires in subqueries, and on what a subquery and the query have in common") {
    fires(
      "SELECT k, sum(id) AS s FROM facts GROUP BY k " +
        "HAVING sum(id) > (SELECT 0.01 * sum(id) FROM facts)",
      left = 1
    )
  }

  test("fires through joins, unions and filters that both have") {
    val joined = "facts f JOIN dims d ON f.k = d.k WHERE f.id < 900 AND d.id > 3"
    fires(
      s"SELECT d.s, count(*) AS n, max(f.id) AS m FROM $joined GROUP BY d.s UNION ALL " +
        s"SELECT null, count(*), max(f.id) FROM $joined",
      left = 2
    )
    val union = "(SELECT k, s, id FROM facts UNION ALL SELECT k, s, id FROM dims)"
    fires(
      s"SELECT k, s, sum(id) AS n FROM $union GROUP BY k, s UNION ALL " +
        s"SELECT k, null, sum(id) + count(s) FROM $union GROUP BY k",
      left = 2
    )
  }

  test("fires on conditions on grouping columns, which are tested above the groups") {
    fires(beside("k, s", "count(*)", "count(*)", "WHERE s = 'B'"), left = 1)
    fires(beside("k, s", "count(*)", "sum(k)", "WHERE s IS NULL OR k > 50"), left = 1)
    fires(beside("k, s", "count(*)", "count(*)", "WHERE s = 'none'"), left = 1)
    fires(
      "SELECT a.*, b.* FROM (SELECT k, flag, min(id) AS n FROM facts WHERE flag GROUP BY k, flag) a " +
        "JOIN (SELECT k, max(id) AS m FROM facts GROUP BY k) b ON a.k <=> b.k",
      left = 1
    )
  }

  test("fires on several equal places of both") {
    fires(
      "WITH t AS (SELECT k, s, count(*) AS n FROM facts GROUP BY k, s), " +
        "u AS (SELECT count(*) AS n FROM facts) " +
        "SELECT a.k, b.n, u.n FROM t a JOIN t b ON a.k = b.k AND a.n = b.n, u " +
        "WHERE a.n < (SELECT n FROM u)",
      left = 1
    )
  }

  test("fires where there are no rows: a count is 0, other functions are null") {
    Seq("nothing", "facts WHERE id < 0").foreach { from =>
      val df = isSame(
        s"SELECT k, count(*) AS n, sum(id) AS s, avg(id) AS a FROM $from GROUP BY k UNION ALL " +
          s"SELECT null, count(*), sum(id), avg(id) FROM $from",
        anyGain
      )
      assert(changed(df).nonEmpty)
    }
  }

  test("fires beside DISTINCT in the finer aggregation") {
    fires(
      "SELECT k, count(DISTINCT s) AS n FROM facts GROUP BY k UNION ALL " +
        "SELECT null, count(*) FROM facts",
      left = 1
    )
  }

  test("fires with and without adaptive execution, and with ANSI") {
    for (adaptive <- Seq("true", "false"))
      fires(
        beside("k, s", "sum(id)", "sum(big)"),
        left = 1,
        ansi,
        "spark.sql.adaptive.enabled" -> adaptive
      )
  }

  test("totals that overflow are errors or null, as in Spark") {
    val huge = "sum(cast(k AS decimal(38, 0)) * 9999999999999999999999999999999999999)"
    Seq("true", "false").foreach { strict =>
      val _ = isSame(
        beside("k", "count(*)", huge),
        anyGain,
        "spark.sql.ansi.enabled" -> strict
      )
    }
  }

  test("does not fire on functions that cannot be merged") {
    Seq("stddev(k)", "count(DISTINCT s)", "collect_set(s)", "sum(big * 1000000)", "min(d)").foreach {
      function =>
        declines(
          beside("k", "count(*)", function),
          PushAggregateBelowJoin.NotDivisible,
          ansi
        )
    }
  }

  test("does not fire on keys that are equal without being the same") {
    doesNotFire(
      "SELECT d, k, count(*) AS n FROM facts GROUP BY d, k UNION ALL " +
        "SELECT d, null, count(*) FROM facts GROUP BY d"
    )
    doesNotFire(
      "WITH t AS (SELECT s COLLATE UTF8_LCASE AS c, k, id FROM facts) " +
        "SELECT c, k, count(*) AS n FROM t GROUP BY c, k UNION ALL " +
        "SELECT c, null, count(*) FROM t GROUP BY c"
    )
  }

  test("does not fire where rows differ in other conditions, or keys are others") {
    doesNotFire(beside("k", "count(*)", "count(*)", "WHERE s = 'B'"))
    doesNotFire(
      "SELECT k, s, count(*) AS n FROM facts GROUP BY k, s UNION ALL " +
        "SELECT null, null, count(*) FROM facts GROUP BY flag"
    )
    doesNotFire(
      "SELECT k, count(*) AS n FROM facts GROUP BY k UNION ALL SELECT null, count(*) FROM dims"
    )
  }

  test("does not fire on what may raise an error for rows of others") {
    declines(
      "SELECT a.*, b.* FROM (SELECT k, s, count(*) AS n FROM facts GROUP BY k, s) a CROSS JOIN " +
        "(SELECT max(1 div (id - 5)) AS m FROM facts WHERE k = 1) b",
      Reason.MayRaise,
      ansi
    )
  }

  test("does not fire where one is in a subquery of the other, or the same in both") {
    Seq(
      "SELECT k, sum(id) / (SELECT sum(id) FROM facts) AS share FROM facts GROUP BY k",
      "SELECT k, sum(CASE WHEN id > (SELECT avg(id) FROM facts) THEN 1 END) AS n FROM facts GROUP BY k",
      "SELECT a.k, b.m FROM (SELECT k, count(*) AS n FROM facts GROUP BY k) a CROSS JOIN (SELECT " +
        "max(id + (SELECT max(n) FROM (SELECT k, count(*) AS n FROM facts GROUP BY k))) AS m FROM facts) b"
    ).foreach(text => isSame(text, anyGain, SelingerConf.FAIL_ON_ERROR.key -> "true"))
  }

  test("functions that Spark takes for the same, but add up in another order, stay apart") {
    doesNotFire(
      "SELECT k, s, max(k + k * 2 + k * 3) AS x FROM facts GROUP BY k, s UNION ALL " +
        "SELECT k, null, max(k + (k * 2 + k * 3)) FROM facts GROUP BY k"
    )
  }

  test("does not fire where the finer aggregation keeps objects, which each place would finish") {
    doesNotFire(beside("k", "collect_set(s)", "count(*)"))
    val greatest = new Aggregator[Long, Long, Long] {
      override def zero: Long = 0L
      override def reduce(a: Long, b: Long): Long = math.max(a, b)
      override def merge(a: Long, b: Long): Long = math.max(a, b)
      override def finish(a: Long): Long = a
      override def bufferEncoder: Encoder[Long] = Encoders.scalaLong
      override def outputEncoder: Encoder[Long] = Encoders.scalaLong
    }
    val function = udaf(greatest, Encoders.scalaLong)
    withConf(anyGain) {
      val fine = spark.table("facts").groupBy("k").agg(function(col("id")).as("m"))
      val df = fine.crossJoin(spark.table("facts").groupBy().count())
      assert(Answer.of(df).isInstanceOf[Answer.Rows] && changed(df).isEmpty)
    }
  }

  test("by cost: it must save what merge.minGain asks for") {
    withFolder { folder =>
      val path = folder.resolve("rows").toString
      spark.range(0, 4000000, 1, 2).selectExpr("id % 50 AS k", "id").write.parquet(path)
      spark.read.parquet(path).createOrReplaceTempView("rows")
      // It is only planned.
      def made(key: String, minGain: String) = withConf(SelingerConf.MERGE_MIN_GAIN.key -> minGain) {
        decisions(
          spark.sql(
            s"SELECT a.*, b.* FROM (SELECT $key, count(*) AS n FROM rows GROUP BY $key) a " +
              "CROSS JOIN (SELECT count(*) AS t FROM rows) b"
          )
        )
      }
      assert(made("k", "0.1").map(_.outcome) == Seq(Outcome.Changed))
      assert(made("k", "0.9").map(_.reason) == Seq(MergeSubplansByCost.CheaperApart))
      // As many groups as rows save nothing.
      assert(made("id", "0.1").map(_.reason) == Seq(MergeSubplansByCost.CheaperApart))
    }
    // Few rows are read as fast as groups are merged.
    assert(changed(isSame(beside("k", "count(*)", "count(*)"))).isEmpty)
  }

  test("says nothing where no aggregation is finer than another one") {
    Seq(
      "SELECT k, count(*) FROM facts GROUP BY k",
      "SELECT a.n, b.n FROM (SELECT k, count(*) AS n FROM facts GROUP BY k) a " +
        "JOIN (SELECT s, count(*) AS n FROM facts GROUP BY s) b ON a.n = b.n",
      "SELECT count(*) FROM (SELECT k, count(*) FROM facts GROUP BY k)"
    ).foreach(text => assert(decisions(isSame(text, anyGain)).isEmpty, text))
  }

  test("mode advise changes nothing and says what it would do") {
    withConf(anyGain, SelingerConf.MODE.key -> "advise") {
      val df = spark.sql(beside("k", "count(*)", "count(*)"))
      assert(scans(df) == 2)
      assert(decisions(df).map(_.outcome) == Seq(Outcome.Advised))
    }
  }
}
