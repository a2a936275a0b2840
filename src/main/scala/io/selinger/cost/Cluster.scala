package io.selinger.cost

import org.apache.spark.{SparkConf, SparkEnv}
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
    taskMemoryBytes: Double
) {

  def smallerHeapBytes: Double = math.min(driverHeapBytes, executorHeapBytes)
}

object Cluster {

  // Spark's own constants: what it keeps for itself, and the heap of an executor by default.
  private val reservedBytes = 300.0 * (1 << 20)
  private val defaultHeap = "1g"

  private val local = "local(?:\\[([0-9]+|\\*).*\\])?".r
  private val localCluster = "local-cluster\\[\\s*([0-9]+)\\s*,\\s*([0-9]+)\\s*,.*\\]".r

  /** The cluster of this session, from its configuration: no call to it. */
  def of(session: SparkSession): Cluster = {
    // Many rules ask for each plan, and the context would copy all of its settings each time.
    val conf = Option(SparkEnv.get).fold(session.sparkContext.getConf)(_.conf)
    val real = of(
      session.sparkContext.master,
      conf,
      session.sparkContext.defaultParallelism,
      Runtime.getRuntime.maxMemory.toDouble
    )
    SimulatedCluster.current.fold(real)(simulated(real, conf, _))
  }

  /** The cluster that `wanted` describes, and `real` where it says nothing. */
  private[cost] def simulated(real: Cluster, conf: SparkConf, wanted: SimulatedCluster): Cluster = {
    val taskCpus = math.max(1, conf.getInt("spark.task.cpus", 1))
    val perExecutor = math.max(1, real.slots / math.max(1, real.executors))
    val slots = wanted.cores.fold(real.slots)(cores => math.max(1, cores / taskCpus))
    val executors = wanted.executors.getOrElse(
      if (wanted.cores.isEmpty) real.executors else math.max(1, slots / perExecutor)
    )
    val tasks = math.max(1, (slots + executors - 1) / executors)
    val described = of(
      conf,
      slots,
      executors,
      Some(tasks),
      wanted.driverHeapBytes.getOrElse(real.driverHeapBytes),
      wanted.executorHeapBytes.getOrElse(real.executorHeapBytes)
    )
    // What tasks get follows from executors; a driver says nothing of it.
    val executorsDescribed =
      wanted.cores.isDefined || wanted.executors.isDefined || wanted.executorHeapBytes.isDefined
    if (executorsDescribed) described
    else described.copy(taskMemoryBytes = real.taskMemoryBytes)
  }

  /**
   * @param parallelism Spark's default parallelism: a user's setting, or the cores that have
   *   registered so far, so at most a hint at how many tasks run at a time
   */
  private[cost] def of(
      master: String,
      conf: SparkConf,
      parallelism: Int,
      driverHeap: Double
  ): Cluster = {
    val taskCpus = math.max(1, conf.getInt("spark.task.cpus", 1))
    master match {
      case local(threads) =>
        val slots = Option(threads) match {
          case None => 1
          case Some("*") => Runtime.getRuntime.availableProcessors
          case Some(count) => count.toInt
        }
        of(conf, math.max(1, slots / taskCpus), 1, Some(slots), driverHeap, driverHeap)
      case _ =>
        val heap = bytes(conf.get("spark.executor.memory", defaultHeap))
        val tasks = coresOf(master, conf).map(cores => math.max(1, cores / taskCpus))
        val executors = executorsOf(master, conf)
          .getOrElse(math.max(1, parallelism / tasks.getOrElse(1)))
        val slots = math.max(parallelism, executors * tasks.getOrElse(1))
        of(conf, slots, executors, tasks, driverHeap, heap)
    }
  }

  /** Cores of one executor; a standalone cluster gives it all of a worker's, unless told otherwise. */
  private def coresOf(master: String, conf: SparkConf): Option[Int] = master match {
    case localCluster(_, cores) => Some(cores.toInt)
    case _ =>
      conf
        .getOption("spark.executor.cores")
        .map(_.toInt)
        .orElse(if (master.startsWith("spark://")) None else Some(1))
  }

  private def executorsOf(master: String, conf: SparkConf): Option[Int] = master match {
    case localCluster(workers, _) => Some(workers.toInt)
    case _ =>
      Seq("spark.dynamicAllocation.maxExecutors", "spark.executor.instances")
        .flatMap(conf.getOption)
        .flatMap(_.toIntOption)
        .find(count => count > 0 && count < Int.MaxValue)
  }

  /** @param tasks at a time on one executor; unknown means that none is sure of any memory */
  private def of(
      conf: SparkConf,
      slots: Int,
      executors: Int,
      tasks: Option[Int],
      driverHeap: Double,
      executorHeap: Double
  ): Cluster = {
    val pool =
      if (conf.getBoolean("spark.memory.offHeap.enabled", false)) {
        bytes(conf.get("spark.memory.offHeap.size", "0"))
      } else {
        math.max(0.0, executorHeap - reservedBytes) * conf.getDouble("spark.memory.fraction", 0.6)
      }
    // Execution may take what storage does not use, but cached blocks keep their protected share.
    val sure = pool * (1.0 - conf.getDouble("spark.memory.storageFraction", 0.5) / 2)
    Cluster(slots, executors, driverHeap, executorHeap, tasks.fold(0.0)(sure / _))
  }

  private def bytes(text: String): Double =
    JavaUtils.byteStringAs(text, ByteUnit.BYTE).toDouble
}
