package io.selinger.estimate.predicates

import io.selinger.estimate.PlanEstimate
import io.selinger.stats.{ColumnStatistics, FrequentValue, Quantiles}
import io.selinger.testing.Estimates
import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.Filter
import org.scalatest.funsuite.AnyFunSuite

/** Ranges by how the values are spread, rather than by how wide they are. */
class QuantileSelectivitySuite extends AnyFunSuite {

  // Nine values in ten are 0 to 9, evenly; the others lie up to 1000.
  private val column = ColumnStatistics(
    nullFraction = Some(0.2),
    min = Some(0),
    max = Some(1000),
    distinct = Some(100),
    frequent = Seq(FrequentValue(3, 0.4), FrequentValue(500, 0.05)),
    quantiles = Quantiles.fromPoints(Seq((0.0, 0.0, 0.0), (10.0, 0.9, 0.9), (1000.0, 1.0, 1.0)))
  )
  private val relation = Estimates.counted(1000, a = column)
  private val a = relation.a

  private def filtered(condition: Expression): PlanEstimate =
    Estimates.estimate(Filter(condition, relation.plan), relation).get

  private def assertRows(condition: Expression, expected: Double): Unit = {
    val found = filtered(condition).rows.value
    assert(math.abs(found - expected) <= 0.1 * expected + 5, s"$condition: $found")
    ()
  }

  test("comparisons and BETWEEN take their share of the values, and no nulls") {
    assertRows(a > 10, 80)
    assertRows(a <= 10, 720)
    assertRows(a >= 505, 40)
    assertRows(a > 0 && a < 10, 720)
    assertRows(a < 0, 1)
    assertRows(a > 2000, 1)
  }

  test("what is left is spread like the part that is left") {
    val upper = Filter(a > 10, relation.plan)
    val twice = Estimates.estimate(Filter(a > 505, upper), relation).get
    assert(math.abs(twice.rows.value - 40) < 8, twice.rows.toString)
    val left = filtered(a > 10).columns(a.exprId)
    assert(left.quantiles.exists(_.shareUpTo(10) < 0.01))
    // A tenth of the rows, but almost all of the values.
    assert(left.distinct.exists(_ > 90))
    assert(left.frequent.map(_.value) == Seq(500) && left.frequent.head.share > 0.4)
  }

  test("an end at infinity, or quantiles of one value, make nothing NaN") {
    val one = column.copy(
      max = Some(Double.PositiveInfinity),
      quantiles = Quantiles.fromPoints(Seq((5.0, 0.0, 0.5), (Double.PositiveInfinity, 0.5, 1.0)))
    )
    val odd = Estimates.counted(1000, a = one)
    val found = Estimates.estimate(Filter(odd.a > 6, odd.plan), odd).get
    assert(math.abs(found.rows.value - 400) < 10, found.rows.toString)
  }

  test("two columns are compared by how the values of each are spread") {
    val others = Estimates.counted(1000, a = Estimates.evenly(0, 1000), b = column)
    def share(condition: Expression) = {
      val kept = Estimates.estimate(Filter(condition, others.plan), others)
      kept.fold(0.0)(_.rows.value / 1000)
    }
    // Nearly all values of one side are at most ten, where the other has one in a hundred.
    assert(math.abs(share(others.b < others.a) / 0.8 - 0.945) < 0.03)
    assert(math.abs(share(others.b >= others.a) / 0.8 - 0.055) < 0.03)
    assert(math.abs(share(others.a < others.a) - 0.5) < 0.02)
  }

  test("equal values count for <= and >=") {
    val zeros = column.copy(
      nullFraction = Some(0.0),
      quantiles = Quantiles.fromPoints(Seq((0.0, 0.0, 0.9), (1000.0, 1.0, 1.0)))
    )
    val both = Estimates.counted(1000, a = zeros, b = zeros)
    def rows(condition: Expression) =
      Estimates.estimate(Filter(condition, both.plan), both).fold(0.0)(_.rows.value)
    // Nine tenths of either are zero.
    assert(rows(both.a <= both.b) > 850 && rows(both.a >= both.b) > 850)
    assert(rows(both.a < both.b) < 150 && rows(both.a > both.b) < 150)
  }
}
