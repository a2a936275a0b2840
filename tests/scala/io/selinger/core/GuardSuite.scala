package io.selinger.core

import io.selinger.testing.{Plans, SharedSession}
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.QueryPlanningTracker
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  AttributeReference,
  Expression,
  Literal,
  Not
}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{LocalTableScanExec, SparkPlan}
import org.apache.spark.sql.types.IntegerType
import org.scalatest.funsuite.AnyFunSuite

/** Law 2 (off means off), law 3 (never break a query) and law 5 (a planning budget). */
class GuardSuite extends AnyFunSuite with SharedSession {
  import GuardSuite._

  private val plan: LogicalPlan = LocalRelation(AttributeReference("a", IntegerType)())
  private def freshPlan(): LogicalPlan = plan.clone()
  private def otherOutput: LogicalPlan = Project(Seq(Alias(Literal(1), "b")()), plan)

  private val errors: Seq[(String, () => Nothing)] = Seq(
    "an Exception" -> (() => throw new IllegalStateException("boom")),
    "an AssertionError" -> (() => throw new AssertionError("boom")),
    "a NoSuchMethodError" -> (() => throw new NoSuchMethodError("boom")),
    "a LinkageError" -> (() => throw new LinkageError("boom"))
  )

  private def useUp(ms: Long): Unit = PlanningPass.start().timed(Thread.sleep(ms))

  private def onlyDecision(node: LogicalPlan): Decision = Decision.recordedAt(node) match {
    case Seq(decision) => decision
    case others => fail(s"expected one decision, got $others")
  }

  private def assertFailed(node: LogicalPlan, reason: Reason, detail: String): Unit = {
    val decision = onlyDecision(node)
    assert(decision.outcome == Outcome.Failed)
    assert(decision.reason == reason)
    assert(decision.detail.exists(_.contains(detail)))
    assert(decision.setting.contains(rule.switch))
    ()
  }

  // ---- logical rules ------------------------------------------------------------------------

  test("a rule fires on a plan, and its result goes on") {
    val input = freshPlan()
    val result = ruleOf(FixedSwitches())(LocalLimit(Literal(1), _))(input)
    assert(result.isInstanceOf[LocalLimit])
    assert(Decision.recordedAt(input).isEmpty)
  }

  errors.foreach { case (name, raise) =>
    test(s"a rule does not fire on $name of its own: the input object goes on (RULE_FAILED)") {
      val input = freshPlan()
      assert(ruleOf(FixedSwitches())(_ => raise())(input) eq input)
      assertFailed(input, Reason.RuleFailed, "boom")
    }

    test(s"failOnError lets $name through") {
      val error = intercept[Throwable](
        ruleOf(FixedSwitches(failOnError = true))(_ => raise())(freshPlan())
      )
      assert(error.getMessage == "boom")
    }
  }

  test("a rule does not fire with an unresolved result (INVALID_RESULT)") {
    val input = freshPlan()
    assert(ruleOf(FixedSwitches())(_ => UnresolvedRelation(Seq("t")))(input) eq input)
    assertFailed(input, Reason.InvalidResult, "not resolved")
  }

  test("a rule does not fire with another output (INVALID_RESULT)") {
    val input = freshPlan()
    assert(ruleOf(FixedSwitches())(_ => otherOutput)(input) eq input)
    assertFailed(input, Reason.InvalidResult, "output changed")
  }

  test("failOnError raises for an invalid result") {
    val switches = FixedSwitches(failOnError = true)
    val error = intercept[IllegalStateException](ruleOf(switches)(_ => otherOutput)(freshPlan()))
    assert(error.getMessage.contains(rule.id))
  }

  test("mode off returns the very same plan and does not run the rule") {
    val input = freshPlan()
    assert(ruleOf(FixedSwitches(mode = Mode.Off))(_ => fail("the rule ran"))(input) eq input)
    assert(Decision.recordedAt(input).isEmpty)
  }

  test("the rule's own switch returns the very same plan and does not run the rule") {
    val input = freshPlan()
    assert(ruleOf(FixedSwitches(isEnabled = false))(_ => fail("the rule ran"))(input) eq input)
    assert(Decision.recordedAt(input).isEmpty)
  }

