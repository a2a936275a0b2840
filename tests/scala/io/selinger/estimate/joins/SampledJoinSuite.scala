package io.selinger.estimate.joins

import io.selinger.core.{Origin, PlanningPass}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.{Combinations, SampledEstimate}
import io.selinger.stats.{ColumnStatistics, SampledGroup}
import io.selinger.stats.samples.{EqualPairs, SampledKey, SampledRelation}
import io.selinger.testing.{Estimates, Samples}
import io.selinger.testing.Estimates.Relation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.IntegerType
import org.scalatest.funsuite.AnyFunSuite

/** Joins of relations of which there are samples, without files. */
class SampledJoinSuite extends AnyFunSuite {

  private val random = new scala.util.Random(7)

  /** A relation whose column `a` is drawn by `draw`, a sample of 5,000 of its rows included. */
  private def relation(rows: Double, values: Double, source: String)(draw: => Any): Relation = {
    val known = Estimates.counted(rows, a = Estimates.evenly(1, values))
    val sample = SampledRelation(
      applied = Nil,
      groups = Seq.fill(16)(SampledGroup(312, 312)),
      covered = 1.0,
      complete = false,
      alike = 0.0,
      columns = Map.empty,
      keys = Map(
        known.a.exprId -> SampledKey(
          Samples.keys(source, Seq(IntegerType))(Seq.fill(5000)(draw)),
          0
        )
      )
    )
    known.copy(estimate =
      known.estimate.map(e =>
        SampledEstimate.refine(e.asRelation(known.plan.output), sample, known.plan.output)
      )
    )
  }

  private def join(left: Relation, right: Relation): Join =
    Join(left.plan, right.plan, Inner, Some(EqualTo(left.a, right.a)), JoinHint.NONE)

  private def rows(plan: LogicalPlan, relations: Relation*): Double = {
    PlanningPass.start()
    Estimates.estimate(plan, relations: _*).getOrElse(fail("unknown")).rows.value
  }

  // Half of all rows have one of ten values.
  private def skewed: Any =
    if (random.nextBoolean()) 1 + random.nextInt(10) else 1 + random.nextInt(10000)
  private def even: Any = 1 + random.nextInt(10000)

  test("values that are frequent on both sides meet often") {
    val (left, right) = (relation(1e6, 10000, "l")(skewed), relation(1e5, 10000, "r")(skewed))
    // Ten values with a twentieth of the rows each, and half against half of 10,000 values.
    val truth = 1e6 * 1e5 * (10 * 0.05 * 0.05 + 0.75 / 10000)
    val found = rows(join(left, right), left, right)
    assert(found > truth * 0.8 && found < truth * 1.2, (found, truth))
  }

  test("where samples agree with the formulas nothing changes") {
    val (left, right) = (relation(1e6, 10000, "l")(even), relation(1e5, 10000, "r")(even))
    assert(math.abs(rows(join(left, right), left, right) / 1e7 - 1) < 0.05)
  }

  test("keys that never meet are fewer than formulas say, but not none") {
    val left = relation(1e6, 10000, "l")((1 + random.nextInt(5000)) * 2)
    val right = relation(1e5, 10000, "r")((1 + random.nextInt(5000)) * 2 - 1)
    val found = rows(join(left, right), left, right)
    assert(found > 1 && found < 1e6)
  }

  test("samples too small to meet say nothing") {
    val left = relation(1e9, 1e9, "l")(random.nextInt(1000000000))
    val right = relation(1e8, 1e9, "r")(random.nextInt(1000000000))
    assert(rows(join(left, right), left, right) == 1e8)
  }

  test("a relation joined with itself is not judged by rows that meet themselves") {
    val seed = random.nextLong()
    def unique() = {
      val places = new scala.util.Random(seed)
      relation(1e6, 1e6, "same")(1 + places.nextInt(1000000))
    }
    val (left, right) = (unique(), unique())
    assert(rows(join(left, right), left, right) < 1.2e6)
  }

  test("after a grouping, a distinct or other values the sample no longer counts") {
    val (left, right) = (relation(1e6, 10000, "l")(skewed), relation(1e5, 10000, "r")(skewed))
    val grouped = Aggregate(Seq(left.a), Seq(left.a), left.plan)
    val plan = Join(grouped, right.plan, Inner, Some(EqualTo(left.a, right.a)), JoinHint.NONE)
    assert(math.abs(rows(plan, left, right) / 1e5 - 1) < 0.1)
    val few = Filter(In(left.a, (1 to 100).map(Literal(_))), left.plan)
    val filtered = Join(few, right.plan, Inner, Some(EqualTo(left.a, right.a)), JoinHint.NONE)
    assert(math.abs(rows(filtered, left, right) / 1e5 - 1) < 0.1)
  }

  test("the second join of a key sees how frequent the first has left it") {
    val keys = relation(10000, 10000, "k")(even)
    val (left, right) = (relation(1e6, 10000, "l")(skewed), relation(1e5, 10000, "r")(skewed))
    val first = Join(left.plan, keys.plan, Inner, Some(EqualTo(left.a, keys.a)), JoinHint.NONE)
    val second = Join(first, right.plan, Inner, Some(EqualTo(keys.a, right.a)), JoinHint.NONE)
    val direct = rows(join(left, right), left, right)
    assert(math.abs(rows(second, left, right, keys) / direct - 1) < 0.2)
  }

  test("outer joins keep their rows") {
    val left = relation(1e6, 10000, "l")((1 + random.nextInt(5000)) * 2)
    val right = relation(1e5, 10000, "r")((1 + random.nextInt(5000)) * 2 - 1)
    val plan = join(left, right).copy(joinType = LeftOuter)
    assert(rows(plan, left, right) >= 1e6)
  }

