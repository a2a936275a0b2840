package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.plans.ExactSums
import io.selinger.estimate.predicates.Selectivity
import io.selinger.rule.ExpressionSets._
import org.apache.spark.sql.catalyst.analysis.UpdateAttributeNullability
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{DYNAMIC_PRUNING_EXPRESSION, PLAN_EXPRESSION}

/**
 * A plan that returns the rows of several similar plans. Conditions of a similar plan that it does not test
 * are owed: they must still be tested above it, and keep the rows of that similar plan.
 *
 * @param plan with the columns of the first of the similar plans, and more if others need them
 * @param columns for each similar plan: its output columns to those of `plan`
 * @param owed for each similar plan: its owed conditions, on columns of `plan`
 * @param hasForeignRows whether `plan` may process rows that none of the similar plans does: of the
 *   customer of the first, say, and the year of the second
 */
private[rule] final case class CoveringPlan(
    plan: LogicalPlan,
    columns: Seq[AttributeMap[Attribute]],
    owed: Seq[Seq[Expression]],
    hasForeignRows: Boolean
) {

  def isOwed: Boolean = owed.exists(_.nonEmpty)

  /** An expression over plan `i` as one over the columns of `plan`; none where it has another column. */
  def translated(i: Int, expression: Expression): Option[Expression] =
    Option.when(expression.references.forall(columns(i).contains)) {
      expression.transform { case column: Attribute => columns(i)(column) }
    }

  def allTranslated(i: Int, expressions: Seq[Expression]): Option[Seq[Expression]] =
    all(expressions.map(translated(i, _)))

  /** What is owed, over `wanted` columns where others are equal to them. */
  def owedOver(wanted: Seq[Expression]): CoveringPlan =
    if (owed.flatten.forall(condition => hasAll(wanted, condition.references.toSeq))) this
    else {
      val equal = EqualColumns.of(plan)
      copy(owed = owed.map(_.map(equal.over(wanted, _))))
    }

  /** With another plan, whose columns are the same, apart from the nulls that they may have. */
  def over(changed: LogicalPlan): CoveringPlan = {
    val output = AttributeMap(changed.output.map(column => column -> column))
    copy(
      plan = changed,
      columns = columns.map(known =>
        AttributeMap(known.toSeq.flatMap { case (from, to) => output.get(to).map(from -> _) })
      ),
      owed = owed.map(_.map(_.transform { case column: Attribute =>
        output.getOrElse(column, column)
      }))
    )
  }

  /** With what belongs to the first of the similar plans in another place of the lists. */
  private def withFirstAt(place: Int): CoveringPlan = {
    def moved[A](each: Seq[A]) = each.tail.patch(place, Seq(each.head), 0)
    copy(columns = moved(columns), owed = moved(owed))
  }

  /** The same plan with columns of its own, for another place of the query; none where that fails. */
  def copied: Option[CoveringPlan] = PlanCopy.of(plan).map { copy =>
    CoveringPlan(
      copy.plan,
      columns.map(known =>
        AttributeMap(known.toSeq.map { case (from, to) => from -> copy.column(to) })
      ),
      owed.map(_.map(copy.over)),
      hasForeignRows
    )
  }
}

/**
 * Finds covering plans of plans that have the same operators over the same relations, and differ in
 * conditions, in columns, in functions and in the order of inner joins only. Conditions that not all of them have are joined by OR
 * where they are, and are owed by the plan that has them. They rise through operators that treat each
 * row, or each group of rows, by itself: what such a condition tests must be a column of a side whose
 * rows a join keeps or drops as a whole, a key of an aggregation or of a window, or a column of all
 * branches of a union. The covering plan fails only if one of the similar plans does.
 *
 * Source: Zhou, Larson, Freytag, Lehner, Efficient Exploitation of Similar Subexpressions for Query
 * Processing, SIGMOD 2007 (covering subexpressions).
 */
