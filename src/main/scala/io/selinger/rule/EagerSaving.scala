package io.selinger.rule

import io.selinger.core.{Evidence, Origin, Quantity}
import io.selinger.estimate.plans.{LeafStatistics, TaskGroups}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}

/**
 * What a partial aggregate below a join saves, counted in rows that operators read.
 *
 * @param rows of the input that is aggregated first
 * @param groups that all tasks together make of them
 * @param above rows that the joins and the aggregate above read today
 */
private[rule] final case class EagerSaving(rows: Quantity, groups: Quantity, above: Quantity) {

  /** Rows that are read with a partial aggregate, which reads its input once more. */
  private def after: Double =
    rows.value + groups.value / math.max(1.0, rows.value) * above.value

  def saved: Double = above.value - after

  /** The share of today's rows that is saved. */
  def gain: Double = saved / math.max(1.0, above.value)

  def evidence: Seq[Evidence] = Seq(
    Evidence("join input", rows.value, "rows", rows.origin),
    Evidence("grouped before", groups.value, "rows", groups.origin),
    Evidence("read as written", above.value, "rows", above.origin),
    Evidence(
      "read when grouped first",
      after,
      "rows",
      Origin.worst(Seq(rows, groups, above).map(_.origin))
    )
  )
}

private[rule] object EagerSaving {

  /** @param slots tasks that run at a time */
  def of(aggregate: Aggregate, push: AggregatePush, slots: Int): Option[EagerSaving] =
    for {
      input <- LeafStatistics.estimator.estimate(push.path.input)
      groups <- estimated(push.below)
      joined <- all(push.path.joins.map(estimated))
      read <- estimated(aggregate.child)
    } yield {
      // An operator between the joins and the aggregate may copy rows, for grouping sets.
      val copies = math.max(0.0, read.value - joined.headOption.fold(0.0)(_.value))
      val rows = input.rows
      val above = rows.value + joined.map(_.value).sum + copies
      EagerSaving(
        rows,
        TaskGroups.of(push.path.input, input, slots).inAllTasks(groups, push.keys),
        Quantity(above, Origin.worst((rows +: read +: joined).map(_.origin)))
      )
    }

  private def estimated(plan: LogicalPlan): Option[Quantity] =
    LeafStatistics.estimator.estimate(plan).map(_.rows)

  private def all(quantities: Seq[Option[Quantity]]): Option[Seq[Quantity]] =
    Option.when(quantities.forall(_.isDefined))(quantities.flatten)
}
