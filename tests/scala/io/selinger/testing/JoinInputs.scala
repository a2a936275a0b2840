package io.selinger.testing

import io.selinger.core.{Origin, Quantity}
import io.selinger.cost.Cluster
import io.selinger.estimate.PlanEstimate
import io.selinger.strategy.JoinInput

/** Hand-made inputs of joins. */
object JoinInputs {

  private val mib: Double = 1 << 20

  def cluster(
      slots: Int = 4,
      executors: Int = 2,
      heapMib: Double = 4096,
      taskMib: Double = 256
  ): Cluster =
    Cluster(slots, executors, heapMib * mib, heapMib * mib, taskMib * mib)

  def estimate(rows: Double, upperBound: Double, bound: Option[Double]): PlanEstimate =
    PlanEstimate(Quantity(rows, Origin.Derived), upperBound, bound)

  /** A side that was counted, unless `upperBound` and `bound` say otherwise. */
  def side(
      rows: Double,
      upperBound: Option[Double] = None,
      bounded: Boolean = true,
      rowBytes: Double = 32,
      shuffleExists: Boolean = false,
      largestTaskShare: Double = 1.0,
      promisedBytes: Double = 0,
      widthIsKnown: Boolean = true,
      singleKey: Boolean = false
  ): JoinInput = {
    val most = upperBound.getOrElse(rows)
    JoinInput(
      estimate(rows, most, if (bounded) Some(most) else None),
      rowBytes,
      widthIsKnown,
      keyBytes = 16,
      numericKey = true,
      shuffleExists,
      singleKey,
      promisedBytes,
      largestTaskShare
    )
  }
}
