package io.selinger.ordering.tree

import io.selinger.cost.{
  BroadcastNestedLoop,
  BuildSides,
  JoinDistribution,
  JoinFacts,
  JoinOperatorModel,
  JoinSide
}
import io.selinger.cost.JoinOperatorModel.Priced
import io.selinger.estimate.{PlanEstimate, RowSize}
import io.selinger.estimate.joins.{JoinEstimator, JoinKeys}
import io.selinger.ordering.graph.{Connection, JoinGraph, JoinKind, JoinPredicate, RelationSet}
import io.selinger.ordering.tree.JoinTree.Partitioning
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.types.{ByteType, DataType, IntegerType, LongType, ShortType}

/**
 * What single joins of trees compare, and what they cost by the cheapest operator.
 *
 * @param model of operators, under the limits of the session
 */
private[ordering] final class OperatorCost(
    graph: JoinGraph,
    compared: ComparedKeys,
    model: JoinOperatorModel
) {
  import OperatorCost._

  private val cost = model.cost
  private val unplanned = model.under(UnplannedJoin.limits(model.limits))
  private val partitionings = new Partitionings(graph)

  /** How the rows of each relation come partitioned. */
  val ofRelation: IndexedSeq[Seq[Partitioning]] = graph.relations.map(partitionings.ofRelation)

  /** Of the operators that will be allowed. */
  def cheapest(
      left: JoinTree,
      right: JoinTree,
      how: Connection,
      result: PlanEstimate
  ): Operator = {
    val keys = keysBetween(left.set, right.set, how)
    val join = factsOf(left, right, how, result, keys)
    unplanned.cheapest(join) match {
      case Some(best) => operatorOf(best, left, right, keys, how.kind)
      // Spark broadcasts a side then, however large.
      case None =>
        val loops = BuildSides.all.filter(join.builds.broadcast).map(BroadcastNestedLoop(_))
        Operator(loops.map(_.seconds(join, cost)).min, Nil, None, 0.0)
    }
  }

  private def operatorOf(
      best: Priced,
      left: JoinTree,
      right: JoinTree,
      keys: Keys,
      kind: JoinKind
  ): Operator = best.operator.distribution match {
    case JoinDistribution.Broadcast(build) =>
      val (built, probe) = if (build == BuildLeft) (left, right) else (right, left)
      Operator(best.seconds, probe.partitionings, Some(built), best.memoryBytes)
    case JoinDistribution.ByKeys => Operator(best.seconds, keys.after(kind), None, 0.0)
    case JoinDistribution.AllPairs => Operator(best.seconds, Nil, None, 0.0)
  }

  /** The join of two trees, as operators see it. */
  private[ordering] def facts(
      left: JoinTree,
      right: JoinTree,
      how: Connection,
      result: PlanEstimate
  ): JoinFacts = factsOf(left, right, how, result, keysBetween(left.set, right.set, how))

  private def factsOf(
      left: JoinTree,
      right: JoinTree,
      how: Connection,
      result: PlanEstimate,
      keys: Keys
  ): JoinFacts = {
    val hasKeys = keys.types.nonEmpty
    val isNumber = keys.types.size == 1 && wholeNumbers(keys.types.head)
    val keyBytes = RowSize.bytesOfTypes(keys.types)
    val broadcastBytes = left.broadcastBytes + right.broadcastBytes
    def side(tree: JoinTree, own: Partitioning) = UnplannedJoin.side(
      tree.estimate.rows.value,
      tree.estimate.upperBound,
      JoinSide.areCounted(tree.estimate.rows),
      tree.rowBytes,
      keyBytes,
      isNumber,
      isPartitioned = tree.partitionings.contains(own),
      broadcastBytes,
      cost.slots
    )
    val pairs =
      if (!hasKeys) 0.0
      else if (keys.isAll && how.kind == JoinKind.Inner) result.rows.value
      else pairsOf(left, right, how)
    new JoinFacts(
      side(left, keys.left),
      side(right, keys.right),
      UnplannedJoin.builds(how.kind, hasKeys),
      hasKeys,
      pairs
    )
  }

  private def keysBetween(left: RelationSet, right: RelationSet, how: Connection): Keys = {
    val classes = if (how.edge.isEmpty) compared.between(left, right) else Nil
    val (keys, rest) =
      graph.predicatesBetween(left, right, how).partition(_.isKey(left, right))
    val pairs = keys.flatMap(pairOf(_, left))
    val types = classes.map(graph.keys(_).dataType) ++ pairs.map(_.left.dataType)
    // Spark hashes what is null-safe, and numbers that have several forms, by other expressions.
    if (compared.areFew && !pairs.exists(_.nullSafe) && types.forall(Partitionings.areAsIs)) {
      Keys(
        types,
        rest.isEmpty,
        partitionings.by(classes, pairs.map(_.left)),
        partitionings.by(classes, pairs.map(_.right))
      )
    } else Keys(types, rest.isEmpty, Nil, Nil)
  }

  /** What a join of two trees compares: keys, and the rest of its condition. */
  def comparisons(
      left: JoinTree,
      right: JoinTree,
      how: Connection
  ): Comparisons = {
    val classes = if (how.edge.isEmpty) equalities(left, right) else Nil
    val (keys, rest) = graph
      .predicatesBetween(left.set, right.set, how)
      .partition(_.isKey(left.set, right.set))
    val pairs = keys.flatMap(pairOf(_, left.set))
    Comparisons(
      classes.map(e => JoinKeys.Pair(e.left, e.right, nullSafe = false)) ++ pairs,
      rest.map(_.condition)
    )
  }

  /** An equality, the side of `left` first. */
  private def pairOf(predicate: JoinPredicate, left: RelationSet): Option[JoinKeys.Pair] =
    (predicate.condition, predicate.sides) match {
      case (e @ Equality(l, r), Some((one, _))) =>
        val nullSafe = e.isInstanceOf[EqualNullSafe]
        Some(
          if (one.within(left)) JoinKeys.Pair(l, r, nullSafe)
          else JoinKeys.Pair(r, l, nullSafe)
        )
      case _ => None
    }

  /** Those by columns that are known of both trees, if there are any. */
  private def equalities(left: JoinTree, right: JoinTree): Seq[EqualTo] = {
    val all =
      compared.between(left.set, right.set).flatMap(graph.keys(_).between(left.set, right.set))
    def isKnown(side: Expression, tree: JoinTree) =
      side.references.forall(c => tree.estimate.domains.contains(c.exprId))
    lazy val known = all.filter(e => isKnown(e.left, left) && isKnown(e.right, right))
    if (compared.areFew || known.isEmpty) all else known
  }

  private def pairsOf(left: JoinTree, right: JoinTree, how: Connection): Double =
    JoinEstimator.pairs(comparisons(left, right, how).keys, left.estimate, right.estimate)

  /** What the cheapest operator of a join shuffles or broadcasts of its inputs. */
  def exchanges(join: JoinTree.Joined): Seq[Exchange] = {
    val (left, right) = (join.left, join.right)
    val keys = keysBetween(left.set, right.set, join.how)
    val operator = cheapest(left, right, join.how, join.estimate)
    if (keys.types.isEmpty) Nil
    else {
      val pairs = comparisons(left, right, join.how).keys
      def exchange(tree: JoinTree, own: Seq[Expression], broadcast: Boolean) = {
        val side = JoinSide(tree.estimate.rows.value, tree.rowBytes, shuffleExists = false)
        Exchange(tree, own, broadcast, if (broadcast) cost.broadcast(side) else cost.shuffled(side))
      }
      Seq((left, keys.left, pairs.map(_.left)), (right, keys.right, pairs.map(_.right))).collect {
        case (tree, _, own) if operator.broadcast.exists(_ eq tree) => exchange(tree, own, true)
        case (tree, partitioning, own)
            if operator.broadcast.isEmpty && !tree.partitionings.contains(partitioning) =>
          exchange(tree, own, false)
      }
    }
  }

  /** Of rows of that width. */
  def rough(rowBytes: Double): RoughCost = RoughCost.approximating(unplanned, rowBytes)
}

