package io.selinger.core

import org.apache.spark.sql.catalyst.analysis.NamedRelation
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Ascending,
  Attribute,
  AttributeReference,
  Exists,
  GreaterThan,
  Literal,
  NamedExpression,
  ScalarSubquery,
  SortOrder
}
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical.{
  AppendData,
  Filter,
  LeafNode,
  LocalRelation,
  LogicalPlan,
  OverwriteByExpression,
  Project
}
import org.apache.spark.sql.catalyst.plans.physical.SinglePartition
import org.apache.spark.sql.execution
import org.apache.spark.sql.execution.{
  FilterExec,
  LocalTableScanExec,
  ProjectExec,
  SortExec,
  SparkPlan,
  SubqueryExec
}
import org.apache.spark.sql.execution.command.{ExecutedCommandExec, SetCommand}
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.apache.spark.sql.types.{IntegerType, LongType}
import org.scalatest.funsuite.AnyFunSuite

/** Who is to blame for an invalid plan. */
class PlanIntegritySuite extends AnyFunSuite {
  import PlanIntegritySuite._

  private def column(name: String) = AttributeReference(name, IntegerType)()
  private val (a, b, other) = (column("a"), column("b"), column("other"))
  private val table = LocalRelation(a, b)
  private def above(column: Attribute, plan: LogicalPlan) =
    Filter(GreaterThan(column, Literal(1)), plan)
  private def scan(columns: Attribute*) = LocalTableScanExec(columns, Nil, None)
  private def above(column: Attribute, plan: SparkPlan) =
    FilterExec(GreaterThan(column, Literal(1)), plan)

  Seq(true, false).foreach { thorough =>
    test(s"a column that a rule loses is its own problem (thorough: $thorough)") {
      val lost = Project(Seq(a), above(b, Project(Seq(a), table)))
      val before = Project(Seq(a), above(b, table))
      assert(PlanIntegrity.problemOf(before, lost, thorough).exists(_.contains("b#")))
      assert(PlanIntegrity.problemOf(before, before.copy(), thorough).isEmpty)
    }

    test(s"a column that a rule loses inside a subquery is its own problem (thorough: $thorough)") {
      val (x, y) = (column("x"), column("y"))
      val inner = LocalRelation(x, y)
      def asking(plan: LogicalPlan) = Filter(GreaterThan(a, ScalarSubquery(plan)), table)
      val before = asking(Project(Seq(x), above(y, inner)))
      val lost = asking(Project(Seq(x), above(y, Project(Seq(x), inner))))
      assert(PlanIntegrity.problemOf(before, lost, thorough).exists(_.contains("y#")))
      assert(PlanIntegrity.problemOf(lost, above(a, lost), thorough).isEmpty)
      val others = asking(Project(Seq(x), above(x, inner)))
      assert(PlanIntegrity.problemOf(before, others, thorough).isEmpty)
    }

    test(s"a problem that was there before is not that of the rule (thorough: $thorough)") {
      val dangling = above(other, table)
      assert(PlanIntegrity.problemOf(dangling, above(a, dangling), thorough).isEmpty)
      val sameIds = Project(Seq(a, a.withName("c")), table)
      assert(PlanIntegrity.problemOf(
        sameIds,
        sameIds.copy(child = above(a, table)),
        thorough
      ).isEmpty)
    }
  }

  test("a column may be said never to be null where its references only are out of date") {
    val one = Alias(Literal(1), "one")()
    val below = Project(Seq(one), table)
    val outOfDate = Project(Seq(one.toAttribute.withNullability(true)), below)
    val upToDate = Project(Seq(one.toAttribute), below)
    assert(outOfDate.output.head.nullable && !upToDate.output.head.nullable)
    assert(PlanIntegrity.problemOf(outOfDate, upToDate, thorough = true).isEmpty)
    val wrong = Project(Seq(a.withNullability(false)), table)
    val problem = PlanIntegrity.problemOf(Project(Seq(a), table), wrong, thorough = true)
    assert(problem.exists(_.contains("never to be")), problem)
  }

  Seq(true, false).foreach { thorough =>
    test(s"an id for two columns is a problem (thorough: $thorough)") {
      val before = Project(Seq(a, b), table)
      val again = Alias(GreaterThan(b, Literal(1)), "a")(a.exprId)
      val reused = Project(Seq(a, b), Project(Seq(a, b), Project(Seq(a, b, again), table)))
      assert(PlanIntegrity.problemOf(before, reused, thorough).isDefined)
    }
  }

  test("an id for two columns of a physical plan is a problem, and so is another type") {
    def joined(right: SparkPlan) = SortMergeJoinExec(Seq(a), Seq(b), LeftSemi, None, scan(a), right)
    assert(physical(joined(scan(b)), joined(scan(b, a))).exists(_.contains("both inputs")))
    assert(physical(joined(scan(b)), joined(scan(b, other))).isEmpty)
    // It was there before.
    assert(physical(joined(scan(b, a)), joined(scan(b, a, other))).isEmpty)
    val wider = AttributeReference("b", LongType)(b.exprId)
    def read(below: SparkPlan) = ProjectExec(Seq(a), above(b, below))
    assert(physical(read(scan(a, b)), read(scan(a, wider))).exists(_.contains("another type")))
    assert(PlanIntegrity.problemOf(Project(Seq(a), table), read(scan(a, wider))).isDefined)
  }

  private def physical(before: SparkPlan, after: SparkPlan) =
    PlanIntegrity.problemOf(before, after, thorough = true)

