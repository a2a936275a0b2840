package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.ordering.ReorderJoins
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import java.nio.file.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.FileSourceScanExec
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Similar aggregations: which are computed once, and that the answers stay. */
class ShareSimilarAggregatesSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] =
    SharedSession.interpreted ++ SharedSession.grouped

  private val rule = ShareSimilarAggregates
  private val ansi = "spark.sql.ansi.enabled" -> "true"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

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

  private def changed(df: DataFrame): Seq[Decision] =
    decisions(df).filter(_.outcome == Outcome.Changed)

  /** Asserts that the rule acts whatever the cost, and that so many scans remain, fewer than without. */
  private def fires(text: String, left: Int): DataFrame =
    withConf(SelingerConf.MERGE_MIN_GAIN.key -> "0") {
      val expected = stockAnswer()(spark.sql(text))
      val df = answers(text, expected)
      assert(
        changed(df).nonEmpty && changed(df).forall(_.reason == rule.Shared),
        Plans.execution(df).optimizedPlan
      )
      assert(scans(df) == left, Plans.execution(df).executedPlan)
      val without = withConf(rule.switch -> "false")(answers(text, expected))
      assert(scans(without) > left, "without the rule there are no more")
      df
    }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion = {
    val df = isSame(text, (SelingerConf.MERGE_MIN_GAIN.key -> "0") +: settings: _*)
    assert(changed(df).isEmpty, decisions(df))
    assert(decisions(df).map(_.reason).contains(reason), decisions(df))
  }

  private def grouped(columns: String, from: String = "facts", where: String = "true"): String =
    s"WITH t AS (SELECT $columns, count(*) AS n, max(id) AS m, sum(k) AS b FROM $from " +
      s"WHERE $where GROUP BY $columns) "

  private def twice(columns: String, one: String, other: String): String =
    grouped(
      columns
    ) + s"SELECT a.*, b.n, b.m FROM t a JOIN t b ON a.k <=> b.k WHERE $one AND $other"

  test("fires on conditions on one grouping column, with nulls and duplicates") {
    fires(twice("k, s", "a.s = 'B'", "b.s = 'b'"), left = 1)
    fires(twice("k, s", "a.s IS NULL", "b.s <> 'b'"), left = 1)
    fires(twice("k, s", "a.s = 'B'", "true"), left = 1)
    fires(twice("k, day", "a.day < date'2000-01-01'", "b.day = date'2000-01-05'"), left = 1)
    fires(twice("k, amount", "a.amount > 5", "b.amount IS NULL"), left = 1)
  }

  test("fires on conditions on several grouping columns, and on more than two places") {
    fires(twice("k, s, flag", "a.s = 'B' AND a.flag", "NOT b.flag"), left = 1)
    fires(
      grouped("k, s") + "SELECT a.k, a.n, b.n, c.n FROM t a JOIN t b ON a.k = b.k " +
        "JOIN t c ON a.k = c.k WHERE a.s = 'B' AND b.s = 'b' AND c.s = 'Ab'",
      left = 1
    )
    fires(
      grouped("k, s") + "SELECT * FROM t WHERE s = 'B' UNION ALL SELECT * FROM t WHERE s = 'b' " +
        "UNION ALL SELECT * FROM t WHERE k = 3",
      left = 1
    )
  }

  test("fires where no row meets one of the conditions, and where there are no rows at all") {
    val none =
      isSame(twice("k, s", "a.s = 'none'", "b.s = 'b'"), SelingerConf.MERGE_MIN_GAIN.key -> "0")
    assert(changed(none).nonEmpty)
    val empty = isSame(
      grouped("k, s", from = "nothing") +
        "SELECT a.*, b.n, b.m FROM t a JOIN t b ON a.k <=> b.k WHERE a.s = 'B' AND b.s = 'b'",
      SelingerConf.MERGE_MIN_GAIN.key -> "0"
    )
    assert(changed(empty).nonEmpty)
  }

  test("fires through joins, on conditions on either side") {
    val joined = "WITH t AS (SELECT d.s, d.flag, f.k, sum(f.k) AS b, count(DISTINCT f.id) AS n " +
      "FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s, d.flag, f.k) "
    val both = "SELECT a.*, b.n FROM t a JOIN t b ON a.k = b.k WHERE "
    fires(joined + both + "a.s = 'B' AND b.s = 'b'", left = 2)
    fires(joined + both + "a.s = 'B' AND a.k > 20 AND b.s = 'b' AND b.k > 20", left = 2)
    fires(joined + both + "a.s = 'B' AND b.k > 50", left = 2)
  }

  test(
    "fires where the input of the joins would be grouped first in one place and not in another"
  ) {
    val text = "WITH t AS (SELECT d.s, f.k, sum(f.id) AS m, count(*) AS n FROM facts f " +
      "JOIN dims d ON f.k = d.k GROUP BY d.s, f.k) " +
      "SELECT a.*, b.m, b.n FROM t a JOIN t b ON a.k <=> b.k WHERE a.s = 'B' AND b.k > 2"
    def pushed(df: DataFrame) =
      Plans.decisions(df, PushAggregateBelowJoin.id).map(_.outcome == Outcome.Changed)
    withConf(
      SelingerConf.EAGER_MIN_GAIN.key -> "0.44",
      SelingerConf.EAGER_MIN_ROWS.key -> "1"
    ) {
      val apart = withConf(rule.switch -> "false")(pushed(spark.sql(text)))
      assert(apart.toSet == Set(true, false), "this query shows nothing")
      assert(pushed(fires(text, left = 2)).toSet.size == 1)
    }
  }

  /** Two groupings of joins in the order written, with one condition each. */
  private def ordered(one: String, other: String, keys: String = "f.k, f.s"): String = {
    def groups(from: String, where: String) =
      s"(SELECT $keys, count(*) AS n, sum(d.id) AS m FROM $from WHERE $where GROUP BY $keys)"
    s"SELECT a.*, b.n, b.m FROM ${groups(one, "f.s = 'B'")} a JOIN ${groups(other, "f.s = 'b'")} b " +
      "ON a.k <=> b.k"
  }

  private val asWritten = ReorderJoins.switch -> "false"

  test("fires on inner joins in different orders") {
    withConf(asWritten) {
      fires(
        ordered(
          "facts f JOIN dims d ON f.k = d.k JOIN dupes u ON f.big = u.big",
          "dupes u JOIN facts f ON u.big = f.big JOIN dims d ON d.k = f.k"
        ),
        left = 3
      )
      // Bushy, with a condition that is no equality, and a column that has two names.
      fires(
        ordered(
          "facts f JOIN (SELECT d.k, d.id, u.big AS least FROM dims d JOIN dupes u " +
            "ON d.flag = u.flag) d ON f.k = d.k AND f.big > d.least",
          "dims d JOIN facts f ON d.k = f.k JOIN dupes u ON d.flag = u.flag AND f.big > u.big"
        ),
        left = 3
      )
    }
  }

  test("fires on joins that name other columns of the same equal ones") {
    withConf(asWritten) {
      fires(
        ordered(
          "facts f JOIN dims d ON f.k = d.k JOIN dupes u ON d.k = u.k",
          "facts f JOIN dupes u ON u.k = f.k JOIN dims d ON d.k = u.k AND f.k = d.k"
        ),
        left = 3
      )
    }
  }

  test("four places of two join orders have one order, and each its own rows") {
    withConf(asWritten) {
      def groups(from: String, where: String) =
        s"SELECT f.k, f.s, count(*) AS n FROM $from WHERE $where GROUP BY f.k, f.s"
      val first = "facts f JOIN dims d ON f.k = d.k JOIN dupes u ON f.big = u.big"
      val other = "dupes u JOIN facts f ON u.big = f.big JOIN dims d ON d.k = f.k"
      fires(
        s"SELECT 1 AS p, * FROM (${groups(first, "f.s = 'B'")}) UNION ALL " +
          s"SELECT 2, * FROM (${groups(other, "f.s = 'b'")}) UNION ALL " +
          s"SELECT 3, * FROM (${groups(first, "f.s = 'B'")}) UNION ALL " +
          s"SELECT 4, * FROM (${groups(other, "f.k > 50")})",
        left = 3
      )
    }
  }

  test("joins in different orders keep their rows with empty tables, outer joins and NaN") {
    withConf(asWritten, SelingerConf.MERGE_MIN_GAIN.key -> "0") {
      val pairs = "(SELECT u.big, v.s AS other FROM dupes u LEFT JOIN nulls v ON u.k = v.id)"
      Seq("nothing", pairs).foreach { third =>
        val df = isSame(ordered(
          s"facts f JOIN dims d ON f.k = d.k JOIN $third u ON f.big = u.big",
          s"$third u JOIN facts f ON u.big = f.big JOIN dims d ON d.k = f.k"
        ))
        assert(changed(df).nonEmpty, third)
      }
      isSame(ordered(
        "facts f JOIN dims d ON f.k = d.k JOIN dupes u ON d.d = u.d",
        "dupes u JOIN dims d ON u.d = d.d JOIN facts f ON d.k = f.k"
      ))
    }
  }

  test("a condition that may raise an error keeps joins in the order that they have") {
    val df = isSame(
      ordered(
        "facts f JOIN dims d ON f.k = d.k AND 9 div (d.id + f.id - 5000) < 1 JOIN dupes u ON f.big = u.big",
        "dupes u JOIN facts f ON u.big = f.big JOIN dims d ON d.k = f.k AND 9 div (d.id + f.id - 5000) < 1"
      ),
      SelingerConf.MERGE_MIN_GAIN.key -> "0",
      asWritten,
      ansi
    )
    assert(changed(df).isEmpty, decisions(df))
  }

  test("tells a table that is joined twice by the columns that join it") {
    withConf(asWritten) {
      fires(
        ordered(
          "facts f JOIN dims d ON f.k = d.k JOIN dims e ON f.id = e.id",
          "facts f JOIN dims e ON f.id = e.id JOIN dims d ON f.k = d.k"
        ),
        left = 3
      )
    }
  }

  test("does not fire on joins in different orders by other columns, or with other conditions") {
    val first = "facts f JOIN dims d ON f.k = d.k JOIN dupes u ON f.big = u.big"
    Seq(
      "dupes u JOIN facts f ON u.big = f.big JOIN dims d ON d.day = f.day",
      "dupes u JOIN facts f ON u.big = f.big JOIN dims d ON d.k = f.k AND d.k = u.k",
      "dupes u JOIN facts f ON u.big = f.big JOIN dims d ON d.k = f.k AND d.id < u.id"
    ).foreach { other =>
      val text = ordered(first, other)
      val df = isSame(text, SelingerConf.MERGE_MIN_GAIN.key -> "0", asWritten)
      assert(decisions(df).map(_.reason) == Seq(rule.Differ), s"$other: ${decisions(df)}")
    }
  }

  test("fires on the kept side of outer, semi and anti joins") {
    Seq("LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN").foreach { join =>
      fires(
        s"WITH t AS (SELECT f.k, f.s, count(*) AS n FROM facts f $join dupes d ON f.big = d.big " +
          "GROUP BY f.k, f.s) SELECT a.n, b.n FROM t a JOIN t b ON a.k = b.k " +
          "WHERE a.s = 'B' AND b.s = 'b'",
        left = 2
      )
    }
  }

  test("columns that an outer join fills with nulls stay so in functions and keys") {
    val joined = "FROM facts f LEFT JOIN range(60) r ON f.k = r.id"
    def both(select: String, group: String) =
      s"WITH t AS (SELECT $select $joined GROUP BY $group) SELECT a.*, b.* FROM t a JOIN t b " +
        "ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'"
    fires(both("f.k, f.s, count(r.id) AS n, sum(r.id) AS m", "f.k, f.s"), left = 1)
    fires(both("f.k, f.s, r.id, count(*) AS n", "f.k, f.s, r.id"), left = 1)
    // The functions of one place only.
    fires(
      s"SELECT a.k, a.n, b.n AS o FROM (SELECT f.k, f.s, sum(f.k) AS n $joined WHERE f.s = 'B' GROUP BY f.k, f.s) a " +
        s"JOIN (SELECT f.k, f.s, count(r.id) AS n $joined WHERE f.s = 'b' GROUP BY f.k, f.s) b ON a.k = b.k",
      left = 1
    )
    fires(
      "WITH t AS (SELECT f.k, f.s, d.k AS other, count(d.id) AS n FROM dims d RIGHT JOIN facts f " +
        "ON f.k = d.k AND d.flag GROUP BY f.k, f.s, d.k) SELECT a.n, a.other, b.n, b.other FROM t a " +
        "JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'",
      left = 2
    )
  }

  test("a column that one place knows to have no nulls has them in the other") {
    fires(
      "SELECT a.k, a.s, a.n, b.s, b.n FROM (SELECT k, s, count(s) AS n FROM facts WHERE s IS NOT NULL " +
        "GROUP BY k, s) a FULL JOIN (SELECT k, s, count(s) AS n FROM facts GROUP BY k, s) b " +
        "ON a.k = b.k AND a.s <=> b.s",
      left = 1
    )
  }

  test("does not fire on the side of an outer join that may be null") {
    declines(
      "SELECT a.k, a.n, b.n FROM (SELECT f.k, d.flag, count(*) AS n FROM facts f LEFT JOIN " +
        "(SELECT k, flag FROM dims WHERE flag) d ON f.k = d.k GROUP BY f.k, d.flag) a JOIN " +
        "(SELECT f.k, d.flag, count(*) AS n FROM facts f LEFT JOIN (SELECT k, flag FROM dims " +
        "WHERE NOT flag) d ON f.k = d.k GROUP BY f.k, d.flag) b ON a.k = b.k",
      rule.Differ
    )
  }

  test("fires through unions where each branch has the condition") {
    val all = "WITH t AS (SELECT k, s, sum(id) AS n FROM (SELECT k, s, id FROM facts UNION ALL " +
      "SELECT k, s, id FROM dims) GROUP BY k, s) "
    fires(
      all + "SELECT a.n, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'",
      left = 2
    )
    declines(
      "SELECT a.k, a.n, b.n FROM (SELECT k, s, count(*) AS n FROM (SELECT k, s FROM facts WHERE s = 'B' " +
        "UNION ALL SELECT k, s FROM dims) GROUP BY k, s) a JOIN (SELECT k, s, count(*) AS n FROM " +
        "(SELECT k, s FROM facts WHERE s = 'b' UNION ALL SELECT k, s FROM dims) GROUP BY k, s) b " +
        "ON a.k = b.k",
      rule.Differ
    )
  }

  test("fires on groups of groups, and on windows, whose keys have the conditions") {
    fires(
      "WITH t AS (SELECT k, s, max(n) AS n FROM (SELECT k, s, flag, count(*) AS n FROM facts " +
        "GROUP BY k, s, flag) GROUP BY k, s) " +
        "SELECT a.n, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'",
      left = 1
    )
    fires(
      "WITH t AS (SELECT k, s, max(r) AS n FROM (SELECT k, s, sum(id) OVER (PARTITION BY k, s " +
        "ORDER BY id) AS r FROM facts) GROUP BY k, s) " +
        "SELECT a.n, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'",
      left = 1
    )
  }

  test("fires where the places need other columns and functions, with FILTER and DISTINCT") {
    fires(
      "WITH t AS (SELECT k, s, sum(k) AS b, count(DISTINCT day) AS days, " +
        "min(amount) FILTER (WHERE flag) AS least, avg(d) AS mean FROM facts GROUP BY k, s) " +
        "SELECT a.b, b.days, c.least, c.mean FROM t a JOIN t b ON a.k = b.k JOIN t c ON a.k = c.k " +
        "WHERE a.s = 'B' AND b.s = 'b' AND c.s = 'Ab'",
      left = 1
    )
  }

  test("does not fire on DISTINCTs of different columns, which Spark could not plan") {
    declines(
      "WITH t AS (SELECT k, s, count(DISTINCT day) AS x, count(DISTINCT id) AS y FROM facts GROUP BY k, s) " +
        "SELECT a.x, b.y FROM t a JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'",
      rule.Differ
    )
  }

  test("places that were equal stay equal, and with them what is above") {
    val df = fires(
      grouped("k, s") + ", u AS (SELECT d.flag, count(*) AS c, sum(t.m) AS m FROM t JOIN dims d " +
        "ON t.k = d.k WHERE t.s = 'B' GROUP BY d.flag) " +
        "SELECT x.c, x.m, y.c, y.m, v.n FROM u x JOIN u y ON x.flag = y.flag AND x.c = y.c " +
        "CROSS JOIN (SELECT max(n) AS n FROM t WHERE s = 'b') v",
      left = 2
    )
    assert(Plans.physical(df).count(_.nodeName == "ReusedExchange") >= 2)
  }

  test("aggregations in each other are shared one after the other") {
    isSame(
      "WITH i AS (SELECT k, s, count(*) AS n, max(id) AS m FROM facts GROUP BY k, s) " +
        "SELECT a.x, b.y, c.n FROM (SELECT k, n, max(m) AS x FROM i GROUP BY k, n) a JOIN " +
        "(SELECT k, n, min(m) AS y FROM i GROUP BY k, n) b ON a.k = b.k JOIN i c ON a.k = c.k " +
        "WHERE c.s = 'b'",
      SelingerConf.MERGE_MIN_GAIN.key -> "0"
    )
  }

  test("does not fire on joins with a hint, nor on files of text") {
    declines(
      "SELECT a.k, a.n, b.n FROM (SELECT /*+ MERGE(d) */ f.k, f.s, max(f.id) AS n FROM facts f JOIN dims d " +
        "ON f.k = d.k WHERE f.s = 'B' GROUP BY f.k, f.s) a JOIN (SELECT /*+ BROADCAST(d) */ f.k, f.s, " +
        "min(f.id) AS n FROM facts f JOIN dims d ON f.k = d.k WHERE f.s = 'b' GROUP BY f.k, f.s) b ON a.k = b.k",
      Reason.HintObeyed
    )
    withFolder { folder =>
      spark.table("facts").selectExpr("id", "k", "s").write.csv(s"$folder/text")
      spark.read.schema(
        "id INT, k INT, s STRING"
      ).csv(s"$folder/text").createOrReplaceTempView("text")
      declines(
        grouped("k, s", from = "(SELECT *, id AS big FROM text)") +
          "SELECT a.n, b.m FROM t a JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'",
        Reason.MayRaise
      )
    }
  }

  test("does not fire where a condition would change what is in a group") {
    declines(
      "SELECT a.k, a.n, b.n FROM (SELECT k, count(*) AS n FROM facts WHERE s = 'B' GROUP BY k) a " +
        "JOIN (SELECT k, count(*) AS n FROM facts WHERE s = 'b' GROUP BY k) b ON a.k = b.k",
      rule.Differ
    )
    declines(
      "SELECT a.k, a.n, b.n FROM (SELECT k, s, row_number() OVER (PARTITION BY k ORDER BY id) AS n " +
        "FROM facts WHERE s = 'B') c JOIN (SELECT k, s, max(r) AS n FROM (SELECT k, s, row_number() " +
        "OVER (PARTITION BY k ORDER BY id) AS r FROM facts WHERE s = 'B') GROUP BY k, s) a ON a.k = c.k " +
        "JOIN (SELECT k, s, max(r) AS n FROM (SELECT k, s, row_number() OVER (PARTITION BY k ORDER BY id) " +
        "AS r FROM facts WHERE s = 'b') GROUP BY k, s) b ON a.k = b.k",
      rule.Differ
    )
  }

  test("does not fire on values that are equal with other bits, unless only NULL is tested") {
    // Grouping makes one of -0.0 and 0.0; a condition may tell them apart.
    def of(one: String) =
      s"SELECT a.d, a.n, b.n FROM (SELECT d, count(*) AS n FROM facts WHERE $one GROUP BY d) a " +
        "FULL JOIN (SELECT d, count(*) AS n FROM facts WHERE d IS NOT NULL GROUP BY d) b ON a.d = b.d"
    declines(of("cast(d AS STRING) = '-0.0'"), rule.Differ)
    fires(
      "SELECT a.d, a.n, b.n FROM (SELECT d, count(*) AS n FROM facts WHERE d IS NOT NULL GROUP BY d) a " +
        "FULL JOIN (SELECT d, count(*) AS n FROM facts GROUP BY d) b ON a.d = b.d",
      left = 1
    )
  }

  test("raises errors where Spark raises them, and nowhere else") {
    // For rows of the other place the division would fail.
    def of(function: String) =
      s"SELECT a.k, a.n, b.n FROM (SELECT k, s, count(*) AS n FROM facts WHERE s = 'B' GROUP BY k, s) a " +
        s"JOIN (SELECT k, s, $function AS n FROM facts WHERE s = 'b' GROUP BY k, s) b ON a.k = b.k"
    declines(of("sum(1 div (id - 1))"), Reason.MayRaise, ansi)
    val first =
      of("count(*)").replaceFirst("count\\(\\*\\) AS n", "count(*) AS n, sum(1 div (id - 1)) AS q")
        .replaceFirst("a.n,", "a.n, a.q,")
    declines(first, Reason.MayRaise, ansi)
    // Each place evaluates the division for the rows that its other conditions leave.
    declines(
      "SELECT a.k, a.n, b.n FROM (SELECT k, s, count(*) AS n FROM facts WHERE s = 'B' AND 1 div (id - 1) >= 0 " +
        "AND id <> 1 GROUP BY k, s) a JOIN (SELECT k, s, count(*) AS n FROM facts WHERE s = 'b' AND id <> 1 " +
        "AND 1 div (id - 1) >= 0 GROUP BY k, s) b ON a.k = b.k",
      Reason.MayRaise,
      ansi
    )
    withConf(ansi)(fires(of("sum(k)"), left = 1))
    // Of rows that meet a condition of each place, but all of neither, no place computes anything.
    declines(
      "WITH t AS (SELECT f.s, d.flag, sum(1 div (f.id - d.id)) AS n FROM facts f JOIN dims d " +
        "ON f.k = d.k AND f.id <> d.id GROUP BY f.s, d.flag) " +
        "SELECT a.n, b.n FROM t a CROSS JOIN t b WHERE a.s = 'B' AND NOT a.flag AND b.s = 'b' AND b.flag",
      Reason.MayRaise,
      ansi
    )
    withConf(ansi) {
      val fails = spark.sql(
        "WITH t AS (SELECT k, s, sum(1 div (id - 1)) AS n FROM facts GROUP BY k, s) " +
          "SELECT a.n, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s IS NOT NULL"
      )
      assert(changed(fails).nonEmpty)
      // Spark tells of a stage that several places share once for each of them.
      val error = intercept[Exception](fails.collect())
      assert(error.getMessage.contains("DIVIDE_BY_ZERO"))
    }
  }

  private def table(name: String, columns: String, rows: String)(folder: Path): Unit = {
    spark.sql(s"SELECT * FROM VALUES $rows AS t($columns)").write.parquet(s"$folder/$name")
    spark.read.parquet(s"$folder/$name").createOrReplaceTempView(name)
  }

  test("functions of one text that became different ones keep their own results") {
    withFolder { folder =>
      table("parted", "k, year, x, y", "(1, 2019, 10, 100), (1, 2020, 20, 200)")(folder)
      fires(
        "WITH u AS (SELECT k, year, x AS v FROM parted WHERE year < 2020 UNION ALL " +
          "SELECT k, year, y AS v FROM parted WHERE year >= 2020), t AS (SELECT k, year, sum(v) AS n, " +
          "count(*) FILTER (WHERE v > 15) AS c FROM u GROUP BY k, year) " +
          "SELECT 'a' AS p, k, n, c FROM t WHERE year = 2019 UNION ALL SELECT 'b', k, n, c FROM t " +
          "WHERE year = 2020",
        left = 1
      )
    }
  }

  test("does not fire on readings of a folder before and after files were added") {
    withFolder { folder =>
      def added(s: String) = spark.range(3).selectExpr("id % 2 AS k", s"'$s' AS s")
        .write.mode("append").parquet(s"$folder/growing")
      added("B")
      spark.read.parquet(s"$folder/growing").createOrReplaceTempView("before")
      added("b")
      added("B")
      spark.read.parquet(s"$folder/growing").createOrReplaceTempView("after")
      spark.read.parquet(s"$folder/growing").createOrReplaceTempView("again")
      def both(one: String, other: String) =
        s"SELECT a.*, b.n AS o FROM (SELECT k, s, count(*) AS n FROM $one WHERE s = 'B' GROUP BY k, s) a " +
          s"JOIN (SELECT k, s, count(*) AS n FROM $other WHERE s = 'b' GROUP BY k, s) b ON a.k = b.k"
      declines(both("before", "after"), rule.Differ)
      fires(both("after", "again"), left = 1)
    }
  }

  test("additions keep their order, which decides what is rounded and what overflows") {
    withFolder { folder =>
      table("added", "s, p, q, r", "('B', 1D, 1D, 1D), ('b', 1e16D, 1D, -1e16D)")(folder)
      declines(
        "SELECT a.n AS an, b.n AS bn FROM (SELECT s, max(p + q + r) AS n FROM added WHERE s = 'B' GROUP BY s) a " +
          "CROSS JOIN (SELECT s, max(p + r + q) AS n FROM added WHERE s = 'b' GROUP BY s) b",
        rule.Differ
      )
      table("whole", "s, p, q, r", "('B', 1, 1, 1), ('b', 2147483647, 1, -1)")(folder)
      declines(
        "SELECT a.n AS an, b.n AS bn FROM (SELECT s, max(p + q + r) AS n FROM whole WHERE s = 'B' GROUP BY s) a " +
          "CROSS JOIN (SELECT s, max(p + (q + r)) AS n FROM whole WHERE s = 'b' GROUP BY s) b",
        rule.Differ,
        ansi
      )
    }
  }

  test("rows that belong to no place are not tested for, or computed with, what fails") {
    withFolder { folder =>
      table("some", "k, s, x", "(1, 'B', 1), (1, 'b', 1), (2, 'B', 0)")(folder)
      table("flags", "k, flag", "(1, false), (1, true), (2, true)")(folder)
      val both =
        "SELECT a.n, b.n FROM t a CROSS JOIN t b WHERE a.s = 'B' AND NOT a.flag AND b.s = 'b' AND b.flag"
      // The groups below HAVING are shared first, which raises nothing; then each row belongs to a place.
      val having = isSame(
        "WITH i AS (SELECT f.s, d.flag, f.k, min(f.x) AS m FROM some f JOIN flags d ON f.k = d.k " +
          "GROUP BY f.s, d.flag, f.k HAVING 10 div min(f.x) > 0), " +
          s"t AS (SELECT s, flag, count(*) AS n FROM i GROUP BY s, flag) $both",
        SelingerConf.MERGE_MIN_GAIN.key -> "0",
        ansi
      )
      assert(changed(having).nonEmpty)
      declines(
        "WITH t AS (SELECT f.s, d.flag, max(f.q) AS n FROM (SELECT k, s, 10 div x AS q FROM some) f " +
          s"JOIN flags d ON f.k = d.k GROUP BY f.s, d.flag) $both",
        Reason.MayRaise,
        ansi
      )
      table("late", "k, s, x", "(1, 'B', 7), (2, 'b', 1), (3, 'B', -2), (3, 'B', 2)")(folder)
      val _ = isSame(
        "WITH i AS (SELECT k, s, min(x) AS m, 10 div sum(x) AS q FROM late GROUP BY k, s) " +
          "SELECT a.n, b.n FROM (SELECT s, m, max(q) AS n FROM i WHERE s = 'B' AND m > 5 GROUP BY s, m) a " +
          "CROSS JOIN (SELECT s, m, max(q) AS n FROM i WHERE s = 'b' AND m < 3 GROUP BY s, m) b",
        SelingerConf.MERGE_MIN_GAIN.key -> "0",
        ansi
      )
    }
  }

  test("fires in subqueries, and on what a subquery and the query have in common") {
    fires(
      grouped(
        "k, s"
      ) + "SELECT k, n FROM t WHERE s = 'B' AND n > (SELECT avg(n) FROM t WHERE s = 'b')",
      left = 1
    )
    fires(
      grouped("k, s") + "SELECT * FROM dims WHERE k IN (SELECT k FROM t WHERE s = 'B') " +
        "AND k IN (SELECT k FROM t WHERE s = 'b')",
      left = 2
    )
  }

  test("by cost: places share nothing where rows are in the right partitions already") {
    val text =
      "WITH t AS (SELECT k, s, max(r) AS n FROM (SELECT k, s, sum(id) OVER (PARTITION BY k, s " +
        "ORDER BY id) AS r FROM facts) GROUP BY k, s) " +
        "SELECT a.n, b.n FROM t a JOIN t b ON a.k = b.k WHERE a.s = 'B' AND b.s = 'b'"
    val df = isSame(text)
    assert(changed(df).isEmpty)
    assert(decisions(df).map(_.reason).contains(MergeSubplansByCost.CheaperApart))
  }

  test("the same rows without adaptive execution") {
    withConf("spark.sql.adaptive.enabled" -> "false") {
      val _ = fires(twice("k, s", "a.s = 'B'", "b.s = 'b'"), left = 1)
    }
  }

  test("by cost: it must save what merge.minGain asks for") {
    val text = twice("k, s", "a.s = 'B'", "b.s = 'b'")
    assert(changed(isSame(text)).nonEmpty)
    val few = isSame(text, SelingerConf.MERGE_MIN_GAIN.key -> "0.9")
    assert(changed(few).isEmpty)
    val refused = decisions(few).headOption.getOrElse(fail("nothing was decided"))
    assert(refused.reason == MergeSubplansByCost.CheaperApart)
    val gain = refused.settingTo.getOrElse(fail("no setting is named"))
    assert(changed(isSame(text, SelingerConf.MERGE_MIN_GAIN.key -> gain)).nonEmpty)
  }

  test("says nothing where aggregations are equal already, or read other data") {
    assert(decisions(isSame(
      grouped(
        "k, s"
      ) + "SELECT a.k, a.n, b.s FROM t a JOIN t b ON a.k = b.k AND a.s = b.s AND a.n = b.n"
    )).isEmpty)
    assert(decisions(isSame(
      "SELECT a.k FROM (SELECT k, count(*) FROM facts GROUP BY k) a JOIN " +
        "(SELECT k, count(*) FROM dims GROUP BY k) b ON a.k = b.k"
    )).isEmpty)
  }

  test("does not fire on random values, however alike they are") {
    declines(
      "SELECT a.k, a.n, b.n FROM (SELECT k, s, count(*) AS n FROM facts WHERE rand(3) < 0.5 AND s = 'B' " +
        "GROUP BY k, s) a JOIN (SELECT k, s, count(*) AS n FROM facts WHERE rand(3) < 0.5 AND s = 'b' " +
        "GROUP BY k, s) b ON a.k = b.k",
      MergeSubplansByCost.RandomValues
    )
  }
}
