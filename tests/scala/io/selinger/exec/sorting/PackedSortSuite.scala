package io.selinger.exec.sorting

import io.selinger.testing.{Plans, SharedSession}
import org.apache.spark.SparkEnv
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.scalatest.funsuite.AnyFunSuite

/** The operator by itself, with bounds that are right, wrong for some rows, and wrong for all. */
class PackedSortSuite extends AnyFunSuite with SharedSession {

  private val input = "SELECT if(id % 11 = 0, null, id * 7919 % 500) AS a, " +
    "if(id % 13 = 0, null, id * 104729 % 3001 - 1500) AS b, id AS c FROM range(0, 3000, 1, 2)"

  // Of the last run of the operator.
  private var spilled = 0L

  /** Rows as Spark sorts them, and as the operator does. */
  private def both(order: String, most: BigInt*): (Seq[Row], Seq[Row]) = {
    val df = spark.sql(s"SELECT * FROM ($input) SORT BY $order")
    val sort = Plans.physical(df).collectFirst { case sort: SortExec => sort }
      .getOrElse(fail("no sort"))
    val bounds = sort.sortOrder.map(_.child).zip(most).toMap[Expression, BigInt]
    val packed = PackedOrder.of(sort.sortOrder, bounds.get).getOrElse(fail("not packed"))
    val made = PackedSortExec(sort.sortOrder, packed.key, packed.rest, global = false, sort.child)
    def rows(plan: SparkPlan) =
      plan.executeCollect().toSeq.map(row => Row(row.toSeq(plan.schema): _*))
    val found = rows(made)
    val isBeyond = most.head < 500 || most(1) < 1500
    assert((made.metrics("rowsBeyond").value > 0) == isBeyond)
    spilled = made.metrics("spillSize").value
    (rows(sort), found)
  }

  for {
    order <- Seq("a, b", "a DESC, b", "a, b DESC NULLS FIRST", "a NULLS LAST, b DESC, c")
    most <- Seq(Seq(500, 1500, 3000), Seq(250, 1500, 3000), Seq(500, 20, 3000), Seq(1, 1, 1))
    radix <- Seq(true, false)
  } test(s"by $order, values up to ${most.mkString(", ")} expected, radix sort $radix") {
    withConf("spark.selinger.mode" -> "off", "spark.sql.sort.enableRadixSort" -> radix.toString) {
      val (expected, found) = both(order, most.map(BigInt(_)): _*)
      assert(expected.size == 3000 && found.map(_.toSeq) == expected.map(_.toSeq))
    }
  }

  test("spills, with rows beyond the bounds and without") {
    val most = "spark.shuffle.spill.numElementsForceSpillThreshold"
    // A setting of Spark's core, which a session cannot change.
    val conf = SparkEnv.get.conf
    conf.set(most, "100")
    try
      withConf("spark.selinger.mode" -> "off") {
        for (largest <- Seq(500, 250)) {
          val (expected, found) = both("a, b DESC, c", BigInt(largest), BigInt(1500), BigInt(3000))
          assert(expected.size == 3000 && found.map(_.toSeq) == expected.map(_.toSeq))
          assert(spilled > 0)
        }
      }
    finally conf.remove(most): Unit
  }

  test("with keys that do not fit, and rows beyond the bounds of the packed ones") {
    withConf("spark.selinger.mode" -> "off") {
      val (expected, found) =
        both("a, b, c", BigInt(400), BigInt(1) << 60, BigInt(1) << 60)
      assert(expected.size == 3000 && found.map(_.toSeq) == expected.map(_.toSeq))
    }
  }
}
