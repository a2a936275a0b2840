package io.selinger.bench

import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.sketches.{AnalyzeRequest, AnalyzeRun}
import java.io.ObjectInputStream
import java.nio.file.{Files, Path}
import org.apache.spark.sql.catalyst.TableIdentifier
import org.apache.spark.sql.catalyst.catalog._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.plans.logical.statsEstimation.EstimationUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * What one estimator says of a sub-plan.
 *
 * @param upperBound the upper confidence bound of the rows, where the estimator has one
 * @param bound a number that cannot be exceeded, where it has one
 */
final case class Estimate(rows: Double, upperBound: Option[Double], bound: Option[Double])

/** An estimator under a name, which is its field in the results. */
abstract class Estimator(val name: String) {
  def estimate(plan: LogicalPlan): Option[Estimate]
}

object Estimators {

  /** Those whose statistics exist, in the order of the table. */
  def all(
      session: SparkSession,
      analyzed: Option[Path],
      sketches: Option[String]
  ): Seq[Estimator] =
    Seq(new Stock("stock", session, identity)) ++
      analyzed.map(new Statistics(_)).map(kept =>
        new Stock("stock_analyzed", session, kept.attach)
      ) ++
      Seq(new Selinger("selinger", session, None)) ++
      sketches.map(place => new Selinger("selinger_analyzed", session, Some(place)))

  /** Collects statistics of all columns of these tables, as far as none are current. */
  def analyze(session: SparkSession, tables: Seq[(String, String)], location: String): Unit = {
    session.conf.set(SelingerConf.STATS_LOCATION.key, location)
    try tables.foreach { case (name, path) =>
        Progress.say(s"selinger_analyze of $name")
        val columns = session.read.parquet(path).columns.toSeq
        AnalyzeRun.run(session, AnalyzeRequest(path, Some(columns), 1.0, None))
      }
    finally session.conf.unset(SelingerConf.STATS_LOCATION.key)
  }

  /** Selinger's own estimator, with what it finds by itself, or with what was collected as well. */
  private final class Selinger(name: String, session: SparkSession, location: Option[String])
      extends Estimator(name) {
    override def estimate(plan: LogicalPlan): Option[Estimate] = {
      location.foreach(session.conf.set(SelingerConf.STATS_LOCATION.key, _))
      try {
        PlanningPass.start()
        PlanningPass.current.workOn(plan)
        LeafStatistics.estimator
          .estimate(plan)
          .map(known => Estimate(known.rows.value, Some(known.upperBound), known.bound))
      } finally session.conf.unset(SelingerConf.STATS_LOCATION.key)
    }
  }

  /**
   * Spark's cost-based optimizer. Where it has no rows but a size, as for files without ANALYZE,
   * the rows are those that the size amounts to at the width that Spark assumes.
   */
  private final class Stock(
      name: String,
      session: SparkSession,
      prepare: LogicalPlan => LogicalPlan
  ) extends Estimator(name) {

    private val settings = Seq("spark.sql.cbo.enabled", "spark.sql.cbo.planStats.enabled")

    override def estimate(plan: LogicalPlan): Option[Estimate] = {
      settings.foreach(session.conf.set(_, true))
      try {
        val prepared = prepare(plan)
        // What was known while Spark optimized the plan was computed without these settings.
        prepared.invalidateStatsCache()
        val statistics = prepared.stats
        val width = EstimationUtils.getSizePerRow(prepared.output, statistics.attributeStats)
        val rows = statistics.rowCount
          .map(_.toDouble)
          .getOrElse(statistics.sizeInBytes.toDouble / width.toDouble)
        Some(Estimate(rows, None, None))
      } finally {
        settings.foreach(session.conf.unset)
        plan.invalidateStatsCache()
      }
    }
  }

  /** What ANALYZE collected, as `benchmarks/catalog.py` keeps it: a file a table. */
  private final class Statistics(folder: Path) {

    def attach(plan: LogicalPlan): LogicalPlan = plan.transformUp {
      case relation @ LogicalRelation(files: HadoopFsRelation, _, None, _, _) =>
        val name = files.location.rootPaths.head.getName.stripSuffix(".parquet")
        relation.copy(catalogTable = Some(table(name, files)))
    }

    private def table(name: String, files: HadoopFsRelation): CatalogTable =
      CatalogTable(
        TableIdentifier(name),
        CatalogTableType.EXTERNAL,
        CatalogStorageFormat.empty,
        files.schema,
        stats = Some(statistics(name))
      )

    private def statistics(name: String): CatalogStatistics = {
      val input = new ObjectInputStream(Files.newInputStream(folder.resolve(s"$name.ser")))
      try
        input.readObject() match {
          case found: CatalogStatistics => found
          case other => throw new IllegalStateException(s"not statistics: ${other.getClass}")
        }
      finally input.close()
    }
  }
}
