package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Outcome, Reason}
import io.selinger.exec.RankFilterExec
import io.selinger.strategy.FilterRanksBeforeSort._
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SortExec
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** The rule `filterRanksBeforeSort` on real plans. */
class FilterRanksBeforeSortSuite extends AnyFunSuite with SharedSession {

  private val always = SelingerConf.RANK_FILTER_MIN_GAIN.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
    spark.sql("SELECT * FROM facts UNION ALL SELECT * FROM facts")
      .createOrReplaceTempView("facts_twice")
  }

  private def filters(df: DataFrame): Seq[RankFilterExec] =
    Plans.physical(df).collect { case filter: RankFilterExec => filter }

  /** Asserts that ranks are filtered before the sort, with the answer of stock Spark, in each mode. */
  private def assertFires(text: String, settings: (String, String)*): Unit = {
    // Stock Spark answers the same in each way.
    val expected = stockAnswer(settings :+ always: _*)(spark.sql(text))
    for (way <- waysToRun(text)) withClue(Grid.clue) {
      val modes = settings ++ way :+ always
      withConf(modes: _*) {
        val df = spark.sql(text)
        val found = Answer.of(df)
        assert(filters(df).nonEmpty, Plans.execution(df).executedPlan)
        Answer.difference(expected, found).foreach(difference => fail(s"$text: $difference"))
        val made = Plans.decisions(df, rule.id)
        assert(made.nonEmpty && made.forall(_.outcome == Outcome.Changed), made)
      }
    }
  }

  private val rule = FilterRanksBeforeSort

  /** Asserts that a query has Spark's own plan, for this reason. */
  private def assertDeclines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    withConf(settings: _*) {
      val df = spark.sql(text)
      assert(filters(df).isEmpty)
      assert(Plans.decisions(df, rule.id).map(_.reason) == Seq(reason))
    }

  private def ranked(function: String, by: String, order: String, most: Int, table: String) =
    s"SELECT * FROM (SELECT *, $function() OVER (${if (by.isEmpty) "" else s"PARTITION BY $by "}" +
      s"ORDER BY $order) AS place FROM $table) WHERE place <= $most"

  for (
    column <- Seq(
      "k",
      "big",
      "s",
      "d",
      "amount",
      "day",
      "at",
      "flag",
      "cast(d AS float)",
      "binary(s)",
      "cast(amount AS decimal(12,2))",
      "cast(big AS decimal(38,10)) / 7",
      "cast(id % 100 AS decimal(20,2)) / 3",
      "cast(k AS smallint)",
      "at - timestamp'2000-01-01'"
    )
  ) test(s"fires on an order by $column, in each direction and place of nulls") {
    val ways =
      for (direction <- Seq("ASC", "DESC"); nulls <- Seq("FIRST", "LAST")) yield (direction, nulls)
    ways.zip(Seq("rank", "dense_rank", "row_number", "dense_rank")).foreach {
      case ((direction, nulls), function) =>
        // Without a second column, row_number would choose among equal rows.
        val last = if (function == "row_number") ", id" else ""
        val order = s"$column $direction NULLS $nulls$last"
        // Of three values, the first two are most rows.
        val most = if (column == "flag") 3000 else 2500
        assertSame(ranked(function, "id % 7", order, 2, "facts"), most)
    }
  }

  /** The same in one mode, for many queries; fewer than `most` rows are sorted. */
  private def assertSame(text: String, most: Long): Assertion = {
    val expected = stockAnswer()(spark.sql(text))
    withConf(always) {
      val df = spark.sql(text)
      Answer.difference(expected, Answer.of(df)).foreach(difference => fail(s"$text: $difference"))
      assert(filters(df).nonEmpty, text)
      assert(filters(df).forall(_.metrics("numOutputRows").value < most), text)
    }
  }

  test("fires with and without partitions, by nulls, NaN, -0.0, decimals, texts and structs") {
    for (by <- Seq("", "k", "d", "amount", "s", "s, flag", "struct(k, d)", "array(s)"))
      assertFires(ranked("rank", by, "big DESC", 2, "facts"))
  }

  test("fires with several columns of an order, of which the first says little") {
    assertFires(ranked("rank", "k", "flag, day DESC, id", 2, "facts"))
    assertFires(ranked("dense_rank", "", "s, day", 5, "facts"))
  }

  test("fires on texts that differ late, and on partitions by a collation") {
    assertFires(ranked("rank", "k", "concat('a long common beginning ', s)", 2, "facts"))
    assertFires(ranked("dense_rank", "s COLLATE UNICODE_CI", "s, id", 2, "facts"))
  }

  test(
    "fires above joins, aggregations, unions and other windows, with any table, also an empty one"
  ) {
    assertFires(
      "SELECT * FROM (SELECT a.k, sum(b.big) AS total, rank() OVER (PARTITION BY a.k % 3 " +
        "ORDER BY sum(b.big) DESC) AS place FROM facts a JOIN dims b ON a.k = b.k GROUP BY a.k) " +
        "WHERE place < 4"
    )
    assertFires(ranked("rank", "k", "id", 2, "(SELECT * FROM facts UNION ALL SELECT * FROM dupes)"))
    assertFires(ranked("row_number", "k", "id", 1, "facts"))
    assertFires(ranked("rank", "k", "id", 1, "nothing"))
    assertFires(ranked("rank", "k", "d", 3, "nulls"))
    assertFires(
      "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY k ORDER BY place, id) AS second FROM " +
        "(SELECT k, id, day, rank() OVER (PARTITION BY flag ORDER BY day) AS place FROM facts)) " +
        "WHERE second = 1"
    )
    assertFires(
      "SELECT k, s, total FROM (SELECT k, s, sum(id) AS total, rank() OVER (PARTITION BY k " +
        "ORDER BY sum(id) DESC) AS place FROM facts GROUP BY ROLLUP (k, s)) WHERE place <= 2"
    )
  }

  test("decimals of more than 18 digits are returned and ranked as they are") {
    Seq(
      "decimal(20,2)",
      "decimal(19,2)",
      "decimal(38,20)",
      "decimal(28,10)",
      "decimal(38,0)"
    ).foreach {
      kind =>
        val values = s"(SELECT id % 5 AS a, cast((id - 900) * 1.27 AS $kind) AS v, id FROM facts)"
        for (direction <- Seq("ASC", "DESC"))
          assertFires(ranked("rank", "a", s"v $direction", 3, values))
    }
    assertFires(
      "SELECT * FROM (SELECT k, total, rank() OVER (PARTITION BY k % 3 ORDER BY total) AS place FROM " +
        "(SELECT k, sum(cast(id AS decimal(10,2)) / 8) AS total FROM facts GROUP BY k)) WHERE place <= 3"
    )
  }

  test("an order that raises raises the same error") {
    val text = ranked("rank", "k", "1 / (id - 5)", 2, "facts")
    withConf(always, "spark.sql.ansi.enabled" -> "true") {
      val found = Answer.of(spark.sql(text))
      assert(found.isInstanceOf[Answer.Error] && filters(spark.sql(text)).nonEmpty)
      assert(found == stockAnswer()(spark.sql(text)))
    }
  }

  test("rows that are sorted already pass") {
    // The shuffle and sort of the aggregation by the same keys, in the same order.
    val text =
      ranked("rank", "k", "id", 1, "(SELECT /*+ REPARTITION(3, k) */ * FROM facts SORT BY k, id)")
    withConf(always, "spark.sql.adaptive.enabled" -> "false") {
      val df = spark.sql(text)
      val expected = stockAnswer()(spark.sql(text))
      assert(Answer.difference(expected, Answer.of(df)).isEmpty)
      assert(filters(df).size == 1 && filters(df).head.metrics("numOutputRows").value == 0)
    }
  }

  test("it is placed below the sort, which reads fewer rows") {
    withConf(always, "spark.sql.adaptive.enabled" -> "false") {
      val df = spark.sql(ranked("rank", "id % 7", "big", 3, "facts"))
      df.collect()
      val below = Plans.physical(df).collect { case sort: SortExec => sort }.filter(
        _.find(_.isInstanceOf[RankFilterExec]).isDefined
      )
      assert(below.size == 2)
      assert(filters(df).head.metrics("numOutputRows").value < 600)
    }
  }

  test("declines where most rows are kept, and says what to set") {
    val text = ranked("rank", "id", "big", 3, "facts")
    assertDeclines(text, MostRowsKept)
    assertDeclines(ranked("rank", "k", "flag", 1, "facts"), MostRowsKept)
    withConf(SelingerConf.RANK_FILTER_MIN_GAIN.key -> "0.9") {
      val made = Plans.decisions(spark.sql(ranked("rank", "flag", "id", 100, "facts")), rule.id)
      assert(made.map(_.reason) == Seq(MostRowsKept))
      val to = made.head.settingTo.get
      withConf(made.head.setting.get -> to)(
        assert(filters(spark.sql(ranked("rank", "flag", "id", 100, "facts"))).nonEmpty, to)
      )
    }
  }

  test("declines for more ranks than can be kept in order at little cost") {
    val threshold = "spark.sql.optimizer.windowGroupLimitThreshold" -> "5000"
    withConf(threshold)(assertDeclines(ranked("rank", "", "id", 4500, "facts_twice"), TooManyRanks))
  }

  test("declines for structs and collations, and where nothing is known") {
    assertDeclines(ranked("rank", "k", "struct(id)", 1, "facts"), OrderWithoutPrefix)
    assertDeclines(ranked("rank", "k", "s COLLATE UTF8_LCASE", 1, "facts"), OrderWithoutPrefix)
    assertDeclines(
      ranked("rank", "k", "id", 1, "facts"),
      Reason.NoStatistics,
      "spark.selinger.readFooterStatistics.enabled" -> "false"
    )
  }

  test("the share that is kept is about what a filter of random rows keeps") {
    assert(keptRows(10, 10, None) == 1.0 && keptRows(10, 3, None) == 1.0)
    assert(math.abs(keptRows(10, 10000, None) - 0.0079) < 0.0001)
    // With 4 values, a quarter of the rows has the first one.
    assert(keptRows(10, 10000, Some(4.0)) > 0.25)
    assert(keptValues(10, 10000, Some(5.0)) == 1.0)
    assert(keptValues(1, 1e9, Some(100.0)) < 0.06)
  }
}
