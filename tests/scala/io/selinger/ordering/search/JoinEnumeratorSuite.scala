package io.selinger.ordering.search

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.ordering.JoinGraphs
import io.selinger.ordering.graph.{
  Connection,
  Hypergraph,
  JoinEdge,
  JoinGraph,
  JoinKind,
  RelationSet
}
import io.selinger.ordering.sharing.Postponement
import io.selinger.ordering.tree.{JoinTree, JoinTrees, Joining, RoughCost, RoughTrees, SharedKey}
import io.selinger.testing.Subsets
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.util.Random

class JoinEnumeratorSuite extends AnyFunSuite {

  private def estimate(rows: Double) = PlanEstimate(Quantity(rows, Origin.Exact), rows, None)

  /** Trees whose cost is the rows of all joins; rows of a set are any function of it. */
  private class Costs(seed: Long, keyOf: RelationSet = RelationSet.empty) extends JoinTrees {
    var joins = 0
    private val rows = mutable.HashMap.empty[RelationSet, Double]

    def rowsOf(set: RelationSet): Double =
      rows.getOrElseUpdate(
        set,
        1 + new Random(seed ^ (set.hashCode * 0x9e3779b97f4a7c15L)).nextInt(1000).toDouble
      )

    override def relation(i: Int): JoinTree =
      JoinTree.Relation(i, estimate(rowsOf(RelationSet.single(i))), 8)

    override def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree = {
      joins += 1
      val own = rowsOf(left.set | right.set)
      JoinTree.Joined(left, right, how, estimate(own), 8, left.seconds + right.seconds + own)
    }

    override def selectivity(one: Int, other: Int): Double =
      rowsOf(RelationSet.of(Seq(one, other))) /
        (rowsOf(RelationSet.single(one)) * rowsOf(RelationSet.single(other)))

    override def selectivityOfEdge(edge: Int): Double = 1.0

    override def sharedKeys: Seq[SharedKey] =
      if (keyOf.isEmpty) Nil else Seq(SharedKey(keyOf, selectivity))

    override def rough: RoughCost = {
      val unlimited = new RoughCost.Limit(1e300, 1e300, 1e300)
      new RoughCost(
        _ => Seq(new RoughCost.Line(None, 0, 0, 0, 0, unlimited, unlimited)),
        ofRow = 1
      )
    }
  }

  private def enumerator(
      graph: Hypergraph,
      costs: Costs,
      maxPairs: Long = Long.MaxValue / 100,
      used: () => Double = () => 0.0,
      written: Option[JoinTree] = None
  ) = new JoinEnumerator(graph, costs, written, maxPairs, used)

  private def search(graph: JoinGraph, costs: Costs, maxPairs: Long = Long.MaxValue / 100) =
    enumerator(graph.shape, costs, maxPairs).best().get

