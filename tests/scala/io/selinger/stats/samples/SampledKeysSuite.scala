package io.selinger.stats.samples

import io.selinger.stats.{ColumnSample, ColumnSummary, OrderedNumbers, RelationSample}
import io.selinger.stats.files.SampledValues
import io.selinger.testing.Samples
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

class SampledKeysSuite extends AnyFunSuite {

  private def keys(source: String, kinds: Seq[DataType], complete: Boolean = false)(
      columns: Seq[Any]*
  ): SampledKeys = Samples.keys(source, kinds, complete)(columns: _*)

  private def longs(source: String, values: Seq[Any], complete: Boolean = false): SampledKeys =
    keys(source, Seq(LongType), complete)(values)

  private def equalPairs(left: SampledKeys, right: SampledKeys): EqualPairs =
    left.equalPairs(Seq(0), right, Seq(0))

  test("pairs of equal keys are counted, those with nulls are not") {
    val found = equalPairs(longs("l", Seq(1L, 1L, 2L, null)), longs("r", Seq(1L, 2L, 2L, null, 5L)))
    assert(found.pairs == 4 && found.possible == 12)
  }

  test("one heavy value is one piece of evidence, many light ones are many") {
    val heavy = equalPairs(longs("l", Seq.fill(100)(1L)), longs("r", Seq.fill(100)(1L)))
    val light = equalPairs(longs("l", 1L to 10000L), longs("r", 1L to 10000L))
    assert(heavy.pairs == light.pairs && heavy.variance == 50 * light.variance * 2)
  }

  test("several columns are compared together") {
    val left = keys("l", Seq(LongType, StringType))(Seq(1L, 2L), Seq("a", "b").map(text))
    val right = keys("r", Seq(LongType, StringType))(Seq(1L, 2L), Seq("b", "a").map(text))
    assert(left.equalPairs(Seq(0, 1), right, Seq(0, 1)).pairs == 0)
    assert(left.equalPairs(Seq(0), right, Seq(0)).pairs == 2)
    assert(left.equalPairs(Seq(1), right, Seq(1)).pairs == 2)
  }

  test("a relation is not compared with the very same rows, unless it is all there") {
    val unique = (1L to 1000L)
    assert(equalPairs(longs("same", unique), longs("same", unique)).pairs == 0)
    val all =
      equalPairs(longs("same", unique, complete = true), longs("same", unique, complete = true))
    assert(all.pairs == 1000 && all.possible == 1e6 && all.variance == 0)
    val twice = unique.flatMap(i => Seq(i, i))
    // Both rows of a value lie beside each other: one in each half.
    val halves = equalPairs(longs("same", twice), longs("same", twice))
    assert(halves.pairs == 2000 && halves.possible == 2e6)
  }

  test("whole numbers of all widths are one kind") {
    val ints = keys("l", Seq(IntegerType))(Seq(1, -7, Int.MaxValue))
    assert(ints.kindOf(0).contains(LongType))
    assert(equalPairs(ints, longs("r", Seq(1L, -7L, Int.MaxValue.toLong))).pairs == 3)
    assert(equalPairs(keys("l", Seq(ShortType))(Seq(3.toShort)), longs("r", Seq(3L))).pairs == 1)
  }

  test(
    "decimals of one type are equal whatever their scale, types without exact equality are out"
  ) {
    val kind = DecimalType(10, 2)
    val left = keys("l", Seq(kind))(Seq(Decimal(BigDecimal("1.50"), 10, 2)))
    val right = keys("r", Seq(kind))(Seq(Decimal(BigDecimal("1.5"), 10, 2)))
    assert(equalPairs(left, right).pairs == 1)
    assert(!keys("l", Seq(DoubleType))(Seq(0.0)).has(0))
    assert(!keys("l", Seq(StringType("UTF8_LCASE")))(Seq(text("a"))).has(0))
  }

  test("a column determines another if rows that share its value share the other's") {
    val orders = (0 until 3000).map(_ / 3)
    val customers = orders.map(order => (order * 7919) % 100)
    val products = (0 until 3000).map(i => (i * 31) % 50)
    val kinds = Seq(IntegerType, IntegerType, IntegerType)
    val lines = keys("l", kinds)(orders, customers, products)
    assert(lines.determines(0, 1) && !lines.determines(0, 2) && !lines.determines(1, 0))
    // A constant is determined by anything, and a key says nothing.
    assert(!keys("l", kinds.take(2))(orders, orders.map(_ => 1)).determines(0, 1))
    assert(!keys("l", kinds.take(2))(0 until 3000, customers).determines(0, 1))
    val unknown = orders.map(order => if (order < 900) null else order)
    assert(keys("l", kinds.take(2))(unknown, customers).determines(0, 1))
    assert(!keys("l", kinds.take(2))(orders.map(_ => null), customers).determines(0, 1))
  }

