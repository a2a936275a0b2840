package io.selinger.estimate

import io.selinger.core.{Origin, Quantity}
import io.selinger.stats._
import org.apache.spark.sql.catalyst.expressions.ExprId

/**
 * A leaf's rows and columns after those predicates that were evaluated on a sample of it. Bounds
 * stay as they are: a sample proves nothing. What is feared sinks to a share that is exceeded once
 * in a thousand times, see [[SampledShare.upper]].
 */
object SampledEstimate {

  // The summary of fewer rows says less of a column than the formulas do.
  private val leastRows = 100

  def of(input: PlanEstimate, sample: SampledRelation): PlanEstimate =
    if (sample.applied.isEmpty) input.copy(columns = refined(input, sample))
    else {
      val formulas = Selectivity.filter(input, sample.applied)
      val prior = formulas.rows.value / math.max(1.0, input.rows.value)
      val (share, feared) =
        if (sample.complete) {
          val counted = sample.matched.toDouble / math.max(1, sample.rows)
          (counted, counted)
        } else
          (
            SampledShare.expected(sample.matched, sample.rows, prior),
            SampledShare.upper(sample.groups, sample.covered, sample.alike)
          )
      val rows = math.max(1.0, input.rows.value * share)
      formulas
        .copy(columns = filtered(input, formulas, sample, rows))
        .withRows(
          Quantity(rows, input.rows.origin.worse(Origin.Sampled)),
          input.high * feared,
          input.bound
        )
    }

  /** Columns of all rows: what no other source knows comes from the sample. */
  private def refined(
      input: PlanEstimate,
      sample: SampledRelation
  ): Map[ExprId, ColumnStatistics] =
    sample.columns.foldLeft(input.columns) { case (columns, (id, summary)) =>
      val known = columns.getOrElse(id, ColumnStatistics())
      if (summary.rows < leastRows && !sample.complete) columns
      else columns.updated(id, merged(known, summary, input.rows.value))
    }

  /** Columns of the rows that are left. */
  private def filtered(
      input: PlanEstimate,
      formulas: PlanEstimate,
      sample: SampledRelation,
      rows: Double
  ): Map[ExprId, ColumnStatistics] = formulas.columns.map { case (id, column) =>
    val before = input.columns.get(id).flatMap(_.distinct)
    id -> (sample.columns.get(id) match {
      case Some(summary) if summary.rows >= leastRows || sample.complete =>
        merged(column.copy(distinct = before), summary, rows)
          .copy(nullFraction = Some(summary.nullFraction))
      // These predicates narrow it as the formulas say.
      case Some(_) => column
      case None =>
        column.copy(distinct =
          before.map(Selectivity.survivors(_, math.max(1.0, input.rows.value), rows))
        )
    })
  }

  /** Counts of values are at most those known from elsewhere; what was counted exactly stays. */
  private def merged(
      known: ColumnStatistics,
      summary: ColumnSummary,
      rows: Double
  ): ColumnStatistics = {
    val seen = summary.distinctOf(rows)
    known.copy(
      nullFraction = known.nullFraction.orElse(Some(summary.nullFraction)),
      distinct = Some(math.max(1.0, known.distinct.fold(seen)(math.min(_, seen)))),
      averageBytes = summary.averageBytes.orElse(known.averageBytes),
      frequent = summary.frequent
    )
  }
}
