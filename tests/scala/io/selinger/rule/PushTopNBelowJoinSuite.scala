package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.stats.keys.WholeColumns
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical._
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** First rows of an input of joins: where they are taken early, and that the answers stay. */
class PushTopNBelowJoinSuite extends AnyFunSuite with SharedSession {

  private val rule = PushTopNBelowJoin
  private val always = SelingerConf.EARLY_TOP_N_MIN_GAIN.key -> "0"

  // All rows of a query are sorted by `id`, which is unique unless a join repeats it.
  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    WholeColumns.clear()
    Tables.register(spark)
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  /** For each limit below a join or an array: how many rows, of which columns sorted by. */
  private def early(df: DataFrame): Seq[(Int, String)] =
    Plans.execution(df).optimizedPlan.collectWithSubqueries {
      case join @ (_: Join | _: Generate) =>
        join.children.flatMap(TopN.of).map(top =>
          top.most -> top.sort.order.map(_.sql.replaceAll("#\\d+|\\w+\\.", "")).mkString(", ")
        )
    }.flatten

  private def isSame(text: String): DataFrame = {
    val expected = stockAnswer()(spark.sql(text))
    val df = spark.sql(text)
    Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
    df
  }

  private val modes =
    for (adaptive <- Seq("true", "false"); broadcast <- Seq("-1", "10m"))
      yield Seq(
        always,
        "spark.sql.adaptive.enabled" -> adaptive,
        "spark.sql.autoBroadcastJoinThreshold" -> broadcast
      )

  private def fires(text: String, expected: (Int, String)*): Unit =
    for (mode <- Grid.firstAndOne(modes, text)) withClue(Grid.clue) {
      withConf(mode: _*) {
        val df = isSame(text)
        assert(early(df) == expected, Plans.execution(df).optimizedPlan)
        assert(decisions(df).map(_.reason) == expected.map(_ => rule.Pushed), decisions(df))
      }
    }

  private def passesBy(text: String): Assertion = withConf(always) {
    val df = isSame(text)
    assert(decisions(df).isEmpty)
    assert(early(df).isEmpty)
  }

  private def declines(text: String, reason: Reason): Assertion = withConf(always) {
    val df = isSame(text)
    assert(decisions(df).map(_.reason) == Seq(reason), Plans.execution(df).optimizedPlan)
  }

  private val byId = "id ASC NULLS FIRST"

  test("fires on outer joins that are sorted by the side that they preserve") {
    fires(
      "SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 5",
      5 -> byId
    )
    fires(
      "SELECT f.id, d.s FROM dims d RIGHT JOIN facts f ON f.k = d.id ORDER BY f.id LIMIT 5",
      5 -> byId
    )
    fires(
      "SELECT f.id, d.s FROM facts f LEFT JOIN nothing d ON f.k = d.id ORDER BY f.k DESC, f.id LIMIT 7",
      7 -> s"k DESC NULLS LAST, $byId"
    )
    fires(
      "SELECT f.id, d.s FROM nothing f LEFT JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 5",
      5 -> byId
    )
  }

  test("fires where rows are repeated, and where the condition says more") {
    fires(
      "SELECT f.id, d.k FROM facts f LEFT JOIN dupes d ON f.k = d.k ORDER BY f.id, f.k LIMIT 40",
      40 -> s"$byId, k ASC NULLS FIRST"
    )
    fires(
      "SELECT f.id, d.id AS d FROM facts f LEFT JOIN dims d ON f.k = d.id AND f.big > d.big AND f.flag " +
        "ORDER BY f.id LIMIT 90",
      90 -> byId
    )
    fires(
      "SELECT f.id, n.s FROM facts f LEFT JOIN nulls n ON f.k <=> n.k AND n.id = 3 ORDER BY f.id LIMIT 9",
      9 -> byId
    )
    fires(
      "SELECT f.id, n.high FROM dims f LEFT JOIN spans n ON f.id < n.low AND n.id = 3 ORDER BY f.id LIMIT 9",
      9 -> byId
    )
  }

