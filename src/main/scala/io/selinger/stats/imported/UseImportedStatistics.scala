package io.selinger.stats.imported

import com.google.common.collect.MapMaker
import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  Guard,
  Hook,
  NodeText,
  Outcome,
  PlanningPass,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.stats.RelationStatistics
import java.util.Locale
import java.util.concurrent.ConcurrentMap
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, FileScan}

/**
 * What one session has imported beyond views of its catalog.
 *
 * @param tables names of more than one part, in lower case, with what they stand for
 * @param overrides what is to be believed of relations that have data of their own, by their ids
 */
final case class SessionImports(
    tables: Map[Seq[String], ImportedFileIndex] = Map.empty,
    overrides: Map[String, PortableRelation] = Map.empty
)

/**
 * Imported statistics of the leaves of a plan: the rule `useImportedStatistics`. A relation without
 * data carries its own; for relations with data each session keeps what it has imported, for as long as
 * the session lives.
 */
object UseImportedStatistics
    extends RuleDescription(
      "useImportedStatistics",
      RuleKind.Statistics,
      "Takes the statistics of imported relations from the file that they were imported from."
    ) {

  override def hooks: Seq[Hook] =
    Seq(Hook.OnDemand("Only relations whose size decides something are worth looking up."))

  override def reasons: Seq[Reason] = Seq(Reason.StatisticsImported)

  override def example: String = "SELECT * FROM imported_sales JOIN items ON item = id"

  // Sessions are its weak keys, and nothing in its values refers to one.
  private val imports: ConcurrentMap[SparkSession, SessionImports] =
    new MapMaker().weakKeys().makeMap[SparkSession, SessionImports]()

  def forSession(session: SparkSession): SessionImports =
    Option(imports.get(session)).getOrElse(SessionImports())

  def update(session: SparkSession)(change: SessionImports => SessionImports): Unit = {
    val _ = imports.compute(
      session,
      (_, known) => {
        val changed = change(Option(known).getOrElse(SessionImports()))
        // Nothing to remember is not remembered.
        Option(changed).filterNot(_ == SessionImports()).orNull
      }
    )
  }

  /** What a session has imported under a name of several parts. */
  def table(session: SparkSession, name: Seq[String]): Option[ImportedFileIndex] =
    forSession(session).tables.get(key(name))

  def key(name: Seq[String]): Seq[String] = name.map(_.toLowerCase(Locale.ROOT))

  /** Imported statistics of a leaf, which then count instead of all others. */
  def forLeaf(leaf: LeafNode): Option[RelationStatistics] =
    Guard.value[Option[RelationStatistics]](this, SelingerConf.switches, leaf, None) {
      for (relation <- relationOf(leaf); statistics <- relation.statistics) yield {
        record(leaf, relation, statistics)
        statistics
      }
    }

  private def relationOf(leaf: LeafNode): Option[PortableRelation] = leaf match {
    case UseImportedStatistics(index) => Some(index.relation)
    case other =>
      for {
        session <- SparkSession.getActiveSession
        known <- Option(imports.get(session)) if known.overrides.nonEmpty
        id <- idOf(other)
        relation <- known.overrides.get(id)
      } yield relation
  }

  /** A relation that has statistics only. */
  def unapply(plan: LogicalPlan): Option[ImportedFileIndex] = plan match {
    case LogicalRelation(fs: HadoopFsRelation, _, _, _, _) =>
      fs.location match {
        case index: ImportedFileIndex => Some(index)
        case _ => None
      }
    case _ => None
  }

  /** What makes a relation of files the same in another query: its table, or its paths. */
  def idOf(leaf: LogicalPlan): Option[String] = leaf match {
    case LogicalRelation(_, _, Some(table), _, _) =>
      Some(s"table ${table.identifier.unquotedString.toLowerCase(Locale.ROOT)}")
    case LogicalRelation(fs: HadoopFsRelation, _, _, _, _) => Some(pathsOf(fs.location.rootPaths))
    case relation: DataSourceV2ScanRelation =>
      (relation.scan, relation.relation.identifier) match {
        case (scan: FileScan, _) => Some(pathsOf(scan.fileIndex.rootPaths))
        case (_, identifier) => identifier.map(known => s"table ${known.toString}")
      }
    case _ => None
  }

  private def pathsOf(paths: Seq[org.apache.hadoop.fs.Path]): String =
    paths.map(_.toString).sorted.mkString("paths ", ", ", "")

  private def record(
      leaf: LeafNode,
      relation: PortableRelation,
      statistics: RelationStatistics
  ): Unit =
    PlanningPass.current.inform(
      leaf,
      Decision(
        rule = id,
        node = NodeText.shorten(s"Scan ${relation.name}"),
        key = NodeText.key(leaf),
        outcome = Outcome.Informed,
        reason = Reason.StatisticsImported,
        evidence = Seq(
          Evidence("rows", statistics.rows.value, "rows", statistics.rows.origin),
          Evidence("bytes", relation.bytes, "bytes", statistics.rows.origin)
        ),
        setting = Some(switch)
      )
    )
}
