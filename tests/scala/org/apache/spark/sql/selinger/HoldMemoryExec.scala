package org.apache.spark.sql.selinger

import org.apache.spark.TaskContext
import org.apache.spark.memory.{MemoryConsumer, MemoryMode}
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}

/** Takes the memory that its task can get, but for `left` bytes, when its input has its first row. */
final case class HoldMemoryExec(child: SparkPlan, left: Long) extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output

  override protected def doExecute(): RDD[InternalRow] = {
    val leave = left
    child.execute().mapPartitions { rows =>
      if (rows.hasNext) HoldMemoryExec.hold(leave)
      rows
    }
  }

  override protected def withNewChildInternal(newChild: SparkPlan): SparkPlan =
    copy(child = newChild)
}

object HoldMemoryExec {

  private def hold(left: Long): Unit = {
    val holder = new Holder(TaskContext.get())
    val step = 64L << 20
    while (holder.acquireMemory(step) == step) ()
    holder.freeMemory(math.min(left, holder.getUsed))
    TaskContext.get().addTaskCompletionListener[Unit](_ => holder.freeMemory(holder.getUsed))
    ()
  }

  private final class Holder(context: TaskContext)
      extends MemoryConsumer(context.taskMemoryManager(), MemoryMode.ON_HEAP) {
    override def spill(size: Long, trigger: MemoryConsumer): Long = 0L
  }
}
