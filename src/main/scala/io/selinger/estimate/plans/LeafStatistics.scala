package io.selinger.estimate.plans

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.stats.{ColumnStatistics, NumericAxis, Quantiles, RelationStatistics}
import io.selinger.stats.files.FooterReader
import io.selinger.stats.imported.UseImportedStatistics
import io.selinger.stats.relations.{FileRelation, QueryStages}
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId, Expression}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.LogicalRelation
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation

/**
 * What is known of a plan's leaves, best source first: imported statistics, which count instead of
 * all others; rows that exist already (local relations, ranges, finished query stages, loaded
 * caches), file footers with a sample of the rows, and what Spark's own statistics hold.
 */
object LeafStatistics {

  /** The estimator over these leaves. */
  val estimator: CardinalityEstimator = new CardinalityEstimator(estimate, unfinished)

  /**
   * These plans in the order in which to estimate them: all share the time that there is for samples,
   * and large files, asked first, would leave none of it to small ones, which need little.
   */
  def smallestFirst(plans: Seq[LogicalPlan]): Seq[LogicalPlan] =
    plans.sortBy(_.collectLeaves().collect { case FileRelation(relation) => relation.bytes }.sum)

  def estimate(
      leaf: LeafNode,
      predicates: Seq[Expression]
  ): Option[(PlanEstimate, Seq[Expression])] = {
    val known = UseImportedStatistics.forLeaf(leaf) match {
      // There are no rows to try predicates on: formulas estimate them all.
      case Some(imported) => Some((relationEstimate(leaf, imported), Nil))
      case None => ofData(leaf, predicates)
    }
    known.map { case (estimate, applied) => (DistortedEstimate.distort(leaf, estimate), applied) }
  }

  private def ofData(
      leaf: LeafNode,
      predicates: Seq[Expression]
  ): Option[(PlanEstimate, Seq[Expression])] =
    leaf match {
      case local: LocalRelation =>
        Some((PlanEstimate.exactly(local.data.size.toDouble, Origin.Exact), Nil))
      case range: Range =>
        val rows = range.numElements.toDouble
        val ids = range.output.map(_.exprId -> rangeColumn(range, rows))
        Some((PlanEstimate.exactly(rows, Origin.Exact, ids.toMap), Nil))
      case _: OneRowRelation => Some((PlanEstimate.exactly(1, Origin.Exact), Nil))
      case stage: LogicalQueryStage => stageEstimate(stage).map((_, Nil))
      case cached: InMemoryRelation => cacheEstimate(cached).map((_, Nil))
      case FileRelation(relation) => fileEstimate(leaf, relation, predicates)
      case other => sparkEstimate(other).map((_, Nil))
    }

  private def rangeColumn(range: Range, rows: Double): ColumnStatistics = {
    val last = range.start.toDouble + range.step.toDouble * math.max(0.0, rows - 1)
    ColumnStatistics(
      nullFraction = Some(0.0),
      min = Some(math.min(range.start.toDouble, last)),
      max = Some(math.max(range.start.toDouble, last)),
      distinct = Some(rows)
    )
  }

  /** A finished stage has been counted; its columns are those of the plan that it ran. */
  private def stageEstimate(stage: LogicalQueryStage): Option[PlanEstimate] = {
    val planned = estimator.estimate(stage.logicalPlan)
    QueryStages.measured(stage).map { measured =>
      val known = planned.map(_.columns).getOrElse(Map.empty[ExprId, ColumnStatistics])
      // An estimate knows more columns than a plan returns.
      val columns = known.filter(column => stage.output.exists(_.exprId == column._1))
      PlanEstimate
        .exactly(measured.rows, Origin.Measured, columns)
        .copy(measuredRowBytes = measured.rowBytes)
    }
  }

  /** A stage that runs, or whose operators have run in part, is known as the plan that it runs. */
  private def unfinished(leaf: LeafNode): Option[PlanEstimate] = leaf match {
    case stage: LogicalQueryStage if QueryStages.measured(stage).isEmpty =>
      val planned = estimator.estimate(stage.logicalPlan)
      QueryStages.atMost(stage).fold(planned)(most => Some(within(planned, most)))
    case _ => None
  }

