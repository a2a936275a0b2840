package io.selinger.transfer

import io.selinger.stats.imported.{ImportedFileIndex, NoDataException}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}

/**
 * Stops a query on relations without data before its first stage runs. Their scans would raise the
 * same error, each for itself, and Spark would report several failures instead of the reason.
 *
 * Runs under adaptive execution only, once for each stage that is about to start; explaining a query
 * starts none. All other plans come back as they are.
 */
object RefuseImportedScans extends Rule[SparkPlan] {

  override def apply(plan: SparkPlan): SparkPlan = {
    plan.foreach {
      case scan: FileSourceScanExec =>
        scan.relation.location match {
          case index: ImportedFileIndex => throw new NoDataException(index.relation.name)
          case _ => ()
        }
      case _ => ()
    }
    plan
  }
}
