package io.selinger.core

import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan, ReturnAnswer}
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation
import scala.util.control.NonFatal

/**
 * Bytes of the largest table that a query reads, by what Spark knows without reading anything: sizes
 * of files, of rows in memory, and of what finished stages have returned. Infinite where it does not know.
 * Where even the largest table is small, planning takes longer than it can save, so the guard lets no
 * rule run.
 */
object LargestTable extends PlanFact[java.lang.Double] {

  override private[selinger] def unknown: java.lang.Double = Double.PositiveInfinity

  override private[selinger] def compute(root: LogicalPlan): java.lang.Double = of(root)

  /** Of all tables below `plan`, those of its subqueries included. */
  def of(plan: LogicalPlan): Double = sizes(plan).maxOption.getOrElse(0.0)

  /** Bytes of each table below `plan`, those of its subqueries included. */
  def sizes(plan: LogicalPlan): Seq[Double] =
    plan.collectWithSubqueries { case leaf: LeafNode => sizeOf(leaf) }

  private def sizeOf(leaf: LeafNode): Double = leaf match {
    case _ if leaf.isStreaming => Double.PositiveInfinity
    case stage: LogicalQueryStage => returned(stage.physicalPlan).getOrElse(of(stage.logicalPlan))
    // Spark would ask the source for it.
    case _: DataSourceV2Relation => Double.PositiveInfinity
    case other => other.stats.sizeInBytes.toDouble
  }

  /** Of the stages that have run; what has not run yet is as large as what it reads. */
  private def returned(plan: SparkPlan): Option[Double] =
    plan.collect { case stage: QueryStageExec => stage }.flatMap(_.computeStats())
      .map(_.sizeInBytes.toDouble).maxOption
}

/** Says of a query with small tables only that it is left to Spark; plans nothing. */
final class TellSmallTables(switches: Switches) extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    plan match {
      // Leaves are shared with other queries, and have nothing to be decided.
      case ReturnAnswer(root) if root.children.nonEmpty && isLeftAlone =>
        Decision.record(
          root,
          Decision(
            rule = "planning",
            node = NodeText.of(root),
            key = NodeText.key(root),
            outcome = Outcome.Declined,
            reason = Reason.SmallTables,
            evidence = Seq(
              Evidence("largest table", LargestTable.current, "bytes", Origin.Derived),
              Evidence("limit", switches.smallTableBytes.toDouble, "bytes", Origin.Exact)
            ),
            setting = Some(switches.smallTableKey),
            settingTo = Some("0"),
            title = Some("The query")
          )
        )
      case _ => ()
    }
    Nil
  }

  // Runs outside the guard; a query must not fail because of it.
  private def isLeftAlone: Boolean =
    try switches.mode != Mode.Off && Guard.isSmall(switches, LargestTable.current)
    catch { case NonFatal(_) => false }
}
