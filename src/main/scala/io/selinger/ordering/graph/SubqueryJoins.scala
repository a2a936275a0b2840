package io.selinger.ordering.graph

import io.selinger.ordering.ablation.Mechanism
import org.apache.spark.sql.catalyst.optimizer.RewritePredicateSubquery
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
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
    val rewritten = AntiJoins.rewritten(if (hasSubqueries) RewritePredicateSubquery(plan) else plan)
    def takePart = rewritten.exists { node =>
      JoinRegion.at(node).exists { region =>
        region.relations.size > 2 && region.written.joins.exists(_.joinType != Inner)
      }
    }
    if ((rewritten ne plan) && takePart) rewritten else plan
  }
}
