package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.RuleDescription
import io.selinger.ordering.ReorderJoins
import io.selinger.strategy.SelectJoinOperator
import io.selinger.testing.{ExampleTables, Plans, SharedSession}
import java.util.concurrent.{Callable, Executors}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.selinger.ClonedSession
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._

/** Several threads and several sessions of one JVM at the same time. */
class SessionsSuite extends AnyFunSuite with SharedSession {

  private val threads = 6

  private def atOnce[A](count: Int)(body: Int => A): Seq[A] = {
    val pool = Executors.newFixedThreadPool(count)
    try {
      val tasks = (0 until count).map(i => (() => body(i)): Callable[A])
      pool.invokeAll(tasks.asJava).asScala.toSeq.map(_.get)
    } finally pool.shutdown()
  }

  private val queries = Seq(ReorderJoins.example, SelectJoinOperator.example)

  /** Plans the queries without running them, so that nothing is planned again with measured sizes. */
  private def plan(session: SparkSession): Seq[String] =
    queries.map { query =>
      val plan = Plans.execution(session.sql(query)).executedPlan
      assert(plan.output.nonEmpty)
      Plans.operators(plan).map(_.nodeName).mkString(" ")
    }

  private def calls(session: SparkSession): Map[String, Long] =
    session
      .sql("SELECT rule, calls, fired, ms FROM selinger_rules()")
      .collect()
      .map { row =>
        assert(row.getLong(2) <= row.getLong(1) && row.getDouble(3) >= 0.0)
        row.getString(0) -> row.getLong(1)
      }
      .toMap

  private def callsOf(session: SparkSession, rule: RuleDescription): Long = calls(session)(rule.id)

  test("threads of one session make the same plans as one thread, and each call is counted") {
    withSession(new SelingerExtension) { session =>
      ExampleTables.register(session)
      plan(session)
      // To ask for the counters is a query as well.
      val (before, again) = (calls(session), calls(session))
      def asking(rule: RuleDescription) = again(rule.id) - before(rule.id)
      val alone = plan(session)
      val start = calls(session)
      def planning(rule: RuleDescription) = start(rule.id) - again(rule.id) - asking(rule)
      val times = 5
      val plans = atOnce(threads) { _ =>
        (1 to times).map { _ =>
          calls(session)
          plan(session)
        }
      }
      plans.flatten.foreach(found => assert(found == alone))
      // What was asked of leaves depends on what another thread has read already; this does not.
      Seq(ReorderJoins, SelectJoinOperator).foreach { rule =>
        assert(planning(rule) > 0, rule)
        val expected = threads * times * (planning(rule) + asking(rule)) + asking(rule)
        assert(callsOf(session, rule) - start(rule.id) == expected, rule)
      }
    }
  }

  test("each session counts its own calls, new ones and clones too, and has its own switches") {
    withSession(new SelingerExtension) { session =>
      ExampleTables.register(session)
      plan(session)
      val ofParent = callsOf(session, SelectJoinOperator)
      val (fresh, clone) = (session.newSession(), ClonedSession.of(session))
      val others = Seq(fresh, clone)
      others.foreach { other =>
        assert(callsOf(other, SelectJoinOperator) == 0)
        ExampleTables.register(other)
      }
      fresh.conf.set(SelingerConf.MODE.key, "off")
      atOnce(threads)(i => plan(others(i % 2)))
      assert(callsOf(fresh, SelectJoinOperator) == 0)
      assert(callsOf(clone, SelectJoinOperator) == threads / 2 * ofParent)
      assert(callsOf(session, SelectJoinOperator) == ofParent)
    }
  }

  test("an extension that is named twice is loaded once") {
    def callsWith(extensions: SelingerExtension*) =
      withSession(extensions: _*) { session =>
        ExampleTables.register(session)
        plan(session)
        calls(session)
      }
    val once = callsWith(new SelingerExtension)
    assert(once(SelectJoinOperator.id) > 0)
    assert(callsWith(new SelingerExtension, new SelingerExtension) == once)
  }

  test("a query counts for the session that it belongs to, whichever session is active") {
    withSession(new SelingerExtension) { session =>
      ExampleTables.register(session)
      val df = session.sql(SelectJoinOperator.example)
      val other = session.newSession()
      SparkSession.setActiveSession(other)
      df.collect()
      assert(callsOf(other, SelectJoinOperator) == 0)
      assert(callsOf(session, SelectJoinOperator) > 0)
    }
  }
}
