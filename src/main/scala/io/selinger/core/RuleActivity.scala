package io.selinger.core

import com.google.common.collect.MapMaker
import java.util.concurrent.{ConcurrentHashMap, ConcurrentMap}
import java.util.concurrent.atomic.LongAdder
import org.apache.spark.sql.SparkSession

/**
 * How often each rule was called and acted in one session, and how long it took.
 *
 * @param calls while it was switched on
 * @param fired calls after which the plan, or what is known, was another one
 * @param ms of all calls, what it asked other rules for included
 */
final case class RuleActivity(calls: Long, fired: Long, ms: Double)

object RuleActivity {

  private final class Counters {
    val calls = new LongAdder
    val fired = new LongAdder
    val nanos = new LongAdder
  }

  // By session, each gone with it; as many counters as there are rules.
  private val sessions: ConcurrentMap[SparkSession, ConcurrentHashMap[String, Counters]] =
    new MapMaker().weakKeys().makeMap[SparkSession, ConcurrentHashMap[String, Counters]]()

  // Whether this thread plans what no user has asked for.
  private val silent = ThreadLocal.withInitial[java.lang.Boolean](() => false)

  private[core] def isSilent: Boolean = silent.get

  /** Runs `body`, whose calls of rules are not counted, and whose failures are not logged. */
  def uncounted[A](body: => A): A = {
    silent.set(true)
    try body
    finally silent.remove()
  }

  private def session: Option[SparkSession] =
    SparkSession.getActiveSession.orElse(SparkSession.getDefaultSession)

  /** Counts one call in the session of the calling thread. */
  private[core] def count(rule: RuleDescription, fired: Boolean, nanos: Long): Unit =
    if (!isSilent) session.foreach { session =>
      val counters = sessions
        .computeIfAbsent(session, _ => new ConcurrentHashMap[String, Counters]())
        .computeIfAbsent(rule.id, _ => new Counters)
      counters.calls.increment()
      if (fired) counters.fired.increment()
      counters.nanos.add(nanos)
    }

  /** Of a rule in the session of the calling thread. */
  def of(rule: RuleDescription): RuleActivity =
    session
      .flatMap(session => Option(sessions.get(session)))
      .flatMap(counters => Option(counters.get(rule.id)))
      .fold(RuleActivity(0L, 0L, 0.0)) { counters =>
        RuleActivity(counters.calls.sum, counters.fired.sum, counters.nanos.sum / 1e6)
      }
}
