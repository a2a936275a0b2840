package io.selinger.exec.aggregates

import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.SizeEstimator

/**
 * Groups in memory: a hash table of numbers of groups, and by these numbers keys and buffers.
 *
 * The arrays are taken from the memory of the task as they are. The size of the objects in buffers is
 * not known exactly: it is estimated again whenever the table has seen an eighth more rows, from some of
 * the groups and from those that were updated last, so that one group which holds nearly all is not
 * overlooked. That much, and an eighth more for the rows until the next estimate, is taken too.
 * When another operator of the task needs memory, a table that is being filled ends with the next row,
 * and one that is being drained gives up what is left.
 *
 * @param initialize sets the buffer of a group without rows
 */
private[aggregates] final class GroupTable(
    manager: TaskMemoryManager,
    keys: GroupKeys,
    buffers: GroupBuffers,
    initialize: InternalRow => Unit
) {
  import GroupTable._

  private val memory = new HeapMemory

  // Of each group its hash and its number plus one; 0 is an empty place.
  private var slots = Array.empty[Long]
  private var capacity = 0
  private var groups = 0
  private var rows = 0L

  private var objectBytes = 0L
  private var nextEstimate = 16L
  private var full = false

  private var ahead = Array.empty[Int]

  /** Means nothing. What is read ahead is kept, so that no compiler leaves the reading out. */
  private[aggregates] var lastRead = 0L

  // The groups that rows were added to last.
  private val recent = Array.fill(16)(0)

  def size: Int = groups

  /** Rows since the table was made. */
  def rowsSeen: Long = rows

  def usedBytes: Long = memory.getUsed

  /**
   * The buffer of a group, which a row is now added to: the same object for all groups. Null if there is
   * no memory for it.
   *
   * @param hash of the key, as `hashCode` gives it
   */
  def bufferOf(key: UnsafeRow, hash: Int): InternalRow = {
    if (rows >= nextEstimate) estimate()
    val group = if (full) -1 else groupOf(key, hash)
    if (group < 0) null
    else {
      recent((rows & 15).toInt) = group
      rows += 1
      buffers
    }
  }

  /** The number of a group, at which the buffers then stand; -1 if there is no memory for it. */
  private def groupOf(key: UnsafeRow, hash: Int): Int = {
    var place = if (slots.isEmpty) -1 else placeOf(hash)
    var found = -1
    while (place >= 0 && found < 0) {
      val slot = slots(place)
      if (slot == 0L) place = -1
      else if ((slot >>> 32).toInt == hash && keys.equal(slot.toInt - 1, key))
        found = slot.toInt - 1
      else place = (place + 1) & (slots.length - 1)
    }
    if (found < 0) add(hash, key)
    else {
      buffers.standAt(found)
      found
    }
  }

  /** Whether it is so large that reading it may have to wait for memory. */
  def isLarge: Boolean = groups >= leastToReadAhead

  /** Whether there is no memory for another row: the next one ends it. */
  def isFull: Boolean = full

  /**
   * Reads what rows with these keys are going to read. Reading one place after the other, without doing
   * anything with it, lets the processor wait for many at once; when each row is looked up by itself,
   * it waits for each.
   *
   * @param hashes of the keys of rows
   * @param rows so many of them
   * @param objects of how many fields that are no numbers
   */
  def readAhead(hashes: Array[Int], rows: Int, objects: Int): Unit = {
    if (ahead.length < rows) ahead = new Array[Int](rows)
    var (row, read) = (0, 0L)
    while (row < rows) {
      read ^= slots(placeOf(hashes(row)))
      row += 1
    }
    row = 0
    var found = 0
    while (row < rows) {
      val group = groupWith(hashes(row))
      if (group >= 0) {
        ahead(found) = group
        found += 1
      }
      row += 1
    }
    lastRead = read ^ keys.readAhead(ahead, found) ^ buffers.readAhead(ahead, found, objects)
  }

  /** The first group with a hash; -1 if there is none. */
  private def groupWith(hash: Int): Int = {
    var place = placeOf(hash)
    while (slots(place) != 0L && (slots(place) >>> 32).toInt != hash)
      place = (place + 1) & (slots.length - 1)
    slots(place).toInt - 1
  }

  // Low bits of Spark's hash are good, but rows of one partition of a shuffle may share some.
  private def placeOf(hash: Int): Int = {
    val mixed = hash * -1640531527
    (mixed ^ (mixed >>> 15)) & (slots.length - 1)
  }

  private def add(hash: Int, key: UnsafeRow): Int =
    if (!hasRoom(key)) {
      full = true
      -1
    } else {
      keys.add(groups, key)
      insert(hash, groups)
      buffers.standAt(groups)
      // Not every function sets all of its fields.
      buffers.setAllNull()
      initialize(buffers)
      groups += 1
      groups - 1
    }

  private def insert(hash: Int, group: Int): Unit = {
    var place = placeOf(hash)
    while (slots(place) != 0L) place = (place + 1) & (slots.length - 1)
    slots(place) = (hash.toLong << 32) | (group + 1).toLong
  }

  /** Whether there is memory for another group, which may need more of all arrays. */
  private def hasRoom(key: UnsafeRow): Boolean = {
    val more = keys.bytesToAdd(key)
    if (groups < capacity) more == 0L || memory.reserve(bytesFor(capacity) + objectBytes + more)
    else {
      val (before, larger) = (bytesFor(capacity), math.max(leastGroups, capacity * 2))
      // While arrays are copied, both are there.
      val fits = larger <= math.min(mostGroups, math.min(keys.most, buffers.most)) &&
        memory.reserve(bytesFor(larger) + before + objectBytes + more) && grow(larger)
      if (fits) memory.release(before)
      fits
    }
  }

  /** Half of the places at least stay empty. */
  private def bytesFor(groups: Int): Long =
    keys.bytesFor(groups) + buffers.bytesFor(groups) + 2L * groups * 8

  /** False if the heap has no such arrays, whatever the task may have. */
  private def grow(larger: Int): Boolean =
    try {
      val grown = new Array[Long](larger * 2)
      keys.resize(larger)
      buffers.resize(larger)
      val before = slots
      slots = grown
      before.foreach { slot =>
        if (slot != 0L) insert((slot >>> 32).toInt, slot.toInt - 1)
      }
      capacity = larger
      true
    } catch { case _: OutOfMemoryError => false }

  private def estimate(): Unit = {
    val step = math.max(1, groups / sampled)
    val sample = Iterator.range(0, groups, step).map(buffers.objectsOf(_): AnyRef).toArray
    val each = if (sample.isEmpty) 0L else SizeEstimator.estimate(sample) / sample.length
    // Together with the sample, so that what all share does not count again.
    val last = recent.distinct.filter(_ < groups).map(buffers.objectsOf(_): AnyRef)
    val larger = math.max(0L, SizeEstimator.estimate(sample ++ last) - each * sample.length)
    objectBytes = each * groups + larger
    // It stays full if another operator has asked for memory meanwhile.
    if (!memory.reserve(bytesFor(capacity) + objectBytes + objectBytes / 8)) full = true
    nextEstimate = rows + math.max(16L, rows / 8)
  }

  /**
   * Begins to return and to forget the groups, in the order in which they were added.
   *
   * @param onDemand called when another operator of the task needs memory: takes the groups that are
   *   left somewhere else, until there are none
   */
  def drain(onDemand: () => Unit): Groups = {
    slots = Array.empty
    memory.release(2L * capacity * 8)
    memory.onDemand = onDemand
    new Groups
  }

  /** Gives the memory back before the groups are moved to where they take some of their own. */
  def giveBack(): Unit = memory.release(memory.getUsed)

  /** The groups that are left, one at a time. Rows are valid until the next one is asked for. */
  final class Groups {
    private var group = -1
    private val all = groups

    val key: UnsafeRow = keys.newRow()
    val buffer: InternalRow = buffers

    /** Groups that have not been returned. */
    def left: Int = all - 1 - group

    /** Moves to the next group; false if there is none, and then all memory is free. */
    def next(): Boolean = {
      if (group >= 0 && group < all) buffers.clear(group)
      group += 1
      if (group >= all) {
        free()
        false
      } else {
        keys.show(group, key)
        buffers.standAt(group)
        true
      }
    }
  }

  /** Frees everything; again and again is allowed. */
  def free(): Unit = {
    memory.onDemand = () => ()
    memory.release(memory.getUsed)
    slots = Array.empty
    groups = 0
    capacity = 0
    buffers.resize(0)
    keys.clear()
  }

  /** Memory of objects on the heap, which only their owner can free. */
  private final class HeapMemory extends MemoryConsumer(manager, MemoryMode.ON_HEAP) with OfTable {

    // While groups come, the next row finds the table full.
    var onDemand: () => Unit = () => full = true

    /** Whether the task has that many bytes for it in all. */
    def reserve(bytes: Long): Boolean = {
      if (bytes > getUsed) {
        val _ = acquireMemory(math.max(bytes - getUsed, leastBytes))
      }
      getUsed >= bytes
    }

    def release(bytes: Long): Unit = if (bytes > 0) freeMemory(math.min(bytes, getUsed))

    override def spill(size: Long, trigger: MemoryConsumer): Long =
      if (trigger eq this) 0L
      else {
        val before = getUsed
        onDemand()
        before - getUsed
      }
  }
}

private[aggregates] object GroupTable {

  /** Groups that a table has room for when it begins. */
  private val leastGroups = 256

  private val mostGroups = 1 << 28

  // Smaller ones are in the cache of a core.
  private val leastToReadAhead = 4096

  /** Groups whose buffers are measured at an estimate. */
  private val sampled = 32

  /** A consumer of memory that belongs to a table. */
  trait OfTable

  // Not to ask for each of many small arrays.
  private val leastBytes = 64L << 10
}
