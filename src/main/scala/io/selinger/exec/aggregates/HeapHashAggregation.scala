package io.selinger.exec.aggregates

import io.selinger.exec.TaskMemory
import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.types.DataTypeUtils
import org.apache.spark.sql.execution.UnsafeKVExternalSorter
import org.apache.spark.sql.execution.aggregate.AggregationIterator
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.StructType

/**
 * What one task of a [[HeapHashAggregateExec]] does. Rows that it returns are valid until `hasNext`
 * or `next` is called.
 *
 * @param inputAttributes columns that update or merge buffers read
 * @param input not empty; its rows may be valid only until the next one
 * @param perTask whether a group may be returned several times, because an aggregation above merges
 *   them
 * @param isSorted whether rows of equal keys follow each other
 * @param stopRatio groups for each row from which on grouping is left to the aggregation above
 * @param testedRows after so many rows it is looked at that ratio
 */
private[aggregates] final class HeapHashAggregation(
    partition: Int,
    groupingExpressions: Seq[NamedExpression],
    inputAttributes: Seq[Attribute],
    aggregateExpressions: Seq[AggregateExpression],
    aggregateAttributes: Seq[Attribute],
    initialInputBufferOffset: Int,
    resultExpressions: Seq[NamedExpression],
    input: Iterator[InternalRow],
    perTask: Boolean,
    isSorted: Boolean,
    stopRatio: Double,
    testedRows: Long,
    metrics: HeapHashAggregation.Metrics
) extends AggregationIterator(
      partition,
      groupingExpressions,
      inputAttributes,
      aggregateExpressions,
      aggregateAttributes,
      initialInputBufferOffset,
      resultExpressions,
      UpdateProjection.create(_, _)
    ) {
  import HeapHashAggregation._

  private val context = TaskContext.get()
  private val manager = TaskMemory.of(context)

  private val bufferFields = aggregateFunctions.toSeq.flatMap(_.aggBufferAttributes)
  private val bufferTypes = bufferFields.map(_.dataType)
  private val serialized = aggregateFunctions.collect { case typed: TypedImperativeAggregate[_] =>
    typed
  }

  // Flags of buffers that no row changes any more once they are all set.
  private val settledFlags: Array[Int] = settledBy
  private val canSettle = settledFlags.nonEmpty

  private val single = new SpecificInternalRow(bufferTypes)

  // What operators above need when they are given the first row.
  private val reserve = new Reserve

  // The row at hand, and whether it still has to be grouped, for lack of memory when it came.
  private var current: InternalRow = _
  private var isWaiting = false

  // Rows that have been read and not yet been grouped: those of a batch, and one too large for it.
  private val batch = new RowBatch(inputAttributes.size, groupingExpressions.size)
  private var tooLarge: InternalRow = _
  private var isOfBatch = false

  private var state: State = if (isSorted) Finished else Collecting
  private var output: Iterator[UnsafeRow] = if (isSorted) inOrder() else Iterator.empty

  // Rows of the table that was filled last.
  private var rowsGrouped = 0L

  // Held while it is filled or drained.
  private var table: Option[GroupTable] = None
  private var sorter: Option[UnsafeKVExternalSorter] = None

  context.addTaskCompletionListener[Unit] { _ =>
    table.foreach(_.free())
    sorter.foreach(_.cleanupResources())
    reserve.release()
  }

  override def hasNext: Boolean = {
    while (!output.hasNext && state != Finished) advance()
    output.hasNext
  }

  override def next(): UnsafeRow = {
    if (!hasNext) throw new NoSuchElementException("no more groups")
    metrics.outputRows += 1
    output.next()
  }

  /** Reads on, until there is something to return or the state is another one. */
  private def advance(): Unit = state match {
    case Collecting => collect()
    case Passing => pass()
    case Sorting =>
      while (nextRow()) store(groupingProjection(current), ofOneRow(current))
      merge()
    case Finished =>
  }

  private def collect(): Unit = {
    val groups = newTable()
    table = Some(groups)
    val started = System.nanoTime()
    val ended = !fill(groups)
    rowsGrouped = groups.rowsSeen
    metrics.buildTime += (System.nanoTime() - started) / 1000000
    metrics.peakMemory.set(math.max(metrics.peakMemory.value, groups.usedBytes))
    // Tables of a few groups cost more than they save, where rows can be passed on instead.
    val isWorthwhile = groups.size >= (if (perTask && !canPass) 1 else leastGroups)
    if (perTask) {
      state =
        if (ended) Finished
        else if (isWorthwhile && !isUseless(groups)) Collecting
        else Passing
      output = rowsOf(groups)
    } else if (ended && sorter.isEmpty) {
      state = Finished
      output = rowsOf(groups)
    } else {
      spill(groups)
      if (ended) merge() else if (!isWorthwhile) state = Sorting
    }
  }

  /** Whether there are hardly fewer groups than rows. */
  private def isUseless(groups: GroupTable): Boolean =
    canPass && groups.size > groups.rowsSeen * stopRatio

  /** Moves to the next row of the input; false if there is none. */
  private def nextRow(): Boolean =
    if (isWaiting) {
      isWaiting = false
      true
    } else if (batch.next()) {
      current = batch.row
      isOfBatch = true
      true
    } else {
      isOfBatch = false
      if (tooLarge != null) {
        current = tooLarge
        tooLarge = null
        true
      } else if (input.hasNext) {
        current = input.next()
        true
      } else false
    }

  private def hasMoreRows: Boolean =
    isWaiting || batch.hasNext || tooLarge != null || input.hasNext

  /** As `nextRow`, for a table that may gain if it knows some rows before they are grouped. */
  private def nextRowOf(groups: GroupTable): Boolean = {
    if (groups.isLarge && !isWaiting && !batch.hasNext && tooLarge == null) {
      batch.clear()
      while (tooLarge == null && !batch.isFull && !groups.isFull && input.hasNext) {
        val row = input.next() match {
          case bytes: UnsafeRow => bytes
          case other => asBytes(other)
        }
        if (!batch.add(row, groupingProjection(row))) tooLarge = row
      }
      groups.readAhead(batch.hashes, batch.size, if (canSettle) 0 else mostObjectsRead)
    }
    nextRow()
  }

  private lazy val asBytes = UnsafeProjection.create(inputAttributes, inputAttributes)

  /** The buffer of the group of the row at hand. Null if there is no memory for it. */
  private def bufferIn(groups: GroupTable): InternalRow =
    if (isOfBatch) groups.bufferOf(batch.key, batch.hash)
    else {
      val key = groupingProjection(current)
      groups.bufferOf(key, key.hashCode())
    }

  /** Groups rows. False when there are no more of them; true if it is better to stop before. */
  private def fill(groups: GroupTable): Boolean = {
    var stopped = false
    while (!stopped && nextRowOf(groups)) {
      val buffer = bufferIn(groups)
      if (buffer == null) {
        isWaiting = true
        stopped = true
      } else {
        if (!canSettle || !isSettled(buffer)) processRow(buffer, current)
        stopped = perTask && groups.rowsSeen == testedRows && isUseless(groups)
      }
    }
    stopped
  }

  private def isSettled(buffer: InternalRow): Boolean = {
    var flag = 0
    while (flag < settledFlags.length && buffer.getBoolean(settledFlags(flag))) flag += 1
    flag == settledFlags.length
  }

  private def newTable(): GroupTable = {
    if (sorter.isEmpty) reserve.take()
    new GroupTable(
      manager,
      new GroupKeys(groupingExpressions.size, keyBytes),
      new GroupBuffers(bufferTypes.toArray),
      initializeBuffer
    )
  }

  /** The size of a key, if it is that of all keys. */
  private def keyBytes: Option[Int] =
    Option.when(groupingExpressions.forall(key => UnsafeRow.isFixedLength(key.dataType))) {
      UnsafeRow.calculateBitSetWidthInBytes(groupingExpressions.size) +
        8 * groupingExpressions.size
    }

  private def newBuffer(): InternalRow = {
    val buffer = new SpecificInternalRow(bufferTypes)
    initializeBuffer(buffer)
    buffer
  }

  /** Returns the groups; those that are left when another operator needs memory, from a file. */
  private def rowsOf(groups: GroupTable): Iterator[UnsafeRow] = {
    reserve.release()
    new Iterator[UnsafeRow] {
      private val left = groups.drain(() => write())
      private var more = left.next()
      private var written: Option[Iterator[UnsafeRow]] = None

      override def hasNext: Boolean = written.fold(more)(_.hasNext)

      override def next(): UnsafeRow = written match {
        case Some(rows) => rows.next()
        case None =>
          val row = generateOutput(left.key, left.buffer)
          more = left.next()
          row
      }

      private def write(): Unit = if (more) {
        // The row that was returned last is still in use.
        val output = generateResultProjection()
        val file = new RowsOnDisk(left.left + 1, resultExpressions.size)
        while (more) {
          file.add(output(left.key, left.buffer))
          more = left.next()
        }
        written = Some(file.read())
        metrics.spilledBytes += file.bytes
      }
    }
  }

  /** Groups rows that follow each other. */
  private def inOrder(): Iterator[UnsafeRow] = new Iterator[UnsafeRow] {
    private var more = nextRow()
    override def hasNext: Boolean = more
    override def next(): UnsafeRow = {
      val key = groupingProjection(current).copy()
      clearSingle()
      while (more && groupingProjection(current) == key) {
        processRow(single, current)
        more = nextRow()
      }
      generateOutput(key, single)
    }
  }

  /**
   * Whether the partial result of one row is about as small as the row. Sketches and bitmaps are as large
   * for one row as for a million.
   */
  private lazy val canPass: Boolean = aggregateFunctions.forall {
    case _: DeclarativeAggregate | _: Collect[_] => true
    case _ => false
  }

  /** Returns the next rows of the input as groups of one row each; then grouping begins again. */
  private def pass(): Unit =
    output = new Iterator[UnsafeRow] {
      private var left =
        if (canPass) math.max(HeapHashAggregateExec.leastTestedRows, rowsGrouped) * passedForGrouped
        else leastGroups.toLong
      override def hasNext: Boolean =
        if (!hasMoreRows) {
          state = Finished
          false
        } else {
          if (left == 0) state = Collecting
          left > 0
        }
      override def next(): UnsafeRow = {
        val _ = nextRow()
        left -= 1
        metrics.passedRows += 1
        passed(current)
      }
    }

  /** A row of the input as the partial result of a group that has only this row. */
  private lazy val passed: InternalRow => UnsafeRow = {
    val declarative = aggregateFunctions.collect { case known: DeclarativeAggregate => known }
    if (declarative.length == aggregateFunctions.length) {
      val initial = AttributeMap(
        bufferFields.zip(declarative.flatMap(_.initialValues)).map { case (field, value) =>
          (field: Attribute) -> value
        }
      )
      val buffers = declarative.zip(aggregateExpressions).flatMap { case (function, aggregate) =>
        if (aggregate.mode != Partial) function.mergeExpressions
        else
          function.updateExpressions.zip(function.aggBufferAttributes).map { case (value, before) =>
            aggregate.filter.fold(value)(If(_, value, before))
          }
      }
      val values = buffers.map(_.transform { case field: Attribute =>
        initial.getOrElse(field, field)
      })
      val projection = UnsafeProjection.create(groupingExpressions ++ values, inputAttributes)
      projection.initialize(partition)
      projection(_)
    } else row => generateOutput(groupingProjection(row), ofOneRow(row))
  }

  private def clearSingle(): Unit = {
    // Not every function sets all of its fields.
    bufferTypes.indices.foreach(single.setNullAt)
    initializeBuffer(single)
  }

  private def ofOneRow(row: InternalRow): InternalRow = {
    clearSingle()
    processRow(single, row)
    single
  }

  // ---- Without memory for all groups: sorted runs of groups, merged at the end. ----

  private lazy val bufferSchema: StructType = DataTypeUtils.fromAttributes(bufferFields)

  private lazy val bufferBytes = UnsafeProjection.create(bufferSchema)

  private lazy val mergeBuffers: (InternalRow, InternalRow) => Unit = {
    val merging = aggregateExpressions.map { aggregate =>
      aggregate.mode match {
        case Partial => aggregate.copy(mode = PartialMerge)
        case Complete => aggregate.copy(mode = Final)
        case _ => aggregate
      }
    }
    val functions = initializeAggregateFunctions(merging, 0).toSeq
    generateProcessRow(merging, functions, functions.flatMap(_.inputAggBufferAttributes))
  }

  private def sorterOfTask: UnsafeKVExternalSorter = sorter.getOrElse {
    val env = SparkEnv.get
    val made = new UnsafeKVExternalSorter(
      DataTypeUtils.fromAttributes(groupingAttributes),
      bufferSchema,
      env.blockManager,
      env.serializerManager,
      manager.pageSizeBytes(),
      env.conf.getInt("spark.shuffle.spill.numElementsForceSpillThreshold", Int.MaxValue),
      Long.MaxValue
    )
    metrics.sortingTasks += 1
    sorter = Some(made)
    made
  }

  private def spill(groups: GroupTable): Unit = {
    reserve.release()
    val left = groups.drain(() => ())
    // What leaves the table is smaller in the sorter, which may have to begin with less than the table had.
    groups.giveBack()
    while (left.next()) store(left.key, left.buffer)
  }

  private def store(key: UnsafeRow, buffer: InternalRow): Unit = {
    serialized.foreach(_.serializeAggregateBufferInPlace(buffer))
    sorterOfTask.insertKV(key, bufferBytes(buffer))
  }

  /** Everything has been read; groups are returned in the order of their keys. */
  private def merge(): Unit = {
    state = Finished
    val sorted = sorterOfTask.sortedIterator()
    metrics.spilledBytes += sorterOfTask.getSpillSize
    output = new Iterator[UnsafeRow] {
      private var more = sorted.next()
      override def hasNext: Boolean = more
      override def next(): UnsafeRow = {
        val key = sorted.getKey.copy()
        val buffer = newBuffer()
        while (more && sorted.getKey == key) {
          mergeBuffers(buffer, sorted.getValue)
          more = sorted.next()
        }
        generateOutput(key, buffer)
      }
    }
  }

  /**
   * The flags of `first`, which a group has set once it has found its value, if there is no function
   * but `first`, and reading a row has no effect but that. Empty where any row may count.
   */
  private def settledBy: Array[Int] = {
    val starts = aggregateFunctions.scanLeft(0)(_ + _.aggBufferAttributes.size)
    val flags = aggregateExpressions.zip(starts).map {
      case (AggregateExpression(first: First, mode, _, filter, _), start) =>
        val reads = mode == Partial || mode == Complete
        val isPlain = filter.isEmpty && first.child.isInstanceOf[Attribute]
        Option.when(!reads || isPlain)(start + 1)
      case _ => None
    }
    if (flags.forall(_.isDefined)) flags.flatten.toArray else Array.empty
  }

  /** A page of the task's memory that is kept while groups are collected, and then given back. */
  private final class Reserve extends MemoryConsumer(manager, MemoryMode.ON_HEAP) {
    def take(): Unit = {
      val wanted = manager.pageSizeBytes() - getUsed
      if (wanted > 0) { val _ = acquireMemory(wanted) }
      // Where there is less than a page, the table is to have it.
      if (getUsed < manager.pageSizeBytes()) release()
    }
    def release(): Unit = if (getUsed > 0) freeMemory(getUsed)
    override def spill(size: Long, trigger: MemoryConsumer): Long = trigger match {
      case _: GroupTable.OfTable => 0L
      case same if same eq this => 0L
      case _ =>
        val page = getUsed
        release()
        page
    }
  }
}

private[aggregates] object HeapHashAggregation {

  /** What a task does when all groups that it has collected have been returned. */
  private sealed trait State
  private case object Collecting extends State
  private case object Passing extends State
  private case object Sorting extends State
  private case object Finished extends State

  final case class Metrics(
      outputRows: SQLMetric,
      passedRows: SQLMetric,
      buildTime: SQLMetric,
      peakMemory: SQLMetric,
      spilledBytes: SQLMetric,
      sortingTasks: SQLMetric
  )

  /** Rows that are passed on for each that was grouped to see whether it helps. */
  private val passedForGrouped = 10L

  // Of wide groups, reading all objects ahead would take more room than the cache has.
  private val mostObjectsRead = 4

  // Bounds how often tables are made when there is no memory.
  private val leastGroups = 1000
}
