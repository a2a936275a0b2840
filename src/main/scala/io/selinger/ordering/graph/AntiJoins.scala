package io.selinger.ordering.graph

import io.selinger.core.RaisedErrors
import io.selinger.estimate.predicates.Selectivity
import io.selinger.ordering.ablation.Mechanism
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}

/**
 * `LEFT JOIN … ON key = other WHERE other IS NULL` as the anti join that it is, which may change places
 * with joins that the filter above an outer join keeps away.
 *
 * {{{
 *   Before:  Project (columns of the kept side)      After:  Project
 *            +- Filter (isnull(other))                       +- Join LeftAnti (key = other)
 *               +- Join LeftOuter (key = other)
 * }}}
 *
 * Correct because: a row with a partner has a value in `other`, since the condition is not true of a
 * null there, so the filter drops it; a row without one returns once. A condition that may raise an
 * error stays, for an anti join may evaluate it for fewer pairs, and so does one over columns whose
 * computation may; so do hinted joins, filters that depend on which rows they see, and joins of whose
 * other columns, all null, the query goes on to use any.
 *
 * An anti join can do less than an outer join: it prunes no partitions and builds one side only. So
 * it becomes an outer join again (`restored`) where it keeps its place.
 */
private[ordering] object AntiJoins {

  /** The very same plan where it has no such join. */
  def rewritten(plan: LogicalPlan): LogicalPlan =
    if (!plan.containsPattern(TreePattern.OUTER_JOIN) || !Mechanism.AntiJoins.isOn) plan
    else
      plan.transformUp {
        case project @ Project(list, Filter(condition, join @ OuterJoin(kept, filled))) =>
          val (asked, rest) =
            Selectivity.conjuncts(condition).partition(asksForNone(_, join, filled))
          val used = AttributeSet.fromAttributeSets((list ++ rest).map(_.references))
          val isSafe =
            condition.deterministic && !join.children.exists(RaisedErrors.computesUnsafeColumns)
          if (asked.isEmpty || !isSafe || used.intersect(filled.outputSet).nonEmpty) project
          else {
            val anti = Join(kept, filled, LeftAnti, join.condition, JoinHint.NONE)
            anti.setTagValue(written, Written(join.joinType, asked.reduce(And(_, _))))
            val below = rest.reduceOption(And(_, _)).fold[LogicalPlan](anti)(Filter(_, anti))
            project.copy(child = below)
          }
      }

  /** With outer joins in the place of those anti joins that no order has moved. */
  def restored(plan: LogicalPlan): LogicalPlan = plan.transformUp {
    case anti @ Join(kept, filled, LeftAnti, condition, hint) =>
      anti.getTagValue(written).fold[LogicalPlan](anti) { before =>
        val outer =
          if (before.joinType == LeftOuter) Join(kept, filled, LeftOuter, condition, hint)
          else Join(filled, kept, before.joinType, condition, hint)
        outer.copyTagsFrom(anti)
        Filter(before.filter, outer)
      }
  }

  /** What the query had in the place of an anti join. */
  private final case class Written(joinType: JoinType, filter: Expression)

  private val written = TreeNodeTag[Written]("selinger.outerJoin")

  /** The side whose rows all return, and the one that is filled with nulls. */
  private object OuterJoin {
    def unapply(join: Join): Option[(LogicalPlan, LogicalPlan)] = join match {
      case Join(left, right, LeftOuter, Some(condition), JoinHint.NONE) if isSafe(condition) =>
        Some((left, right))
      case Join(left, right, RightOuter, Some(condition), JoinHint.NONE) if isSafe(condition) =>
        Some((right, left))
      case _ => None
    }

    private def isSafe(condition: Expression): Boolean =
      condition.deterministic && Selectivity.conjuncts(condition).forall(RaisedErrors.isSafe)
  }

  private def asksForNone(conjunct: Expression, join: Join, filled: LogicalPlan): Boolean =
    conjunct match {
      case IsNull(column: Attribute) =>
        filled.outputSet.contains(column) &&
        join.condition.exists(NullRejection.rejects(_, AttributeSet(column)))
      case _ => false
    }
}
