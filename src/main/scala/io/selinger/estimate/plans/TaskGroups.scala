package io.selinger.estimate.plans

import io.selinger.core.{FileBytes, Quantity}
import io.selinger.estimate.PlanEstimate
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  Join,
  LeafNode,
  LogicalPlan,
  Project
}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf
import scala.annotation.tailrec

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
   * What all tasks have together: each may have every group, but has no more groups than rows. Tasks that
   * read rows in the order of the files share hardly any run of rows with equal keys.
   */
  def inAllTasks(groups: Quantity, keys: Seq[Expression]): Quantity = {
    val runs =
      TaskGroups.readInOrder(source).flatMap(Combinations.runs(
        keys,
        input,
        _
      )).getOrElse(rows.value)
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

  /**
   * The relation in the order of whose files the rows of a plan come: they go through joins with far smaller
   * sides only, which are not likely to be shuffled.
   */
  @tailrec private def readInOrder(plan: LogicalPlan): Option[Long] = plan match {
    case leaf: LeafNode => leaf.output.headOption.map(_.exprId.id)
    case Project(_, child) => readInOrder(child)
    case Filter(_, child) => readInOrder(child)
    case join: Join =>
      val sides = Seq(join.left, join.right).flatMap(side =>
        LeafStatistics.estimator.estimate(side).map(known => side -> known.rows.value)
      )
      sides.sortBy(_._2) match {
        case Seq((_, few), (larger, rows)) if few * muchSmaller <= rows => readInOrder(larger)
        case _ => None
      }
    case _ => None
  }

  // Set by hand, and not measured.
  private val muchSmaller = 10.0

  /** Spark cuts files so that all cores have work, but into no larger and no smaller parts than set. */
  private def tasksOf(bytes: Double, slots: Int): Double = {
    val most = SQLConf.get.filesMaxPartitionBytes.toDouble
    val least = SQLConf.get.filesOpenCostInBytes.toDouble
    val part = math.min(most, math.max(least, bytes / slots))
    math.max(1.0, bytes / math.max(1.0, part))
  }
}
