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
    assert(testedRows(Some(10.0)) == 100000L)
    assert(testedRows(Some(140000.0)) == 280000L)
    // Too many to be looked at.
    assert(testedRows(Some(1e7)) == 100000L)
    assert(testedRows(None) == 300000L)
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
