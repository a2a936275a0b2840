package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.stats.keys.WholeColumns
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.functions.{col, count}
import org.apache.spark.sql.types.MetadataBuilder
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Tables that are joined to groups instead of rows: which, and that the answers stay. */
class JoinAfterGroupingSuite extends AnyFunSuite with SharedSession {

  private val rule = JoinAfterGrouping
  private val always = SelingerConf.JOIN_LATER_MIN_GAIN.key -> "0"

  // Whatever else would leave out joins, or aggregate below them.
  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted ++ Seq(
    always,
    EliminateJoins.switch -> "false",
    PushAggregateBelowJoin.switch -> "false",
    MergeSubplansByCost.switch -> "false",
    ComputeAggregateAsWindow.switch -> "false"
  )

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    WholeColumns.clear()
    Tables.register(spark)
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def isSame(text: String, settings: (String, String)*): DataFrame =
    withConf(settings: _*) {
      val expected = stockAnswer()(spark.sql(text))
      val df = spark.sql(text)
      Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
      df
    }

  /** How many columns each aggregation of the plan groups by, and how many joins its rows come from. */
  private def groupings(df: DataFrame): Seq[(Int, Int)] =
    Plans.execution(df).optimizedPlan.collectWithSubqueries { case aggregate: Aggregate =>
      val joins = aggregate.child.collect { case join: Join => join }
      (aggregate.groupingExpressions.size, joins.size)
    }

  /** @param keys what the first aggregation groups by afterwards, and of how many joins */
  private def fires(text: String, keys: Int, joins: Int): DataFrame = {
    val df = isSame(text)
    assert(decisions(df).exists(_.reason == rule.JoinedLater), s"$text: ${Plans.execution(df)}")
    assert(groupings(df).headOption.contains((keys, joins)), Plans.execution(df).optimizedPlan)
    df
  }

  /** Asserts that tables are joined to groups, which are merged again. */
  private def merges(text: String): DataFrame = {
    val df = isSame(text)
    assert(decisions(df).exists(_.reason == rule.GroupsMerged), s"$text: ${Plans.execution(df)}")
    df
  }

  private def doesNotFire(text: String, settings: (String, String)*): DataFrame = {
    val df = isSame(text, settings: _*)
    assert(!decisions(df).exists(_.outcome == Outcome.Changed), Plans.execution(df).optimizedPlan)
    df
  }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion = {
    val df = doesNotFire(text, settings: _*)
    assert(decisions(df).map(_.reason).contains(reason), Plans.execution(df).optimizedPlan)
  }

  test("fires where a table is joined by its key, which is grouped by") {
    fires(
      "SELECT d.id, d.s, d.day, sum(f.big), count(*) FROM facts f JOIN dims d ON f.k = d.id " +
        "GROUP BY d.id, d.s, d.day",
      keys = 1,
      joins = 0
    )
    fires(
      "SELECT f.k, d.s, avg(f.id) FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.k, d.s",
      keys = 1,
      joins = 0
    )
    fires(
      "SELECT f.flag, d.s, d.id, min(f.day) FROM dims d JOIN facts f ON f.k = d.id " +
        "GROUP BY f.flag, d.s, d.id",
      keys = 2,
      joins = 0
    )
  }

  test("fires where another key of the table is grouped by") {
    withFolder { folder =>
      spark.sql(
        "SELECT id, concat('n', id) AS name, s, amount FROM dims"
      ).write.parquet(s"$folder/named")
      val named = s"parquet.`$folder/named`"
      fires(
        s"SELECT d.name, d.s, sum(f.id) FROM facts f JOIN $named d ON f.k = d.id GROUP BY d.name, d.s",
        keys = 1,
        joins = 0
      )
      // Each row of the table finds the groups that it would have had, also where it repeats a key.
      spark.sql(
        "SELECT id % 50 AS id, concat('n', id) AS name, s FROM dims"
      ).write.parquet(s"$folder/repeated")
      fires(
        s"SELECT d.name, d.s, sum(f.id) FROM facts f JOIN parquet.`$folder/repeated` d ON f.k = d.id " +
          "GROUP BY d.name, d.s",
        keys = 1,
        joins = 0
      )
    }
  }

  test("takes along the tables that are joined to a table") {
    fires(
      "SELECT a.id, a.s, b.s AS t, c.day, sum(f.id) FROM facts f JOIN dims a ON f.k = a.id " +
        "JOIN dims b ON a.k = b.id JOIN facts c ON b.k = c.id GROUP BY a.id, a.s, b.s, c.day",
      keys = 1,
      joins = 0
    )
    // Of these only one can go: rows of the other one are not known for each group.
    fires(
      "SELECT a.id, a.s, b.flag, sum(f.id) FROM facts f JOIN dims a ON f.k = a.id " +
        "JOIN dupes b ON f.k = b.k GROUP BY a.id, a.s, b.flag",
      keys = 2,
      joins = 1
    )
  }

