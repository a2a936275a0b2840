package io.selinger.core

import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, Subquery}

/** Decisions of rules that make a plan anew, so that they are not kept where they were made. */
private[selinger] object RootDecisions {

  private val offered = new PassKey[Seq[Decision]]("decisions at the root, of a rule that runs")
  private val made = new PassKey[Seq[Decision]]("decisions at the root")

  /** The plan with decisions on its root; of Subquery, which is taken off, on the root below. */
  def on(plan: LogicalPlan, decisions: Seq[Decision]): LogicalPlan = plan match {
    case Subquery(child, _) => plan.withNewChildren(Seq(recorded(child, decisions)))
    case root =>
      PlanningPass.current.put(offered, decisions)
      recorded(root, decisions)
  }

  private def recorded(root: LogicalPlan, decisions: Seq[Decision]): LogicalPlan = root match {
    case leaf: LeafNode if decisions.nonEmpty =>
      // Other queries have the same object.
      val own = leaf.makeCopy(leaf.productIterator.map(_.asInstanceOf[AnyRef]).toArray)
      decisions.foreach(Decision.recordAtLeaf(own, _))
      own
    case _ =>
      decisions.foreach(Decision.record(root, _))
      root
  }

  /** Remembers what a rule has recorded on the root of its result, which the guard has let pass. */
  private[core] def keep(result: LogicalPlan): Unit = {
    val pass = PlanningPass.current
    pass.get(offered).filter(_.nonEmpty).foreach { decisions =>
      val recorded = decisions.filter(Decision.recordedAt(result).contains)
      val before = pass.get(made).getOrElse(Nil)
        .filterNot(old => recorded.exists(now => now.rule == old.rule && now.key == old.key))
      pass.put(made, before ++ recorded)
      pass.put(offered, Nil)
    }
  }

  /**
   * Records on the root of a query what has been recorded there before, and was lost: so is all that is
   * recorded on projections where Spark unites two of them, which it does where IN has become a join.
   */
  private[core] def restore(root: LogicalPlan): Unit = root match {
    case _: Subquery | _: LeafNode => ()
    case _ =>
      val known = Decision.recordedAt(root)
      PlanningPass.optimizing(root).get(made).toSeq.flatten
        .filterNot(known.contains)
        .foreach(Decision.record(root, _))
  }
}
