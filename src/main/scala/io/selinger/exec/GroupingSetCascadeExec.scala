package io.selinger.exec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{Partitioning, UnknownPartitioning}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}

/**
 * Partial aggregates of several grouping sets, from partial aggregates by all keys. Each grouping set is
 * computed from a finer one, its source, so it reads the groups of that one and not all rows.
 *
 * {{{
 *   GROUP BY ROLLUP (a, b, c)         input (a, b, c) ─> (a, b, c) ─> (a, b) ─> (a) ─> ()
 * }}}
 *
 * A grouping set with the keys of its source passes its rows on at once. Any other has a hash table, which
 * is emptied when the input ends: into the output, and into the tables of the sets computed from it.
 *
 * Memory: one of Spark's aggregation maps for each such set, within the memory of the task. When a map
 * gets no more memory, the row at hand goes on as it is and the map is emptied early. Both are correct at
 * any time, since the final aggregation above merges rows of the same group. So it never sorts. It leaves
 * no memory to operators above it: a shuffle that keeps rows in memory may fail for that.
 *
 * Distribution: rows stay in their task, and nothing is claimed of them. Ordering: none. No code
 * generation for the whole stage, since one row in may be several rows out of several tables; keys, merges
 * and output rows are computed by generated projections.
 * Metrics: rows returned, and rows that went on unmerged for lack of memory.
 *
 * @param keys the grouping columns that are returned
 * @param projections for each grouping set the values of `keys`: columns of `child`, or literals
 * @param sources for each grouping set the index of the one that it is computed from; -1: the input
 * @param buffers columns of `child` that hold partial aggregates; they are returned too
 * @param initialValues of the buffers of a group without rows
 * @param merges new values of the buffers, bound to the buffers of a group and then to those merged
 *   into it
 */
final case class GroupingSetCascadeExec(
    keys: Seq[Attribute],
    projections: Seq[Seq[Expression]],
    sources: Seq[Int],
    buffers: Seq[Attribute],
    initialValues: Seq[Expression],
    merges: Seq[Expression],
    child: SparkPlan
) extends UnaryExecNode {

  override def output: Seq[Attribute] = keys ++ buffers
  override def producedAttributes: AttributeSet = AttributeSet(keys)
  override def outputPartitioning: Partitioning = UnknownPartitioning(0)
  override def nodeName: String = "GroupingSetCascade"

  override protected def stringArgs: Iterator[Any] = {
    val sets = projections.map(_.collect { case key: Attribute => key }.mkString("(", ", ", ")"))
    val from = sources.map(source => if (source < 0) "input" else sets(source))
    Iterator(keys) ++ sets.zip(from).map { case (set, source) => s"$set from $source" }
  }

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"),
    "numUnmergedRows" ->
      SQLMetrics.createMetric(sparkContext, "number of rows unmerged for lack of memory")
  )

  override protected def doExecute(): RDD[InternalRow] = {
    val sets = levels
    val bufferSchema = DataTypeUtils.fromAttributes(buffers)
    val inputBuffers = BindReferences.bindReferences(buffers: Seq[Expression], child.output)
    val (initial, merge) = (initialValues, merges)
    val outputRows = longMetric("numOutputRows")
    val unmergedRows = longMetric("numUnmergedRows")
    child.execute().mapPartitionsWithIndex { (partition, rows) =>
      if (rows.isEmpty) Iterator.empty
      else {
        new GroupingSetCascade(
          rows,
          sets,
          inputBuffers,
          bufferSchema,
          initial,
          merge,
          partition,
          outputRows,
          unmergedRows
        )
      }
    }
  }

  /** Each grouping set with what its tasks need. */
  private def levels: Seq[GroupingSetCascade.Level] = projections.indices.map { set =>
    val table = Option.unless(isDirect(set)) {
      val key: Seq[Expression] = if (kept(set).isEmpty) GroupingSetCascade.noKeys else kept(set)
      GroupingSetCascade.Table(
        BindReferences.bindReferences(key, keyRow(sources(set))),
        DataTypeUtils.fromAttributes(keyRow(set))
      )
    }
    val result = BindReferences.bindReferences(projections(set) ++ buffers, keyRow(set) ++ buffers)
    GroupingSetCascade.Level(sources(set), table, result)
  }

  /** The columns of a key as it is handed on: of the input whole rows. */
  private def keyRow(set: Int): Seq[Attribute] =
    if (set < 0) child.output
    else if (isDirect(set)) keyRow(sources(set))
    else if (kept(set).isEmpty) GroupingSetCascade.noKeyRow
    else kept(set)

  /** The keys of a grouping set, of the input all. */
  private def kept(set: Int): Seq[Attribute] =
    if (set < 0) child.output.filterNot(AttributeSet(buffers).contains)
    else projections(set).collect { case key: Attribute => key }.distinctBy(_.exprId)

  private def isDirect(set: Int): Boolean =
    AttributeSet(kept(set)) == AttributeSet(kept(sources(set)))

  override protected def withNewChildInternal(newChild: SparkPlan): GroupingSetCascadeExec =
    copy(child = newChild)
}
