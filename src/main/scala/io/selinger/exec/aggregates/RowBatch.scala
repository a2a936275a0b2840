package io.selinger.exec.aggregates

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform

/**
 * Some rows with their keys, copied from an input whose rows are valid only until the next one. Rows that
 * are known before they are grouped let a table read the places of all of them at once
 * (GroupTable.readAhead).
 *
 * Memory: about 64 KiB, and what the largest row takes.
 *
 * @param keyFields of a key
 */
private[aggregates] final class RowBatch(keyFields: Int) {
  import RowBatch._

  private var bytes = new Array[Long](mostWords)
  private var used = 0
  private var at = 0

  // Where rows and keys begin, in words, and how many bytes they have.
  private val rowStarts = new Array[Int](mostRows)
  private val rowBytes = new Array[Int](mostRows)
  private val keyStarts = new Array[Int](mostRows)
  private val keyBytes = new Array[Int](mostRows)

  /** Of the keys, in the order of the rows. */
  val hashes: Array[Int] = new Array[Int](mostRows)

  private var rows = 0
  private var fields = -1
  private var shownRow: UnsafeRow = _

  /** The key of the row that `next` has moved to. */
  val key: UnsafeRow = new UnsafeRow(keyFields)

  /** The row that `next` has moved to. Valid, as its key is, until `clear`. */
  def row: UnsafeRow = shownRow

  def size: Int = rows

  def isFull: Boolean = rows == mostRows || used >= mostWords

  def clear(): Unit = {
    rows = 0
    used = 0
    at = 0
  }

  /** Copies a row and its key; not if the batch is full. */
  def add(row: UnsafeRow, key: UnsafeRow): Unit = {
    if (row.numFields != fields) {
      fields = row.numFields
      shownRow = new UnsafeRow(fields)
    }
    rowStarts(rows) = copied(row)
    rowBytes(rows) = row.getSizeInBytes
    keyStarts(rows) = copied(key)
    keyBytes(rows) = key.getSizeInBytes
    hashes(rows) = key.hashCode()
    rows += 1
  }

  def hasNext: Boolean = at < rows

  /** Moves to the next row; false if there is none. */
  def next(): Boolean = hasNext && {
    shownRow.pointTo(bytes, offset(rowStarts(at)), rowBytes(at))
    key.pointTo(bytes, offset(keyStarts(at)), keyBytes(at))
    at += 1
    true
  }

  /** The hash of the key of the row that `next` has moved to. */
  def hash: Int = hashes(at - 1)

  private def copied(from: UnsafeRow): Int = {
    val (start, words) = (used, from.getSizeInBytes / 8)
    if (start + words > bytes.length)
      bytes = java.util.Arrays.copyOf(bytes, math.max(start + words, bytes.length * 2))
    Platform.copyMemory(
      from.getBaseObject,
      from.getBaseOffset,
      bytes,
      offset(start),
      from.getSizeInBytes.toLong
    )
    used += words
    start
  }
}

private[aggregates] object RowBatch {

  // So many that reads of memory overlap, and so few that what was read is still in the cache.
  private val mostRows = 256
  private val mostWords = 8 << 10

  private def offset(word: Int): Long = Platform.LONG_ARRAY_OFFSET + 8L * word
}
