package io.selinger.stats.relations

import org.apache.spark.sql.catalyst.expressions.{Expression, ExpressionSet}
import org.apache.spark.sql.catalyst.plans.{LeftAnti, LeftOuter, LeftSemi, RightOuter}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, Join, LogicalPlan, Project}
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  PartitioningCollection
}
import org.apache.spark.sql.execution.{FilterExec, LimitExec, ProjectExec, SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive._
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.window.{WindowExecBase, WindowGroupLimitExec}

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
   * Rows that the operators above a finished stage cannot exceed, where none of them returns more
   * rows than it reads: the final part of an aggregation, say, whose partial part has run.
   */
  def atMost(stage: LogicalQueryStage): Option[Double] = rowsBelow(stage.physicalPlan)

  private def rowsBelow(plan: SparkPlan): Option[Double] = plan match {
    case running: QueryStageExec => running.computeStats().flatMap(_.rowCount).map(_.toDouble)
    // Without groups, no rows make one.
    case aggregate: BaseAggregateExec => rowsBelow(aggregate.child).map(math.max(1.0, _))
    case SameTasks(child) => rowsBelow(child)
    case _ => None
  }

  /** Operators that return rows of their input, in the tasks that read them. */
  private object SameTasks {
    def unapply(plan: SparkPlan): Option[SparkPlan] = plan match {
      case _: SortExec | _: FilterExec | _: ProjectExec | _: AQEShuffleReadExec | _: LimitExec |
          _: WindowExecBase | _: WindowGroupLimitExec =>
        Some(plan.children.head)
      case _ => None
    }
  }

  /**
   * The finished shuffle that `side` reads, if its rows reach a join on `keys` without another one:
   * it is partitioned by just these keys.
   */
  def shuffleBy(side: LogicalPlan, keys: Seq[Expression]): Option[ShuffleQueryStageExec] =
    side match {
      case LogicalQueryStage(_, plan) if partitionedBy(plan, keys) => shuffleBelow(plan)
      case Filter(_, child) => shuffleBy(child, keys)
      case Project(_, child) => shuffleBy(child, keys)
      case aggregate: Aggregate => shuffleBy(aggregate.child, keys)
      case _ => None
    }

  /**
   * The same for rows that reach a join in the tasks that read that shuffle, also where these tasks have
   * joined them with others before. They may read more than this shuffle.
   */
  def shuffleReadBy(side: LogicalPlan, keys: Seq[Expression]): Option[ShuffleQueryStageExec] =
    side match {
      // An inner join may broadcast either side, and its rows are then in the tasks of the other one.
      case Join(left, _, LeftOuter | LeftSemi | LeftAnti, _, _) => shuffleReadBy(left, keys)
      case Join(_, right, RightOuter, _, _) => shuffleReadBy(right, keys)
      case Filter(_, child) => shuffleReadBy(child, keys)
      case Project(_, child) => shuffleReadBy(child, keys)
      case _ => shuffleBy(side, keys)
    }

  private def shuffleBelow(plan: SparkPlan): Option[ShuffleQueryStageExec] = plan match {
    case stage: ShuffleQueryStageExec => Some(stage)
    case aggregate: BaseAggregateExec => shuffleBelow(aggregate.child)
    case SameTasks(child) => shuffleBelow(child)
    case _ => None
  }

  private def partitionedBy(plan: SparkPlan, keys: Seq[Expression]): Boolean = {
    def by(partitioning: Partitioning): Boolean = partitioning match {
      case HashPartitioning(expressions, _) => ExpressionSet(expressions) == ExpressionSet(keys)
      case PartitioningCollection(several) => several.exists(by)
      case _ => false
    }
    by(plan.outputPartitioning)
  }

  /**
   * Share of a join side's bytes that its largest task can read: adaptive execution gives a task
   * neighbouring partitions up to `coalescedBytes`, of both sides together. Without the other side's
   * sizes, all of these may be this one's. `None` while the shuffle runs.
   */
  def largestTaskShare(
      stage: ShuffleQueryStageExec,
      other: Option[ShuffleQueryStageExec],
      coalescedBytes: Long
  ): Option[Double] =
    partitionBytes(stage).map { bytes =>
      val beside = other.flatMap(partitionBytes).filter(_.length == bytes.length)
      largestShare(bytes, beside.getOrElse(new Array[Long](bytes.length)), coalescedBytes)
    }

  private def partitionBytes(stage: ShuffleQueryStageExec): Option[Array[Long]] =
    Option(stage).filter(_.isMaterialized).flatMap(_.mapStats).map(_.bytesByPartitionId)

  /** The largest part of `bytes` among windows of partitions that together stay within `most`. */
  private[stats] def largestShare(bytes: Array[Long], beside: Array[Long], most: Long): Double = {
    val total = bytes.iterator.map(_.toDouble).sum
    if (total <= 0) 1.0
    else {
      // Spark merges a small rest into its neighbour, up to a fifth above its target.
      val limit = most * 1.2
      var (from, window, own, largest) = (0, 0.0, 0.0, 0.0)
      bytes.indices.foreach { i =>
        window += bytes(i) + beside(i)
        own += bytes(i)
        while (window > limit && from < i) {
          window -= bytes(from) + beside(from)
          own -= bytes(from)
          from += 1
        }
        largest = math.max(largest, own)
      }
      math.min(1.0, largest / total)
    }
  }

  def isBroadcast(plan: LogicalPlan): Boolean = plan match {
    case LogicalQueryStage(_, _: BroadcastQueryStageExec) => true
    case _ => false
  }

  /** Whether the query has begun to run: parts of the plan are stages already. */
  def begun(plan: LogicalPlan): Boolean = plan.exists(_.isInstanceOf[LogicalQueryStage])
}
