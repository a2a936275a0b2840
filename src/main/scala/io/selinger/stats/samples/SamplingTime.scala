package io.selinger.stats.samples

import io.selinger.conf.SelingerConf
import io.selinger.core.{PassKey, PlanningPass}

/** The time that reading values may take: all relations of a plan share it, within that of the plan. */
private[stats] object SamplingTime {

  private val key = new PassKey[java.lang.Double]("ms spent on samples")

  private def spentMs: Double = PlanningPass.current.get(key).fold(0.0)(_.doubleValue)

  def leftMs: Long = {
    val ours = SelingerConf.SAMPLING_BUDGET_MS.value - spentMs
    val plans = SelingerConf.PLANNING_BUDGET_MS.value - PlanningPass.current.usedMs
    math.max(0.0, math.min(ours, plans)).toLong
  }

  def add(ms: Double): Unit = PlanningPass.current.put(key, Double.box(spentMs + ms))
}
