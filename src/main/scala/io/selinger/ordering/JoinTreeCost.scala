package io.selinger.ordering

import io.selinger.cost.{Cluster, HashTable, JoinCost, JoinSettings, JoinSide}
import io.selinger.estimate.{EquiJoin, JoinEstimator, JoinKeys, PlanEstimate, RowSize}
import io.selinger.ordering.JoinTree.Partitioning
import org.apache.spark.sql.catalyst.expressions._
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
) extends JoinTrees {
  import JoinTreeCost._

  private val partitionings = new Partitionings(graph)
  private lazy val ofRelations = graph.relations.map(partitionings.ofRelation)

  // By set: the same rows come out whatever the order, so the first estimate holds for all of them.
  private val known = mutable.HashMap.empty[RelationSet, Known]

  def relation(index: Int): JoinTree = {
    val set = RelationSet.single(index)
    val found = known.getOrElseUpdate(
      set,
      new Known(
        restricted(estimates(index), set),
        width(set),
        graph.relations(index).distinctKeys
      )
    )
    JoinTree.Relation(index, found.estimate, found.rowBytes, ofRelations(index))
  }

  def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree = {
    val set = left.set | right.set
    val result = known.getOrElseUpdate(set, joined(set, left, right, how))
    val operator = cheapest(left, right, how, result.estimate)
    val own = operator.seconds + cost.output(result.estimate.rows.value, result.rowBytes)
    JoinTree.Joined(
      left,
      right,
      how,
      result.estimate,
      result.rowBytes,
      left.seconds + right.seconds + own * surcharge(result.estimate),
      operator.partitionings
    )
  }

  override def selectivity(one: Int, other: Int): Double = {
    val between = compared.between(RelationSet.single(one), RelationSet.single(other))
    between.map(k => 1.0 / math.max(distinct(k)(one), distinct(k)(other))).product
  }

  override def sharedKeys: Seq[SharedKey] =
    if (compared.areFew) {
      graph.keys.indices.filter(graph.keys(_).members.size > 2).map { k =>
        SharedKey(
          graph.keys(k).relations,
          (one, other) => 1.0 / math.max(distinct(k)(one), distinct(k)(other))
        )
      }
    } else Nil

  override def selectivityOfEdge(edge: Int): Double =
    graph.predicatesOf(edge).map(selectivity).product

  private def selectivity(predicate: JoinPredicate): Double =
    (predicate.condition, predicate.sides) match {
      case (Equality(l, r), Some((left, right))) =>
        def values(side: Expression, relations: RelationSet) =
          if (relations.size != 1) 1.0
          else {
            val estimate = estimates(relations.lowest)
            estimate.distinct(side).getOrElse(estimate.rows.value)
          }
        1.0 / math.max(1.0, math.max(values(l, left), values(r, right)))
      case _ => unknownShare
    }

  override def rough: RoughCost = {
    val bytes = estimates.indices.map(i => width(RelationSet.single(i))).sum / estimates.size
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

  /** Values of each class's members, by relation. */
  private lazy val distinct: IndexedSeq[Map[Int, Double]] = graph.keys.map { key =>
    key.members.map { case (i, member) =>
      i -> math.max(1.0, estimates(i).distinct(member).getOrElse(estimates(i).rows.value))
    }.toMap
  }

  private lazy val compared = new ComparedKeys(graph, distinct)

  /** Among joins that cost about the same, one whose rows may be far more is the worse one. */
  private def surcharge(estimate: PlanEstimate): Double = {
    val magnitudes = math.log10(math.max(1.0, estimate.high / math.max(1.0, estimate.rows.value)))
    1.0 + mostSurcharge * math.min(1.0, magnitudes / uncertainMagnitudes)
  }

  /**
   * The relations on whose rows it depends most by how much one order costs less than another: what
   * ten times as many rows of each would change of that, if joins returned ten times as many then. Of
   * many relations, the largest ones.
   */
  def influential(one: JoinTree, other: JoinTree, most: Int): Seq[Int] = {
    val gain = one.seconds - other.seconds
    val sets = (one.joins ++ other.joins).map(_.set).distinct
    val largest = estimates.indices.sortBy(i => (-estimates(i).rows.value, i))
    if (estimates.size > mostTried) largest.take(most)
    else
      largest
        .map { i =>
          val trees = tenfold(i, sets)
          i -> math.abs(trees.recosted(one).seconds - trees.recosted(other).seconds - gain)
        }
        .sortBy { case (i, change) => (-change, i) }
        .map(_._1)
        .take(most)
  }

  /** Costs if there were ten times as many rows of a relation, for trees of these sets. */
  private def tenfold(i: Int, sets: Seq[RelationSet]): JoinTreeCost = {
    val trees = withEstimates(estimates.updated(i, tenfold(estimates(i))))
    sets.foreach { set =>
      val now = known(set)
      val more =
        if (set.contains(i)) new Known(tenfold(now.estimate), now.rowBytes, now.uniqueKeys)
        else now
      trees.known.update(set, more)
    }
    trees
  }

  private def tenfold(estimate: PlanEstimate): PlanEstimate = estimate.withRows(
    estimate.rows.copy(value = math.min(PlanEstimate.most, estimate.rows.value * 10)),
    math.min(PlanEstimate.most, estimate.high * 10),
    None
  )

  /**
   * Whether `one` costs no more than `other`, but for what is within the surcharge of doubtful joins,
   * if every relation has as many rows as is feared.
   */
  def isNoWorse(one: JoinTree, other: JoinTree): Boolean = {
    val feared = withEstimates(estimates.map { e =>
      e.withRows(e.rows.copy(value = e.high), e.high, e.bound)
    })
    feared.recosted(one).seconds <= feared.recosted(other).seconds * (1.0 + mostSurcharge)
  }

  private def withEstimates(others: IndexedSeq[PlanEstimate]): JoinTreeCost =
    new JoinTreeCost(graph, others, cluster, cost, limits)

  /** The same tree at the costs that are known here. */
  def recosted(tree: JoinTree): JoinTree = tree match {
    case relation: JoinTree.Relation => this.relation(relation.index)
    case joined: JoinTree.Joined =>
      join(recosted(joined.left), recosted(joined.right), joined.how)
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

  private def joined(
      set: RelationSet,
      left: JoinTree,
      right: JoinTree,
      how: Connection
  ): Known = {
    val (l, r) = (known(left.set), known(right.set))
    val (keys, rest) = comparisons(left, right, how)
    val join = new EquiJoin(
      graph.joinType(how),
      keys,
      rest.reduceOption(And(_, _)),
      EquiJoin.areUnique(l.uniqueKeys, keys.map(_.left)),
      EquiJoin.areUnique(r.uniqueKeys, keys.map(_.right)),
      AttributeSet(graph.requiredOf(left.set)),
      AttributeSet(graph.requiredOf(right.set))
    )
    val (estimate, expected) =
      belowOne(JoinEstimator.estimate(join, l.estimate, r.estimate), how.kind, keys, l, r)
    val uniqueKeys = EquiJoin.uniqueAfter(join, l.uniqueKeys, r.uniqueKeys)
    new Known(restricted(estimate, set), width(set), uniqueKeys, expected)
  }

  /**
   * No estimate is below one row. Of what inputs were estimated as one for that reason, joins would
   * return the more rows, the earlier they come: the share of a row that is expected goes along, as
   * far as keys alone tell.
   */
  private def belowOne(
      estimate: PlanEstimate,
      kind: JoinKind,
      keys: Seq[JoinKeys.Pair],
      left: Known,
      right: Known
  ): (PlanEstimate, Double) = {
    val before = kind match {
      case JoinKind.Inner => left.ofARow * right.ofARow
      case JoinKind.FullOuter => 1.0
      case _ => left.ofARow
    }
    val rows =
      if (estimate.rows.value > 1.0 || keys.isEmpty || kind != JoinKind.Inner) estimate.rows.value
      else math.min(1.0, JoinEstimator.pairs(keys, left.estimate, right.estimate))
    val expected = rows * before
    if (expected >= estimate.rows.value) (estimate, 1.0)
    else {
      val fewer = estimate.rows.copy(value = expected)
      (estimate.withRows(fewer, estimate.high, estimate.bound), math.min(1.0, expected))
    }
  }

  /** Nothing but what further joins compare is asked of the estimate of a set. */
  private def restricted(estimate: PlanEstimate, set: RelationSet): PlanEstimate = {
    val isWanted = compared.columns(set)
    estimate.copy(
      columns = estimate.columns.filter(c => isWanted(c._1)),
      domains = estimate.domains.filter(c => isWanted(c._1)),
      sources = Map.empty,
      keyed = Map.empty,
      padded =
        if (estimate.padded.isEmpty) estimate.padded
        else estimate.padded.filter(c => isWanted(c._1))
    )
  }

  // Of each relation's columns: a join hardly changes how wide their values are.
  private val widths: IndexedSeq[Array[Double]] = estimates.indices.map { i =>
    graph.columns(i).map(c => RowSize.ofColumn(c.attribute, estimates(i).columns))
  }

  private def width(set: RelationSet): Double = {
    var (count, bytes) = (0, 0.0)
    set.members.foreach { i =>
      val columns = graph.columns(i)
      columns.indices.foreach { c =>
        if (columns(c).isRequired(set)) {
          count += 1
          bytes += widths(i)(c)
        }
      }
    }
    RowSize.nullWords(count) + bytes
  }

  /** Of the operators that will be allowed. */
  private def cheapest(
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
            val feared = tableBytes(build, build.estimate.high)
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
  private def comparisons(
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
    def rows(tree: JoinTree) = math.sqrt(tree.estimate.rows.value * tree.estimate.high)
    cost.output(math.min(PlanEstimate.most, rows(left) * rows(right)), 0.0)
  }
}

object JoinTreeCost {

  /**
   * @param uniqueKeys sets of columns of which no two rows have the same values
   * @param ofARow rows that are expected where these are less than one; else 1
   */
  private final class Known(
      val estimate: PlanEstimate,
      val rowBytes: Double,
      val uniqueKeys: Set[ExpressionSet],
      val ofARow: Double = 1.0
  )

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
  private final case class Operator(
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

  private val mostTried = 16

  // Of pairs of rows that a condition other than an equality leaves, roughly.
  private val unknownShare = 1.0 / 3

  // At which operators are compared roughly.
  private val manyRows = 1e6

  // What a join costs more at most, and from how many powers of ten between expected and feared rows.
  private val mostSurcharge = 0.02
  private val uncertainMagnitudes = 6.0

  private val wholeNumbers: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)
}
