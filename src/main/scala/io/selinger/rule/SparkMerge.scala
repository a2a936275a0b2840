package io.selinger.rule

import org.apache.spark.sql.catalyst.plans.logical.Aggregate
import org.apache.spark.sql.internal.SQLConf

/**
 * Two subplans in one.
 *
 * @param plan returns the columns of the first subplan in their places, then what the second adds
 * @param columns for each column of the second subplan, its place
 */
private[rule] final case class SparkMerge(plan: Aggregate, columns: Seq[Int])

/** Asks Spark's own code whether two subplans can be computed together. */
private[rule] object SparkMerge {

  def of(first: Aggregate, second: Aggregate): Option[SparkMerge] =
    if (buffersOf(first) + buffersOf(second) > SQLConf.get.wholeStageMaxNumFields) None
    else {
      val merger = PlanMergerShim.create()
      val _ = merger.merge(first, subqueryPlan = true)
      val found = merger.merge(second, subqueryPlan = true)
      found.mergedPlan.plan match {
        case plan: Aggregate if found.mergedPlan.merged && found.mergedPlanIndex == 0 =>
          val columns = second.output.map(found.outputMap)
          Option.when(columns.forall(_ >= 0))(SparkMerge(plan, columns))
        case _ => None
      }
    }

  /** Beyond so many columns Spark generates no code for whole stages, and each row costs far more. */
  private def buffersOf(aggregate: Aggregate): Int =
    Functions.of(aggregate).map(_.aggregateFunction.aggBufferAttributes.size).sum
}
