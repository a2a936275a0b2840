package io.selinger.core

import com.google.common.collect.MapMaker
import java.util.concurrent.ConcurrentMap

/**
 * What one pass of Spark's planner over one plan shares: the time that our rules have used, results
 * that several nodes need, and how much memory has been promised.
 *
 * A pass lives on the thread that plans. Results are kept under weak identity keys, so a pass that
 * is never followed by another holds nothing alive.
 */
final class PlanningPass {

  private var usedNanos = 0L
  private var promises = Map.empty[AnyRef, Double]
  private val results: ConcurrentMap[AnyRef, AnyRef] =
    new MapMaker().weakKeys().concurrencyLevel(1).makeMap[AnyRef, AnyRef]()

  def usedMs: Double = usedNanos / 1e6

  def spend(nanos: Long): Unit = usedNanos += nanos

  /** Memory promised in this pass to others than `holder`, in bytes. */
  def promisedBeside(holder: AnyRef): Double =
    promises.collect { case (other, bytes) if other != holder => bytes }.sum

  /** Promises memory for as long as the query runs; the same holder is counted once. */
  def promise(holder: AnyRef, bytes: Double): Unit =
    promises = promises.updated(holder, math.max(bytes, promises.getOrElse(holder, 0.0)))

  /** `compute` once for each `node` object of this pass. Results must not hold the node. */
  def memo[A <: AnyRef](node: AnyRef)(compute: => A): A = results.get(node) match {
    case null =>
      val result = compute
      results.put(node, result)
      result
    case known => known.asInstanceOf[A]
  }
}

object PlanningPass {
  private val passes = new ThreadLocal[PlanningPass]

  /** Called with the root of each plan that Spark's planner starts on. */
  def start(): PlanningPass = {
    val pass = new PlanningPass
    passes.set(pass)
    pass
  }

  def current: PlanningPass = Option(passes.get()).getOrElse(start())
}
