package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.testing.{Answer, ExampleTables, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, OneRowRelation}
import org.apache.spark.sql.execution.{FileSourceScanExec, ReusedSubqueryExec, SparkPlan}
import org.scalatest.funsuite.AnyFunSuite

/** Aggregations over the same data in one pass. */
class MergeSubplansByCostSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = MergeSubplansByCost
  private val always = SelingerConf.MERGE_MIN_GAIN.key -> "0"
  private val off = SelingerConf.MODE.key -> "off"
  private val adaptive = "spark.sql.adaptive.enabled"
  private val ansi = "spark.sql.ansi.enabled"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
    ExampleTables.register(spark)
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  /** Scans of a query, what is reused counted once. */
  private def scans(df: DataFrame): Int = {
    def of(plan: SparkPlan): Seq[SparkPlan] = plan match {
      case _: ReusedSubqueryExec => Nil
      case other => Plans.operators(other)
    }
    of(Plans.execution(df).executedPlan).collect { case scan: FileSourceScanExec =>
      scan
    }.distinctBy(_.canonicalized).size
  }

  // Adaptive, and with ANSI.
  private val modes = for (a <- Seq(true, false); b <- Seq(true, false)) yield (a, b)

  /** In each mode of Spark the answer of stock Spark, with the subplans merged. */
  private def assertMerged(text: String): Unit =
    for ((isAdaptive, isAnsi) <- Grid.firstAndOne(modes, text))
      withConf(adaptive -> isAdaptive.toString, ansi -> isAnsi.toString) {
        val expected = stockAnswer()(spark.sql(text))
        assert(expected.isInstanceOf[Answer.Rows], text)
        withConf(always) {
          val df = spark.sql(text)
          val found = Answer.of(df)
          val where = s"${Grid.clue}adaptive $isAdaptive, ANSI $isAnsi: $text"
          Answer.difference(expected, found).foreach(difference => fail(s"$where: $difference"))
          assert(decisions(df).exists(_.outcome == Outcome.Changed), where)
        }
      }

  /** The answer of stock Spark, and nothing merged. */
  private def assertApart(text: String, reason: Option[Reason], settings: (String, String)*): Unit =
    withConf(settings: _*) {
      val expected = stockAnswer()(spark.sql(text))
      val df = spark.sql(text)
      val found = Answer.of(df)
      Answer.difference(expected, found).foreach(difference => fail(s"$text: $difference"))
      val made = decisions(df)
      assert(!made.exists(_.outcome == Outcome.Changed), text)
      assert(made.map(_.reason).distinct == reason.toSeq, text)
      ()
    }

  test("fires on scalar subqueries that differ in their filters: one scan") {
    val text = "SELECT (SELECT sum(v) FROM f WHERE k = 1), (SELECT count(*) FROM f WHERE k = 2), " +
      "(SELECT max(v) FROM f WHERE k IN (3, 4))"
    spark.sql("SELECT id AS v, k FROM facts").createOrReplaceTempView("f")
    assert(withConf(off)(scans(spark.sql(text))) == 3)
    assert(scans(spark.sql(text)) == 1)
    assertMerged(text)
  }

  test("fires on aggregations that are joined: one scan, and no join is left") {
    val text = "SELECT * FROM (SELECT count(*) AS a FROM facts WHERE k < 9) x, " +
      "(SELECT sum(k) AS b, avg(d) AS c FROM facts WHERE k > 90) y, " +
      "(SELECT min(day) AS e FROM facts WHERE flag) z"
    val df = spark.sql(text)
    assert(scans(df) == 1)
    val plan = Plans.execution(df).optimizedPlan
    assert(!plan.exists(_.isInstanceOf[Join]) && plan.exists(_.isInstanceOf[OneRowRelation]))
    assertMerged(text)
  }

  test("fires on a union of aggregations, and on a value next to a relation") {
    assertMerged(
      "SELECT 'a' AS name, count(*) AS n FROM facts WHERE k = 1 UNION ALL " +
        "SELECT 'b', count(*) FROM facts WHERE k = 2 UNION ALL " +
        "SELECT 'c', count(k) FROM facts WHERE big > 5"
    )
    assertMerged(
      "SELECT d.id, x.n FROM dims d JOIN (SELECT max(k) AS n FROM facts WHERE flag) x ON d.k = x.n " +
        "WHERE d.id > (SELECT count(*) FROM facts WHERE k = 3)"
    )
  }

  test("fires below joins whose other sides are alike") {
    assertMerged(
      "SELECT * FROM (SELECT count(*) FROM facts f JOIN dims d ON f.k = d.k WHERE d.s = 'a') x, " +
        "(SELECT sum(f.id) FROM facts f JOIN dims d ON f.k = d.k WHERE d.s = 'B') y, " +
        "(SELECT count(*) FROM facts f JOIN dims d ON f.k = d.k WHERE d.s IS NULL) z"
    )
    assertMerged(
      "SELECT (SELECT count(*) FROM facts f JOIN dims d ON f.k <=> d.k WHERE d.id < 50), " +
        "(SELECT count(*) FROM facts f JOIN dims d ON f.k <=> d.k WHERE f.id < 50)"
    )
  }

  test("fires on preserved sides of outer joins, and on semi and anti joins") {
    Seq("LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN").foreach { join =>
      assertMerged(
        s"SELECT (SELECT count(*) FROM facts f $join dims d ON f.k = d.k WHERE f.id < 70), " +
          s"(SELECT sum(f.k) FROM facts f $join dims d ON f.k = d.k WHERE f.flag)"
      )
    }
    assertMerged(
      "SELECT (SELECT count(f.k) FROM facts f RIGHT JOIN dims d ON f.k = d.k WHERE d.id < 70), " +
        "(SELECT sum(coalesce(f.k, -1)) FROM facts f RIGHT JOIN dims d ON f.k = d.k WHERE d.flag)"
    )
  }

  test("does not fire on filters of sides that are filled with nulls, with the same answers") {
    val text =
      "SELECT (SELECT sum(coalesce(d.k, -1)) FROM facts f LEFT JOIN (SELECT * FROM dims WHERE id < 50) d " +
        "ON f.k = d.k), (SELECT sum(coalesce(d.k, -7)) FROM facts f LEFT JOIN " +
        "(SELECT * FROM dims WHERE flag) d ON f.k = d.k)"
    assertApart(text, Some(MergeSubplansByCost.SubplansDiffer), always, ansi -> "false")
  }

  test("fires on functions of distinct values, and with filters of their own") {
    assertMerged(
      "SELECT * FROM (SELECT avg(k) a, count(k) b, count(DISTINCT k) c FROM facts WHERE id < 700) x, " +
        "(SELECT avg(k) d, count(k) e, count(DISTINCT k) f FROM facts WHERE id > 500) y, " +
        "(SELECT count(DISTINCT d) g, sum(DISTINCT k) h FROM facts WHERE flag) z"
    )
    assertMerged(
      "SELECT (SELECT count(*) FILTER (WHERE k > 5) FROM facts WHERE flag), " +
        "(SELECT sum(k) FILTER (WHERE d > 1) FROM facts WHERE NOT flag), " +
        "(SELECT count(DISTINCT k) FILTER (WHERE d > 1) FROM facts WHERE id < 99)"
    )
  }

  test("fires on special values: nulls, NaN, -0.0, decimals at their limits, text") {
    assertMerged(
      "SELECT * FROM (SELECT min(d) a, max(d) b, count(DISTINCT d) c FROM facts WHERE d = 0) x, " +
        "(SELECT min(d) e, max(d) f, count(DISTINCT d) g FROM facts WHERE d > 1e9) y, " +
        "(SELECT max(amount) h, min(s) i, max(s) j FROM facts WHERE s <> 'a') z, " +
        "(SELECT count(amount) k, min(at) l FROM facts WHERE amount IS NULL OR flag IS NULL) w"
    )
  }

  test("fires where some or all subplans have no rows: a count is 0, other functions are null") {
    assertMerged(
      "SELECT (SELECT count(*) FROM facts WHERE id < 0), (SELECT sum(k) FROM facts WHERE id > 99999), " +
        "(SELECT count(*) FROM facts WHERE k = 1), (SELECT count(*) + 1 FROM facts WHERE id = -5)"
    )
    assertMerged(
      "SELECT * FROM (SELECT count(*), sum(k) FROM nothing WHERE k = 1) x, " +
        "(SELECT count(k), max(d), count(DISTINCT k) FROM nothing WHERE k = 2) y"
    )
    assertMerged(
      "SELECT (SELECT count(*) FROM facts WHERE false), (SELECT count(*) FROM facts WHERE k = 1), " +
        "(SELECT count(*) FROM facts WHERE k = 2)"
    )
  }

  test("fires on columns that are computed, and on subplans without a filter") {
    assertMerged(
      "SELECT (SELECT sum(if(k > 3, 1, 2)) FROM facts WHERE flag), " +
        "(SELECT sum(if(k > 3, 1, 2)) FROM facts WHERE NOT flag), " +
        "(SELECT max(coalesce(d, 0D)) FROM facts), (SELECT max(upper(s)) FROM facts WHERE k = 4)"
    )
  }

  test("fires in a command, in a cached query and in a query that is used twice") {
    withFolder { folder =>
      val text =
        "SELECT (SELECT sum(k) FROM facts WHERE flag) a, (SELECT count(*) FROM facts WHERE k = 2) b"
      val expected = stockAnswer()(spark.sql(text))
      withConf(always) {
        val target = folder.resolve("target").toString
        spark.sql(text).write.parquet(target)
        assert(Answer.of(spark.read.parquet(target)) == expected)
        val cached = spark.sql(text).cache()
        try assert(Answer.of(cached) == expected)
        finally { val _ = cached.unpersist(blocking = true) }
        val twice = spark.sql(s"WITH t AS ($text) SELECT x.* FROM t x JOIN t y ON x.a = y.a")
        assert(Answer.of(twice) == expected)
      }
    }
  }

  test("an error stays an error of its own rows") {
    val text =
      "SELECT (SELECT sum(1 / k) FROM facts WHERE k > 0), (SELECT sum(k) FROM facts WHERE k = 0)"
    assertApart(text, Some(Reason.MayRaise), always, ansi -> "true")
    val guarded =
      "SELECT (SELECT count(*) FROM facts WHERE k > 0 AND 1 / k > 2), (SELECT sum(k) FROM facts WHERE k = 0)"
    assertApart(guarded, Some(Reason.MayRaise), always, ansi -> "true")
    val overflow =
      "SELECT (SELECT sum(big * 9000000000) FROM facts WHERE id = 1), " +
        "(SELECT sum(k) FROM facts WHERE k = 3)"
    assertApart(overflow, Some(Reason.MayRaise), always, ansi -> "true")
  }

  test("does not fire on subplans with a limit, with groups, or of other data") {
    val differ = Some(MergeSubplansByCost.SubplansDiffer)
    assertApart(
      "SELECT (SELECT count(*) FROM (SELECT * FROM facts WHERE k = 1 LIMIT 3)), " +
        "(SELECT count(*) FROM (SELECT * FROM facts WHERE k = 2 LIMIT 3))",
      differ,
      always
    )
    assertApart(
      "SELECT (SELECT sum(id) FROM dims WHERE k = 1), (SELECT sum(id) FROM dupes WHERE k = 1)",
      differ,
      always
    )
    assertApart(
      "SELECT k, count(*) FROM dims WHERE id < 9 GROUP BY k UNION ALL " +
        "SELECT k, count(*) FROM dims WHERE id > 90 GROUP BY k",
      None,
      always
    )
  }

  test("does not fire on unlike join hints, correlated or equal subqueries, or a single one") {
    assertApart(
      "SELECT (SELECT /*+ MERGE(d) */ count(*) FROM facts f JOIN dims d ON f.k = d.k WHERE f.id < 50), " +
        "(SELECT /*+ SHUFFLE_HASH(d) */ count(*) FROM facts f JOIN dims d ON f.k = d.k WHERE f.flag)",
      Some(MergeSubplansByCost.SubplansDiffer),
      always
    )
    assertApart(
      "SELECT x.id, (SELECT count(*) FROM facts f WHERE f.k = x.k AND f.flag), " +
        "(SELECT count(*) FROM facts f WHERE f.k = x.k AND f.id < 100) FROM dims x",
      None,
      always
    )
    val one = "(SELECT count(*) FROM facts WHERE k = 1)"
    assertApart(s"SELECT $one AS a, $one AS b", None, always)
    assertApart(s"SELECT $one AS a", None, always)
  }

  private val costly =
    "SELECT * FROM (SELECT count(*) FROM facts f JOIN facts d ON f.flag <=> d.flag WHERE f.id = 1) x, " +
      "(SELECT count(*) FROM facts f JOIN facts d ON f.flag <=> d.flag WHERE d.id = 2) y"

  test("does not fire where filters keep a join small that would be large without them") {
    assertApart(costly, Some(MergeSubplansByCost.CheaperApart))
    assertMerged(costly)
  }

  test("one subplan that does not pay does not keep the others apart") {
    val text =
      costly + ", (SELECT count(*) FROM facts f JOIN facts d ON f.flag <=> d.flag WHERE f.id = 3) z"
    val made = decisions(spark.sql(text))
    assert(made.map(_.outcome).toSet == Set(Outcome.Changed, Outcome.Declined))
    assert(made.find(_.outcome == Outcome.Changed).exists(_.node.startsWith("2 aggregations")))
  }

  test("does not fire without statistics, unless it always should") {
    val text =
      "SELECT (SELECT sum(k) FROM facts WHERE flag), (SELECT count(*) FROM facts WHERE k = 2)"
    val unknown = ReadFooterStatistics.switch -> "false"
    assertApart(text, Some(Reason.NoStatistics), unknown)
    withConf(unknown)(assertMerged(text))
  }

  test("explain tells how many passes are saved, and what was compared") {
    val text =
      "SELECT (SELECT sum(k) FROM facts WHERE flag), (SELECT count(*) FROM facts WHERE k = 2)"
    val all = decisions(spark.sql(text))
    assert(all.size == 1)
    val made = all.head
    assert(made.reason == MergeSubplansByCost.Merged && made.node == "2 aggregations over facts")
    assert(made.chosen.contains("1 pass over the data") && made.stock.contains("2 passes"))
    val rows = made.evidence.filter(_.unit == "rows").map(n => n.name -> n.value).toMap
    assert(rows == Map("rows read apart" -> 6000.0, "rows read together" -> 3000.0))
  }

  private def subplans(text: String): Seq[Aggregate] =
    withConf(off)(Subplans.in(Plans.execution(spark.sql(text)).optimizedPlan))

  test("more columns than Spark generates code for are computed in several passes") {
    val values = (1 to 60).map(i => s"(SELECT avg(k) FROM facts WHERE id % 60 = $i) AS c$i")
    val groups = new SubplanGroups(_ => None, 0.0, () => false)
      .of(subplans(values.mkString("SELECT ", ", ", "")))
    assert(groups.map(_.members.size) == Seq(50, 10))
    assert(
      groups.flatMap(_.members.map(_._2)) == (0 until 50).map(Seq(_)) ++ (0 until 10).map(Seq(_))
    )
  }

  test("when the time for planning is used up, nothing more is merged, and each subplan says so") {
    val found = subplans(
      "SELECT (SELECT sum(k) FROM facts WHERE flag), (SELECT count(*) FROM facts WHERE k = 2)"
    )
    val groups = new SubplanGroups(_ => None, 0.0, () => true).of(found)
    assert(groups.map(_.subplans) == found.map(Seq(_)))
    assert(groups.flatMap(_.refused).map(_.reason) == Seq.fill(2)(Reason.BudgetExceeded))
  }

  test("of subplans that read different data one says that they differ") {
    val tables = Seq("facts", "dims", "dupes", "nulls")
    val text =
      tables.map(table => s"SELECT count(*) FROM $table WHERE id > 1").mkString(" UNION ALL ")
    assert(decisions(spark.sql(text)).map(_.reason) == Seq(MergeSubplansByCost.SubplansDiffer))
  }
}
