package io.selinger.stats.sketches

import org.apache.spark.sql.execution.vectorized.OnHeapColumnVector
import org.apache.spark.sql.types._
import org.apache.spark.sql.vectorized.ColumnVector
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** Sketches against what is true of the values that went into them. */
class ColumnSketchSuite extends AnyFunSuite {

  private val batch = 4096

  private def vectors(kind: DataType, values: IndexedSeq[Any]): Iterator[(ColumnVector, Int)] =
    values.grouped(batch).map { part =>
      val vector = new OnHeapColumnVector(part.size, kind)
      part.zipWithIndex.foreach {
        case (null, i) => vector.putNull(i)
        case (number: Int, i) => vector.putInt(i, number)
        case (number: Long, i) => vector.putLong(i, number)
        case (number: Double, i) => vector.putDouble(i, number)
        case (text: UTF8String, i) =>
          val _ = vector.putByteArray(i, text.getBytes)
        case other => throw new IllegalArgumentException(other.toString)
      }
      (vector, part.size)
    }

  private def sketch(
      kind: DataType,
      values: IndexedSeq[Any],
      sizes: SketchSizes = SketchSizes(4096, 1)
  ): ColumnSketch = {
    val sketcher = ColumnSketcher.forType(kind, sizes)
    vectors(kind, values).foreach { case (vector, count) => sketcher.add(vector, count) }
    sketcher.result(1.0, None)
  }

  private def text(value: Any): UTF8String = UTF8String.fromString(value.toString)

  test("distinct values are within three standard deviations, and exact if they are few") {
    val random = new Random(7)
    val many = IndexedSeq.fill(300000)(random.nextInt(100000).toLong)
    val true100k = many.distinct.size.toDouble
    Seq(4096 -> 0.048, 512 -> 0.135).foreach { case (entries, error) =>
      val found = sketch(LongType, many, SketchSizes(entries, 16)).distinct.get.getEstimate
      assert(math.abs(found - true100k) <= error * true100k, s"$entries entries: $found")
    }
    assert(sketch(LongType, many.map(_ % 1000)).distinct.get.getEstimate == 1000)
    assert(sketch(StringType, many.map(i => text(i % 777))).distinct.get.getEstimate == 777)
  }

  test("quantiles are within two hundredths of the ranks, value by value or by a part") {
    val random = new Random(8)
    val values = IndexedSeq.fill(200000)(math.exp(random.nextGaussian() * 2))
    val sorted = values.sorted
    Seq(1, 16).foreach { stride =>
      val part = sketch(DoubleType, values, SketchSizes(4096, stride))
      val quantiles = ColumnSketch.quantilesOf(Seq(part)).get
      Seq(0.01, 0.1, 0.25, 0.5, 0.9, 0.99).foreach { share =>
        val place = sorted((share * (sorted.size - 1)).toInt)
        assert(math.abs(quantiles.shareUpTo(place) - share) < 0.025, s"$share by $stride")
      }
    }
  }

  test("frequent values are found with their counts, and what they are not is bounded") {
    val random = new Random(9)
    val values = IndexedSeq.fill(100000)(
      if (random.nextInt(10) < 3) 5 else if (random.nextInt(20) == 0) 6 else random.nextInt(1 << 30)
    )
    val truth = values.groupBy(identity).map { case (value, all) => value -> all.size.toLong }
    val found = sketch(IntegerType, values).frequent
    assert(found.counts.take(2).map(_._1) == Seq(5, 6))
    found.counts.foreach { case (value, n) =>
      assert(
        n <= truth(value.asInstanceOf[Int]) && truth(value.asInstanceOf[Int]) <= n + found.rest
      )
    }
    val texts = sketch(StringType, values.map(text)).frequent
    assert(texts.counts.take(2).map(_._1) == Seq(text(5), text(6)))
    val part = sketch(IntegerType, values, SketchSizes(4096, 16)).frequent.counts.toMap
    assert(math.abs(part(5) - truth(5)) < 0.1 * truth(5).toDouble)
  }

  test("merged parts say what one sketch of all says") {
    val random = new Random(10)
    val values = IndexedSeq.fill(120000)(random.nextInt(30000))
    val all = sketch(IntegerType, values)
    val parts = values.grouped(30000).map(sketch(IntegerType, _)).toSeq
    val merged = ColumnSketch.mergeParts(parts.map(_.copy(share = 0.25)), 1L)
    assert(merged.rows == all.rows && merged.low == all.low && merged.high == all.high)
    assert(merged.share == 1.0)
    val (a, b) = (merged.distinct.get.getEstimate, all.distinct.get.getEstimate)
    assert(math.abs(a - b) < 0.05 * b)
    val median = ColumnSketch.quantilesOf(Seq(merged)).get.placeOf(0.5)
    assert(math.abs(median - 15000) < 900)
  }