  test("a column determines another if rows side by side that share its value share the other's") {
    // Orders of three lines, of which no two were sampled; a day has a hundred orders.
    val orders = (0 until 3000).map(_ / 3)
    val customers = orders.map(order => (order * 7919) % 100)
    val products = (0 until 3000).map(i => (i * 31) % 50)
    val days = orders.map(_ / 100)
    val pairs = (0 until 2999 by 2).flatMap(i => Seq(i, i + 1))
    val some = (0 until 3000 by 7).distinctBy(orders)
    val columns = Seq[Seq[Any]](orders, customers, products, days)
    def lines(neighbours: Seq[Int]): SampledKeys =
      Samples.keysBeside("l", Seq.fill(4)(IntegerType))(
        columns.map(values => some.map(values) -> neighbours.map(values)): _*
      )
    val known = lines(pairs)
    assert(known.determines(0, 1) && !known.determines(0, 2) && !known.determines(2, 1))
    // Neighbours have one day anyhow, so that customers do not determine it.
    assert(!known.determines(1, 3))
    assert(!lines(pairs.take(20)).determines(0, 1) && !lines(Nil).determines(0, 1))
    // What is unknown on either side is no evidence against it.
    val gaps = Samples.keysBeside("l", Seq.fill(2)(IntegerType))(
      some.map(orders) -> pairs.map(orders),
      some.map(customers) -> pairs.map(i => if (i % 5 == 0) null else customers(i))
    )
    assert(gaps.determines(0, 1))
  }

  test("rows from all over the relation know better than rows side by side") {
    // Ten lines an order side by side, customers and days at random: each order has one of both.
    val random = new scala.util.Random(7)
    val customers = IndexedSeq.fill(1000)(random.nextInt(200))
    val days = IndexedSeq.fill(1000)(random.nextInt(100))
    val pairs = (0 until 9999 by 9).flatMap(i => Seq(i, i + 1)).map(_ / 10)
    def lines(some: Seq[Int]): SampledKeys =
      Samples.keysBeside("l", Seq.fill(2)(IntegerType))(
        some.map(customers) -> pairs.map(customers),
        some.map(days) -> pairs.map(days)
      )
    val known = lines(0 until 1000)
    assert(!known.determines(0, 1) && !known.determines(1, 0))
    // Few rows that differ are evidence, too.
    val few = known.only((0 until 1000).filter(customers(_) < 12).toArray, 1)
    assert(few.rows < 100 && !few.determines(0, 1))
    // Where no customer was sampled twice, only rows side by side can tell.
    assert(lines((0 until 1000).distinctBy(customers)).determines(0, 1))
  }

  test("values are no more than runs of equal ones") {
    // Four lines an order, side by side; a fifth of them unknown; products at random.
    val orders = (0 until 4000).map(i => if (i % 20 < 4) null else i / 4)
    val products = (0 until 4000).map(i => (i * 31) % 50)
    def beside(values: Seq[Any]) = (0 until 3999 by 3).flatMap(i => Seq(values(i), values(i + 1)))
    val lines = Samples.keysBeside("l", Seq.fill(2)(IntegerType))(
      orders -> beside(orders),
      products -> beside(products)
    )
    assert(lines.runShare(Seq(0)).exists(share => math.abs(share - 0.25) < 0.02))
    assert(lines.runShare(Seq(1)).exists(_ >= 1.0))
    assert(lines.runShare(Seq(0, 1)) == lines.runShare(Seq(1, 0)))
    assert(lines.runShare(Seq(0, 0)) == lines.runShare(Seq(0)))
    assert(longs("l", 1L to 100L).runShare(Seq(0)).isEmpty)
  }

  test("rows in some order are not looked for elsewhere, unless they are all there") {
    val ordered = Samples.keys("l", Seq(LongType), ordered = Set(0))(Seq(1L))
    assert(!ordered.canJoin(0) && longs("l", Seq(1L)).canJoin(0))
    assert(Samples.keys("l", Seq(LongType), complete = true, ordered = Set(0))(Seq(1L)).canJoin(0))
  }

  test("hashes of many values hardly collide") {
    assert(longs("l", 1L to 10000L).counts(Seq(0)).distinct._1 >= 9998)
    val even = longs("l", (1L to 10000L).map(_ * 2))
    assert(equalPairs(even, longs("r", (1L to 10000L).map(_ * 2 + 1))).pairs <= 2)
  }

  /** Of each type, one value much more often than the others, and some once. */
  private val skewed: Seq[(DataType, Int => Any)] = Seq(
    IntegerType -> (i => i - 1000),
    LongType -> (i => i.toLong << 40),
    DecimalType(7, 2) -> (i => Decimal(i.toLong, 7, 2)),
    DecimalType(30, 2) -> (i => Decimal(BigDecimal(i) * BigDecimal("1e24"), 30, 2)),
    StringType -> (i => text("x" * (i % 7) + i)),
    BooleanType -> (i => i % 2 == 0),
    DoubleType -> (i => if (i == 5) Double.NaN else i / 3.0),
    BinaryType -> (i => Array[Byte](i.toByte))
  )

  // Of two values none is twice as frequent as the average; of bytes no value is kept.
  private def evenly(kind: DataType) = Set[DataType](BooleanType, BinaryType)(kind)

