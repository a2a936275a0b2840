package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Hook,
  OnDemandProbe,
  Outcome,
  Reason,
  RuleActivity,
  RuleDescription,
  RuleKind
}
import io.selinger.strategy.{CascadeGroupingSets, SelectAggregateOperator, SelectJoinOperator}
import io.selinger.testing.{
  Answer,
  ExampleTables,
  Grid,
  HookCall,
  Plans,
  ReasonQuery,
  SharedSession,
  StockPlan,
  Tables
}
import java.nio.file.{Files, Path, Paths}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, JoinHint}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * The laws that every rule keeps, checked for each rule of a registry without naming it: off means off,
 * a second run changes nothing, whatever goes wrong inside leaves the query working, the same answers,
 * and every reason that it can give is given by some query: the one in
 * `tests/sql/reasons/<rule>/<CODE>.sql`, or one that the suite names. No law holds because nothing ran:
 * each test also sees the rule at work.
 *
 * @param special reasons that no query in SQL can bring about
 * @param named queries for reasons that have no file
 */
abstract class RuleContract(
    registry: Registry,
    special: Map[(RuleDescription, Reason), SpecialCase] = Map.empty,
    named: Map[(RuleDescription, Reason), String] = Map.empty
) extends AnyFunSuite
    with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val folder = Paths.get(System.getProperty("selinger.root"), "tests", "sql")

  private def files(folder: Path): Seq[Path] = {
    val paths = Files.list(folder)
    try paths.iterator.asScala.filter(_.toString.endsWith(".sql")).toSeq.sortBy(_.toString)
    finally paths.close()
  }

  // Every tenth file: the equivalence suite is for them.
  private lazy val texts: Seq[String] = registry.rules.map(_.example) ++
    files(folder).zipWithIndex.collect { case (file, i) if i % 10 == 0 => Files.readString(file) }

  private def withTables[A](session: SparkSession)(body: => A): A = {
    Tables.register(session)
    ExampleTables.register(session)
    body
  }

  private val modeOff = SelingerConf.MODE.key -> "off"
  private val modeAdvise = SelingerConf.MODE.key -> "advise"

  /** Off by the mode, and by the rule's own switch: it must not even be called. */
  private def off(rule: RuleDescription, key: Any) = Grid.part(
    Seq(Seq(rule.switch -> "true", modeOff), Seq(rule.switch -> "false")),
    share = 0.5,
    (rule.id, key)
  )

  private def advised(rule: RuleDescription) = Seq(rule.switch -> "true", modeAdvise)

  private def on(rule: RuleDescription) = Seq(rule.switch -> "true")

  // Spark's own plans are made once.
  private lazy val stock: Seq[StockPlan] =
    withTables(spark)(texts.flatMap(text => Try(StockPlan.of(spark, text)).toOption))

  private val answers = mutable.Map.empty[RuleDescription, Answer]

  /** Stock Spark's answer to a rule's example, asked for once. */
  private def stockAnswer(rule: RuleDescription, session: SparkSession): Answer =
    answers.getOrElseUpdate(rule, answerOf(session, rule.example, modeOff))

  private def answerOf(session: SparkSession, text: String, settings: (String, String)*): Answer =
    SharedSession.withConf(session, settings)(Answer.of(session.sql(text)))

  private def reasonQueries(rule: RuleDescription): Map[String, ReasonQuery] =
    ReasonQuery.all(folder.resolve("reasons").resolve(rule.id)) ++ named.collect {
      case ((`rule`, reason), text) => reason.code -> new ReasonQuery(text)
    }

  /** Runs `body` with a query, after which settings and views of the session are as before. */
  private def prepared[A](session: SparkSession)(body: => A): A = withTables(session) {
    val before = session.conf.getAll
    try SharedSession.withViews(session)(body)
    finally {
      session.conf.getAll.keySet.diff(before.keySet).foreach(session.conf.unset)
      before.foreach { case (key, value) =>
        if (session.conf.isModifiable(key)) session.conf.set(key, value)
      }
    }
  }

  /**
   * Runs `body` with queries of a rule: its example, and those that bring about its reasons. A short run
   * takes a part of them, and goes on to the others only where the rule has not been at work.
   *
   * @param key for each one, another part
   * @param body whether the rule was at work
   * @return whether it was at work in any of them
   */
  private def forQueries(rule: RuleDescription, session: SparkSession, key: Any)(
      body: String => Boolean
  ): Boolean = {
    val reasons = reasonQueries(rule).toSeq.sortBy(_._1).map(_._2).filterNot(_.isStream)
    val some = Grid.part(reasons, share = 0.15, (rule.id, key))
    def run(query: ReasonQuery): Boolean =
      prepared(session)(withFolder(folder => body(query.prepare(session, folder))))
    (new ReasonQuery(rule.example) +: some).map(run).contains(true) ||
    reasons.diff(some).exists(run)
  }

  /** The same with stock plans of many queries, each rule's own under the settings that they need. */
  private def forPlans(rule: RuleDescription, session: SparkSession, key: Any)(
      body: StockPlan => Boolean
  ): Boolean = {
    assert(stock.size > texts.size / 2)
    val ran = Grid.part(stock, share = 0.05, (rule.id, key)).map(body)
    forQueries(rule, session, key)(text => body(StockPlan.of(session, text))) || ran.contains(true)
  }

  test("ids, switches and reasons are unique, and every sentence is one") {
    assert(registry.rules.map(_.id).distinct.size == registry.rules.size)
    assert(registry.reasons.map(_.code).distinct.size == registry.reasons.size)
    registry.reasons.foreach { reason =>
      assert(reason.code.matches("[A-Z]+(_[A-Z]+)*"))
      Seq(reason.sentence, reason.advice).foreach { text =>
        assert(text.endsWith(".") && !text.contains("  "), s"${reason.code}: $text")
      }
      assert(reason.sentence.head.isUpper || reason.sentence.startsWith("spark."), reason.code)
    }
    registry.rules.foreach { rule =>
      assert(rule.hooks.nonEmpty && rule.reasons.nonEmpty && rule.example.nonEmpty, rule.id)
      assert(rule.id.matches("[a-z][a-zA-Z]*"))
      (rule.summary +: rule.hooks.map(_.why)).foreach(text => assert(text.endsWith("."), text))
    }
  }

  private def notGiven(rule: RuleDescription, reason: Reason, made: Seq[Decision]): Seq[String] = {
    val found = made.filter(_.rule == rule.id).map(_.reason)
    if (found.contains(reason)) Nil
    else Seq(s"${rule.id} did not give $reason, but ${found.distinct.mkString(", ")}")
  }

  /** Decisions whose reason is neither in the list of their rule nor one of the guard. */
  private def unlisted(made: Seq[Decision]): Seq[String] = made.flatMap { decision =>
    registry.rules
      .find(_.id == decision.rule)
      .filterNot(rule => (rule.reasons ++ Reason.ofGuard).contains(decision.reason))
      .map(rule => s"${decision.reason} is not among the reasons of ${rule.id}")
  }

  /** Decisions for which the rows of a relation are unknown, and which do not say of which. */
  private def unnamed(made: Seq[Decision]): Seq[String] =
    made
      .filter(each => each.reason == Reason.NoStatistics && each.outcome == Outcome.Declined)
      .filterNot(_.detail.exists(_.startsWith("It is unknown for ")))
      .map(each => s"${each.rule} does not say whose rows are unknown, but ${each.detail}")

  private def decisionsOf(rule: RuleDescription, session: SparkSession, text: String) =
    Plans.decisions(session.sql(text), decidesWhileRunning(rule)).filter(_.rule == rule.id)

  /** Adaptive execution adds transitions to columns to each stage when it begins. */
  private def decidesWhileRunning(rule: RuleDescription) =
    rule.kind == RuleKind.Adaptive || rule.hooks.forall(_.isInstanceOf[Hook.BeforeColumnar])

  private def withConf[A](session: SparkSession, settings: Seq[(String, String)])(body: => A): A =
    SharedSession.withConf(session, settings)(body)

  registry.rules.foreach { rule =>
    rule.hooks.zipWithIndex.foreach { case (hook, place) =>
      val name = s"${rule.id}, hook ${place + 1} (${hook.label})"
      if (HookCall.of(hook, spark).isDefined) lawsOfHook(rule, hook, name)
      else lawOfAnswers(rule, name)
      val ways = BrokenRules.ways(hook)
      (if (Grid.isWhole) ways else Seq(Grid.one(ways, name))).foreach { way =>
        if (HookCall.of(hook, spark).isDefined) lawOfFailures(rule, place, way, name)
        else lawOfFailedAnswers(rule, way, name)
      }
    }
    lawOfSwitches(rule)
    lawOfExample(rule)
  }

  private def lawsOfHook(rule: RuleDescription, hook: Hook, name: String): Unit =

    test(
      s"$name: off and advise return the very same plan, on does not; a second run changes nothing"
    ) {
      withSession(new SelingerExtension(registry)) { session =>
        val call = HookCall.of(hook, session).get
        // A key that is the same in each run: plans name folders that are not.
        val place = Iterator.from(0)
        val ran = forPlans(rule, session, name) { plan =>
          off(rule, place.next()).foreach { settings =>
            withConf(session, settings)(assert(!call.changes(plan) && !call.runs(plan), settings))
          }
          withConf(session, advised(rule))(assert(!call.changes(plan), "mode advise"))
          withConf(session, on(rule)) {
            assert(call.isSettled(plan), "a second run")
            call.runs(plan)
          }
        }
        assert(ran, "it is never at work")
      }
    }

  /** A second run, of what Spark does not call. */
  private def lawOfAnswers(rule: RuleDescription, name: String): Unit =
    test(s"$name: asked again, it gives the same value") {
      val probe = new AskTwice(rule)
      withSession(new SelingerExtension(registry)) { session =>
        val asked = forQueries(rule, session, "again") { text =>
          withConf(session, on(rule)) {
            val before = probe.asked
            OnDemandProbe.using(probe)(decisionsOf(rule, session, text))
            probe.asked > before
          }
        }
        assert(asked && probe.differences.isEmpty)
      }
    }

  private def lawOfSwitches(rule: RuleDescription): Unit =
    test(
      s"${rule.id}: off, it is not called and decides nothing; on, it acts, and gives each reason"
    ) {
      val queries = reasonQueries(rule)
      val (cases, inSql) = rule.reasons.partition(reason => special.contains((rule, reason)))
      assert(queries.keySet == inSql.map(_.code).toSet, s"queries of ${rule.id} and its reasons")
      withSession(new SelingerExtension(registry)) { session =>
        val (_, acts) = offAndOn(rule, new ReasonQuery(rule.example), session)
        // All of them with the rule on, and some with the rule off.
        val isOff = Grid.part(inSql, share = 0.3, rule.id).toSet
        val ran = inSql.map { reason =>
          reason -> offAndOn(rule, queries(reason.code), session, isOff(reason))
        }
        assert(acts || ran.exists { case (_, (_, acts)) => acts })
        val wrong = ran.flatMap { case (reason, (made, _)) =>
          unlisted(made) ++ notGiven(rule, reason, made) ++ unnamed(made)
        }
        assert(wrong.isEmpty, wrong.mkString("\n", "\n", ""))
      }
      cases.foreach { reason =>
        withTables(spark) {
          val made = special((rule, reason)).decisions(spark)
          assert((unlisted(made) ++ notGiven(rule, reason, made)).isEmpty)
        }
      }
    }

  /** What was decided about a query with the rule on, and whether the rule did anything. */
  private def offAndOn(
      rule: RuleDescription,
      query: ReasonQuery,
      session: SparkSession,
      isOff: Boolean = true
  ): (Seq[Decision], Boolean) = prepared(session)(withFolder { folder =>
    def calls = RuleActivity.of(rule).calls
    val text = query.prepare(session, folder)
    if (isOff && !query.isStream) {
      off(rule, text.replace(folder.toString, "")).foreach { settings =>
        withConf(session, settings) {
          val before = calls
          assert(decisionsOf(rule, session, text).isEmpty && calls == before, settings)
        }
      }
    }
    val before = calls
    val made = withConf(session, on(rule))(
      query.decisions(session, text, folder, decidesWhileRunning(rule))
    )
    val outcomes = made.filter(_.rule == rule.id).map(_.outcome)
    (made, calls > before && outcomes.exists(Set(Outcome.Changed, Outcome.Informed)))
  })

  private def lawOfExample(rule: RuleDescription): Unit =
    test(s"${rule.id}: its example gives the same answer on and off, and asks the rule") {
      withSession(new SelingerExtension(registry)) { session =>
        withTables(session) {
          session.conf.set(rule.switch, "true")
          session.conf.set(SelingerConf.SAMPLING_BUDGET_MS.key, "60000")
          val example = session.sql(rule.example)
          val found = Answer.of(example)
          assert(unlisted(Plans.decisions(example)).isEmpty)
          assert(RuleActivity.of(rule).calls > 0)
          val expected = stockAnswer(rule, session)
          assert(expected.isInstanceOf[Answer.Rows])
          assert(Answer.difference(expected, found).isEmpty)
        }
      }
    }

  private def lawOfFailures(
      rule: RuleDescription,
      place: Int,
      way: BrokenRules.Way,
      name: String
  ): Unit =
    test(s"$name: a query gives its rows though the rule ${way.name}") {
      val broken = BrokenRules.at(rule, place, way).get
      val rules = registry.rules.map(known => if (known == rule) broken else known)
      withSession(new SelingerExtension(Registry(rules))) { session =>
        session.conf.set(SelingerConf.FAIL_ON_ERROR.key, "false")
        // What makes the tables are commands: a broken rule would leave them out on both sides.
        session.conf.set(modeOff._1, modeOff._2)
        withTables(session) {
          session.conf.set(SelingerConf.MODE.key, "on")
          session.conf.set(rule.switch, "true")
          val example = session.sql(rule.example)
          val found = Answer.of(example)
          assert(Answer.difference(stockAnswer(rule, session), found).isEmpty)
          val reasons = Plans.decisions(example, rule.id).map(_.reason)
          assert(reasons.contains(way.reason), "the broken rule did not run")
        }
      }
    }

  /** What is asked on demand says of a leaf that it failed, wherever the leaf decides something. */
  private def lawOfFailedAnswers(rule: RuleDescription, way: BrokenRules.Way, name: String): Unit =
    test(s"$name: a query gives its rows though the rule ${way.name}") {
      withSession(new SelingerExtension(registry)) { session =>
        session.conf.set(SelingerConf.FAIL_ON_ERROR.key, "false")
        val failed = forQueries(rule, session, name) { text =>
          withConf(session, on(rule)) {
            val expected = answerOf(session, text, modeOff)
            val probe = new BrokenRules.OnDemand(rule, way)
            val df = session.sql(text)
            val found = OnDemandProbe.using(probe)(Answer.of(df))
            assert(Answer.difference(expected, found).isEmpty, text)
            val told = Plans.decisions(df, rule.id).map(_.reason).contains(way.reason)
            assert(told == probe.asked > 0, text)
            told
          }
        }
        assert(failed, "the broken rule was not asked")
      }
    }
}

