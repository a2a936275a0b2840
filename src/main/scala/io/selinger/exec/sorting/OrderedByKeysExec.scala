package io.selinger.exec.sorting

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}

/**
 * Passes rows on that a sort by packed keys has put into the order of these keys, which Spark cannot see
 * from the packed ones.
 *
 * @param order that the rows have
 */
final case class OrderedByKeysExec(order: Seq[SortOrder], child: SparkPlan)
    extends UnaryExecNode
    with CodegenSupport {

  override def output: Seq[Attribute] = child.output
  override def outputOrdering: Seq[SortOrder] = order
  override def outputPartitioning: Partitioning = child.outputPartitioning

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override def inputRDDs(): Seq[RDD[InternalRow]] = child match {
    case generated: CodegenSupport => generated.inputRDDs()
    case other => Seq(other.execute())
  }

  override protected def doProduce(ctx: CodegenContext): String = child match {
    case generated: CodegenSupport => generated.produce(ctx, this)
    case other => throw new IllegalStateException(s"no generated code: ${other.nodeName}")
  }

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String =
    consume(ctx, input)

  override protected def withNewChildInternal(newChild: SparkPlan): OrderedByKeysExec =
    copy(child = newChild)
}
