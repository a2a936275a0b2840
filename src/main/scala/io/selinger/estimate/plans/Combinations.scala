package io.selinger.estimate.plans

import io.selinger.estimate.{KeySample, PlanEstimate}
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

  // Rows without nulls, as a share of a sample: groups of rows with nulls are not counted. Set by hand.
  private val leastPresent = 0.5

  private final case class Group(relation: Option[Long], members: Seq[Expression])

  /**
   * Columns of one relation depend on each other (a city lies in one country), so each counts less
   * than the one before, most values first, and together they have at most as many combinations as
   * rows of that relation are left. Those of a relation that has been joined by its key depend on what
   * the key was compared with, and have no more combinations than that. All others of different
   * relations are independent, and rows fall on them like balls into bins: some stay empty (Cardenas).
   */
  def of(expressions: Seq[Expression], input: PlanEstimate): Combinations = {
    val asked = apart(expressions)
    val found = ofColumns(asked, input)
    val joinedBy = determinants(asked, input)
    if (joinedBy == asked) found
    else
      seenTogether(joinedBy, input).fold(found) { seen =>
        val least = (asked ++ joinedBy).flatMap(input.distinct).foldLeft(seen)(math.max)
        if (least < found.count) Combinations(least, known = true) else found
      }
  }

  /**
   * How many runs of equal values such columns have, one after the other in the files of a relation, of
   * which joins and filters have left something. `None` where nothing tells.
   *
   * @param relation whose rows these are: see [[io.selinger.estimate.Domain.relation]]
   */
  def runs(expressions: Seq[Expression], input: PlanEstimate, relation: Long): Option[Double] =
    runsOf(determinants(apart(expressions), input), input, _.contains(relation))

  private def apart(expressions: Seq[Expression]): Seq[Expression] =
    expressions.filterNot(_.foldable).distinctBy(_.canonicalized)

  private def ofColumns(expressions: Seq[Expression], input: PlanEstimate): Combinations = {
    val rows = math.max(1.0, input.rows.value)
    val groups = expressions
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

  /** The columns by which the relations of such columns have been joined, or else the columns. */
  private def determinants(
      expressions: Seq[Expression],
      input: PlanEstimate,
      seen: Set[Long] = Set.empty
  ): Seq[Expression] =
    if (input.determinants.isEmpty) expressions
    else
      expressions.flatMap { expression =>
        val joined = for {
          relation <- input.domain(expression).map(_.relation)
          if !seen(relation)
          by <- input.determinants.get(relation)
        } yield determinants(by, input, seen + relation)
        joined.getOrElse(Seq(expression))
      }.distinctBy(expression =>
        // One column of a sample may have two names.
        input
          .domain(expression)
          .flatMap(_.sample)
          .fold[Any](expression.canonicalized)(sample => (sample.origin, sample.key))
      )

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
    val together = if (members.size > 1) seenTogether(members, input) else None
    Combinations(
      math.max(1.0, math.min(most, math.max(together.getOrElse(damped), counts.max))),
      members.forall(input.distinct(_).isDefined)
    )
  }

  /** What a sample tells of columns of one relation. */
  private def seenTogether(members: Seq[Expression], input: PlanEstimate): Option[Double] = {
    val seen = determined(members, input).orElse(sampled(members, input))
    (seen ++ runsOf(members, input)).minOption
  }

  /** Of a column that determines all the others: its values. */
  private def determined(members: Seq[Expression], input: PlanEstimate): Option[Double] =
    members
      .find(member => SampledJoin.determines(member, members.filterNot(_ eq member), input))
      .flatMap(input.distinct)

  /** From the combinations that a sample of a relation has, unless most of its rows have nulls. */
  private def sampled(members: Seq[Expression], input: PlanEstimate): Option[Double] =
    sampledTogether(members, input).flatMap { columns =>
      val (keys, relation) = (columns.head.key.rows, columns.head.relation)
      val counts = keys.counts(columns.map(_.key.column))
      val (values, once) = counts.distinct
      val present = counts.sorted.length.toDouble
      val enough = present >= math.max(leastRows.toDouble, keys.rows * leastPresent)
      Option.when(enough && relation.rows.value > 0) {
        val all =
          DistinctValues.extrapolated(present, values.toDouble, once.toDouble, relation.rows.value)
        val before = columns.map(column => relation.distinct(column.column))
        left(all, relation.rows.value, members.zip(before), columns.head, input)
      }
    }

  /** From how often the columns change from one row of the files to the next. */
  private def runsOf(
      members: Seq[Expression],
      input: PlanEstimate,
      isAsked: Option[Long] => Boolean = _ => true
  ): Option[Double] =
    for {
      columns <- sampledTogether(members, input)
      if isAsked(columns.head.origin)
      share <- columns.head.key.rows.runShare(columns.map(_.key.column))
      domains = columns.map(column => column.relation.domains.get(column.column.exprId))
      rows <- domains.head.map(_.rows)
      if rows > 0
    } yield left(
      share * rows,
      rows,
      members.zip(domains.map(_.flatMap(_.values))),
      columns.head,
      input
    )

  /** The columns of a sample, if they are from rows of the relation that was sampled. */
  private def sampledTogether(
      members: Seq[Expression],
      input: PlanEstimate
  ): Option[Seq[KeySample]] =
    SampledJoin
      .ofOneSample(members, input)
      // A join may have lent a column the sample of what it was compared with.
      .filter(columns => members.forall(input.domain(_).map(_.relation) == columns.head.origin))

  /**
   * How many of `all` combinations are left in what joins and filters have left of a relation. Rows that
   * were removed for the value of a column that is in the combination take whole combinations with them.
   * The other rows are removed by chance, so that a combination is left unless all of its rows go.
   *
   * @param before distinct values of each column in the whole relation
   */
  private def left(
      all: Double,
      relation: Double,
      before: Seq[(Expression, Option[Double])],
      sample: KeySample,
      input: PlanEstimate
  ): Double = {
    val rows = math.max(1.0, input.rows.value)
    val remaining = sample.origin.flatMap(input.sourceRows.get).getOrElse(rows).min(rows)
    if (remaining >= relation) all
    else {
      val kept = before.collect { case (member, Some(values)) =>
        val byChance = Selectivity.survivors(values, relation, remaining)
        input.distinct(member).fold(1.0)(found => Selectivity.clamp(found / byChance))
      }.product
      val eligible = math.max(kept, remaining / relation)
      Selectivity.survivors(all * eligible, relation * eligible, remaining)
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
