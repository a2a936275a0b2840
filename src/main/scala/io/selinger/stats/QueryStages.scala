package io.selinger.stats

import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionSet}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.adaptive._

/** What finished query stages measured. */
object QueryStages {

  /**
   * @param rows that the stage returned
   * @param rowBytes width of one, uncompressed; none without rows
   */
  final case class Measured(rows: Double, rowBytes: Option[Double])

  def measured(stage: LogicalQueryStage): Option[Measured] = stage.physicalPlan match {
    case running: QueryStageExec =>
      for (statistics <- running.computeStats(); rows <- statistics.rowCount) yield {
        val count = rows.toDouble
        Measured(count, if (count > 0) Some(statistics.sizeInBytes.toDouble / count) else None)
      }
    // The stage under another physical operator (a sort, say): its rows are not those measured.
    case _ => None
  }

  /**
   * The finished shuffle that `side` reads, if its rows reach a join on `keys` without another one:
   * it is partitioned by just these keys.
   */
  def shuffleBy(side: LogicalPlan, keys: Seq[Expression]): Option[ShuffleQueryStageExec] =
    side match {
      case LogicalQueryStage(_, stage: ShuffleQueryStageExec) if partitionedBy(stage, keys) => Some(stage)
      case Filter(_, child) => shuffleBy(child, keys)
      case Project(_, child) => shuffleBy(child, keys)
      case aggregate: Aggregate => shuffleBy(aggregate.child, keys)
      case _ => None
    }

  private def partitionedBy(stage: ShuffleQueryStageExec, keys: Seq[Expression]): Boolean =
    stage.shuffle.outputPartitioning match {
      case HashPartitioning(expressions, _) => ExpressionSet(expressions) == ExpressionSet(keys)
      case _ => false
    }

  /**
   * Share of a shuffle's bytes that its largest task can read: its largest partition, or as much as
   * adaptive execution coalesces. `None` while the shuffle runs.
   */
  def largestTaskShare(stage: ShuffleQueryStageExec, coalescedBytes: Long): Option[Double] =
    Option(stage).filter(_.isMaterialized).flatMap(_.mapStats).map { statistics =>
      val bytes = statistics.bytesByPartitionId
      val total = bytes.iterator.map(_.toDouble).sum
      if (total <= 0) 1.0
      else math.min(1.0, math.max(bytes.max.toDouble, coalescedBytes.toDouble) / total)
    }

  def isBroadcast(plan: LogicalPlan): Boolean = plan match {
    case LogicalQueryStage(_, _: BroadcastQueryStageExec) => true
    case _ => false
  }

  /** Whether the query has begun to run: parts of the plan are stages already. */
  def begun(plan: LogicalPlan): Boolean = plan.exists(_.isInstanceOf[LogicalQueryStage])
}
