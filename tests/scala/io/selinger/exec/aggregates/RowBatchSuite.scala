package io.selinger.exec.aggregates

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{UnsafeProjection, UnsafeRow}
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

/** What a batch gives back is what was put into it. */
class RowBatchSuite extends AnyFunSuite {

  private val toRow = UnsafeProjection.create(Array[DataType](LongType, StringType))
  private val toKey = UnsafeProjection.create(Array[DataType](StringType))

  // Both are the same object each time, as those of an input are.
  private def row(number: Long, text: String): UnsafeRow =
    toRow(InternalRow(number, UTF8String.fromString(text)))
  private def key(text: String): UnsafeRow = toKey(InternalRow(UTF8String.fromString(text)))

  private def filled(batch: RowBatch, from: Int): Int = {
    batch.clear()
    var number = from
    while (!batch.isFull) {
      assert(batch.add(row(number.toLong, s"text $number"), key(s"key ${number % 7}")))
      number += 1
    }
    number - from
  }

  test("rows, keys and hashes come back in their order, again and again") {
    val batch = new RowBatch(2, 1)
    assert(!batch.hasNext && !batch.next() && batch.size == 0)
    for (from <- Seq(0, 1000)) {
      val rows = filled(batch, from)
      assert(rows > 100 && batch.size == rows)
      for (number <- from until from + rows) {
        assert(batch.hasNext && batch.next())
        assert(batch.row == row(number.toLong, s"text $number"))
        val expected = key(s"key ${number % 7}")
        assert(batch.key == expected && batch.hash == expected.hashCode())
        assert(batch.hashes(number - from) == batch.hash)
      }
      assert(!batch.hasNext && !batch.next())
    }
  }

  test("few large rows fill a batch, and a row too large for it is not taken") {
    val batch = new RowBatch(2, 1)
    val large = "x" * (RowBatch.mostRowBytes - 200)
    var rows = 0
    while (!batch.isFull) {
      assert(batch.add(row(rows.toLong, large), key("k")))
      rows += 1
    }
    assert(rows > 1 && rows < 20)
    batch.clear()
    assert(!batch.add(row(1L, large + "y" * 400), key("k")))
    assert(!batch.add(row(1L, "small"), key(large + "y" * 400)))
    assert(batch.size == 0 && batch.add(row(2L, "small"), key("k")))
    assert(batch.next() && batch.row == row(2L, "small"))
  }

  test("rows of another form are not taken") {
    assert(!new RowBatch(3, 1).add(row(1L, "text"), key("k")))
  }
}