  test("mode advise runs the rule and leaves the plan") {
    val input = freshPlan()
    val runs = Iterator.from(0)
    val advising = ruleOf(FixedSwitches(mode = Mode.Advise)) { plan =>
      runs.next()
      LocalLimit(Literal(1), plan)
    }
    assert(advising(input) eq input)
    assert(runs.next() == 1)
  }

  test("a rule does not fire once the budget is used up (PLANNING_BUDGET_EXCEEDED)") {
    val input = freshPlan()
    QueryPlanningTracker.withTracker(new QueryPlanningTracker()) {
      ruleOf(FixedSwitches()) { plan => Thread.sleep(6); plan }(freshPlan())
      assert(ruleOf(FixedSwitches(budgetMs = 5))(_ => fail("the rule ran"))(input) eq input)
    }
    val decision = onlyDecision(input)
    assert(decision.outcome == Outcome.Declined)
    assert(decision.reason == Reason.BudgetExceeded)
    assert(decision.setting.contains("spark.selinger.planning.budgetMs"))
  }

  test("the time of a rule counts, also when the rule fails") {
    ruleOf(FixedSwitches()) { _ =>
      Thread.sleep(20)
      throw new IllegalStateException("boom")
    }(freshPlan())
    assert(PlanningPass.current.usedMs >= 15)
  }

  test("switches that cannot be read count as a failure, not as an error of the query") {
    val broken = new Switches {
      def mode: Mode = throw new IllegalArgumentException("unreadable")
      def enabled(rule: RuleDescription): Boolean = true
      def failOnError: Boolean = throw new IllegalArgumentException("unreadable")
      def budgetMs: Long = 1000L
    }
    val input = freshPlan()
    assert(ruleOf(broken)(LocalLimit(Literal(1), _))(input) eq input)
    assertFailed(input, Reason.RuleFailed, "unreadable")
  }

  test("a failed rule is recorded once, however often it runs") {
    val input = freshPlan()
    val failing = ruleOf(FixedSwitches())(_ => throw new IllegalStateException("boom"))
    failing(failing(input))
    assertFailed(input, Reason.RuleFailed, "boom")
  }

  test("values beside the plan fall back on an error, when off and when switched off") {
    val leaf = freshPlan()
    def value(switches: Switches)(body: => Int) = Guard.value(rule, switches, leaf, -1)(body)
    assert(value(FixedSwitches())(1) == 1)
    assert(value(FixedSwitches(mode = Mode.Off))(fail("it ran")) == -1)
    assert(value(FixedSwitches(isEnabled = false))(fail("it ran")) == -1)
    errors.foreach { case (_, raise) =>
      assert(value(FixedSwitches())(raise()) == -1)
      // Whatever is decided without the value then says why it was missing.
      val said = PlanningPass.current.informed(leaf)
      assert(said.map(_.reason) == Seq(Reason.RuleFailed) && said.head.rule == rule.id)
      intercept[Throwable](value(FixedSwitches(failOnError = true))(raise()))
    }
  }

  // ---- strategies ---------------------------------------------------------------------------

  private def physical(node: LogicalPlan): SparkPlan = LocalTableScanExec(node.output, Nil, None)

  test("a strategy fires on its node, and only on that") {
    val fixed = strategyOf(FixedSwitches())(node => Seq(physical(node)))
    assert(fixed(plan).size == 1)
    assert(fixed(Distinct(plan)).isEmpty)
  }

  errors.foreach { case (name, raise) =>
    test(s"a strategy does not fire on $name of its own: the node goes to Spark (RULE_FAILED)") {
      val input = freshPlan()
      assert(strategyOf(FixedSwitches())(_ => raise())(input).isEmpty)
      assertFailed(input, Reason.RuleFailed, "boom")
    }

    test(s"a strategy survives $name at the start of a plan (RULE_FAILED)") {
      val input = freshPlan()
      val failing = strategyOf(FixedSwitches(), atStart = raise)(node => Seq(physical(node)))
      assert(failing(ReturnAnswer(input)).isEmpty)
      assertFailed(input, Reason.RuleFailed, "boom")
    }
  }

