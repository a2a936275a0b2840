package io.selinger.exec

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.SortPrefixUtils
import org.apache.spark.sql.selinger.TestMemory
import org.apache.spark.sql.types.{DataType, DoubleType, LongType}
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** Which rows a `RankFilter` keeps, beside the ranks that sorting gives. */
class RankFilterSuite extends AnyFunSuite {

  private val ascending = SortOrder(BoundReference(0, LongType, nullable = true), Ascending)

  private def filter(
      limit: Int,
      countsValues: Boolean = false,
      order: SortOrder = ascending,
      bytes: Long = Long.MaxValue
  ): RankFilter =
    new RankFilter(
      limit,
      countsValues,
      SortPrefixUtils.getPrefixComparator(order),
      TestMemory.manager(bytes)
    )

  private val toKey = UnsafeProjection.create(Array[DataType](LongType))

  // The same row for all keys, as in a query.
  private def keyOf(number: Long): UnsafeRow = toKey(InternalRow(number))

  private def rankOf(value: Long, all: Seq[Long], countsValues: Boolean): Int = {
    val before = all.filter(_ < value)
    (if (countsValues) before.distinct else before).size + 1
  }

  test("a row among the first is kept, in any order, with ties, at any limit") {
    val random = new Random(7)
    for {
      limit <- Seq(1, 2, 3, 8, 9, 20)
      values <- Seq(3, 30, 100000)
      countsValues <- Seq(false, true)
    } {
      val rows = Seq.fill(600)((random.nextInt(5).toLong, random.nextInt(values).toLong))
      val tested = filter(limit, countsValues)
      val kept = rows.filter { case (key, value) => tested.keeps(keyOf(key), value) }
      val lost = rows.distinct.filterNot(kept.contains).filter { case (key, value) =>
        rankOf(value, rows.collect { case (`key`, other) => other }, countsValues) <= limit
      }
      assert(lost.isEmpty, s"$limit of $values values, $countsValues")
      // All rows that are kept too are as many as records in a random order, and ties.
      if (values == 100000) assert(kept.size < 5 * limit * 8 + 50, s"$limit")
      val first = rows.filter { case (key, value) =>
        rankOf(value, rows.collect { case (`key`, other) => other }, countsValues) <= limit
      }
      assert(kept.count(first.contains) == first.size)
    }
  }

  test("each partition has ranks of its own") {
    val tested = filter(limit = 1)
    assert(tested.keeps(keyOf(1), 5) && tested.keeps(keyOf(2), 9))
    assert(!tested.keeps(keyOf(1), 6) && !tested.keeps(keyOf(2), 10))
    assert(tested.keeps(keyOf(1), 5) && tested.keeps(keyOf(1), 4) && !tested.keeps(keyOf(1), 5))
  }

  test("equal prefixes are kept, even behind as many rows as the limit") {
    val tested = filter(limit = 2)
    assert((1 to 10).forall(_ => tested.keeps(keyOf(1), 3)))
    assert(!tested.keeps(keyOf(1), 4))
  }

  test("dense ranks count values") {
    val tested = filter(limit = 2, countsValues = true)
    assert(Seq(3L, 3L, 3L, 5L, 5L).forall(tested.keeps(keyOf(1), _)))
    assert(!tested.keeps(keyOf(1), 6))
    assert(tested.keeps(keyOf(1), 4) && !tested.keeps(keyOf(1), 5) && tested.keeps(keyOf(1), 3))
  }

  test("descending order, and prefixes of doubles with NaN and -0.0") {
    val order = SortOrder(BoundReference(0, DoubleType, nullable = true), Descending)
    val prefix = SortPrefix(order)
    val tested = filter(limit = 2, order = order)
    def keeps(value: Any) = tested.keeps(
      keyOf(1),
      Option(prefix.eval(InternalRow(value))).fold(prefix.nullValue)(_.asInstanceOf[Long])
    )
    assert(Seq(0.0, -0.0, 0.0).forall(keeps) && !keeps(-1.0) && !keeps(null))
    assert(keeps(Double.NaN) && keeps(Double.PositiveInfinity))
    assert(!keeps(1e308) && keeps(Double.NaN) && !keeps(0.0) && !keeps(null))
  }

  test("without memory, partitions that it does not know keep all rows") {
    val none = filter(limit = 1, bytes = 0)
    assert((1L to 100L).forall(none.keeps(keyOf(1), _)))

    val some = filter(limit = 1, bytes = 64L << 10)
    val kept = (0 until 3).map(_ => (0L until 1000L).count(key => some.keeps(keyOf(key), 1)))
    assert(kept.forall(_ == 1000))
    val larger = (0L until 1000L).count(key => some.keeps(keyOf(key), 2))
    assert(larger > 500 && larger < 900)
  }

  test("numbers that there is no memory for make it keep more, never less") {
    val tested = filter(limit = 20000, bytes = 64L << 10)
    val (random, key) = (new Random(3), keyOf(1))
    val values = Seq.fill(30000)(random.nextInt(1 << 20).toLong)
    val kept = values.filter(tested.keeps(key, _)).toSet
    assert(values.sorted.take(20000).forall(kept.contains))
  }

  test("it stops where it keeps nearly every row") {
    val tested = filter(limit = 1)
    val key = keyOf(1)
    val falling = 1 << 20
    assert((falling until 0 by -1).forall(value => tested.keeps(key, value.toLong)))
    assert(tested.keeps(key, Long.MaxValue))

    val other = filter(limit = 1)
    val kept = (1 to falling).count(value => other.keeps(key, value.toLong))
    assert(kept == 1 && !other.keeps(key, Long.MaxValue))
  }
}
