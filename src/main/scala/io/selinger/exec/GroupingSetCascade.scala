package io.selinger.exec

import java.util.ArrayDeque
import org.apache.spark.TaskContext
import org.apache.spark.memory.SparkOutOfMemoryError
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.execution.UnsafeFixedWidthAggregationMap
import org.apache.spark.sql.execution.metric.SQLMetric
import org.apache.spark.sql.types.{IntegerType, StructType}
import org.apache.spark.unsafe.KVIterator

/**
 * What one task of a [[GroupingSetCascadeExec]] does. Rows that it returns are valid until `hasNext`
 * or `next` is called.
 *
 * One step takes one row, from the input or from a table that is being emptied, and pushes it through
 * the grouping sets. A set returns at most one row in a step, in a buffer of its own.
 */
private[exec] final class GroupingSetCascade(
    input: Iterator[InternalRow],
    sets: Seq[GroupingSetCascade.Level],
    inputBuffers: Seq[Expression],
    bufferSchema: StructType,
    initialValues: Seq[Expression],
    merges: Seq[Expression],
    partition: Int,
    outputRows: SQLMetric,
    unmergedRows: SQLMetric
) extends Iterator[InternalRow] {
  import GroupingSetCascade._

  private val buffersOf = UnsafeProjection.create(inputBuffers)
  private val emptyBuffer = UnsafeProjection.create(initialValues)(InternalRow.empty).copy()
  private val merge = MutableProjection.create(merges)
  merge.initialize(partition)

  private val joined = new JoinedRow
  private val pageSize = pageBytes(sets.count(_.table.isDefined))

  /** A grouping set at work. */
  private final class Stage(level: Level) {
    private val keyOf = level.table.map(table => UnsafeProjection.create(table.key))
    private val result = UnsafeProjection.create(level.result)

    // Known when all sets are there.
    var dependents: Array[Stage] = Array.empty
    private var groups: Option[UnsafeFixedWidthAggregationMap] = None
    private var merging = true

    /** Takes a row: the key of this set's source, or a whole row of the input, with its buffers. */
    def push(source: InternalRow, buffer: UnsafeRow): Unit = keyOf match {
      case None => emit(source, buffer)
      case Some(projection) =>
        val key = projection(source)
        groupOf(key) match {
          case Some(group) => val _ = merge.target(group)(joined(group, buffer))
          case None =>
            unmergedRows += 1
            emit(key, buffer)
            groups.foreach(_ => empty())
        }
    }

    /** Returns a row, and hands it to the sets that are computed from this one. */
    def emit(key: InternalRow, buffer: UnsafeRow): Unit = {
      pending.add(result(joined(key, buffer)))
      dependents.foreach(_.push(key, buffer))
    }

    def hasGroups: Boolean = groups.isDefined

    /** Begins to empty the table. */
    def empty(): Unit = groups.foreach { full =>
      groups = None
      emptying.push(new Emptying(this, full, full.iterator()))
    }

    /** A table that got memory for a few groups only is not worth having. */
    def emptied(rows: Long): Unit = if (rows < leastGroups) merging = false

    private def groupOf(key: UnsafeRow): Option[UnsafeRow] =
      if (!merging) None
      else {
        if (groups.isEmpty) groups = newTable()
        groups.flatMap(table => Option(table.getAggregationBufferFromUnsafeRow(key)))
      }

    private def newTable(): Option[UnsafeFixedWidthAggregationMap] =
      level.table.flatMap { table =>
        try
          Some(
            new UnsafeFixedWidthAggregationMap(
              emptyBuffer,
              bufferSchema,
              table.schema,
              TaskContext.get(),
              initialCapacity,
              pageSize
            )
          )
        catch {
          case _: SparkOutOfMemoryError =>
            merging = false
            None
        }
      }
  }

  private final class Emptying(
      val stage: Stage,
      table: UnsafeFixedWidthAggregationMap,
      entries: KVIterator[UnsafeRow, UnsafeRow]
  ) {
    private var rows = 0L

    /** Emits one group; false if none is left, and then the memory is free. */
    def step(): Boolean =
      if (entries.next()) {
        rows += 1
        stage.emit(entries.getKey, entries.getValue)
        true
      } else {
        entries.close()
        table.free()
        stage.emptied(rows)
        false
      }
  }

  private val stages = sets.map(new Stage(_)).toArray
  private val first = dependentsOf(-1)
  stages.indices.foreach(set => stages(set).dependents = dependentsOf(set))

  // Sources first: nothing is pushed into a set that has been emptied at the end.
  private val sourcesFirst = first.flatMap(sourceFirst)

  private val pending = new ArrayDeque[UnsafeRow](stages.length)
  private val emptying = new ArrayDeque[Emptying]

  private def dependentsOf(source: Int): Array[Stage] =
    stages.indices.filter(sets(_).source == source).map(stages(_)).toArray

  private def sourceFirst(stage: Stage): Array[Stage] =
    stage +: stage.dependents.flatMap(sourceFirst)

  override def hasNext: Boolean = {
    while (pending.isEmpty && step()) ()
    !pending.isEmpty
  }

  override def next(): InternalRow = {
    if (!hasNext) throw new NoSuchElementException("no more grouping sets")
    outputRows += 1
    pending.poll()
  }

  /** False if there is nothing left to do. */
  private def step(): Boolean =
    if (!emptying.isEmpty) {
      // Emptying a table may have others emptied, which then come first.
      val top = emptying.peek()
      if (!top.step()) { val _ = emptying.pop() }
      true
    } else if (input.hasNext) {
      val row = input.next()
      val buffer = buffersOf(row)
      first.foreach(_.push(row, buffer))
      true
    } else {
      val left = sourcesFirst.find(_.hasGroups)
      left.foreach(_.empty())
      left.isDefined
    }
}

private[exec] object GroupingSetCascade {

  /**
   * A grouping set.
   *
   * @param source the set that it is computed from; -1: the input
   * @param table none where its keys are those of its source
   * @param result the output row, bound to its key and the buffers
   */
  final case class Level(source: Int, table: Option[Table], result: Seq[Expression])

  /** @param key bound to the key of the source, or to the input */
  final case class Table(key: Seq[Expression], schema: StructType)

  /** The key of a set without keys, as the key of a map has at least one column. */
  val noKeys: Seq[Expression] = Seq(Literal(0))
  val noKeyRow: Seq[Attribute] = Seq(AttributeReference("none", IntegerType, nullable = false)())

  // As Spark's hash aggregation begins.
  private val initialCapacity = 1024 * 16

  /** Smaller than Spark's usual 64 MiB, as there are several tables; a task can have 8192 pages. */
  private def pageBytes(tables: Int): Long = if (tables <= 16) 4L << 20 else 2L << 20

  // Bounds how often tables are made when there is no memory.
  private val leastGroups = 1000L
}