  test("a strategy survives an error at a node that is too deep to be described") {
    val deep = Iterator.iterate[Expression](Literal(true))(Not(_)).drop(500000).next()
    val join = Join(freshPlan(), OneRowRelation(), Inner, Some(deep), JoinHint.NONE)
    intercept[StackOverflowError](NodeText.of(join))
    val failing = strategyOf(FixedSwitches(), concerned = _ => true)(_ =>
      NodeText.of(join) match {
        case text => fail(text)
      }
    )
    assert(failing(join).isEmpty)
  }

  test("calls that raise errors are counted") {
    withSession() { _ =>
      val failing = ruleOf(FixedSwitches())(_ => throw new IllegalStateException("boom"))
      val before = RuleActivity.of(rule).calls
      failing(freshPlan())
      assert(Guard.value(
        rule,
        FixedSwitches(),
        plan,
        -1
      )(throw new IllegalStateException("boom")) == -1)
      assert(RuleActivity.of(rule).calls == before + 2)
      assert(RuleActivity.of(rule).fired == 0)
    }
  }

  test("a strategy does not fire with another output (INVALID_RESULT)") {
    val input = freshPlan()
    assert(strategyOf(FixedSwitches())(_ => Seq(physical(otherOutput)))(input).isEmpty)
    assertFailed(input, Reason.InvalidResult, "output changed")
  }

  test("a strategy does not fire in mode off, switched off or advising") {
    def plans(switches: Switches) = strategyOf(switches)(node => Seq(physical(node)))(plan)
    assert(plans(FixedSwitches(mode = Mode.Off)).isEmpty)
    assert(plans(FixedSwitches(isEnabled = false)).isEmpty)
    assert(plans(FixedSwitches(mode = Mode.Advise)).isEmpty)
  }

  test("a strategy does not fire once the budget is used up (PLANNING_BUDGET_EXCEEDED)") {
    val input = freshPlan()
    useUp(6)
    assert(strategyOf(FixedSwitches(budgetMs = 5))(node => Seq(physical(node)))(input).isEmpty)
    assert(onlyDecision(input).reason == Reason.BudgetExceeded)
  }

  test("each plan starts with a budget of its own") {
    useUp(6)
    val fixed = strategyOf(FixedSwitches(budgetMs = 5))(node => Seq(physical(node)))
    assert(OpenPlanningPass(ReturnAnswer(plan)).isEmpty)
    assert(fixed(plan).size == 1)
  }

  // ---- rules on physical plans --------------------------------------------------------------

  private def linked(): (LogicalPlan, SparkPlan) = {
    val root = freshPlan()
    val plan = physical(root)
    plan.setLogicalLink(root)
    (root, plan)
  }

  test("a preparation fires, but not in mode off, switched off or advising") {
    val (_, plan) = linked()
    val other = physical(this.plan)
    def result(switches: Switches) = preparationOf(switches)(_ => other)(plan)
    assert(result(FixedSwitches()) eq other)
    assert(result(FixedSwitches(mode = Mode.Off)) eq plan)
    assert(result(FixedSwitches(isEnabled = false)) eq plan)
    assert(result(FixedSwitches(mode = Mode.Advise)) eq plan)
  }

  errors.foreach { case (name, raise) =>
    test(s"a preparation does not fire on $name of its own: the plan goes on (RULE_FAILED)") {
      val (root, plan) = linked()
      assert(preparationOf(FixedSwitches())(_ => raise())(plan) eq plan)
      assertFailed(root, Reason.RuleFailed, "boom")
    }
  }

  test("a preparation does not fire with another output (INVALID_RESULT)") {
    val (root, plan) = linked()
    assert(preparationOf(FixedSwitches())(_ => physical(otherOutput))(plan) eq plan)
    assertFailed(root, Reason.InvalidResult, "output changed")
  }

  // ---- whole queries ------------------------------------------------------------------------

  private val query = "SELECT a.id, b.id FROM range(20) a JOIN range(10, 30) b ON a.id = b.id"