  test("fires on expressions, with conditions on all sides, and on what comes of groups") {
    fires(
      "SELECT upper(d.s), f.k, year(f.day), concat(sum(f.id), d.k) FROM facts f JOIN dims d ON f.k = d.id " +
        "WHERE d.flag AND f.id > 20 GROUP BY upper(d.s), f.k, year(f.day), d.k",
      keys = 2,
      joins = 0
    )
    fires(
      "SELECT d.id, d.s, count(DISTINCT f.s), max(f.big) FILTER (WHERE f.flag) " +
        "FROM facts f JOIN dims d ON f.k = d.id AND d.id <= f.k GROUP BY d.id, d.s " +
        "HAVING count(*) > 20",
      keys = 1,
      joins = 0
    )
    fires("SELECT DISTINCT f.k, d.s FROM facts f JOIN dims d ON f.k = d.id", keys = 1, joins = 0)
  }

  test("fires in subqueries, unions and below windows") {
    fires(
      "SELECT s, n, rank() OVER (PARTITION BY s ORDER BY n, id) FROM (SELECT d.id, d.s, count(*) AS n " +
        "FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s)",
      keys = 1,
      joins = 0
    )
    fires(
      "SELECT id FROM dims WHERE id IN (SELECT n FROM (SELECT d.id, d.s, count(*) AS n " +
        "FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s) WHERE s = 'a')",
      keys = 1,
      joins = 0
    )
  }

  test(
    "in correlated subqueries, fires when Spark has made joins of them: before, it looks for aggregations"
  ) {
    Seq("", " HAVING count(*) > 1").foreach { having =>
      val df = isSame(
        s"SELECT o.id, (SELECT count(*) FROM facts f JOIN dims d ON f.k = d.id WHERE d.id = o.k AND d.id < 60$having) " +
          "FROM dupes o"
      )
      assert(decisions(df).exists(_.reason == rule.JoinedLater))
    }
  }

  test("the same rows where keys are null, find no partner, or there are no rows") {
    // Keys of facts leave the range of those of dims; dupes and nulls have other keys, or none.
    Seq("big", "id", "k").foreach { key =>
      isSame(
        s"SELECT d.id, d.s, count(*) FROM facts f JOIN dims d ON f.$key = d.id GROUP BY d.id, d.s"
      )
    }
    Seq("nulls", "nothing", "dupes").foreach { table =>
      isSame(
        s"SELECT f.k, d.s, sum(f.id) FROM $table f JOIN dims d ON f.k = d.id GROUP BY f.k, d.s"
      )
    }
    isSame("SELECT f.k, d.s, sum(f.id) FROM facts f JOIN nothing d ON f.k = d.id GROUP BY f.k, d.s")
  }

  test("fires on keys of several columns, of texts, days and decimals, and of other widths") {
    def keys(of: String) =
      s"$of % 7 AS a, $of % 31 AS b, concat('t', $of) AS t, date_add(date'2000-01-01', int($of)) AS day, " +
        s"cast($of AS decimal(12, 2)) AS amount"
    withFolder { folder =>
      spark.sql(s"SELECT id, k AS small, ${keys("k")} FROM facts WHERE k IS NOT NULL")
        .write.parquet(s"$folder/rows")
      spark.sql(s"SELECT id AS small, s, ${keys("id")} FROM dims").createOrReplaceTempView("source")
      val formats = Seq("parquet", "orc")
      formats.foreach { format =>
        spark.table("source").repartition(3).write.format(format).save(s"$folder/$format")
      }
      for (key <- Seq("a,b", "t", "day", "amount", "small")) withClue(Grid.clue) {
        val columns = key.split(',').toSeq
        Grid.part(formats, share = 0.5, key).foreach { format =>
          fires(
            s"SELECT d.s, count(*), max(f.id) FROM parquet.`$folder/rows` f JOIN $format.`$folder/$format` d ON " +
              columns.map(column => s"f.$column = d.$column").mkString(" AND ") +
              s" GROUP BY ${columns.map("f." + _).mkString(", ")}, d.s",
            columns.size,
            joins = 0
          )
        }
      }
    }
  }

