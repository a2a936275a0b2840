package io.selinger.stats

import org.apache.spark.sql.types._
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks
import scala.util.Random

/** Distinct values of a whole from those of its parts. Truth is what simulated columns hold. */
class DistinctValuesSuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  import DistinctValuesSuite._

  private def column(perGroup: Int = 5000, groups: Int = 40)(value: (Random, Int) => Double) = {
    val random = new Random(7)
    Column(IndexedSeq.tabulate(perGroup * groups)(value(random, _)), perGroup)
  }

  private def assertNear(found: Double, truth: Double, factor: Double): Unit = {
    assert(found >= truth / factor && found <= truth * factor, s"$found, not $truth")
    ()
  }

  Seq[(String, Column, DataType, Double)](
    ("a sorted key", column()((_, i) => i.toDouble), LongType, 1.01),
    ("a sorted key with gaps", column()((_, i) => i * 1000.0), LongType, 1.1),
    ("sorted, each value ten times", column()((_, i) => (i / 10).toDouble), LongType, 1.1),
    ("a key in random order", column()((_, i) => (i * 7919L % 200000).toDouble), LongType, 1.1),
    (
      "a domain that each group has seen",
      column()((r, _) => r.nextInt(50).toDouble),
      IntegerType,
      1.01
    ),
    (
      "half of a domain, seen everywhere",
      column()((r, _) => 2.0 * r.nextInt(50)),
      IntegerType,
      1.01
    ),
    (
      "a domain that groups see in part",
      column()((r, _) => r.nextInt(20000).toDouble),
      IntegerType,
      1.1
    ),
    (
      "runs of values of a large domain",
      Column(
        new Random(3)
          .shuffle((0 until 20000).toIndexedSeq)
          .flatMap(v => Seq.fill(1 + v % 19)(v.toDouble)),
        5000
      ),
      IntegerType,
      1.7
    ),
    ("a few values of a huge domain", column()((r, _) => r.nextInt(100) * 1e15), LongType, 1.01),
    ("one value", column()((_, _) => 5.0), IntegerType, 1.0),
    ("one value a group", column()((_, i) => (i / 5000).toDouble), IntegerType, 1.3),
    ("fractions, all different", column()((r, _) => r.nextDouble()), DoubleType, 1.1),
    ("few fractions", column()((r, _) => r.nextInt(30) / 7.0), DoubleType, 1.01),
    ("decimals", column()((r, _) => r.nextInt(9000) / 100.0), DecimalType(9, 2), 1.1)
  ).foreach { case (name, data, kind, factor) =>
    test(s"$name: within a factor of $factor") {
      assertNear(data.estimate(kind).getOrElse(fail("nothing")), data.truth, factor)
    }
  }

  test("infinity among the values makes no number infinite, nor none") {
    val chunks = Seq(Some(Double.PositiveInfinity), Some(5.0), None).map(max =>
      ChunkDistinct(100, 1000, Some(1.0), max)
    )
    Seq(Some((1.0, Double.PositiveInfinity)), Some((1.0, 5.0)), None).foreach { range =>
      val found = DistinctValues.merged(chunks, 10000, range, None)
      assert(found >= 100 && found <= 10000, range)
    }
  }

  test("one chunk that is the whole relation is exact") {
    val chunk = ChunkDistinct(37, 1000, Some(1), Some(900))
    val found =
      DistinctValues.estimate(
        IntegerType,
        1000,
        ColumnStatistics(min = Some(1), max = Some(900)),
        Seq(chunk)
      )
    assert(found.contains(37.0))
  }

  test("without counts the domain of whole numbers is left, and of others nothing") {
    val range = ColumnStatistics(min = Some(1), max = Some(100))
    assert(DistinctValues.estimate(IntegerType, 1000, range, Nil).contains(100.0))
    assert(DistinctValues.estimate(IntegerType, 10, range, Nil).contains(10.0))
    assert(DistinctValues.estimate(DoubleType, 1000, range, Nil).isEmpty)
    assert(DistinctValues.estimate(StringType, 1000, ColumnStatistics(), Nil).isEmpty)
  }

  test("text without a range: what each group has seen, unless nearly every row differs") {
    def of(values: Double) = {
      val chunks = Seq.fill(8)(ChunkDistinct(values, 1000, None, None))
      DistinctValues.estimate(StringType, 40000, ColumnStatistics(), chunks).getOrElse(0.0)
    }
    assert(of(20) == 20)
    assert(of(1000) == 40000)
    assertNear(of(900), drawnFrom = 900)
  }

  private def assertNear(found: Double, drawnFrom: Int): Unit =
    assertNear(found, DistinctValues.source(drawnFrom.toDouble, 1000), 1.2)

  private val chunk: Gen[ChunkDistinct] = for {
    rows <- Gen.choose(1.0, 1e6)
    share <- Gen.oneOf(Gen.const(1.0), Gen.choose(0.0, 1.0))
    range <- Gen.option(Gen.zip(Gen.choose(-1e9, 1e9), Gen.choose(0.0, 1e9)))
  } yield ChunkDistinct(
    math.max(1.0, math.floor(rows * share)),
    rows,
    range.map(_._1),
    range.map { case (low, width) => low + width }
  )

  test("never more than the rows or the domain, never fewer than one chunk has, always finite") {
    forAll(Gen.nonEmptyListOf(chunk), Gen.choose(1.0, 1000.0), Gen.oneOf(LongType, StringType)) {
      (chunks, copies, kind) =>
        val rows = chunks.map(_.rows).sum * copies
        val ranged = chunks.forall(_.min.isDefined)
        val range = ColumnStatistics(
          min = if (ranged) chunks.flatMap(_.min).minOption else None,
          max = if (ranged) chunks.flatMap(_.max).maxOption else None
        )
        val found = DistinctValues.estimate(kind, rows, range, chunks).getOrElse(fail("nothing"))
        val domain =
          for (low <- range.min; high <- range.max; d <- NumericAxis.domain(low, high, kind))
            yield d
        assert(!found.isNaN && !found.isInfinite && found >= 1.0)
        assert(found <= rows && domain.forall(found <= _))
        assert(found >= math.min(chunks.map(_.values).max, domain.getOrElse(Double.MaxValue)))
    }
  }

  test("more rows of the same kind never have fewer values") {
    forAll(Gen.listOfN(4, chunk), Gen.choose(1.0, 100.0)) { (chunks, copies) =>
      val plain = chunks.map(_.copy(min = None, max = None))
      val rows = plain.map(_.rows).sum
      val less = DistinctValues.merged(plain, rows, None, None)
      assert(DistinctValues.merged(plain, rows * copies, None, None) >= less * (1 - 1e-9))
    }
  }

  test("what draws find, and where they come from, are inverse to each other") {
    forAll(Gen.choose(2.0, 1e6), Gen.choose(0.01, 3.0)) { (size, draws) =>
      val rows = size * draws + 2
      val found = DistinctValues.drawn(size, rows)
      assertNear(DistinctValues.source(found, rows), size, 1.01)
    }
  }

  test("extrapolates samples of uniform columns") {
    val random = new Random(11)
    for (size <- Seq(10, 300, 5000, 100000)) {
      val sample = Seq.fill(10000)(random.nextInt(size)).groupBy(identity).values.map(_.size)
      val found = DistinctValues
        .extrapolated(10000, sample.size.toDouble, sample.count(_ == 1).toDouble, 1e6)
      assertNear(found, size.toDouble, 1.15)
    }
  }

  test("extrapolates a sample without repetition to all rows, and of all rows to itself") {
    assert(DistinctValues.extrapolated(100, 100, 100, 5000) == 5000)
    assert(DistinctValues.extrapolated(100, 60, 20, 100) == 60)
    assert(DistinctValues.extrapolated(0, 0, 0, 100) == 0)
  }
}

object DistinctValuesSuite {

  /** What eight of the row groups of a column say, and what is true of the whole. */
  private final case class Column(values: IndexedSeq[Double], perGroup: Int) {
    private val groups = values.grouped(perGroup).toIndexedSeq
    private val chosen = (0 until 8).map(i => groups(((i + 0.5) * groups.size / 8).toInt)).distinct

    val truth: Double = values.distinct.size.toDouble
    val rows: Double = values.size.toDouble
    val chunks: Seq[ChunkDistinct] = chosen.map(group =>
      ChunkDistinct(
        group.distinct.size.toDouble,
        group.size.toDouble,
        Some(group.min),
        Some(group.max)
      )
    )
    val statistics: ColumnStatistics =
      ColumnStatistics(min = Some(values.min), max = Some(values.max))

    def estimate(kind: DataType): Option[Double] =
      DistinctValues.estimate(kind, rows, statistics, chunks)
  }
}