  test("goes below all joins that keep the rows, and above those that do not") {
    fires(
      "SELECT f.id, a.s, b.s FROM facts f LEFT JOIN dims a ON f.k = a.id LEFT JOIN dupes b ON a.k = b.id " +
        "ORDER BY f.id DESC LIMIT 6",
      6 -> "id DESC NULLS LAST"
    )
    fires(
      "SELECT f.id, b.s FROM facts f JOIN dims a ON f.k = a.id AND a.flag LEFT JOIN dupes b ON a.k = b.id " +
        "ORDER BY a.id, f.id LIMIT 6",
      6 -> s"$byId, $byId"
    )
    fires(
      "SELECT f.id, b.s FROM (SELECT id, k FROM facts WHERE flag) f LEFT JOIN dims b ON f.k = b.id ORDER BY f.id LIMIT 6",
      6 -> byId
    )
  }

  test("fires below an offset, of all rows that it skips") {
    fires(
      "SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 5 OFFSET 30",
      35 -> byId
    )
  }

  test("fires where what is sorted by is computed, or only the rows are needed") {
    fires(
      "SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY coalesce(f.s, 'x'), f.id LIMIT 5",
      5 -> s"coalesce(s, 'x') ASC NULLS FIRST, $byId"
    )
    fires(
      "SELECT sum(x) FROM (SELECT f.id AS x, d.s FROM facts f LEFT JOIN dupes d ON f.k = d.k ORDER BY f.id, f.k LIMIT 50)" +
        " WHERE s <> 'none' OR s IS NULL",
      50 -> s"$byId, k ASC NULLS FIRST"
    )
  }

  test("fires in branches of a union that have such a join") {
    fires(
      "SELECT * FROM (SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id " +
        "UNION ALL SELECT id + 0.5, s FROM dims UNION ALL SELECT id, s FROM dupes WHERE id < 0) ORDER BY id LIMIT 8",
      8 -> "CAST(id AS DECIMAL(22,1)) ASC NULLS FIRST"
    )
  }

  test("fires on arrays of which a row has one element or more, or none") {
    fires(
      "SELECT k, at, tag FROM (SELECT monotonically_increasing_id() AS at, * FROM nested) " +
        "LATERAL VIEW OUTER explode(tags) t AS tag ORDER BY k, at LIMIT 10",
      10 -> "k ASC NULLS FIRST, at ASC NULLS FIRST"
    )
    passesBy(
      "SELECT f.id, tag FROM facts f LATERAL VIEW explode(array()) t AS tag ORDER BY f.id LIMIT 10"
    )
    passesBy(
      "SELECT k, tag FROM nested LATERAL VIEW OUTER explode(tags) t AS tag ORDER BY tag, k LIMIT 10"
    )
  }

  test("fires on inner joins of which each row is proven to have a match") {
    fires(
      "SELECT f.id, d.s FROM facts f JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 5",
      5 -> byId
    )
    fires(
      "SELECT f.id, d.s FROM dims d JOIN facts f ON f.k = d.id ORDER BY f.id LIMIT 5",
      5 -> byId
    )
    fires(
      "SELECT f.id, a.s, b.s FROM facts f JOIN dims a ON f.k = a.id LEFT JOIN dims b ON f.id = b.id ORDER BY f.id LIMIT 5",
      5 -> byId
    )
  }

