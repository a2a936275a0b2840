package io.selinger.estimate.predicates

import io.selinger.stats.{ColumnStatistics, FrequentValue}
import io.selinger.testing.Estimates
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Filter, Join, JoinHint}
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

/** Values that are known to be frequent, without samples. */
class FrequentValuesSuite extends AnyFunSuite {

  private def skewed(values: Double, frequent: (Any, Double)*): ColumnStatistics =
    Estimates.evenly(1, values).copy(frequent = frequent.map { case (v, s) => FrequentValue(v, s) })

  private def rows(relation: Estimates.Relation)(predicate: Expression): Double =
    Estimates
      .estimate(Filter(predicate, relation.plan), relation)
      .getOrElse(fail("unknown"))
      .rows
      .value

  private val million = Estimates.counted(1e6, a = skewed(100, 7 -> 0.5, 8 -> 0.1))

  private def near(found: Double, expected: Double): Unit = {
    val _ = assert(math.abs(found / expected - 1) < 0.01)
  }

  test("an equality keeps the share of its value, and others share what is left") {
    near(rows(million)(EqualTo(million.a, Literal(7))), 500000)
    near(rows(million)(EqualTo(Literal(8), million.a)), 100000)
    near(rows(million)(EqualTo(million.a, Literal(9))), 400000 / 98.0)
    near(rows(million)(EqualNullSafe(million.a, Literal(7))), 500000)
    near(rows(million)(In(million.a, Seq(7, 9, 9).map(Literal(_)))), 500000 + 400000 / 98.0)
  }

  test("of nulls no value has a part") {
    val half = Estimates.counted(1e6, a = skewed(100, 7 -> 0.5).copy(nullFraction = Some(0.5)))
    near(rows(half)(EqualTo(half.a, Literal(7))), 250000)
    assert(rows(half)(EqualTo(half.a, Literal(null, half.a.dataType))) == 1.0)
  }

  test("texts are compared as they are") {
    val known = skewed(100, UTF8String.fromString("x") -> 0.3).copy(min = None, max = None)
    val values = FrequentValues.fromColumn(known, Some(100)).getOrElse(fail("none"))
    assert(values.shareOf(UTF8String.fromString("x")) == 0.3)
    near(values.shareOf(UTF8String.fromString("y")), 0.7 / 99)
  }

  test("no other value is more frequent than those that are, however few there are") {
    val values = FrequentValues.fromColumn(skewed(2, 7 -> 0.2), Some(2)).getOrElse(fail("none"))
    assert(values.each == 0.2)
    assert(FrequentValues.fromColumn(skewed(2, 7 -> 0.2), None).map(_.each).contains(0.2))
  }

  test("values outside of a range are gone, those inside are more frequent than before") {
    val range = GreaterThanOrEqual(million.a, Literal(8))
    val left = Estimates
      .estimate(Filter(range, million.plan), million)
      .getOrElse(fail("unknown"))
    val frequent = left.columns(million.a.exprId).frequent
    assert(frequent.map(_.value) == Seq(8) && frequent.head.share >= 0.1)
    val point = Estimates.estimate(Filter(EqualTo(million.a, Literal(7)), million.plan), million)
    assert(point.exists(_.columns(million.a.exprId).frequent.isEmpty))
  }

  test("values that are frequent on both sides meet often, unless they are different ones") {
    def joined(theirs: Any): Double = {
      val (left, right) = (
        Estimates.counted(1e6, a = skewed(1000, 7 -> 0.5)),
        Estimates.counted(1e5, a = skewed(1000, theirs -> 0.2))
      )
      val plan = Join(left.plan, right.plan, Inner, Some(EqualTo(left.a, right.a)), JoinHint.NONE)
      Estimates.estimate(plan, left, right).getOrElse(fail("unknown")).rows.value
    }
    near(joined(7), 1e11 * (0.5 * 0.2 + 0.5 * 0.8 / 999))
    // A whole number of another width is the same value.
    near(joined(7L), joined(7))
    near(joined(8), 1e11 * (0.5 * 0.8 / 999 + 0.2 * 0.5 / 999 + 0.4995 * 0.7992 / 998))
  }
}
