package io.selinger.rule

import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, LogicalPlan}

/** What a rule must know of the rest of a query before it changes a part. */
private[rule] final class WholeQuery(plan: LogicalPlan) {

  private lazy val operators: Seq[LogicalPlan] =
    plan.collectWithSubqueries { case operator @ (_: Join | _: Aggregate) => operator }

  def isStreaming: Boolean = plan.isStreaming

  private def times(part: LogicalPlan): Int = {
    val hash = part.semanticHash()
    operators.count(other =>
      other.getClass == part.getClass && other.semanticHash() == hash && other.sameResult(part)
    )
  }

  /** Whether joins that a push would change are computed for another aggregate, too. */
  def isShared(push: AggregatePush): Boolean = {
    val joins = push.path.joins ++ push.path.input.collectFirst { case join: Join => join }
    lazy val uses = times(push.aggregate)
    joins.exists(times(_) > uses)
  }
}
