package io.selinger.ordering

import io.selinger.cost.{Cluster, HashTable, JoinCost, JoinSide}
import io.selinger.estimate.{JoinEstimator, PlanEstimate, RowSize}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Equality, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan, Project}
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

  // By set: the same rows come out whatever the order, so the first estimate holds for all of them.
  private val known = mutable.HashMap.empty[RelationSet, Known]

  def relation(index: Int): JoinTree = {
    val set = RelationSet.single(index)
    val found = known.getOrElseUpdate(
      set,
      Known(graph.relations(index), estimates(index), width(set, estimates(index)))
    )
    JoinTree.Relation(index, found.estimate, found.rowBytes)
  }

  def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree = {
    val set = left.set | right.set
    val result = known.getOrElseUpdate(set, joined(left, right, how))
    val own = operatorSeconds(left, right, how, result.estimate) +
      cost.output(result.estimate.rows.value, result.rowBytes)
    JoinTree.Joined(
      left,
      right,
      how,
      result.estimate,
      result.rowBytes,
      left.seconds + right.seconds + own * surcharge(result.estimate)
    )
  }

  override def selectivity(one: Int, other: Int): Double = {
    val between = graph.keyNumbersBetween(RelationSet.single(one), RelationSet.single(other))
    between.map(k => 1.0 / math.max(distinct(k)(one), distinct(k)(other))).product
  }

  /** Values of each class's members, by relation. */
  private lazy val distinct: IndexedSeq[Map[Int, Double]] = graph.keys.map { key =>
    key.members.map { case (i, member) =>
      i -> math.max(1.0, estimates(i).distinct(member).getOrElse(estimates(i).rows.value))
    }.toMap
  }

  /** Among joins that cost about the same, one whose rows may be far more is the worse one. */
  private def surcharge(estimate: PlanEstimate): Double = {
    val magnitudes = math.log10(math.max(1.0, estimate.high / math.max(1.0, estimate.rows.value)))
    1.0 + mostSurcharge * math.min(1.0, magnitudes / uncertainMagnitudes)
  }

  /**
   * The relations on whose rows it depends most by how much one order costs less than another: what
   * ten times as many rows of each would change of that. Of many relations, the largest ones.
   */
  def influential(one: JoinTree, other: JoinTree, most: Int): Seq[Int] = {
    val gain = one.seconds - other.seconds
    val largest = estimates.indices.sortBy(i => (-estimates(i).rows.value, i))
    // Each of them asks for the rows of all joins anew.
    if (estimates.size > mostTried) largest.take(most)
    else
      largest
        .map { i =>
          val trees =
            new JoinTreeCost(graph, estimates.updated(i, tenfold(i)), cluster, cost, limits)
          i -> math.abs(trees.again(one).seconds - trees.again(other).seconds - gain)
        }
        .sortBy { case (i, change) => (-change, i) }
        .map(_._1)
        .take(most)
  }

  private def tenfold(i: Int): PlanEstimate = {
    val rows = estimates(i).rows
    estimates(i).withRows(
      rows.copy(value = math.min(PlanEstimate.most, rows.value * 10)),
      math.min(PlanEstimate.most, estimates(i).high * 10),
      None
    )
  }

  /** The same tree at the costs that are known here. */
  private def again(tree: JoinTree): JoinTree = tree match {
    case relation: JoinTree.Relation => this.relation(relation.index)
    case joined: JoinTree.Joined => join(again(joined.left), again(joined.right), joined.how)
  }

  private def joined(left: JoinTree, right: JoinTree, how: Connection): Known = {
    val (l, r) = (known(left.set), known(right.set))
    val set = left.set | right.set
    val condition = graph.conditionBetween(left.set, right.set, how)
    val join = Join(l.plan, r.plan, graph.joinType(how), condition, JoinHint.NONE)
    val required = graph.requiredOf(set)
    // Both inputs are known, so the answer is. What nothing above asks for need not be kept.
    val estimate = JoinEstimator
      .estimate(join, Some(l.estimate), Some(r.estimate))
      .fold(l.estimate)(restricted(_, required))
    val plan = if (required.size < join.output.size) Project(required, join) else join
    Known(plan, estimate, RowSize.of(required, estimate.columns))
  }

  private def restricted(estimate: PlanEstimate, required: Seq[Attribute]): PlanEstimate = {
    val ids = required.iterator.map(_.exprId).toSet
    if (estimate.columns.size <= ids.size) estimate
    else
      estimate.copy(
        columns = estimate.columns.filter(c => ids(c._1)),
        domains = estimate.domains.filter(c => ids(c._1)),
        padded = estimate.padded.filter(c => ids(c._1))
      )
  }

  private def width(set: RelationSet, estimate: PlanEstimate): Double =
    RowSize.of(graph.requiredOf(set), estimate.columns)

  private def operatorSeconds(
      left: JoinTree,
      right: JoinTree,
      how: Connection,
      result: PlanEstimate
  ): Double = {
    val predicates = graph.predicatesBetween(left.set, right.set, how)
    val types =
      (if (how.edge.isEmpty) graph.keysBetween(left.set, right.set).map(_.dataType)
       else Nil) ++ predicates.filter(_.isKey(left.set, right.set)).flatMap(keyType)
    val packed = types.size == 1 && wholeNumbers(types.head)
    val keyBytes = RowSize.ofTypes(types)
    def side(tree: JoinTree) =
      JoinSide(tree.estimate.rows.value, tree.rowBytes, shuffleExists = false, packed)
    def table(tree: JoinTree) =
      HashTable.bytes(tree.estimate.rows.value, tree.rowBytes, keyBytes, packed)

    lazy val (leftSide, rightSide) = (side(left), side(right))
    if (types.isEmpty) product(leftSide, rightSide)
    else {
      val pairs =
        if (predicates.forall(_.isKey(left.set, right.set)) && how.kind == JoinKind.Inner) {
          result.rows.value
        } else pairsOf(left, right, how)
      // As for the operator later: a broadcast must be safe even if the estimate misleads.
      def feared(tree: JoinTree) =
        HashTable.bytes(tree.estimate.high, tree.rowBytes, keyBytes, packed)
      def hashes(build: JoinTree, stream: JoinTree): Double = {
        val (b, s, bytes) = (side(build), side(stream), table(build))
        val broadcast =
          if (
            mayBroadcast(build eq right, how.kind) &&
            limits.broadcastBytes.exists(feared(build) <= _)
          ) {
            cost.broadcastHash(b, s) + cost.hashedPairs(pairs, s, bytes)
          } else Double.PositiveInfinity
        val hashed =
          if (mayHash(build eq right, how.kind) && bytes / cluster.slots <= limits.hashBytes) {
            cost.shuffledHash(b, s) + cost.hashedPairs(pairs, s, bytes / cluster.slots)
          } else Double.PositiveInfinity
        math.min(broadcast, hashed)
      }
      val larger = if (left.estimate.rows.value >= right.estimate.rows.value) left else right
      val sorted = cost.sortMerge(leftSide, rightSide) + cost.mergedPairs(pairs, side(larger))
      Seq(sorted, hashes(left, right), hashes(right, left)).min
    }
  }

  private def keyType(predicate: JoinPredicate): Option[DataType] = predicate.condition match {
    case Equality(l, _) => Some(l.dataType)
    case _ => None
  }

  private def pairsOf(left: JoinTree, right: JoinTree, how: Connection): Double = {
    val here = graph.predicatesBetween(left.set, right.set, how)
      .filter(_.isKey(left.set, right.set))
      .flatMap { predicate =>
        (predicate.condition, predicate.sides) match {
          case (Equality(l, r), Some((a, _))) =>
            Some(if (a.within(left.set)) (l, r) else (r, l))
          case _ => None
        }
      }
    val keys = if (how.edge.isEmpty) equalities(left, right) else Nil
    val (lefts, rights) = (keys ++ here).unzip
    JoinEstimator.pairs(lefts, rights, left.estimate, right.estimate)
  }

  private def equalities(left: JoinTree, right: JoinTree): Seq[(Expression, Expression)] =
    graph.equalitiesBetween(left.set, right.set).map(e => (e.left, e.right))

  /** Every pair of rows is looked at. */
  private def product(left: JoinSide, right: JoinSide): Double =
    cost.output(left.rows * right.rows, 0.0)
}

object JoinTreeCost {

  private final case class Known(plan: LogicalPlan, estimate: PlanEstimate, rowBytes: Double)

  private val mostTried = 12

  // What a join costs more at most, and from how many powers of ten between expected and feared rows.
  private val mostSurcharge = 0.02
  private val uncertainMagnitudes = 6.0

  private val wholeNumbers: Set[DataType] = Set(ByteType, ShortType, IntegerType, LongType)

  /** What Spark has: the side whose unmatched rows return cannot be the one broadcast. */
  private def mayBroadcast(buildRight: Boolean, kind: JoinKind): Boolean = kind match {
    case JoinKind.Inner => true
    case JoinKind.FullOuter => false
    case _ => buildRight
  }

  private def mayHash(buildRight: Boolean, kind: JoinKind): Boolean = kind match {
    case JoinKind.Inner | JoinKind.FullOuter | JoinKind.LeftOuter => true
    case _ => buildRight
  }
}
