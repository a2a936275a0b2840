package io.selinger.transfer

import io.selinger.conf.SelingerConf
import io.selinger.core.{Mode, Origin, PlanningPass, Quantity}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.ColumnStatistics
import io.selinger.stats.files.FooterReader
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.imported.{PortableColumn, PortableRelation, UseImportedStatistics}
import io.selinger.stats.orc.OrcFooters
import io.selinger.stats.relations.{FileRelation, KeyColumns}
import io.selinger.stats.samples.SamplePredicates
import java.util.concurrent.TimeUnit
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId}
import org.apache.spark.sql.catalyst.plans.logical.LeafNode
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{
  CatalogFileIndex,
  HadoopFsRelation,
  LogicalRelation
}
import org.apache.spark.sql.execution.datasources.v2.{DataSourceV2ScanRelation, FileScan}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.selinger.ColumnMetadata
import org.apache.spark.sql.types._

/**
 * What is known of a relation when a query on it is planned, with every column counted as a key:
 * footers, dictionaries, samples within `stats.exportBudgetMs`, or what Spark itself knows.
 */
object CollectStatistics {

  // As many as one sample takes.
  private val columnsAtOnce = 32

  def collect(session: SparkSession, where: String, name: Option[String]): PortableRelation = {
    val (found, df) = RelationNames.resolve(session, where)
    val leaf = listed(RelationNames.leafOf(df, where))
    val named = name.map(known => RelationNames.text(RelationNames.parts(session, known)))
    SQLConf.withExistingConf(settings(session))(collectLeaf(leaf, named.getOrElse(found)))
  }

  /** With all partitions of a catalog's table: Spark lists them when a query chooses among them. */
  private def listed(leaf: LeafNode): LeafNode = leaf match {
    case relation @ LogicalRelation(fs: HadoopFsRelation, _, _, _, _) =>
      fs.location match {
        case catalog: CatalogFileIndex =>
          val files = fs.copy(location = catalog.filterPartitions(Nil))(fs.sparkSession)
          relation.copy(relation = files)
        case _ => relation
      }
    case other => other
  }

  /** The session's settings with the time that an export may take: nobody waits for a plan. */
  private def settings(session: SparkSession): SQLConf = {
    val conf = session.sessionState.conf.clone()
    val budget = SelingerConf.EXPORT_BUDGET_MS.value.toString
    Seq(SelingerConf.FOOTER_BUDGET_MS, SelingerConf.PLANNING_BUDGET_MS)
      .foreach(setting => conf.setConfString(setting.key, budget))
    // Who switched sampling off by its budget meant it.
    if (SelingerConf.SAMPLING_BUDGET_MS.value > 0) {
      conf.setConfString(SelingerConf.SAMPLING_BUDGET_MS.key, budget)
    }
    // It was asked for, whether or not plans are changed.
    conf.setConfString(SelingerConf.MODE.key, Mode.On.label)
    conf
  }

  private def collectLeaf(leaf: LeafNode, name: String): PortableRelation = {
    val budget = TimeUnit.MILLISECONDS.toNanos(SelingerConf.EXPORT_BUDGET_MS.value)
    val deadline = System.nanoTime() + budget
    val batches = leaf.output.grouped(columnsAtOnce).map { batch =>
      if (System.nanoTime() > deadline) Batch(batch, None, None, Set.empty)
      else {
        val ids = batch.map(_.exprId).toSet
        val read = unsampled(estimate(leaf, ids))
        val sampled = if (isImported(leaf)) None else estimate(leaf, ids)
        Batch(batch, read, sampled.orElse(read), unsampled(countedIn(leaf, ids)))
      }
    }.toSeq
    val known = batches.flatMap(_.read).headOption
    val columns = batches
      .flatMap(batch => batch.columns.map(c => columnName(c) -> columnOf(c, batch, leaf)))
      .toMap
      .filterNot { case (_, column) => column == PortableColumn() }
    PortableRelation(
      name,
      formatOf(leaf),
      pathOf(leaf),
      StructType(leaf.output.map(c => bare(c.name, c.dataType, c.nullable, c.metadata))),
      partitionsOf(leaf),
      leaf.stats.sizeInBytes.toDouble,
      filesOf(leaf),
      known.map(_.rows),
      known.flatMap(_.bound),
      columns
    )
  }

  private def columnName(column: Attribute): String = FooterReader.columnName(column.name)

  private def isImported(leaf: LeafNode): Boolean = UseImportedStatistics.unapply(leaf).isDefined

  /**
   * Some columns of a relation.
   *
   * @param read what is known of them without a sample; none if no time was left
   * @param sampled what is known with one
   * @param counted names of those whose values are counted by dictionaries
   */
  private final case class Batch(
      columns: Seq[Attribute],
      read: Option[PlanEstimate],
      sampled: Option[PlanEstimate],
      counted: Set[String]
  )

  /** Runs `body` as if predicates were not tried on samples. */
  private def unsampled[A](body: => A): A = {
    val conf = SQLConf.get.clone()
    conf.setConfString(SamplePredicates.switch, "false")
    SQLConf.withExistingConf(conf)(body)
  }

