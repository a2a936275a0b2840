package io.selinger.core

import io.selinger.conf.SelingerConf
import io.selinger.testing.SharedSession
import java.util.concurrent.atomic.AtomicReference
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.selinger.ClonedSession
import org.scalatest.funsuite.AnyFunSuite

/** Rules in the late batch of a session, which Spark has no injection point for. */
class LateRulesSuite extends AnyFunSuite with SharedSession {
  import LateRulesSuite._

  /** Who ran, in which order, each once, for one query. */
  private def ran(session: SparkSession): Seq[String] = {
    calls.set(Nil)
    assert(session.range(3).count() == 3)
    calls.get.distinct
  }

  private val extension: SparkSessionExtensions => Unit =
    extensions => twice.hooks.foreach(_.inject(extensions))

  test("a rule may have several late hooks: each runs, in their order, in every session") {
    withSession(extension) { session =>
      val first = ran(session)
      assert(first.map(_.takeWhile(_ != ' ')) == Seq("first", "second"))
      assert(ran(session) == first)
      // A new session has rules of its own, and so has a clone.
      val sessions = Seq(session.newSession(), ClonedSession.of(session))
      sessions.foreach { other =>
        val others = ran(other)
        assert(others.map(_.takeWhile(_ != ' ')) == Seq("first", "second"))
        assert(others.intersect(first).isEmpty)
        assert(other.experimental.extraOptimizations.size == 2)
      }
      assert(ran(session) == first)
    }
  }

  test("rules that the user has appended stay where they are") {
    withSession(extension) { session =>
      ran(session)
      session.experimental.extraOptimizations = session.experimental.extraOptimizations :+ UsersRule
      assert(ran(session).last == "user")
      val clone = ClonedSession.of(session)
      assert(ran(clone).map(_.takeWhile(_ != ' ')) == Seq("first", "second", "user"))
    }
  }

  test("threads that begin with a session at the same time append each rule once") {
    withSession(extension) { session =>
      val threads = (1 to 8).map(_ => new Thread(() => { val _ = session.range(3).count() }))
      threads.foreach(_.start())
      threads.foreach(_.join())
      assert(session.experimental.extraOptimizations.size == 2)
    }
  }
}

object LateRulesSuite {

  private val calls = new AtomicReference[Seq[String]](Nil)

  private def note(name: String): Unit = { val _ = calls.updateAndGet(_ :+ name) }

  private object UsersRule extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      note("user")
      plan
    }
  }

  private object twice extends RuleDescription("twice", RuleKind.Logical, "Runs at two places.") {
    private def late(name: String) = Hook.LateBatch("Test.") { _ =>
      new GuardedRule(twice, AlwaysOn) {
        override protected def rewrite(plan: LogicalPlan): LogicalPlan = {
          note(s"$name of ${System.identityHashCode(this)}")
          plan
        }
      }
    }
    override def hooks: Seq[Hook] = Seq(late("first"), late("second"))
    override def reasons: Seq[Reason] = Nil
    override def example: String = "SELECT 1"
  }

  /** The session's switches, and a rule that it does not know. */
  private object AlwaysOn extends Switches {
    override def mode: Mode = SelingerConf.switches.mode
    override def enabled(rule: RuleDescription): Boolean = true
    override def failOnError: Boolean = true
    override def budgetMs: Long = SelingerConf.switches.budgetMs
  }
}
