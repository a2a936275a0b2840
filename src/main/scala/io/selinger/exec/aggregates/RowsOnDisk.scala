package io.selinger.exec.aggregates

import io.selinger.exec.TaskMemory
import org.apache.spark.{SparkEnv, TaskContext}
import org.apache.spark.sql.catalyst.expressions.UnsafeRow
import org.apache.spark.util.collection.unsafe.sort.UnsafeSorterSpillWriter

/**
 * Rows in a temporary file of Spark's, which is deleted when the task ends.
 *
 * @param rows how many are going to be written
 */
private[aggregates] final class RowsOnDisk(rows: Int, fields: Int) {

  private val env = SparkEnv.get
  private val writer: UnsafeSorterSpillWriter = TaskMemory.spillWriter(env, rows)

  def add(row: UnsafeRow): Unit =
    writer.write(row.getBaseObject, row.getBaseOffset, row.getSizeInBytes, 0L)

  /** Ends writing. Rows are valid until the next one. */
  def read(): Iterator[UnsafeRow] = {
    writer.close()
    val file = writer.getFile
    TaskContext.get().addTaskCompletionListener[Unit] { _ =>
      val _ = file.delete()
    }
    val reader = writer.getReader(env.serializerManager)
    val row = new UnsafeRow(fields)
    new Iterator[UnsafeRow] {
      override def hasNext: Boolean = reader.hasNext
      override def next(): UnsafeRow = {
        reader.loadNext()
        row.pointTo(reader.getBaseObject, reader.getBaseOffset, reader.getRecordLength)
        row
      }
    }
  }

  def bytes: Long = writer.getFile.length()
}
