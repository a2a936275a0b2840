package io.selinger.exec.aggregates

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.util.truncatedString
import org.apache.spark.sql.execution.{OrderPreservingUnaryExecNode, SparkPlan}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/**
 * Hash aggregation for buffers of any kind, which Spark sorts for: text, binary, arrays, structs, and
 * objects such as the lists of `collect_list`. Keys are hashed as bytes; buffers are numbers and objects in arrays on the heap.
 *
 * Where the input is sorted by the keys already, it groups as Spark's sort aggregation does, without a
 * table, and keeps the order.
 *
 * A table that no cache of the processor holds is read ahead for some hundred rows at a time, so that the
 * waits for memory overlap (RowBatch).
 *
 * Memory: that of the task, bounded by nothing else (GroupTable). When it ends, a partial aggregation
 * returns the groups that it has and begins again. Any other writes them into Spark's external sorter,
 * begins again, and at the end merges the groups of equal keys; where not even a thousand groups fit
 * in memory, all further rows are sorted. While groups are collected a page of memory is kept
 * back, for what reads them.
 * A partial aggregation that finds more than `stopRatio` groups for each of `testedRows` rows stops
 * grouping, passes ten times as many rows on as groups of one row (at least a million), and looks again. It does not where a function keeps a
 * sketch, which is as large for one row as for a million.
 * When another operator of the task needs memory, groups that are being returned are written to a file.
 *
 * Distribution: asks for what Spark's aggregation asks for, and keeps that of its child. Code generation:
 * keys, updates and results are generated projections; the loop over rows is not generated, as in
 * Spark's ObjectHashAggregate.
 * Metrics: rows returned, rows passed on ungrouped, time of grouping, peak memory, bytes spilled, and
 * tasks that went on by sorting.
 *
 * Parameters are those of Spark's aggregates.
 * @param stopRatio 1 or more: never stops
 * @param testedRows after how many rows of a table a partial aggregation looks at that ratio
 */
final case class HeapHashAggregateExec(
    requiredChildDistributionExpressions: Option[Seq[Expression]],
    numShufflePartitions: Option[Int],
    groupingExpressions: Seq[NamedExpression],
    aggregateExpressions: Seq[AggregateExpression],
    aggregateAttributes: Seq[Attribute],
    initialInputBufferOffset: Int,
    resultExpressions: Seq[NamedExpression],
    stopRatio: Double,
    testedRows: Long,
    child: SparkPlan
) extends BaseAggregateExec with OrderPreservingUnaryExecNode {

  // State of streams is kept by Spark's own operators.
  override def isStreaming: Boolean = false

  override lazy val allAttributes: AttributeSeq =
    child.output ++ aggregateBufferAttributes ++ aggregateAttributes ++
      aggregateExpressions.flatMap(_.aggregateFunction.inputAggBufferAttributes)

  override protected def orderingExpressions: Seq[SortOrder] = if (isSorted) order else Nil

  private def order: Seq[SortOrder] = groupingExpressions.map(SortOrder(_, Ascending))

  private def isSorted: Boolean = SortOrder.orderingSatisfies(child.outputOrdering, order)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numPassedRows" -> SQLMetrics.createMetric(sparkContext, "number of rows passed on ungrouped"),
    "aggTime" -> SQLMetrics.createTimingMetric(sparkContext, "time in aggregation build"),
    "peakMemory" -> SQLMetrics.createSizeMetric(sparkContext, "peak memory"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"),
    "numSortingTasks" ->
      SQLMetrics.createMetric(sparkContext, "number of tasks that went on by sorting")
  )

  override protected def doExecute(): RDD[InternalRow] = {
    val made = HeapHashAggregation.Metrics(
      outputRows = longMetric("numOutputRows"),
      passedRows = longMetric("numPassedRows"),
      buildTime = longMetric("aggTime"),
      peakMemory = longMetric("peakMemory"),
      spilledBytes = longMetric("spillSize"),
      sortingTasks = longMetric("numSortingTasks")
    )
    val (sorted, read) = (isSorted, inputAttributes)
    child.execute().mapPartitionsWithIndex { (partition, rows) =>
      if (rows.isEmpty) Iterator.empty
      else {
        new HeapHashAggregation(
          partition,
          groupingExpressions,
          read,
          aggregateExpressions,
          aggregateAttributes,
          initialInputBufferOffset,
          resultExpressions,
          rows,
          perTask = requiredChildDistributionExpressions.isEmpty,
          isSorted = sorted,
          stopRatio,
          testedRows,
          made
        )
      }
    }
  }

  override def verboseString(maxFields: Int): String =
    s"${simpleString(maxFields).stripSuffix(")")}, " +
      s"output=${truncatedString(output, "[", ", ", "]", maxFields)})"

  override def simpleString(maxFields: Int): String = {
    val keys = truncatedString(groupingExpressions, "[", ", ", "]", maxFields)
    val functions = truncatedString(aggregateExpressions, "[", ", ", "]", maxFields)
    s"HeapHashAggregate(keys=$keys, functions=$functions)"
  }

  // Equal aggregations are equal whatever was expected of them when they were planned.
  override protected def doCanonicalize(): SparkPlan = super.doCanonicalize() match {
    case same: HeapHashAggregateExec =>
      same.copy(testedRows = HeapHashAggregateExec.leastTestedRows)
    case other => other
  }

  override protected def withNewChildInternal(newChild: SparkPlan): HeapHashAggregateExec =
    copy(child = newChild)
}

object HeapHashAggregateExec {

  /** Rows after which it is looked at whether grouping them helps, where it may not. As Velox does. */
  val leastTestedRows: Long = 100000L

  private val unknownTestedRows = 300000L

  // So many rows may be grouped for nothing.
  private val mostTestedRows = 1000000L

  /**
   * Rows that show whether groups are far fewer: twice as many as there are groups, since where keys come
   * in turn, the first rows of all groups are all different.
   *
   * @param groups that are expected; none if unknown
   * @param rows of all tasks that are expected; none if unknown
   * @param stopRatio groups for each row from which on grouping does not help
   */
  def testedRows(groups: Option[Double], rows: Option[Double], stopRatio: Double): Long =
    groups match {
      case None => unknownTestedRows
      case Some(many) if rows.exists(many > _ * stopRatio) => leastTestedRows
      case Some(many) =>
        math.max(leastTestedRows, math.min(mostTestedRows.toDouble, many * 2).toLong)
    }
}
