package io.selinger.exec.sorting

import io.selinger.exec.TaskMemory
import java.util.concurrent.TimeUnit.NANOSECONDS
import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.physical.{
  Distribution,
  OrderedDistribution,
  Partitioning,
  UnspecifiedDistribution
}
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode, UnsafeExternalRowSorter}
import org.apache.spark.sql.execution.UnsafeExternalRowSorter.PrefixComputer
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.util.collection.unsafe.sort.PrefixComparators

/**
 * Sorts the rows of each task by several keys, most of which one number holds (PackedSortKey): with
 * Spark's sorter, without comparing rows where the number holds all keys, else by the other keys where it
 * is equal.
 *
 * Rows with a value that is larger than expected have no such number. They go into a second sorter, which
 * compares all keys, and both results are merged. So expected bounds need not be right.
 *
 * Memory: as Spark's sort, it spills; the second sorter exists only if there are such rows. It is freed with
 * the last row, or at the end of the task: a sort-merge join that needs no more rows does not free it. Code
 * generation: none of its own, its input's ends here. Metrics: those of Spark's sort, and rows in the
 * second sorter.
 *
 * @param order that the rows get
 * @param key its first keys as one number
 * @param rest keys that decide where that number is equal
 * @param global whether the tasks' rows are in this order as well, by the shuffle below
 */
final case class PackedSortExec(
    order: Seq[SortOrder],
    key: PackedSortKey,
    rest: Seq[SortOrder],
    global: Boolean,
    child: SparkPlan
) extends UnaryExecNode {

  override def output: Seq[Attribute] = child.output
  override def outputOrdering: Seq[SortOrder] = order
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def nodeName: String = "PackedSort"
  override protected def stringArgs: Iterator[Any] = Iterator(order, key)

  override def requiredChildDistribution: Seq[Distribution] =
    Seq(if (global) OrderedDistribution(order) else UnspecifiedDistribution)

  override lazy val metrics: Map[String, SQLMetric] = Map(
    "sortTime" -> SQLMetrics.createTimingMetric(sparkContext, "sort time"),
    "peakMemory" -> SQLMetrics.createSizeMetric(sparkContext, "peak memory"),
    "spillSize" -> SQLMetrics.createSizeMetric(sparkContext, "spill size"),
    "rowsBeyond" -> SQLMetrics.createMetric(sparkContext, "number of rows sorted by all keys")
  )

  override protected def doExecute(): RDD[InternalRow] = {
    val columns = child.output
    val (all, packed, equal, radix) = (order, key, rest, conf.enableRadixSort)
    val (time, memory) = (longMetric("sortTime"), longMetric("peakMemory"))
    val (spill, beyond) = (longMetric("spillSize"), longMetric("rowsBeyond"))
    child.execute().mapPartitions { rows =>
      val spilled = TaskContext.get().taskMetrics().memoryBytesSpilled
      val sort = new PackedSort(columns, all, packed, equal, radix)
      val sorted = sort.sorted(rows)
      time += NANOSECONDS.toMillis(sort.nanos)
      memory.set(sort.peakMemory.max(memory.value))
      beyond += sort.rowsBeyond
      spill += TaskContext.get().taskMetrics().memoryBytesSpilled - spilled
      sorted
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): PackedSortExec =
    copy(child = newChild)
}

/** Sorts the rows of one task. */
private final class PackedSort(
    columns: Seq[Attribute],
    order: Seq[SortOrder],
    key: PackedSortKey,
    rest: Seq[SortOrder],
    radix: Boolean
) {

  private val number = UnsafeProjection.create(Seq(key), columns)
  // Nearly all operators return such rows already.
  private lazy val unsafe = UnsafeProjection.create(columns, columns)
  private val packs = new PackedSort.Number
  private val byNumber = sorter(rest, packs, radix && rest.isEmpty)
  private lazy val byKeys = sorter(order, new PackedSort.Number, radix = false)
  private var beyond = 0L

  /** Rows whose keys no number holds. */
  def rowsBeyond: Long = beyond

  def nanos: Long = sum(_.getSortTimeNanos)
  def peakMemory: Long = sum(_.getPeakMemoryUsage)

  private def sum(of: UnsafeExternalRowSorter => Long): Long =
    of(byNumber) + (if (beyond > 0) of(byKeys) else 0L)

  def sorted(rows: Iterator[InternalRow]): Iterator[InternalRow] = {
    while (rows.hasNext)
      rows.next() match {
        case row: UnsafeRow => insert(row)
        case other => insert(unsafe(other))
      }
    val within = byNumber.sort()
    if (beyond > 0) merged(within, byKeys.sort()) else within
  }

  private def insert(row: UnsafeRow): Unit = {
    val value = number(row).getLong(0)
    if (value == PackedSortKey.Beyond) {
      beyond += 1
      byKeys.insertRow(row)
    } else {
      packs.set(value)
      byNumber.insertRow(row)
    }
  }

  /** A row of one is never equal to one of the other by all keys. */
  private def merged(
      within: Iterator[InternalRow],
      others: Iterator[InternalRow]
  ): Iterator[InternalRow] = {
    val ordering = RowOrdering.create(order, columns)
    val (left, right) = (within.buffered, others.buffered)
    new Iterator[InternalRow] {
      override def hasNext: Boolean = left.hasNext || right.hasNext
      override def next(): InternalRow =
        if (!right.hasNext || (left.hasNext && ordering.lt(left.head, right.head))) left.next()
        else right.next()
    }
  }

  private def sorter(
      compared: Seq[SortOrder],
      prefix: PrefixComputer,
      radix: Boolean
  ): UnsafeExternalRowSorter = UnsafeExternalRowSorter.create(
    DataTypeUtils.fromAttributes(columns),
    RowOrdering.create(compared, columns),
    PrefixComparators.LONG,
    prefix,
    TaskMemory.of(TaskContext.get()).pageSizeBytes(),
    radix
  )
}

private object PackedSort {

  /** The number that was set, whatever the row is: the same for all until another one is set. */
  final class Number extends PrefixComputer {
    private val prefix = new PrefixComputer.Prefix

    def set(value: Long): Unit = prefix.value = value

    override def computePrefix(row: InternalRow): PrefixComputer.Prefix = prefix
  }
}
