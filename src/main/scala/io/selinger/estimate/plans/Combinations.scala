package io.selinger.estimate.plans

import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.joins.SampledJoin
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.DistinctValues
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import scala.annotation.tailrec

/**
 * How many combinations of values some expressions have among a plan's rows.
 *
 * @param count at least 1, at most one a row
 * @param known whether it comes from statistics of every expression
 */
final case class Combinations(count: Double, known: Boolean)

object Combinations {

  /** What the second, third, … column of one relation adds counts as a power of it. */
  private val damping = 0.6

  // A smaller sample says less than that.
  private val leastRows = 100

  private final case class Group(relation: Option[Long], members: Seq[Expression])

  /**
   * Columns of one relation depend on each other (a city lies in one country), so each counts less
   * than the one before, most values first, and together they have at most as many combinations as
   * rows of that relation are left. Those of a relation that has been joined by its key depend on what
   * the key was compared with. All others of different relations are independent, and rows fall on
   * them like balls into bins: some stay empty (Cardenas).
   */
  def of(expressions: Seq[Expression], input: PlanEstimate): Combinations = {
    val rows = math.max(1.0, input.rows.value)
    val groups = expressions
      .filterNot(_.foldable)
      .distinctBy(_.canonicalized)
      .groupBy(expression => input.domain(expression).map(_.relation))
      .toSeq
      .map { case (relation, members) =>
        Group(relation, members) -> ofRelation(relation, members, input)
      }
      // The last bits of a product depend on its order.
      .sortBy(_._2.count)
    val counts = independent(groups.map(_._1), input).map(groups.toMap)
    if (counts.isEmpty) Combinations(1.0, known = true)
    else {
      val product = counts.map(_.count).foldLeft(1.0)((a, b) => math.min(a * b, PlanEstimate.most))
      val occupied =
        if (counts.size == 1 || product >= PlanEstimate.most) product
        else product * -math.expm1(-rows / product)
      val least = counts.map(_.count).max
      Combinations(
        math.max(1.0, math.min(rows, math.max(occupied, least))),
        counts.forall(_.known)
      )
    }
  }

  /** Those groups that none of the others determine. */
  private def independent(groups: Seq[Group], input: PlanEstimate): Seq[Group] =
    if (input.determinants.isEmpty) groups
    else
      groups.foldLeft(groups) { (left, group) =>
        val others = left.filterNot(_ eq group)
        val depends = group.relation.exists(determinedRelations(others, input))
        if (depends) others else left
      }

  /** Relations of which these expressions determine the row, directly or by way of others. */
  private def determinedRelations(groups: Seq[Group], input: PlanEstimate): Set[Long] = {
    val columns = groups.flatMap(_.members).flatMap(PlanEstimate.columnOf)
    def relationOf(column: Attribute) = input.domains.get(column.exprId).map(_.relation)
    def isFixed(column: Attribute, relations: Set[Long]): Boolean =
      columns.exists(_.exprId == column.exprId) ||
        relationOf(column).exists(relations) ||
        columns.exists(SampledJoin.determines(_, Seq(column), input))
    @tailrec def closure(relations: Set[Long]): Set[Long] = {
      val more = input.determinants.collect {
        case (relation, by) if !relations(relation) && by.forall(isFixed(_, relations)) => relation
      }
      if (more.isEmpty) relations else closure(relations ++ more)
    }
    closure(
      columns.flatMap(c => input.domains.get(c.exprId)).filter(_.isKey).map(_.relation).toSet
    )
  }

  private def ofRelation(
      relation: Option[Long],
      members: Seq[Expression],
      input: PlanEstimate
  ): Combinations = {
    val rows = math.max(1.0, input.rows.value)
    val most = math.min(rows, relation.flatMap(input.sourceRows.get).getOrElse(rows))
    val counts =
      members.map(member => input.distinct(member).getOrElse(assumedDistinct(member, input)))
    def damped = counts.sorted.reverse.zipWithIndex.map { case (count, i) =>
      math.pow(count, math.pow(damping, i.toDouble))
    }.product
    val together =
      if (members.size > 1) determined(members, input).orElse(sampled(members, input, most))
      else None
    Combinations(
      math.max(1.0, math.min(most, math.max(together.getOrElse(damped), counts.max))),
      members.forall(input.distinct(_).isDefined)
    )
  }

  /** Of a column that determines all the others: its values. */
  private def determined(members: Seq[Expression], input: PlanEstimate): Option[Double] =
    members
      .find(member => SampledJoin.determines(member, members.filterNot(_ eq member), input))
      .flatMap(input.distinct)

  /** Those in `left` rows of a relation, from the combinations that a sample of it has. */
  private def sampled(
      members: Seq[Expression],
      input: PlanEstimate,
      left: Double
  ): Option[Double] =
    SampledJoin.ofOneSample(members, input).flatMap { columns =>
      val relation = columns.head.relation.rows.value
      val counts = columns.head.key.rows.counts(columns.map(_.key.column))
      val (values, once) = counts.distinct
      val present = counts.sorted.length.toDouble
      Option.when(present >= leastRows && relation > 0) {
        val all = DistinctValues.extrapolated(present, values.toDouble, once.toDouble, relation)
        if (left < relation) Selectivity.survivors(all, relation, left) else all
      }
    }

  /**
   * Of a column without a count: the root of its relation's rows, which is off by less than that
   * both for a flag and for a key.
   */
  private def assumedDistinct(expression: Expression, input: PlanEstimate): Double = {
    val rows = math.max(1.0, input.rows.value)
    val relation = input.domain(expression).fold(rows)(_.rows)
    math.max(1.0, math.min(rows, math.sqrt(math.max(1.0, relation))))
  }
}
