package io.selinger.strategy

import io.selinger.core.{Decision, Outcome, Phase, Reason}
import io.selinger.stats.footers.FooterStore
import io.selinger.testing.{Answer, Plans, SharedSession}
import java.nio.file.{Files, Path}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.scalatest.Assertion
import org.scalatest.Inspectors.forAll
import org.scalatest.funsuite.AnyFunSuite

/** The rule `pushJoinKeysIntoScan` on files whose rows are in the order of a key. */
class PushJoinKeysIntoScanSuite extends AnyFunSuite with SharedSession {

  private val rule = PushJoinKeysIntoScan
  private val off = rule.switch -> "false"

  // Four files of a quarter each.
  private val rows = 4000L
  private val columns = Seq(
    "id",
    "cast(id div 40 as int) as day",
    "cast(id div 40 as smallint) as short",
    "date_add(date'2000-01-01', cast(id div 40 as int)) as sold",
    "if(id % 50 = 0, null, id div 40) as late",
    "cast(id % 7 as int) as store",
    "string(id div 40) as text",
    "cast(id as decimal(20,2)) as amount",
    "cast(50 - id div 40 as int) as signed",
    "double(id div 40) as fraction"
  )

  private lazy val folder: Path = {
    val folder = Files.createTempDirectory("selinger-ordered")
    def facts = SharedSession.stock.range(0, rows, 1, 4).selectExpr(columns: _*)
    facts.write.parquet(folder.resolve("facts").toString)
    facts.write.orc(folder.resolve("orc_facts").toString)
    facts.write.json(folder.resolve("json_facts").toString)
    SharedSession.stock
      .range(0, 100, 1, 1)
      .selectExpr(
        "cast(id as int) as day",
        "id as long_day",
        "cast(id as smallint) as short",
        "cast(id % 7 as int) as store",
        "date_add(date'2000-01-01', cast(id as int)) as date",
        "if(id = 3, null, id) as hole",
        "string(id) as text",
        "cast(50 - id as int) as signed",
        "double(id) as fraction",
        "id div 10 as week"
      )
      .write
      .parquet(folder.resolve("days").toString)
    folder
  }

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Seq("facts", "days").foreach { name =>
      spark.read.parquet(folder.resolve(name).toString).createOrReplaceTempView(name)
    }
    spark.read.orc(folder.resolve("orc_facts").toString).createOrReplaceTempView("orc_facts")
    spark.read
      .schema(spark.table("facts").schema)
      .json(folder.resolve("json_facts").toString)
      .createOrReplaceTempView("json_facts")
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  /** Rows that the scans of the large tables returned. */
  private def read(df: DataFrame): Long = Plans
    .physical(df)
    .collect {
      case scan: FileSourceScanExec
          if scan.relation.location.rootPaths.exists(_.getName.contains("facts")) =>
        scan.metrics("numOutputRows").value
    }
    .sum

  /** The query after it has run, with the answer that it has without the rule. */
  private def assertSame(text: String): DataFrame = {
    val df = spark.sql(text)
    val found = Answer.of(df)
    withConf(off) {
      val other = spark.sql(text)
      assert(Answer.difference(Answer.of(other), found).isEmpty)
      assert(decisions(other).isEmpty)
    }
    df
  }

  private def assertReads(expected: Long)(text: String): DataFrame = {
    val df = assertSame(text)
    assert(decisions(df).exists(_.outcome == Outcome.Changed), decisions(df))
    assert(read(df) == expected)
    df
  }

  private def assertDeclines(text: String, reason: Reason): Assertion = {
    val made = decisions(assertSame(text))
    assert(made.map(d => (d.outcome, d.reason)) == Seq((Outcome.Declined, reason)))
  }

  private def assertRan(text: String): DataFrame = {
    val df = spark.sql(text)
    assert(Answer.of(df).isInstanceOf[Answer.Rows])
    df
  }

  private def withTable(name: String)(body: => Assertion): Assertion =
    try body
    finally { val _ = spark.sql(s"DROP TABLE IF EXISTS $name") }

  private def assertSilent(text: String): Assertion = assert(decisions(assertSame(text)).isEmpty)

  // ---- fires --------------------------------------------------------------------------------

  test("fires on the days of one week: files of other days are not read") {
    val df = assertReads(1000)(
      "SELECT count(*), sum(f.id) FROM facts f JOIN days d ON f.day = d.day WHERE d.week = 3"
    )
    val decision = decisions(df).head
    assert(decisions(df).size == 1)
    assert(decision.reason == rule.JoinKeysPushed && decision.phase == Phase.Adaptive)
    val numbers = decision.evidence.map(e => e.name -> e.value).toMap
    assert(numbers("rows of the small side") == 10.0)
    assert(numbers("rows of the files") == 4000.0)
    assert(numbers("rows of row groups with a key") == 1000.0)
  }