  test("NaN, -0.0 and nulls: one value each, and nulls are none") {
    val nan = java.lang.Double.longBitsToDouble(0x7ff8000000000001L)
    val values = IndexedSeq[Any](0.0, -0.0, Double.NaN, nan, null, 1.5, Double.NegativeInfinity)
    val found = sketch(DoubleType, values)
    assert(found.rows == 7 && found.nulls == 1 && found.distinct.get.getEstimate == 4)
    assert(found.low.isEmpty, "an axis that ends at infinity has no range")
    val quantiles = ColumnSketch.quantilesOf(Seq(found)).get
    assert(math.abs(quantiles.shareUpTo(2.0) - 4.0 / 6) < 1e-9)
  }

  test("what is written is read again, for each type") {
    val decimal = DecimalType(38, 4)
    val values: Map[DataType, Seq[Any]] = Map(
      BooleanType -> Seq(true, false),
      ByteType -> Seq(Byte.MinValue, 0.toByte, Byte.MaxValue),
      ShortType -> Seq(Short.MinValue, Short.MaxValue),
      IntegerType -> Seq(Int.MinValue, -1, 0, Int.MaxValue),
      DateType -> Seq(-719162, 2932896),
      LongType -> Seq(Long.MinValue, -1L, 0L, Long.MaxValue),
      TimestampType -> Seq(Long.MinValue / 2, 0L),
      FloatType -> Seq(Float.MinValue, Float.NaN),
      DoubleType -> Seq(Double.NegativeInfinity, -0.0),
      decimal -> Seq("-9999999999999999999999999999999999.9999", "0", "0.0001").map(number =>
        Decimal(BigDecimal(number), 38, 4)
      ),
      StringType -> Seq("", "ä\u0000z").map(text),
      BinaryType -> Seq(Array.empty[Byte], Array[Byte](-1, 0, 1))
    )
    values.foreach { case (kind, some) =>
      val sample = SampledRows(5L, (some :+ null).toIndexedSeq, IndexedSeq(null, some.head))
      val counts = FrequentCounts(some.map(_ -> 3L), 2L)
      val before =
        ColumnSketch(0.5, 9, 1, Some(-1.0), None, None, None, 16, None, counts, Some(sample))
      val after = ColumnSketch.fromBytes(ColumnSketch.toBytes(before), kind)
      def plain(value: Any) = ColumnSketch.keyOf(value).toString
      assert(
        after.copy(frequent = counts, sample = None) == before.copy(sample = None),
        s"as $kind"
      )
      assert(after.sample.get.values.last == null)
      assert(after.sample.get.neighbours.head == null)
      assert(after.sample.get.neighbours.tail.map(plain) == Seq(plain(some.head)))
      assert(after.frequent.counts.map(c => plain(c._1)) == some.map(plain), s"as $kind")
      assert(after.sample.get.values.init.map(plain) == some.map(plain), s"as $kind")
    }
    val full = sketch(LongType, (0 until 50000).map(_.toLong))
    val again = ColumnSketch.fromBytes(ColumnSketch.toBytes(full), LongType)
    assert(again.distinct.get.getEstimate == full.distinct.get.getEstimate)
    assert(ColumnSketch.quantilesOf(Seq(again)) == ColumnSketch.quantilesOf(Seq(full)))
  }

  test("a reservoir has each row as often as any other, whatever the batches") {
    def drawn(seed: Long): IndexedSeq[Int] = {
      val rows = new SketchJob.Reservoir(50, seed)
      val kept = new Array[Int](50)
      (0 until 10).foreach { batch =>
        rows.next(100)
        (0 until rows.picked).foreach(i => kept(rows.slot(i)) = batch * 100 + rows.row(i))
      }
      assert(rows.filled == 50)
      kept.toIndexedSeq
    }
    assert(drawn(3) == drawn(3) && drawn(3).distinct.size == 50)
    val hits = (0 until 2000).flatMap(i => drawn(i.toLong)).groupBy(_ / 100).map(_._2.size)
    assert(hits.forall(n => math.abs(n - 10000) < 500), hits.toString)
    val few = new SketchJob.Reservoir(50, 1)
    few.next(20)
    assert(few.filled == 20 && few.picked == 20)
    val none = new SketchJob.Reservoir(0, 1)
    none.next(20)
    assert(none.filled == 0 && none.picked == 0)
  }

  test("what is drawn of a file depends on its version, and on nothing else") {
    val part = FilePart(0, "file:/a", 0, 10, 10, 5, 1.0, 3)
    assert(part.seed == part.copy(file = 7).seed && part.seed != part.copy(modified = 6).seed)
  }
}
