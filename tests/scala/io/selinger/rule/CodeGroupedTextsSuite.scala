package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{CodedText, Decision, Outcome, Reason, TextCode}
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.{DynamicPruning, Expression, Rand}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.SCALAR_SUBQUERY
import org.apache.spark.sql.execution.{
  CollectLimitExec,
  FileSourceScanExec,
  TakeOrderedAndProjectExec
}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite
import java.nio.file.Files
import scala.reflect.ClassTag

/** Grouping by numbers in the place of texts: where, and that the answers stay. */
class CodeGroupedTextsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = CodeGroupedTexts
  private val always = SelingerConf.CODED_TEXTS_MIN_GAIN.key -> "0"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def optimized(df: DataFrame): LogicalPlan = Plans.execution(df).optimizedPlan

  /** How often a plan has an expression. */
  private def count[A <: Expression: ClassTag](df: DataFrame): Int =
    optimized(df).collectWithSubqueries { case operator =>
      operator.expressions.flatMap(_.collect { case found: A => found }).size
    }.sum

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private val modes =
    for {
      adaptive <- Seq("true", "false")
      broadcast <- Seq("10m", "-1")
      code <- Seq("NO_CODEGEN", "FALLBACK")
    } yield Seq(
      always,
      "spark.sql.adaptive.enabled" -> adaptive,
      "spark.sql.autoBroadcastJoinThreshold" -> broadcast,
      "spark.sql.codegen.factoryMode" -> code,
      "spark.sql.codegen.wholeStage" -> (code == "FALLBACK").toString
    )

  /** Asserts that so many texts get codes, with the answer of stock Spark in each mode. */
  private def fires(text: String, texts: Int, settings: (String, String)*): DataFrame = {
    val made = Grid.firstAndOne(modes, text).map { mode =>
      withConf(mode ++ settings: _*) {
        val expected = stockAnswer(settings: _*)(spark.sql(text))
        val df = spark.sql(text)
        assert(count[TextCode](df) == texts, optimized(df))
        withClue(Grid.clue) {
          Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
        }
        assert(decisions(df).count(_.outcome == Outcome.Changed) >= 1)
        df
      }
    }
    made.head
  }

  private def passesOver(text: String, settings: (String, String)*): Assertion =
    withConf(always +: settings: _*) {
      val expected = stockAnswer(settings: _*)(spark.sql(text))
      val df = spark.sql(text)
      Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
      assert(count[TextCode](df) == 0, optimized(df))
      assert(decisions(df).isEmpty, decisions(df))
    }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    withConf(settings: _*) {
      val df = spark.sql(text)
      assert(count[TextCode](df) == 0, optimized(df))
      assert(decisions(df).map(_.reason) == Seq(reason), decisions(df))
    }

  private val joined = "facts f JOIN dims d ON f.k = d.k"

  test("fires on texts of an inner join, with nulls, spaces, cases and letters beyond ASCII") {
    fires(s"SELECT d.s, count(*), sum(f.big) FROM $joined GROUP BY d.s", 1)
    fires(s"SELECT d.s, f.k, count(*) FROM $joined GROUP BY f.k, d.s", 1)
    fires(s"SELECT DISTINCT d.s FROM $joined", 1)
    fires(s"SELECT d.s, f.s, count(*) FROM $joined GROUP BY d.s, f.s", 2)
  }

  test("fires beside keys whose equal values have other bits, and decimals at their limits") {
    fires(s"SELECT d.s, f.d, count(*) FROM $joined GROUP BY d.s, f.d", 1)
    fires(s"SELECT d.s, f.amount, count(*), max(f.d) FROM $joined GROUP BY d.s, f.amount", 1)
  }

  test("an error of a function is raised as before") {
    val text = s"SELECT d.s, sum(f.big * 9000000000000) FROM $joined GROUP BY d.s"
    val ansi = "spark.sql.ansi.enabled" -> "true"
    for (settings <- Seq(Seq(rule.switch -> "false", ansi), Seq(always, ansi)))
      withConf(settings: _*) {
        val error = intercept[Exception](spark.sql(text).collect())
        assert(error.toString.contains("ARITHMETIC_OVERFLOW"), error)
      }
  }

  test("the hint of a join is obeyed") {
    val df = fires(s"SELECT /*+ MERGE(d) */ d.s, count(*) FROM $joined GROUP BY d.s", 1)
    withConf(always)(assert(Plans.joins(df) == Seq("SortMergeJoin")))
  }

  test("a text that an outer join makes null is the same as one that is null") {
    Seq("LEFT", "RIGHT", "FULL").foreach { kind =>
      fires(
        s"SELECT d.s, count(*), count(d.k) FROM facts f $kind JOIN dims d ON f.k = d.k AND d.id < 70 GROUP BY d.s",
        1
      )
    }
    fires(
      "SELECT d.s, n.s, count(*) FROM facts f LEFT JOIN dims d ON f.k = d.k LEFT JOIN nothing n ON n.k = d.k " +
        "GROUP BY d.s, n.s",
      1
    )
  }

  test("fires above semi and anti joins, and on tables without rows") {
    fires(
      s"SELECT d.s, count(*) FROM $joined WHERE f.id IN (SELECT id FROM dupes) GROUP BY d.s",
      1
    )
    fires(
      s"SELECT d.s, count(*) FROM $joined WHERE NOT EXISTS (SELECT 1 FROM dupes u WHERE u.id = f.id) GROUP BY d.s",
      1
    )
    fires("SELECT n.s, count(*) FROM facts f JOIN nulls n ON f.big = n.big GROUP BY n.s", 1)
    fires("SELECT d.s, count(*) FROM nothing f JOIN dims d ON f.k = d.k GROUP BY d.s", 1)
  }

  test("fires on texts that are computed from columns of a table") {
    fires(s"SELECT upper(d.s), count(*) FROM $joined GROUP BY upper(d.s)", 1)
    fires(s"SELECT substring(d.s, 1, 1) AS c, sum(f.id) FROM $joined GROUP BY c", 1)
    fires(s"SELECT concat(d.s, '-', d.s) AS c, d.s, count(*) FROM $joined GROUP BY c, d.s", 2)
    fires(s"SELECT coalesce(d.s, 'none') AS c, count(*) FROM $joined GROUP BY c", 1)
    // Over a null that the join has made it is no null.
    passesOver(
      "SELECT coalesce(d.s, 'none') AS c, count(*) FROM facts f LEFT JOIN dims d ON f.k = d.k GROUP BY c"
    )
    passesOver(s"SELECT concat(d.s, f.s) AS c, count(*) FROM $joined GROUP BY c")
  }

  test("functions read the texts themselves") {
    fires(
      s"""SELECT d.s, max(d.s), count(DISTINCT d.s), min(concat(d.s, 'x')), collect_set(d.s) IS NULL,
         |  sum(f.id) FILTER (WHERE d.s > 'A'), count(DISTINCT f.k)
         |FROM $joined GROUP BY d.s""".stripMargin,
      1
    )
  }

  test("results that are computed of texts, of functions, and of both") {
    fires(
      s"""SELECT concat(d.s, '!'), concat(d.s, string(count(*))), sum(f.big) + 1, f.k + 1, d.s AS again, d.s, f.k
         |FROM $joined GROUP BY d.s, f.k HAVING count(*) > 1 AND (d.s < 'b' OR f.k > 3)""".stripMargin,
      1
    )
    fires(s"SELECT count(*) FROM $joined GROUP BY d.s", 1)
    fires(s"SELECT length(d.s) + count(*) FROM $joined GROUP BY d.s", 1)
  }

  test("grouping sets copy codes, with grouping and its id") {
    fires(
      s"SELECT d.s, f.k, count(*), grouping(d.s), grouping_id() FROM $joined GROUP BY ROLLUP(d.s, f.k)",
      1
    )
    fires(s"SELECT d.s, f.s, sum(f.id) FROM $joined GROUP BY CUBE(d.s, f.s)", 2)
    fires(
      s"SELECT d.s, f.flag, count(DISTINCT f.k), max(d.s) FROM $joined GROUP BY GROUPING SETS ((d.s), (f.flag, d.s), ())",
      1
    )
    fires(
      s"SELECT upper(d.s) AS u, d.s, count(*) FROM $joined GROUP BY GROUPING SETS ((u), (d.s))",
      2
    )
    fires(
      s"SELECT d.s, count(DISTINCT f.k), count(DISTINCT f.flag) FROM $joined GROUP BY d.s",
      1
    )
  }

  test("sorts, limits and ranks by codes, and puts the texts back above them") {
    val ranked = fires(
      s"""SELECT * FROM (SELECT s, k, n, rank() OVER (PARTITION BY s ORDER BY n DESC, k) AS r,
         |    dense_rank() OVER (ORDER BY s DESC NULLS LAST) AS o, sum(n) OVER (PARTITION BY s) AS t
         |  FROM (SELECT d.s, f.k, count(*) AS n FROM $joined GROUP BY d.s, f.k))
         |WHERE r <= 3 AND s IS NOT NULL ORDER BY s DESC, r, k LIMIT 7""".stripMargin,
      1
    )
    assert(optimized(ranked).exists {
      case Project(list, _: GlobalLimit) => list.exists(_.exists(_.isInstanceOf[CodedText]))
      case _ => false
    })
    for (order <- Seq("d.s", "d.s DESC", "d.s NULLS LAST", "d.s DESC NULLS FIRST"))
      fires(s"SELECT d.s, count(*) AS n FROM $joined GROUP BY d.s ORDER BY $order LIMIT 4", 1)
  }

  test("window functions of texts get the texts") {
    fires(
      s"""SELECT s, n, max(s) OVER (PARTITION BY n % 3), lag(s) OVER (ORDER BY n, s), s || 'x' AS x
         |FROM (SELECT d.s, count(*) AS n FROM $joined GROUP BY d.s)""".stripMargin,
      1
    )
    fires(
      s"""SELECT s, count(*) OVER (PARTITION BY upper(s)), rank() OVER (ORDER BY s || 'x') AS r
         |FROM (SELECT d.s, count(*) AS n FROM $joined GROUP BY d.s)""".stripMargin,
      1
    )
  }

  test("windows of codes need no shuffle of their own where the groups were shuffled by them") {
    val text =
      s"SELECT s, k, sum(n) OVER (PARTITION BY s, k) FROM (SELECT d.s, f.k, f.flag, count(*) AS n FROM $joined GROUP BY d.s, f.k, f.flag)"
    def shuffles(df: DataFrame) = {
      df.collect()
      Plans.physical(df).count(_.isInstanceOf[ShuffleExchangeExec])
    }
    val settings = Seq("spark.sql.autoBroadcastJoinThreshold" -> "10m")
    val stock = withConf((rule.switch -> "false") +: settings: _*)(shuffles(spark.sql(text)))
    withConf(always +: settings: _*) {
      val df = spark.sql(text)
      // One that makes the dictionary.
      assert(shuffles(df) == stock + 1)
    }
  }

  test("what is grouped by codes below gives them to an aggregation above") {
    val df = fires(
      s"""SELECT x.s, count(*), sum(x.n) FROM (SELECT d.s, f.k, count(*) AS n FROM $joined GROUP BY d.s, f.k) x
         |JOIN dupes u ON x.k = u.k GROUP BY x.s""".stripMargin,
      1
    )
    val grouped = optimized(df).collect {
      case aggregate: Aggregate => aggregate.groupingExpressions.map(_.dataType.typeName)
    }
    assert(grouped.size >= 2 && !grouped.flatten.contains("string"), optimized(df))
  }

  test("texts go through joins, unions and subqueries of the query above as before") {
    val groups = s"SELECT d.s, count(*) AS n FROM $joined GROUP BY d.s"
    fires(s"SELECT * FROM ($groups) a JOIN ($groups) b ON a.s = b.s JOIN dupes u ON u.s = a.s", 2)
    fires(s"($groups) UNION ALL ($groups) UNION ALL SELECT s, id FROM nulls", 2)
    fires(s"SELECT id FROM dims WHERE s IN (SELECT s FROM ($groups) WHERE n > 3)", 1)
    // Subqueries would wait for the dictionary in the same pool of threads.
    passesOver(s"SELECT id, (SELECT max(n) FROM ($groups)) FROM nulls")
  }

  test("passes over texts of the query itself and of cached tables, which may be long") {
    passesOver(
      "SELECT v.name, count(*) FROM facts f JOIN VALUES (1, 'x'), (2, 'y'), (3, NULL), (3, 'x') AS v(k, name) ON f.k = v.k GROUP BY v.name"
    )
    val cached = spark.table("dims").where("id < 90").cache()
    try {
      cached.createOrReplaceTempView("cached_dims")
      passesOver("SELECT c.s, count(*) FROM facts f JOIN cached_dims c ON f.k = c.k GROUP BY c.s")
    } finally { val _ = cached.unpersist(blocking = true) }
  }

  test("an outer join makes codes null whose texts are not") {
    val computed =
      "SELECT x.k, coalesce(y.s, 'none') AS name FROM dupes x JOIN dims y ON x.id = y.id"
    for (adaptive <- Seq("true", "false")) {
      val settings = Seq("spark.sql.adaptive.enabled" -> adaptive)
      fires(
        s"SELECT d.name, count(*) FROM facts f LEFT JOIN ($computed) d ON f.k = d.k GROUP BY d.name",
        1,
        settings: _*
      )
      fires(
        s"""SELECT a.name, count(*) FROM facts f
           |LEFT JOIN (SELECT name, k, count(*) AS n FROM ($computed) GROUP BY name, k) a ON f.k = a.k AND a.n > 1
           |GROUP BY a.name""".stripMargin,
        1,
        settings: _*
      )
    }
  }

  test("a sort with limit and offset stays one operator, and a limit alone stays at the root") {
    val sorted = fires(
      s"SELECT d.s, f.k, count(*) AS n FROM $joined GROUP BY d.s, f.k ORDER BY n DESC, s, k LIMIT 5 OFFSET 20",
      1
    )
    withConf(always) {
      assert(Plans.physical(sorted).exists(_.isInstanceOf[TakeOrderedAndProjectExec]))
      val limited = spark.sql(s"SELECT d.s, f.k, count(*) FROM $joined GROUP BY d.s, f.k LIMIT 7")
      assert(limited.collect().length == 7 && count[TextCode](limited) == 1)
      assert(Plans.physical(limited).exists(_.isInstanceOf[CollectLimitExec]))
    }
  }

  test("a random value that is computed with a text is computed once") {
    withConf(always) {
      val df = spark.sql(
        s"""SELECT s, CASE WHEN n > 5 THEN x END AS a, x AS b FROM
           |(SELECT d.s, count(*) AS n, concat(d.s, string(rand(1))) AS x FROM $joined GROUP BY d.s)""".stripMargin
      )
      assert(count[TextCode](df) == 1 && count[Rand](df) == 1)
      assert(df.where("a <> b").count() == 0)
    }
  }

  test("texts that another part of the query selects: all texts of the table are numbered") {
    val df = fires(
      "SELECT d.s, count(*) FROM facts f JOIN dims d ON f.k = d.k WHERE d.id > (SELECT min(id) FROM nulls) GROUP BY d.s",
      1
    )
    val dictionary = optimized(df)
      .collectWithSubqueries { case aggregate: Aggregate => aggregate }
      .filter(_.output.exists(_.name == "dictionaries"))
    assert(dictionary.nonEmpty && !dictionary.exists(_.containsPattern(SCALAR_SUBQUERY)))
  }

  test("passes over a table that is grouped without a join") {
    passesOver("SELECT s, count(*) FROM dims GROUP BY s")
    passesOver("SELECT s, k, count(*) FROM dims GROUP BY CUBE(s, k)")
  }

  test("texts of one table stay where its dictionary is too large, and those of another get codes") {
    withConf(always, SelingerConf.MAX_DICTIONARY_BYTES.key -> "200b") {
      val text =
        "SELECT d.s, u.long, count(*) FROM facts f JOIN dims d ON f.k = d.k JOIN " +
          "(SELECT k, concat(s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s, s) AS long FROM dupes) u ON f.k = u.k GROUP BY d.s, u.long"
      val df = spark.sql(text)
      assert(count[TextCode](df) == 1, optimized(df))
      assert(decisions(df).map(_.reason) == Seq(rule.Coded))
    }
  }

  test("texts are numbered below filters that are random or may raise errors") {
    fires(
      "SELECT d.s, count(*) FROM facts f JOIN (SELECT * FROM dims WHERE rand(1) < 0.5) d ON f.k = d.k GROUP BY d.s",
      1
    )
    fires(
      "SELECT d.s, count(*) FROM facts f JOIN (SELECT * FROM dims WHERE 10 / (id + 1) > 0) d ON f.k = d.k GROUP BY d.s",
      1,
      "spark.sql.ansi.enabled" -> "true"
    )
  }

  test("passes over texts that may be others, or raise errors, when they are read again") {
    passesOver(
      "SELECT d.c, count(*) FROM facts f JOIN (SELECT k, concat(s, string(rand(1) > 0.5)) AS c FROM dims) d ON f.k = d.k GROUP BY d.c"
    )
    passesOver(
      "SELECT d.c, count(*) FROM facts f JOIN (SELECT k, string(10 / (id + 1)) AS c FROM dims) d ON f.k = d.k GROUP BY d.c",
      "spark.sql.ansi.enabled" -> "true"
    )
    val folder = Files.createTempDirectory("selinger-texts").resolve("csv").toString
    SharedSession.stock.sql("SELECT id AS k, 'x' AS s FROM range(9)").write.csv(folder)
    passesOver(
      s"SELECT d._c1, count(*) FROM facts f JOIN csv.`$folder` d ON f.k = int(d._c0) GROUP BY d._c1"
    )
  }

  test("passes over texts with a collation, and texts below unions and generators") {
    passesOver(s"SELECT d.s COLLATE UTF8_LCASE AS c, count(*) FROM $joined GROUP BY c")
    passesOver(s"SELECT d.s COLLATE UNICODE AS c, count(*) FROM $joined GROUP BY c")
    passesOver(
      "SELECT d.s, count(*) FROM facts f JOIN (SELECT k, s FROM dims UNION ALL SELECT k, s FROM dupes) d ON f.k = d.k GROUP BY d.s"
    )
    passesOver(
      "SELECT c, count(*) FROM nested LATERAL VIEW explode(map_keys(attributes)) t AS c GROUP BY c"
    )
    passesOver(s"SELECT d.big, count(*) FROM $joined GROUP BY d.big")
  }

  test("a table that prunes partitions stays as it is") {
    val folder = Files.createTempDirectory("selinger-texts").resolve("parts").toString
    SharedSession.stock
      .sql("SELECT id, cast(id % 9 AS int) AS p FROM range(900)")
      .write
      .partitionBy("p")
      .parquet(folder)
    val text =
      s"SELECT d.s, count(*) FROM parquet.`$folder` f JOIN dims d ON f.p = d.k WHERE d.id < 3 GROUP BY d.s"
    passesOver(text, "spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly" -> "true")
    withConf(always) {
      val df = spark.sql(text)
      assert(Plans.physical(df).exists {
        case scan: FileSourceScanExec =>
          scan.partitionFilters.exists(_.exists(_.isInstanceOf[DynamicPruning]))
        case _ => false
      })
    }
  }

  test("declines with each reason") {
    val text = s"SELECT d.s, count(*) FROM $joined GROUP BY d.s"
    declines(text, rule.SavesLittle)
    declines(text, rule.TooLarge, always, SelingerConf.MAX_DICTIONARY_BYTES.key -> "10b")
    declines(
      text,
      Reason.NoStatistics,
      "spark.selinger.readFooterStatistics.enabled" -> "false"
    )
    declines(
      s"SELECT d.s, sum(f.big) FROM $joined GROUP BY d.s UNION ALL SELECT max(d.s), f.big FROM $joined GROUP BY f.big",
      Reason.SharedSubplan,
      always,
      "spark.selinger.pushAggregateBelowJoin.enabled" -> "false"
    )
  }

  test("a second run finds no texts") {
    withConf(always) {
      val df = spark.sql(s"SELECT d.s, count(*) FROM $joined GROUP BY d.s ORDER BY d.s LIMIT 3")
      val once = optimized(df)
      val again = new CodeGroupedTexts(Plans.execution(df).sparkSession).apply(once)
      assert(again eq once)
    }
  }
}
