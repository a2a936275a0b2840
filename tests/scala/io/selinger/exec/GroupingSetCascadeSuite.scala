package io.selinger.exec

import io.selinger.conf.SelingerConf
import io.selinger.testing.{Plans, SharedSession}
import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.selinger.HoldMemoryExec
import org.scalatest.funsuite.AnyFunSuite

/** The operator `GroupingSetCascade` when memory runs out. */
class GroupingSetCascadeSuite extends AnyFunSuite with SharedSession {

  // In one task, with many groups in the sets (a, b), (a, c) and (a), and few in the others.
  private val text = "SELECT a, b, c, sum(v), count(*), min(v) FROM (SELECT id % 100003 AS a, " +
    "id % 7 AS b, id % 3 AS c, cast(id AS int) AS v FROM range(0, 200000, 1, 1)) GROUP BY CUBE (a, b, c)"

  private def plan: SparkPlan =
    withConf(
      SelingerConf.CASCADE_MIN_GAIN.key -> "0",
      "spark.sql.adaptive.enabled" -> "false"
    )(Plans.execution(spark.sql(text)).executedPlan)

  private def cascadeOf(plan: SparkPlan): GroupingSetCascadeExec =
    plan.collectFirst { case cascade: GroupingSetCascadeExec => cascade }.get

  private def answer(plan: SparkPlan): Seq[String] = {
    val toRow = CatalystTypeConverters.createToScalaConverter(plan.schema)
    plan.executeCollect().map(row => String.valueOf(toRow(row))).toSeq.sorted
  }

  private lazy val expected: Seq[String] = answer(plan)

  /** Rows that went on unmerged where the task could get this much memory, and all rows. */
  private def runWith(bytes: Long): (Long, Long) = {
    val starved = plan.transformUp { case cascade: GroupingSetCascadeExec =>
      cascade.copy(child = HoldMemoryExec(cascade.child, bytes))
    }
    assert(answer(starved) == expected)
    val metrics = cascadeOf(starved).metrics
    (metrics("numUnmergedRows").value, metrics("numOutputRows").value)
  }

  test("with memory for all groups, every row is merged") {
    val full = plan
    assert(answer(full) == expected)
    val metrics = cascadeOf(full).metrics
    assert(metrics("numUnmergedRows").value == 0)
    assert(metrics("numOutputRows").value == expected.size)
  }

  test("without memory, every row goes on unmerged, and the answer is the same") {
    val (unmerged, rows) = runWith(bytes = 0)
    assert(unmerged == 7L * 200000)
    assert(rows == 8L * 200000)
  }

  test("with memory for some groups, tables are emptied early, and the answer is the same") {
    val (unmerged, rows) = runWith(bytes = 20L << 20)
    assert(unmerged > 0)
    assert(rows > expected.size && rows < 8L * 200000)
  }
}