  test(
    "where a key has duplicates, or nulls that are grouped by, groups are merged or nothing changes"
  ) {
    withFolder { folder =>
      spark
        .sql("SELECT if(id = 149, 7, id) AS id, concat('n', id) AS name, s FROM dims")
        .write
        .parquet(s"$folder/repeated")
      val repeated =
        s"FROM facts f JOIN parquet.`$folder/repeated` d ON f.k = d.id GROUP BY f.k, d.s"
      merges(s"SELECT f.k, d.s, count(*), avg(f.id), min(f.day) $repeated HAVING sum(f.id) > 100")
      declines(s"SELECT f.k, d.s, count(DISTINCT f.s) $repeated", rule.KeyNotProven)
      spark.sql(
        "SELECT id, if(id < 2, null, concat('n', id)) AS name FROM dims"
      ).write.parquet(s"$folder/named")
      val rows = s"facts f JOIN parquet.`$folder/named` d ON f.k = d.id"
      merges(s"SELECT d.name, count(*), sum(f.id) FROM $rows GROUP BY d.name")
      merges(s"SELECT DISTINCT d.name FROM $rows")
      declines(
        s"SELECT d.name, count(DISTINCT f.s) FROM $rows GROUP BY d.name",
        rule.KeyNotProven
      )
      fires(
        s"SELECT d.name, count(*) FROM $rows WHERE d.name IS NOT NULL GROUP BY d.name",
        keys = 1,
        joins = 0
      )
    }
  }

  test("averages of decimals that Spark computes in double are not merged") {
    withFolder { folder =>
      // 0.07 / 160 is 0.0004375, and a bit less in double.
      spark
        .range(160)
        .selectExpr("1 AS k", "cast(if(id < 7, 0.01, 0) AS decimal(7, 2)) AS a")
        .write
        .parquet(s"$folder/rows")
      withConf(SelingerConf.KEYS_MAX_ROWS.key -> "0") {
        val text = s"FROM parquet.`$folder/rows` f JOIN dims d ON f.k = d.id GROUP BY f.k, d.s"
        declines(s"SELECT f.k, d.s, avg(f.a) $text", rule.KeyNotProven)
        merges(s"SELECT f.k, d.s, sum(f.a), avg(cast(f.a AS decimal(20, 2))) $text")
      }
    }
  }

  test(
    "fires below conditions with a subquery, and not where aggregations by other columns share the join"
  ) {
    val of = "FROM facts f JOIN dims d ON f.k = d.id GROUP BY"
    fires(
      s"SELECT d.id, d.s, count(*) $of d.id, d.s HAVING count(*) > (SELECT min(id) + 20 FROM dupes)",
      keys = 1,
      joins = 0
    )
  }

  test("without time for proofs, groups are merged; a second run finds nothing to do") {
    Seq(
      "SELECT d.id, d.s, sum(f.big), count(f.s), max(f.day) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s",
      "SELECT upper(d.s), f.k, year(f.day), avg(f.big) FROM facts f JOIN dims d ON f.k = d.id " +
        "GROUP BY upper(d.s), f.k, year(f.day)",
      "SELECT f.k, a.s, e.k, e.flag, count(*) FROM facts f JOIN dims a ON f.k = a.id JOIN facts e ON f.big = e.id " +
        "GROUP BY f.k, a.s, e.k, e.flag",
      "SELECT a.id, b.s, stddev(f.id) IS NULL, count(*) FROM facts f JOIN dims a ON f.k = a.id JOIN dims b " +
        "ON a.k = b.id GROUP BY a.id, b.s"
    ).zipWithIndex.foreach { case (text, i) =>
      withConf(SelingerConf.KEYS_MAX_ROWS.key -> "0") {
        val df = isSame(text)
        val reasons = decisions(df).map(_.reason)
        // Deviations are not computed in two steps.
        assert(reasons.contains(if (i < 3) rule.GroupsMerged else rule.KeyNotProven), reasons)
        val plan = Plans.execution(df).optimizedPlan
        assert(new JoinAfterGrouping(spark).apply(plan) eq plan)
      }
    }
  }

