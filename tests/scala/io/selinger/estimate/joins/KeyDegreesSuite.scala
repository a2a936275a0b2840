package io.selinger.estimate.joins

import io.selinger.core.PlanningPass
import io.selinger.estimate.plans.SampledEstimate
import io.selinger.stats.SampledGroup
import io.selinger.stats.samples.{SampledKey, SampledRelation}
import io.selinger.testing.{Estimates, Samples}
import io.selinger.testing.Estimates.Relation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.{Inner, LeftOuter}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.IntegerType
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** The upper bounds of joins of sampled relations. */
class KeyDegreesSuite extends AnyFunSuite {

  /** A relation of these keys, of which `sampled` are seen. */
  private def relation(
      keys: IndexedSeq[Any],
      sampled: Int,
      seed: Int,
      ordered: Set[Int] = Set.empty,
      covered: Double = 1.0
  ): Relation = {
    val present = keys.filter(_ != null)
    val known = Estimates.counted(
      keys.size.toDouble,
      a = Estimates
        .evenly(0, 1e6, nulls = 1.0 - present.size.toDouble / keys.size)
        .copy(distinct = Some(present.distinct.size.toDouble))
    )
    // One at a random place in each of as many parts, as rows of files are sampled.
    val random = new Random(seed)
    val seen = (0 until sampled).map { i =>
      val (from, to) = (keys.size.toLong * i / sampled, keys.size.toLong * (i + 1) / sampled)
      keys(from.toInt + random.nextInt((to - from).toInt))
    }
    val beside = (0 until keys.size - 1 by math.max(1, keys.size / 1000)).flatMap(i =>
      Seq(keys(i), keys(i + 1))
    )
    val complete = seen.size == keys.size
    val rows = Samples.keysBeside(
      s"sample $seed",
      Seq(IntegerType),
      complete,
      ordered,
      Some((keys.size * covered).toLong)
    )(seen -> beside)
    val sample = SampledRelation(
      applied = Nil,
      groups = Seq(SampledGroup(seen.size, seen.size)),
      covered = 1.0,
      complete = complete,
      alike = 0.0,
      columns = Map.empty,
      keys = Map(known.a.exprId -> SampledKey(rows, 0))
    )
    known.copy(estimate =
      known.estimate.map(e =>
        SampledEstimate.refine(e.asRelation(known.plan.output), sample, known.plan.output)
      )
    )
  }

  private def join(left: LogicalPlan, right: LogicalPlan, l: Attribute, r: Attribute): Join =
    Join(left, right, Inner, Some(EqualTo(l, r)), JoinHint.NONE)

  private def upperBound(plan: LogicalPlan, relations: Relation*): Double = {
    PlanningPass.start()
    Estimates.estimate(plan, relations: _*).getOrElse(fail("unknown")).upperBound
  }

  private def keys(count: Int, seed: Int)(draw: Random => Any): IndexedSeq[Any] = {
    val random = new Random(seed)
    IndexedSeq.fill(count)(draw(random))
  }

  // Ranks after Zipf, the first with about a tenth of all rows.
  private def zipf(values: Int)(random: Random): Int =
    math.pow(values.toDouble, random.nextDouble()).toInt

  test("a key that no sampled row shares leaves a join about as large as its other side") {
    val facts = relation(keys(100000, 1)(_.nextInt(20000)), 10000, 1)
    val dims = relation(new Random(2).shuffle((0 until 20000).toIndexedSeq), 5000, 2)
    val plan = join(facts.plan, dims.plan, facts.a, dims.a)
    assert(upperBound(plan, facts, dims) >= 100000)
    assert(upperBound(plan, facts, dims) < 120000)
  }

  test("few rows of one side meet no more than the most frequent keys of the other") {
    val facts = relation(keys(100000, 3)(_.nextInt(1000)), 10000, 3)
    val few = relation((0 until 10).map(_ * 7), 10, 4)
    val found = upperBound(join(facts.plan, few.plan, facts.a, few.a), facts, few)
    // A hundredth of the rows, and room for chance.
    assert(found >= 1000 && found < 3000, found)
  }