  /** Runs `body` in a pass of its own, as if a query joined or grouped by these columns. */
  private def asked[A](keys: Set[ExprId])(body: => A): A = {
    val pass = PlanningPass.start()
    KeyColumns.ask(keys)
    try pass.timed(body)
    finally { val _ = PlanningPass.start() }
  }

  private def estimate(leaf: LeafNode, keys: Set[ExprId]): Option[PlanEstimate] =
    asked(keys)(LeafStatistics.estimate(leaf, Nil).map(_._1))

  /** Counts of dictionaries are exact for whole parts of a relation, those of samples are not. */
  private def countedIn(leaf: LeafNode, keys: Set[ExprId]): Set[String] = leaf match {
    case FileRelation(relation) if !isImported(leaf) =>
      asked(keys)(ReadFooterStatistics.read(
        relation,
        Nil
      )).fold(Set.empty[String])(_.dictionaries.keySet)
    case _ => Set.empty
  }

  /** A column with the origin of each of its numbers: what a sample has changed comes from it. */
  private def columnOf(column: Attribute, batch: Batch, leaf: LeafNode): PortableColumn = {
    def in(estimate: Option[PlanEstimate]) =
      estimate.flatMap(_.columns.get(column.exprId)).getOrElse(ColumnStatistics())
    val known = in(batch.read)
    val refined = in(batch.sampled)
    val isPartition = partitionsOf(leaf).contains(column.name)
    val inFile = imported(leaf, columnName(column))
    def number(
        pick: ColumnStatistics => Option[Double],
        ofFile: PortableColumn => Option[Quantity],
        origin: Origin
    ): Option[Quantity] = pick(refined).map { value =>
      val changed = !pick(known).contains(value)
      Quantity(
        value,
        if (changed) Origin.Sampled
        else inFile.flatMap(ofFile).fold(origin)(_.origin)
      )
    }
    // What footers hold is counted if all of them were read.
    val footers = batch.read.fold[Origin](Origin.Default)(_.rows.origin)
    val distinct =
      if (batch.counted(columnName(column))) known.distinct.map(Quantity(_, Origin.Derived))
      else number(_.distinct, _.distinct, if (isPartition) footers else Origin.Derived)
    PortableColumn(
      number(_.nullFraction, _.nullFraction, if (isPartition) Origin.Derived else footers),
      number(_.min, _.min, footers),
      number(_.max, _.max, footers),
      distinct,
      number(_.averageBytes, _.averageBytes, Origin.Derived),
      refined.frequent,
      refined.quantiles
    )
  }

  /** Without metadata, where libraries keep values of the data; but for the length of texts. */
  private def bare(
      name: String,
      kind: DataType,
      nullable: Boolean,
      metadata: Metadata
  ): StructField = {
    val length = ColumnMetadata.textLength
    val kept =
      if (!metadata.contains(length)) Metadata.empty
      else new MetadataBuilder().putString(length, metadata.getString(length)).build()
    StructField(name, bare(kind), nullable, kept)
  }

  private def bare(kind: DataType): DataType = kind match {
    case StructType(fields) =>
      StructType(fields.map(f => bare(f.name, f.dataType, f.nullable, f.metadata)))
    case ArrayType(element, nulls) => ArrayType(bare(element), nulls)
    case MapType(key, value, nulls) => MapType(bare(key), bare(value), nulls)
    case other => other
  }

  /** What a file said of a column of a relation that was imported from it. */
  private def imported(leaf: LeafNode, column: String): Option[PortableColumn] =
    UseImportedStatistics.unapply(leaf).flatMap(_.relation.columns.get(column))

  // ---- the relation itself ------------------------------------------------------------------

  private def partitionsOf(leaf: LeafNode): Seq[String] = {
    val schema = leaf match {
      case LogicalRelation(fs: HadoopFsRelation, _, _, _, _) => fs.partitionSchema
      case relation: DataSourceV2ScanRelation =>
        relation.scan match {
          case scan: FileScan => scan.fileIndex.partitionSchema
          case _ => StructType(Nil)
        }
      case _ => StructType(Nil)
    }
    val names = schema.fieldNames.map(FooterReader.columnName).toSet
    leaf.output.filter(column => names(columnName(column))).map(_.name)
  }

  private def formatOf(leaf: LeafNode): String = leaf match {
    case UseImportedStatistics(index) => index.relation.format
    case FileRelation(relation) => if (relation.reader == OrcFooters) "orc" else "parquet"
    case LogicalRelation(fs: HadoopFsRelation, _, _, _, _) =>
      fs.fileFormat.toString.toLowerCase(java.util.Locale.ROOT)
    case other => other.nodeName
  }

  private def pathOf(leaf: LeafNode): Option[String] = leaf match {
    case UseImportedStatistics(index) => index.relation.path
    case LogicalRelation(fs: HadoopFsRelation, _, _, _, _) =>
      fs.location.rootPaths.headOption.map(_.toString)
    case _ => None
  }

  private def filesOf(leaf: LeafNode): Option[Double] = leaf match {
    case UseImportedStatistics(index) => index.relation.files
    case FileRelation(relation) => Some(relation.listing(Nil, most = 1).files.toDouble)
    case _ => None
  }
}
