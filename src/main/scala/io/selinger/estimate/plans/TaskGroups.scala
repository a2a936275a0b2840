package io.selinger.estimate.plans

import io.selinger.core.{FileBytes, Quantity}
import io.selinger.estimate.PlanEstimate
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

/**
 * How many groups the tasks meet that read the rows of a plan.
 *
 * @param input what is known of its rows
 * @param tasks that read them
 */
final case class TaskGroups(source: LogicalPlan, input: PlanEstimate, tasks: Double) {

  def rows: Quantity = input.rows

  /** Groups of a key in the whole plan; none if unknown. */
  def groupsBy(keys: Seq[Attribute]): Option[Quantity] =
    LeafStatistics.estimator.estimate(Aggregate(keys, keys, source)).map(_.rows)

  /** Groups that one task meets: rows fall on groups like balls into bins (Cardenas 1975). */
  def inOneTask(groups: Double): Double =
    if (groups > 0.0) groups * -math.expm1(-rows.value / tasks / groups) else 0.0

  /**
   * What all tasks have together: each may have every group, but has no more groups than rows, nor than runs
   * of equal keys where rows of a group lie side by side in the files.
   */
  def inAllTasks(groups: Quantity, keys: Seq[Expression]): Quantity = {
    val runs = Combinations.runs(keys, input).getOrElse(rows.value)
    val met = math.min(inOneTask(groups.value) * tasks, runs)
    Quantity(math.min(rows.value, math.max(groups.value, met)), groups.origin)
  }
}

object TaskGroups {

  /**
   * @param input what is known about the rows of `source`
   * @param slots tasks that run at a time
   */
  def of(source: LogicalPlan, input: PlanEstimate, slots: Int): TaskGroups = {
    val inTransit = input.rows.value * input.rowBytes(source.output)
    val files = source.collectLeaves().collect {
      case LogicalRelation(relation: HadoopFsRelation, _, _, _, _) =>
        FileBytes.of(relation.location)
    }
    val bytes = (inTransit +: files).max
    TaskGroups(source, input, tasksOf(bytes, slots))
  }

  /** Spark cuts files so that all cores have work, but into no larger and no smaller parts than set. */
  private def tasksOf(bytes: Double, slots: Int): Double = {
    val most = SQLConf.get.filesMaxPartitionBytes.toDouble
    val least = SQLConf.get.filesOpenCostInBytes.toDouble
    val part = math.min(most, math.max(least, bytes / slots))
    math.max(1.0, bytes / math.max(1.0, part))
  }
}