  test("passes over tables of which more is used, and groups that do not know their row") {
    Seq(
      "SELECT d.id, d.s, sum(d.k) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s",
      "SELECT d.s, sum(f.k) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.s",
      "SELECT f.k, concat(d.s, f.s), sum(f.id) FROM facts f JOIN dims d ON f.k = d.id " +
        "GROUP BY f.k, concat(d.s, f.s)",
      "SELECT f.k, d.s, sum(f.id) FROM facts f JOIN dims d ON f.k = d.id AND f.id > d.big GROUP BY f.k, d.s",
      "SELECT f.k, d.s, sum(f.id) FROM facts f LEFT JOIN dims d ON f.k = d.id GROUP BY f.k, d.s",
      "SELECT f.k, d.s, sum(f.id) FROM facts f JOIN dims d ON f.k <=> d.id GROUP BY f.k, d.s",
      "SELECT d.id, d.s, sum(f.id) FROM facts f JOIN dims d ON f.k = d.id GROUP BY ROLLUP(d.id, d.s)",
      "SELECT count(*) FROM facts f JOIN dims d ON f.k = d.id",
      // There would be nothing to group by, and so a group of no rows.
      "SELECT d.id, d.s, count(*) FROM (SELECT * FROM facts WHERE id < 0) f CROSS JOIN dims d GROUP BY d.id, d.s",
      "SELECT d.id, d.s, sum(f.id) FROM facts f JOIN (SELECT 7 AS j, id, s FROM dims) d ON f.k = d.j " +
        "GROUP BY d.id, d.s",
      "SELECT * FROM (SELECT d.id, d.s, count(*) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s) " +
        "TABLESAMPLE (10 PERCENT) REPEATABLE (3)",
      // Nothing would join the other two.
      "SELECT d.id, d.s, sum(f.id), sum(g.id) FROM facts f JOIN dims d ON f.k = d.id " +
        "JOIN dupes g ON d.id = g.k GROUP BY d.id, d.s"
    ).foreach(text => assert(decisions(doesNotFire(text)).isEmpty, text))
  }

  test("does not fire on floating-point columns, whose groups have no -0.0, nor on collated keys") {
    doesNotFire(
      "SELECT f.k, d.d, sum(f.id) FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.k, d.d"
    )
    withFolder { folder =>
      spark.sql(
        "SELECT id, concat('n', id) COLLATE UTF8_LCASE AS name FROM dims"
      ).write.parquet(s"$folder/collated")
      doesNotFire(
        s"SELECT d.name, count(*) FROM facts f JOIN parquet.`$folder/collated` d ON f.k = d.id GROUP BY d.name"
      )
    }
  }

  test("does not fire where a join compares what a group shows other bits of") {
    withFolder { folder =>
      spark.sql(
        "SELECT 1 AS k, x FROM VALUES (0.0D), (-0.0D) AS v(x)"
      ).write.parquet(s"$folder/rows")
      spark.sql(
        "SELECT bigint(id) AS id, 'a' AS s, label FROM VALUES (1, '0.0'), (2, '-0.0') AS v(id, label)"
      )
        .write.parquet(s"$folder/labels")
      Seq(1, 2).foreach { id =>
        doesNotFire(
          s"SELECT d.id, d.s, f.x, count(*) FROM parquet.`$folder/rows` f JOIN " +
            s"(SELECT int(id - ${id - 1}) AS id, s, label FROM parquet.`$folder/labels`) d " +
            "ON f.k = d.id AND CAST(f.x AS STRING) = d.label GROUP BY d.id, d.s, f.x"
        )
      }
    }
  }

  test("fires by another key where that of the join is not proven, and by each of several") {
    withFolder { folder =>
      spark
        .sql("SELECT if(id = 149, 7, id) AS id, concat('n', id) AS name, s FROM dims")
        .write
        .parquet(s"$folder/named")
      fires(
        s"SELECT f.k, d.name, d.s, count(*) FROM facts f JOIN parquet.`$folder/named` d ON f.k = d.id " +
          "GROUP BY f.k, d.name, d.s",
        keys = 1,
        joins = 0
      )
    }
  }

  test("fires whatever filters the rows below, and where only alike aggregations share a join") {
    fires(
      "SELECT d.id, d.s, count(*) FROM facts f JOIN dims d ON f.k = d.id WHERE d.s RLIKE 'a' GROUP BY d.id, d.s",
      keys = 1,
      joins = 0
    )
    val of = "FROM facts f JOIN dims d ON f.k = d.id JOIN dupes e ON f.id = e.id"
    fires(
      s"SELECT d.id, d.s, count(*) $of WHERE e.flag GROUP BY d.id, d.s UNION ALL " +
        s"SELECT d.id, d.s, count(*) $of WHERE NOT e.flag GROUP BY d.id, d.s",
      keys = 1,
      joins = 1
    )
  }