  test("does not lose rows that have no match, nor rows whose key is null") {
    declines(
      "SELECT f.id, f.s, d.s AS t FROM facts f JOIN dims d ON f.id = d.id ORDER BY f.id DESC LIMIT 5",
      rule.MatchNotProven
    )
    passesBy(
      "SELECT f.id, d.s FROM (SELECT id, if(id < 9, null, id % 100) AS k FROM facts) f JOIN dims d ON f.k = d.id " +
        "ORDER BY f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.id, d.s FROM facts f JOIN dims d ON f.k = d.id AND d.flag ORDER BY f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.id, d.s FROM facts f JOIN dims d ON f.k = d.id AND f.s = d.s ORDER BY f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.id FROM facts f LEFT SEMI JOIN dims d ON f.k = d.id AND d.flag ORDER BY f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.id FROM facts f LEFT ANTI JOIN dims d ON f.k = d.id AND d.flag ORDER BY f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.id, d.id AS d FROM dupes f FULL JOIN dims d ON f.k = d.id AND d.id < 9 ORDER BY f.id, d LIMIT 5"
    )
    passesBy("SELECT f.id, d.s FROM dims f CROSS JOIN nothing d ORDER BY f.id LIMIT 5")
    WholeColumns.clear()
    withConf(always, SelingerConf.SAMPLING_BUDGET_MS.key -> "0") {
      val df =
        spark.sql("SELECT f.id, d.s FROM facts f JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 5")
      assert(decisions(df).map(_.reason) == Seq(rule.MatchNotProven))
    }
  }

  test("a filter that an outer join's nulls pass stays above, with what is sorted there") {
    passesBy(
      "SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id WHERE d.id IS NULL OR d.flag ORDER BY f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY d.id, f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY coalesce(d.id, f.id), f.id LIMIT 5"
    )
    passesBy(
      "SELECT f.k, count(d.id) FROM facts f LEFT JOIN dims d ON f.k = d.id GROUP BY f.k ORDER BY f.k LIMIT 5"
    )
    passesBy(
      "SELECT DISTINCT f.k FROM facts f LEFT JOIN dupes d ON f.k = d.k AND d.flag ORDER BY f.k LIMIT 5"
    )
    passesBy(
      "SELECT f.id, row_number() OVER (ORDER BY f.id DESC) AS n FROM facts f LEFT JOIN dupes d ON f.k = d.k " +
        "ORDER BY f.id, n LIMIT 5"
    )
    withConf(always) {
      val few = isSame(
        "SELECT f.id, d.s FROM (SELECT * FROM facts ORDER BY id LIMIT 3) f LEFT JOIN dims d ON f.k = d.id " +
          "ORDER BY f.id LIMIT 5"
      )
      assert(decisions(few).isEmpty)
    }
  }

  test("does not fire where errors or random numbers depend on how many rows there are") {
    val joined = "facts f LEFT JOIN dims d ON f.k = d.id"
    declines(
      s"SELECT f.id, 10 DIV (d.id + 1) AS q FROM $joined ORDER BY f.id LIMIT 5",
      Reason.MayRaise
    )
    declines(
      s"SELECT f.id, d.s FROM $joined AND 10 DIV (f.id + 1) > 2 ORDER BY f.id LIMIT 5",
      Reason.MayRaise
    )
    passesBy(s"SELECT f.id, 10 DIV (f.id + 1) AS q, d.s FROM $joined ORDER BY q, f.id LIMIT 5")
    withConf("spark.sql.ansi.enabled" -> "false") {
      fires(s"SELECT f.id, 10 DIV (d.id + 1) AS q FROM $joined ORDER BY f.id LIMIT 5", 5 -> byId)
    }
    withConf(always) {
      val df = spark.sql(s"SELECT f.id, d.s, rand(3) AS r FROM $joined ORDER BY f.id LIMIT 5")
      assert(decisions(df).map(_.reason) == Seq(Reason.MayRaise))
    }
  }

  test("an error in the input, or on the other side, is raised as before") {
    for (
      text <- Seq(
        "SELECT f.id, d.s FROM (SELECT id, k, s FROM facts WHERE 10 DIV (id - 2999) < 3) f LEFT JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 5",
        "SELECT f.id, d.q FROM facts f LEFT JOIN (SELECT id, 10 DIV (id - 149) AS q FROM dims) d ON f.k = d.id ORDER BY f.id LIMIT 5"
      )
    ) withConf(always) {
      val error = intercept[Exception](spark.sql(text).collect())
      assert(error.getMessage.contains("DIVIDE_BY_ZERO"), text)
    }
  }

