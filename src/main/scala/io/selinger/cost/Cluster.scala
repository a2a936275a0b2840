package io.selinger.cost

import org.apache.spark.SparkConf
import org.apache.spark.network.util.{ByteUnit, JavaUtils}
import org.apache.spark.sql.classic.SparkSession

/**
 * What a query may use.
 *
 * @param slots tasks that run at a time, on all executors together
 * @param executors processes that each need a copy of what is broadcast
 * @param driverHeapBytes heap of the driver, where broadcasts are built
 * @param executorHeapBytes heap of one executor, where they are kept
 * @param taskMemoryBytes execution memory that one task is sure to get when all slots are busy
 */
final case class Cluster(
    slots: Int,
    executors: Int,
    driverHeapBytes: Double,
    executorHeapBytes: Double,
    taskMemoryBytes: Double) {

  def smallerHeapBytes: Double = math.min(driverHeapBytes, executorHeapBytes)
}

object Cluster {

  // Spark's own constants: what it keeps for itself, and the heap of an executor by default.
  private val reservedBytes = 300.0 * (1 << 20)
  private val defaultHeap = "1g"

  /** The cluster of this session, from its configuration: no call to it. */
  def of(session: SparkSession): Cluster = {
    val context = session.sparkContext
    val conf = context.getConf
    val driverHeap = Runtime.getRuntime.maxMemory.toDouble
    val slots = math.max(1, context.defaultParallelism)
    if (context.isLocal) {
      of(conf, slots, 1, driverHeap, driverHeap)
    } else {
      val heap = bytes(conf.get("spark.executor.memory", defaultHeap))
      val perExecutor = conf
        .getOption("spark.executor.cores")
        .map(_.toInt / math.max(1, conf.getInt("spark.task.cpus", 1)))
        .filter(_ > 0)
        .getOrElse(1)
      of(conf, slots, math.max(1, slots / perExecutor), driverHeap, heap)
    }
  }

  private def of(
      conf: SparkConf,
      slots: Int,
      executors: Int,
      driverHeap: Double,
      executorHeap: Double): Cluster = {
    val pool =
      if (conf.getBoolean("spark.memory.offHeap.enabled", false)) {
        bytes(conf.get("spark.memory.offHeap.size", "0"))
      } else {
        math.max(0.0, executorHeap - reservedBytes) * conf.getDouble("spark.memory.fraction", 0.6)
      }
    // Execution may take what storage does not use, but cached blocks keep their protected share.
    val sure = pool * (1.0 - conf.getDouble("spark.memory.storageFraction", 0.5) / 2)
    val tasks = math.max(1, math.ceil(slots.toDouble / executors).toInt)
    Cluster(slots, executors, driverHeap, executorHeap, sure / tasks)
  }

  private def bytes(text: String): Double =
    JavaUtils.byteStringAs(text, ByteUnit.BYTE).toDouble
}

/** Memory of hash tables that joins build from rows. */
object HashTable {

  /**
   * Bytes of Spark's hashed relation: the rows, a key beside each unless it is a single number, and
   * a pointer array at most half full. (`LongToUnsafeRowMap`, `BytesToBytesMap`.)
   */
  def bytes(rows: Double, rowBytes: Double, keyBytes: Double, numericKey: Boolean): Double =
    if (numericKey) rows * (rowBytes + 8.0 + pointers)
    else rows * (rowBytes + keyBytes + 16.0 + pointers)

  private val pointers = 32.0
}
