package io.selinger.strategy

import io.selinger.core.{Outcome, Reason}
import io.selinger.exec.sorting.PackedSortExec
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.scalatest.funsuite.AnyFunSuite

/** The rule `packSortKeys` on real plans. */
class PackSortKeysSuite extends AnyFunSuite with SharedSession {

  private val rule = PackSortKeys
  private val off = rule.switch -> "false"
  private val strict = "spark.sql.codegen.fallback" -> "false"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  /** How many sorts are by one number, and how many by one and further keys. */
  private def packed(df: DataFrame): (Int, Int) = {
    val (whole, inPart) = sorts(df).partition(_.rest.isEmpty)
    (whole.size, inPart.size)
  }

  private def sorts(df: DataFrame): Seq[PackedSortExec] =
    Plans.physical(df).collect { case sort: PackedSortExec => sort }

  private def reasons(df: DataFrame): Set[Reason] = Plans.decisions(df, rule.id).map(_.reason).toSet

  /** The query after it ran, whose answer is that of Spark. */
  private def sameAnswer(text: String, settings: (String, String)*): DataFrame = {
    val expected = withConf(settings :+ off: _*)(Answer.of(spark.sql(text)))
    withConf(settings :+ strict: _*) {
      val df = spark.sql(text)
      assert(Answer.difference(expected, Answer.of(df)).isEmpty)
      df
    }
  }

  private val windows =
    "SELECT id, sum(big) OVER (PARTITION BY k ORDER BY id DESC) AS running, " +
      "row_number() OVER (PARTITION BY k ORDER BY id DESC) AS place FROM facts"

  test("fires on windows over numbers whose footers say that they fit into one") {
    val df = sameAnswer(windows)
    assert(packed(df) == ((1, 0)))
    assert(reasons(df) == Set(rule.Packed))
    assert(Plans.decisions(df, rule.id).map(_.outcome).toSet == Set(Outcome.Changed))
  }

  test("nulls first and last, ascending and descending, days, times and decimals") {
    for {
      direction <- Seq("ASC", "DESC")
      nulls <- Seq("NULLS FIRST", "NULLS LAST")
      key <- Seq(
        "cast(if(id % 5 = 0, null, id % 90) AS smallint)",
        "date_add(DATE'1960-01-01', cast(if(id % 7 = 0, null, id) AS int))",
        "if(id % 3 = 0, null, flag)",
        "cast(if(id % 4 = 0, null, id - 300) AS decimal(7, 2))"
      )
    } {
      val df = sameAnswer(
        s"SELECT id, rank() OVER (PARTITION BY k ORDER BY $key $direction $nulls) FROM facts"
      )
      assert(packed(df) == ((1, 0)), s"$key $direction $nulls")
    }
  }

  test("times leave room for a part of them only, and decide where that is equal") {
    val time = "timestamp_micros(cast(id * 7 AS bigint))"
    val df = sameAnswer(s"SELECT id, rank() OVER (PARTITION BY k ORDER BY $time DESC) FROM facts")
    assert(packed(df) == ((0, 1)))
    assert(reasons(df) == Set(rule.PackedInPart))
  }

  test("further keys that cannot be packed decide where packed ones are equal") {
    val df =
      sameAnswer("SELECT id, rank() OVER (PARTITION BY k, flag ORDER BY s, id) FROM facts")
    assert(packed(df) == ((0, 1)))
    assert(sorts(df).map(_.rest.size) == Seq(2))
  }

  test("does not fire on texts, doubles, nor on large numbers of which nothing is known") {
    for (
      keys <- Seq("s ORDER BY id", "k ORDER BY d", "cast(big AS bigint) * 4000000000 ORDER BY id")
    ) {
      val df = sameAnswer(
        s"SELECT id, rank() OVER (PARTITION BY $keys) FROM facts",
        "spark.sql.ansi.enabled" -> "false"
      )
      assert(packed(df) == ((0, 0)), keys)
      assert(reasons(df) == Set(rule.NotPacked), keys)
    }
  }

  for (joinType <- Seq("INNER", "LEFT", "FULL", "LEFT ANTI"))
    test(s"fires on both sides of a sort-merge join by two keys: $joinType") {
      val df = sameAnswer(
        s"SELECT /*+ MERGE(b) */ * FROM facts a $joinType JOIN (SELECT k AS k2, flag AS f2, id AS i2 FROM facts " +
          "WHERE id % 3 = 0) b ON a.k = b.k2 AND a.flag = b.f2"
      )
      assert(Plans.physical(df).exists(_.isInstanceOf[SortMergeJoinExec]))
      assert(packed(df) == ((2, 0)))
    }

  test("fires on ORDER BY, whose order writers and caches still see") {
    val text = "SELECT k, id FROM facts ORDER BY k DESC, id"
    val df = spark.sql(text)
    val rows = df.collect().toSeq
    assert(packed(df) == ((1, 0)))
    assert(withConf(off)(spark.sql(text).collect().toSeq) == rows)
    withConf("spark.sql.adaptive.enabled" -> "false") {
      val sorted = spark.table("facts").sortWithinPartitions("k", "id")
      assert(packed(sorted) == ((1, 0)))
      val order = sorted.queryExecution.executedPlan.outputOrdering.map(_.child.sql)
      assert(order.map(_.split('.').last) == Seq("k", "id"))
    }
  }

  test("empty inputs, and windows that spill") {
    val empty = sameAnswer(windows + " WHERE id < 0")
    assert(reasons(empty).isEmpty || reasons(empty) == Set(rule.Packed))
    val df = sameAnswer(windows, "spark.sql.windowExec.buffer.in.memory.threshold" -> "2")
    assert(packed(df) == ((1, 0)))
  }

  for (radix <- Seq(true, false); whole <- Seq(true, false))
    test(s"radix sort $radix, code of whole stages $whole") {
      val df = sameAnswer(
        windows,
        "spark.sql.sort.enableRadixSort" -> radix.toString,
        "spark.sql.codegen.wholeStage" -> whole.toString
      )
      assert(packed(df) == ((1, 0)))
    }

  test("does not fire on keys that may raise an error, which Spark computes for equal rows only") {
    val text =
      "SELECT * FROM (SELECT /*+ COALESCE(1) */ * FROM VALUES (1, 'x'), (2, '3') AS t(a, s)) " +
        "SORT BY a, CAST(s AS INT)"
    val df = sameAnswer(text, "spark.sql.ansi.enabled" -> "true")
    assert(packed(df) == ((0, 0)))
  }

  test("does not fire with its switch off, nor in the mode advise") {
    withConf(off) {
      val df = spark.sql(windows)
      assert(packed(df) == ((0, 0)) && reasons(df).isEmpty)
    }
    withConf("spark.selinger.mode" -> "advise") {
      val df = spark.sql(windows)
      df.collect(): Unit
      assert(packed(df) == ((0, 0)))
      assert(Plans.decisions(df, rule.id).map(_.outcome).toSet == Set(Outcome.Advised))
    }
  }
}
