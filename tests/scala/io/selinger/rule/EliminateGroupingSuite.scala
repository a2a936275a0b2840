package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.stats.keys.WholeColumns
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Aggregations whose groups are single rows: which are left out, and that the answers stay. */
class EliminateGroupingSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = EliminateGrouping

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    WholeColumns.clear()
    Tables.register(spark)
  }

  private def groupings(df: DataFrame): Int =
    Plans.execution(df).optimizedPlan.collectWithSubqueries { case _: Aggregate => 1 }.size

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def isSame(text: String): DataFrame = {
    val expected = stockAnswer()(spark.sql(text))
    val df = spark.sql(text)
    Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
    df
  }

  /** Asserts that so many aggregations are left, which are fewer than Spark's. */
  private def fires(text: String, left: Int = 0): Assertion = {
    val df = isSame(text)
    assert(groupings(df) == left, Plans.execution(df).optimizedPlan)
    assert(withConf(SelingerConf.MODE.key -> "off")(groupings(spark.sql(text))) > left)
    assert(decisions(df).exists(_.reason == rule.NotNeeded))
  }

  private def declines(text: String, reason: Reason): Assertion = {
    val df = isSame(text)
    assert(decisions(df).map(_.reason) == Seq(reason), text)
    assert(groupings(df) > 0)
  }

  private def passesBy(text: String): Assertion = {
    val df = isSame(text)
    assert(decisions(df).isEmpty && groupings(df) > 0, Plans.execution(df).optimizedPlan)
  }

  test("fires on DISTINCT and GROUP BY with a key among their columns") {
    fires("SELECT DISTINCT id, s FROM dims")
    fires("SELECT DISTINCT * EXCEPT (d) FROM dims")
    fires("SELECT id, k FROM dims GROUP BY k, id, upper(s)")
    isSame("SELECT DISTINCT id FROM nothing")
    fires("SELECT DISTINCT id FROM dims WHERE flag AND k > 3")
    fires("SELECT id AS other, count(*) AS n FROM dims GROUP BY id HAVING count(*) > 0")
  }

  test("fires on dropDuplicates, whatever columns it keeps the first of") {
    val text =
      "SELECT id, first(s) AS s, first(k, true) AS k, first(d) AS d, last(amount) AS a FROM dims GROUP BY id"
    fires(text)
    val df = spark.table("dims").dropDuplicates("id")
    assert(groupings(df) == 0, Plans.execution(df).optimizedPlan)
    assert(df.count() == 150)
  }

  test("computes functions of a group of one row as Spark does, of nulls and filtered rows, too") {
    fires(
      "SELECT id, count(*), count(k), count(s, k), count(DISTINCT s), sum(k), sum(big), sum(amount), " +
        "avg(k), avg(big), min(s), max(d), max_by(s, big), min_by(k, d), any_value(at) FROM dims GROUP BY id"
    )
    fires(
      "SELECT id, count(*) FILTER (WHERE flag), sum(k) FILTER (WHERE k > 30), max(s) FILTER (WHERE k < 50), " +
        "avg(DISTINCT k), sum(DISTINCT amount), coalesce(sum(k), count(*)) FROM dims GROUP BY id"
    )
  }

  test("the types and names of columns stay") {
    val text =
      "SELECT id, sum(k) AS a, sum(amount) AS b, avg(k), count(s), max(day) FROM dims GROUP BY id"
    val expected =
      withConf(SelingerConf.MODE.key -> "off")(Plans.execution(spark.sql(text)).executedPlan)
    val found = Plans.execution(spark.sql(text)).executedPlan
    assert(found.output.map(c => c.name -> c.dataType) == expected.output.map(c =>
      c.name -> c.dataType
    ))
  }

  test("fires above joins that keep the key, and below other aggregations") {
    fires("SELECT DISTINCT f.id, f.s FROM facts f JOIN dims d ON f.k = d.id AND d.flag")
    fires("SELECT k, count(*) AS n FROM (SELECT DISTINCT id, k FROM facts) GROUP BY k", left = 1)
    fires(
      "SELECT f.id, d.s FROM facts f LEFT JOIN (SELECT id, max(s) AS s FROM dims GROUP BY id) d ON f.k = d.id"
    )
    fires("SELECT id FROM dupes WHERE id IN (SELECT DISTINCT id FROM dims)")
  }

  test("fires on keys of two columns, and with two candidates of which one is a key") {
    withFolder { folder =>
      spark.range(1000).selectExpr(
        "id DIV 10 AS a",
        "id % 10 AS b",
        "id AS c",
        "if(id = 5, 4, id) AS twice"
      )
        .write.parquet(s"$folder/t")
      fires(s"SELECT DISTINCT a, b FROM parquet.`$folder/t`")
      fires(s"SELECT DISTINCT twice, c FROM parquet.`$folder/t`")
      declines(s"SELECT DISTINCT twice, a FROM parquet.`$folder/t`", rule.NotProven)
      passesBy(s"SELECT DISTINCT a FROM parquet.`$folder/t`")
    }
  }

  test("does not fire where the key has duplicates or nulls, which are one group") {
    withFolder { folder =>
      spark.range(100).selectExpr("if(id < 2, null, id) AS k", "if(id = 1, 2, id) AS twice")
        .write.parquet(s"$folder/t")
      declines(s"SELECT k, count(*) FROM parquet.`$folder/t` GROUP BY k", rule.NotProven)
      declines(s"SELECT twice, count(*) FROM parquet.`$folder/t` GROUP BY twice", rule.NotProven)
      fires(s"SELECT k, count(*) FROM parquet.`$folder/t` WHERE k > 1 GROUP BY k")
    }
    passesBy("SELECT f.id, count(*) FROM facts f LEFT JOIN dupes d ON f.id = d.k GROUP BY f.id")
    passesBy("SELECT s, count(*) FROM dims GROUP BY s")
    passesBy("SELECT count(*), sum(k) FROM dims")
    passesBy(
      "SELECT id, count(*) FROM (SELECT id FROM dims UNION ALL SELECT id FROM dims) GROUP BY id"
    )
  }

  test("does not fire where a column is filled with nulls by an outer join") {
    passesBy(
      "SELECT DISTINCT d.id FROM facts f RIGHT JOIN dims e ON f.id = e.id + 149 LEFT JOIN dims d ON f.id = d.id"
    )
  }

  test("does not fire on functions of which more is asked, nor on floating-point numbers") {
    declines("SELECT id, collect_list(s) FROM dims GROUP BY id", rule.NeedsGroups)
    declines("SELECT id, sum(d) FROM dims GROUP BY id", rule.NeedsGroups)
    declines("SELECT id, avg(amount) FROM dims GROUP BY id", rule.NeedsGroups)
    declines("SELECT id, stddev(k) FROM dims GROUP BY id", rule.NeedsGroups)
    declines("SELECT DISTINCT id, d FROM dims", rule.GroupedByFloats)
    declines("SELECT DISTINCT id, struct(d, k) AS p FROM dims", rule.GroupedByFloats)
  }

  test("does not fire where an error would be lost, and raises those that functions have") {
    declines("SELECT id FROM dims GROUP BY id, 10 DIV (id + 1)", Reason.MayRaise)
    declines(
      "SELECT id FROM (SELECT id, 10 DIV (id + 1) AS q FROM dims) GROUP BY id, q",
      Reason.MayRaise
    )
    declines(
      "SELECT id, 10 DIV (id + 1) AS q FROM dims GROUP BY id, 10 DIV (id + 1)",
      Reason.MayRaise
    )
    declines("SELECT id, max(10 DIV (id + 1)) AS q FROM dims GROUP BY id LIMIT 3", Reason.MayRaise)
    declines(
      "SELECT id, if(max(k) > 0, 10 DIV max(k), 0) AS q FROM dims GROUP BY id",
      Reason.MayRaise
    )
    declines(
      "SELECT f.id, max(f.k) AS k FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.id HAVING 10 DIV (max(f.k) + 1) > 1",
      Reason.MayRaise
    )
    val error = intercept[Exception](
      spark.sql(
        "SELECT id, max(10 DIV (id - 9)) AS q FROM dims GROUP BY id HAVING max(id) <> 9"
      ).collect()
    )
    assert(error.getMessage.contains("DIVIDE_BY_ZERO"))
    withConf("spark.sql.ansi.enabled" -> "false") {
      fires("SELECT id, max(10 DIV (id - 9)) AS q FROM dims GROUP BY id HAVING max(id) <> 9")
    }
  }

  test("does not fire where Spark computes a join once for several places") {
    val one = "SELECT f.id, max(d.s) AS s FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.id"
    val df = isSame(s"$one UNION ALL $one")
    assert(decisions(df).map(_.reason).toSet == Set(Reason.SharedSubplan))
    fires("SELECT DISTINCT id, s FROM dims UNION ALL SELECT DISTINCT id, s FROM dims")
  }

  test("a column that is null only in some rows of a join is no key there") {
    withFolder { folder =>
      spark.range(2000).selectExpr("id", "if(id = 7, null, id) AS k", "id + 1 AS n")
        .write.parquet(s"$folder/t")
      spark.read.parquet(s"$folder/t").createOrReplaceTempView("keyed")
      def keyed(join: String) = s"SELECT DISTINCT a.k, a.n FROM (SELECT k, n FROM keyed) a $join"
      fires("SELECT DISTINCT a.id FROM keyed a LEFT JOIN keyed b ON a.n = b.id AND b.n > 30")
      assert(groupings(
        isSame("SELECT DISTINCT a.id FROM keyed a WHERE a.n IN (SELECT id FROM keyed)")
      ) == 0)
      declines("SELECT k, count(*) FROM keyed GROUP BY k", rule.NotProven)
      declines(
        "SELECT k, count(*) FROM (SELECT * FROM keyed ORDER BY n LIMIT 100) GROUP BY k",
        rule.NotProven
      )
      isSame(keyed("LEFT JOIN keyed b ON a.n = b.id"))
    }
  }

  test("a result may still be null, and has the metadata that it had") {
    val text =
      "SELECT id, max(n) AS n FROM (SELECT id, count(*) AS n FROM dims GROUP BY id) GROUP BY id"
    withConf(SelingerConf.FAIL_ON_ERROR.key -> "true")(fires(text))
  }

  test("without time nothing is proven; in advise mode nothing changes") {
    val text = "SELECT DISTINCT id, s FROM dims"
    withConf(SelingerConf.SAMPLING_BUDGET_MS.key -> "0")(declines(text, rule.NotProven))
    withConf(SelingerConf.MODE.key -> "advise") {
      val df = spark.sql(text)
      assert(groupings(df) == 1)
      assert(decisions(df).map(_.outcome) == Seq(Outcome.Advised))
    }
    fires(text)
  }
}
