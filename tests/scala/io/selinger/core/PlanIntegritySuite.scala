package io.selinger.core

import org.apache.spark.sql.catalyst.analysis.NamedRelation
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeReference,
  Exists,
  GreaterThan,
  Literal
}
import org.apache.spark.sql.catalyst.plans.logical.{
  AppendData,
  Filter,
  LeafNode,
  LocalRelation,
  LogicalPlan,
  OverwriteByExpression,
  Project
}
import org.apache.spark.sql.execution.{FilterExec, LocalTableScanExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.execution.command.{ExecutedCommandExec, SetCommand}
import org.apache.spark.sql.types.IntegerType
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

  test("the same for physical plans") {
    val before = ProjectExec(Seq(a), above(b, scan(a, b)))
    val lost = ProjectExec(Seq(a), above(b, scan(a)))
    assert(PlanIntegrity.problemOf(before, lost).exists(_.contains("b#")))
    assert(PlanIntegrity.problemOf(lost, ProjectExec(Seq(a), above(a, lost.child))).isEmpty)
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
    assert(PlanIntegrity.problemOf(set, set.copy()).isEmpty)
    assert(PlanIntegrity.problemOf(set, other).exists(_.contains("changed")))
    assert(PlanIntegrity.problemOf(set, none).exists(_.contains("changed")))
    // A strategy plans a command as a command.
    assert(PlanIntegrity.problemOf(set.cmd, set).isEmpty)
    assert(PlanIntegrity.problemOf(set.cmd, none).exists(_.contains("is lost")))
    assert(
      PlanIntegrity.problemOf(LocalRelation(set.output), set).exists(_.contains("was not there"))
    )
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
