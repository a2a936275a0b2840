package io.selinger.bench

import java.util.concurrent.atomic.AtomicReference
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule

/**
 * Keeps the plan of a query as the ordering of joins has left it: named after Selinger's extension in
 * `spark.sql.extensions`, its rule runs right after ours.
 */
final class PlanRecorder extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectPreCBORule(_ => PlanRecorder.Recording)
}

object PlanRecorder {

  private val last = new AtomicReference[Option[LogicalPlan]](None)

  /** The plan of the query that was optimised last; those of its subqueries come before. */
  def recorded: Option[LogicalPlan] = last.get()

  private object Recording extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      last.set(Some(plan))
      plan
    }
  }
}
