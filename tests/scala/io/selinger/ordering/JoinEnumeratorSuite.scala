package io.selinger.ordering

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.util.Random

class JoinEnumeratorSuite extends AnyFunSuite {

  private def estimate(rows: Double) = PlanEstimate(Quantity(rows, Origin.Exact), rows, None)

  /** Trees whose cost is the rows of all joins; rows of a set are any function of it. */
  private final class Costs(seed: Long) {
    var joins = 0
    private val rows = mutable.LongMap.empty[Double]

    private def rowsOf(set: Long): Double =
      rows.getOrElseUpdate(set, 1 + new Random(seed ^ (set * 0x9e3779b97f4a7c15L)).nextInt(1000))

    def relation(i: Int): JoinTree =
      JoinTree.Relation(i, estimate(rowsOf(RelationSet.single(i))), 8)

    def join(left: JoinTree, right: JoinTree): JoinTree = {
      joins += 1
      val own = rowsOf(left.set | right.set)
      JoinTree.Joined(left, right, estimate(own), 8, left.seconds + right.seconds + own)
    }
  }

  private def search(graph: JoinGraph, costs: Costs, maxPairs: Long = Long.MaxValue) =
    new JoinEnumerator(graph, costs.relation, costs.join, maxPairs, () => 0.0).best().get

  /** The cheapest of all bushy trees without cross products, by trying them all. */
  private def optimum(graph: JoinGraph, costs: Costs): Double = {
    val best = mutable.LongMap.empty[Option[JoinTree]]
    def of(set: Long): Option[JoinTree] = best.getOrElseUpdate(
      set,
      if (java.lang.Long.bitCount(set) == 1) Some(costs.relation(RelationSet.lowest(set)))
      else {
        val halves = Iterator.iterate((set - 1) & set)(half => (half - 1) & set).takeWhile(_ != 0)
        val trees = for {
          left <- halves
          right = RelationSet.without(set, left)
          if left < right && (graph.neighboursOf(left) & right) != 0
          l <- of(left)
          r <- of(right)
        } yield costs.join(l, r)
        trees.minByOption(_.seconds)
      }
    )
    of(graph.all).get.seconds
  }

  test("the tree found is the cheapest of all, on random graphs") {
    (1 to 60).foreach { seed =>
      val graph = JoinGraphs.random(2 + seed % 7, new Random(seed))
      val costs = new Costs(seed.toLong)
      val found = search(graph, costs)
      assert(found.limit.isEmpty && found.tree.set == graph.all)
      assert(found.tree.seconds == optimum(graph, costs), s"seed $seed")
    }
  }

  // Moerkotte and Neumann, VLDB 2006, give the number of pairs for each form.
  Seq[(String, Int => JoinGraph, Int => Long)](
    ("chains", JoinGraphs.chain, n => (n.toLong * n * n - n) / 6),
    ("cycles", JoinGraphs.cycle, n => (n.toLong * n * n - 2L * n * n + n) / 2),
    ("stars", JoinGraphs.star, n => (n - 1L) << (n - 2)),
    ("cliques", JoinGraphs.clique, n => (math.pow(3, n).toLong - (1L << (n + 1)) + 1) / 2)
  ).foreach { case (name, form, pairs) =>
    test(s"each pair of connected parts is looked at once: $name") {
      (3 to 8).foreach { n =>
        val costs = new Costs(1)
        val _ = search(form(n), costs)
        assert(costs.joins == pairs(n), s"$n relations")
      }
    }
  }

  test("more pairs than allowed are ordered greedily, and the result says so") {
    val graph = JoinGraphs.star(30)
    val costs = new Costs(3)
    val found = search(graph, costs, maxPairs = 1000)
    assert(found.limit.contains(JoinEnumerator.Limit.Pairs) && found.tree.set == graph.all)
    assert(costs.joins < 30 * 30)
  }

  test("after half of the time the search goes on greedily, after all of it it gives up") {
    def after(used: () => Double) = {
      val costs = new Costs(3)
      val graph = JoinGraphs.clique(12)
      val found = new JoinEnumerator(graph, costs.relation, costs.join, Long.MaxValue, used).best()
      (found, costs.joins)
    }
    val (late, joins) = after(() => 0.6)
    assert(late.exists(_.limit.contains(JoinEnumerator.Limit.Time)))
    assert(late.exists(_.tree.set == RelationSet.first(12)) && joins < 12 * 12)
    assert(after(() => 1.0)._1.isEmpty)
    // While pairs are costed, too, which takes longer than finding them.
    val whole = new Costs(3)
    val _ = search(JoinGraphs.clique(12), whole)
    var asked = 0L
    val (slow, some) = after { () =>
      asked += 1
      if (asked < whole.joins * 2) 0.0 else 0.7
    }
    assert(slow.exists(_.limit.contains(JoinEnumerator.Limit.Time)))
    assert(some < whole.joins)
  }

  test("the same graph gives the same tree") {
    val graph = JoinGraphs.random(8, new Random(5))
    assert(search(graph, new Costs(9)).tree == search(graph, new Costs(9)).tree)
  }
}