  test("keeps names, types and metadata of the results") {
    val described = new MetadataBuilder().putString("comment", "what it is called").build()
    val rows = spark.table("facts").alias("f").join(
      spark.table("dims").alias("d"),
      col("f.k") === col("d.id")
    )
      .select(col("f.id"), col("d.id").as("d", described), col("d.s").as("name", described))
    def grouped = rows.groupBy("d", "name").agg(count("id").as("n"))
    def schemaOf(df: DataFrame) = Plans.execution(df).optimizedPlan.schema
    val expected = withConf(SelingerConf.MODE.key -> "off")(schemaOf(grouped))
    assert(expected("name").metadata == described)
    assert(schemaOf(grouped) == expected)
    assert(decisions(grouped).exists(_.reason == rule.JoinedLater))
  }

  test("does not fire where groups without a partner could raise an error") {
    declines(
      "SELECT d.id, d.s, sum(f.big * f.big) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s",
      Reason.MayRaise
    )
    declines(
      "SELECT d.id, d.s, sum(f.id) DIV (max(f.k) - 5) FROM facts f JOIN dims d ON f.k = d.id " +
        "WHERE f.k <> 5 GROUP BY d.id, d.s",
      Reason.MayRaise
    )
    declines(
      "SELECT d.id, d.s, skewness(f.id) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s",
      Reason.MayRaise
    )
    // Such functions are not known well enough.
    declines(
      "SELECT d.id, d.s, first(f.k) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s",
      Reason.MayRaise
    )
    // Tested for groups as soon as they are there.
    val groups = "SELECT d.id, d.s, count(*) AS n, max(f.k) AS m FROM facts f JOIN dims d " +
      "ON f.k = d.id AND d.id <> 5 GROUP BY d.id, d.s"
    declines(s"SELECT * FROM ($groups) WHERE n DIV (m - 5) > 1", Reason.MayRaise)
    // Not before the join that it belongs to.
    fires(
      s"SELECT g.id, t.id FROM ($groups) g JOIN dupes t ON g.id = t.id AND g.n DIV (g.m - 5) > t.k",
      keys = 1,
      joins = 0
    )
    withConf("spark.sql.ansi.enabled" -> "false") {
      fires(s"SELECT * FROM ($groups) WHERE n DIV (m - 5) > 1", keys = 1, joins = 0)
    }
  }

  test("does not fire where a join has a hint, or another part of the query has the rows") {
    declines(
      "SELECT /*+ BROADCAST(d) */ d.id, d.s, count(*) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s",
      Reason.HintObeyed
    )
    val text = "SELECT f.k, d.s, count(*) FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.k, d.s"
    declines(
      s"$text UNION ALL SELECT f.k, max(d.s), 1 FROM facts f JOIN dims d ON f.k = d.id GROUP BY f.k",
      Reason.SharedSubplan
    )
    fires(s"$text UNION ALL $text", keys = 1, joins = 0)
  }

  test(
    "by cost, fires on many rows of few groups, and not where a filter of the table leaves few rows"
  ) {
    withFolder { folder =>
      spark.range(300000).selectExpr("id", "int(id % 150) AS k").write.parquet(s"$folder/many")
      withConf(always._1 -> SelingerConf.JOIN_LATER_MIN_GAIN.default) {
        val rows = s"parquet.`$folder/many` f JOIN dims d ON f.k = d.id"
        fires(
          s"SELECT d.id, d.s, sum(f.id) FROM $rows GROUP BY d.id, d.s",
          keys = 1,
          joins = 0
        )
        declines(
          s"SELECT d.id, d.s, sum(f.id) FROM $rows WHERE d.id = 7 GROUP BY d.id, d.s",
          rule.SavesLittle
        )
      }
    }
  }

  test("what is joined to groups for nothing is left out") {
    withConf(EliminateJoins.switch -> "true") {
      val df = isSame(
        "SELECT g.id, g.n FROM (SELECT d.id, d.s, count(*) AS n FROM facts f JOIN dims d ON f.k = d.id " +
          "GROUP BY d.id, d.s) g"
      )
      assert(!Plans.execution(df).optimizedPlan.exists(_.isInstanceOf[Join]))
    }
  }

  test("advises without changing anything, and explains itself") {
    val text =
      "SELECT d.id, d.s, sum(f.id) FROM facts f JOIN dims d ON f.k = d.id GROUP BY d.id, d.s"
    withConf(SelingerConf.MODE.key -> "advise") {
      val df = isSame(text)
      assert(decisions(df).map(_.outcome) == Seq(Outcome.Advised))
      assert(groupings(df) == Seq((2, 1)))
    }
    val made = decisions(fires(text, keys = 1, joins = 0)).filter(_.reason == rule.JoinedLater)
    assert(made.flatMap(_.chosen).exists(_.contains("joined to groups")))
    assert(made.flatMap(_.detail) == Seq("Keys: dims by id"))
  }
}