  test("a factor moves no further than to within one standard deviation, and is never negative") {
    def factor(pairs: Double, variance: Double, expected: Double) =
      SampledJoin.factor(EqualPairs(pairs, 1e6, variance), expected)
    assert(factor(100, 200, 100) == 1.0)
    assert(factor(0, 0, 0.5) == 1.0)
    assert(factor(0, 0, 100) == 0.01)
    assert(factor(1000, 2000, 100) < 10 && factor(1000, 2000, 100) > 9)
    assert(factor(10, 1e6, 1) == 1.0)
    assert(factor(5, 5, 0) == 1.0)
  }

  /** A sample without predicates or summaries: the keys of all columns, in their order. */
  test("what determines a key goes with all of its rows") {
    val plan = LocalRelation(
      AttributeReference("order", IntegerType)(),
      AttributeReference("customer", IntegerType)(),
      AttributeReference("product", IntegerType)()
    )
    // Ten lines an order, of which the sample has some two.
    val orders = Seq.fill(5000)(1 + random.nextInt(2500))
    val keys = Samples.keys("o", Seq.fill(3)(IntegerType))(
      orders,
      orders.map(_ % 100),
      orders.map(_ => random.nextInt(100))
    )
    val columns = plan.output.map(_.exprId).zip(Seq(2500.0, 100.0, 100.0)).map { case (id, n) =>
      id -> ColumnStatistics(Some(0.0), distinct = Some(n))
    }
    val lines = PlanEstimate.exactly(25000, Origin.Exact, columns.toMap)
    val known =
      SampledEstimate.refine(
        lines.asRelation(plan.output),
        Samples.keysOnly(plan, keys),
        plan.output
      )
    val few = Estimates.counted(10, a = Estimates.evenly(1, 10))
    def ordersLeft(key: Attribute): Double = {
      PlanningPass.start()
      val joined = Join(plan, few.plan, Inner, Some(EqualTo(key, few.a)), JoinHint.NONE)
      val side = few.estimate.map(_.asRelation(few.plan.output)).getOrElse(fail("unknown"))
      JoinEstimator
        .estimate(EquiJoin.of(joined), known, side)
        .distinct(plan.output.head)
        .getOrElse(fail("unknown"))
    }
    // A tenth of the customers have a tenth of the orders; a tenth of the products are in most.
    assert(math.abs(ordersLeft(plan.output(1)) / 250 - 1) < 0.1)
    assert(ordersLeft(plan.output(2)) > 1500)
  }

  private def places(): LocalRelation = LocalRelation(
    AttributeReference("city", IntegerType)(),
    AttributeReference("country", IntegerType)()
  )

  // Twenty cities a country.
  private val cities = Seq.fill(5000)(1 + random.nextInt(400))
  private val placeKeys =
    Samples.keys("c", Seq(IntegerType, IntegerType))(cities, cities.map(_ % 20))

  private def unsampled(plan: LocalRelation): PlanEstimate = {
    val columns = plan.output.map(_.exprId).zip(Seq(400.0, 20.0)).map { case (id, values) =>
      id -> ColumnStatistics(distinct = Some(values))
    }
    PlanEstimate.exactly(1e6, Origin.Exact, columns.toMap).asRelation(plan.output)
  }

  private def withSample(plan: LocalRelation): PlanEstimate =
    SampledEstimate.refine(unsampled(plan), Samples.keysOnly(plan, placeKeys), plan.output)

  test("combinations of columns that depend on each other are those of the sample") {
    val plan = places()
    assert(Combinations.of(plan.output, withSample(plan)).count == 400)
    assert(Combinations.of(plan.output, unsampled(plan)).count > 1000)
  }

  /** Rows with two columns of ten thousand values each, and a sample of a thousand of them. */
  private def purchases(source: String, covered: Long): (LocalRelation, PlanEstimate) = {
    val plan = places()
    val columns = plan.output.map(_.exprId -> Estimates.evenly(1, 10000)).toMap
    def values = Seq.fill(1000)(1 + random.nextInt(10000)) -> Nil
    val keys = Samples.keysBeside(source, Seq.fill(2)(IntegerType), covered = Some(covered))(
      values,
      values
    )
    val rows = PlanEstimate.exactly(140000, Origin.Exact, columns).asRelation(plan.output)
    plan -> SampledEstimate.refine(rows, Samples.keysOnly(plan, keys), plan.output)
  }

  test(
    "of combinations that hardly meet, samples from all over tell sooner than from some places"
  ) {
    def joined(covered: Long): Double = {
      PlanningPass.start()
      val ((one, left), (other, right)) = (purchases("l", covered), purchases("r", covered))
      val keys = one.output.zip(other.output).map { case (l, r) => JoinKeys.Pair(l, r, false) }
      JoinEstimator.pairs(keys, left, right)
    }
    // Were one side's combinations those of the other, seven pairs would have been sampled.
    val truth = 140000.0 * 140000.0 / 1e8
    assert(math.abs(joined(140000) / truth - 1) < 0.1)
    assert(joined(10000) > 10 * truth)
  }

  test("the city of one alias says nothing of the country of another that shares its sample") {
    val (home, work) = (places(), places())
    val (one, other) = (withSample(home), withSample(work))
    val both = PlanEstimate.exactly(1e6, Origin.Exact, one.columns ++ other.columns).copy(
      domains = one.domains ++ other.domains,
      sourceRows = one.sourceRows ++ other.sourceRows
    )
    assert(Combinations.of(Seq(home.output.head, work.output.last), both).count > 7000)
    assert(SampledJoin.ofOneSample(Seq(home.output.head, work.output.last), both).isEmpty)
    assert(SampledJoin.determining(Seq(work.output.last), both) == Set(work.output.head.exprId))
  }
}
