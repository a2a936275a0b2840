package io.selinger.exec.aggregates

import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.unsafe.Platform
import org.apache.spark.unsafe.map.BytesToBytesMap
import org.apache.spark.util.SizeEstimator

/**
 * Groups in memory: keys as bytes in one of Spark's maps, buffers as rows of objects on the heap.
 *
 * The map takes its memory from the task. The size of objects is not known exactly: it is estimated
 * again whenever the table has seen an eighth more rows, from some of the groups and from those
 * that were updated last, so that one group which holds nearly all is not overlooked. That much,
 * and a quarter more for the rows until the next estimate, is taken from the memory of the task.
 *
 * @param keyFields number of fields of a key
 * @param newBuffer makes the buffer of a group without rows
 * @throws org.apache.spark.memory.SparkOutOfMemoryError where there is not even memory to begin
 */
private[aggregates] final class GroupTable(
    manager: TaskMemoryManager,
    keyFields: Int,
    newBuffer: () => InternalRow
) {
  import GroupTable._

  private val keys = new BytesToBytesMap(manager, initialCapacity, pageBytes)
  private val memory = new HeapMemory(manager)

  private var buffers = new Array[InternalRow](1024)
  private var groups = 0
  private var rows = 0L
  private var nextEstimate = 16L
  private var full = false

  // The map copies from here the place of a new group's buffer.
  private val place = new Array[Long](1)

  private val recent = new Array[InternalRow](16)

  def size: Int = groups

  /** Rows since the table was made. */
  def rowsSeen: Long = rows

  def usedBytes: Long = memory.getUsed + keys.getTotalMemoryConsumption

  /** The buffer of a group, which a row is now added to; null if there is no memory for it. */
  def bufferOf(key: UnsafeRow): InternalRow = {
    if (rows >= nextEstimate) estimate()
    if (full) null
    else {
      val found = keys.lookup(key.getBaseObject, key.getBaseOffset, key.getSizeInBytes)
      val buffer =
        if (found.isDefined) buffers(placeOf(found)) else add(found, key)
      if (buffer != null) {
        recent((rows & 15).toInt) = buffer
        rows += 1
      }
      buffer
    }
  }

  private def add(at: BytesToBytesMap#Location, key: UnsafeRow): InternalRow = {
    place(0) = groups.toLong
    val added = groups < maxGroups && at.append(
      key.getBaseObject,
      key.getBaseOffset,
      key.getSizeInBytes,
      place,
      Platform.LONG_ARRAY_OFFSET.toLong,
      java.lang.Long.BYTES
    )
    if (!added) null
    else {
      if (groups == buffers.length) buffers = java.util.Arrays.copyOf(buffers, groups * 2)
      val buffer = newBuffer()
      buffers(groups) = buffer
      groups += 1
      buffer
    }
  }

  private def placeOf(found: BytesToBytesMap#Location): Int =
    Platform.getLong(found.getValueBase, found.getValueOffset).toInt

  private def estimate(): Unit = {
    val step = math.max(1, groups / sampled)
    val sample: Array[AnyRef] = Iterator.range(0, groups, step).map(buffers(_)).toArray
    val each = SizeEstimator.estimate(sample) / math.max(1, sample.length)
    val larger = recent.distinct.filter(_ != null).map { buffer =>
      math.max(0L, SizeEstimator.estimate(buffer) - each)
    }
    val needed = each * groups + larger.sum + 8L * buffers.length
    full = !memory.reserve(needed, needed + needed / 4)
    nextEstimate = rows + math.max(16L, rows / 8)
  }

  /** Begins to return and to forget the groups, in the order in which they were added. */
  def drain(): Groups = new Groups

  /** The groups that are left, one at a time. Rows are valid until the next one is asked for. */
  final class Groups {
    private val entries = keys.destructiveIterator()
    private val share = math.max(1, groups / 16)
    private var returned = 0

    val key: UnsafeRow = new UnsafeRow(keyFields)
    var buffer: InternalRow = _

    /** Moves to the next group; false if there is none, and then all memory is free. */
    def next(): Boolean =
      if (!entries.hasNext) {
        free()
        false
      } else {
        val entry = entries.next()
        key.pointTo(entry.getKeyBase, entry.getKeyOffset, entry.getKeyLength)
        val at = placeOf(entry)
        buffer = buffers(at)
        buffers(at) = null
        returned += 1
        // Operators above need memory for what they are given.
        if (returned % share == 0) memory.release(memory.getUsed / 16)
        true
      }
  }

  /** Frees everything; again and again is allowed. */
  def free(): Unit = {
    keys.free()
    memory.release(memory.getUsed)
    buffers = Array.empty
    java.util.Arrays.fill(recent.asInstanceOf[Array[AnyRef]], null)
    groups = 0
  }
}

private[aggregates] object GroupTable {

  // As Spark's hash aggregation begins.
  private val initialCapacity = 1024 * 16

  /** Smaller than Spark's usual 64 MiB, which a table of a few groups does not need. */
  private val pageBytes = 4L << 20

  /** Groups whose buffers are measured at an estimate. */
  private val sampled = 32

  private val maxGroups = 1 << 29

  /** Memory of objects on the heap, which only their owner can free. */
  private final class HeapMemory(manager: TaskMemoryManager)
      extends MemoryConsumer(manager, MemoryMode.ON_HEAP) {

    /** Whether the task has `needed` bytes for it; takes up to `wanted` if they are there. */
    def reserve(needed: Long, wanted: Long): Boolean = {
      if (wanted > getUsed) { val _ = acquireMemory(wanted - getUsed) }
      getUsed >= needed
    }

    def release(bytes: Long): Unit = if (bytes > 0) freeMemory(bytes)

    override def spill(size: Long, trigger: MemoryConsumer): Long = 0L
  }
}
