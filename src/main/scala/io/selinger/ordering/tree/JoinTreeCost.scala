package io.selinger.ordering.tree

import io.selinger.cost.JoinOperatorModel
import io.selinger.estimate.{PlanEstimate, RowSize}
import io.selinger.estimate.joins.{EquiJoin, JoinEstimator, JoinKeys}
import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{Connection, JoinGraph, JoinKind, JoinPredicate, RelationSet}
import org.apache.spark.sql.catalyst.expressions._
import scala.collection.mutable

/**
 * Costs of join trees: each join at the price of the cheapest operator that will be allowed, by the
 * same cost model by which the operator is chosen later.
 */
final class JoinTreeCost(
    graph: JoinGraph,
    val estimates: IndexedSeq[PlanEstimate],
    model: JoinOperatorModel
) extends JoinTrees {
  import JoinTreeCost._

  private val partitions = Mechanism.Partitionings.isOn
  private val mostMore = if (Mechanism.Surcharge.isOn) mostSurcharge else 0.0
  private val belowOneRow = Mechanism.RowsBelowOne.isOn

  private lazy val operators = new OperatorCost(graph, compared, model)

  // By set: the same rows come out whatever the order, so the first estimate holds for all of them.
  private val bySet = mutable.HashMap.empty[RelationSet, SetEstimate]

  def relation(index: Int): JoinTree = {
    val set = RelationSet.single(index)
    val found = bySet.getOrElseUpdate(
      set,
      new SetEstimate(
        restricted(estimates(index), set),
        width(set),
        graph.relations(index).distinctKeys
      )
    )
    JoinTree.Relation(
      index,
      found.estimate,
      found.rowBytes,
      if (partitions) operators.ofRelation(index) else Nil
    )
  }

  def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree = {
    val set = left.set | right.set
    val result = bySet.getOrElseUpdate(set, joined(set, left, right, how))
    val operator = operators.cheapest(left, right, how, result.estimate)
    val own = operator.seconds + model.cost.output(result.estimate.rows.value, result.rowBytes)
    JoinTree.Joined(
      left,
      right,
      how,
      result.estimate,
      result.rowBytes,
      left.seconds + right.seconds + own * surcharge(result.estimate),
      if (partitions) operator.partitionings else Nil,
      left.broadcastBytes + right.broadcastBytes + operator.broadcastBytes
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

  override def haveCommonKeys: Boolean = compared.areFew && {
    val members = graph.keys.flatMap(_.members.map { case (i, key) => i -> key.canonicalized })
    graph.keys.exists(_.members.size > 2) || members.distinct.size < members.size
  }

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

  override def rough: RoughCost =
    operators.rough(estimates.indices.map(i => width(RelationSet.single(i))).sum / estimates.size)

  /** What the cheapest operator of a join shuffles or broadcasts of its inputs. */
  def exchanges(join: JoinTree.Joined): Seq[OperatorCost.Exchange] = operators.exchanges(join)

  /** Values of each class's members, by relation. */
  private lazy val distinct: IndexedSeq[Map[Int, Double]] = graph.keys.map { key =>
    key.members.map { case (i, member) =>
      i -> math.max(1.0, estimates(i).distinct(member).getOrElse(estimates(i).rows.value))
    }.toMap
  }

  private lazy val compared = new ComparedKeys(graph, distinct)

  /** Among joins that cost about the same, one whose rows may be far more is the worse one. */
  private def surcharge(estimate: PlanEstimate): Double = {
    val magnitudes =
      math.log10(math.max(1.0, estimate.upperBound / math.max(1.0, estimate.rows.value)))
    1.0 + mostMore * math.min(1.0, magnitudes / uncertainMagnitudes)
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
      val now = bySet(set)
      val more =
        if (set.contains(i)) new SetEstimate(tenfold(now.estimate), now.rowBytes, now.uniqueKeys)
        else now
      trees.bySet.update(set, more)
    }
    trees
  }

  private def tenfold(estimate: PlanEstimate): PlanEstimate = estimate.withRows(
    estimate.rows.copy(value = math.min(PlanEstimate.most, estimate.rows.value * 10)),
    math.min(PlanEstimate.most, estimate.upperBound * 10),
    None
  )

  /**
   * Whether `one` costs no more than `other`, but for what is within the surcharge of doubtful joins,
   * if every relation has as many rows as its upper bound says.
   */
  def isNoWorse(one: JoinTree, other: JoinTree): Boolean = {
    val atUpperBounds = withEstimates(estimates.map { e =>
      e.withRows(e.rows.copy(value = e.upperBound), e.upperBound, e.bound)
    })
    atUpperBounds.recosted(one).seconds <=
      atUpperBounds.recosted(other).seconds * (1.0 + mostSurcharge)
  }

  private def withEstimates(others: IndexedSeq[PlanEstimate]): JoinTreeCost =
    new JoinTreeCost(graph, others, model)

  /** The same tree at the costs that are known here. */
  def recosted(tree: JoinTree): JoinTree = tree match {
    case relation: JoinTree.Relation => this.relation(relation.index)
    case joined: JoinTree.Joined =>
      join(recosted(joined.left), recosted(joined.right), joined.how)
  }

  private def joined(
      set: RelationSet,
      left: JoinTree,
      right: JoinTree,
      how: Connection
  ): SetEstimate = {
    val (l, r) = (bySet(left.set), bySet(right.set))
    val compares = operators.comparisons(left, right, how)
    val keys = compares.keys
    val join = new EquiJoin(
      graph.joinType(how),
      keys,
      compares.rest.reduceOption(And(_, _)),
      EquiJoin.areUnique(l.uniqueKeys, keys.map(_.left)),
      EquiJoin.areUnique(r.uniqueKeys, keys.map(_.right)),
      AttributeSet(graph.requiredOf(left.set)),
      AttributeSet(graph.requiredOf(right.set))
    )
    val (estimate, expected) =
      belowOne(JoinEstimator.estimate(join, l.estimate, r.estimate), how.kind, keys, l, r)
    val uniqueKeys = EquiJoin.uniqueAfter(join, l.uniqueKeys, r.uniqueKeys)
    new SetEstimate(restricted(estimate, set), width(set), uniqueKeys, expected)
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
      left: SetEstimate,
      right: SetEstimate
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
    if (expected >= estimate.rows.value || !belowOneRow) (estimate, 1.0)
    else {
      val fewer = estimate.rows.copy(value = expected)
      (estimate.withRows(fewer, estimate.upperBound, estimate.bound), math.min(1.0, expected))
    }
  }

  /** Nothing but what further joins compare is asked of the estimate of a set. */
  private def restricted(estimate: PlanEstimate, set: RelationSet): PlanEstimate = {
    val isWanted = compared.columns(set)
    estimate.copy(
      columns = estimate.columns.filter(c => isWanted(c._1)),
      domains = estimate.domains.filter(c => isWanted(c._1)),
      sourceRows = Map.empty,
      determinants = Map.empty,
      nullSupplied =
        if (estimate.nullSupplied.isEmpty) estimate.nullSupplied
        else estimate.nullSupplied.filter(c => isWanted(c._1))
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

}

object JoinTreeCost {

  /**
   * @param uniqueKeys sets of columns of which no two rows have the same values
   * @param ofARow rows that are expected where these are less than one; else 1
   */
  private final class SetEstimate(
      val estimate: PlanEstimate,
      val rowBytes: Double,
      val uniqueKeys: Set[ExpressionSet],
      val ofARow: Double = 1.0
  )

  // A limit of work: relations up to which explain tries each to see on which the order depends. Of
  // more, it names the largest. It changes no order.
  private val mostTried = 16

  // Of pairs of rows, the share that a condition other than an equality leaves at a rough cost: a third,
  // as for ranges in Selinger et al., SIGMOD 1979.
  private val unknownShare = 1.0 / 3

  // What a join costs more at most, and from how many powers of ten between rows and their upper
  // bound. `python -m benchmarks.ablation --mechanisms surcharge` shows what that brings.
  private val mostSurcharge = 0.02
  private val uncertainMagnitudes = 6.0

}