/** Asks one rule twice, whenever it is asked on demand. */
private final class AskTwice(of: RuleDescription) extends OnDemandProbe {
  @volatile private var values = Seq.empty[(Any, Any)]

  def asked: Int = values.size

  /** Values that were not the same the second time. */
  def differences: Seq[(Any, Any)] = values.filterNot { case (one, other) => isSame(one, other) }

  override def around[A](rule: RuleDescription)(work: => A): A = {
    val once = work
    if (rule == of) values = values :+ ((once, work))
    once
  }

  /** Objects without an equality of their own are the same if they are of one class. */
  private def isSame(one: Any, other: Any): Boolean = (one, other) match {
    case (a: Iterable[_], b: Iterable[_]) =>
      a.size == b.size && a.zip(b).forall { case (x, y) => isSame(x, y) }
    case (a: Product, b: Product) =>
      a.getClass == b.getClass && isSame(a.productIterator.toSeq, b.productIterator.toSeq)
    case (a: AnyRef, b: AnyRef) if isOpaque(a) => a.getClass == b.getClass
    case (a, b) => a == b
  }

  private def isOpaque(value: AnyRef): Boolean =
    value.getClass.getMethod("equals", classOf[Object]).getDeclaringClass == classOf[Object]
}

/**
 * How a reason comes about that no query in SQL can bring about.
 *
 * @param why no query can
 */