  test("fires with the small side on the left, and on keys of any whole type") {
    assertReads(1000)("SELECT f.id FROM days d JOIN facts f ON f.day = d.day WHERE d.week = 3")
    assertReads(1000)("SELECT f.id FROM facts f JOIN days d ON f.day = d.long_day WHERE d.week = 3")
    assertReads(1000)("SELECT f.id FROM facts f JOIN days d ON f.short = d.short WHERE d.week = 3")
    assertReads(1000)("SELECT f.id FROM facts f JOIN days d ON f.short = d.day WHERE d.week = 3")
    assertReads(1000)("SELECT f.id FROM facts f JOIN days d ON f.sold = d.date WHERE d.week = 3")
  }

  test("fires on negative keys, alone and beside another in one number") {
    assertReads(1000)(
      "SELECT f.id FROM facts f JOIN days d ON f.signed = d.signed WHERE d.week = 9"
    )
    assertReads(1000)(
      """SELECT f.id FROM facts f JOIN days d ON f.signed = d.signed AND f.store = d.store
        |WHERE d.week = 9""".stripMargin
    )
  }

  test("fires on keys that the small side has several times") {
    assertReads(1000)(
      """SELECT f.id, d.week FROM facts f JOIN
        |(SELECT day, week FROM days UNION ALL SELECT day, week + 0 FROM days) d
        |ON f.day = d.day WHERE d.week = 3""".stripMargin
    )
  }

  test("readers that compare single rows with the filter return the same rows") {
    withConf(
      "spark.sql.parquet.enableVectorizedReader" -> "false",
      "spark.sql.parquet.recordLevelFilter.enabled" -> "true"
    ) {
      val df = assertSame(
        "SELECT f.id, f.late FROM facts f JOIN days d ON f.day = d.day WHERE d.week = 3"
      )
      assert(decisions(df).exists(_.outcome == Outcome.Changed))
    }
  }

  test("fires on IN and EXISTS") {
    assertReads(1000)(
      "SELECT f.id FROM facts f WHERE f.day IN (SELECT day FROM days WHERE week = 3)"
    )
  }

  test("fires on several ranges: what lies between them is not read") {
    assertReads(2000)(
      "SELECT f.id FROM facts f JOIN days d ON f.day = d.day WHERE d.week = 0 OR d.week = 9"
    )
  }

  test("fires on joins by several keys, which Spark keeps as one number or as a row") {
    assertReads(1000)(
      """SELECT f.id FROM facts f JOIN days d ON f.day = d.day AND f.store = d.store
        |WHERE d.week = 3""".stripMargin
    )
    assertReads(1000)(
      """SELECT f.id FROM facts f JOIN days d ON f.day = d.day AND f.text = d.text
        |WHERE d.week = 3""".stripMargin
    )
  }

  test("fires through another join, a projection, a filter and a UNION ALL") {
    assertReads(1000)(
      """SELECT f.id, e.text FROM facts f LEFT JOIN days e ON f.store = e.day
        |JOIN days d ON f.day = d.day WHERE d.week = 3""".stripMargin
    )
    assertReads(2000)(
      """SELECT u.id FROM (SELECT day AS x, id FROM facts WHERE store < 5
        |UNION ALL SELECT short AS x, id FROM orc_facts) u
        |JOIN days d ON u.x = d.day WHERE d.week = 3""".stripMargin
    )
  }

  test("fires below an aggregation that was moved below the join") {
    withConf("spark.selinger.aggregate.eager.minGain" -> "0") {
      val df = assertReads(1000)(
        """SELECT d.week, sum(f.amount) FROM facts f JOIN days d ON f.day = d.day
          |WHERE d.week = 3 GROUP BY d.week""".stripMargin
      )
      assert(Plans.decisions(df, "pushAggregateBelowJoin").exists(_.outcome == Outcome.Changed))
    }
  }

  test("fires on ORC files") {
    assertReads(1000)(
      "SELECT f.id FROM orc_facts f JOIN days d ON f.day = d.day WHERE d.week = 3"
    )
  }

  test("nulls on both sides find no partner") {
    assertReads(1000)("SELECT f.id FROM facts f JOIN days d ON f.late = d.hole WHERE d.week = 0")
  }

