package io.selinger.core

import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeReference,
  GreaterThan,
  Literal
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.execution.{FilterExec, LocalTableScanExec, ProjectExec, SparkPlan}
import org.apache.spark.sql.types.IntegerType
import org.scalatest.funsuite.AnyFunSuite

/** Who is to blame for an invalid plan. */
class PlanIntegritySuite extends AnyFunSuite {
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
}