  /** What was planned for operators whose input has been counted meanwhile. */
  private def within(planned: Option[PlanEstimate], most: Double): PlanEstimate = planned match {
    case Some(estimate) =>
      estimate.withRows(
        estimate.rows.copy(value = math.min(estimate.rows.value, most)),
        math.min(estimate.upperBound, most),
        Some(math.min(estimate.bound.getOrElse(most), most))
      )
    case None => PlanEstimate(Quantity(most, Origin.Derived), most, Some(most))
  }

  private def cacheEstimate(cached: InMemoryRelation): Option[PlanEstimate] =
    cached.stats.rowCount.map { rows =>
      val origin =
        if (cached.cacheBuilder.isCachedColumnBuffersLoaded) Origin.Measured else Origin.Derived
      val estimate = PlanEstimate.exactly(rows.toDouble, origin)
      if (origin == Origin.Measured) estimate else estimate.copy(bound = None)
    }

  private def fileEstimate(
      leaf: LeafNode,
      relation: FileRelation,
      predicates: Seq[Expression]
  ): Option[(PlanEstimate, Seq[Expression])] =
    FileFacts.of(relation, predicates, predicates) match {
      case Some(FileFacts(statistics, sampled)) =>
        val estimate = withKeys(leaf.output, statistics)(relationEstimate(leaf, statistics))
        val partitions = relation.partitionFilters(predicates)
        sampled match {
          case Some(sample) =>
            Some((
              SampledEstimate.refine(estimate, sample, leaf.output),
              partitions ++ sample.applied
            ))
          case None => Some((estimate, partitions))
        }
      case None => sparkEstimate(leaf).map((_, Nil))
    }

  private def withKeys(output: Seq[Attribute], statistics: RelationStatistics)(
      estimate: PlanEstimate
  ): PlanEstimate =
    if (statistics.keys.isEmpty) estimate
    else {
      val keys = output
        .flatMap(c => statistics.keys.get(FooterReader.columnName(c.name)).map(c.exprId -> _))
        .toMap
      estimate.copy(domains = estimate.domains.map { case (id, domain) =>
        id -> domain.copy(keys = keys.get(id))
      })
    }

  /** A relation before any predicate. */
  private def relationEstimate(leaf: LeafNode, statistics: RelationStatistics): PlanEstimate =
    PlanEstimate(
      statistics.rows,
      statistics.bound.getOrElse(statistics.rows.value * 2),
      statistics.bound,
      columnsOf(leaf.output, statistics),
      nullsCounted = statistics.bound.isDefined
    ).asRelation(leaf.output)

  private def columnsOf(
      output: Seq[Attribute],
      statistics: RelationStatistics
  ): Map[ExprId, ColumnStatistics] =
    output.flatMap { column =>
      statistics.columns.get(FooterReader.columnName(column.name)).map(column.exprId -> _)
    }.toMap

  /** Spark's own statistics: ANALYZE's, or a source's. A size in bytes alone tells too little. */
  private def sparkEstimate(leaf: LeafNode): Option[PlanEstimate] = {
    // Spark itself uses what ANALYZE has counted only if its own cost-based optimizer is on.
    val analyzed = leaf match {
      case LogicalRelation(_, output, Some(table), _, _) =>
        table.stats.map(_.toPlanStats(output, planStatsEnabled = true))
      case _ => None
    }
    val reported = leaf match {
      // Before pushdown it would answer for the whole table, by a request of its own.
      case _: DataSourceV2Relation => None
      case other => Some(other.stats)
    }
    for (statistics <- analyzed.orElse(reported); count <- statistics.rowCount) yield {
      val columns = statistics.attributeStats.map { case (column, known) =>
        val rows = math.max(1.0, count.toDouble)
        column.exprId -> ColumnStatistics(
          nullFraction = known.nullCount.map(_.toDouble / rows),
          min = known.min.flatMap(NumericAxis.place(_, column.dataType)),
          max = known.max.flatMap(NumericAxis.place(_, column.dataType)),
          distinct = known.distinctCount.map(_.toDouble),
          averageBytes = known.avgLen.map(_.toDouble),
          quantiles = known.histogram.flatMap(Quantiles.fromHistogram)
        )
      }
      PlanEstimate(
        Quantity(count.toDouble, Origin.Derived),
        count.toDouble * 2,
        None,
        columns.toMap
      )
    }
  }
}
