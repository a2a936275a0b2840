package io.selinger.exec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.{
  CodegenContext,
  ExprCode,
  GenerateUnsafeProjection
}
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{CodegenSupport, SortPrefixUtils, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.metric.{SQLMetric, SQLMetrics}
import org.apache.spark.sql.types.{Decimal, DecimalType, DoubleType}

/**
 * Leaves out rows that cannot be among the first `limit` of their window partition, without sorting.
 * What is kept is more than those: an operator above sorts and counts it.
 *
 * It compares rows of one task by the sort prefix of the first column of the order, the number by which
 * Spark's sort compares rows first. Where its input is sorted as the window needs it, it does nothing.
 *
 * Memory: for each partition its key and at most `limit` numbers, taken from the memory of the task; it
 * goes on without where there is none (RankFilter), so it never spills.
 * Distribution and order are those of its child. Code generation: within the stage of its child.
 * Metrics: rows kept.
 *
 * @param partitionSpec the PARTITION BY of the window
 * @param orderSpec its ORDER BY, of at least one column
 * @param countsValues whether ranks count different values (`dense_rank`) instead of rows
 */
final case class RankFilterExec(
    partitionSpec: Seq[Expression],
    orderSpec: Seq[SortOrder],
    countsValues: Boolean,
    limit: Int,
    child: SparkPlan
) extends UnaryExecNode
    with CodegenSupport {

  override def output: Seq[Attribute] = child.output
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def nodeName: String = "RankFilter"

  override lazy val metrics: Map[String, SQLMetric] =
    Map("numOutputRows" -> SQLMetrics.createMetric(sparkContext, "number of output rows"))

  private def isSorted: Boolean = SortOrder.orderingSatisfies(
    child.outputOrdering,
    partitionSpec.map(SortOrder(_, Ascending)) ++ orderSpec
  )

  private def key: Seq[Expression] = BindReferences.bindReferences(
    if (partitionSpec.isEmpty) Seq(Literal(0)) else partitionSpec,
    child.output
  )

  private def prefix: SortPrefix =
    SortPrefix(BindReferences.bindReference(compared, child.output))

  /**
   * What rows are compared by. For the prefix of a decimal of more than 18 digits, Spark rounds the value
   * itself, which the rows that are kept still need; a double does not contradict its order either.
   */
  private def compared: SortOrder = orderSpec.head.child.dataType match {
    case wide: DecimalType if wide.precision > Decimal.MAX_LONG_DIGITS =>
      orderSpec.head.copy(child = Cast(orderSpec.head.child, DoubleType))
    case _ => orderSpec.head
  }

  /** The filter of the task that runs. Called by generated code. */
  def filterOfTask(): RankFilter =
    RankFilter.ofTask(limit, countsValues, SortPrefixUtils.getPrefixComparator(compared))

  override protected def doExecute(): RDD[InternalRow] =
    if (isSorted) child.execute()
    else {
      val (keys, number, counter) = (key, prefix, longMetric("numOutputRows"))
      child.execute().mapPartitionsWithIndex { (partition, rows) =>
        val (ranks, keyOf) = (filterOfTask(), UnsafeProjection.create(keys))
        keyOf.initialize(partition)
        val kept = rows.filter { row =>
          val value = number.eval(row)
          val keeps = ranks.keeps(
            keyOf(row),
            if (value == null) number.nullValue else value.asInstanceOf[Long]
          )
          if (keeps) counter += 1
          keeps
        }
        new Iterator[InternalRow] {
          override def hasNext: Boolean = kept.hasNext || {
            // A task may have further partitions to read.
            ranks.stop()
            false
          }
          override def next(): InternalRow = kept.next()
        }
      }
    }

  override def inputRDDs(): Seq[RDD[InternalRow]] = child.asInstanceOf[CodegenSupport].inputRDDs()

  // The variable of the filter in generated code; none where nothing is filtered.
  private var filterTerm: Option[String] = None

  override protected def doProduce(ctx: CodegenContext): String = {
    val rows = child.asInstanceOf[CodegenSupport].produce(ctx, this)
    // A task may have further partitions to read.
    rows + filterTerm.fold("")(filter => s"\n$filter.stop();")
  }

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String =
    if (isSorted) consume(ctx, input)
    else {
      val plan = ctx.addReferenceObj("rankFilterPlan", this)
      val filter = ctx.addMutableState(
        classOf[RankFilter].getName,
        "rankFilter",
        name => s"$name = $plan.filterOfTask();",
        forceInline = true
      )
      filterTerm = Some(filter)
      ctx.currentVars = input
      val inputs = evaluateRequiredVariables(child.output, input, references)
      val partition = GenerateUnsafeProjection.createCode(ctx, key)
      val number = prefix
      val value = number.genCode(ctx)
      s"""
         |$inputs
         |${partition.code}
         |${value.code}
         |if ($filter.keeps(${partition.value},
         |    ${value.isNull} ? ${number.nullValue}L : ${value.value})) {
         |  ${metricTerm(ctx, "numOutputRows")}.add(1);
         |  ${consume(ctx, input)}
         |}
       """.stripMargin
    }

  override protected def withNewChildInternal(newChild: SparkPlan): RankFilterExec =
    copy(child = newChild)
}
