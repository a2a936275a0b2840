package io.selinger.rule

import io.selinger.core.{Evidence, Origin, Quantity}
import io.selinger.estimate.plans.LeafStatistics
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.internal.SQLConf

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
      rows <- estimated(push.path.input)
      groups <- estimated(push.below)
      joined <- all(push.path.joins.map(estimated))
      read <- estimated(aggregate.child)
    } yield {
      // An operator between the joins and the aggregate may copy rows, for grouping sets.
      val copies = math.max(0.0, read.value - joined.headOption.fold(0.0)(_.value))
      val above = rows.value + joined.map(_.value).sum + copies
      EagerSaving(
        rows,
        Quantity(inTasks(rows.value, groups.value, tasksOf(push.path.input, slots)), groups.origin),
        Quantity(above, Origin.worst((rows +: read +: joined).map(_.origin)))
      )
    }

  private def estimated(plan: LogicalPlan): Option[Quantity] =
    LeafStatistics.estimator.estimate(plan).map(_.rows)

  private def all(quantities: Seq[Option[Quantity]]): Option[Seq[Quantity]] =
    Option.when(quantities.forall(_.isDefined))(quantities.flatten)

  /** Tasks that read the input: all slots at least, and each file in parts of a limited size. */
  private def tasksOf(input: LogicalPlan, slots: Int): Double = {
    val bytes = input.collectLeaves().collect {
      case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
        files.location.sizeInBytes.toDouble
    }
    val most = SQLConf.get.filesMaxPartitionBytes.toDouble
    math.max(slots.toDouble, bytes.maxOption.fold(1.0)(_ / math.max(1.0, most)))
  }

  /** Each task meets a part of the groups: as many as balls find bins (Cardenas 1975). */
  private def inTasks(rows: Double, groups: Double, tasks: Double): Double = {
    val each = rows / tasks
    val met = groups * -math.expm1(-each / math.max(1.0, groups))
    math.max(groups, math.min(rows, tasks * met))
  }
}