private[ordering] object OperatorCost {

  /** What a join compares: keys for equality, and the rest of its condition. */
  final case class Comparisons(keys: Seq[JoinKeys.Pair], rest: Seq[Expression])

  /**
   * Rows that a join has moved.
   *
   * @param keys of the join, of this side
   */
  final case class Exchange(
      input: JoinTree,
      keys: Seq[Expression],
      isBroadcast: Boolean,
      seconds: Double
  )

  /**
   * What a join takes by one operator.
   *
   * @param partitionings how its rows come partitioned then
   * @param broadcast the side that is; none where the operator needs both sides partitioned
   * @param broadcastBytes of the hash table of that side
   */
  final case class Operator(
      seconds: Double,
      partitionings: Seq[Partitioning],
      broadcast: Option[JoinTree],
      broadcastBytes: Double
  )

  /**
   * What a join compares.
   *
   * @param isAll whether the keys are all that it compares
   * @param left by what a shuffle partitions the left side; nothing where that is not followed
   */
  private final case class Keys(
      types: Seq[DataType],
      isAll: Boolean,
      left: Partitioning,
      right: Partitioning
  ) {

    /** How rows come partitioned after a join of shuffled sides: where no side is filled with nulls. */
    def after(kind: JoinKind): Seq[Partitioning] = {
      val found = kind match {
        case JoinKind.FullOuter => Nil
        case JoinKind.Inner if left != right => Seq(left, right)
        case _ => Seq(left)
      }
      found.filter(_.nonEmpty)
    }
  }

  private val wholeNumbers: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)
}
