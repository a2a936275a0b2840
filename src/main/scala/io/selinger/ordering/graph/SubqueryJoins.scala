package io.selinger.ordering.graph

import io.selinger.core.RaisedErrors
import io.selinger.ordering.ablation.Mechanism
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery
import org.apache.spark.sql.catalyst.plans.{Inner, LeftAnti}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LocalRelation, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.trees.TreePattern

/**
 * A plan with IN and EXISTS as joins, and with outer joins that only find rows without a partner as
 * anti joins, where these come to stand among others. IN and EXISTS become what Spark itself will make
 * of them, by the same rule, once it has left this batch.
 */
private[selinger] object SubqueryJoins {

  /** The very same plan where that brings no join into a region of more than two relations. */
  def rewritten(plan: LogicalPlan): LogicalPlan = {
    val hasSubqueries = Mechanism.SemiJoins.isOn &&
      plan.containsAnyPattern(TreePattern.IN_SUBQUERY, TreePattern.EXISTS_SUBQUERY)
    val joined = if (hasSubqueries) RewritePredicateSubquery(plan) else plan
    val rewritten = AntiJoins.rewritten(if (hasSubqueries && losesErrors(joined)) plan else joined)
    def takePart = rewritten.exists { node =>
      JoinRegion.at(node).exists { region =>
        region.relations.size > 2 && region.written.joins.exists(_.joinType != Inner)
      }
    }
    if ((rewritten ne plan) && takePart) rewritten else plan
  }

  /**
   * Whether a join will be dropped that Spark runs: in this batch, a join that finds no partner goes, and
   * with it the errors that its rows raise. Where Spark makes it of a subquery, that batch is over.
   */
  private def losesErrors(plan: LogicalPlan): Boolean =
    plan.exists {
      case join: Join =>
        // An anti join with no rows keeps its left side.
        join.condition.contains(Literal.FalseLiteral) ||
        join.joinType != LeftAnti && isEmpty(join.right)
      case _ => false
    } && RaisedErrors.mayRaise(plan)

  private def isEmpty(plan: LogicalPlan): Boolean = plan match {
    case LocalRelation(_, rows, _, _) => rows.isEmpty
    case Project(_, child) => isEmpty(child)
    case _ => false
  }
}
