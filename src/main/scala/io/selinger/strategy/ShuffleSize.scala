package io.selinger.strategy

import io.selinger.core.{LargestTable, Origin, Quantity}
import io.selinger.cost.Cluster
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.{LeafStatistics, TaskGroups}
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Expand, Generate, Join, LogicalPlan}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.window.WindowGroupLimitExec

/**
 * Bytes of rows, as a shuffle writes them before they are compressed.
 *
 * @param expected of the expected rows
 * @param most of the upper bound of the rows
 */
private[strategy] final case class ShuffleSize(expected: Double, most: Double, origin: Origin) {

  /** What to make room for: several times what is expected, but no more than there can be. */
  def withMargin: Double = math.max(expected, math.min(expected * ShuffleSize.margin, most))
}

private[strategy] object ShuffleSize {

  // Estimates of several joins are often wrong by more (Leis et al., How Good Are Query Optimizers,
  // Really?, VLDB 2015), and large partitions spill, while what small ones cost only shows where they are
  // tiny. Where it is wrong by more than that, partitions become larger than Spark's target.
  private val margin = 8.0

  // Rows in files are compressed. Set by hand: with the margin there is room for 32 times the bytes of files.
  private val rowBytesPerFileByte = 4.0

  /** None where nothing is known of the rows of a plan. */
  def of(plan: LogicalPlan): Option[ShuffleSize] =
    LeafStatistics.estimator.estimate(plan).map(of(_, plan.output))

  /** Of what a shuffle writes; none where nothing is known of its rows. */
  def of(exchange: ShuffleExchangeExec, cluster: Cluster): Option[ShuffleSize] =
    written(exchange.child, exchange.output, cluster)

  /**
   * Of a shuffle in a query of small tables, whose files are not worth a look. None above what may return
   * many more rows than it reads.
   */
  def ofSmallTables(plan: LogicalPlan): Option[ShuffleSize] =
    Option.unless(plan.exists(multiplies)) {
      val expected = LargestTable.sizes(plan).sum * rowBytesPerFileByte
      ShuffleSize(expected, Double.PositiveInfinity, Origin.Default)
    }

  private def multiplies(plan: LogicalPlan): Boolean = plan match {
    case _: Join | _: Generate | _: Expand => true
    case _ => false
  }

  private def of(rows: PlanEstimate, output: Seq[Attribute]): ShuffleSize = {
    val width = rows.rowBytes(output)
    ShuffleSize(rows.rows.value * width, rows.upperBound * width, rows.rows.origin)
  }

  private def written(
      plan: SparkPlan,
      output: Seq[Attribute],
      cluster: Cluster
  ): Option[ShuffleSize] = (plan, plan.logicalLink) match {
    // In each task it keeps the first rows of each partition: no fewer than all tasks together.
    case (limit: WindowGroupLimitExec, _) => written(limit.child, output, cluster)
    case (merging: BaseAggregateExec, Some(logical)) if isAfterShuffle(merging) =>
      estimated(logical, output)
    case (_, Some(aggregate: Aggregate)) => grouped(aggregate, output, cluster)
    case (_, Some(logical)) => estimated(logical, output)
    // Spark links what it adds, such as sorts, to no part of the query.
    case (_, None) =>
      plan.children match {
        case Seq(input) => written(input, output, cluster)
        case _ => None
      }
  }

  private def isAfterShuffle(aggregate: BaseAggregateExec): Boolean =
    aggregate.requiredChildDistributionExpressions.isDefined

  private def estimated(logical: LogicalPlan, output: Seq[Attribute]): Option[ShuffleSize] =
    LeafStatistics.estimator.estimate(logical).map(of(_, output))

  /** Of the groups that all tasks make of the rows that they read. */
  private def grouped(
      aggregate: Aggregate,
      output: Seq[Attribute],
      cluster: Cluster
  ): Option[ShuffleSize] =
    for {
      input <- LeafStatistics.estimator.estimate(aggregate.child)
      groups <- LeafStatistics.estimator.estimate(aggregate)
    } yield {
      val read = TaskGroups.of(aggregate.child, input, cluster.slots)
      // An aggregation of distinct values is first grouped by these as well.
      val made: Quantity =
        if (aggregate.aggregateExpressions.exists(_.exists(isDistinct))) input.rows
        else read.inAllTasks(groups.rows, aggregate.groupingExpressions)
      val width = groups.rowBytes(output)
      ShuffleSize(
        made.value * width,
        math.max(made.value, input.upperBound) * width,
        made.origin.worse(input.rows.origin)
      )
    }

  private def isDistinct(expression: Expression): Boolean = expression match {
    case function: AggregateExpression => function.isDistinct
    case _ => false
  }
}
