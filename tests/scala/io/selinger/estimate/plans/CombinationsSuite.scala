package io.selinger.estimate.plans

import io.selinger.core.{Origin, PlanningPass, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.ColumnStatistics
import io.selinger.stats.samples.SampledKeys
import io.selinger.testing.{Estimates, Samples}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.IntegerType
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Groups by columns that belong together, from a sample without files. */
class CombinationsSuite extends AnyFunSuite {

  private def columns(names: String*): LocalRelation =
    LocalRelation(names.map(AttributeReference(_, IntegerType)()))

  // 10,000 orders of ten lines each, side by side in the files; 1,000 customers and 100 days at random.
  private val random = new scala.util.Random(7)
  private val customers = IndexedSeq.fill(10000)(1 + random.nextInt(1000))
  private val days = IndexedSeq.fill(10000)(1 + random.nextInt(100))
  private val lines = 100000

  private def sampleOf(known: (Int => Int)*): SampledKeys = {
    val some = Seq.fill(4000)(random.nextInt(lines))
    val pairs = Seq.fill(1000)(random.nextInt(lines - 1)).flatMap(line => Seq(line, line + 1))
    Samples.keysBeside("l", known.map(_ => IntegerType), covered = Some(lines.toLong))(
      known.map(value => some.map(value) -> pairs.map(value)): _*
    )
  }

  private def sampled(plan: LocalRelation, distinct: Double*)(keys: SampledKeys): PlanEstimate = {
    val counted = plan.output.map(_.exprId).zip(distinct).map { case (id, values) =>
      id -> ColumnStatistics(distinct = Some(values))
    }
    val relation =
      PlanEstimate.exactly(lines.toDouble, Origin.Exact, counted.toMap).asRelation(plan.output)
    SampledEstimate.refine(relation, Samples.keysOnly(plan, keys), plan.output)
  }

  private val sales = columns("customer", "day")
  private val known =
    sampled(sales, 1000, 100)(sampleOf(i => customers(i / 10), i => days(i / 10)))
  private def counted(rows: Double): Estimates.Relation =
    Estimates.counted(rows, Estimates.evenly(1, rows), Estimates.evenly(1, rows))
  private val people = counted(1000)
  private val calendar = counted(100)
  // A tenth of the days.
  private val spring = counted(10)

  private def estimate(plan: LogicalPlan): PlanEstimate = {
    PlanningPass.start()
    val relations = Seq(people, calendar, spring).map(relation =>
      relation.plan.output.head.exprId -> relation.estimate
    )
    val all = relations.toMap + (sales.output.head.exprId -> Some(known))
    new CardinalityEstimator((leaf: LeafNode, _: Seq[Expression]) =>
      all(leaf.output.head.exprId).map((_, Nil))
    ).estimate(plan).getOrElse(fail("unknown"))
  }

  private def join(left: LogicalPlan, right: Estimates.Relation, key: Attribute): LogicalPlan =
    Join(left, right.plan, Inner, Some(EqualTo(key, right.a)), JoinHint.NONE)

  private def groups(keys: Seq[Attribute], plan: LogicalPlan): Double =
    estimate(Aggregate(keys, keys, plan)).rows.value

  private val (customer, day) = (sales.output(0), sales.output(1))

  private def assertNear(found: Double, expected: Double): Assertion =
    assert(math.abs(found / expected - 1) < 0.2, s"$found instead of $expected")

  private def runs(keys: Seq[Expression]): Option[Double] =
    Combinations.runs(keys, known, sales.output.head.exprId.id)

  test("there are no more combinations than runs of rows that share them") {
    // Customers and days are independent: without neighbours, 63,000 of 100,000 combinations.
    assertNear(groups(Seq(customer, day), sales), 10000)
    assertNear(runs(Seq(customer, day)).getOrElse(0.0), 10000)
    assert(runs(Seq(customer, Literal(1))).exists(_ < 12000))
    assert(Combinations.runs(Seq(customer), known, relation = -1L).isEmpty)
  }

  test("rows that go for the value of a column take their combinations along") {
    assertNear(groups(Seq(customer, day), join(sales, spring, day)), 1000)
    // A random tenth of the lines leaves a line of two orders in three.
    val some = estimate(Aggregate(sales.output, sales.output, Sample(0.0, 0.1, false, 1L, sales)))
    assertNear(some.rows.value, 6500)
  }

  test("columns of joined relations have no more combinations than the keys they were joined by") {
    val joined = join(join(sales, people, customer), calendar, day)
    // Of 100,000 pairs of what is known of people and days.
    assertNear(groups(Seq(people.b, calendar.b), Project(Seq(people.b, calendar.b), joined)), 10000)
    assertNear(groups(Seq(people.b, calendar.b), joined), 10000)
    val ofSpring = join(join(sales, spring, day), people, customer)
    assertNear(groups(Seq(people.b, spring.b), Project(Seq(people.b, spring.b), ofSpring)), 1000)
    assertNear(groups(Seq(customer, calendar.b), Project(Seq(customer, calendar.b), joined)), 10000)
  }

  test("relations that are joined by the keys of each other end in no circle") {
    val pair = join(people.plan, calendar, people.a)
    assert(groups(Seq(people.b, calendar.b), pair) <= 100)
  }

  test("rows with nulls make groups as well") {
    // Few lines have a coupon, and these are of twenty customers.
    val coupons = columns("customer", "coupon")
    val some = Seq.fill(4000)(random.nextInt(lines))
    val keys = Samples.keys("c", Seq.fill(2)(IntegerType))(
      some.map(i => if (i % 50 == 0) 1 + i % 20 else customers(i / 10)),
      some.map(i => if (i % 50 == 0) 1 else null)
    )
    val input = sampled(coupons, 1000, 10)(keys)
    assert(Combinations.of(coupons.output, input).count >= 1000)
    val promotions = columns("id", "kind")
    val kinds = promotions.output.map(_.exprId -> Estimates.evenly(1, 10)).toMap
    val joined = Join(
      coupons,
      promotions,
      LeftOuter,
      Some(EqualTo(coupons.output(1), promotions.output(0))),
      JoinHint.NONE
    )
    PlanningPass.start()
    val rows = new CardinalityEstimator((leaf: LeafNode, _: Seq[Expression]) =>
      if (leaf eq coupons) Some((input, Nil))
      else Some((PlanEstimate.exactly(10, Origin.Exact, kinds).asRelation(promotions.output), Nil))
    ).estimate(joined).getOrElse(fail("unknown"))
    assert(Combinations.of(Seq(coupons.output(0), promotions.output(1)), rows).count >= 1000)
  }

  test("a column with two names is one column") {
    val twice = Project(
      Seq(Alias(customer, "c")(), customer, Alias(day, "d")()),
      join(join(sales, spring, day), people, customer)
    )
    val once = groups(Seq(customer, day), join(join(sales, spring, day), people, customer))
    assertNear(groups(twice.output, twice), once)
  }

  test("whatever part of the rows is left, combinations are a number") {
    for (rows <- Seq(100352.0, 7.0, 1e9 / 3, 49 * 2048.0); part <- Seq(49.0, 3.0, 7.0, 1e5)) {
      val left = rows / part
      val before = rows * (left / rows)
      val found = Selectivity.survivors(rows / 9.97, before, left)
      assert(!found.isNaN && found >= 1.0, s"$left of $rows")
    }
    assert(Selectivity.survivors(10.0, 100.0, 100.00000000000001) == 10.0)
  }

  test("tasks share no runs, so that all of them have no more groups than runs") {
    val input = estimate(sales)
    def met(source: LogicalPlan, tasks: Double = 20): Double =
      TaskGroups(source, input, tasks).inAllTasks(
        Quantity(10000, Origin.Derived),
        sales.output
      ).value
    assert(TaskGroups(sales, input, tasks = 20).inOneTask(10000) * 20 > 70000)
    assertNear(met(sales), 10000)
    assertNear(met(Project(sales.output, Filter(IsNotNull(day), sales))), 10000)
    // Elsewhere rows may lie anywhere, so that each task may have every group.
    assert(met(Sort(Nil, global = true, sales)) > 70000)
    assert(met(RepartitionByExpression(Seq(day), sales, 20)) > 70000)
    assert(met(people.plan) > 70000)
  }

  test("a null continues a run of nulls, and columns that are not sampled have no runs") {
    val keys = Samples.keysBeside("n", Seq(IntegerType, IntegerType))(
      Seq.fill(100)(1) -> (0 until 400).map(i => if (i % 4 < 2) null else 1),
      Seq.fill(100)(1) -> (0 until 400).map(_ / 200)
    )
    assert(keys.runShare(Seq(0, 1)).exists(share => share < 0.02))
    assert(keys.runShare(Seq(0, 7)).isEmpty && keys.runShare(Nil).isEmpty)
  }
}