  test("keys that the column's type cannot hold: the others are looked for") {
    assertReads(1000)(
      """SELECT /*+ BROADCAST(d) */ f.id FROM facts f JOIN
        |(SELECT if(id % 2 = 0, id * 1000000000000, id) AS k FROM range(4)) d
        |ON cast(f.day AS bigint) = d.k""".stripMargin
    )
    assertSilent(
      """SELECT /*+ BROADCAST(d) */ f.id FROM facts f JOIN
        |(SELECT id + 9000000000 AS k FROM range(4)) d ON f.day = d.k""".stripMargin
    )
  }

  test("a small side without rows gives no rows") {
    assert(
      assertSame("SELECT f.id FROM facts f JOIN days d ON f.day = d.day WHERE d.week = 30")
        .count() == 0
    )
  }

  test("two places that join the same way still share their rows") {
    val part = "SELECT f.store, sum(f.id) AS n FROM facts f JOIN days d ON f.day = d.day " +
      "WHERE d.week = 3 GROUP BY f.store"
    assertReads(1000)(s"SELECT a.n, b.n FROM ($part) a JOIN ($part) b ON a.store = b.store + 1")
  }

  test("advise says what it would do, and reads all rows") {
    withConf("spark.selinger.mode" -> "advise") {
      val df = spark.sql("SELECT f.id FROM facts f JOIN days d ON f.day = d.day WHERE d.week = 3")
      df.collect()
      assert(decisions(df).map(_.outcome) == Seq(Outcome.Advised))
      assert(read(df) == rows)
    }
  }

  // ---- does not fire ------------------------------------------------------------------------

  test("does not fire where rows without a partner are kept") {
    forAll(Seq("LEFT JOIN", "LEFT ANTI JOIN")) { kind =>
      val df = assertSame(
        s"SELECT f.id FROM facts f $kind (SELECT * FROM days WHERE week = 3) d ON f.day = d.day"
      )
      assert(decisions(df).isEmpty && read(df) == rows)
    }
    assertSilent(
      """SELECT f.id FROM facts f WHERE f.store = 1 OR f.day IN
        |(SELECT day FROM days WHERE week = 3)""".stripMargin
    )
  }

  test("does not fire on keys that are computed, nor on texts and fractions") {
    assertSilent("SELECT f.id FROM facts f JOIN days d ON f.day + 1 = d.day WHERE d.week = 3")
    assertSilent("SELECT f.id FROM facts f JOIN days d ON f.text = d.text WHERE d.week = 3")
    assertSilent(
      "SELECT f.id FROM facts f JOIN days d ON f.fraction = d.fraction WHERE d.week = 3"
    )
  }

  test("does not fire below a limit, a window or a sample, which depend on all rows") {
    forAll(
      Seq(
        "SELECT * FROM facts LIMIT 3900",
        "SELECT day, sum(id) OVER (PARTITION BY store) AS id FROM facts",
        "SELECT * FROM facts TABLESAMPLE (90 PERCENT) REPEATABLE (1)"
      )
    ) { input =>
      assertSilent(s"SELECT f.id FROM ($input) f JOIN days d ON f.day = d.day WHERE d.week = 3")
    }
  }

  test("does not fire on formats that apply filters before they parse a row") {
    assertSilent("SELECT f.id FROM json_facts f JOIN days d ON f.day = d.day WHERE d.week = 3")
  }

  test("does not fire where an expression below the join can raise (ERRORS_DEPEND_ON_PLAN)") {
    val text = "SELECT f.id FROM (SELECT * FROM facts WHERE 1 / (day - 99) < 5) f " +
      "JOIN days d ON f.day = d.day WHERE d.week = 3"
    withConf("spark.sql.ansi.enabled" -> "true") {
      assert(Answer.of(spark.sql(text)).isInstanceOf[Answer.Error])
      assertSame(text)
    }
    assertDeclines(
      "SELECT f.id FROM (SELECT * FROM facts WHERE 1 / (day - 200) < 5) f " +
        "JOIN days d ON f.day = d.day WHERE d.week = 3",
      Reason.MayRaise
    )
  }

  test("does not fire where another key of the join can raise (ERRORS_DEPEND_ON_PLAN)") {
    def text(zero: Int) = "SELECT /*+ BROADCAST(d) */ f.id FROM facts f JOIN days d " +
      s"ON f.day = d.day AND 100 div (f.late - $zero) = d.long_day WHERE d.week = 3"
    withConf("spark.sql.ansi.enabled" -> "true") {
      assert(Answer.of(spark.sql(text(99))).isInstanceOf[Answer.Error])
      assertSame(text(99))
      assert(!decisions(assertSame(text(200))).exists(_.outcome == Outcome.Changed))
    }
  }

