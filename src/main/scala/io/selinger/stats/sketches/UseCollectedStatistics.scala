package io.selinger.stats.sketches

import com.google.common.cache.{Cache, CacheBuilder}
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
  FileVersion,
  KeySketch,
  RelationStatistics
}
import io.selinger.stats.files.{BoundedReads, FooterReader}
import io.selinger.stats.relations.{FileRelation, UsedColumns}
import java.time.Duration
import java.util.concurrent.TimeUnit
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.DataType
import scala.util.control.NonFatal

/**
 * Statistics that `selinger_analyze` has collected, of just the files that a scan reads: the rule
 * `useCollectedStatistics`. Rows and bounds stay the footers'. A file that has changed since is
 * like one that was never seen.
 */
object UseCollectedStatistics
    extends RuleDescription(
      "useCollectedStatistics",
      RuleKind.Statistics,
      "Uses what selinger_analyze has collected for the files that are read: distinct values, " +
        "quantiles, frequent values, key overlap and a sample of the rows; and the keys that selinger_declare_key " +
        "has checked."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.OnDemand("Only relations whose size decides something are worth looking up."),
    Hook.EachPlan(
      "selinger_analyze collects the columns that queries use, so these are remembered.",
      this,
      SelingerConf.switches
    )(UsedColumns.remember)
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.CollectedUsed,
    Reason.CollectedPartly,
    Reason.CollectedStale,
    Reason.CollectedNone,
    Reason.CollectedUnreadable
  )

  override def example: String =
    "SELECT city, count(*) FROM sales JOIN customers ON sales.customer = customers.id GROUP BY city"

  // Of wider tables only the columns that the query uses are looked up.
  private val mostColumns = 100

  /**
   * `footers` with what was collected; `footers` itself where the rule is off, where no place is
   * set, or where nothing is known.
   */
  def refine(
      relation: FileRelation,
      footers: RelationStatistics,
      predicates: Seq[Expression]
  ): RelationStatistics =
    Guard.value(this, SelingerConf.switches, relation.plan, footers) {
      val location = SelingerConf.STATS_LOCATION.value
      if (location.isEmpty) footers else collected(location, relation, footers, predicates)
    }

  /**
   * A key among `columns`, by lower-case name, that a job has checked in just the files that a relation
   * reads: of all of the columns, if there is one. None where the rule is off, or the store does not answer.
   */
  def key(relation: FileRelation, columns: Map[String, DataType]): Option[DeclaredKey] =
    Guard.value[Option[DeclaredKey]](this, SelingerConf.switches, relation.plan, None) {
      val location = SelingerConf.STATS_LOCATION.value
      if (location.isEmpty || SQLConf.get.caseSensitiveAnalysis || !relation.readsByName) None
      else {
        val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(budgetMs)
        val folder = SketchStore.folder(location, relation.roots)
        val cache = SelingerConf.COLLECTED_CACHE_MAX_BYTES.value
        val declared = asked(folder)(read(folder, Nil, Nil, relation.hadoop, cache, deadline))
          .fold(_ => Nil, _.keys.filter(_.columns.toSet.subsetOf(columns.toSet)))
        // All of them: other files may have duplicates of what some have.
        val current = declared.filter(key => relation.allFiles.contains(key.files))
        current.maxByOption(_.columns.size)
      }
    }

  private def asked[A](folder: Path)(answer: => Either[String, A]): Either[String, A] =
    Option(unreachable.getIfPresent(folder.toString)).toLeft(()).flatMap(_ => answer)

  private def collected(
      location: String,
      relation: FileRelation,
      footers: RelationStatistics,
      predicates: Seq[Expression]
  ): RelationStatistics = {
    val start = System.nanoTime()
    val deadline = start + TimeUnit.MILLISECONDS.toNanos(budgetMs)
    val folder = SketchStore.folder(location, relation.roots)
    val files = relation.files(relation.partitionFilters(predicates)).map(FileVersion.of(_)).toSeq
    val columns = wanted(relation, footers, predicates)
    val (hadoop, cache) = (relation.hadoop, SelingerConf.COLLECTED_CACHE_MAX_BYTES.value)
    val found = asked(folder)(read(folder, files, columns, hadoop, cache, deadline))
    def since = (System.nanoTime() - start) / 1e6
    found match {
      case Left(problem) =>
        record(relation, Reason.CollectedUnreadable, Nil, 0, since, Some(problem))
        footers
      case Right(Collected(known, merged, _)) =>
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

  private final case class Collected(
      relation: CollectedRelation,
      columns: Seq[(Attribute, MergedColumn)],
      keys: Seq[DeclaredKey]
  )

  // Storage that fails or hangs is not asked again by every relation of every query.
  private val unreachable: Cache[String, String] =
    CacheBuilder.newBuilder().maximumSize(1000).expireAfterWrite(Duration.ofMinutes(1)).build()

  private val storeReads = new BoundedReads[AnyRef, Either[String, Collected]]("selinger-collected")

  /** What the store holds of these files, as far as it answers in time; else what is wrong. */
  private def read(
      folder: Path,
      files: Seq[FileVersion],
      columns: Seq[Attribute],
      hadoop: Configuration,
      cache: Long,
      deadline: Long
  ): Either[String, Collected] = {
    def stored =
      try {
        val found = SketchStore.collected(folder, hadoop, cache)
        val known = new CollectedRelation(found, files, hadoop, cache)
        val merged = columns.flatMap { column =>
          // What does not fit into the time is estimated from the rest.
          if (System.nanoTime() > deadline) None
          else known.column(FooterReader.columnName(column.name), column.dataType).map(column -> _)
        }
        Right(Collected(known, merged, found.keys.values.toSeq))
      } catch {
        // An unknown file system or a place that must not be read is no reason to fail a query.
        case error @ (NonFatal(_) | _: LinkageError) => Left(error.toString)
      }
    val begun = System.nanoTime()
    val arrived = storeReads.all(Seq(new Object), threads = 1, deadline)(_ => Some(stored))
    val answer = arrived.values.headOption.getOrElse(Left(s"$folder did not answer in time"))
    if (arrived.isEmpty) PlanningPass.current.cutShort()
    // That hardly any time was left is no fault of the store.
    val asked = arrived.nonEmpty || System.nanoTime() - begun > leastWaitNanos
    answer.left.foreach(problem => if (asked) unreachable.put(folder.toString, problem))
    answer
  }

  private val leastWaitNanos = TimeUnit.MILLISECONDS.toNanos(200)

  private def budgetMs: Long = {
    val left = SelingerConf.PLANNING_BUDGET_MS.value - PlanningPass.current.usedMs.toLong
    math.max(0L, math.min(SelingerConf.FOOTER_BUDGET_MS.value, left))
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
        DistinctValues.estimate(column.dataType, present, ranged.copy(distinct = Some(seen)), Nil)
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
        rule = id,
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
