package io.selinger.rule

import io.selinger.core.RaisedErrors
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * ORDER BY with LIMIT.
 *
 * @param plan the limit
 * @param most rows of what is sorted that are needed, those that OFFSET skips included
 * @param results what is computed of the sorted rows, if that is done below the limit
 */
private[rule] final case class TopN(
    plan: LogicalPlan,
    most: Int,
    sort: Sort,
    results: Seq[Expression]
) {

  /** The same of other rows with the same columns. */
  def of(rows: LogicalPlan): LogicalPlan = replaced(plan, rows)

  private def replaced(part: LogicalPlan, rows: LogicalPlan): LogicalPlan =
    if (part eq sort) sort.withNewChildren(Seq(rows)) else part.mapChildren(replaced(_, rows))
}

private[rule] object TopN {

  def of(plan: LogicalPlan): Option[TopN] = plan match {
    case GlobalLimit(IntegerLiteral(rows), Local(most, sort, results)) =>
      Some(TopN(plan, rows.min(most), sort, results))
    case GlobalLimit(
          IntegerLiteral(rows),
          Offset(IntegerLiteral(skipped), Local(most, sort, results))
        ) =>
      Some(TopN(plan, (rows.toLong + skipped).min(most.toLong).toInt, sort, results))
    case _ => None
  }

  private object Local {
    def unapply(plan: LogicalPlan): Option[(Int, Sort, Seq[Expression])] = plan match {
      case LocalLimit(IntegerLiteral(most), sort: Sort) if sort.global => Some((most, sort, Nil))
      // Columns that are sorted by, and not returned.
      case LocalLimit(IntegerLiteral(most), Project(list, sort: Sort)) if sort.global =>
        Some((most, sort, list))
      case _ => None
    }
  }
}

/**
 * An input of joins whose first rows in an order are enough to find the first rows of their result.
 *
 * @param order over the columns of `input`
 * @param within the query with another plan in place of `input`: only there, since a query may have the same
 *   object in several places
 * @param joins above the input that keep each of its rows, or repeat it
 * @param computed what is evaluated above it, for fewer rows then
 * @param lookups those of the joins that keep each row only if it is proven to have a match
 */
private[rule] final case class EarlyTopN(
    input: LogicalPlan,
    order: Seq[SortOrder],
    within: LogicalPlan => LogicalPlan,
    joins: Seq[LogicalPlan],
    computed: Seq[Expression],
    lookups: Seq[Lookup]
) {

  def isSafe: Boolean = computed.forall(RaisedErrors.isSafe)

  def findsAll: Boolean = lookups.forall(_.findsAll)

  /** The query whose input is cut to its first rows. */
  def cut(most: Int): LogicalPlan =
    within(Limit(Literal(most), Sort(order, global = true, input)))

  private def keys: Seq[Expression] = order.map(_.child)

  private def isSortedBy(plan: LogicalPlan): Boolean =
    keys.forall(_.references.subsetOf(plan.outputSet))

  /** At a child of the input, of which `below` gives the same order. */
  private def at(child: Int, below: Seq[Expression]): EarlyTopN = {
    val (above, parent) = (within, input)
    copy(
      input = parent.children(child),
      order = order.zip(below).map { case (one, key) =>
        one.copy(child = key, sameOrderExpressions = Nil)
      },
      within = made => above(parent.withNewChildren(parent.children.updated(child, made)))
    )
  }

  private def belowJoin(child: Int, evaluated: Seq[Expression]): EarlyTopN =
    at(child, keys).copy(joins = joins :+ input, computed = computed ++ evaluated)

  private def belowProject(project: Project): Option[EarlyTopN] =
    ExpressionSets.all(keys.map(KeyOrigins.below(project.projectList, _))).map { below =>
      at(0, below).copy(computed = computed ++ project.projectList)
    }
}

private[rule] object EarlyTopN {

  /**
   * Inputs whose first rows are enough: for each branch of UNION ALL, or for the only one, those below
   * most joins first. None of a branch in which some input has no more rows anyway.
   */
  def of(top: TopN): Seq[Seq[EarlyTopN]] =
    branches(EarlyTopN(top.sort.child, top.sort.order, top.of, Nil, top.results, Nil)).map {
      branch =>
        val places = sides(branch)
        if (places.exists(_.input.maxRows.exists(_ <= top.most))) Nil else places
    }

  private def branches(place: EarlyTopN): Seq[EarlyTopN] = place.input match {
    case union: Union =>
      union.children.indices.flatMap { i =>
        branches(place.at(i, place.keys.map(KeyOrigins.inBranch(union, union.children(i), _))))
      }
    case project: Project => place.belowProject(project).map(branches).getOrElse(Seq(place))
    case _ => Seq(place)
  }

  private def sides(place: EarlyTopN): Seq[EarlyTopN] = place.input match {
    case project: Project => place.belowProject(project).toSeq.flatMap(sides)
    case join: Join if !KeyOrigins.repeatsColumns(join) =>
      kept(place, join).toSeq.flatMap(side => sides(side) :+ side)
    // It returns a row without elements once, with nulls.
    case Generate(generator @ (_: Explode | _: PosExplode), _, true, _, _, child)
        if place.isSortedBy(child) =>
      val side = place.belowJoin(0, generator.children)
      sides(side) :+ side
    case _ => Nil
  }

  /** The side of a join that has the order, if each of its rows is in the result. */
  private def kept(place: EarlyTopN, join: Join): Option[EarlyTopN] = {
    def side(child: Int) =
      Option.when(place.isSortedBy(join.children(child)))(
        place.belowJoin(child, join.condition.toSeq)
      )
    def lookingUp(child: Int) =
      for {
        found <- side(child)
        lookup <- Lookup.of(join, fromLeft = child == 0)
        if lookup.hasNoNulls
      } yield found.copy(lookups = found.lookups :+ lookup)
    join.joinType match {
      case LeftOuter => side(0)
      case RightOuter => side(1)
      case Inner => lookingUp(0).orElse(lookingUp(1))
      case _ => None
    }
  }
}
