package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Outcome, Reason}
import io.selinger.exec.aggregates.HeapHashAggregateExec
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.SortExec
import org.apache.spark.sql.execution.aggregate.{
  BaseAggregateExec,
  ObjectHashAggregateExec,
  SortAggregateExec
}
import org.scalatest.funsuite.AnyFunSuite

/** The rule `selectAggregateOperator` on real plans. */
class SelectAggregateOperatorSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.grouped

  private val rule = SelectAggregateOperator
  private val off = SelingerConf.MODE.key -> "off"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def aggregates(df: DataFrame): Seq[BaseAggregateExec] =
    Plans.physical(df).collect { case aggregate: BaseAggregateExec => aggregate }

  private def hashed(df: DataFrame): Seq[BaseAggregateExec] =
    aggregates(df).collect { case aggregate: HeapHashAggregateExec => aggregate }

  private def sorting(df: DataFrame): Seq[BaseAggregateExec] = aggregates(df).filter {
    case _: SortAggregateExec | _: ObjectHashAggregateExec => true
    case _ => false
  }

  /** Asserts that a query groups in hash tables, with the answer of stock Spark, in each mode. */
  private def assertFires(query: => DataFrame, settings: (String, String)*): Unit = {
    // Stock Spark answers the same in each way.
    val expected = stockAnswer(settings: _*)(query)
    for (way <- waysToRun(query.schema)) withClue(Grid.clue) {
      val modes = settings ++ way
      withConf(modes: _*) {
        val df = query
        assert(hashed(df).nonEmpty, Plans.execution(df).executedPlan)
        val found = Answer.of(df)
        Answer.difference(expected, found).foreach(fail(_))
        val made = Plans.decisions(df, rule.id)
        assert(made.nonEmpty && made.forall(_.reason == rule.HashedInstead), made)
        assert(made.forall(_.outcome == Outcome.Changed))
      }
    }
  }

  private def assertFires(text: String): Unit = assertFires(spark.sql(text))

  test("fires on min, max, first and any_value of texts, with nulls in keys and values") {
    assertFires("SELECT k, max(s), min(s), count(s), sum(k) FROM facts GROUP BY k")
    assertFires("SELECT s, max(s), min(concat(s, k)) FROM facts GROUP BY s")
    assertFires("SELECT k, max(s) FROM nulls GROUP BY k")
    assertFires("SELECT id, first(s), last(s), any_value(s), first(s, true) FROM facts GROUP BY id")
  }

  test("fires on arrays and structs, as values and as keys") {
    assertFires("SELECT k, max(point), min(tags) FROM nested GROUP BY k")
    assertFires("SELECT point, tags, max(string(k)) FROM nested GROUP BY point, tags")
  }

  test("fires on dropDuplicates, which keeps whole rows") {
    assertFires(spark.table("facts").dropDuplicates("id"))
    // Which row of a group stays is not defined: the columns that depend on the key do not tell.
    assertFires(spark.sql("SELECT k, string(k) AS t, big IS NULL AS b FROM facts WHERE big IS NULL")
      .dropDuplicates("k"))
  }

  test("fires on functions that keep objects") {
    assertFires(
      "SELECT k, sort_array(collect_list(id)), sort_array(collect_set(s)) FROM facts GROUP BY k"
    )
    assertFires("SELECT k, percentile(id, 0.3), median(big), count(*) FROM facts GROUP BY k")
    assertFires(
      "SELECT k, max_by(s, id), min_by(day, id), mode(flag) FROM facts WHERE flag GROUP BY k"
    )
    assertFires("SELECT k, approx_count_distinct(s), max(s) FROM facts GROUP BY k")
    assertFires("SELECT k, percentile_approx(id, 0.5, 10000) FROM facts GROUP BY k")
  }

  test("fires beside DISTINCT, FILTER and grouping sets") {
    assertFires("SELECT k, count(DISTINCT s), max(s), sum(id) FROM facts GROUP BY k")
    assertFires("SELECT k, count(DISTINCT s), count(DISTINCT day), max(s) FROM facts GROUP BY k")
    assertFires(
      "SELECT k, max(s) FILTER (WHERE flag), count(*) FILTER (WHERE d > 1) FROM facts GROUP BY k"
    )
    assertFires("SELECT k, first(s) FILTER (WHERE id % 2 = 0) IS NULL FROM facts GROUP BY k, s")
    assertFires("SELECT k, flag, max(s) FROM facts GROUP BY ROLLUP (k, flag)")
  }

  test("fires on NaN, -0.0 and decimals") {
    assertFires("SELECT d, max(s), count(*) FROM facts GROUP BY d")
    assertFires("SELECT amount, max(s) FROM facts GROUP BY amount")
    assertFires(
      "SELECT k, max(s), sum(cast(k AS decimal(12,2)) * 3), avg(amount) FROM facts GROUP BY k"
    )
  }

  test("fires on results computed from the functions, and on HAVING") {
    assertFires("SELECT k + 1, upper(max(s)) FROM facts GROUP BY k HAVING length(max(s)) > 0")
  }

  test("fires on no rows, and returns none") {
    assertFires("SELECT k, max(s), collect_list(id) FROM nothing GROUP BY k")
  }

  test("fires below joins, windows and sorts, which get the order that they ask for") {
    assertFires(
      "SELECT f.k, f.m, f.n, row_number() OVER (PARTITION BY f.k ORDER BY f.m) FROM " +
        "(SELECT k, max(s) AS m, count(*) AS n FROM facts GROUP BY k) f " +
        "JOIN (SELECT /*+ MERGE */ k, max(s) AS m FROM dims GROUP BY k) g ON f.k = g.k ORDER BY f.k"
    )
  }

  test("raises the errors of stock Spark") {
    val texts = Seq(
      "SELECT k, max(s), sum(big * 1000000000000) FROM facts GROUP BY k",
      "SELECT k, max(string(1 / (id - 5))) FROM facts GROUP BY k",
      "SELECT k, first(s) FILTER (WHERE 1 / (id - 2999) > 0) FROM facts GROUP BY k"
    )
    texts.foreach { text =>
      withConf("spark.sql.ansi.enabled" -> "true") {
        val expected = stockAnswer()(spark.sql(text))
        assert(!expected.isInstanceOf[Answer.Rows], text)
        val df = spark.sql(text)
        assert(hashed(df).nonEmpty)
        assert(Answer.difference(expected, Answer.of(df)).isEmpty, text)
      }
    }
  }

  test("an input that is sorted by the keys is grouped as it comes, and stays sorted") {
    val text =
      "SELECT /*+ MERGE(b) */ a.k, max(a.s), count(*) FROM facts a JOIN dims b ON a.k = b.k " +
        "GROUP BY a.k"
    val settings = Seq(
      "spark.sql.adaptive.enabled" -> "false",
      "spark.sql.shuffle.partitions" -> "1"
    )
    val expected = stockAnswer(settings: _*)(spark.sql(text))
    withConf(settings: _*) {
      val df = spark.sql(text)
      val sorts = Plans.physical(df).count(_.isInstanceOf[SortExec])
      assert(hashed(df).nonEmpty && hashed(df).forall(_.outputOrdering.nonEmpty))
      assert(sorts == 2, Plans.execution(df).executedPlan)
      assert(Answer.difference(expected, Answer.of(df)).isEmpty)
    }
  }

  private def assertLeaves(
      text: String,
      reason: Option[Reason],
      settings: (String, String)*
  ): Unit =
    withConf(settings: _*) {
      val df = spark.sql(text)
      assert(hashed(df).isEmpty)
      assert(Plans.decisions(df, rule.id).map(_.reason) == reason.toSeq)
      ()
    }

  test("leaves what Spark hashes or need not sort") {
    assertLeaves("SELECT k, count(*), sum(id) FROM facts GROUP BY k", None)
    assertLeaves("SELECT max(s), collect_list(id) FROM facts", None)
  }

  test("leaves keys with a collation") {
    assertLeaves(
      "SELECT c, max(s) FROM (SELECT s COLLATE UTF8_LCASE AS c, s FROM facts) GROUP BY c",
      Some(rule.KeysHaveCollation)
    )
  }

  test("leaves DISTINCT columns with a collation, by which the first phases group") {
    assertLeaves(
      "SELECT k, count(DISTINCT c), max(s) FROM " +
        "(SELECT k, s COLLATE UTF8_LCASE AS c, s FROM facts) GROUP BY k",
      Some(rule.KeysHaveCollation)
    )
    val text =
      "SELECT k, size(collect_set(c)) FROM (SELECT DISTINCT k, s COLLATE UTF8_LCASE AS c " +
        "FROM facts) GROUP BY k"
    val expected = stockAnswer()(spark.sql(text))
    assert(Answer.difference(expected, Answer.of(spark.sql(text))).isEmpty)
  }

  test(
    "leaves objects of many groups by one key of a fixed width, which Spark sorts by its digits"
  ) {
    val few = SelingerConf.MAX_HASHED_OBJECTS.key -> "100"
    val fewLists = SelingerConf.MAX_HASHED_LISTS.key -> "100"
    val (median, list) = ("percentile(k, 0.5)", "collect_list(s)")
    def text(keys: String, function: String) = s"SELECT $keys, $function FROM facts GROUP BY $keys"
    assertLeaves(text("id", median), Some(rule.SortAsFast), few)
    assertLeaves(text("id", s"$median, $list"), Some(rule.SortAsFast), few)
    assertLeaves(text("id", list), Some(rule.SortAsFast), fewLists)
    withConf(few, fewLists) {
      // Of few groups, of two keys, of a text, and without objects.
      for {
        (keys, function) <-
          Seq("flag", "id, k", "string(id)").map(_ -> median) :+ ("id" -> "max(s)")
      } assert(hashed(spark.sql(text(keys, function))).size == 2, keys)
    }
    withConf(few) {
      assert(hashed(spark.sql(text("id", list))).size == 2)
      // How many groups there are is only assumed.
      assert(hashed(spark.sql(text("hash(id)", median))).size == 2)
    }
  }

  test("leaves all where it may not act") {
    val text = "SELECT k, max(s) FROM facts GROUP BY k"
    assertLeaves(text, None, off)
    assertLeaves(text, None, rule.switch -> "false")
    withConf(SelingerConf.MODE.key -> "advise") {
      val df = spark.sql(text)
      assert(hashed(df).isEmpty && sorting(df).size == 2)
      assert(Plans.decisions(df, rule.id).map(_.outcome).distinct == Seq(Outcome.Advised))
    }
  }
}