private[rule] object CoveringPlan {

  /**
   * None where the plans differ in more than that.
   *
   * @param leader the plan in whose order all of them join, where their orders differ
   */
  def of(plans: Seq[LogicalPlan], leader: Int = 0): Option[CoveringPlan] =
    new CoveringPlanFinder(mayRaise = false)
      .of(plans(leader) +: plans.patch(leader, Nil, 1))
      .map(_.withFirstAt(leader))
      .map(withNulls)

  /** Whether there is one, if it does not matter which errors it raises. */
  def isPossible(plans: Seq[LogicalPlan]): Boolean =
    new CoveringPlanFinder(mayRaise = true).of(plans).isDefined

  /**
   * Whether conditions keep or drop whole groups of rows. Without keys there is one, also of no rows.
   * Where equal values can have other bits (-0.0 and 0.0, texts with a collation), a group has only one
   * of them.
   */
  def areGroups(owed: Seq[Seq[Expression]], keys: Seq[Expression]): Boolean =
    owed.flatten.forall { condition =>
      val tested = condition.references
      tested.nonEmpty && tested.forall(has(keys, _)) && (condition match {
        case IsNull(_: Attribute) | IsNotNull(_: Attribute) => true
        case _ => tested.forall(AggregatePush.isComparable)
      })
    }

  /**
   * Whether Spark can plan one aggregation with these results as they are. It plans DISTINCTs of one set
   * of columns, since those of several have been rewritten before, and functions in Python by themselves.
   * Functions that add up in another order it takes for the same, and computes one of them.
   */
  def canBePlanned(results: Seq[Expression]): Boolean = {
    val functions = results.flatMap(_.collect { case made: AggregateExpression => made })
    val distincts = functions.filter(_.isDistinct).map { function =>
      function.aggregateFunction.children.filterNot(_.foldable).map(_.canonicalized).toSet
    }
    val different = distinct(functions)
    distincts.distinct.size <= 1 &&
    different.map(_.canonicalized).distinct.size == different.size &&
    functions.map(_.aggregateFunction.isInstanceOf[PythonUDAF]).distinct.size <= 1
  }

  /** A column that is never null in one of the plans, or below an outer join, may be null in it. */
  private def withNulls(cover: CoveringPlan): CoveringPlan =
    cover.over(UpdateAttributeNullability(cover.plan))
}

private final class CoveringPlanFinder(mayRaise: Boolean) {

  def of(plans: Seq[LogicalPlan]): Option[CoveringPlan] =
    if (plans.tail.forall(isEqual(_, plans.head))) Some(ofEqual(plans))
    else if (plans.exists(leavesOut) && !plans.forall(_.isInstanceOf[Project])) {
      of(plans.map(plan => if (leavesOut(plan)) plan.children.head else plan))
    } else
      plans.head match {
        case _ if plans.exists(_.isInstanceOf[Filter]) => ofFilters(plans)
        case _: Project => allOf[Project](plans).flatMap(ofProjects)
        case _: Aggregate => allOf[Aggregate](plans).flatMap(ofAggregates)
        case _: Join =>
          allOf[Join](plans).flatMap { joins =>
            CommonJoinOrder.of(joins).flatMap(of).orElse(ofJoins(joins))
          }
        case _: Union => allOf[Union](plans).flatMap(ofUnions)
        case _: Window => allOf[Window](plans).flatMap(ofWindows)
        case _ => None
      }

  private def isEqual(one: LogicalPlan, other: LogicalPlan): Boolean =
    one.sameResult(other) && one.collectLeaves().zip(other.collectLeaves()).forall {
      case (a, b) => SameRows.areIn(a, b)
    }

  /** Whether it only leaves out columns, which others may need. */
  private def leavesOut(plan: LogicalPlan): Boolean = plan match {
    case Project(list, _) => list.forall(_.isInstanceOf[Attribute])
    case _ => false
  }

  /** Whether an operator raises errors only where one of the similar plans does, too. */
  private def isSafe(operator: LogicalPlan, isNew: Boolean): Boolean =
    mayRaise || !isNew || !RaisedErrors.operatorMayRaise(operator, ExactSums.fits)

  /** Whether it has columns that are computed, and may fail, only for rows that something above keeps. */
  private def evaluatesLate(plan: LogicalPlan): Boolean =
    !mayRaise && RaisedErrors.computesUnsafeColumns(plan)

