package io.selinger.core

import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.{SparkPlan, SparkStrategy}
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  LogicalRelation,
  PartitioningAwareFileIndex
}
import scala.util.control.NonFatal

/**
 * Bytes of the largest table that a query reads, as far as they can be seen without reading anything:
 * sizes of listed files, of rows in memory, and of what finished stages have returned. Infinite for
 * any other table: statistics in a catalog may be old, and sources would have to be asked. Where even the
 * largest table is small, planning takes longer than it can save, so the guard lets no rule run.
 *
 * What was large once stays large until the query is planned, also when its partitions have been pruned:
 * one query is planned by all rules or by none.
 */
object LargestTable extends PlanFact[java.lang.Double] {

  private val seen = new PassKey[java.lang.Double]("largest table seen", ofQuery = true)

  override private[selinger] def unknown: java.lang.Double = Double.PositiveInfinity

  override private[selinger] def compute(root: LogicalPlan): java.lang.Double = {
    val pass = PlanningPass.current
    val most = math.max(of(root), pass.get(seen).fold(0.0)(_.doubleValue))
    pass.put(seen, Double.box(most))
    Double.box(most)
  }

  /** Of all tables below `plan`, those of its subqueries included. */
  def of(plan: LogicalPlan): Double = sizes(plan).maxOption.getOrElse(0.0)

  /** Bytes of each table below `plan`, those of its subqueries included. */
  def sizes(plan: LogicalPlan): Seq[Double] =
    plan.collectWithSubqueries { case leaf: LeafNode => sizeOf(leaf) }

  private def sizeOf(leaf: LeafNode): Double = leaf match {
    case relation: LogicalRelation if !relation.isStreaming =>
      relation.relation match {
        case HadoopFsRelation(listed: PartitioningAwareFileIndex, _, _, _, _, _) =>
          // Spark asks for the size, too, and keeps it; what a catalog says may be old.
          if (relation.catalogTable.exists(_.stats.isDefined)) FileBytes.of(listed)
          else relation.stats.sizeInBytes.toDouble
        case _ => Double.PositiveInfinity
      }
    case _: LocalRelation | _: Range | _: OneRowRelation => leaf.stats.sizeInBytes.toDouble
    case cached: InMemoryRelation if cached.cacheBuilder.isCachedColumnBuffersLoaded =>
      cached.stats.sizeInBytes.toDouble
    // The tables that it has read, or what it has made of them.
    case stage: LogicalQueryStage =>
      math.max(of(stage.logicalPlan), returned(stage.physicalPlan))
    case _ => Double.PositiveInfinity
  }

  private def returned(plan: SparkPlan): Double =
    plan.collect { case stage: QueryStageExec => stage }
      .flatMap(_.computeStats())
      .map(_.sizeInBytes.toDouble)
      .maxOption
      .getOrElse(0.0)
}

/** Says of a query with small tables only that it is left to Spark; plans nothing. */
final class TellSmallTables(switches: Switches) extends SparkStrategy {

  override def apply(plan: LogicalPlan): Seq[SparkPlan] = {
    // Runs outside the guard; a query must not fail because of it.
    try
      plan match {
        // Leaves are shared with other queries, and have nothing to be decided.
        case ReturnAnswer(root) if root.children.nonEmpty && switches.mode != Mode.Off =>
          val largest = LargestTable.current.doubleValue
          if (Guard.isSmall(switches, largest)) Decision.record(root, decision(root, largest))
        case _ => ()
      }
    catch { case NonFatal(_) | _: LinkageError | _: StackOverflowError => () }
    Nil
  }

  private def decision(root: LogicalPlan, largest: Double): Decision = Decision(
    rule = "planning",
    node = NodeText.of(root),
    key = NodeText.key(root),
    outcome = Outcome.Declined,
    reason = Reason.SmallTables,
    evidence = Seq(
      Evidence("largest table", largest, "bytes", Origin.Derived),
      Evidence("limit", switches.smallTableBytes.toDouble, "bytes", Origin.Exact)
    ),
    setting = Some(switches.smallTableKey),
    settingTo = Some("0"),
    title = Some("The query")
  )
}
