package io.selinger.estimate.plans

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.{Domain, KeySample, PlanEstimate}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.{ColumnStatistics, ColumnSummary, SampledShare}
import io.selinger.stats.samples.SampledRelation
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}

/**
 * A leaf's rows and columns after those predicates that were evaluated on a sample of it. `bound`
 * stays as it is: a sample proves nothing. The upper bound sinks to a share that is exceeded once in a
 * thousand times, see [[SampledShare.upperBound]].
 */
object SampledEstimate {

  // The summary of fewer rows says less of a column than the formulas do.
  private val leastRows = 30

  /** @param output of the relation */
  def refine(
      input: PlanEstimate,
      sample: SampledRelation,
      output: Seq[Attribute]
  ): PlanEstimate = {
    val known = summarised(input, sample)
    val sampled = output.flatMap { column =>
      for (key <- sample.keys.get(column.exprId); domain <- known.domains.get(column.exprId))
        yield column.exprId -> domain.copy(sample = Some(KeySample(key, column, known)))
    }
    known.copy(domains = known.domains ++ sampled)
  }

  private def summarised(input: PlanEstimate, sample: SampledRelation): PlanEstimate =
    if (sample.applied.isEmpty) {
      val columns = refined(input, sample)
      input.copy(
        columns = columns,
        domains = input.domains.map { case (id, domain) =>
          id -> domain.copy(values = columns.get(id).flatMap(_.distinct).orElse(domain.values))
        }
      )
    } else {
      val formulas = Selectivity.filter(input, sample.applied)
      val prior = formulas.rows.value / math.max(1.0, input.rows.value)
      val (share, upperBound) =
        if (sample.complete) {
          val counted = sample.matched.toDouble / math.max(1, sample.rows)
          (counted, counted)
        } else
          (
            SampledShare.expected(sample.matched, sample.rows, prior),
            SampledShare.upperBound(sample.groups, sample.covered, sample.alike)
          )
      val rows = math.max(1.0, input.rows.value * share)
      val left = formulas.copy(
        columns = filtered(input, formulas, sample, rows),
        domains = domains(input, formulas, sample),
        // A leaf is one relation.
        sourceRows = formulas.sourceRows.map { case (relation, _) => relation -> rows }
      )
      sample.columns
        .collect { case (id, column) if isTrusted(column, sample) => (id, column) }
        .foldLeft(left) { case (known, (id, column)) => ranged(known, id, column, sample) }
        .withRows(
          Quantity(rows, input.rows.origin.worse(Origin.Sampled)),
          input.upperBound * upperBound,
          input.bound
        )
    }

  private def isTrusted(summary: ColumnSummary, sample: SampledRelation): Boolean =
    summary.rows >= leastRows || sample.complete

  /** Columns of all rows: what no other source knows comes from the sample. */
  private def refined(
      input: PlanEstimate,
      sample: SampledRelation
  ): Map[ExprId, ColumnStatistics] =
    sample.columns.foldLeft(input.columns) { case (columns, (id, summary)) =>
      val known = columns.getOrElse(id, ColumnStatistics())
      val all = merged(known, summary, input.rows.value, sample.covered)
      val keys = if (sample.complete) None else sample.keys.get(id)
      val runs = keys.flatMap(key => key.rows.runShare(Seq(key.column))).map { share =>
        math.max(1.0, share * input.rows.value)
      }
      val seen = all.copy(distinct = (all.distinct ++ runs).minOption)
      if (!isTrusted(summary, sample)) columns
      else if (sample.counted(id)) columns.updated(id, seen.copy(distinct = known.distinct))
      else columns.updated(id, seen)
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
      case Some(summary) if isTrusted(summary, sample) =>
        merged(column.copy(distinct = before), summary, rows, sample.covered)
          .copy(
            nullFraction = Some(summary.nullFraction),
            // They are those of all rows; the sample has the range that is left.
            quantiles = None
          )
      // These predicates narrow it as the formulas say.
      case Some(_) => column
      case None =>
        column.copy(distinct =
          before.map(Selectivity.survivors(_, math.max(1.0, input.rows.value), rows))
        )
    })
  }

  /**
   * Where the values that are left come from. A column that is known from the sample only, and that
   * no predicate narrows, is taken to have the same values in the rows that do not match.
   */
  private def domains(
      input: PlanEstimate,
      formulas: PlanEstimate,
      sample: SampledRelation
  ): Map[ExprId, Domain] = {
    val narrowed = sample.applied.flatMap(_.references.map(_.exprId)).toSet
    formulas.domains.map { case (id, domain) =>
      val seen = sample.columns.get(id).filterNot(_ => domain.values.isDefined || narrowed(id))
      id -> seen.fold(domain)(column =>
        domain.copy(values =
          Some(math.max(1.0, column.distinctOf(input.rows.value, sample.covered)))
        )
      )
    }
  }

  /**
   * With the range of a column that the sample shows: the rows of one year have just that year's
   * days, whichever column says the year.
   */
  private def ranged(
      known: PlanEstimate,
      id: ExprId,
      summary: ColumnSummary,
      sample: SampledRelation
  ): PlanEstimate = {
    // Rows of one row group may be alike; of those that were not looked at nothing is known.
    val draws =
      if (sample.covered >= 1.0) summary.rows - summary.nulls
      else sample.groups.count(_.matched > 0)
    val column = known.columns.getOrElse(id, ColumnStatistics())
    // An axis that ends at infinity says nothing of shares.
    (for {
      min <- column.min if !min.isInfinite
      max <- column.max if !max.isInfinite
      (low, high) <- summary.range(draws)
    } yield {
      val (from, to) = (math.max(min, math.min(low, max)), math.min(max, math.max(high, min)))
      val values = known.domains.get(id).flatMap(_.values)
      val step = values.filter(_ > 1).fold(0.0)(d => (max - min) / (d - 1))
      val share = if (max > min) (to - from + step) / (max - min + step) else 1.0
      known.copy(
        columns =
          known.columns.updated(
            id,
            column.copy(min = Some(from), max = Some(to), rangeSeen = true)
          ),
        domains = known.domains ++ known.domains.get(id).map(id -> _.narrowed(math.min(1.0, share)))
      )
    }).getOrElse(known)
  }

  /** Counts of values are at most those known from elsewhere; what was counted exactly stays. */
  private def merged(
      known: ColumnStatistics,
      summary: ColumnSummary,
      rows: Double,
      covered: Double
  ): ColumnStatistics = {
    val seen = summary.distinctOf(rows, covered)
    known.copy(
      nullFraction = known.nullFraction.orElse(Some(summary.nullFraction)),
      distinct = Some(math.max(1.0, known.distinct.fold(seen)(math.min(_, seen)))),
      averageBytes = summary.averageBytes.orElse(known.averageBytes),
      frequent = summary.frequent
    )
  }
}
