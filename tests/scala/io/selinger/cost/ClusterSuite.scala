package io.selinger.cost

import io.selinger.testing.SharedSession
import org.scalatest.funsuite.AnyFunSuite

class ClusterSuite extends AnyFunSuite with SharedSession {

  private val heap = Runtime.getRuntime.maxMemory.toDouble

  test("a local session: its cores, one process, one heap") {
    val cluster = Cluster.of(spark)
    assert(cluster.slots == 2 && cluster.executors == 1)
    assert(cluster.driverHeapBytes == heap && cluster.executorHeapBytes == heap)
    assert(cluster.smallerHeapBytes == heap)
  }

  test("a task's memory is less than its share of the pool that Spark manages") {
    val managed = (heap - 300 * (1 << 20)) * 0.6
    val cluster = Cluster.of(spark)
    assert(cluster.taskMemoryBytes > 0)
    assert(cluster.taskMemoryBytes <= managed / 2)
  }

  test("the smaller heap limits what may be broadcast") {
    assert(Cluster(8, 2, 1e9, 4e9, 1e8).smallerHeapBytes == 1e9)
    assert(Cluster(8, 2, 4e9, 1e9, 1e8).smallerHeapBytes == 1e9)
  }
}
