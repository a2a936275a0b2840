package io.selinger.bench

import java.util.concurrent.ConcurrentLinkedQueue
import org.apache.spark.sql.SparkSessionExtensions
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import scala.jdk.CollectionConverters._

/**
 * Keeps the plans of a query as the ordering of joins gets them: named before Selinger's extension in
 * `spark.sql.extensions`, its rule runs right before ours.
 */
final class PlanRecorder extends (SparkSessionExtensions => Unit) {
  override def apply(extensions: SparkSessionExtensions): Unit =
    extensions.injectPreCBORule(_ => PlanRecorder.Recording)
}

object PlanRecorder {

  private val plans = new ConcurrentLinkedQueue[LogicalPlan]()

  /** Plans of the subqueries of a query, then its own. */
  def of(session: SparkSession, text: String): Seq[LogicalPlan] = {
    plans.clear()
    val _ = session.sql(text).queryExecution.optimizedPlan
    plans.asScala.toSeq
  }

  private object Recording extends Rule[LogicalPlan] {
    override def apply(plan: LogicalPlan): LogicalPlan = {
      val _ = plans.add(plan)
      plan
    }
  }
}
