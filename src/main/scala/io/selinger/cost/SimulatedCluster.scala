package io.selinger.cost

import io.selinger.conf.{SelingerConf, Setting}

/**
 * Another cluster than the one at hand, as far as the settings `spark.selinger.cluster.*` say: what
 * a plan would be there.
 */
final case class SimulatedCluster(
    cores: Option[Int],
    executors: Option[Int],
    executorHeapBytes: Option[Double],
    driverHeapBytes: Option[Double]
)

object SimulatedCluster {

  /** What the session's settings describe, if they describe any. */
  def current: Option[SimulatedCluster] = {
    def count(setting: Setting[Long]) =
      Some(setting.value).filter(_ > 0).map(_.min(Int.MaxValue.toLong).toInt)
    def bytes(setting: Setting[Long]) = Some(setting.value).filter(_ > 0).map(_.toDouble)
    Some(
      SimulatedCluster(
        count(SelingerConf.CLUSTER_CORES),
        count(SelingerConf.CLUSTER_EXECUTORS),
        bytes(SelingerConf.CLUSTER_EXECUTOR_MEMORY),
        bytes(SelingerConf.CLUSTER_DRIVER_MEMORY)
      )
    ).filterNot(_ == SimulatedCluster(None, None, None, None))
  }
}
