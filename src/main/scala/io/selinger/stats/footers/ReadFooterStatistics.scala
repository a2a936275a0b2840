package io.selinger.stats.footers

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  Guard,
  Hook,
  NodeText,
  Origin,
  Outcome,
  PlanningPass,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.stats.{
  ColumnStatistics,
  DistinctValues,
  KeyRanges,
  RelationStatistics,
  RowsWithKeys
}
import io.selinger.stats.files.FooterReader
import io.selinger.stats.relations.{FileRelation, KeyColumns}
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.internal.SQLConf

/** Statistics of file scans from their footers: the rule `readFooterStatistics`. */
object ReadFooterStatistics
    extends RuleDescription(
      "readFooterStatistics",
      RuleKind.Statistics,
      "Reads row counts, null counts, value ranges and column sizes from the footers of Parquet " +
        "and ORC files."
    ) {

  override def hooks: Seq[Hook] =
    Seq(Hook.OnDemand("Only relations whose size decides something are worth reading."))

  override def reasons: Seq[Reason] =
    Seq(Reason.FootersRead, Reason.FootersSampled, Reason.FootersUnavailable)

  override def example: String = "SELECT * FROM sales JOIN items ON sales.item = items.id"

  /**
   * Statistics of the files that `relation` reads once the partition filters among `predicates` are
   * applied; `None` where the rule is off or no footer could be read.
   */
  def read(relation: FileRelation, predicates: Seq[Expression]): Option[RelationStatistics] =
    Guard.value[Option[RelationStatistics]](this, SelingerConf.switches, relation.plan, None) {
      val bounds = limits
      val listing = relation.listing(relation.partitionFilters(predicates), bounds.maxFiles)
      val columns = asked(relation, predicates)
      val answer =
        FooterStore.statistics(relation.reader, listing, columns, relation.hadoop, bounds)
      record(relation, answer)
      if (answer.cutShort) PlanningPass.current.cutShort()
      answer.statistics.map { statistics =>
        statistics.copy(columns = withDistinct(relation, statistics) ++ listing.partitions)
      }
    }

  /**
   * What the footers say of the files that `relation` reads once the partition filters among `predicates`
   * are applied. `None` where the rule is off, or the footer of a file is not known, or it is not certain
   * that columns are those of the footers.
   */
  def ofAllFiles(
      relation: FileRelation,
      predicates: Seq[Expression]
  ): Option[RelationStatistics] =
    Guard.value[Option[RelationStatistics]](this, SelingerConf.switches, relation.plan, None) {
      if (SQLConf.get.caseSensitiveAnalysis || !relation.readsByName) None
      else {
        val bounds = limits
        val listing = relation.listing(relation.partitionFilters(predicates), bounds.maxFiles)
        FooterStore
          .statistics(relation.reader, listing, Set.empty, relation.hadoop, bounds)
          .statistics
          .filter(_.bound.isDefined)
          .map(known => known.copy(columns = known.columns ++ listing.partitions))
      }
    }

  /**
   * The files that `relation` reads, with the rows of each of their row groups. `None` where the rule is
   * off, or the footer of a file is not known, or it is not certain that columns are those of the files.
   */
  def rowGroups(relation: FileRelation): Option[Seq[(FileStatus, Seq[Long])]] =
    Guard.value[Option[Seq[(FileStatus, Seq[Long])]]](
      this,
      SelingerConf.switches,
      relation.plan,
      None
    ) {
      val bounds = limits
      if (SQLConf.get.caseSensitiveAnalysis || !relation.readsByName) None
      else {
        val listing = relation.listing(Nil, bounds.maxFiles)
        FooterStore.rowGroups(relation.reader, listing, relation.hadoop, bounds)
      }
    }

  /**
   * Rows that a scan of `relation` under `predicates` has to look at which wants certain keys of one
   * column only. Reads nothing: `None` where the rule is off or no footer has been read before.
   */
  def rowsWith(
      relation: FileRelation,
      predicates: Seq[Expression],
      column: Attribute,
      keys: KeyRanges
  ): Option[RowsWithKeys] =
    Guard.value[Option[RowsWithKeys]](this, SelingerConf.switches, relation.plan, None) {
      val bounds = limits
      val listing = relation.listing(relation.partitionFilters(predicates), bounds.maxFiles)
      FooterStore.rowsWith(listing, FooterReader.columnName(column.name), keys, bounds)
    }

  /** Columns whose distinct values matter: those that the plan joins, groups by or filters on. */
  private def asked(relation: FileRelation, predicates: Seq[Expression]): Set[String] = {
    val mentioned = KeyColumns.mentioned ++ predicates.flatMap(_.references).map(_.exprId)
    relation.plan.output.iterator
      .filter(column => mentioned(column.exprId))
      .map(column => FooterReader.columnName(column.name))
      .toSet
  }

  /** The columns that a query can ask for, with the distinct values that follow from all parts. */
  private def withDistinct(
      relation: FileRelation,
      statistics: RelationStatistics
  ): Map[String, ColumnStatistics] =
    relation.plan.output.flatMap { column =>
      val name = FooterReader.columnName(column.name)
      statistics.columns.get(name).map { known =>
        val rows = statistics.rows.value * (1.0 - known.nullFraction.getOrElse(0.0))
        val chunks = statistics.dictionaries.getOrElse(name, Nil)
        name -> known.copy(distinct = DistinctValues.estimate(column.dataType, rows, known, chunks))
      }
    }.toMap

  private def limits = {
    val (whole, remaining) = (SelingerConf.FOOTER_BUDGET_MS.value, remainingMs)
    FooterLimits(
      SelingerConf.FOOTER_MAX_FILES.value.min(Int.MaxValue.toLong).toInt,
      // All relations of a plan share its budget.
      math.min(whole, remaining),
      SelingerConf.FOOTER_THREADS.value.min(64L).toInt,
      SelingerConf.FOOTER_CACHE_MAX_BYTES.value,
      isShort = remaining < whole / 2
    )
  }

  private def remainingMs: Long =
    math.max(0L, SelingerConf.PLANNING_BUDGET_MS.value - PlanningPass.current.usedMs.toLong)

  private def record(relation: FileRelation, answer: FooterAnswer): Unit = {
    val reason = answer.statistics match {
      case None => Reason.FootersUnavailable
      case Some(_) if answer.filesRead < answer.files => Reason.FootersSampled
      case Some(_) => Reason.FootersRead
    }
    val rows = answer.statistics.map(s => Evidence("rows", s.rows.value, "rows", s.rows.origin))
    PlanningPass.current.inform(
      relation.plan,
      Decision(
        rule = id,
        node = NodeText.shorten(s"Scan ${relation.name}"),
        key = NodeText.key(relation.plan),
        outcome = Outcome.Informed,
        reason = reason,
        evidence = rows.toSeq ++ Seq(
          Evidence("footers read", answer.filesRead.toDouble, "files", Origin.Exact),
          Evidence("files of the relation", answer.files.toDouble, "files", Origin.Exact),
          Evidence("time to read", answer.ms, "ms", Origin.Measured)
        ),
        setting =
          if (reason == Reason.FootersRead) None
          else if (answer.files > limits.maxFiles) Some(SelingerConf.FOOTER_MAX_FILES.key)
          else Some(SelingerConf.FOOTER_BUDGET_MS.key),
        settingTo =
          if (reason == Reason.FootersRead) None
          else if (answer.files > limits.maxFiles) Some(answer.files.toString)
          else Some((SelingerConf.FOOTER_BUDGET_MS.value * 4).toString)
      )
    )
  }
}
