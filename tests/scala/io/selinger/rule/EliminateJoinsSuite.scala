package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.stats.keys.WholeColumns
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Joins that change nothing: which are left out, and that the answers stay. */
class EliminateJoinsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] =
    SharedSession.interpreted ++ SharedSession.grouped

  private val rule = EliminateJoins
  private val off = SelingerConf.MODE.key -> "off"
  private val maxRows = SelingerConf.KEYS_MAX_ROWS.key

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    WholeColumns.clear()
    Tables.register(spark)
    // Keys that leave the range of those of dims, which has 0 to 149.
    spark.sql(
      "SELECT id, if(id % 5 = 0, null, id % 200) AS k FROM facts"
    ).createOrReplaceTempView("wide")
  }

  private def joins(df: DataFrame): Int =
    Plans.execution(df).optimizedPlan.collectWithSubqueries { case _: Join => 1 }.size

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def isSame(text: String, settings: (String, String)*): DataFrame =
    withConf(settings: _*) {
      val expected = stockAnswer()(spark.sql(text))
      val df = spark.sql(text)
      Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
      df
    }

  /** Asserts that so many joins are left, which are fewer than Spark's. */
  private def fires(text: String, left: Int = 0): DataFrame = {
    val df = isSame(text)
    assert(joins(df) == left, Plans.execution(df).optimizedPlan)
    assert(withConf(off)(joins(spark.sql(text))) > left, "Spark has no more itself")
    assert(decisions(df).exists(_.reason == rule.NotNeeded), s"$text: ${Plans.execution(df)}")
    df
  }

  private def doesNotFire(text: String, settings: (String, String)*): DataFrame = {
    val df = isSame(text, settings: _*)
    assert(!decisions(df).exists(_.outcome == Outcome.Changed), decisions(df))
    assert(joins(df) > 0)
    df
  }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion = {
    val df = doesNotFire(text, settings: _*)
    assert(decisions(df).map(_.reason).contains(reason), Plans.execution(df).optimizedPlan)
  }

  test("fires on outer joins by a key of a table whose columns nobody uses") {
    fires("SELECT f.id, f.s FROM facts f LEFT JOIN dims d ON f.k = d.id")
    fires("SELECT f.id FROM dims d RIGHT JOIN facts f ON f.k = d.id")
    fires("SELECT count(*), sum(f.k) FROM facts f LEFT JOIN dims d ON f.k = d.id")
    fires("SELECT f.id FROM facts f LEFT JOIN nothing d ON f.k = d.id")
  }

  test("fires whatever else the condition says, and whatever filters the other side") {
    fires("SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id AND f.big > d.big AND d.s = 'a'")
    fires("SELECT f.id FROM facts f LEFT JOIN (SELECT * FROM dims WHERE flag) d ON d.id = f.k")
    fires("SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id AND f.k = d.k")
  }

  test("fires in several joins of a view, below filters, sorts, windows, limits and unions") {
    val wide = "facts f LEFT JOIN dims a ON f.k = a.id LEFT JOIN dims b ON f.id = b.id " +
      "LEFT JOIN dupes c ON a.k = c.id"
    fires(s"SELECT f.id FROM $wide WHERE f.k > 3 ORDER BY f.s, f.id")
    fires(s"SELECT f.id, row_number() OVER (PARTITION BY f.k ORDER BY f.id) AS n FROM $wide")
    fires(s"SELECT f.id FROM $wide UNION ALL SELECT id FROM dims")
    fires(s"SELECT a.s, count(*) FROM $wide GROUP BY a.s", left = 1)
    fires(s"SELECT c.s FROM $wide WHERE f.id < 500", left = 2)
    fires(s"SELECT f.k, count(DISTINCT f.s) FROM $wide GROUP BY ROLLUP(f.k)")
    fires(
      "SELECT id, (SELECT count(f.id) FROM facts f LEFT JOIN dims d ON f.k = d.id) AS n FROM dupes"
    )
  }

  test("fires where a grouping, a distinct or a join makes the other side unique") {
    fires(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT id, s FROM dims GROUP BY id, s) d ON f.k = d.id"
    )
    fires(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT a.id FROM dims a JOIN dupes b ON a.k = b.id) d ON f.k = d.id"
    )
    fires(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT a.id FROM dims a LEFT JOIN dupes b ON a.k = b.id) d ON f.k = d.id"
    )
    fires(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT a.id FROM dims a LEFT SEMI JOIN dupes b ON a.k = b.k) d ON f.k = d.id"
    )
    fires(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT id, rank() OVER (PARTITION BY k ORDER BY id) r FROM dims) d " +
        "ON f.k = d.id AND d.r < 3"
    )
  }

  test("fires on keys of several columns, of texts, days and decimals, and of other widths") {
    spark
      .sql(
        "SELECT id DIV 10 AS a, id % 10 AS b, cast(id AS string) AS s, date_add(date'2000-01-01', int(id)) AS day, " +
          "cast(id AS decimal(12, 2)) AS amount, int(id) AS small FROM dims"
      )
      .createOrReplaceTempView("source")
    withFolder { folder =>
      Grid.part(Seq("parquet", "orc"), share = 0.5, "formats").foreach { format =>
        val path = s"$folder/$format"
        spark.table("source").repartition(3).write.format(format).save(path)
        val keyed = s"$format.`$path`"
        fires(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.k = d.a AND f.id = d.b")
        declines(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.k = d.a", rule.KeyNotProven)
        fires(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.s = d.s")
        fires(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.day = d.day")
        fires(
          s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON cast(f.k AS decimal(12, 2)) = d.amount"
        )
        fires(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.big = d.small")
        fires(s"SELECT f.id FROM facts f JOIN $keyed d ON f.k = d.small")
      }
    }
  }

  test("fires on inner joins whose keys all have a match, also where they are null") {
    fires("SELECT f.id, f.s FROM facts f JOIN dims d ON f.k = d.id")
    fires("SELECT f.id, d.id AS d FROM facts f JOIN dims d ON f.k = bigint(d.id)")
    fires("SELECT count(*) FROM dims d JOIN facts f ON d.id = f.k WHERE f.flag")
    fires("SELECT f.id FROM facts f JOIN dims d ON f.k = d.id WHERE f.k > 30")
    fires("SELECT f.id FROM facts f JOIN dims a ON f.k = a.id JOIN dims b ON f.k = b.id")
    fires(
      "SELECT f.id FROM facts f JOIN (SELECT id FROM dims GROUP BY id) d ON f.k = d.id WHERE f.id < 9"
    )
    fires("SELECT d.id, count(*) FROM dupes f JOIN facts d ON f.id = d.id GROUP BY d.id")
  }

  test("fires on semi joins whose keys all have a match") {
    fires("SELECT f.id FROM facts f LEFT SEMI JOIN dims d ON f.k = d.id")
    declines("SELECT f.id FROM wide f LEFT SEMI JOIN dims d ON f.k = d.id", rule.MatchNotProven)
  }

  test("keeps the columns of the query in their order") {
    fires(
      "SELECT * FROM (SELECT id AS a FROM dims) x JOIN (SELECT id AS b, k FROM dims) y ON x.a = y.b"
    )
    fires(
      "SELECT a, sum(b), sum(k) FROM (SELECT a, b, k FROM (SELECT id AS a FROM dims) x " +
        "JOIN (SELECT id AS b, k FROM dims) y ON x.a = y.b " +
        "UNION ALL SELECT id, id + 1000, k FROM facts) GROUP BY a"
    )
  }

  test("fires again where a column was needed by a join that is left out only") {
    fires(
      "SELECT x.id FROM (SELECT f.id, max(d.big) AS m FROM facts f LEFT JOIN dims d ON f.k = d.id GROUP BY f.id) x " +
        "LEFT JOIN dupes e ON x.m = e.id"
    )
  }

  test("does not fire where another part of the query has the same join, and needs it") {
    val one = "SELECT f.id, '' AS s FROM facts f JOIN dims d ON f.k = d.id"
    val other = "SELECT f.id, d.s FROM dims d JOIN facts f ON f.k = d.id"
    declines(s"$one UNION ALL $other", Reason.SharedSubplan)
    declines(s"$one WHERE f.id > (SELECT count(d.s) FROM ($other) d)", Reason.SharedSubplan)
    fires(s"$one UNION ALL $one")
    fires(s"$one UNION ALL SELECT f.big, d.s FROM facts f JOIN dims d ON f.id = d.k", left = 1)
  }

  test("tells of it where nothing but a leaf is left") {
    fires("SELECT f.* FROM facts f LEFT JOIN dims d ON f.k = d.id")
    fires("SELECT r.id FROM range(10) r LEFT JOIN dims d ON r.id = d.id")
    assert(decisions(spark.sql("SELECT * FROM facts")).isEmpty)
  }

  test("does not fire where a column that only the join reads can raise an error") {
    declines(
      "SELECT f.id FROM (SELECT id, 10 DIV (id + 1) AS q FROM facts) f LEFT JOIN dims d ON f.q = d.id",
      Reason.MayRaise
    )
    declines(
      "SELECT f.id FROM (SELECT id, sum(big) * 2 AS q FROM facts GROUP BY id) f LEFT JOIN dims d ON f.q = d.id",
      Reason.MayRaise
    )
    declines(
      "SELECT f.id FROM (SELECT id, 10 DIV (id + 1) AS q FROM facts) f LEFT JOIN dims d ON f.id = d.id AND q > 2",
      Reason.MayRaise
    )
    fires(
      "SELECT f.id, f.q FROM (SELECT id, 10 DIV (id + 1) AS q FROM facts) f LEFT JOIN dims d ON f.q = d.id"
    )
    withConf("spark.sql.ansi.enabled" -> "false") {
      fires(
        "SELECT f.id FROM (SELECT id, 10 DIV (id + 1) AS q FROM facts) f LEFT JOIN dims d ON f.q = d.id"
      )
    }
  }

  test(
    "does not fire on numbers that wrap around as narrower ones, nor on files that lack the column"
  ) {
    withFolder { folder =>
      spark.range(0, 256).selectExpr("int(id) AS k").write.parquet(s"$folder/wide")
      spark.range(0, 256).write.parquet(s"$folder/keys")
      spark.read.schema("k tinyint").parquet(s"$folder/wide").createOrReplaceTempView("narrow")
      declines(
        s"SELECT t.k FROM narrow t JOIN parquet.`$folder/keys` d ON t.k = d.id",
        rule.MatchNotProven
      )
      spark.range(5).selectExpr("id AS other").write.mode("append").parquet(s"$folder/keys")
      spark.read.schema(
        "id bigint, other bigint"
      ).parquet(s"$folder/keys").createOrReplaceTempView("mixed")
      declines("SELECT f.id FROM facts f LEFT JOIN mixed d ON f.k = d.id", rule.KeyNotProven)
    }
  }

  test("without time nothing is proven, and with time it is") {
    val text = "SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id"
    declines(text, rule.KeyNotProven, SelingerConf.SAMPLING_BUDGET_MS.key -> "0")
    fires(text)
  }

  test("does not fire where nulls are compared, which may be several") {
    withFolder { folder =>
      spark.sql("SELECT if(id < 3, null, id) AS id FROM dims").write.parquet(s"$folder/nulls")
      val keyed = s"parquet.`$folder/nulls`"
      fires(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.k = d.id")
      declines(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.k <=> d.id", rule.KeyNotProven)
      declines(
        s"SELECT f.id FROM facts f LEFT JOIN (SELECT a.id FROM dims a LEFT JOIN $keyed b ON a.k <=> b.id) d " +
          "ON f.k = d.id",
        rule.KeyNotProven
      )
      doesNotFire(s"SELECT f.id FROM facts f JOIN dims d ON f.k <=> d.id")
    }
  }

  test("does not fire where keys of the table repeat, or a column of it is used") {
    declines("SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.k", rule.KeyNotProven)
    declines("SELECT f.id FROM facts f LEFT JOIN dupes d ON f.s = d.s", rule.KeyNotProven)
    declines(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT id FROM dims UNION ALL SELECT id FROM dupes) d ON f.k = d.id",
      rule.KeyNotProven
    )
    declines(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT a.id FROM dims a JOIN dupes b ON a.k = b.k) d ON f.k = d.id",
      rule.KeyNotProven
    )
    doesNotFire("SELECT f.id, d.s FROM facts f LEFT JOIN dims d ON f.k = d.id")
    doesNotFire("SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id WHERE d.s IS NULL")
    doesNotFire(
      "SELECT f.id, count(d.id) FROM facts f LEFT JOIN dims d ON f.k = d.id GROUP BY f.id"
    )
    doesNotFire("SELECT d.id FROM facts f LEFT JOIN dims d ON f.k = d.id")
  }

  test("does not fire on inner joins that remove rows") {
    declines("SELECT f.id FROM wide f JOIN dims d ON f.k = d.id", rule.MatchNotProven)
    doesNotFire("SELECT f.id FROM facts f JOIN dims d ON f.k = d.id WHERE d.flag")
    doesNotFire("SELECT f.id FROM facts f JOIN dims d ON f.k = d.id AND d.id < 40 AND f.s = d.s")
    doesNotFire("SELECT f.id FROM facts f JOIN (SELECT id FROM dims LIMIT 20) d ON f.k = d.id")
    doesNotFire(
      "SELECT f.id FROM facts f JOIN (SELECT * FROM dims TABLESAMPLE (10 PERCENT) REPEATABLE (3)) d ON f.k = d.id"
    )
    doesNotFire("SELECT f.id FROM facts f FULL JOIN dims d ON f.k = d.id")
    doesNotFire("SELECT f.id FROM facts f LEFT ANTI JOIN dims d ON f.k = d.id")
    doesNotFire(
      "SELECT * FROM (SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id) TABLESAMPLE (10 PERCENT) REPEATABLE (3)"
    )
  }

  test("does not fire where a number is missing among the keys") {
    withFolder { folder =>
      spark.range(0, 150).where("id <> 70").write.parquet(s"$folder/gap")
      declines(
        s"SELECT f.id FROM facts f JOIN parquet.`$folder/gap` d ON f.k = d.id",
        rule.MatchNotProven
      )
      fires(s"SELECT f.id FROM facts f LEFT JOIN parquet.`$folder/gap` d ON f.k = d.id")
    }
  }

  test("follows the files: a duplicate that comes later, and one in a file of another partition") {
    withFolder { folder =>
      val path = s"$folder/keys"
      val text = s"SELECT f.id FROM facts f LEFT JOIN parquet.`$path` d ON f.k = d.id"
      spark.range(0, 100).write.parquet(path)
      fires(text)
      spark.range(50, 51).write.mode("append").parquet(path)
      declines(text, rule.KeyNotProven)
      spark.range(0, 100).selectExpr(
        "id % 50 AS id",
        "id DIV 50 AS p"
      ).write.partitionBy("p").parquet(s"$folder/parts")
      declines(
        s"SELECT f.id FROM facts f LEFT JOIN parquet.`$folder/parts` d ON f.k = d.id",
        rule.KeyNotProven
      )
      declines(
        s"SELECT f.id FROM facts f LEFT JOIN parquet.`$folder/parts` d ON f.k = d.p",
        rule.KeyNotProven
      )
    }
  }

  test("does not fire on floating-point numbers and collated texts, whose equal values differ") {
    withFolder { folder =>
      spark
        .sql("SELECT double(id) AS d, if(id = 1, 'A', if(id = 2, 'a', string(id))) AS s FROM dims")
        .write
        .parquet(s"$folder/keys")
      val keyed = s"parquet.`$folder/keys`"
      declines(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.d = d.d", rule.KeyNotProven)
      fires(s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.s = d.s")
      spark.read.parquet(
        s"$folder/keys"
      ).selectExpr("s COLLATE UTF8_LCASE AS s").write.parquet(s"$folder/collated")
      declines(
        "SELECT f.id FROM (SELECT id, s COLLATE UTF8_LCASE AS s FROM facts) f " +
          s"LEFT JOIN parquet.`$folder/collated` d ON f.s = d.s",
        Reason.MayRaise
      )
      declines(
        s"SELECT f.id FROM facts f LEFT JOIN $keyed d ON f.s <=> d.s",
        rule.KeyNotProven
      )
    }
  }

  test("explains a join that is left out also above IN, which becomes a join") {
    val text = "SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id " +
      "WHERE f.id IN (SELECT id FROM dupes)"
    val df = spark.sql(text)
    assert(Plans.execution(df).optimizedPlan.collect { case join: Join => join }.size == 1)
    assert(Plans.decisions(df, EliminateJoins.id).map(_.reason) == Seq(EliminateJoins.NotNeeded))
  }

  test(
    "does not fire beyond the rows that may be read, with a hint, or where an error would be lost"
  ) {
    val text = "SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.id"
    declines(text, rule.KeyNotProven, maxRows -> "149")
    fires(text)
    declines(text, rule.KeyNotProven, maxRows -> "0")
    declines(text, rule.KeyNotProven, "spark.sql.caseSensitive" -> "true")
    declines(text.replace("SELECT", "SELECT /*+ BROADCAST(d) */"), Reason.HintObeyed)
    declines(s"$text AND 10 / (d.id + 1) > 0", Reason.MayRaise)
    declines(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT id FROM dims WHERE 10 / (id + 1) > 0) d ON f.k = d.id",
      Reason.MayRaise
    )
    declines(
      "SELECT f.id FROM facts f LEFT JOIN (SELECT id FROM dims WHERE rand(3) > 0.5) d ON f.k = d.id",
      Reason.MayRaise
    )
  }
}