  /** The cheapest of all bushy trees without cross products, by trying them all. */
  private def optimum(graph: Hypergraph, costs: Costs): Double = {
    val best = mutable.HashMap.empty[RelationSet, Option[JoinTree]]
    def of(set: RelationSet): Option[JoinTree] = best.getOrElseUpdate(
      set,
      if (set.size == 1) Some(costs.relation(set.lowest))
      else {
        val trees = for {
          left <- Subsets.of(set)
          right = set.without(left)
          if right.nonEmpty && left.contains(set.lowest)
          how <- graph.connection(left, right)
          l <- of(left)
          r <- of(right)
        } yield Joining.join(l, r, how, costs)
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
      assert(found.tree.seconds == optimum(graph.shape, costs), s"seed $seed")
    }
  }

  test("moving parts of a tree keeps its relations, and never makes it costlier") {
    val gains = (1 to 60).map { seed =>
      val graph = JoinGraphs.random(3 + seed % 10, new Random(seed))
      val costs = new Costs(seed.toLong)
      val relations = (0 until graph.shape.size).map(costs.relation)
      val start =
        GreedyOperatorOrdering
          .best(
            relations,
            graph.shape,
            costs,
            GreedyOperatorOrdering.neighbours(graph.shape),
            () => false
          ).get
      def improved(most: Int) =
        new SubtreeMoves(graph.shape, costs, most, () => false).improved(start)
      val tree = improved(most = 100000)
      assert(tree.leaves.sorted == start.leaves.sorted, s"seed $seed")
      assert(tree.seconds <= start.seconds && tree.seconds >= optimum(graph.shape, costs))
      assert(tree.joins.forall(j => graph.shape.connection(j.left.set, j.right.set).isDefined))
      assert(improved(most = 0) eq start)
      tree.seconds / start.seconds
    }
    assert(gains.count(_ < 1.0) > 10)
  }

  private def counted(graph: Hypergraph, most: Long) =
    new CsgCmpPairs(graph, most, () => false).result()

  test("of graphs that have too many pairs none is listed") {
    // A star of n relations has (n − 1) · 2ⁿ⁻² pairs.
    val star = JoinGraphs.star(12).shape
    assert(counted(star, 11 * 1024) match { case (pairs, all) => all && pairs.size == 11 * 1024 })
    assert(counted(star, 11 * 1024 - 1) == ((IndexedSeq.empty, false)))
    (1 to 30).foreach { seed =>
      val random = new Random(seed)
      val size = 2 + random.nextInt(11)
      val tree = JoinGraphs.graph(size, (1 until size).map(i => (random.nextInt(i), i))).shape
      val (pairs, complete) = counted(tree, Long.MaxValue / 100)
      assert(complete && counted(tree, pairs.size.toLong)._2, s"seed $seed")
      assert(counted(tree, pairs.size - 1L) == ((IndexedSeq.empty, false)), s"seed $seed")
    }
  }

  test("pairs of up to 64 relations are listed, of more none") {
    assert(counted(JoinGraphs.chain(65).shape, Long.MaxValue / 100) == ((IndexedSeq.empty, false)))
    val chain = JoinGraphs.chain(64).shape
    val (pairs, complete) = counted(chain, Long.MaxValue / 100)
    assert(complete && pairs.size == (64 * 64 * 64 - 64) / 6)
    assert((pairs.last.csg | pairs.last.cmp) == chain.all)
    // All joins with the last relation of all.
    val star =
      JoinGraphs.graph(64, (0 until 12).map(i => (i, 63)) ++ (12 until 63).map(i => (i - 1, i)))
    val last = counted(star.shape, 1000)
    assert(last == ((IndexedSeq.empty, false)))
  }

  private def rough(graph: Hypergraph, costs: Costs) =
    new RoughTrees((0 until graph.size).map(costs.relation), graph, costs)

  /** Whether each pair is in some tree of all relations that has none but these. */
  private def areInTrees(pairs: IndexedSeq[CsgCmpPairs.Pair], graph: Hypergraph): Boolean = {
    val built = mutable.HashSet.from((0 until graph.size).map(RelationSet.single))
    val used = mutable.HashSet(graph.all)
    pairs.forall { pair =>
      built += pair.csg | pair.cmp
      built(pair.csg) && built(pair.cmp)
    } && pairs.reverse.forall { pair =>
      used ++= Seq(pair.csg, pair.cmp)
      used(pair.csg | pair.cmp)
    }
  }

  test(
    "the pairs that remain are those of the cheapest trees at rough costs, each with all of its parts"
  ) {
    val shares = (1 to 60).map { seed =>
      val graph = JoinGraphs.random(6 + seed % 5, new Random(seed)).shape
      val trees = rough(graph, new Costs(seed.toLong))
      val all = counted(graph, Long.MaxValue / 100)._1
      val wanted = 10 + all.size / 4
      def best(pairs: IndexedSeq[CsgCmpPairs.Pair]) =
        ExactSearch.best(graph, trees.relation, trees, pairs, None, () => false)
      val found =
        new CoarseToFinePruning(graph, trees, all.size.toLong, wanted, () => false).result()
      assert(found.nonEmpty && found.size <= wanted, s"seed $seed")
      assert(all.filter(found.toSet) == found, s"seed $seed")
      assert(best(found).get.seconds == best(all).get.seconds, s"seed $seed")
      assert(areInTrees(found, graph), s"seed $seed")
      found.size.toDouble / all.size
    }
    assert(shares.max < 1.0 && shares.sum > 60 * 0.1)
    val graph = JoinGraphs.clique(9).shape
    def found(most: Long, wanted: Int, expired: () => Boolean = () => false) =
      new CoarseToFinePruning(graph, rough(graph, new Costs(1)), most, wanted, expired).result()
    assert(found(10000, 2100).nonEmpty)
    // Too many to list, or to keep, or too late.
    assert(found(1000, 2100).isEmpty && found(10000, 0).isEmpty)
    assert(found(10000, 2100, () => true).isEmpty)
  }

  test("relations that are to come later stand right above the join that they came before") {
    val orders = (1 to 60).map { seed =>
      val graph = JoinGraphs.random(3 + seed % 8, new Random(seed)).shape
      val costs = new Costs(seed.toLong)
      val tree = enumerator(graph, costs).best().get.tree
      val later = RelationSet.of(Seq(seed % graph.size, seed / 2 % graph.size))
      val found = new Postponement(graph, costs, later).orders(tree).toSeq
      found.foreach { order =>
        assert(order.set == graph.all && order.leaves.sorted == tree.leaves.sorted)
        // Of the tree it has either a part that is free of them, or the rest as it was.
        val parts = order.joins.filter(!_.set.meets(later)).map(_.set)
        val joined = tree.joins.map(join => join.set.without(later))
        assert(parts.forall(joined.contains), s"seed $seed")
        assert(order.joins.forall(j => graph.connection(j.left.set, j.right.set).isDefined))
        assert(order.joins.map(_.set) != tree.joins.map(_.set))
      }
      found.size
    }
    assert(orders.count(_ > 0) > 20)
    val chain = new Costs(1)
    val graph = JoinGraphs.chain(3).shape
    val tree = enumerator(graph, chain).best().get.tree
    assert(new Postponement(graph, chain, RelationSet.empty).orders(tree).isEmpty)
    assert(new Postponement(graph, chain, graph.all).orders(tree).isEmpty)
  }

  test("beyond the limit of pairs a tree of all relations is found, and the result says so") {
    (1 to 20).foreach { seed =>
      val graph = JoinGraphs.random(12, new Random(seed)).shape
      val found = enumerator(graph, new Costs(seed.toLong), maxPairs = 200).best().get
      assert(found.limit.contains(JoinEnumerator.Limit.Pairs) && found.tree.set == graph.all)
      assert(found.method != JoinEnumerator.Method.Exact)
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
        val graph = form(n).shape
        val (found, complete) = new CsgCmpPairs(graph, pairs(n), () => false).result()
        assert(complete && found.size == pairs(n), s"$n relations")
        assert(found.distinctBy(pair => Set(pair.csg, pair.cmp)).size == found.size)
      }
    }
  }

