package io.selinger.explain

import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.columnar.InMemoryTableScanExec
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec

/** What the leaves of a physical plan read, called as in the decisions about them. */
private[explain] object ScanNames {

  def of(plan: SparkPlan): Option[String] = plan match {
    case scan: FileSourceScanExec =>
      scan.tableIdentifier
        .map(_.unquotedString)
        .orElse(scan.relation.location.rootPaths.headOption.map(_.getName))
        .map(_.stripSuffix(".parquet").stripSuffix(".orc"))
    case scan: BatchScanExec => Some(scan.table.name)
    case cached: InMemoryTableScanExec =>
      Some(cached.relation.cacheBuilder.tableName.getOrElse("cached rows"))
    case _: RangeExec => Some("range")
    case _: LocalTableScanExec => Some("local rows")
    case _ => None
  }
}
