package io.selinger.estimate.plans

import io.selinger.core.Origin
import io.selinger.estimate.PlanEstimate
import io.selinger.stats.{ColumnStatistics, ColumnSummary, SampledGroup}
import io.selinger.stats.samples.SampledRelation
import io.selinger.testing.Estimates
import io.selinger.testing.Estimates.Relation
import org.apache.spark.sql.catalyst.expressions._
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** A leaf's estimate with a sample, without files. */
class SampledEstimateSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def summary(rows: Int, distinct: Int, once: Int): ColumnSummary =
    ColumnSummary(rows, 0, distinct, once, Nil, None)

  private def sampleOf(
      relation: Relation,
      matched: Seq[Int],
      complete: Boolean = false,
      column: ColumnSummary = summary(500, 40, 0)
  ): SampledRelation = SampledRelation(
    Seq(LessThan(relation.a, Literal(10))),
    matched.map(SampledGroup(_, 625)),
    covered = 0.1,
    complete = complete,
    alike = 0.0,
    Map(relation.a.exprId -> column)
  )

  private def estimate(relation: Relation, sample: SampledRelation): PlanEstimate =
    SampledEstimate.refine(
      relation.estimate.getOrElse(fail("unknown")),
      sample,
      relation.plan.output
    )

  private val million = Estimates.counted(1e6, a = Estimates.evenly(1, 1000))

  test("rows follow the sample, their upper bound less so, `bound` not at all") {
    val found = estimate(million, sampleOf(million, Seq.fill(16)(62)))
    assert(math.abs(found.rows.value / 99200 - 1) < 0.02)
    assert(found.rows.origin == Origin.Sampled)
    assert(found.upperBound > 1.3 * found.rows.value && found.upperBound < 5e5)
    assert(found.bound.contains(1e6))
  }

  test("a sample of everything is a count") {
    val found = estimate(million, sampleOf(million, Seq.fill(16)(25), complete = true))
    assert(found.rows.value == 40000 && found.upperBound == 40000 && found.bound.contains(1e6))
  }

  test("distinct values: no more than known before, fewer where the sample has fewer") {
    def distinct(column: ColumnSummary) =
      estimate(million, sampleOf(million, Seq.fill(16)(62), column = column))
        .columns(million.a.exprId)
        .distinct
        .getOrElse(fail("unknown"))
    assert(distinct(summary(500, 40, 0)) == 40)
    assert(distinct(summary(500, 500, 500)) == 1000)
  }

  test("columns outside the sample lose values as rows go") {
    val relation = Estimates.counted(1e6, b = ColumnStatistics(distinct = Some(1e6)))
    val found = estimate(relation, sampleOf(relation, Seq.fill(16)(62)))
    assert(found.columns(relation.b.exprId).distinct.exists(d => d > 9e4 && d < 1.1e5))
  }

  test("without predicates columns are refined, and rows stay") {
    val sample = sampleOf(million, Seq.fill(16)(625)).copy(applied = Nil)
    val found = estimate(million, sample)
    assert(found.rows == million.estimate.map(_.rows).getOrElse(fail("unknown")))
    assert(found.columns(million.a.exprId).distinct.contains(40.0))
  }

  test("a join sees what the relation held, not what a predicate has left of it") {
    val relation = million.copy(estimate = million.estimate.map(_.asRelation(million.plan.output)))
    val key = relation.b.exprId
    val sample =
      sampleOf(relation, Seq.fill(16)(62)).copy(columns = Map(key -> summary(992, 992, 992)))
    val found = estimate(relation, sample)
    assert(found.columns(key).distinct.exists(_ < 1e5))
    assert(found.domains(key).values.exists(_ > 9e5) && found.domains(key).rows == 1e6)
    assert(found.sourceRows.values.toSeq == Seq(found.rows.value))
    val unfiltered = estimate(relation, sample.copy(applied = Nil))
    assert(unfiltered.domains(key).values.exists(_ > 9e5))
  }

  test(
    "a range that the sample shows narrows the column and its domain, not beyond what is known"
  ) {
    val relation = million.copy(estimate = million.estimate.map(_.asRelation(million.plan.output)))
    val key = relation.a.exprId
    val column = summary(500, 40, 0).copy(low = Some(101), high = Some(140))
    val sample = sampleOf(relation, Seq.fill(16)(62), column = column)
      .copy(applied = Seq(IsNotNull(relation.b)), covered = 1.0)
    val found = estimate(relation, sample)
    val narrowed = found.columns(key)
    assert(narrowed.rangeSeen)
    assert(narrowed.min.exists(m => m > 100 && m <= 101))
    assert(narrowed.max.exists(m => m >= 140 && m < 141))
    assert(found.domains(key).values.exists(v => math.abs(v - 40) < 2))
    // In a part of the row groups rows may be alike: the ends may lie further out.
    val part = estimate(relation, sample.copy(covered = 0.1)).columns(key)
    assert(part.min.exists(_ < 99) && part.max.exists(_ > 142))
    val beyond = column.copy(low = Some(-5e6), high = Some(5e6))
    val whole = estimate(relation, sample.copy(columns = Map(key -> beyond))).columns(key)
    assert(whole.min.contains(1.0) && whole.max.contains(1000.0))
    val few = column.copy(rows = 20)
    assert(!estimate(relation, sample.copy(columns = Map(key -> few))).columns(key).rangeSeen)
  }

  test("a range that ends at infinity stays, and makes nothing NaN") {
    val endless = ColumnStatistics(
      min = Some(Double.NegativeInfinity),
      max = Some(Double.PositiveInfinity),
      distinct = Some(1000)
    )
    val relation = Estimates.counted(1e6, a = endless)
    val whole = relation.copy(estimate = relation.estimate.map(_.asRelation(relation.plan.output)))
    val column = summary(500, 40, 0).copy(low = Some(1), high = Some(40))
    val found = estimate(whole, sampleOf(whole, Seq.fill(16)(62), column = column))
    assert(!found.columns(whole.a.exprId).rangeSeen)
    assert(found.domains(whole.a.exprId).values.exists(v => v >= 1 && v <= 1000))
  }

  test("whatever the sample says, the estimate is sound") {
    val groups = Gen.nonEmptyListOf(Gen.choose(0, 625))
    val columns = for {
      rows <- Gen.choose(0, 1000)
      distinct <- Gen.choose(0, rows)
      once <- Gen.choose(0, distinct)
    } yield summary(rows, distinct, once)
    forAll(Estimates.relation, groups, columns, Gen.oneOf(true, false), Gen.choose(0.0, 1.0)) {
      (relation, matched, column, complete, alike) =>
        val sample = sampleOf(relation, matched, complete, column).copy(alike = alike)
        Seq(sample, sample.copy(applied = Nil)).foreach { s =>
          val found = estimate(relation, s)
          assert(Estimates.problem(found).isEmpty, Estimates.problem(found))
          assert(found.bound == relation.estimate.flatMap(_.bound))
        }
    }
  }
}
