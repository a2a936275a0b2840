package io.selinger.testing

import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Subquery}
import org.apache.spark.sql.catalyst.rules.Rule

/** Keeps the plan of a query as rules of injectPreCBORule get it. */
object BeforeCbo extends Rule[LogicalPlan] {
  private val last = new ThreadLocal[Option[LogicalPlan]] {
    override def initialValue(): Option[LogicalPlan] = None
  }

  override def apply(plan: LogicalPlan): LogicalPlan = {
    plan match {
      case _: Subquery => ()
      case _ => last.set(Some(plan.clone()))
    }
    plan
  }

  /** What `body` returns, and the query that it optimizes last on this thread. */
  def during[A](body: => A): (A, Option[LogicalPlan]) = {
    last.remove()
    val result = body
    (result, last.get())
  }
}
