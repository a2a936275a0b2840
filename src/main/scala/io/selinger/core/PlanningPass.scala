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
  private var runningSince = Option.empty[Long]
  private var promises = Map.empty[Int, Double]
  private val results = weakMap[AnyRef]()
  private val notes = weakMap[AnyRef]()
  private val decisions = weakMap[Seq[Decision]]()

  private def weakMap[V <: AnyRef](): ConcurrentMap[AnyRef, V] =
    new MapMaker().weakKeys().concurrencyLevel(1).makeMap[AnyRef, V]()

  /** Time used up in this pass, that of a rule that still runs included. */
  def usedMs: Double = (usedNanos + runningSince.fold(0L)(System.nanoTime() - _)) / 1e6

  /** Runs `body` on this pass's time. */
  def timed[A](body: => A): A = runningSince match {
    case Some(_) => body
    case None =>
      val start = System.nanoTime()
      runningSince = Some(start)
      try body
      finally {
        runningSince = None
        usedNanos += System.nanoTime() - start
      }
  }

  /** Memory promised in this pass to others than `holder` (a plan's semantic hash), in bytes. */
  def promisedBeside(holder: Int): Double =
    promises.collect { case (other, bytes) if other != holder => bytes }.sum

  /** Promises memory for as long as the query runs; the same holder is counted once. */
  def promise(holder: Int, bytes: Double): Unit =
    promises = promises.updated(holder, math.max(bytes, promises.getOrElse(holder, 0.0)))

  /** Keeps a fact about `node` for the rest of the pass. */
  def note(node: AnyRef, fact: AnyRef): Unit = {
    val _ = notes.put(node, fact)
  }

  /** Keeps what a rule says about a leaf, in place of what it said before; see [[informed]]. */
  def inform(leaf: AnyRef, decision: Decision): Unit = {
    val others = informed(leaf).filterNot(_.rule == decision.rule)
    val _ = decisions.put(leaf, others :+ decision)
  }

  /** What rules said about a leaf in this pass. Leaves are shared among queries: not kept there. */
  def informed(leaf: AnyRef): Seq[Decision] = Option(decisions.get(leaf)).getOrElse(Nil)

  def noted[A <: AnyRef](node: AnyRef): Option[A] = Option(notes.get(node)).map(_.asInstanceOf[A])

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
