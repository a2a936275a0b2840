package io.selinger.stats

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks
import scala.util.Random

/** Shares from samples: near the truth, and exceeded as rarely as stated. */
class SampledShareSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  test("many matches speak for themselves, whatever formulas say") {
    Seq(1e-9, 1e-3, 0.1, 1.0).foreach { prior =>
      val found = SampledShare.expected(500, 10000, prior)
      assert(math.abs(found / 0.05 - 1) < 0.1, prior)
    }
  }

  test("where a sample is too small to see anything, formulas decide") {
    val found = SampledShare.expected(0, 10000, 1e-7)
    assert(math.abs(found / 1e-7 - 1) < 0.01)
  }

  test("no match of what should be frequent: about one in as many rows as there are") {
    val found = SampledShare.expected(0, 10000, 0.1)
    assert(found > 0 && found < 2e-4)
  }

  test("a match that should be rare counts more than the formulas") {
    assert(SampledShare.expected(1, 10000, 1e-7) > 5e-5)
    assert(SampledShare.expected(3, 10000, 1e-7) > 2e-4)
  }

  test("everything matches: everything") {
    assert(SampledShare.expected(10000, 10000, 1.0) == 1.0)
    assert(SampledShare.expected(10000, 10000, 0.3) > 0.999)
  }

  private val sample = for {
    rows <- Gen.choose(1, 20000)
    matched <- Gen.oneOf(Gen.choose(0, rows), Gen.choose(0, math.min(rows, 5)))
    prior <- Gen.choose(-12.0, 0.0).map(math.pow(10, _))
  } yield (matched, rows, prior)

  test("shares are never zero and never above one, and more matches never mean less") {
    forAll(sample) { case (matched, rows, prior) =>
      val found = SampledShare.expected(matched, rows, prior)
      assert(found > 0 && found <= 1 && !found.isNaN)
      if (matched < rows) {
        assert(SampledShare.expected(matched + 1, rows, prior) >= found * (1 - 1e-9))
      }
    }
  }

  private def groups(matched: Seq[Int], rows: Int): Seq[SampledGroup] =
    matched.map(SampledGroup(_, rows))

  test("the upper bound is never below the share found, and never above everything") {
    forAll(
      Gen.nonEmptyListOf(Gen.choose(0, 700)),
      Gen.choose(0.0, 1.0),
      Gen.choose(0.0, 1.0)
    ) { (matched, covered, alike) =>
      val found = SampledShare.upperBound(groups(matched, 700), covered, alike)
      val share = matched.sum.toDouble / (matched.size * 700)
      assert(found >= share - 1e-12 && found <= 1.0)
    }
  }

  test("of a few row groups nothing follows for the others") {
    assert(SampledShare.upperBound(groups(Seq(0, 0, 0), 3000), 0.0, 0.0) == 1.0)
    assert(SampledShare.upperBound(groups(Seq(0, 0, 0), 3000), 1.0, 0.0) < 0.01)
    assert(SampledShare.upperBound(Nil, 1.0, 0.0) == 1.0)
  }

  test("of a sorted column only the number of row groups counts") {
    val found = SampledShare.upperBound(groups(Seq.fill(16)(0), 625), 0.0, 1.0)
    assert(found > 0.3)
    assert(SampledShare.upperBound(groups(Seq.fill(16)(0), 625), 0.0, 0.0) < 0.05)
  }

  test("matches in one row group only are a sign of order") {
    val one = 600 +: Seq.fill(15)(0)
    val even = Seq.fill(16)(600 / 16)
    assert(
      SampledShare.upperBound(groups(one, 625), 0.0, 0.0) >
        3 * SampledShare.upperBound(groups(even, 625), 0.0, 0.0)
    )
  }

  /** How often the truth exceeds the upper bound, over simulated relations of 400 row groups. */
  private def exceeded(alike: Boolean)(share: (Random, Int) => Double): Double = {
    val random = new Random(5)
    val runs = 1000
    (0 until runs).count { _ =>
      val shares = IndexedSeq.tabulate(400)(share(random, _))
      val offset = random.nextInt(25)
      val sampled = (0 until 16).map(i => shares(i * 25 + offset))
      val matched = sampled.map(p => (0 until 625).count(_ => random.nextDouble() < p))
      val upperBound = SampledShare.upperBound(groups(matched, 625), 0.0, if (alike) 1.0 else 0.0)
      shares.sum / shares.size > upperBound
    } / runs.toDouble
  }

  Seq[(String, Boolean, (Random, Int) => Double)](
    ("evenly spread matches", false, (_, _) => 0.02),
    ("rare matches, evenly spread", false, (_, _) => 0.0002),
    ("shares that differ by row group", false, (r, _) => r.nextDouble() * 0.2),
    ("a burst in two row groups of 400", false, (_, i) => if (i == 130 || i == 131) 1.0 else 0.0),
    ("a month of a sorted column", true, (_, i) => if (i >= 100 && i < 107) 1.0 else 0.0),
    ("a quarter of a sorted column", true, (_, i) => if (i >= 100 && i < 200) 1.0 else 0.0)
  ).foreach { case (name, alike, share) =>
    test(s"the upper bound holds for $name") {
      assert(exceeded(alike)(share) <= 0.002)
    }
  }

  test("likeness: none where all groups are the same, all where each has its own value") {
    import SampledShare.Moments
    assert(SampledShare.intraclass(Seq.fill(10)(Moments(100, 5.0, 2.0))) == 0.0)
    assert(SampledShare.intraclass((1 to 10).map(i => Moments(100, i.toDouble, 0.0))) == 1.0)
    assert(SampledShare.intraclass(Seq(Moments(100, 1.0, 0.0))) == 0.0)
    assert(SampledShare.intraclass(Nil) == 0.0)
  }

  test("the chance of many events") {
    assert(SampledShare.atLeast(0, 3.0) == 1.0)
    assert(math.abs(SampledShare.atLeast(1, 0.01) - (1 - math.exp(-0.01))) < 1e-6)
    assert(SampledShare.atLeast(10000, 1.0) == 0.0)
    assert(!SampledShare.atLeast(10000, 9000.0).isNaN)
  }

  test("of rows in some order only the row groups count") {
    def upper(groups: Int, ordered: Boolean) =
      SampledShare.upperBound(0.01, 10000, groups, 0.0, ordered)
    assert(upper(16, ordered = true) > 0.3 && upper(16, ordered = false) < 0.05)
    assert(upper(64, ordered = true) < upper(16, ordered = true))
    assert(upper(3, ordered = false) == 1.0)
  }
}