  test(
    "rows of one key that lie side by side raise the upper bound, though no two of them were sampled"
  ) {
    val runs = new Random(15).shuffle((0 until 20000).toIndexedSeq).flatMap(Seq.fill(5)(_))
    val (facts, dims) =
      (relation(keys(50000, 14)(_.nextInt(20000)), 5000, 14), relation(runs, 10000, 15))
    assert(upperBound(join(facts.plan, dims.plan, facts.a, dims.a), facts, dims) >= 250000)
  }

  test("one part of a relation says nothing of the others") {
    val facts = relation(keys(10000, 16)(_.nextInt(2000)), 1000, 16, covered = 0.1)
    val dims = relation(0 until 2000, 2000, 17)
    val other = relation(keys(10000, 18)(_.nextInt(2000)), 1000, 18, covered = 0.1)
    assert(upperBound(join(facts.plan, other.plan, facts.a, other.a), facts, other) == 1e8)
    // Of the other side all is known.
    assert(upperBound(join(facts.plan, dims.plan, facts.a, dims.a), facts, dims) == 10000)
  }

  test("a heavy hitter raises the upper bound") {
    val heavy = keys(100000, 5)(random => if (random.nextBoolean()) 7 else random.nextInt(50000))
    val (left, right) = (relation(heavy, 10000, 5), relation(heavy, 10000, 6))
    assert(upperBound(join(left.plan, right.plan, left.a, right.a), left, right) >= 0.25 * 1e10)
  }

  test("whatever the keys, hardly a join is larger than its upper bound") {
    val shapes = Seq[Random => Any](
      zipf(5000),
      _.nextInt(3000),
      random => if (random.nextInt(4) == 0) null else zipf(300)(random)
    )
    val outcomes = for {
      (l, i) <- shapes.zipWithIndex
      (r, j) <- shapes.zipWithIndex
      seed <- 1 to 10
    } yield {
      val (ours, theirs) =
        (keys(20000, 100 * i + seed)(l), keys(2000 * seed, 1000 + 100 * j + seed)(r))
      val (left, right) =
        (relation(ours, 2000, 10000 + seed), relation(theirs, 1000, 20000 + seed))
      val counts = theirs.filter(_ != null).groupBy(identity).view.mapValues(_.size.toDouble)
      val rows = ours.filter(_ != null).map(counts.getOrElse(_, 0.0)).sum
      val most = upperBound(join(left.plan, right.plan, left.a, right.a), left, right)
      assert(most < 20000.0 * theirs.size, "the product of both sides says nothing")
      most >= rows
    }
    assert(outcomes.count(identity) >= outcomes.size * 0.999)
  }

  test("rows that joins below have repeated count as often") {
    val facts = relation(keys(10000, 7)(_.nextInt(1000)), 10000, 7)
    val other = relation(keys(10000, 8)(_.nextInt(1000)), 10000, 8)
    val few = relation(0 until 1000, 1000, 9)
    val twice = join(facts.plan, other.plan, facts.a, other.a)
    val plan = join(few.plan, twice, few.a, facts.a)
    // Ten by ten rows a key, of which all are joined.
    assert(upperBound(plan, facts, other, few) >= 100000)
  }

  test("outer joins keep their rows") {
    val facts = relation(keys(100000, 10)(_.nextInt(20000)), 10000, 10)
    val dims = relation((0 until 20000).map(_ + 1000000), 20000, 11)
    val plan = join(facts.plan, dims.plan, facts.a, dims.a).copy(joinType = LeftOuter)
    assert(upperBound(plan, facts, dims) >= 100000)
  }

  test(
    "of rows in some order little is known, and without a sample of the keys the upper bound is the product"
  ) {
    val facts = relation(keys(1000, 12)(_.nextInt(100)), 100, 12)
    val product = 1000.0 * 1000.0
    val unseen = Estimates.counted(1000, a = Estimates.evenly(0, 99))
    val sorted = relation(keys(1000, 13)(_.nextInt(100)), 100, 13, ordered = Set(0))
    val known = upperBound(join(sorted.plan, unseen.plan, sorted.a, unseen.a), sorted, unseen)
    assert(known > 100000 && known < product)
    val grouped = Aggregate(Seq(facts.a, facts.b), Seq(facts.a), facts.plan)
    assert(upperBound(join(grouped, unseen.plan, facts.a, unseen.a), facts, unseen) == product)
  }
}
