package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedPhysicalRule,
  GuardedRule,
  GuardedStrategy,
  Hook,
  Mode,
  Reason,
  RuleActivity,
  RuleDescription
}
import io.selinger.strategy.SelectJoinOperator
import io.selinger.testing.{Answer, ExampleTables, Plans, ReasonQuery, SharedSession, Tables}
import java.nio.file.{Files, Path, Paths}
import org.apache.spark.sql.catalyst.plans.logical.{
  Join,
  JoinHint,
  LocalRelation,
  LogicalPlan,
  Project
}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{LocalTableScanExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * The laws that every rule keeps, checked for each rule of a registry without naming it: off means off,
 * a second run changes nothing, whatever goes wrong inside leaves the query working, the same answers,
 * and every reason that it can give is given by some query: the one in
 * `tests/sql/reasons/<rule>/<CODE>.sql`.
 *
 * @param special reasons that no query in SQL can bring about
 */
abstract class RuleContract(
    registry: Registry,
    special: Map[(RuleDescription, Reason), SpecialCase] = Map.empty
) extends AnyFunSuite
    with SharedSession {

  private val folder = Paths.get(System.getProperty("selinger.root"), "tests", "sql")

  private def files(folder: Path): Seq[Path] = {
    val paths = Files.list(folder)
    try paths.iterator.asScala.filter(_.toString.endsWith(".sql")).toSeq.sortBy(_.toString)
    finally paths.close()
  }

  // Every tenth file: the equivalence suite runs all of them.
  private lazy val texts: Seq[String] = registry.rules.map(_.example) ++
    files(folder).zipWithIndex.collect { case (file, i) if i % 10 == 0 => Files.readString(file) }

  private def withTables[A](session: SparkSession)(body: => A): A = {
    Tables.register(session)
    ExampleTables.register(session)
    body
  }

  private val modeOff = SelingerConf.MODE.key -> "off"
  private val modeAdvise = SelingerConf.MODE.key -> "advise"

  // Spark's own plans are made once. Each test gets copies, which carry no decision of another rule.
  private lazy val optimizedOnce: Seq[LogicalPlan] = withConf(modeOff) {
    texts.flatMap(text => Try(Plans.execution(spark.sql(text)).optimizedPlan).toOption)
  }

  private lazy val physicalOnce: Seq[SparkPlan] = withConf(modeOff) {
    texts.flatMap(text => Try(Plans.execution(spark.sql(text)).sparkPlan).toOption)
  }

  private def optimized: Seq[LogicalPlan] = optimizedOnce.map(_.clone())

  private def physical: Seq[SparkPlan] = physicalOnce.map(_.clone())

  private val answers = mutable.Map.empty[RuleDescription, Answer]

  /** Stock Spark's answer to a rule's example, asked for once. */
  private def stockAnswer(rule: RuleDescription, session: SparkSession): Answer =
    answers.getOrElseUpdate(
      rule, {
        session.conf.set(SelingerConf.MODE.key, "off")
        Answer.of(session.sql(rule.example))
      }
    )

  /** What Spark would call for a hook, in the shared session. */
  private def logical(hook: Hook): Option[GuardedRule] = hook match {
    case known: Hook.OptimizerBatch => Some(known.create(spark))
    case known: Hook.PreCbo => Some(known.create(spark))
    case known: Hook.LateBatch => Some(known.create(spark))
    case known: Hook.RuntimeOptimizer => Some(known.create(spark))
    case _ => None
  }

  private def onPhysical(hook: Hook): Option[GuardedPhysicalRule] = hook match {
    case known: Hook.StagePreparation => Some(known.create(spark))
    case known: Hook.StageOptimization => Some(known.create(spark))
    case known: Hook.BeforeColumnar => Some(known.create(spark))
    case known: Hook.AfterColumnar => Some(known.create(spark))
    case _ => None
  }

  private def strategy(hook: Hook): Option[GuardedStrategy] = hook match {
    case known: Hook.PlannerStrategy => Some(known.create(spark))
    case _ => None
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

  registry.rules.foreach { rule =>
    val silent = Seq(
      "mode off" -> modeOff,
      "mode advise" -> modeAdvise,
      "its own switch" -> (rule.switch -> "false")
    )

    test(s"${rule.id}: off and advise return the very same plan") {
      withTables(spark) {
        val (plans, physicalPlans) = (optimized, physical)
        assert(plans.size > texts.size / 2)
        silent.foreach { case (name, setting) =>
          withConf(rule.switch -> "true", setting) {
            for (hook <- rule.hooks; made <- logical(hook); plan <- plans)
              assert(made(plan) eq plan, name)
            for (hook <- rule.hooks; made <- onPhysical(hook); plan <- physicalPlans)
              assert(made(plan) eq plan, name)
            if (setting != modeAdvise) {
              for (hook <- rule.hooks; made <- strategy(hook); plan <- plans)
                assert(!plan.exists(node => made(node).nonEmpty), name)
            }
          }
        }
      }
    }

    test(s"${rule.id}: a second run changes nothing") {
      withTables(spark) {
        withConf(rule.switch -> "true") {
          for (hook <- rule.hooks; made <- logical(hook); plan <- optimized) {
            val once = made(plan)
            assert(made(once).fastEquals(once))
          }
          for (hook <- rule.hooks; made <- onPhysical(hook); plan <- physical) {
            val once = made(plan)
            assert(made(once).fastEquals(once))
          }
        }
      }
    }

    test(s"${rule.id}: each of its reasons is given by some query") {
      val queries = ReasonQuery.all(folder.resolve("reasons").resolve(rule.id))
      val (cases, inSql) = rule.reasons.partition(reason => special.contains((rule, reason)))
      assert(queries.keySet == inSql.map(_.code).toSet, s"files of ${rule.id} and its reasons")
      withSession(new SelingerExtension(registry)) { session =>
        val before = session.conf.getAll
        val wrong = inSql.flatMap { reason =>
          withTables(session) {
            val made = withFolder(queries(reason.code).decisions(session, _))
            session.conf.getAll.keySet.diff(before.keySet).foreach(session.conf.unset)
            before.foreach { case (key, value) =>
              if (session.conf.isModifiable(key)) session.conf.set(key, value)
            }
            session.catalog.listTables().collect().foreach { table =>
              val _ = session.catalog.dropTempView(table.name)
            }
            unlisted(made) ++ notGiven(rule, reason, made)
          }
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

    test(s"${rule.id}: its example gives the same answer on and off, and asks the rule") {
      withSession(new SelingerExtension(registry)) { session =>
        withTables(session) {
          session.conf.set(rule.switch, "true")
          session.conf.set(SelingerConf.SAMPLING_BUDGET_MS.key, "60000")
          val example = session.sql(rule.example)
          val found = Answer.of(example)
          assert(unlisted(Plans.decisions(example)).isEmpty)
          val asked = RuleActivity.of(rule).calls > 0
          val expected = stockAnswer(rule, session)
          assert(expected.isInstanceOf[Answer.Rows])
          assert(Answer.difference(expected, found).isEmpty)
          // Rules without a hook of Spark are asked by others, for what they know.
          assert(asked || rule.hooks.forall(hook =>
            hook.isInstanceOf[Hook.OnDemand] || hook.isInstanceOf[Hook.EachPlan]
          ))
        }
      }
    }

    Broken.ways.foreach { broken =>
      test(s"${rule.id}: a query gives its rows though the rule ${broken.name}") {
        val hooks = rule.hooks.flatMap(broken.instead(rule, _))
        val others = registry.rules.filterNot(_ == rule)
        val extension = new SelingerExtension(Registry(others :+ Broken.describe(rule, hooks)))
        withSession(extension) { session =>
          session.conf.set(SelingerConf.FAIL_ON_ERROR.key, "false")
          // What makes the tables are commands: a broken rule would leave them out on both sides.
          session.conf.set(SelingerConf.MODE.key, "off")
          withTables(session) {
            session.conf.set(SelingerConf.MODE.key, "on")
            session.conf.set(rule.switch, "true")
            val found = Answer.of(session.sql(rule.example))
            assert(Answer.difference(stockAnswer(rule, session), found).isEmpty)
          }
        }
      }
    }
  }
}

/**
 * How a reason comes about that no query in SQL can bring about.
 *
 * @param why no query can
 */
final case class SpecialCase(why: String)(val decisions: SparkSession => Seq[Decision])

/** Rules that go wrong in the place of others. */
object Broken {

  /** @param body what the rule does instead of its work, given what it would return unchanged */
  final case class Way(
      name: String,
      logical: LogicalPlan => LogicalPlan,
      physical: SparkPlan => SparkPlan,
      operators: LogicalPlan => Seq[SparkPlan]
  ) {

    /** The same hook with a broken rule. */
    def instead(rule: RuleDescription, hook: Hook): Option[Hook] = {
      val switches = SelingerConf.switches
      def onPlans = new GuardedRule(rule, switches) {
        override protected def rewrite(plan: LogicalPlan): LogicalPlan = logical(plan)
      }
      def onOperators = new GuardedPhysicalRule(rule, switches) {
        override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = physical(plan)
      }
      hook match {
        case _: Hook.OnDemand => None
        case known: Hook.EachPlan =>
          Some(Hook.EachPlan(known.why, rule, switches) { root =>
            val _ = logical(root)
          })
        case known: Hook.OptimizerBatch => Some(Hook.OptimizerBatch(known.why)(_ => onPlans))
        case known: Hook.PreCbo => Some(Hook.PreCbo(known.why)(_ => onPlans))
        case known: Hook.LateBatch => Some(Hook.LateBatch(known.why)(_ => onPlans))
        case known: Hook.RuntimeOptimizer => Some(Hook.RuntimeOptimizer(known.why)(_ => onPlans))
        case known: Hook.StagePreparation =>
          Some(Hook.StagePreparation(known.why)(_ => onOperators))
        case known: Hook.StageOptimization =>
          Some(Hook.StageOptimization(known.why)(_ => onOperators))
        case known: Hook.BeforeColumnar => Some(Hook.BeforeColumnar(known.why)(_ => onOperators))
        case known: Hook.AfterColumnar => Some(Hook.AfterColumnar(known.why)(_ => onOperators))
        case known: Hook.PlannerStrategy =>
          Some(Hook.PlannerStrategy(known.why)(_ =>
            new GuardedStrategy(rule, switches) {
              override protected def concerns(plan: LogicalPlan): Boolean = true
              override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] =
                operators(plan)
            }
          ))
      }
    }
  }

  private def raising(name: String)(error: => Throwable) =
    Way(name, _ => throw error, _ => throw error, _ => throw error)

  val ways: Seq[Way] = Seq(
    raising("throws")(new IllegalStateException("boom")),
    raising("does not link")(new NoSuchMethodError("boom")),
    Way(
      "loses a column in the middle of the plan",
      plan =>
        plan.transformDown {
          case project @ Project(list, child) if list.size > 1 =>
            project.copy(child = Project(child.output.take(1), child))
        },
      plan => LocalTableScanExec(plan.output.take(1), Nil, None),
      plan => Seq(LocalTableScanExec(plan.output.drop(1), Nil, None))
    ),
    Way(
      "returns other columns",
      _ => LocalRelation(),
      _ => LocalTableScanExec(Nil, Nil, None),
      _ => Seq(LocalTableScanExec(Nil, Nil, None))
    )
  )

  def describe(rule: RuleDescription, broken: Seq[Hook]): RuleDescription =
    new RuleDescription(rule.id, rule.kind, rule.summary, rule.onByDefault) {
      override def hooks: Seq[Hook] = broken
      override def reasons: Seq[Reason] = rule.reasons
      override def example: String = rule.example
    }
}

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

  val special: Map[(RuleDescription, Reason), SpecialCase] = Map(
    (SelectJoinOperator, Reason.BroadcastStage) -> overBroadcastStage
  )
}

class RuleContractSuite extends RuleContract(Registry.all, RuleContractSuite.special)
