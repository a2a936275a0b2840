package io.selinger.rule

import io.selinger.core.Decision
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Subquery}

/** Decisions of rules that make a plan anew, so that they are not kept where they were made. */
private[rule] object RootDecisions {

  /** The plan with decisions on its root; of Subquery, which is taken off, on the root below. */
  def on(plan: LogicalPlan, made: Seq[Decision]): LogicalPlan = plan match {
    case Subquery(child, _) => plan.withNewChildren(Seq(on(child, made)))
    case leaf: LeafNode if made.nonEmpty =>
      // Other queries have the same object.
      val own = leaf.makeCopy(leaf.productIterator.map(_.asInstanceOf[AnyRef]).toArray)
      made.foreach(Decision.recordAtLeaf(own, _))
      own
    case root =>
      made.foreach(Decision.record(root, _))
      root
  }
}
