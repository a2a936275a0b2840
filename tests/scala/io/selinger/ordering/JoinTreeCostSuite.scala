package io.selinger.ordering

import io.selinger.core.{Origin, Quantity}
import io.selinger.cost.{Cluster, JoinCost}
import io.selinger.estimate.PlanEstimate
import io.selinger.testing.SharedSession
import org.scalatest.funsuite.AnyFunSuite

class JoinTreeCostSuite extends AnyFunSuite with SharedSession {

  private def estimate(rows: Double, high: Double): PlanEstimate =
    PlanEstimate(Quantity(rows, Origin.Derived), high, None)

  /** Cost of joining ten million rows with `small`. */
  private def cost(small: PlanEstimate): Double = {
    val cluster = Cluster.of(spark)
    val trees = new JoinTreeCost(
      JoinGraphs.chain(2),
      Vector(estimate(1e7, 1e7), small),
      cluster,
      new JoinCost(cluster, JoinCost.calibratedWeight),
      OperatorLimits(broadcastBytes = Some(50.0 * (1 << 20)), hashBytes = 1e9)
    )
    trees.join(trees.relation(0), trees.relation(1), Connection.inner).seconds
  }

  test("a broadcast counts only where its operator may choose it: by the rows to be feared") {
    val sure = cost(estimate(1000, 1000))
    assert(cost(estimate(1000, 2000)) < 1.02 * sure)
    assert(cost(estimate(1000, 1e9)) > 1.5 * sure)
  }

  test("of two joins that cost the same, the one whose rows are less certain costs a little more") {
    val sure = cost(estimate(1000, 1000))
    assert(cost(estimate(1000, 1500)) > sure && cost(estimate(1000, 1500)) < 1.03 * sure)
  }

  test("a tree costs no less with more rows") {
    val costs = Seq(1e2, 1e4, 1e6, 1e8).map(rows => cost(estimate(rows, rows)))
    assert(costs == costs.sorted)
  }
}
