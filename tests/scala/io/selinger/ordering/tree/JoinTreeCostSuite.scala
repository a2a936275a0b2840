package io.selinger.ordering.tree

import io.selinger.bench.JoinShapes
import io.selinger.core.{Origin, Quantity}
import io.selinger.cost.{Cluster, JoinCost, JoinLimits, JoinOperatorModel, JoinOperators}
import io.selinger.estimate.{Domain, PlanEstimate}
import io.selinger.ordering.{JoinGraphs, OrderProblem}
import io.selinger.ordering.graph.{Connection, JoinGraph, JoinKind, JoinRegion, RelationSet}
import io.selinger.ordering.sharing.SharedOrders
import io.selinger.testing.SharedSession
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, EqualTo, GreaterThan, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LocalRelation, LogicalPlan}
import org.apache.spark.sql.types.{DoubleType, IntegerType}
import org.scalatest.funsuite.AnyFunSuite

class JoinTreeCostSuite extends AnyFunSuite with SharedSession {

  private val mib: Double = 1 << 20

  private def estimate(rows: Double, high: Double): PlanEstimate =
    PlanEstimate(Quantity(rows, Origin.Derived), high, None)

  private val limits = JoinLimits(
    broadcastBytes = Some(50 * mib),
    countedBroadcastBytes = Some(200 * mib),
    totalBroadcastBytes = 500 * mib,
    taskHashBytes = 1e9,
    hashMargin = 1.0,
    allowsShuffledHash = true
  )

  private def costs(graph: JoinGraph, estimates: PlanEstimate*): JoinTreeCost =
    costsUnder(limits, graph, estimates: _*)