  private def allOf[A: reflect.ClassTag](plans: Seq[LogicalPlan]): Option[Seq[A]] = {
    val found = plans.collect { case plan: A => plan }
    Option.when(found.size == plans.size)(found)
  }

  private def ofEqual(plans: Seq[LogicalPlan]): CoveringPlan =
    CoveringPlan(
      plans.head,
      plans.map(byPlace(_, plans.head)),
      owed = plans.map(_ => Nil),
      hasForeignRows = false
    )

  private def byPlace(from: LogicalPlan, to: LogicalPlan): AttributeMap[Attribute] =
    AttributeMap(from.output.zip(to.output))

  private def ofFilters(plans: Seq[LogicalPlan]): Option[CoveringPlan] = {
    val (conditions, inputs) = plans.map {
      case Filter(condition, child) => (Selectivity.conjuncts(condition), child)
      case other => (Nil, other)
    }.unzip
    for {
      below <- of(inputs)
      translated <- all(conditions.zipWithIndex.map { case (parts, i) =>
        below.allTranslated(i, parts)
      })
      common = translated.head.filter(part => translated.tail.forall(has(_, part)))
      rest = translated.map(_.filterNot(has(common, _)))
      if !rest.flatten.exists(_.containsAnyPattern(PLAN_EXPRESSION, DYNAMIC_PRUNING_EXPRESSION))
      if mayRaise || translated.forall(isSameSequence(_, translated.head)) ||
        (common ++ rest.flatten).forall(RaisedErrors.isSafe)
      becomesForeign = below.isOwed && rest.exists(_.nonEmpty)
      if !becomesForeign || !evaluatesLate(below.plan)
      // One that keeps all rows makes the conditions of the others needless.
      some = Option.when(rest.forall(_.nonEmpty)) {
        distinct(rest.map(_.reduce(And(_, _)))).reduce(Or(_, _))
      }
      plan = (common ++ some).reduceOption(And(_, _)).fold(below.plan)(Filter(_, below.plan))
      if (plan eq below.plan) || isSafe(plan, isNew = below.hasForeignRows)
    } yield CoveringPlan(
      plan,
      below.columns,
      below.owed.zip(rest).map { case (before, more) => before ++ more },
      below.hasForeignRows || becomesForeign
    )
  }

  private def ofProjects(plans: Seq[Project]): Option[CoveringPlan] =
    for {
      input <- of(plans.map(_.child))
      below = input.owedOver(plans.head.projectList.map(unnamed))
      lists <- ResultLists.of(plans.map(_.projectList), below)
      plan = Project(lists.columns, below.plan)
      if isSafe(plan, isNew = below.hasForeignRows || lists.areUnlike)
    } yield lists.over(plan, below)

  private def ofAggregates(plans: Seq[Aggregate]): Option[CoveringPlan] = {
    val head = plans.head
    for {
      input <- of(plans.map(_.child))
      keys <- all(plans.zipWithIndex.map { case (plan, i) =>
        input.allTranslated(i, plan.groupingExpressions)
      })
      below = input.owedOver(keys.head)
      if keys.forall(isSameSet(_, keys.head)) && plans.forall(_.hint == head.hint)
      if CoveringPlan.areGroups(below.owed, keys.head)
      lists <- ResultLists.of(plans.map(_.aggregateExpressions), below)
      if CoveringPlan.canBePlanned(lists.columns)
      plan = Aggregate(keys.head, lists.columns, below.plan, head.hint)
      if isSafe(plan, isNew = below.hasForeignRows || lists.areUnlike)
    } yield lists.over(plan, below)
  }