  private def broken(error: () => Nothing): SparkSessionExtensions => Unit = { extensions =>
    val switches = FixedSwitches()
    extensions.injectOptimizerRule(_ => ruleOf(switches)(_ => error()))
    extensions.injectPlannerStrategy(_ => strategyOf(switches, concerned = _ => true)(_ => error()))
    extensions.injectQueryStagePrepRule(_ => preparationOf(switches)(_ => error()))
  }

  errors.foreach { case (name, raise) =>
    test(s"a session works though its rules raise $name when they are made") {
      withSession(extensions => unmakeable(raise).foreach(_.inject(extensions))) { session =>
        assert(session.sql(query).collect().map(_.getLong(0)).toSet == (10L until 20L).toSet)
      }
    }
  }

  test("a table is written though a rule replaces the command by something else without columns") {
    val dropping: SparkSessionExtensions => Unit = _.injectPreCBORule { _ =>
      ruleOf(FixedSwitches()) {
        case _: Command => Project(Nil, OneRowRelation())
        case other => other
      }
    }
    withSession(dropping) { session =>
      withFolder { folder =>
        val path = folder.resolve("table").toString
        session.range(7).write.parquet(path)
        session.range(5).write.mode("append").parquet(path)
        assert(session.read.parquet(path).count() == 12)
      }
    }
  }

  errors.foreach { case (name, raise) =>
    test(s"a query gives its rows though a rule and a strategy raise $name, and explain says so") {
      withSession(new io.selinger.SelingerExtension, broken(raise)) { session =>
        val df = session.sql(query)
        assert(df.collect().map(_.getLong(0)).toSet == (10L until 20L).toSet)
        val failures = Plans.decisions(df, rule.id)
        assert(failures.nonEmpty && failures.forall(_.reason == Reason.RuleFailed))
      }
    }
  }
}

object GuardSuite {

  /** The hooks that make a rule for each session, with one that cannot be made. */
  private def unmakeable(raise: () => Nothing): Seq[Hook] = Seq(
    Hook.OptimizerBatch("Test.")(_ => raise()),
    Hook.PreCbo("Test.")(_ => raise()),
    Hook.LateBatch("Test.")(_ => raise()),
    Hook.RuntimeOptimizer("Test.")(_ => raise()),
    Hook.PlannerStrategy("Test.")(_ => raise()),
    Hook.StagePreparation("Test.")(_ => raise()),
    Hook.StageOptimization("Test.")(_ => raise()),
    Hook.BeforeColumnar("Test.")(_ => raise()),
    Hook.AfterColumnar("Test.")(_ => raise())
  )

  private object rule
      extends RuleDescription("testRule", RuleKind.Logical, "Does what a test wants.") {
    override def hooks: Seq[Hook] = Nil
    override def reasons: Seq[Reason] = Nil
    override def example: String = "SELECT 1"
  }

  private final case class FixedSwitches(
      mode: Mode = Mode.On,
      isEnabled: Boolean = true,
      failOnError: Boolean = false,
      budgetMs: Long = 60000L
  ) extends Switches {
    override def enabled(rule: RuleDescription): Boolean = isEnabled
  }

  private def ruleOf(switches: Switches)(body: LogicalPlan => LogicalPlan): GuardedRule =
    new GuardedRule(rule, switches) {
      override protected def rewrite(plan: LogicalPlan): LogicalPlan = body(plan)
    }

  private def preparationOf(switches: Switches)(body: SparkPlan => SparkPlan): GuardedPhysicalRule =
    new GuardedPhysicalRule(rule, switches) {
      override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan = body(plan)
    }

  private def strategyOf(
      switches: Switches,
      concerned: LogicalPlan => Boolean = _.isInstanceOf[LocalRelation],
      atStart: () => Unit = () => ()
  )(body: LogicalPlan => Seq[SparkPlan]): GuardedStrategy =
    new GuardedStrategy(rule, switches) {
      override protected def begin(root: LogicalPlan): Unit = atStart()
      override protected def concerns(plan: LogicalPlan): Boolean = concerned(plan)
      override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] = body(plan)
    }
}
