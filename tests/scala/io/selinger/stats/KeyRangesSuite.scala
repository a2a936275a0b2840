package io.selinger.stats

import io.selinger.core.Origin
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.immutable.ArraySeq
import scala.util.Random

/** Ranges of keys, and what footers say about the rows that may hold one. */
class KeyRangesSuite extends AnyFunSuite {

  private def ranges(most: Int, keys: Long*): Seq[(Long, Long)] =
    KeyRanges.of(keys.toArray, most).ranges.map(range => (range.low, range.high))

  test("keys are cut at their widest gaps, and each is in a range") {
    assert(ranges(8).isEmpty)
    assert(ranges(8, 5) == Seq((5, 5)))
    assert(ranges(8, 3, 1, 2, 2) == Seq((1, 3)))
    assert(ranges(2, 1, 2, 10, 50, 51) == Seq((1, 10), (50, 51)))
    assert(ranges(3, 51, 50, 10, 2, 1) == Seq((1, 2), (10, 10), (50, 51)))
    assert(ranges(1, 1, 50) == Seq((1, 50)))
  }

  test("of many gaps the widest are found, wherever they come") {
    val random = new Random(5)
    for (_ <- 1 to 50) {
      val keys = Seq.fill(200)(random.nextInt(100000).toLong)
      val sorted = keys.distinct.sorted
      val widest =
        sorted.zip(sorted.tail).map { case (low, high) => high - low }.sorted.takeRight(4)
      val found = ranges(5, keys: _*)
      assert(found.size == 5 && keys.forall(key =>
        found.exists { case (a, b) => a <= key && key <= b }
      ))
      assert(found.zip(found.tail).map { case (low, high) => high._1 - low._2 }.sorted == widest)
    }
  }

  test("the smallest and the largest number are keys as any other") {
    val (low, high) = (Long.MinValue, Long.MaxValue)
    assert(ranges(2, high, 0, low) == Seq((low, low), (0, high)))
    assert(ranges(8, high, low) == Seq((low, low), (high, high)))
  }

  test("values of a narrower type are those that it can hold") {
    val keys = KeyRanges.of(Array(-500L, 3L, 4L, 900L), 8)
    assert(keys.within(-128, 127).ranges == Seq(KeyRange(3, 4)))
    assert(keys.within(5, 6).ranges.isEmpty)
  }

  private val keys = KeyRanges.of(Array(10L, 11L, 90L), 8)

  private def file(groups: Seq[(Double, Double)], indexed: Boolean) = {
    val known = groups.filterNot(_._1.isNaN)
    FileFooter(
      rows = 100L * groups.size,
      Map(
        "k" -> ColumnFooter(
          0L,
          None,
          known.map(_._1).minOption,
          known.map(_._2).maxOption,
          None,
          GroupRanges(
            ArraySeq.from(groups.map(_._1)),
            ArraySeq.from(groups.map(_._2)),
            indexed
          )
        )
      ),
      groups.map(_ => 100L)
    )
  }

  test("row groups without a key are skipped, those of unknown range are not") {
    val groups = Seq((0.0, 9.0), (9.0, 10.0), (12.0, 89.0), (Double.NaN, Double.NaN))
    val rows = RowsWithKeys.of(file(groups, indexed = false), "k", keys)
    assert(rows == RowsWithKeys(400, 200, canSkipMore = false))
  }

  test("a file without a key is skipped, whatever is known of its row groups") {
    val whole = file(Seq((20.0, 80.0)), indexed = true)
    val column = whole.columns("k").copy(groups = GroupRanges.unknown)
    val rows = RowsWithKeys.of(whole.copy(columns = Map("k" -> column)), "k", keys)
    assert(rows == RowsWithKeys(100, 0, canSkipMore = false))
  }

  test("pages may be skipped where the keys do not cover all values, and files know their ranges") {
    def canSkip(low: Double, high: Double, indexed: Boolean) =
      RowsWithKeys.of(file(Seq((low, high)), indexed), "k", keys).canSkipMore
    assert(canSkip(0.0, 100.0, indexed = true))
    assert(!canSkip(0.0, 100.0, indexed = false))
    assert(!canSkip(10.0, 11.0, indexed = true))
  }

  test("rows of some files stand for those of all, and are no count then") {
    val some = RowsWithKeys(400, 100, canSkipMore = false).extrapolated(2.5)
    assert(some == RowsWithKeys(1000, 250, canSkipMore = false, Origin.Sampled))
  }

  test("a column that the footer does not know keeps all rows") {
    val rows = RowsWithKeys.of(file(Seq((0.0, 1.0)), indexed = false), "other", keys)
    assert(rows == RowsWithKeys(100, 100, canSkipMore = false))
  }
}
