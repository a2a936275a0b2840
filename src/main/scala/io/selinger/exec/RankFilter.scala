package io.selinger.exec

import io.selinger.exec.RankFilter._
import java.util.{HashMap => JHashMap}
import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, MemoryMode, TaskMemoryManager}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.collection.unsafe.sort.PrefixComparator

/**
 * Which rows of one task can be among the first `limit` of their partition, by the numbers that stand for
 * their sort keys (sort prefixes). Of each partition it knows the `limit` smallest numbers so far: a row
 * with a larger one has at least that many rows before it. Rows of equal numbers may still differ in
 * their keys, so they are kept.
 *
 * It may keep any row more, so it gives up freely: a partition for which there is no memory keeps all of
 * its rows, and a filter that keeps nearly all rows stops. What it takes is small beside what it spares
 * the sort above, so it gives nothing back before the task ends.
 *
 * @param countsValues whether ranks count different values (`dense_rank`) instead of rows
 * @param prefixes negative where the first prefix comes first
 */
final class RankFilter(
    limit: Int,
    countsValues: Boolean,
    prefixes: PrefixComparator,
    memory: TaskMemoryManager
) {

  private val partitions = new JHashMap[UnsafeRow, Smallest]
  private val reserved = new Reserved
  private var rows = 0
  private var kept = 0
  private var stopped = false

  /** @param partition the key of the row's partition; not held after the call */
  def keeps(partition: UnsafeRow, prefix: Long): Boolean = stopped || {
    val known = partitions.get(partition)
    val numbers = if (known == null) added(partition) else known
    val keeps = numbers == null || numbers.admits(prefix)
    rows += 1
    if (keeps) kept += 1
    if (rows == window) look()
    keeps
  }

  /** Null if there is no memory for it. */
  private def added(partition: UnsafeRow): Smallest =
    if (!reserved.take(partition.getSizeInBytes + partitionBytes)) null
    else {
      val numbers = new Smallest
      val _ = partitions.put(partition.copy(), numbers)
      numbers
    }

  private def look(): Unit = {
    if (kept > mostKept * rows) stop() else reserved.askAgain()
    rows = 0
    kept = 0
  }

  /** Keeps every row from now on, and needs no memory: when it does not help, or the input has ended. */
  def stop(): Unit = {
    stopped = true
    partitions.clear()
    free()
  }

  private def free(): Unit = reserved.giveBack()

  /** The smallest numbers of a partition, in their order. */
  private final class Smallest {
    private var numbers = new Array[Long](math.min(limit, leastNumbers))
    private var size = 0

    def admits(number: Long): Boolean = {
      val last = if (size == 0) -1 else prefixes.compare(number, numbers(size - 1))
      if (size == limit && last >= 0) last == 0
      else {
        val place = if (last >= 0) size else placeOf(number)
        val repeated =
          countsValues && place > 0 && prefixes.compare(numbers(place - 1), number) == 0
        if (!repeated && hasRoom()) insert(number, place)
        true
      }
    }

    /** The first place whose number is larger. */
    private def placeOf(number: Long): Int = {
      var (low, high) = (0, size)
      while (low < high) {
        val middle = (low + high) >>> 1
        if (prefixes.compare(numbers(middle), number) <= 0) low = middle + 1 else high = middle
      }
      low
    }

    // Without room no number is forgotten for a larger one, so what is known stays true.
    private def hasRoom(): Boolean = size < numbers.length || size == limit || {
      val larger = math.min(limit, 2 * size)
      val fits = reserved.take(8L * (larger - size))
      if (fits) numbers = java.util.Arrays.copyOf(numbers, larger)
      fits
    }

    private def insert(number: Long, place: Int): Unit = {
      if (size < limit) size += 1
      System.arraycopy(numbers, place, numbers, place + 1, size - 1 - place)
      numbers(place) = number
    }
  }

  /** The memory of the task that partitions take. */
  private final class Reserved extends MemoryConsumer(memory, MemoryMode.ON_HEAP) {
    private var taken = 0L
    private var isRefused = false

    def take(bytes: Long): Boolean = {
      if (taken + bytes > getUsed && taken + bytes <= mostBytes && !isRefused) {
        val _ = acquireMemory(math.max(bytes, leastBytes))
        // Asking can make other operators spill, so not for each row.
        isRefused = taken + bytes > getUsed
      }
      val fits = taken + bytes <= getUsed
      if (fits) taken += bytes
      fits
    }

    def askAgain(): Unit = isRefused = false

    def giveBack(): Unit = {
      freeMemory(getUsed)
      taken = 0L
    }

    // Another thread may ask while a row is looked up.
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0L
  }
}

object RankFilter {

  /** The filter of the task that runs, which gives its memory back when the task ends. */
  def ofTask(limit: Int, countsValues: Boolean, prefixes: PrefixComparator): RankFilter = {
    val task = TaskContext.get()
    val filter = new RankFilter(limit, countsValues, prefixes, TaskMemory.of(task))
    val _ = task.addTaskCompletionListener[Unit](_ => filter.free())
    filter
  }

  /** Rows after which it looks whether it leaves enough of them out. */
  private val window = 1 << 20

  /** The share of rows beyond which it stops. */
  private val mostKept = 0.9

  private val leastNumbers = 8

  // An entry of the map, the row and the array of its key, and the first numbers.
  private val partitionBytes = 144L + 8L * leastNumbers

  private val leastBytes = 64L << 10

  // Some 150,000 partitions.
  private val mostBytes = 32L << 20
}