  test("whatever predicates leave of a column amounts to the same as its values one by one") {
    // Always the same: of other numbers two might have one hash.
    val random = new Random(7)
    for ((kind, value) <- skewed; share <- Seq(0.0, 0.02, 0.5, 1.0)) {
      val sizes = Seq(1000, 0, 20, 1980)
      val groups = sizes.map(size =>
        SampledValues.compact(Array.fill[Any](size)(
          if (size == 20 || random.nextInt(10) == 0) null
          else value(if (random.nextInt(4) == 0) 7 else random.nextInt(2000))
        ))
      )
      val column = ColumnSample(groups)
      val all = SampledKeys.wholeSample(
        "l",
        RelationSample(IndexedSeq(column), groups.map(_.size), 3000L),
        HashedColumn.hash(column, kind).map(0 -> _).toMap,
        Set.empty,
        complete = true
      )
      val left = (0 until 3000).filter(_ => random.nextDouble() < share).toArray
      val expected = ColumnSummary.summarize(left.iterator.map(groups.flatten))
      val found = all.only(left, 3).summary(0, column)
      def plain(summary: ColumnSummary) =
        summary.copy(frequent = summary.frequent.map(f => f.copy(value = f.value.toString)))
      assert(plain(found) == plain(expected), s"$kind, $share")
      assert(share < 0.5 || expected.frequent.nonEmpty != evenly(kind))
    }
  }

  test("numbers kept without objects have the hashes and the order of their objects") {
    val random = new Random(7)
    val kinds = Seq[(DataType, Int => Any)](
      IntegerType -> identity,
      DateType -> identity,
      LongType -> (_.toLong << 33),
      TimestampType -> (_.toLong << 33),
      // Of another scale than the column.
      DecimalType(9, 2) -> (i => Decimal(i.toLong, 7, 1))
    )
    for ((kind, value) <- kinds) {
      // The values of a row group are somewhat alike.
      def number(group: Int): Any =
        if (random.nextInt(9) == 0) null else value(random.nextInt(400) + 100 * group - 200)
      val groups =
        Seq(300, 1, 100, 500).zipWithIndex.map { case (size, i) =>
          Array.fill[Any](size)(number(i))
        }
      val objects = ColumnSample(groups.map(_.toVector), groups.head.toVector)
      val compact =
        ColumnSample(groups.map(SampledValues.compact), SampledValues.compact(groups.head))
      assert(compact.chunks.forall(_.isInstanceOf[OrderedNumbers]), kind)
      assert(compact.alike == objects.alike && compact.alike > 0.1 && compact.alike < 0.9, kind)
      def hashes(column: ColumnSample) = HashedColumn.hash(column, kind).map { found =>
        (found.hashes.toSeq, found.nulls, found.neighbours.toSeq)
      }
      assert(hashes(compact) == hashes(objects), kind)
      assert(hashes(compact).exists(_._1.distinct.size > 300), kind)
    }
  }

  test("keys are counted as one by one, in samples of any size and in combinations") {
    val random = new Random(7)
    for (size <- Seq(0, 1, 2, 100, 5000); most <- Seq(1, 10, 100000)) {
      def values = Seq.fill(size)(if (random.nextInt(9) == 0) null else random.nextInt(most))
      val columns = Seq(values, values)
      val found = keys("l", Seq(IntegerType, IntegerType))(columns: _*)
      for (wanted <- Seq(Seq(0), Seq(1, 0))) {
        val rows = columns.transpose.map(row => wanted.map(row(_))).filterNot(_.contains(null))
        val counts = rows.groupBy(identity).values.map(_.size).toSeq.sorted.reverse
        val counted = found.counts(wanted)
        assert(counted.sorted.length == rows.size)
        assert(counted.distinct == ((counts.size, counts.count(_ == 1))))
        assert(counted.squares == counts.map(n => n.toDouble * n).sum)
        Seq(0.5, 1.0, 2.5, 50.0, 1e9).foreach { most =>
          assert(counted.ofMostFrequent(most) == counts.take(most.toInt).sum.toDouble)
        }
      }
    }
  }

  test("numbers that are made of two hardly collide, whatever their type") {
    val made = for (shard <- 0L until 64L; i <- 0L until 100L) yield (shard << 32) | i
    def distinct(kind: DataType, values: Seq[Any]) =
      keys("l", Seq(kind))(values).counts(Seq(0)).distinct._1
    assert(distinct(LongType, made) >= made.size - 1)
    assert(distinct(DecimalType(18, 0), made.map(Decimal(_, 18, 0))) >= made.size - 1)
    val wide = made.map(n => Decimal(BigDecimal(n) * BigDecimal("1e10"), 38, 2))
    assert(distinct(DecimalType(38, 2), wide) >= made.size - 1)
  }

  test("nothing is left of nothing") {
    val none = longs("l", Nil)
    assert(equalPairs(none, longs("r", Seq(1L))) == EqualPairs(0, 0, 0))
    assert(none.counts(Seq(0)).distinct == ((0, 0)))
  }

  private def text(value: String): UTF8String = UTF8String.fromString(value)
}
