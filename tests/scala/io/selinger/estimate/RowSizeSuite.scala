package io.selinger.estimate

import io.selinger.stats.ColumnStatistics
import io.selinger.testing.{Plans, SharedSession}
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId, UnsafeRow}
import org.scalatest.funsuite.AnyFunSuite

/** Widths of rows against those of Spark's own. */
class RowSizeSuite extends AnyFunSuite with SharedSession {

  /** Columns of a query, and the average size of its rows as Spark lays them out. */
  private def laidOut(columns: String*): (Seq[Attribute], Double) = {
    val execution = Plans.execution(spark.range(0, 200, 1, 1).selectExpr(columns: _*))
    val sizes = execution.toRdd.collect { case row: UnsafeRow => row.getSizeInBytes }.collect()
    (execution.executedPlan.output, sizes.sum.toDouble / sizes.length)
  }

  private def widths(output: Seq[Attribute], bytes: Double): Map[ExprId, ColumnStatistics] =
    output.map(_.exprId -> ColumnStatistics(
      nullFraction = Some(0),
      averageBytes = Some(bytes)
    )).toMap

  test("columns of fixed width") {
    val (output, size) =
      laidOut("id", "cast(id AS int)", "id / 2.0D", "id % 2 = 0", "cast(id AS decimal(9,2))")
    assert(RowSize.bytes(output, Map.empty) == size)
    assert(RowSize.isKnown(output, Map.empty))
  }

  test("more columns than bits in a word of nulls") {
    val (output, size) = laidOut((1 to 70).map(i => s"id + $i"): _*)
    assert(RowSize.bytes(output, Map.empty) == size)
  }

  test("text of known width") {
    val (output, size) = laidOut("repeat('x', 13) AS s", "repeat('y', 8) AS t")
    val known = widths(output.take(1), 13) ++ widths(output.drop(1), 8)
    assert(RowSize.bytes(output, known) == size)
    assert(RowSize.isKnown(output, known))
  }

  test("text of unknown width is not known") {
    val (output, _) = laidOut("id", "string(id) AS s")
    assert(!RowSize.isKnown(output, Map.empty))
    assert(!RowSize.isKnown(output, widths(output.take(1), 8)))
  }

  test("nulls take no room beyond their bit and word") {
    val (output, size) = laidOut("if(id % 2 = 0, repeat('x', 40), null) AS s")
    val half = output.map(_.exprId -> ColumnStatistics(Some(0.5), averageBytes = Some(40))).toMap
    assert(RowSize.bytes(output, half) == size)
  }
}