  test("does not fire on partition columns, which Spark prunes, and whose files may hold others") {
    val path = folder.resolve("facts_by_week").toString
    spark
      .table("facts")
      .selectExpr("id", "day", "cast(id div 400 as int) as week")
      .write
      .mode("overwrite")
      .partitionBy("week")
      .parquet(path)
    spark.read.parquet(path).createOrReplaceTempView("weeks")
    assertSilent("SELECT f.id FROM weeks f JOIN days d ON f.week = d.week WHERE d.day = 35")
    val df = assertSame("SELECT f.id FROM weeks f JOIN days d ON f.day = d.day WHERE d.week = 3")
    assert(decisions(df).exists(_.outcome == Outcome.Changed))
  }

  test("does not fire where filters may not be pushed (FILTER_PUSHDOWN_OFF)") {
    withConf("spark.sql.orc.filterPushdown" -> "false") {
      assertDeclines(
        "SELECT f.id FROM orc_facts f JOIN days d ON f.day = d.day WHERE d.week = 3",
        rule.FilterPushdownOff
      )
    }
  }

  test("does not fire where a subquery reads the same rows, which are then read once") {
    val text =
      """WITH c AS (SELECT f.store, sum(f.id) AS s FROM facts f JOIN days d ON f.day = d.day
        |WHERE d.week = 3 GROUP BY f.store)
        |SELECT * FROM c WHERE s > (SELECT avg(s) FROM c)""".stripMargin
    assert(withConf(off)(read(assertRan(text))) == rows)
    assertDeclines(text, Reason.SharedSubplan)
    assert(read(assertRan(text)) == rows)
  }

  test("does not fire through an aggregation of the query's own, whose sums can raise") {
    withTable("by_day") {
      spark
        .table("facts")
        .selectExpr("day", "if(day = 99, 9223372036854775807, id) as big")
        .write
        .bucketBy(4, "day")
        .saveAsTable("by_day")
      val text = "SELECT a.s FROM (SELECT day, sum(big) AS s FROM by_day GROUP BY day) a " +
        "JOIN days d ON a.day = d.day WHERE d.week = 3"
      withConf("spark.sql.ansi.enabled" -> "true") {
        val df = spark.sql(text)
        assert(Answer.of(df).isInstanceOf[Answer.Error])
        // It would be in the stage of the scan.
        assert(!Plans.physical(df).exists(_.isInstanceOf[ShuffleExchangeExec]))
        assertSilent(text)
      }
    }
  }

  test("does not fire where every part of the files may hold a key (KEYS_IN_ALL_ROW_GROUPS)") {
    assertDeclines(
      "SELECT f.id FROM facts f JOIN days d ON f.store = d.store WHERE d.week = 3",
      rule.KeysInAllRowGroups
    )
  }

  test("does not fire where the small side has too many rows (TOO_MANY_KEYS)") {
    assertDeclines(
      "SELECT /*+ BROADCAST(d) */ f.id FROM facts f JOIN range(250000) d ON f.day = d.id",
      rule.TooManyKeys
    )
  }

  test("fires for more keys where the large side is many times as large") {
    withFolder { folder =>
      val path = folder.resolve("ordered_facts").toString
      spark.range(0, 6000000, 1, 2).write.option("parquet.block.size", 1 << 20).parquet(path)
      spark.read.parquet(path).createOrReplaceTempView("ordered")
      val df = spark.sql(
        "SELECT count(*) FROM ordered f JOIN range(250000) d ON f.id = d.id"
      )
      assert(df.collect().map(_.getLong(0)).toSeq == Seq(250000L))
      assert(decisions(df).map(_.reason) == Seq(rule.JoinKeysPushed))
      assert(read(df) < 3000000)
    }
  }

  test("does not fire where no footer has been read (NO_STATISTICS)") {
    FooterStore.clear()
    withConf("spark.selinger.readFooterStatistics.enabled" -> "false") {
      assertDeclines(
        "SELECT f.id FROM facts f JOIN days d ON f.day = d.day WHERE d.week = 3",
        Reason.NoStatistics
      )
    }
  }

  test("does not fire without adaptive execution, which knows no small side before the scan") {
    withConf("spark.sql.adaptive.enabled" -> "false") {
      assertSilent("SELECT f.id FROM facts f JOIN days d ON f.day = d.day WHERE d.week = 3")
    }
  }
}
