package io.selinger.ordering.tree

import io.selinger.cost.{Cluster, HashTable, JoinCost, JoinSettings, JoinSide}
import io.selinger.estimate.{PlanEstimate, RowSize}
import io.selinger.estimate.joins.{JoinEstimator, JoinKeys}
import io.selinger.ordering.graph.{Connection, JoinGraph, JoinKind, JoinPredicate, RelationSet}
import io.selinger.ordering.tree.JoinTree.Partitioning
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.{ByteType, DataType, IntegerType, LongType, ShortType}

/**
 * What is allowed to a join that is not planned yet.
 *
 * @param broadcastBytes largest hash table to broadcast; none where the user forbids it
 * @param hashBytes largest hash table of one task of a shuffled join
 */
final case class OperatorLimits(broadcastBytes: Option[Double], hashBytes: Double)

/** What single joins of trees compare, and what they cost by the cheapest operator. */
private[ordering] final class OperatorCost(
    graph: JoinGraph,
    compared: ComparedKeys,
    cluster: Cluster,
    cost: JoinCost,
    limits: OperatorLimits
) {
  import OperatorCost._

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
    val packed = keys.types.size == 1 && wholeNumbers(keys.types.head)
    val keyBytes = RowSize.ofTypes(keys.types)
    def side(tree: JoinTree, own: Partitioning) =
      JoinSide(
        tree.estimate.rows.value,
        tree.rowBytes,
        shuffleExists = tree.partitionings.contains(own),
        packed
      )
    def tableBytes(tree: JoinTree, rows: Double) =
      HashTable.bytes(rows, tree.rowBytes, keyBytes, packed)

    if (keys.types.isEmpty) Operator(product(left, right), Nil, None)
    else {
      val (leftSide, rightSide) = (side(left, keys.left), side(right, keys.right))
      val pairs =
        if (keys.isAll && how.kind == JoinKind.Inner) result.rows.value
        else pairsOf(left, right, how)
      val larger = if (leftSide.rows >= rightSide.rows) leftSide else rightSide
      val sorted = cost.sortMerge(leftSide, rightSide) + cost.mergedPairs(pairs, larger)
      var best = Operator(sorted, keys.after(how.kind), None)
      def consider(
          seconds: Double,
          partitionings: => Seq[Partitioning],
          broadcast: Option[JoinTree]
      ): Unit =
        if (seconds < best.seconds) best = Operator(seconds, partitionings, broadcast)
      def hashes(build: JoinTree, b: JoinSide, stream: JoinTree, s: JoinSide): Unit = {
        val bytes = tableBytes(build, b.rows)
        // As for the operator later: a broadcast must be safe even if the estimate misleads.
        if (
          (if (build eq right) how.kind.mayBroadcastRight else how.kind.mayBroadcastLeft) &&
          limits.broadcastBytes.exists { limit =>
            val feared = tableBytes(build, build.estimate.upperBound)
            bytes <= limit && feared <= limit * JoinSettings.surpriseFactor
          }
        ) {
          consider(
            cost.broadcastHash(b, s) + cost.hashedPairs(pairs, s, bytes),
            stream.partitionings,
            Some(build)
          )
        }
        val mayHash = (build eq right) || how.kind.mayHashLeft
        if (mayHash && bytes / cluster.slots <= limits.hashBytes) {
          consider(
            cost.shuffledHash(b, s) + cost.hashedPairs(pairs, s, bytes / cluster.slots),
            keys.after(how.kind),
            None
          )
        }
      }
      hashes(left, leftSide, right, rightSide)
      hashes(right, rightSide, left, leftSide)
      best
    }
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
  ): (Seq[JoinKeys.Pair], Seq[Expression]) = {
    val classes = if (how.edge.isEmpty) equalities(left, right) else Nil
    val (keys, rest) = graph
      .predicatesBetween(left.set, right.set, how)
      .partition(_.isKey(left.set, right.set))
    val pairs = keys.flatMap(pairOf(_, left.set))
    (
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
    JoinEstimator.pairs(comparisons(left, right, how)._1, left.estimate, right.estimate)

  /**
   * Every pair of rows is looked at. Where the rows of a side are doubtful, a product of what is hoped
   * for would be the cheapest join of all, and the worst if they are more.
   */
  private def product(left: JoinTree, right: JoinTree): Double = {
    def rows(tree: JoinTree) = math.sqrt(tree.estimate.rows.value * tree.estimate.upperBound)
    cost.output(math.min(PlanEstimate.most, rows(left) * rows(right)), 0.0)
  }

  /** What the cheapest operator of a join shuffles or broadcasts of its inputs. */
  def exchanges(join: JoinTree.Joined): Seq[Exchange] = {
    val (left, right) = (join.left, join.right)
    val keys = keysBetween(left.set, right.set, join.how)
    val operator = cheapest(left, right, join.how, join.estimate)
    if (keys.types.isEmpty) Nil
    else {
      val pairs = comparisons(left, right, join.how)._1
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
  def rough(bytes: Double): RoughCost = {
    def side(rows: Double) = JoinSide(rows, bytes, shuffleExists = false, singleKey = true)
    def line(seconds: (JoinSide, JoinSide) => Double) =
      RoughCost.Line.through(manyRows)((built, streamed) => seconds(side(built), side(streamed)))
    val tableBytes = HashTable.bytes(1.0, bytes, RowSize.ofTypes(Seq(LongType)), numericKey = true)
    val broadcast = limits.broadcastBytes.fold(-1.0)(_ / tableBytes)
    RoughCost(
      line(cost.broadcastHash),
      line(cost.shuffledHash),
      line(cost.sortMerge),
      cost.mergedPairs(manyRows, side(0.0)) / manyRows,
      cost.output(manyRows, bytes) / manyRows,
      broadcast,
      broadcast * JoinSettings.surpriseFactor,
      limits.hashBytes * cluster.slots / tableBytes
    )
  }
}

private[ordering] object OperatorCost {

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
   */
  final case class Operator(
      seconds: Double,
      partitionings: Seq[Partitioning],
      broadcast: Option[JoinTree]
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

  // At which operators are compared roughly.
  private val manyRows = 1e6

  private val wholeNumbers: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)
}