  test("more pairs than allowed are not looked at, and the result says so") {
    val graph = JoinGraphs.star(30)
    val costs = new Costs(3)
    val found = search(graph, costs, maxPairs = 1000)
    assert(found.limit.contains(JoinEnumerator.Limit.Pairs) && found.tree.set == graph.all)
    import JoinEnumerator.Method
    assert(found.method != Method.Exact)
    assert(costs.joins < 30 * 30 * 30)
  }

  test("no result costs more than the greedy order or the one written") {
    (1 to 40).foreach { seed =>
      val graph = JoinGraphs.random(12 + seed % 12, new Random(seed)).shape
      val costs = new Costs(seed.toLong)
      val relations = (0 until graph.size).map(costs.relation)
      val greedy = GreedyOperatorOrdering
        .best(relations, graph, costs, GreedyOperatorOrdering.neighbours(graph), () => false).get
      val random = new Random(seed)
      val written = Iterator
        .iterate(relations: IndexedSeq[JoinTree]) { forest =>
          val joined = for {
            one <- forest.indices.iterator
            other <- forest.indices.drop(one + 1)
            tree <- Joining.join(forest(one), forest(other), graph, costs)
          } yield (one, other, tree)
          val (one, other, tree) = joined.drop(random.nextInt(3)).nextOption().getOrElse {
            val all = forest.indices.combinations(2).flatMap { pair =>
              Joining.join(forest(pair(0)), forest(pair(1)), graph, costs).map(t =>
                (pair(0), pair(1), t)
              )
            }
            all.next()
          }
          forest.indices.filterNot(i => i == one || i == other).map(forest) :+ tree
        }
        .find(_.size == 1)
        .get
        .head
      val found = enumerator(graph, costs, maxPairs = 10, written = Some(written)).best().get
      assert(found.tree.seconds <= greedy.seconds && found.tree.seconds <= written.seconds)
      assert(found.tree.leaves.sorted == relations.indices)
    }
  }

