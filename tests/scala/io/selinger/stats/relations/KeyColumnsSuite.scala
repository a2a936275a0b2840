package io.selinger.stats.relations

import io.selinger.testing.{Plans, SharedSession, Tables}
import org.apache.spark.sql.catalyst.expressions.ExprId
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.scalatest.funsuite.AnyFunSuite

/** Which columns of the leaves a plan asks for, however they are renamed above. */
class KeyColumnsSuite extends AnyFunSuite with SharedSession {

  private def optimized(text: String): LogicalPlan = {
    Tables.register(spark)
    Plans.execution(spark.sql(text)).optimizedPlan
  }

  private def names(plan: LogicalPlan, ids: Set[ExprId]): Seq[String] =
    plan.collectLeaves().flatMap(_.output).filter(c => ids(c.exprId)).map(_.name).sorted

  private def keys(text: String): Seq[String] = {
    val plan = optimized(text)
    names(plan, KeyColumns.compute(plan).keys)
  }

  private def mentioned(text: String): Seq[String] = {
    val plan = optimized(text)
    names(plan, KeyColumns.compute(plan).mentioned)
  }

  test("keys of joins and groups, computed ones too, and no other columns") {
    assert(keys("SELECT a.s FROM facts a JOIN dims b ON a.k = b.k WHERE a.d > 1") == Seq("k", "k"))
    assert(keys("SELECT upper(s) AS u, sum(k) FROM facts GROUP BY upper(s)") == Seq("s"))
    assert(keys("SELECT id FROM facts WHERE k > 3").isEmpty)
  }

  test("predicates, partitions of windows and distinct rows mention columns") {
    assert(mentioned("SELECT id FROM facts WHERE k > 3 AND s LIKE '%a%'") == Seq("k", "s"))
    assert(
      mentioned("SELECT id, row_number() OVER (PARTITION BY s ORDER BY d) FROM facts") == Seq("s")
    )
    assert(mentioned("SELECT DISTINCT k, s FROM facts") == Seq("k", "s"))
    assert(
      mentioned("SELECT a.id FROM facts a JOIN spans b ON a.k BETWEEN b.low AND b.high") ==
        Seq("high", "k", "low")
    )
  }

  test("through unions and grouping sets") {
    val union = "SELECT k FROM facts UNION ALL SELECT big FROM dims"
    assert(keys(s"SELECT k, count(*) FROM ($union) GROUP BY k") == Seq("big", "k"))
    assert(
      keys("SELECT k, s, sum(id) FROM facts GROUP BY GROUPING SETS ((k), (k, s))") == Seq("k", "s")
    )
  }
}
