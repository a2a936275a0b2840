package io.selinger.estimate.plans

import io.selinger.core.{Origin, PlanningPass, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.stats.ColumnStatistics
import io.selinger.stats.samples.{SampledKey, SampledKeys, SampledRelation}
import io.selinger.testing.{Estimates, Samples}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
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
    val sample = SampledRelation(
      applied = Nil,
      groups = Nil,
      covered = 1.0,
      complete = false,
      alike = 0.0,
      columns = Map.empty,
      keys = plan.output.zipWithIndex.map { case (c, i) => c.exprId -> SampledKey(keys, i) }.toMap
    )
    SampledEstimate.refine(relation, sample, plan.output)
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

  test("there are no more combinations than runs of rows that share them") {
    // Customers and days are independent: without neighbours, 63,000 of 100,000 combinations.
    assertNear(groups(Seq(customer, day), sales), 10000)
    assertNear(Combinations.runs(Seq(customer, day), known).getOrElse(0.0), 10000)
    assert(Combinations.runs(Seq(customer, Literal(1)), known).exists(_ < 12000))
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

  test("relations joined by each other's keys are counted once") {
    val pair = join(people.plan, calendar, people.a)
    assert(groups(Seq(people.a, calendar.a), pair) <= 100)
    assert(groups(Seq(people.b, calendar.b), pair) <= 100)
  }

  test("tasks share no runs, so that all of them have no more groups than runs") {
    val input = estimate(sales)
    val read = TaskGroups(sales, input, tasks = 20)
    val found = Quantity(10000, Origin.Derived)
    assert(read.inOneTask(10000) * 20 > 70000)
    assertNear(read.inAllTasks(found, sales.output).value, 10000)
    // Of rows that may lie anywhere each task may have every group.
    val anywhere = TaskGroups(sales, input.unsampled, tasks = 20)
    assert(anywhere.inAllTasks(found, sales.output).value > 70000)
  }

  test("what lies side by side by chance says nothing of rows elsewhere") {
    // Nulls in one of the columns are a value like any other.
    val keys = Samples.keysBeside("n", Seq(IntegerType, IntegerType))(
      Seq.fill(100)(1) -> (0 until 400).map(i => if (i % 4 < 2) null else 1),
      Seq.fill(100)(1) -> (0 until 400).map(_ / 200)
    )
    assert(keys.runShare(Seq(0, 1)).exists(share => share < 0.02))
    assert(keys.runShare(Seq(0, 7)).isEmpty && keys.runShare(Nil).isEmpty)
  }
}
