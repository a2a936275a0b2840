package io.selinger.cost

import io.selinger.testing.SharedSession
import org.apache.spark.SparkConf
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

  private val gib = 1.0 * (1L << 30)

  private def cluster(master: String, parallelism: Int, settings: (String, String)*): Cluster =
    Cluster.of(master, new SparkConf(false).setAll(settings), parallelism, 2 * gib)

  test("local masters: a thread a slot, whatever the default parallelism") {
    assert(cluster("local", 9).slots == 1)
    assert(cluster("local[3]", 9).slots == 3)
    assert(cluster("local[3, 2]", 9).slots == 3)
    assert(cluster("local[*]", 9).slots == Runtime.getRuntime.availableProcessors)
    assert(cluster("local[4]", 9, "spark.task.cpus" -> "2").slots == 2)
    assert(cluster("local[4]", 9).executorHeapBytes == 2 * gib)
  }

  test("a cluster's executors: as many as are asked for, each with its heap and cores") {
    val found = cluster(
      "yarn",
      2,
      "spark.executor.instances" -> "5",
      "spark.executor.cores" -> "4",
      "spark.executor.memory" -> "8g"
    )
    assert(found.executors == 5 && found.slots == 20)
    assert(found.executorHeapBytes == 8 * gib && found.smallerHeapBytes == 2 * gib)
  }

  test("more tasks on an executor leave each less memory") {
    def memory(cores: Int) = cluster(
      "yarn",
      2,
      "spark.executor.instances" -> "2",
      "spark.executor.cores" -> cores.toString
    ).taskMemoryBytes
    assert(memory(1) > 0 && memory(1) > memory(4))
  }

  test("a local cluster has the workers that its master names") {
    val found = cluster("local-cluster[2,3,1024]", 6)
    assert(found.executors == 2 && found.slots == 6)
    assert(found.executorHeapBytes == gib)
  }

  test("on a standalone cluster of unknown cores no task is sure of any memory") {
    assert(cluster("spark://host:7077", 8).taskMemoryBytes == 0)
    assert(cluster("spark://host:7077", 8, "spark.executor.cores" -> "2").taskMemoryBytes > 0)
  }

  test("off-heap memory counts instead, where it is enabled") {
    val found = cluster(
      "yarn",
      2,
      "spark.executor.cores" -> "1",
      "spark.memory.offHeap.enabled" -> "true",
      "spark.memory.offHeap.size" -> "4g"
    )
    assert(found.taskMemoryBytes > 2 * gib && found.taskMemoryBytes <= 4 * gib)
  }

  // ---- simulation ---------------------------------------------------------------------------

  private val real = Cluster(2, 1, 2 * gib, 2 * gib, 1e8)

  private def simulated(wanted: SimulatedCluster) =
    Cluster.simulated(real, new SparkConf(false), wanted)

  private val nothing = SimulatedCluster(None, None, None, None)

  test("a simulated cluster: what is not described is as it is") {
    assert(simulated(nothing) == real)
    assert(simulated(nothing.copy(driverHeapBytes = Some(gib))) == real.copy(driverHeapBytes = gib))
    val cores = simulated(nothing.copy(cores = Some(1000)))
    assert(cores.slots == 1000 && cores.executors == 500 && cores.executorHeapBytes == 2 * gib)
  }

  test("a simulated cluster: executors share the cores, and tasks the memory") {
    val found = simulated(SimulatedCluster(Some(1000), Some(125), Some(32 * gib), Some(8 * gib)))
    assert(found.slots == 1000 && found.executors == 125)
    assert(found.driverHeapBytes == 8 * gib && found.smallerHeapBytes == 8 * gib)
    val pool = (32 * gib - 300 * (1 << 20)) * 0.6
    assert(found.taskMemoryBytes > 0 && found.taskMemoryBytes <= pool / 8)
    val alone = Cluster.simulated(
      real,
      new SparkConf(false).set("spark.task.cpus", "4"),
      SimulatedCluster(Some(1000), Some(125), Some(32 * gib), None)
    )
    assert(alone.slots == 250 && alone.taskMemoryBytes > found.taskMemoryBytes)
  }

  test("settings describe it for this session, and leave it alone when they are unset") {
    val before = Cluster.of(spark)
    withConf("spark.selinger.cluster.cores" -> "64") {
      assert(Cluster.of(spark).slots == 64)
    }
    withConf("spark.selinger.cluster.driverMemoryBytes" -> "1m") {
      assert(Cluster.of(spark).smallerHeapBytes == 1 << 20)
    }
    assert(Cluster.of(spark) == before)
  }

  test("the smaller heap limits what may be broadcast") {
    assert(Cluster(8, 2, 1e9, 4e9, 1e8).smallerHeapBytes == 1e9)
    assert(Cluster(8, 2, 4e9, 1e9, 1e8).smallerHeapBytes == 1e9)
  }
}