  private def ofJoins(plans: Seq[Join]): Option[CoveringPlan] = {
    val head = plans.head
    for {
      left <- of(plans.map(_.left))
      right <- of(plans.map(_.right))
      if plans.forall(_.joinType == head.joinType) && keepsRows(head.joinType, left, right)
      both = CoveringPlan(
        head.withNewChildren(Seq(left.plan, right.plan)),
        left.columns.zip(right.columns).map { case (a, b) => a ++ b },
        left.owed.zip(right.owed).map { case (a, b) => a ++ b },
        left.hasForeignRows || right.hasForeignRows || left.isOwed && right.isOwed
      )
      conditions <- all(plans.zipWithIndex.map { case (plan, i) =>
        both.allTranslated(i, plan.condition.toSeq.flatMap(Selectivity.conjuncts))
      })
      if conditions.forall(isSameSet(_, conditions.head))
      if mayRaise || conditions.forall(isSameSequence(_, conditions.head)) ||
        conditions.flatten.forall(RaisedErrors.isSafe)
      if isSafe(both.plan, isNew = both.hasForeignRows)
      if !both.isOwed || !evaluatesLate(left.plan) && !evaluatesLate(right.plan)
    } yield both.over(both.plan)
  }

  /** Whether a row of the join is there or not whatever becomes of rows that do not meet what is owed. */
  private def keepsRows(joinType: JoinType, left: CoveringPlan, right: CoveringPlan): Boolean =
    joinType match {
      case _: InnerLike => true
      case LeftOuter | LeftSemi | LeftAnti => !right.isOwed
      case RightOuter => !left.isOwed
      case _ => !left.isOwed && !right.isOwed
    }

  private def ofUnions(plans: Seq[Union]): Option[CoveringPlan] = {
    val head = plans.head
    val places = head.children.indices
    for {
      branches <- Option.when(
        plans.forall(plan => plan.children.size == head.children.size && !plan.byName)
      )(places.map(k => plans.map(_.children(k))))
      parts <- all(branches.map(of))
      if places.forall(k => isByPlace(branches(k), parts(k)))
      // In the columns of the union, which is all that the branches have in common.
      owed <- all(places.map { k =>
        val byBranch = AttributeMap(columnsOf(branches(k), parts(k)).zip(head.output))
        all(parts(k).owed.map(conditions =>
          all(conditions.map(condition =>
            Option.when(condition.references.forall(byBranch.contains)) {
              condition.transform { case column: Attribute => byBranch(column) }
            }
          ))
        ))
      })
      if owed.forall(_.zip(owed.head).forall { case (a, b) => isSameSet(a, b) })
    } yield {
      val plan = head.withNewChildren(places.map { k =>
        val wanted = columnsOf(branches(k), parts(k))
        if (parts(k).plan.output == wanted) parts(k).plan else Project(wanted, parts(k).plan)
      })
      CoveringPlan(
        plan,
        plans.map(byPlace(_, plan)),
        owed.head,
        parts.exists(_.hasForeignRows)
      )
    }
  }

  /** Where the columns of the first of similar plans are now. */
  private def columnsOf(plans: Seq[LogicalPlan], cover: CoveringPlan): Seq[Attribute] =
    plans.head.output.map(cover.columns.head(_))

  /** Whether the columns of all similar plans are in the same places. */
  private def isByPlace(plans: Seq[LogicalPlan], cover: CoveringPlan): Boolean = {
    val first = columnsOf(plans, cover)
    plans.zip(cover.columns).forall { case (plan, columns) =>
      plan.output.map(columns(_)).map(_.exprId) == first.map(_.exprId)
    }
  }

  private def ofWindows(plans: Seq[Window]): Option[CoveringPlan] = {
    val head = plans.head
    for {
      below <- of(plans.map(_.child))
      if plans.zipWithIndex.forall { case (plan, i) =>
        def isAs(own: Seq[Expression], first: Seq[Expression]) =
          below.allTranslated(i, own.map(unnamed)).exists(isSameSequence(_, first.map(unnamed)))
        isAs(plan.windowExpressions, head.windowExpressions) &&
        isAs(plan.partitionSpec, head.partitionSpec) && isAs(plan.orderSpec, head.orderSpec) &&
        plan.hint == head.hint
      }
      if CoveringPlan.areGroups(below.owed, head.partitionSpec)
      plan = head.withNewChildren(Seq(below.plan))
      if isSafe(plan, isNew = below.hasForeignRows)
    } yield below
      .copy(columns = plans.zip(below.columns).map { case (similar, columns) =>
        def results(window: Window) = window.windowExpressions.map(_.toAttribute)
        columns ++ AttributeMap(results(similar).zip(results(head)))
      })
      .over(plan)
  }
}
