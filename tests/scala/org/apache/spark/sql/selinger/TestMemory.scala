package org.apache.spark.sql.selinger

import org.apache.spark.SparkConf
import org.apache.spark.internal.config.MEMORY_OFFHEAP_ENABLED
import org.apache.spark.memory.{TaskMemoryManager, UnifiedMemoryManager}

/** Memory of a task without a Spark. */
object TestMemory {

  /** @param bytes that the task may have */
  def manager(bytes: Long): TaskMemoryManager = {
    val conf = new SparkConf(false).set(MEMORY_OFFHEAP_ENABLED, false)
    new TaskMemoryManager(new UnifiedMemoryManager(conf, math.max(1L, bytes), 0, 1), 0)
  }
}
