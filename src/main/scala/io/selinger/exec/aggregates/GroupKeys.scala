package io.selinger.exec.aggregates

import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.array.ByteArrayMethods

/**
 * Keys of groups, numbered as they come, as the bytes of Spark's rows. Keys of one size lie side by side;
 * the place of any other is looked up.
 *
 * @param fields of a key
 * @param size bytes of each key; none where they differ
 */
private[aggregates] final class GroupKeys(fields: Int, size: Option[Int]) {
  import GroupKeys._

  // Of keys of one size, all groups in one array; of others, chunks that are filled one by one.
  private var chunks = Array(Array.empty[Long])
  private var last = 0
  private var used = 0
  private var places = Array.empty[Long]
  private var chunkWords = 0L

  private val words = size.fold(0)(_ / 8)

  /** Bytes that the keys of so many groups take before they come, and what chunks take already. */
  def bytesFor(groups: Int): Long =
    if (size.isDefined) groups.toLong * words * 8 else groups.toLong * 8 + chunkWords * 8

  def most: Int = Int.MaxValue / 2 / math.max(1, words)

  def resize(groups: Int): Unit =
    if (size.isDefined) chunks(0) = java.util.Arrays.copyOf(chunks(0), groups * words)
    else places = java.util.Arrays.copyOf(places, groups)

  /** Bytes of a new chunk, if the next key needs one. */
  def bytesToAdd(key: UnsafeRow): Long =
    if (size.isDefined || hasRoom(key)) 0L else 8L * newChunk(last + 1, key)

  /** Keeps the key of the group `group`, for which there is room. */
  def add(group: Int, key: UnsafeRow): Unit = {
    val bytes = key.getSizeInBytes
    if (size.isDefined) copy(key, chunks(0), group * words, bytes)
    else {
      if (!hasRoom(key)) {
        last += 1
        used = 0
        if (last == chunks.length) chunks = java.util.Arrays.copyOf(chunks, last * 2)
        chunks(last) = new Array[Long](newChunk(last, key))
        chunkWords += chunks(last).length
      }
      chunks(last)(used) = bytes.toLong
      copy(key, chunks(last), used + 1, bytes)
      places(group) = (last.toLong << 32) | used.toLong
      used += 1 + bytes / 8
    }
  }

  private def copy(key: UnsafeRow, to: Array[Long], at: Int, bytes: Int): Unit =
    Platform.copyMemory(key.getBaseObject, key.getBaseOffset, to, offset(at), bytes.toLong)

  private def hasRoom(key: UnsafeRow): Boolean =
    used + 1 + key.getSizeInBytes / 8 <= chunks(last).length

  // The first ones are small, since most tables are.
  private def newChunk(number: Int, key: UnsafeRow): Int =
    math.max(1 + key.getSizeInBytes / 8, math.min(mostChunk, leastChunk << math.min(number, 16)))

  /** Forgets all keys. */
  def clear(): Unit = {
    chunks = Array(Array.empty[Long])
    last = 0
    used = 0
    places = Array.empty
    chunkWords = 0L
  }

  def equal(group: Int, key: UnsafeRow): Boolean =
    if (size.isDefined) same(key, chunks(0), group * words)
    else {
      val chunk = chunks((places(group) >>> 32).toInt)
      val at = places(group).toInt
      chunk(at) == key.getSizeInBytes && same(key, chunk, at + 1)
    }

  private def same(
      key: UnsafeRow,
      in: Array[Long],
      at: Int
  ): Boolean = ByteArrayMethods.arrayEquals(
    key.getBaseObject,
    key.getBaseOffset,
    in,
    offset(at),
    key.getSizeInBytes.toLong
  )

  /** Reads the beginnings of keys of groups (GroupTable.readAhead); what it gives means nothing. */
  def readAhead(groups: Array[Int], number: Int): Long = {
    var (i, read) = (0, 0L)
    if (size.isDefined) {
      val all = chunks(0)
      while (i < number) {
        read ^= all(groups(i) * words)
        i += 1
      }
    } else {
      while (i < number) {
        read ^= places(groups(i))
        i += 1
      }
      i = 0
      while (i < number) {
        val place = places(groups(i))
        read ^= chunks((place >>> 32).toInt)(place.toInt)
        i += 1
      }
    }
    read
  }

  /** Has a row show the key of a group. */
  def show(group: Int, row: UnsafeRow): Unit =
    if (size.isDefined) row.pointTo(chunks(0), offset(group * words), words * 8)
    else {
      val chunk = chunks((places(group) >>> 32).toInt)
      val at = places(group).toInt
      row.pointTo(chunk, offset(at + 1), chunk(at).toInt)
    }

  def newRow(): UnsafeRow = new UnsafeRow(fields)
}

private[aggregates] object GroupKeys {
  private val leastChunk = 1 << 11
  private val mostChunk = 1 << 19

  private def offset(word: Int): Long = Platform.LONG_ARRAY_OFFSET + 8L * word
}