  test("does not fire where another part of the query computes the same join") {
    val joined = "SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id"
    declines(
      s"SELECT * FROM ($joined ORDER BY f.id LIMIT 5) UNION ALL SELECT max(id), min(s) FROM ($joined)",
      Reason.SharedSubplan
    )
    withConf(always) {
      val df = isSame(s"($joined ORDER BY f.id LIMIT 5) UNION ALL ($joined ORDER BY f.id LIMIT 5)")
      assert(early(df) == Seq(5 -> byId, 5 -> byId))
    }
  }

  test("fires in the subqueries of a query, and within another one") {
    withConf(always) {
      val one =
        "SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 50"
      val df = isSame(
        s"SELECT x.id, x.s, b.s AS other FROM ($one) x LEFT JOIN dupes b ON x.id = b.id ORDER BY x.id DESC LIMIT 4"
      )
      assert(early(df) == Seq(4 -> "id DESC NULLS LAST", 50 -> byId))
      val scalar = isSame(s"SELECT id FROM dims WHERE s = (SELECT max(s) FROM ($one))")
      assert(decisions(scalar).map(_.reason) == Seq(rule.Pushed))
    }
  }

  test("cuts the rows that are joined only, not those that a subquery reads of the same table") {
    withConf(always) {
      for (
        text <- Seq(
          "SELECT n.*, (SELECT max(u.big) FROM dupes u WHERE u.id < n.k) AS m FROM dims n ORDER BY n.id LIMIT 9",
          "SELECT n.*, s.c FROM dims n LEFT JOIN LATERAL (SELECT count(*) AS c FROM dupes u WHERE u.id < n.k) s " +
            "ORDER BY n.id LIMIT 9"
        )
      ) {
        val df = isSame(text)
        val limits = Plans.execution(df).optimizedPlan.collect { case _: GlobalLimit => 1 }
        assert(limits.size == 2, Plans.execution(df).optimizedPlan)
        assert(early(df) == Seq(9 -> byId))
      }
    }
  }

  test("passes by where Spark may read a side of a join twice") {
    withConf("spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly" -> "false") {
      passesBy("SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id ORDER BY f.id LIMIT 5")
    }
  }

  test("by default fires where an input has many rows, and says what it saves") {
    val text = "SELECT f.id, d.v FROM big f LEFT JOIN others d ON f.k = d.id ORDER BY f.id LIMIT 10"
    withFolder { folder =>
      spark.range(3000000).selectExpr("id", "id % 100000 AS k").write.parquet(s"$folder/big")
      spark.range(100000).selectExpr("id", "id % 7 AS v").write.parquet(s"$folder/others")
      Seq("big", "others").foreach(name =>
        spark.read.parquet(s"$folder/$name").createOrReplaceTempView(name)
      )
      val fired = decisions(isSame(text))
      assert(fired.map(_.reason) == Seq(rule.Pushed), fired)
      assert(fired.head.chosen.contains("first 10 rows of big taken before it is joined"))
      assert(fired.head.evidence.map(_.value).head == 3000000.0)
      val few = decisions(spark.sql(text.replace("LIMIT 10", "LIMIT 2000000")))
      assert(few.map(_.reason) == Seq(rule.SavesLittle))
      withConf(SelingerConf.MODE.key -> "advise") {
        val advised = spark.sql(text)
        assert(early(advised).isEmpty)
        assert(decisions(advised).map(_.outcome) == Seq(Outcome.Advised))
      }
    }
  }

  test("a second run changes nothing") {
    withConf(always) {
      val text = "SELECT f.id, a.s, b.s FROM facts f LEFT JOIN dims a ON f.k = a.id " +
        "LEFT JOIN dupes b ON a.k = b.id ORDER BY f.id LIMIT 5"
      val plan = Plans.execution(spark.sql(text)).optimizedPlan
      assert(new PushTopNBelowJoin(spark)(plan) fastEquals plan)
    }
  }
}
