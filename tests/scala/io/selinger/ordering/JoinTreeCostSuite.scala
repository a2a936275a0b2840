package io.selinger.ordering

import io.selinger.core.{Origin, Quantity}
import io.selinger.cost.{Cluster, JoinCost}
import io.selinger.estimate.PlanEstimate
import io.selinger.testing.SharedSession
import org.scalatest.funsuite.AnyFunSuite

class JoinTreeCostSuite extends AnyFunSuite with SharedSession {

  private def estimate(rows: Double, high: Double): PlanEstimate =
    PlanEstimate(Quantity(rows, Origin.Derived), high, None)

  private def costs(graph: JoinGraph, estimates: PlanEstimate*): JoinTreeCost = {
    val cluster = Cluster.of(spark)
    new JoinTreeCost(
      graph,
      estimates.toVector,
      cluster,
      new JoinCost(cluster, JoinCost.calibratedWeight),
      OperatorLimits(broadcastBytes = Some(50.0 * (1 << 20)), hashBytes = 1e9)
    )
  }

  /** The joins of `order`, one after the other. */
  private def leftDeep(trees: JoinTreeCost, order: Int*): JoinTree =
    order.tail.foldLeft(trees.relation(order.head)) { (tree, i) =>
      trees.join(tree, trees.relation(i), Connection.inner)
    }

  /** Cost of joining ten million rows with `small`. */
  private def cost(small: PlanEstimate): Double =
    leftDeep(costs(JoinGraphs.chain(2), estimate(1e7, 1e7), small), 0, 1).seconds

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

  test(
    "an order is no worse if it costs no more where all relations have the rows that are feared"
  ) {
    val trees = costs(
      JoinGraphs.chain(3),
      estimate(1e3, 1e3),
      estimate(1e7, 1e7),
      // Ten rows are hoped for, a billion feared.
      estimate(10, 1e9)
    )
    val (hopeful, sure) = (leftDeep(trees, 1, 2, 0), leftDeep(trees, 1, 0, 2))
    assert(hopeful.seconds < sure.seconds)
    assert(!trees.isNoWorse(hopeful, sure))
    assert(trees.isNoWorse(sure, hopeful) && trees.isNoWorse(sure, sure))
  }

  test("of hundreds of keys the most selective ones are compared, of few all") {
    // The later a key, the more values it has.
    def compared(graph: JoinGraph) = new ComparedKeys(
      graph,
      graph.keys.zipWithIndex.map { case (key, k) => key.members.map(_._1 -> (k + 1.0)).toMap }
    )
    def half(from: Int, until: Int) = RelationSet.of(from until until)
    val few = compared(JoinGraphs.clique(16))
    assert(few.areFew && few.between(half(0, 8), half(8, 16)).size == 64)
    val graph = JoinGraphs.clique(40)
    val many = compared(graph)
    val between = many.between(half(0, 20), half(20, 40))
    assert(!many.areFew && between.size >= 20 && between.size <= 60)
    (0 until 20).foreach { i =>
      val best = graph.keys.indices.filter(graph.keys(_).joins(RelationSet.single(i), half(20, 40)))
      assert(best.takeRight(3).forall(between.contains))
    }
  }

  test("what is compared of a set are the columns of its best keys with each relation outside") {
    val graph = JoinGraphs.clique(40)
    val compared = new ComparedKeys(
      graph,
      graph.keys.map(_.members.map { case (i, _) => i -> 100.0 }.toMap)
    )
    val set = RelationSet.of(0 until 20)
    val wanted = compared.columns(set)
    val columns = (0 until 20).flatMap(i => graph.columns(i).map(_.attribute.exprId))
    assert(columns.count(wanted) == 20 * 3)
    // A single relation has one key with each of the others: all of them are kept.
    val own = graph.columns(7).map(_.attribute.exprId)
    assert(own.forall(compared.columns(RelationSet.single(7))))
  }
}
