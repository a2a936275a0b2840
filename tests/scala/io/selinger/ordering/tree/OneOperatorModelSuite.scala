package io.selinger.ordering.tree

import io.selinger.core.{Origin, Quantity, Reason}
import io.selinger.cost.{
  BroadcastNestedLoop,
  BuildSides,
  Cartesian,
  JoinCost,
  JoinDistribution,
  JoinFacts,
  JoinLimits,
  JoinOperator,
  JoinOperatorModel,
  JoinOperators,
  JoinSide,
  SortMerge
}
import io.selinger.estimate.{PlanEstimate, RowSize}
import io.selinger.ordering.JoinGraphs
import io.selinger.ordering.graph.{Connection, JoinGraph, JoinKind}
import io.selinger.strategy.JoinChoice
import io.selinger.testing.JoinSides
import io.selinger.testing.JoinSides.{anyLimits, mib, rows}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.JoinHint
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.types.LongType
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** Join ordering, its rough costs and the choice of the operator: one model, one answer. */
class OneOperatorModelSuite extends AnyFunSuite with ScalaCheckPropertyChecks {
  import OneOperatorModelSuite._

  private val cost = JoinSides.cost()
  private val graph = JoinGraphs.chain(2)

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 500)

  /** A relation of the graph, which join ordering knows by its estimate and the width of its rows. */
  private val relations: Gen[RelationRows] = for {
    rows <- rows
    slack <- Gen.oneOf(1.0, 2.0, 3.9, 4.1, 1e3)
    width <- Gen.choose(16.0, 400.0)
    counted <- Gen.oneOf(true, false)
    partitioned <- Gen.oneOf(true, false)
    broadcast <- Gen.oneOf(0.0, 1.0, 200.0, 600.0).map(_ * mib)
  } yield RelationRows(rows, rows * slack, width, counted, partitioned, broadcast)

  private def model(limits: JoinLimits, operators: Seq[JoinOperator] = JoinOperators.all) =
    new JoinOperatorModel(operators, cost, limits)

  private def operatorCost(model: JoinOperatorModel, graph: JoinGraph = graph): OperatorCost = {
    val distinct = graph.keys.map(_.members.map { case (i, _) => i -> 100.0 }.toMap)
    new OperatorCost(graph, new ComparedKeys(graph, distinct), model)
  }

  /** What join ordering has of a relation, or of a join below. */
  private def tree(relation: RelationRows, index: Int): JoinTree = {
    val origin = if (relation.isCounted) Origin.Exact else Origin.Derived
    val estimate = PlanEstimate(Quantity(relation.rows, origin), relation.upperBound, None)
    val below = JoinTree.Relation(index, estimate, relation.rowBytes)
    // As it comes out of a join: partitioned by the only key of the graph, with broadcasts below.
    JoinTree.Joined(
      below,
      below,
      Connection.inner,
      estimate,
      relation.rowBytes,
      seconds = 0.0,
      partitionings = if (relation.isPartitioned) Seq(Seq(0)) else Nil,
      broadcastBytes = relation.broadcastBytes
    )
  }

  /** What the strategy has of the same side once it has been measured; built here by hand. */
  private def side(relation: RelationRows, other: RelationRows): JoinSide = JoinSide(
    rows = relation.rows,
    upperBound = relation.upperBound,
    maxRows = Some(relation.rows),
    isCounted = relation.isCounted,
    rowBytes = relation.rowBytes,
    widthIsKnown = true,
    keyBytes = RowSize.bytesOfTypes(Seq(LongType)),
    packedKey = true,
    singleKey = true,
    shuffleExists = relation.isPartitioned,
    largestTaskShare = 1.0 / JoinSides.cluster().slots,
    otherBroadcastBytes = relation.broadcastBytes + other.broadcastBytes,
    broadcastPlaces = 1
  )

  test("ordering and strategy rank the operators of a join alike, at equal costs") {
    val chosen = collection.mutable.HashSet.empty[JoinOperator]
    forAll(relations, relations, rows, anyLimits) { (left, right, pairs, limits) =>
      val exact = limits.copy(hashMargin = 1.0)
      val result = PlanEstimate(Quantity(pairs, Origin.Derived), pairs, None)
      val ordering = operatorCost(model(limits))
      val trees = (tree(left, 0), tree(right, 1))
      val facts = ordering.facts(trees._1, trees._2, Connection.inner, result)
      val joined = JoinSides.equiJoin(side(left, right), side(right, left), pairs)
      val choice = new JoinChoice(model(exact), minGain = 0.0).choose(joined)
      // All of them, in the same order at the same costs, and so the cheapest one.
      val ordered = model(exact).candidates(facts)
      assert(ordered.map(_.operator) == choice.candidates.map(_.operator))
      assert(ordered.map(_.seconds) == choice.candidates.map(_.seconds))
      val best = choice.best.get
      val cheapest = ordering.cheapest(trees._1, trees._2, Connection.inner, result)
      assert(cheapest.seconds == best.seconds)
      val build = cheapest.broadcast.map(t => if (t eq trees._1) BuildLeft else BuildRight)
      assert(build == best.operator.broadcastSide)
      chosen += best.operator
    }
    // Each of the operators that join by keys has been the cheapest at some inputs.
    assert(chosen == JoinOperators.all.filterNot(withoutKeys).toSet)
  }

  test("a join without keys costs what Spark runs it by, also where no side may be broadcast") {
    // Nothing connects the two ends of a chain.
    val ends = JoinGraphs.chain(3)
    forAll(relations, relations, anyLimits, Gen.oneOf(JoinKind.all)) {
      (left, right, limits, kind) =>
        val how = Connection(kind, None, swapped = false)
        val result = PlanEstimate(Quantity(left.rows, Origin.Derived), left.rows, None)
        def cheapest(limits: JoinLimits) =
          operatorCost(model(limits), ends).cheapest(tree(left, 0), tree(right, 2), how, result)
        def within(bytes: Option[Double]) = cheapest(
          limits.copy(
            broadcastBytes = bytes,
            countedBroadcastBytes = bytes,
            totalBroadcastBytes = bytes.getOrElse(0.0)
          )
        ).seconds
        val (any, none) = (within(Some(1e30)), within(None))
        // Of more rows than a broadcast may ever have, the other side is broadcast: that costs a trifle more.
        if (kind == JoinKind.Inner) assert(any <= none)
        else assert(math.abs(any - none) <= 1e-6 * none)
    }
  }

  test("every kind of join may build from the sides that Spark's operators support") {
    val types: Map[JoinKind, JoinType] = Map(
      JoinKind.Inner -> Inner,
      JoinKind.LeftOuter -> LeftOuter,
      JoinKind.FullOuter -> FullOuter,
      JoinKind.Semi -> LeftSemi,
      JoinKind.Anti -> LeftAnti
    )
    for ((kind, joinType) <- types; hasKeys <- Seq(true, false))
      assert(UnplannedJoin.builds(kind, hasKeys) == BuildSides.of(joinType, hasKeys), kind)
    assert(
      UnplannedJoin.builds(JoinKind.Existence, hasKeys = true) ==
        BuildSides(false, true, false, true, isInner = false)
    )
  }

  test("a rough cost is that of the model where it was taken, for each operator") {
    val n = RoughCost.manyRows
    forAll(Gen.choose(16.0, 400.0), anyLimits, Gen.oneOf(JoinKind.all)) { (width, limits, kind) =>
      val priced = model(limits)
      val sampled = new RoughCost.Sampled(priced, width)
      val lines = RoughCost.approximating(priced, width).lines(kind)
      for (
        line <- lines;
        (left, right, pairs) <- Seq((0.0, 0.0, 0.0), (n, 0.0, 0.0), (0.0, n, 0.0), (0.0, 0.0, n))
      ) {
        def sure(rows: Double) = sampled.side(rows, rows, isCounted = false)
        val exact =
          priced.seconds(line.operator.get, sampled.join(kind, sure(left), sure(right), pairs))
        val rough = line.seconds(left, right, math.max(0.0, pairs - math.max(left, right)))
        assert(math.abs(rough - exact) <= 1e-9 * exact, line.operator)
      }
    }
  }

  test("a rough cost holds an operator for feasible just where the model does") {
    var (feasible, infeasible) = (0, 0)
    forAll(relations, relations, anyLimits, Gen.oneOf(JoinKind.all)) {
      (left, right, limits, kind) =>
        val priced = model(limits)
        val sampled = new RoughCost.Sampled(priced, left.rowBytes)
        def side(relation: RelationRows) =
          sampled.side(relation.rows, relation.upperBound, relation.isCounted)
        def allows(limit: RoughCost.Limit, relation: RelationRows) =
          limit.allows(relation.rows, relation.upperBound, relation.isCounted)
        val join = sampled.join(kind, side(left), side(right), 0.0)
        val lines = RoughCost.approximating(priced, left.rowBytes).lines(kind)
        JoinOperators.all.foreach { operator =>
          val rough = lines
            .find(_.operator.contains(operator))
            .exists(line => allows(line.left, left) && allows(line.right, right))
          assert(rough == priced.isFeasible(operator, join), s"$operator, $kind")
          if (rough) feasible += 1 else infeasible += 1
        }
    }
    assert(feasible > 500 && infeasible > 500)
  }

  test("an operator that is added to the list is chosen, ordered by and approximated") {
    // So large that none of the other operators but a sort-merge join is feasible.
    val large =
      RelationRows(1e9, 1e9, 32, isCounted = false, isPartitioned = false, broadcastBytes = 0)
    val priced = model(JoinSides.limits, JoinOperators.all :+ Dummy)
    val join = JoinSides.equiJoin(side(large, large), side(large, large), 1e9)
    assert(new JoinChoice(priced, minGain = 0.25).choose(join).best.map(_.operator).contains(Dummy))
    val result = PlanEstimate(Quantity(1e9, Origin.Derived), 1e9, None)
    val cheapest = operatorCost(priced)
      .cheapest(tree(large, 0), tree(large, 1), Connection.inner, result)
    assert(cheapest.seconds == Dummy.seconds(join, cost) && cheapest.partitionings == Seq(Seq(0)))
    val rough = RoughCost.approximating(priced, 32)
    val line = rough.lines(JoinKind.Inner).find(_.operator.contains(Dummy)).get
    def allows(rows: Double) = line.right.allows(rows, rows, isCounted = false)
    assert(allows(1e6) && !allows(3e9))
    val others = RoughCost.approximating(model(JoinSides.limits), 32)
    def seconds(rough: RoughCost) =
      rough.seconds(JoinKind.Inner, 1e9, 1e9, false, 1e9, 1e9, false, 1e9)
    assert(seconds(rough) < 0.7 * seconds(others))
  }
}

object OneOperatorModelSuite {

  private final case class RelationRows(
      rows: Double,
      upperBound: Double,
      rowBytes: Double,
      isCounted: Boolean,
      isPartitioned: Boolean,
      broadcastBytes: Double
  )

  private val withoutKeys: JoinOperator => Boolean = {
    case _: BroadcastNestedLoop | Cartesian => true
    case _ => false
  }

  /** All that it takes to add an operator, but for its line in the list. */
  private object Dummy extends JoinOperator {
    override val label: String = "DummyJoin"
    override def isFeasible(join: JoinFacts, limits: JoinLimits): Boolean =
      join.hasKeys && join.right.rows <= 2e9
    override def seconds(join: JoinFacts, cost: JoinCost): Double =
      0.25 * SortMerge.seconds(join, cost)
    override def memoryBytes(join: JoinFacts): Double = 0.0
    override def distribution: JoinDistribution = JoinDistribution.ByKeys
    override def reason: Reason = Reason.SortMergeCheapest
    override def setting: String = "spark.selinger.dummy"
    override def hint: JoinHint = JoinHint.NONE
    override def isPlannedAs(plan: SparkPlan): Boolean = false
  }
}
