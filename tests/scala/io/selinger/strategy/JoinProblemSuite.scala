package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.Phase
import io.selinger.cost.{Cluster, JoinSide}
import io.selinger.ordering.OrderProblem
import io.selinger.ordering.graph.JoinRegion
import io.selinger.ordering.tree.WrittenJoin
import io.selinger.testing.{Plans, SharedSession, Tables}
import org.apache.spark.sql.catalyst.plans.RightOuter
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.scalatest.funsuite.AnyFunSuite

/**
 * Join ordering and the choice of the operator look at the same join of two tables. What ordering leaves
 * out, because it cannot know it before a query is planned, is listed at UnplannedJoin.
 */
class JoinProblemSuite extends AnyFunSuite with SharedSession {

  private def seenByOrdering(plan: LogicalPlan) = {
    val region = plan.collectFirst(Function.unlift((node: LogicalPlan) => JoinRegion.at(node)))
    val problem = region.flatMap(OrderProblem.of(spark, _).toOption)
    WrittenJoin.facts(spark, problem.getOrElse(fail(s"no region in $plan")))
  }

  private def seenByStrategy(plan: LogicalPlan): JoinProblem =
    plan
      .collectFirst { case join: Join => join }
      .flatMap(JoinProblem.of(_, Phase.Static, Cluster.of(spark)))
      .getOrElse(fail(s"no join in $plan"))

  /** What both know of a side; several short keys are packed into one by the strategy only. */
  private def common(side: JoinSide, keys: Int) = (
    side.rows,
    side.upperBound,
    side.isCounted,
    side.rowBytes,
    side.shuffleExists,
    Option.when(keys == 1)((side.keyBytes, side.packedKey, side.singleKey))
  )

  private val keys = Seq(
    "id" -> 1,
    "k" -> 1,
    "big" -> 1,
    "s" -> 1,
    "amount" -> 1,
    "day" -> 1,
    "flag" -> 1,
    "k,day" -> 2,
    "s,big,flag" -> 3
  )
  private val kinds =
    Seq("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")

  for ((key, number) <- keys)
    test(s"join ordering and the choice of the operator see the same join by $key") {
      Tables.register(spark)
      for (kind <- kinds; where <- Seq("", " WHERE a.id < 1000")) {
        val columns = key.split(',').map(column => s"a.$column = b.$column").mkString(" AND ")
        val output = if (kind.contains("LEFT S") || kind.contains("LEFT A")) "a.s" else "a.s, b.d"
        val text = s"SELECT $output FROM facts a $kind dupes b ON $columns$where"
        val plan =
          withConf(SelingerConf.MODE.key -> "off")(Plans.execution(spark.sql(text)).optimizedPlan)
        val (ordering, strategy) = (seenByOrdering(plan), seenByStrategy(plan))
        // A right outer join is ordered as the left one that it is.
        val isTurned = strategy.join.joinType == RightOuter
        val sides =
          if (isTurned) (ordering.right, ordering.left) else (ordering.left, ordering.right)
        assert(common(strategy.left.side, number) == common(sides._1, number), text)
        assert(common(strategy.right.side, number) == common(sides._2, number), text)
        assert(strategy.hasEqualities == ordering.hasKeys)
        if (!isTurned) assert(strategy.builds == ordering.builds, text)
      }
    }
}
