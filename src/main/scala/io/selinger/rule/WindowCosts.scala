package io.selinger.rule

import io.selinger.core.{Evidence, Origin, Quantity}
import org.apache.spark.sql.catalyst.expressions.aggregate.{Average, Max, Min}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

/**
 * @param rows that reach the windows
 * @param block rows that would be aggregated
 * @param stock seconds that it takes to read the rows, and to read them again and group them
 * @param chosen the same to read them once, and for the windows
 */
private[rule] final case class ComparedCosts(
    rows: Quantity,
    block: Quantity,
    stock: Double,
    chosen: Double
) {
  def gain: Double = if (stock > 0.0) math.max(0.0, 1.0 - chosen / stock) else 0.0

  def evidence: Seq[Evidence] = Seq(
    Evidence("rows aggregated as written", block.value, "rows", block.origin),
    Evidence("rows of the windows", rows.value, "rows", rows.origin),
    Evidence("cost as written", stock, "s", Origin.Derived),
    Evidence("cost with windows", chosen, "s", Origin.Derived)
  )
}

/** @param costs none where they are not known */
private[rule] final case class ComparedWindow(
    window: AggregateWindow,
    costs: Option[ComparedCosts]
)

/** What windows over rows take, in comparison with an aggregation of the same rows. */
private[rule] final class WindowCosts(cost: GroupedInputCost) {

  def compared(found: RepeatedRows): ComparedWindow = {
    val alone = AggregateWindow(found, Nil)
    val window = if (mayRepeat(found.aggregate)) withOthers(alone) else alone
    val costs = for {
      rows <- cost.rowsOf(window.rows)
      block <- cost.rowsOf(found.aggregate.child)
      read <- cost.computed(window.rows)
      groups <- ofGroups(TidyPlan(found.aggregate), window.rows)
      reduced = window.reducedAggregate.flatMap(ofGroups(_, window.rows))
      windows <- cost.of(window.window)
      partitions <- cost.assumedRows(found.aggregate)
    } yield {
      // A partition is sorted by one task.
      val tasks = math.max(1.0, math.min(cost.slots.toDouble, partitions))
      val sorted = math.max(0.0, windows - read) * cost.slots / tasks
      ComparedCosts(
        rows,
        block,
        read + (groups +: reduced.toSeq).min,
        read + sorted + cost.stage
      )
    }
    ComparedWindow(window, costs)
  }

  /** To compute groups, and to join them with rows. */
  private def ofGroups(aggregate: LogicalPlan, rows: LogicalPlan): Option[Double] =
    for (groups <- cost.of(aggregate); joined <- cost.joined(aggregate, rows)) yield groups + joined

  /** With other relations below the windows, if these leave fewer rows. */
  private def withOthers(alone: AggregateWindow): AggregateWindow = {
    def rows(of: AggregateWindow) = cost.rowsOf(of.rows).fold(Double.MaxValue)(_.value)
    // One that keeps all rows may lead to another one that does not.
    def larger(window: AggregateWindow): AggregateWindow =
      window.found.others.filter(window.mayTake).map(window.taking).minByOption(rows) match {
        case Some(more) if rows(more) <= rows(window) => larger(more)
        case _ => window
      }
    val most = larger(alone)
    if (rows(most) < rows(alone)) most else alone
  }

  /** Whether the results stay if each row is repeated equally often. */
  private def mayRepeat(aggregate: Aggregate): Boolean =
    AggregateWindow.functionsOf(aggregate).forall(_.aggregateFunction match {
      case _: Min | _: Max | _: Average => true
      case _ => false
    })
}
