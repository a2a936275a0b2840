package io.selinger.exec.aggregates

import io.selinger.conf.SelingerConf
import io.selinger.testing.{Grid, Plans, SharedSession}
import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.selinger.HoldMemoryExec
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable

/** The operator `HeapHashAggregate` with and without memory, and when grouping does not help. */
class HeapHashAggregateSuite extends AnyFunSuite with SharedSession {

  private val functions = "max(t), first(u), sort_array(collect_list(v)), count(*), " +
    "percentile(v, 0.5), approx_count_distinct(v), max(w)"

  // Their partial results of one row are small.
  private val small =
    "max(t), first(u), sort_array(collect_list(v)), count(*) FILTER (WHERE v % 3 = 0)"

  private def plan(keys: Long, settings: (String, String)*): SparkPlan =
    planOf(60000L, keys, functions, settings: _*)

  // Rows that are looked at before a partial aggregation may stop, and as many again.
  private val forDoubt = 150000L

  // In one task before the shuffle, and two behind it.
  private def planOf(
      rows: Long,
      keys: Long,
      functions: String,
      settings: (String, String)*
  ): SparkPlan =
    withConf(
      settings ++ Seq(
        "spark.sql.adaptive.enabled" -> "false",
        "spark.sql.shuffle.partitions" -> "2"
      ): _*
    ) {
      val text =
        s"SELECT a, b, $functions FROM (SELECT id % $keys AS a, string(id % $keys) AS b, " +
          s"string(id) AS t, string(id % $keys) AS u, id AS v, struct(id AS x) AS w " +
          s"FROM range(0, $rows, 1, 1)) GROUP BY a, b"
      Plans.execution(spark.sql(text)).executedPlan
    }

  private val answers = mutable.Map.empty[Long, Seq[String]]

  /** Stock Spark's answer, asked for once. */
  private def stock(keys: Long): Seq[String] =
    answers.getOrElseUpdate(keys, answer(plan(keys, SelingerConf.MODE.key -> "off")))

  private def answer(plan: SparkPlan): Seq[String] = {
    val toRow = CatalystTypeConverters.createToScalaConverter(plan.schema)
    plan.executeCollect().map(row => String.valueOf(toRow(row))).toSeq.sorted
  }

  private def aggregates(plan: SparkPlan): Seq[HeapHashAggregateExec] =
    plan.collect { case aggregate: HeapHashAggregateExec => aggregate }

  private def metric(plan: SparkPlan, name: String): Long =
    aggregates(plan).map(_.metrics(name).value).sum

  /** Both phases, with so much memory for each of their tasks. */
  private def starved(plan: SparkPlan, bytes: Long): SparkPlan = plan.transformUp {
    case aggregate: HeapHashAggregateExec =>
      aggregate.copy(child = HoldMemoryExec(aggregate.child, bytes))
  }

  for (keys <- Seq(7L, 12000L, 60000L))
    test(s"$keys groups: with and without memory, the same as stock Spark") {
      val expected = stock(keys)
      val full = plan(keys)
      assert(aggregates(full).size == 2)
      assert(answer(full) == expected)
      assert(metric(full, "numSortingTasks") == 0 && metric(full, "spillSize") == 0)
      assert(metric(full, "peakMemory") > 0)

      for (mebibytes <- if (keys == 7) Seq(3L) else Grid.part(Seq(3L, 9L), 0.5, keys)) {
        val short = starved(plan(keys), mebibytes << 20)
        assert(answer(short) == expected, s"$mebibytes MiB")
        if (keys > 7) assert(metric(short, "numSortingTasks") > 0, s"$mebibytes MiB")
      }
    }

  /** Looks whether grouping helps after as few rows as it ever does. */
  private def soon(plan: SparkPlan): SparkPlan = plan.transformUp {
    case aggregate: HeapHashAggregateExec =>
      aggregate.copy(testedRows = HeapHashAggregateExec.leastTestedRows)
  }