  test("a column that can be null must not be said never to be") {
    val never = a.withNullability(false)
    def problem(before: Attribute, after: Attribute) = PlanIntegrity
      .problemOf(above(b, LocalRelation(before, b)), LocalRelation(after, b), thorough = true)
    assert(problem(a, never).exists(_.contains("can be null")))
    assert(problem(never, a).isEmpty && problem(a, a).isEmpty)
    assert(physical(scan(a), ProjectExec(Seq(never), scan(a))).exists(_.contains("can be null")))
  }

  test("a column that is lost inside a subquery of a physical plan is a problem") {
    def asking(plan: SparkPlan) = {
      val subquery = SubqueryExec("subquery", plan)
      FilterExec(
        GreaterThan(a, execution.ScalarSubquery(subquery, NamedExpression.newExprId)),
        scan(a)
      )
    }
    val before = asking(ProjectExec(Seq(b), above(other, scan(b, other))))
    val lost = asking(ProjectExec(Seq(b), above(other, scan(b))))
    assert(physical(before, lost).exists(_.contains("other#")))
    assert(physical(before, asking(scan(b))).isEmpty)
  }

  test("rows must be where an operator of a physical plan needs them") {
    val together = ShuffleExchangeExec(SinglePartition, scan(a))
    val sorted = SortExec(Seq(SortOrder(a, Ascending)), global = false, together)
    val right = ShuffleExchangeExec(SinglePartition, scan(b))
    val sortedRight = SortExec(Seq(SortOrder(b, Ascending)), global = false, right)
    val merged = SortMergeJoinExec(Seq(a), Seq(b), LeftSemi, None, sorted, sortedRight)
    val unsorted = merged.copy(left = together)
    assert(physical(merged, unsorted).exists(_.contains("distributed or sorted")))
    assert(physical(unsorted, merged).isEmpty)
    assert(PlanIntegrity.problemOf(merged, unsorted, thorough = false).isEmpty)
  }

  test("the same for physical plans") {
    val before = ProjectExec(Seq(a), above(b, scan(a, b)))
    val lost = ProjectExec(Seq(a), above(b, scan(a)))
    assert(physical(before, lost).exists(_.contains("b#")))
    assert(physical(lost, ProjectExec(Seq(a), above(a, lost.child))).isEmpty)
    assert(PlanIntegrity.problemOf(Project(Seq(a), table), lost).exists(_.contains("b#")))
  }

  // ---- commands -----------------------------------------------------------------------------

  private val hidden = Literal(true)
  private def write(query: LogicalPlan, table: NamedRelation = target) =
    AppendData.byPosition(table, query)
  private def problem(before: LogicalPlan, after: LogicalPlan) =
    PlanIntegrity.problemOf(before, after, thorough = false)

  test("a rule may rewrite what a command reads") {
    val before = write(Project(Seq(a, b), table))
    assert(problem(before, write(Filter(hidden, table))).isEmpty)
    assert(problem(before, before.copy()).isEmpty)
    val condition = (plan: LogicalPlan) => Exists(plan)
    assert(problem(
      OverwriteByExpression.byPosition(target, table, condition(table)),
      OverwriteByExpression.byPosition(target, table, condition(Filter(hidden, table)))
    ).isEmpty)
  }

  test("a rule may neither drop nor add a command, nor make another one of it") {
    val nothing = Project(Nil, table)
    assert(problem(write(table), nothing).exists(_.contains("AppendData")))
    assert(problem(nothing, write(table)).exists(_.contains("AppendData")))
    val overwriting = OverwriteByExpression.byPosition(target, table, hidden)
    assert(problem(write(table), overwriting).exists(_.contains("AppendData")))
    val elsewhere = write(table, LocalTarget("elsewhere", Seq(column("x"), column("y"))))
    assert(problem(write(table), elsewhere).exists(_.contains("AppendData")))
    val others = overwriting.copy(deleteExpr = Literal(false))
    assert(problem(overwriting, others).exists(_.contains("OverwriteByExpression")))
  }

  test("the columns that a command writes stay in their order") {
    val swapped = write(Project(Seq(b, a), table))
    assert(problem(write(table), swapped).exists(_.contains("reads changed")))
    // Each column is there, and the command has none.
    assert(swapped.resolved && swapped.output.isEmpty)
  }

  test("the same for commands in physical plans") {
    val set = ExecutedCommandExec(SetCommand(Some("a" -> Some("b"))))
    val other = ExecutedCommandExec(SetCommand(Some("a" -> Some("c"))))
    val none = LocalTableScanExec(set.output, Nil, None)
    assert(physical(set, set.copy()).isEmpty)
    assert(physical(set, other).exists(_.contains("changed")))
    assert(physical(set, none).exists(_.contains("changed")))
    // A strategy plans no commands.
    assert(PlanIntegrity.problemOf(set.cmd, set).exists(_.contains("Spark's to plan")))
    assert(PlanIntegrity.problemOf(set.cmd, none).exists(_.contains("is lost")))
    val input = LocalRelation(set.output)
    assert(PlanIntegrity.problemOf(input, set).exists(_.contains("Spark's to plan")))
  }
}

object PlanIntegritySuite {

  /** A table that can be written to, as far as plans are concerned. */
  private final case class LocalTarget(name: String, override val output: Seq[Attribute])
      extends LeafNode
      with NamedRelation {
    override def skipSchemaResolution: Boolean = true
  }

  private val target =
    LocalTarget("target", Seq("x", "y").map(name => AttributeReference(name, IntegerType)()))
}