  test("relations that share a key are searched by rough costs beyond the limit of pairs") {
    import JoinEnumerator.Method
    val results = (1 to 30).map { seed =>
      val graph = JoinGraphs.clique(8 + seed % 4).shape
      val costs = new Costs(seed.toLong, keyOf = graph.all)
      val relations = (0 until graph.size).map(costs.relation)
      val greedy = GreedyOperatorOrdering
        .best(relations, graph, costs, GreedyOperatorOrdering.neighbours(graph), () => false).get
      val written = relations.reduceLeft[JoinTree](Joining.join(_, _, graph, costs).get)
      def found(costs: Costs) =
        enumerator(graph, costs, maxPairs = 1000, written = Some(written)).best().get
      val guided = found(costs)
      assert(guided.limit.contains(JoinEnumerator.Limit.Pairs))
      assert(guided.tree.leaves.sorted == relations.indices, s"seed $seed")
      assert(guided.tree.joins.forall(j => graph.connection(j.left.set, j.right.set).isDefined))
      assert(guided.tree.seconds <= math.min(greedy.seconds, written.seconds), s"seed $seed")
      val linear = found(new Costs(seed.toLong))
      assert(linear.method != Method.Guided)
      if (guided.method == Method.Guided) Some(guided.tree.seconds / linear.tree.seconds) else None
    }
    val ratios = results.flatten
    assert(ratios.size > 20)
    // Against linear orders, which would be searched instead.
    assert(math.exp(ratios.map(math.log).sum / ratios.size) <= 1.0, ratios.mkString(" "))
  }

  test("linearised dynamic programming keeps the order of relations, and is optimal among such") {
    (1 to 40).foreach { seed =>
      val graph = JoinGraphs.random(3 + seed % 5, new Random(seed)).shape
      val costs = new Costs(seed.toLong)
      val all = (0 until graph.size).permutations.flatMap { order =>
        val found = LinDp.best(order.map(costs.relation), graph, costs, () => false)
        found.foreach { tree =>
          // Sides of inner joins are exchanged by nobody.
          assert(tree.leaves == order)
        }
        found.map(_.seconds)
      }
      assert(all.min == optimum(graph, costs))
    }
  }

  test("hundreds of relations are ordered too") {
    Seq(65, 130, 300).foreach { n =>
      val graph = Hypergraph.of(
        n,
        (1 until n).map { i =>
          val near = RelationSet.single(new Random(i).nextInt(i))
          JoinEdge(JoinKind.Inner, near, RelationSet.single(i), Nil, Nil)
        }
      )
      val found = enumerator(graph, new Costs(7), maxPairs = 1000).best().get
      assert(found.tree.set == RelationSet.first(n) && found.tree.joins.size == n - 1)
    }
  }

  test("after half of the time the exact search stops, after all of it none goes on") {
    def after(used: () => Double) = {
      val costs = new Costs(3)
      val graph = JoinGraphs.clique(12).shape
      val found = enumerator(graph, costs, used = used).best()
      (found, costs.joins)
    }
    val (late, joins) = after(() => 0.6)
    assert(late.exists(_.limit.contains(JoinEnumerator.Limit.Time)))
    assert(late.exists(_.tree.set == RelationSet.first(12)) && joins < 20000)
    assert(after(() => 1.0)._1.isEmpty)
    // While pairs are costed, too, which takes longer than finding them.
    var asked = 0L
    val (whole, _) = after { () =>
      asked += 1
      0.0
    }
    assert(whole.exists(_.method == JoinEnumerator.Method.Exact))
    val last = asked - 1000
    asked = 0
    val (slow, _) = after { () =>
      asked += 1
      if (asked < last) 0.0 else 0.7
    }
    assert(slow.exists(_.limit.contains(JoinEnumerator.Limit.Time)))
  }

  test("the same graph gives the same tree") {
    val graph = JoinGraphs.random(8, new Random(5))
    assert(search(graph, new Costs(9)).tree == search(graph, new Costs(9)).tree)
  }
}
