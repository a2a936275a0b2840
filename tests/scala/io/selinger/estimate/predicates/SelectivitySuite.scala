package io.selinger.estimate.predicates

import io.selinger.core.Origin
import io.selinger.estimate.PlanEstimate
import io.selinger.stats.ColumnStatistics
import io.selinger.testing.Estimates
import io.selinger.testing.Estimates.evenly
import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation
import org.apache.spark.sql.types._
import org.scalactic.{Equality, TolerantNumerics}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class SelectivitySuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private implicit val roughly: Equality[Double] = TolerantNumerics.tolerantDoubleEquality(0.02)

  // 1,000 rows: a = 0 … 99 evenly; b = 0 … 10, half of them null; of s nothing is known.
  private val relation = Estimates.counted(
    1000,
    a = evenly(0, 99),
    b = ColumnStatistics(nullFraction = Some(0.5), min = Some(0), max = Some(10))
  )
  import relation.{a, b, s}

  private val input = relation.estimate.get

  private def share(predicate: Expression): Double = Selectivity.estimate(predicate, input).expected
  private def filtered(predicates: Expression*): PlanEstimate =
    Selectivity.filter(input, predicates)

  test("equality keeps one of the distinct values") {
    assert(share(a === 5) === 0.01)
    assert(share(Literal(5) === a) === 0.01)
    assert(filtered(a === 5).rows.value === 10.0)
    assert(filtered(a === 5).rows.origin == Origin.Derived)
  }

  test("a range keeps its part of the axis") {
    assert(filtered(a < 25).rows.value / 1000 === 0.25)
    assert(filtered(a >= 75).rows.value / 1000 === 0.25)
    assert(filtered(Literal(25) > a).rows.value / 1000 === 0.25)
  }

  test("two bounds of one column are one interval, not two guesses") {
    assert(filtered(a >= 10, a <= 29).rows.value / 1000 === 0.2)
    assert(filtered(And(a >= 10, a <= 29)).rows.value / 1000 === 0.2)
    assert(filtered(a >= 10, a <= 29, a > 5, a < 90).rows.value / 1000 === 0.2)
  }

  test("a comparison keeps no nulls, and IS NOT NULL beside it counts once") {
    assert(filtered(b < 5.0).rows.value / 1000 === 0.25)
    assert(filtered(b < 5.0, b.isNotNull).rows.value / 1000 === 0.25)
    assert(filtered(b < 5.0).columns(b.exprId).nullFraction.contains(0.0))
  }

  test("nulls are counted") {
    assert(share(b.isNull) === 0.5)
    assert(share(b.isNotNull) === 0.5)
    assert(share(a.isNotNull) === 1.0)
  }

  test("nothing is never expected of a range outside the known one, for it may be a sample's") {
    val outside = filtered(a > 500)
    assert(outside.rows.value >= 1.0)
    assert(outside.upperBound > 100)
    assert(filtered(a > 50, a < 20).rows.value >= 1.0)
  }

  test("a share of zero that only a sample shows has an upper bound above zero") {
    val part = Estimates.sampled(1e6, evenly(0, 99))
    val nulls = Selectivity.filter(part.estimate.get, Seq(part.a.isNull))
    assert(nulls.upperBound > 1000)
    val onlyNulls = Estimates.sampled(1e6, ColumnStatistics(nullFraction = Some(1.0)))
    val rest = Selectivity.filter(onlyNulls.estimate.get, Seq(onlyNulls.a.isNotNull))
    assert(rest.upperBound > 1000)
  }

  test("lists keep as many values as they have") {
    assert(share(a.in(1, 2, 3)) === 0.03)
    assert(share(InSet(a, Set(1, 2, 3))) === 0.03)
    assert(share(s.in("x", "y")) <= 0.5)
  }

  test("without statistics a guess, whose upper bound is everything") {
    Seq(s === "x", s < "x", s.like("x%"), s.startsWith("x"), Rand(Literal(1L)) < 0.5).foreach {
      guess =>
        val selectivity = Selectivity.estimate(guess, input)
        assert(selectivity.origin == Origin.Default)
        assert(selectivity.expected > 0 && selectivity.expected < 1)
        assert(selectivity.upperBound == 1.0)
        assert(filtered(guess).upperBound == input.upperBound)
    }
  }

  test("a literal predicate is certain") {
    assert(share(Literal(true)) == 1.0)
    assert(share(Literal(false)) == 0.0)
    assert(share(Literal(null, BooleanType)) == 0.0)
  }

  test("filters that Spark adds at run time keep everything") {
    val pruning = DynamicPruningExpression(Literal(true))
    assert(share(pruning) == 1.0)
    assert(filtered(pruning).upperBound == input.upperBound)
  }

  test("NOT takes the rest and trusts nothing") {
    assert(share(!(a === 5)) === 0.99)
    assert(Selectivity.estimate(!(a < 25), input).upperBound == 1.0)
  }

  test("OR adds what both keep, and no more than everything") {
    val either = share((a < 25) || (a > 90))
    assert(either > share(a < 25) && either <= share(a < 25) + share(a > 90))
    val both = share((a < 50) || (b >= 5.0))
    assert(both > share(a < 50) && both < share(a < 50) + share(b >= 5.0))
    assert(share((a >= 0) || (b >= 0.0)) <= 1.0)
  }

  test("AND is damped: between the product and the most selective part") {
    val both = filtered(a < 25, s === "x").rows.value
    assert(both > 1000 * 0.25 * 0.1 && both <= 1000 * 0.1)
  }

  test("the upper bound of a conjunction is that of its most selective part alone") {
    val sure = filtered(a === 5).upperBound
    assert(filtered(a === 5, s === "x").upperBound == sure)
    assert(filtered(s === "x", s === "y").upperBound == input.upperBound)
  }

  test("what cannot be exceeded stays, for a predicate may keep everything") {
    assert(filtered(a === 5, s === "x", b.isNull).bound.contains(1000.0))
  }

  test("the column is narrowed to the interval") {
    val narrowed = filtered(a >= 10, a < 30).columns(a.exprId)
    assert(narrowed.min.contains(10.0) && narrowed.max.contains(30.0))
    assert(narrowed.distinct.exists(d => d >= 10 && d <= 30))
    assert(filtered(a === 7).columns(a.exprId).distinct.contains(1.0))
  }

  test("an interval gives a range to a column that had none") {
    val wide = Estimates.counted(1000)
    val narrowed =
      Selectivity.filter(wide.estimate.get, Seq(wide.a >= 10, wide.a < 30)).columns(wide.a.exprId)
    assert(narrowed.min.contains(10.0) && narrowed.max.contains(30.0))
  }

  test("other columns lose distinct values as rows go") {
    val c = Estimates.counted(1000, a = evenly(0, 99), b = ColumnStatistics(distinct = Some(1000)))
    val left = Selectivity.filter(c.estimate.get, Seq(c.a === 5)).columns(c.b.exprId)
    assert(left.distinct.exists(d => d >= 5 && d <= 20))
  }

  test("a cast between numbers stays on the axis") {
    assert(filtered(a.cast(LongType) < 25L).rows.value / 1000 === 0.25)
    assert(filtered(a.cast(DecimalType(
      12,
      2
    )) < Literal(Decimal("25.00"))).rows.value / 1000 === 0.25)
    // As a text it has no place there, but no more values either.
    assert(share(a.cast(StringType) === "5") === 0.01)
  }

  test("an axis from minus to plus infinity breaks nothing") {
    val endless = Estimates.counted(
      1000,
      b = ColumnStatistics(
        min = Some(Double.NegativeInfinity),
        max = Some(Double.PositiveInfinity)
      )
    )
    Seq(
      endless.b < 5.0,
      endless.b > 5.0,
      endless.b === 5.0,
      endless.b <= Double.PositiveInfinity
    ).foreach {
      predicate =>
        val left = Selectivity.filter(endless.estimate.get, Seq(predicate))
        assert(Estimates.problem(left).isEmpty && left.rows.value > 0)
    }
  }

  test("whole numbers have both ends of a range") {
    assert(share(a <= 0) === 0.01)
    assert(filtered(a >= 1, a <= 3).rows.value / 1000 === 0.03)
    assert(filtered(a > 1, a < 3).rows.value / 1000 === 0.01)
  }

  test("an expression has the range of its column, moved") {
    assert(share((a + 10) < 20) === 0.1)
    assert(share((a * 2) >= 100) === 0.5)
    assert(share((Literal(100) - a) > 90) === 0.1)
  }

  test("literals outside of the range find nothing") {
    assert(share(a.in(1, 200, 300)) === 0.01)
    assert(share(a.in(200, 300)) > 0)
  }

  test("columns are compared by their ranges") {
    val c = Estimates.counted(
      1000,
      a = evenly(0, 99),
      b = ColumnStatistics(Some(0.0), Some(0.0), Some(198.0))
    )
    def of(predicate: Expression) = Selectivity.estimate(predicate, c.estimate.get)
    assert(of(c.a.cast(DoubleType) < c.b).expected === 0.75)
    assert(of(c.b > c.a.cast(DoubleType)).expected === 0.75)
    assert(of(c.b < c.a.cast(DoubleType)).expected === 0.25)
    assert(of(c.b < c.a.cast(DoubleType)).upperBound == 1.0)
    assert(of(c.s < c.s).origin == Origin.Default)
  }

  test("one uniform value is below another as often as their ranges say") {
    assert(ColumnComparison.probability(0, 1, 2, 3) == 1.0)
    assert(ColumnComparison.probability(2, 3, 0, 1) == 0.0)
    assert(ColumnComparison.probability(0, 10, 0, 10) === 0.5)
    assert(ColumnComparison.probability(0, 10, 4, 4) === 0.4)
    assert(ColumnComparison.probability(4, 4, 0, 10) === 0.6)
  }

  test("a column that equals one value has nothing more to lose") {
    assert(filtered(a === 5, a.in(4, 5), !(a === 6), a.isNotNull).rows.value === 10.0)
    assert(filtered(s === "x", s.in("x", "y")).rows.value === filtered(s === "x").rows.value)
  }

  test("two ends that a subquery finds enclose less than one") {
    val end = ScalarSubquery(OneRowRelation())
    val between = Selectivity.all(Seq(a >= end, a <= end), input).expected
    assert(between < Selectivity.all(Seq(a >= end), input).expected / 3 && between > 0)
  }

  test("longer texts are rarer") {
    assert(share(s.startsWith("abc")) == share(s.startsWith("a")))
    assert(share(s.contains("abcdef")) < share(s.contains("abc")))
  }

  test("NOT keeps no nulls either") {
    assert(share(!(b < 5.0)) === 0.25)
    assert(share(!b.isNull) === 0.5)
  }

  test("IS NOT NULL leaves no nulls, and a list no more values than it has") {
    assert(filtered(b.isNotNull).columns(b.exprId).nullFraction.contains(0.0))
    assert(filtered(s === "x").columns(s.exprId).distinct.contains(1.0))
    assert(filtered(s.in("x", "y")).columns(s.exprId).distinct.contains(2.0))
  }

  test("survivors of random thinning: never more than there were, never less than one") {
    assert(Selectivity.survivors(100, 1000, 1000) === 100.0)
    assert(Selectivity.survivors(1000, 1000, 10) === 10.0)
    assert(Selectivity.survivors(10, 1000, 500) === 10.0)
    assert(Selectivity.survivors(10, 1000, 0) == 1.0)
  }

  // ---- random predicates --------------------------------------------------------------------

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 500)

  private val filters = for {
    relation <- Estimates.relation
    predicate <- Estimates.predicate(relation.plan.output)
  } yield (relation, predicate)

  test("a share is between nothing and everything, and its upper bound is not below it") {
    forAll(filters) { case (relation, predicate) =>
      val share = Selectivity.estimate(predicate, relation.estimate.get)
      assert(share.expected >= 0 && share.expected <= 1)
      assert(share.upperBound >= 0 && share.upperBound <= 1)
      assert(share.expected <= share.upperBound)
    }
  }

  test("a filter leaves consistent numbers, and never more rows than there were, or one") {
    forAll(filters) { case (relation, predicate) =>
      val before = relation.estimate.get
      val after = Selectivity.filter(before, Selectivity.conjuncts(predicate))
      Estimates.problem(after).foreach(fail(_))
      assert(after.rows.value <= math.max(1.0, before.rows.value))
      assert(after.upperBound <= math.max(1.0, before.upperBound))
      assert(after.bound == before.bound)
    }
  }

  test("a second filter never makes rows come back") {
    forAll(filters) { case (relation, predicate) =>
      val once = Selectivity.filter(relation.estimate.get, Seq(predicate))
      val twice = Selectivity.filter(once, Seq(predicate))
      assert(twice.rows.value <= math.max(1.0, once.rows.value))
    }
  }
}