final case class SpecialCase(why: String)(val decisions: SparkSession => Seq[Decision])

object RuleContractSuite {

  /** A join one of whose sides adaptive execution has already broadcast, planned for the first time. */
  private val overBroadcastStage = SpecialCase(
    "A join whose side has been broadcast was planned before, and keeps its first decision."
  ) { session =>
    val df = session.sql("SELECT a.id FROM facts a JOIN dims b ON a.k = b.k")
    df.collect()
    val stage = Plans
      .physical(df)
      .collectFirst { case stage: BroadcastQueryStageExec => stage }
      .getOrElse(throw new IllegalStateException("nothing was broadcast"))
    val replanned = Plans.execution(df).optimizedPlan.collect { case join: Join =>
      join.copy(right = LogicalQueryStage(join.right, stage), hint = JoinHint.NONE)
    }.map(join => Join(join.left, join.right, join.joinType, join.condition, join.hint))
    replanned.foreach(new SelectJoinOperator(session).apply(_))
    replanned.flatMap(Decision.recordedAt(_))
  }

  /** Grouping sets of a stream. */
  private val groupedStream = SpecialCase(
    "Streams are run in append mode here, in which no stream can be grouped by grouping sets."
  ) { session =>
    val df = session.readStream.format("rate").load().rollup("value", "timestamp").count()
    val grouped = Plans.execution(df).analyzed.collect { case aggregate: Aggregate => aggregate }
    grouped.foreach(new CascadeGroupingSets(session).apply(_))
    grouped.flatMap(Decision.recordedAt(_))
  }

  /** Texts of a stream, by a key. */
  private val sortedStream = SpecialCase(
    "Streams are run in append mode here, in which a stream is grouped only within time windows."
  ) { session =>
    val rate = session.readStream.format("rate").load().selectExpr("value", "string(value) AS t")
    val df = rate.groupBy("value").agg("t" -> "max")
    val grouped = Plans.execution(df).analyzed.collect { case aggregate: Aggregate => aggregate }
    grouped.foreach(new SelectAggregateOperator(session).apply(_))
    grouped.flatMap(Decision.recordedAt(_))
  }

  val special: Map[(RuleDescription, Reason), SpecialCase] = Map(
    (SelectJoinOperator, Reason.BroadcastStage) -> overBroadcastStage,
    (CascadeGroupingSets, Reason.StreamingPlan) -> groupedStream,
    (SelectAggregateOperator, Reason.StreamingPlan) -> sortedStream
  )
}

class RuleContractSuite extends RuleContract(Registry.all, RuleContractSuite.special)
