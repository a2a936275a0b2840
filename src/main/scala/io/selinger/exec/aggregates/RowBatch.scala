package io.selinger.exec.aggregates

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/**
 * Some rows with their keys, copied from an input whose rows are valid only until the next one. Rows that
 * are known before they are grouped let a table read the places of all of them at once
 * (GroupTable.readAhead).
 *
 * Memory: less than 100 KiB, from the first row on.
 *
 * @param rowFields columns of a row
 * @param keyFields columns of a key
 */
private[aggregates] final class RowBatch(rowFields: Int, keyFields: Int) {
  import RowBatch._

  private var bytes = Array.empty[Long]
  private var used = 0

  // Of each row where it begins, in words, its bytes, and the same of its key.
  private var places = Array.empty[Int]
  private var hashed = Array.empty[Int]
  private var rows = 0
  private var at = 0

  /** The row that `next` has moved to, and its key. Valid until `clear`. */
  val row: UnsafeRow = new UnsafeRow(rowFields)
  val key: UnsafeRow = new UnsafeRow(keyFields)

  def size: Int = rows

  /** Hashes of the keys, in the order of the rows. */
  def hashes: Array[Int] = hashed

  def isFull: Boolean = rows == mostRows || used >= mostWords

  def clear(): Unit = {
    rows = 0
    used = 0
    at = 0
  }

  /** Copies a row and its key, if the batch is not full; false if they are too large to be copied. */
  def add(from: UnsafeRow, itsKey: UnsafeRow): Boolean = {
    val isSmall = from.numFields == rowFields &&
      from.getSizeInBytes + itsKey.getSizeInBytes <= mostRowBytes
    if (isSmall) {
      if (bytes.isEmpty) {
        bytes = new Array[Long](mostWords + mostRowBytes / 8)
        places = new Array[Int](4 * mostRows)
        hashed = new Array[Int](mostRows)
      }
      copy(from, 4 * rows)
      copy(itsKey, 4 * rows + 2)
      hashed(rows) = itsKey.hashCode()
      rows += 1
    }
    isSmall
  }

  private def copy(from: UnsafeRow, place: Int): Unit = {
    val size = from.getSizeInBytes
    Platform.copyMemory(from.getBaseObject, from.getBaseOffset, bytes, offset(used), size.toLong)
    places(place) = used
    places(place + 1) = size
    used += size / 8
  }

  def hasNext: Boolean = at < rows

  /** Moves to the next row; false if there is none. */
  def next(): Boolean = hasNext && {
    show(row, 4 * at)
    show(key, 4 * at + 2)
    at += 1
    true
  }

  private def show(in: UnsafeRow, place: Int): Unit =
    in.pointTo(bytes, offset(places(place)), places(place + 1))

  /** The hash of the key of the row that `next` has moved to. */
  def hash: Int = hashed(at - 1)
}

private[aggregates] object RowBatch {

  // So many that reads of memory overlap, and so few that what was read is still in the cache.
  private val mostRows = 256
  private val mostWords = 8 << 10

  /** Copying a larger row, with its key, costs more than it saves. */
  val mostRowBytes: Int = 8 << 10

  private def offset(word: Int): Long = Platform.LONG_ARRAY_OFFSET + 8L * word
}