  test("a partial aggregation stops where groups are hardly fewer than rows, and looks again") {
    val unique = soon(planOf(forDoubt, forDoubt, small))
    val found = answer(unique)
    assert(found == answer(planOf(forDoubt, forDoubt, small, SelingerConf.MODE.key -> "off")))
    assert(metric(unique, "numPassedRows") == 50000L)
    val never = soon(planOf(forDoubt, forDoubt, small, SelingerConf.PARTIAL_STOP_RATIO.key -> "1"))
    assert(answer(never) == found)
    assert(metric(never, "numPassedRows") == 0)
    val helpful = soon(planOf(forDoubt, 30000L, small))
    val _ = answer(helpful)
    assert(metric(helpful, "numPassedRows") == 0)
  }

  test("keys that come in turn are all different at first, and are grouped all the same") {
    val rows = 330000L
    val inTurn = planOf(rows, 110000L, "max(t), count(*)")
    val expected = answer(inTurn)
    assert(metric(inTurn, "numPassedRows") == 0)
    val tooSoon = soon(planOf(rows, 110000L, "max(t), count(*)"))
    assert(answer(tooSoon) == expected)
    assert(metric(tooSoon, "numPassedRows") > 0)
  }

  test("looks after twice as many rows as there should be groups, within limits") {
    import HeapHashAggregateExec.testedRows
    val rows = Some(1e7)
    assert(testedRows(Some(10.0), rows, 0.8) == 100000L)
    assert(testedRows(Some(140000.0), rows, 0.8) == 280000L)
    assert(testedRows(Some(140000.0), None, 0.8) == 280000L)
    assert(testedRows(Some(5e6), rows, 0.8) == 1000000L)
    // Nearly each row should be a group.
    assert(testedRows(Some(9e6), rows, 0.8) == 100000L)
    assert(testedRows(None, rows, 0.8) == 300000L)
  }

  test("equal aggregations are equal whenever they look at their groups") {
    val one = aggregates(plan(7L)).head
    val other = one.copy(testedRows = one.testedRows + 1)
    assert(one.sameResult(other) && !one.sameResult(one.copy(stopRatio = 0.5)))
  }

  test("keys of one width, more than a cache has, and rows too large to be read ahead") {
    // Each key five times, and each hundredth text larger than a batch takes.
    val text =
      "SELECT k, max(t), min(t), count(*), sum(v) FROM (SELECT id % 12000 AS k, id AS v, " +
        "IF(id % 100 = 7, repeat(string(id), 3000), string(id)) AS t FROM range(0, 60000, 1, 1)) " +
        "GROUP BY k"
    def rows(settings: (String, String)*) =
      withConf(("spark.sql.shuffle.partitions" -> "2") +: settings: _*) {
        val df = spark.sql(text)
        val answer = df.collect().map(_.toString).sorted.toSeq
        (answer, Plans.physical(df).collect { case one: HeapHashAggregateExec => one }.size)
      }
    val (expected, none) = rows(SelingerConf.MODE.key -> "off")
    val (found, hashed) = rows()
    assert(none == 0 && hashed == 2)
    assert(found == expected)
  }

  test("rows are not passed on as sketches, which are larger than rows") {
    val unique = soon(planOf(forDoubt, forDoubt, functions))
    val _ = answer(unique)
    assert(metric(unique, "numPassedRows") == 0)
  }

  test("a table gives up what is left when an operator above needs memory") {
    for (keys <- Seq(7L, 12000L)) {
      val asked = plan(keys).transformUp { case aggregate: HeapHashAggregateExec =>
        HoldMemoryExec(aggregate, 8L << 20)
      }
      assert(answer(asked) == stock(keys))
      assert(metric(asked, "spillSize") > 0)
    }
  }

  test("with hardly any memory, rows are passed on and sorted") {
    val none = starved(plan(12000L), 2L << 20)
    assert(answer(none) == stock(12000L))
    assert(metric(none, "numPassedRows") > 0)
    assert(metric(none, "numSortingTasks") > 0)
  }
}
