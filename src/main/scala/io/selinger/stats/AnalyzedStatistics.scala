package io.selinger.stats

import io.selinger.conf.SelingerConf
import io.selinger.core._
import io.selinger.stats.sketch.{CollectedRelation, ColumnSketcher, MergedColumn, SketchStore}
import java.io.IOException
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import scala.util.control.NonFatal

/**
 * Statistics that `selinger_analyze` has collected, of just the files that a scan reads: the rule
 * `useCollectedStatistics`. Rows and bounds stay the footers'. A file that has changed since is
 * like one that was never seen.
 */
object AnalyzedStatistics {

  private val info = SelingerConf.USE_COLLECTED_STATISTICS

  // Of wider tables only the columns that the query uses are looked up.
  private val mostColumns = 100

  /**
   * `footers` with what was collected; `footers` itself where the rule is off, where no place is
   * set, or where nothing is known.
   */
  def of(
      relation: FileRelation,
      footers: RelationStatistics,
      predicates: Seq[Expression]
  ): RelationStatistics =
    Guard.value(info, SelingerConf.switches, footers) {
      val location = SelingerConf.STATS_LOCATION.value
      if (location.isEmpty) footers else collected(location, relation, footers, predicates)
    }

  private def collected(
      location: String,
      relation: FileRelation,
      footers: RelationStatistics,
      predicates: Seq[Expression]
  ): RelationStatistics = {
    val start = System.nanoTime()
    val cache = SelingerConf.COLLECTED_CACHE_MAX_BYTES.value
    def since = (System.nanoTime() - start) / 1e6
    lazy val hadoop = relation.hadoop
    val store =
      try Right(SketchStore.collected(SketchStore.folder(location, relation.roots), hadoop, cache))
      catch {
        // An unknown file system or a place that must not be read is no reason to fail a query.
        case error: IOException => Left(error.toString)
        case NonFatal(error) => Left(error.toString)
      }
    store match {
      case Left(problem) =>
        record(relation, Reason.CollectedUnreadable, Nil, 0, since, Some(problem))
        footers
      case Right(found) =>
        val files =
          relation.files(relation.partitionFilters(predicates)).map(FileVersion.of(_)).toSeq
        val known = new CollectedRelation(found, files, hadoop, cache)
        val columns = wanted(relation, footers, predicates)
        val merged = columns.flatMap { column =>
          // What does not fit into the time is estimated from the rest.
          if (PlanningPass.current.usedMs > SelingerConf.PLANNING_BUDGET_MS.value.toDouble) None
          else known.column(FooterReader.columnName(column.name), column.dataType).map(column -> _)
        }
        val reason =
          if (merged.nonEmpty && merged.forall(_._2.whole)) Reason.CollectedUsed
          else if (merged.nonEmpty) Reason.CollectedPartly
          else if (columns.exists(c => known.knows(FooterReader.columnName(c.name))))
            Reason.CollectedStale
          else Reason.CollectedNone
        record(relation, reason, merged.map(_._2), files.size, since, None)
        if (merged.isEmpty) footers else refined(footers, merged, known)
    }
  }

  /** Columns of the files that the plan uses; all of them if they are few or nothing is known. */
  private def wanted(
      relation: FileRelation,
      footers: RelationStatistics,
      predicates: Seq[Expression]
  ): Seq[Attribute] = {
    val partitions = relation.partitionSchema.fieldNames.map(FooterReader.columnName).toSet
    val inFiles = relation.plan.output.filter { column =>
      val name = FooterReader.columnName(column.name)
      footers.columns.contains(name) && !partitions(name) &&
      ColumnSketcher.supports(column.dataType)
    }
    val used = UsedColumns.current ++ predicates.flatMap(_.references.map(_.exprId))
    val some = inFiles.filter(column => used(column.exprId))
    if (inFiles.size <= mostColumns && UsedColumns.current.isEmpty) inFiles else some
  }

  private def refined(
      footers: RelationStatistics,
      merged: Seq[(Attribute, MergedColumn)],
      known: CollectedRelation
  ): RelationStatistics = {
    val columns = merged.map { case (column, found) =>
      val name = FooterReader.columnName(column.name)
      name -> columnOf(column, footers, footers.columns(name), found)
    }
    val keys = merged.flatMap { case (column, found) =>
      found.distinct.map { values =>
        FooterReader.columnName(column.name) ->
          new KeySketch(ColumnSketcher.family(column.dataType), values, found.low, found.high)
      }
    }
    val whole = merged.forall { case (_, found) => found.whole && found.rows == footers.rows.value }
    footers.copy(
      columns = footers.columns ++ columns,
      // A part of the values says nothing of how many two columns share.
      keys = if (whole) keys.toMap else Map.empty,
      sample = Option.when(whole)(known)
    )
  }

  private def columnOf(
      column: Attribute,
      footers: RelationStatistics,
      before: ColumnStatistics,
      found: MergedColumn
  ): ColumnStatistics = {
    val nulls = before.nullFraction.orElse(found.nullFraction)
    val present = footers.rows.value * (1.0 - nulls.getOrElse(0.0))
    val ranged = before.copy(
      nullFraction = nulls,
      // A range of some files is none of the others.
      min = before.min.orElse(found.low.filter(_ => found.whole)),
      max = before.max.orElse(found.high.filter(_ => found.whole))
    )
    val distinct = found.distinctOf(present) match {
      case Some(seen) =>
        DistinctValues.of(column.dataType, present, ranged.copy(distinct = Some(seen)), Nil)
      case None => before.distinct
    }
    ranged.copy(
      distinct = distinct,
      averageBytes = found.averageBytes.orElse(before.averageBytes),
      frequent = found.frequentValues,
      quantiles = found.quantiles
    )
  }

  private def record(
      relation: FileRelation,
      reason: Reason,
      merged: Seq[MergedColumn],
      files: Int,
      ms: Double,
      problem: Option[String]
  ): Unit = {
    val evidence =
      if (merged.isEmpty) Nil
      else
        Seq(
          Evidence("columns", merged.size.toDouble, "columns", Origin.Exact),
          Evidence("collected", merged.map(_.files).min.toDouble, "files", Origin.Exact),
          Evidence("files", files.toDouble, "files", Origin.Exact)
        )
    PlanningPass.current.inform(
      relation.plan,
      Decision(
        rule = info.id,
        node = NodeText.shorten(s"Scan ${relation.name}"),
        key = NodeText.key(relation.plan),
        outcome = Outcome.Informed,
        reason = reason,
        evidence = evidence :+ Evidence("time", ms, "ms", Origin.Measured),
        detail = problem.map(NodeText.shorten(_)),
        setting =
          if (reason == Reason.CollectedUnreadable) Some(SelingerConf.STATS_LOCATION.key) else None
      )
    )
  }
}
