package io.selinger.ordering

import io.selinger.cost.{Cluster, HashTable, JoinCost, JoinSide}
import io.selinger.estimate.{JoinEstimator, PlanEstimate, RowSize}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.types.{ByteType, DataType, IntegerType, LongType, ShortType}
import scala.collection.mutable

/**
 * What is allowed to a join that is not planned yet.
 *
 * @param broadcastBytes largest hash table to broadcast; none where the user forbids it
 * @param hashBytes largest hash table of one task of a shuffled join
 */
final case class OperatorLimits(broadcastBytes: Option[Double], hashBytes: Double)

/**
 * Costs of join trees: each join at the price of the cheapest operator that will be allowed, by the
 * same cost model by which the operator is chosen later.
 */
final class JoinTreeCost(
    graph: JoinGraph,
    val estimates: IndexedSeq[PlanEstimate],
    cluster: Cluster,
    cost: JoinCost,
    limits: OperatorLimits
) {
  import JoinTreeCost._

  // By set: the same rows come out whatever the order, so the first estimate holds for all of them.
  private val known = mutable.LongMap.empty[Known]

  def relation(index: Int): JoinTree = {
    val set = RelationSet.single(index)
    val found = known.getOrElseUpdate(
      set,
      Known(graph.relations(index), estimates(index), width(set, estimates(index)))
    )
    JoinTree.Relation(index, found.estimate, found.rowBytes)
  }

  def join(left: JoinTree, right: JoinTree): JoinTree = {
    val set = left.set | right.set
    val result = known.getOrElseUpdate(set, joined(left, right))
    JoinTree.Joined(
      left,
      right,
      result.estimate,
      result.rowBytes,
      left.seconds + right.seconds + operatorSeconds(left, right, result.estimate) +
        cost.output(result.estimate.rows.value, result.rowBytes)
    )
  }

  private def joined(left: JoinTree, right: JoinTree): Known = {
    val (l, r) = (known(left.set), known(right.set))
    val condition = graph.conditionBetween(left.set, right.set)
    val plan = Join(l.plan, r.plan, Inner, condition, JoinHint.NONE)
    // Both inputs are known, so the answer is.
    val estimate = JoinEstimator.inner(plan, l.estimate, r.estimate)
    Known(plan, estimate, width(left.set | right.set, estimate))
  }

  private def width(set: Long, estimate: PlanEstimate): Double =
    RowSize.of(graph.requiredOf(set), estimate.columns)

  private def operatorSeconds(left: JoinTree, right: JoinTree, result: PlanEstimate): Double = {
    val (keys, others) =
      graph.equalitiesBetween(left.set, right.set).map(e => (e.left, e.right)).unzip
    val packed = keys.size == 1 && wholeNumbers(keys.head.dataType)
    val keyBytes = RowSize.ofTypes(keys.map(_.dataType))
    def side(tree: JoinTree) =
      JoinSide(tree.estimate.rows.value, tree.rowBytes, shuffleExists = false, packed)
    def table(tree: JoinTree) =
      HashTable.bytes(tree.estimate.rows.value, tree.rowBytes, keyBytes, packed)

    val pairs =
      if (graph.predicates.exists(_.joins(left.set, right.set))) {
        JoinEstimator.pairs(keys, others, left.estimate, right.estimate)
      } else result.rows.value
    val sides = Seq((left, right), (right, left))
    // As for the operator later: a broadcast must be safe even if the estimate misleads.
    def feared(tree: JoinTree) =
      HashTable.bytes(tree.estimate.high, tree.rowBytes, keyBytes, packed)
    val broadcasts = sides.collect {
      case (build, stream) if limits.broadcastBytes.exists(feared(build) <= _) =>
        cost.broadcastHash(side(build), side(stream)) +
          cost.hashedPairs(pairs, side(stream), table(build))
    }
    val hashed = sides.collect {
      case (build, stream) if table(build) / cluster.slots <= limits.hashBytes =>
        cost.shuffledHash(side(build), side(stream)) +
          cost.hashedPairs(pairs, side(stream), table(build) / cluster.slots)
    }
    val larger = if (left.estimate.rows.value >= right.estimate.rows.value) left else right
    val sorted =
      cost.sortMerge(side(left), side(right)) + cost.mergedPairs(pairs, side(larger))
    if (keys.isEmpty) product(side(left), side(right))
    else (sorted +: (broadcasts ++ hashed)).min
  }

  /** Every pair of rows is looked at. */
  private def product(left: JoinSide, right: JoinSide): Double =
    cost.output(left.rows * right.rows, 0.0)
}

object JoinTreeCost {

  private final case class Known(plan: LogicalPlan, estimate: PlanEstimate, rowBytes: Double)

  private val wholeNumbers: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)
}
