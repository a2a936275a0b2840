package io.selinger.core

import com.google.common.collect.MapMaker
import java.util.concurrent.ConcurrentMap
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import scala.collection.mutable

/**
 * The name and type of something that a pass computes for single nodes. Keys are objects, so two
 * rules never share a slot by accident.
 *
 * @param ofQuery whether what a pass keeps under this key goes on to the next pass of the same query
 */
final class PassKey[A <: AnyRef](val name: String, val ofQuery: Boolean = false)

/**
 * Something that follows from the plan that a pass works on, such as the columns it joins by. It is
 * computed when a rule first asks for it, and again when the pass goes on with another plan.
 */
abstract class PlanFact[A <: AnyRef] {
  private[selinger] def compute(root: LogicalPlan): A

  /** What holds where no plan is known. */
  private[selinger] def unknown: A

  /** Of the plan that is being planned on this thread. */
  final def current: A = PlanningPass.current.fact(this)
}

/**
 * What one pass of Spark over one query shares among rules: the time that they have used, results
 * that several of them need, and how much memory has been promised.
 *
 * A pass lives on the thread that plans, and ends when that thread begins another. Until then it keeps
 * the plan that it works on, and what is kept for the whole query; results for single nodes are kept
 * under weak identity keys.
 */
final class PlanningPass private (owner: Option[AnyRef]) {

  private var root = Option.empty[LogicalPlan]
  private var usedNanos = 0L
  private var runningSince = Option.empty[Long]
  private var promises = Map.empty[Int, Double]
  private val ofPass = mutable.Map.empty[PassKey[_], AnyRef]
  private val facts = mutable.Map.empty[PlanFact[_], AnyRef]
  private val ofNodes = mutable.Map.empty[PassKey[_], ConcurrentMap[AnyRef, AnyRef]]
  private val decisions = weakMap[Seq[Decision]]()
  private var wasCutShort = false

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

  /** Goes on with this plan: what was computed for another one is forgotten, time used is not. */
  def workOn(plan: LogicalPlan): PlanningPass = {
    if (!root.exists(_ eq plan)) {
      root = Some(plan)
      facts.clear()
      ofNodes.clear()
    }
    this
  }

  /** Says that some statistics would be better with more time: what follows from them is not kept. */
  def cutShort(): Unit = wasCutShort = true

  /** Whether that was said in this pass. */
  def isCutShort: Boolean = wasCutShort

  /** Memory promised in this pass to others than `holder` (a plan's semantic hash), in bytes. */
  def promisedBeside(holder: Int): Double =
    promises.collect { case (other, bytes) if other != holder => bytes }.sum

  /** Promises memory for as long as the query runs; the same holder is counted once. */
  def promise(holder: Int, bytes: Double): Unit =
    promises = promises.updated(holder, math.max(bytes, promises.getOrElse(holder, 0.0)))

  /** Keeps what a rule says about a leaf, in place of what it said before; see [[informed]]. */
  def inform(leaf: AnyRef, decision: Decision): Unit = {
    val others = informed(leaf).filterNot(_.rule == decision.rule)
    val _ = decisions.put(leaf, others :+ decision)
  }

  /** What rules said about a leaf in this pass. Leaves are shared among queries: not kept there. */
  def informed(leaf: AnyRef): Seq[Decision] = Option(decisions.get(leaf)).getOrElse(Nil)

  /** `compute` once for each `node` object of the plan. Results must not hold the node. */
  def memo[A <: AnyRef](key: PassKey[A], node: AnyRef)(compute: => A): A = {
    val known = ofNodes.getOrElseUpdate(key, weakMap[AnyRef]())
    known.get(node) match {
      case null =>
        val result = compute
        known.put(node, result)
        result
      case result => typed(result)
    }
  }

  /** What this pass keeps under `key`, if anything yet. */
  def get[A <: AnyRef](key: PassKey[A]): Option[A] = ofPass.get(key).map(typed[A])

  def put[A <: AnyRef](key: PassKey[A], value: A): Unit = ofPass.update(key, value)

  private[core] def fact[A <: AnyRef](fact: PlanFact[A]): A = facts.get(fact) match {
    case Some(known) => typed(known)
    case None =>
      val result = root.fold(fact.unknown)(fact.compute)
      facts.update(fact, result)
      result
  }

  /** Goes on as if `fact` had been found in the plan. */
  def assume[A <: AnyRef](fact: PlanFact[A], value: A): Unit = facts.update(fact, value)

  // Sound, since a key or fact of type A is only ever stored with values of type A.
  private def typed[A](value: AnyRef): A = value.asInstanceOf[A]

  private def continue(before: PlanningPass): PlanningPass = {
    ofPass ++= before.ofPass.filter(_._1.ofQuery)
    this
  }

  private def belongsTo(tracker: AnyRef): Boolean = owner.exists(_ eq tracker)
}

object PlanningPass {
  private val passes = new ThreadLocal[PlanningPass]

  def current: PlanningPass = Option(passes.get()).getOrElse(start())

  /** A new pass on this thread, which knows no plan yet. */
  def start(): PlanningPass = begin(None)

  private def begin(owner: Option[AnyRef]): PlanningPass = {
    val pass = new PlanningPass(owner)
    passes.set(pass)
    pass
  }

  /** The pass of Spark's optimizer over one query, subqueries included: all its rules share it. */
  private[selinger] def optimizing(plan: LogicalPlan): PlanningPass = {
    val pass = QueryPlanningTracker.get match {
      case Some(tracker) if current.belongsTo(tracker) => current
      case tracker => begin(tracker)
    }
    pass.workOn(plan)
  }

  /**
   * A new pass of Spark's planner, over the root of what it plans: all strategies share it. It goes on
   * with what the passes before it on this thread have kept of the query.
   */
  private[core] def planning(root: LogicalPlan): PlanningPass = {
    val before = current
    start().continue(before).workOn(root)
  }
}