  private def costsUnder(
      limits: JoinLimits,
      graph: JoinGraph,
      estimates: PlanEstimate*
  ): JoinTreeCost = {
    val cost = new JoinCost(Cluster.of(spark), JoinCost.calibratedWeight)
    new JoinTreeCost(
      graph,
      estimates.toVector,
      new JoinOperatorModel(JoinOperators.all, cost, limits)
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

  test("a broadcast counts only where its operator may choose it: by the upper bound of the rows") {
    val sure = cost(estimate(1000, 1000))
    assert(cost(estimate(1000, 2000)) < 1.02 * sure)
    assert(cost(estimate(1000, 1e9)) > 1.5 * sure)
  }

  /** A join of equal keys, of columns that are all the same one if `isOne`. */
  private def keyed(isOne: Boolean, plan: LogicalPlan => LogicalPlan = identity): JoinGraph = {
    val relations = (0 until 3).map { i =>
      plan(LocalRelation(Seq("k", "l").map(n => AttributeReference(s"$n$i", IntegerType)()): _*))
    }
    val next = if (isOne) 0 else 1
    val conditions = Seq(
      EqualTo(relations(0).output(0), relations(1).output(0)),
      EqualTo(relations(1).output(next), relations(2).output(0))
    )
    JoinGraph.of(relations, conditions, relations.flatMap(_.output)).get
  }

  test("rows that come partitioned by the keys of a join are not shuffled again") {
    val large = Seq.fill(3)(estimate(1e8, 1e8))
    def top(graph: JoinGraph) = leftDeep(costs(graph, large: _*), 0, 1, 2) match {
      case joined: JoinTree.Joined => joined
      case other => fail(s"no join: $other")
    }
    val (same, other) = (top(keyed(isOne = true)), top(keyed(isOne = false)))
    assert(same.estimate.rows.value == other.estimate.rows.value)
    assert(same.ownSeconds < 0.8 * other.ownSeconds)
    // What an aggregation returns by its groups is partitioned by these.
    def grouped(by: Int)(relation: LogicalPlan) =
      Aggregate(relation.output.take(by), relation.output, relation)
    val groups = top(keyed(isOne = true, grouped(by = 1)))
    val moreGroups = top(keyed(isOne = true, grouped(by = 2)))
    assert(groups.seconds < 0.8 * same.seconds && moreGroups.seconds == same.seconds)
    // A broadcast partitions nothing.
    val broadcast = leftDeep(
      costs(keyed(isOne = true), estimate(1e8, 1e8), estimate(100, 100), estimate(1e8, 1e8)),
      0,
      1
    )
    assert(broadcast.partitionings.isEmpty && same.partitionings == Seq(Seq(0)))
    // What streams past a broadcast stays as it is.
    val small = costs(keyed(isOne = false), estimate(1e8, 1e8), estimate(1e8, 1e8), estimate(9, 9))
    assert(leftDeep(small, 0, 1, 2).partitionings == Seq(Seq(0)))
    // Equal nulls are hashed by other expressions, and NaN and zeros have several forms.
    assert(Partitionings.areAsIs(IntegerType) && !Partitionings.areAsIs(DoubleType))
  }

  private def region(graph: JoinGraph, best: Int*): SharedOrders.Region = {
    val trees = costs(graph, Seq.fill(3)(estimate(1e8, 1e8)): _*)
    SharedOrders.Region(graph, trees, leftDeep(trees, 0, 1, 2), leftDeep(trees, best: _*))
  }

  /** Orders that change, by region. */
  private def better(regions: SharedOrders.Region*): Map[Int, Option[JoinTree]] =
    new SharedOrders(regions.toIndexedSeq, () => false).better(minGain = 0.1).fold(
      Map.empty[Int, Option[JoinTree]]
    ) { found =>
      assert(found.together < found.alone)
      found.orders
    }

  test(
    "regions that join alike are joined in one order, if that is cheaper than the best of each"
  ) {
    val graphs = Seq.fill(2)(keyed(isOne = false))
    val (one, other) = (region(graphs(0), 0, 1, 2), region(graphs(1), 1, 2, 0))
    val changed = better(one, other)
    assert(changed.size == 1)
    // Either takes the order of the other.
    val orders = Seq(0 -> one, 1 -> other).map { case (i, region) =>
      changed.getOrElse(i, Some(region.best)).getOrElse(region.written)
    }
    assert(orders.map(_.joins.map(_.set)).distinct.size == 1)
    assert(better(one, region(graphs(1), 0, 1, 2)).isEmpty && better(one).isEmpty)
    // Of other relations nothing is computed twice; of one that is another, not what it is part of.
    def filtered(which: Int) = {
      var next = -1
      keyed(
        isOne = false,
        plan => {
          next += 1
          if (which >= 0 && next != which) plan
          else Filter(GreaterThan(plan.output.head, Literal(1)), plan)
        }
      )
    }
    Seq(-1, 1).foreach { which =>
      assert(better(one, region(filtered(which), 1, 2, 0)).isEmpty, s"filtered $which")
    }
  }

  test("what regions differ in comes later, if the rest is then computed once for all of them") {
    def differing(at: Int, value: Int) = {
      var next = -1
      val graph = keyed(
        isOne = false,
        plan => {
          next += 1
          if (next != at) plan
          else Filter(GreaterThan(plan.output.head, Literal(value)), plan)
        }
      )
      region(graph, 0, 1, 2)
    }
    val later = better(differing(at = 0, 1), differing(at = 0, 2))
    val joined = Seq(RelationSet.of(Seq(1, 2)), RelationSet.first(3))
    assert(later.keySet == Set(0, 1))
    assert(later.values.forall(_.exists(_.joins.map(_.set) == joined)))
    // Without the relation in the middle nothing connects the others; the last one comes last anyway.
    Seq(1, 2).foreach { i =>
      assert(better(differing(at = i, 1), differing(at = i, 2)).isEmpty, s"relation $i")
    }
  }

  test("many regions share, whatever else the query joins") {
    def other(i: Int) = region(
      keyed(isOne = false, r => Filter(GreaterThan(r.output.head, Literal(i)), r)),
      0,
      1,
      2
    )
    val alike = (0 until 20).flatMap { _ =>
      Seq(region(keyed(isOne = false), 0, 1, 2), region(keyed(isOne = false), 1, 2, 0))
    }
    val regions = (0 until 30).map(other) ++ alike ++ (30 until 60).map(other)
    val changed = new SharedOrders(regions, () => false).better(minGain = 0.0).get.orders
    assert(changed.keys.forall(i => i >= 30 && i < 70))
    val orders = (30 until 70).map { i =>
      changed.getOrElse(i, Some(regions(i).best)).getOrElse(regions(i).written).joins.map(_.set)
    }
    assert(orders.distinct.size == 1)
  }

  test("where the time is up, the best orders so far are kept") {
    val regions =
      Seq(Seq(0, 1, 2), Seq(1, 2, 0), Seq(1, 2, 0)).map(region(keyed(isOne = false), _: _*))
    def after(asked: Int) = {
      var left = asked
      val sharing = new SharedOrders(regions.toIndexedSeq, () => { left -= 1; left < 0 })
      (sharing.better(minGain = 0.1).map(_.orders.keySet), sharing.isPartial, asked - left)
    }
    val (whole, isPartial, asked) = after(Int.MaxValue)
    assert(whole.nonEmpty && !isPartial)
    val parts = (0 until asked).map(after)
    assert(parts.forall(_._2) && parts.head._1.isEmpty)
    assert(parts.last._1 == whole)
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
    "an order is no worse if it costs no more where all relations have as many rows as their upper bounds say"
  ) {
    val trees = costs(
      JoinGraphs.chain(3),
      estimate(1e3, 1e3),
      estimate(1e7, 1e7),
      // Ten rows are expected, a billion are possible.
      estimate(10, 1e9)
    )
    val (hopeful, sure) = (leftDeep(trees, 1, 2, 0), leftDeep(trees, 1, 0, 2))
    assert(hopeful.seconds < sure.seconds)
    assert(!trees.isNoWorse(hopeful, sure))
    assert(trees.isNoWorse(sure, hopeful) && trees.isNoWorse(sure, sure))
  }

  test("rough costs of trees are close to full ones") {
    val ratios = for {
      shape <- Seq("chain", "snowflake", "tree", "shared")
      mixed <- Seq(false, true)
      seed <- 1 to 5
    } yield {
      val region = JoinShapes(shape, 10, mixed, seed).plan
        .collectFirst(Function.unlift((node: LogicalPlan) => JoinRegion.at(node)))
      val problem = OrderProblem.of(spark, region.get).toOption.get
      val relations = (0 until problem.graph.shape.size).map(problem.trees.relation)
      val rough = new RoughTrees(relations, problem.graph.shape, problem.trees)
      def again(tree: JoinTree): JoinTree = tree match {
        case joined: JoinTree.Joined =>
          rough.join(again(joined.left), again(joined.right), joined.how)
        case relation => relation
      }
      again(problem.written).seconds / problem.written.seconds
    }
    // Where rows are less than one, or joins are not independent, only the full estimate knows.
    assert(ratios.count(r => r > 0.9 && r < 1.1) > ratios.size / 3)
    assert(ratios.max < 1.6 && ratios.count(_ > 0.6) > ratios.size * 0.6)
  }

  test("a rough cost is that of the cheapest operator that is allowed") {
    val trees = costs(JoinGraphs.chain(2), estimate(1e6, 1e6), estimate(1e6, 1e6))
    def seconds(rows: Double, high: Double, isCounted: Boolean = false) =
      trees.rough.seconds(JoinKind.Inner, 1e9, 1e9, false, rows, high, isCounted, 0)
    // Broadcast, doubtful, and too large.
    assert(seconds(1e3, 1e3) < 0.7 * seconds(1e3, 1e12))
    assert(seconds(1e3, 1e12) < seconds(1e7, 1e7))
    // A hash table of more than 50 MiB and less than 200, which may be broadcast if it is counted.
    assert(seconds(1.5e6, 1.5e6, isCounted = true) < 0.7 * seconds(1.5e6, 1.5e6))
  }

  test(
    "ordering may broadcast a larger side where its rows have been counted, as the strategy may"
  ) {
    def cost(origin: Origin) = {
      // A hash table of more than 50 MiB and less than 200.
      val small = PlanEstimate(Quantity(1.5e6, origin), 1.5e6, None)
      leftDeep(costs(JoinGraphs.chain(2), estimate(1e9, 1e9), small), 0, 1)
    }
    val (counted, guessed) = (cost(Origin.Exact), cost(Origin.Derived))
    assert(counted.seconds < guessed.seconds)
    assert(counted.broadcastBytes > 50 * mib && counted.broadcastBytes < 200 * mib)
    assert(guessed.broadcastBytes == 0)
  }

  test("the broadcasts of one tree together keep within the total of a query") {
    // Two hash tables of about 40 MiB.
    def tree(total: Double) = leftDeep(
      costsUnder(
        limits.copy(totalBroadcastBytes = total * mib),
        JoinGraphs.chain(3),
        estimate(6e5, 6e5),
        estimate(1e9, 1e9),
        estimate(6e5, 6e5)
      ),
      1,
      0,
      2
    )
    val (both, one) = (tree(total = 100), tree(total = 60))
    assert(one.broadcastBytes > 0 && both.broadcastBytes > 1.5 * one.broadcastBytes)
    assert(both.seconds < one.seconds)
  }

  test("ordering considers no shuffled hash join where the user demands sort-merge joins") {
    def seconds(allowed: Boolean) = leftDeep(
      costsUnder(
        limits.copy(broadcastBytes = None, allowsShuffledHash = allowed),
        JoinGraphs.chain(2),
        estimate(1e8, 1e8),
        estimate(1e6, 1e6)
      ),
      0,
      1
    ).seconds
    assert(seconds(allowed = true) < seconds(allowed = false))
  }

  test("of what is less than a row the share goes along") {
    val graph = JoinGraphs.chain(4)
    // Of a thousand values three relations have ten each, the last one all, and each a thousand times.
    val estimates = Seq(10.0, 10.0, 10.0, 1e6).zipWithIndex.map { case (rows, i) =>
      estimate(rows, rows).copy(domains = graph.columns(i).map { column =>
        column.attribute.exprId -> Domain(Some(1000.0), 1000.0, i.toLong)
      }.toMap)
    }
    val orders = Seq(Seq(0, 1, 2, 3), Seq(3, 2, 1, 0), Seq(1, 2, 3, 0))
    orders.foreach { order =>
      // 10 × 10 × 10 × 10⁶ / 1000³
      val rows = leftDeep(costs(graph, estimates: _*), order: _*).estimate.rows.value
      assert(rows > 0.5 && rows < 2.0, order)
    }
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
    assert(!many.areFew && between.size >= 20 && between.size <= 40)
    (0 until 20).foreach { i =>
      val best = graph.keys.indices.filter(graph.keys(_).joins(RelationSet.single(i), half(20, 40)))
      assert(best.takeRight(2).forall(between.contains))
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
    assert(columns.count(wanted) == 20 * 2)
    // A single relation has one key with each of the others: all of them are kept.
    val own = graph.columns(7).map(_.attribute.exprId)
    assert(own.forall(compared.columns(RelationSet.single(7))))
  }
}
