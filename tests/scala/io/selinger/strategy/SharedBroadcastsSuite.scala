package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Phase, PlanningPass}
import io.selinger.cost.Cluster
import io.selinger.explain.{ExplainText, Explained, PlanDecisions}
import io.selinger.testing.{Plans, SharedSession, Tables}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.exchange.{BroadcastExchangeExec, ReusedExchangeExec}
import org.scalatest.funsuite.AnyFunSuite

/** Joins of a query that could broadcast the same rows. */
class SharedBroadcastsSuite extends AnyFunSuite with SharedSession {

  private def optimized(text: String): LogicalPlan = {
    Tables.register(spark)
    withConf(SelingerConf.MODE.key -> "off")(Plans.execution(spark.sql(text)).optimizedPlan)
  }

  /** Of each join, root first: in how many places its left and its right side could be broadcast. */
  private def places(text: String): Seq[(Int, Int)] = {
    val plan = optimized(text)
    val _ = PlanningPass.start().workOn(plan)
    plan.collect { case join: Join => join }.map { join =>
      val problem = JoinProblem
        .of(join, Phase.Static, Cluster.of(spark))
        .getOrElse(fail(s"nothing known of $join"))
      (problem.left.side.broadcastPlaces, problem.right.side.broadcastPlaces)
    }
  }

  private def union(first: String, second: String): String =
    s"SELECT f.id, d.s FROM facts f JOIN $first UNION ALL SELECT f.big, d.s FROM dupes f JOIN $second"

  test("the same rows by the same keys are broadcast once for all joins") {
    val same = union("dims d ON f.k = d.k", "dims d ON f.k = d.k")
    assert(places(same) == Seq((1, 2), (1, 2)))
    // Filters and columns make other rows, and other keys another hash table.
    assert(places(union(
      "dims d ON f.k = d.k",
      "dims d ON f.k = d.k AND d.id < 9"
    )).forall(_._2 == 1))
    assert(places(union("dims d ON f.k = d.k", "dims d ON f.big = d.big")).forall(_._2 == 1))
    assert(places("SELECT d.s FROM facts f JOIN dims d ON f.k = d.k") == Seq((1, 1)))
  }

  test("a side that a join must not broadcast is no place for it") {
    val outer = "SELECT d.s FROM dims d LEFT JOIN facts f ON f.k = d.k"
    val inner = "SELECT d.s FROM dims d JOIN dupes f ON f.k = d.k"
    assert(places(s"$outer UNION ALL $inner").map(_._1) == Seq(1, 1))
    assert(places(s"$inner UNION ALL $inner").map(_._1) == Seq(2, 2))
  }

  test("a join broadcasts one of its sides, and one with a hint whatever its price") {
    val self = "SELECT a.s FROM dims a JOIN dims b ON a.k = b.k"
    assert(places(s"$self UNION ALL SELECT f.s FROM facts f JOIN dupes d ON f.k = d.k").take(1) ==
      Seq((1, 1)))
    val hinted = "SELECT /*+ MERGE(d) */ f.id, d.s FROM facts f JOIN dims d ON f.k = d.k"
    val plain = "SELECT f.big, d.s FROM dupes f JOIN dims d ON f.k = d.k"
    assert(places(s"$hinted UNION ALL $plain").map(_._2).last == 1)
  }

  test("explain says so at the side that is broadcast") {
    Tables.register(spark)
    val df = spark.sql(union("dims d ON f.k = d.k", "dims d ON f.k = d.k"))
    val made = PlanDecisions
      .shown(Plans.execution(df).executedPlan)
      .filter(_.decision.rule == SelectJoinOperator.id)
    val text = ExplainText.render(Explained("on", made, Nil, None), all = true)
    assert(
      made.size == 2 && "dims: .*, broadcast once for 2 joins".r.findAllIn(text).size == 2,
      text
    )
    assert(!"(facts|dupes): .*broadcast once".r.unanchored.matches(text), text)
  }

  test("joins share what their broadcast costs") {
    val plan = optimized(union("dims d ON f.k = d.k", "dims d ON f.k = d.k"))
    val join = plan.collectFirst { case join: Join => join }.getOrElse(fail(s"no join in $plan"))
    def cost(root: LogicalPlan) = {
      val _ = PlanningPass.start().workOn(root)
      val problem = JoinProblem.of(join, Phase.Static, Cluster.of(spark)).getOrElse(fail())
      val side = problem.right.side
      (problem.cost.broadcast(side), problem.cost.broadcast(side.copy(broadcastPlaces = 1)))
    }
    val (shared, whole) = cost(plan)
    assert(math.abs(shared * 2 / whole - 1) < 1e-9)
    assert(cost(join)._1 == whole)
  }

  test("Spark broadcasts them once indeed, whichever ids their columns have") {
    Tables.register(spark)
    val df = spark.sql(union("dims d ON f.k = d.k", "dims d ON f.k = d.k"))
    df.collect()
    val exchanges = Plans.physical(df).collect {
      case exchange: BroadcastExchangeExec => exchange.canonicalized
    }
    val reused = Plans.physical(df).count(_.isInstanceOf[ReusedExchangeExec])
    assert(exchanges.size == 1 && reused == 1)
  }
}
