package io.selinger.estimate.plans

import io.selinger.core.{JoinSides, JoinSymbol, NodeText}
import io.selinger.stats.imported.UseImportedStatistics
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.LogicalRDD
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation

/** What texts call the relations and joins of a plan: by the tables that they read. */
object RelationNames {

  // A name with more tables would be longer than what is said of it.
  private val mostTables = 3

  /** `customers`, `(sales ⋈ items)`, `sales (grouped)`, `(sales ⋈ 4 others)`. */
  def of(plan: LogicalPlan): String = plan match {
    case stage: LogicalQueryStage => of(stage.logicalPlan)
    case join: Join =>
      val leaves = leavesOf(join)
      if (leaves.size <= mostTables) {
        s"(${JoinSymbol.joined(of(join.left), join.joinType, of(join.right))})"
      } else s"(${ofLeaf(leaves.head)} ${JoinSymbol.Inner} ${leaves.size - 1} others)"
    case aggregate: Aggregate => s"${of(aggregate.child)} (grouped)"
    case one: UnaryNode => of(one.child)
    case leaf if leaf.children.isEmpty => ofLeaf(leaf)
    case union: Union => s"union of ${union.children.map(of).distinct.mkString(", ")}"
    case other => s"${of(other.children.head)}…"
  }

  def sidesOf(join: Join): JoinSides =
    JoinSides(NodeText.shorten(of(join.left)), NodeText.shorten(of(join.right)))

  def titleOf(join: Join): String =
    NodeText.shorten(JoinSymbol.joined(of(join.left), join.joinType, of(join.right)))

  def ofLeaf(leaf: LogicalPlan): String = leaf match {
    case stage: LogicalQueryStage => of(stage.logicalPlan)
    case UseImportedStatistics(index) => index.relation.name
    case FileRelation(relation) => relation.name.stripSuffix(".parquet").stripSuffix(".orc")
    case LogicalRelation(_, _, Some(table), _, _) => table.identifier.unquotedString
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      files.location.rootPaths.headOption.fold("no files")(_.getName)
    case scan: DataSourceV2ScanRelation => scan.relation.name
    case cached: InMemoryRelation => cached.cacheBuilder.tableName.getOrElse("cached rows")
    case _: Range => "range"
    case _: LocalRelation | _: OneRowRelation => "local rows"
    case _: LogicalRDD => "rows of an RDD"
    case other => other.nodeName
  }

  private def leavesOf(plan: LogicalPlan): Seq[LogicalPlan] = plan.collectLeaves().flatMap {
    case stage: LogicalQueryStage => leavesOf(stage.logicalPlan)
    case leaf => Seq(leaf)
  }
}
