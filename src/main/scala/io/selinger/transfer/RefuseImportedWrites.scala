package io.selinger.transfer

import io.selinger.stats.imported.{ImportedFileIndex, NoDataException}
import org.apache.spark.sql.catalyst.plans.logical.{InsertIntoStatement, LogicalPlan}
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  InsertIntoHadoopFsRelationCommand,
  LogicalRelation
}

/**
 * Stops a command that would write rows into a relation without data: nobody could read them again.
 * A check once the command is resolved; it changes nothing.
 */
object RefuseImportedWrites extends (LogicalPlan => Unit) {

  override def apply(plan: LogicalPlan): Unit = plan.foreach {
    case insert: InsertIntoHadoopFsRelationCommand => insert.fileIndex.foreach(refuse)
    case insert: InsertIntoStatement =>
      insert.table match {
        case LogicalRelation(fs: HadoopFsRelation, _, _, _, _) => refuse(fs.location)
        case _ => ()
      }
    case _ => ()
  }

  private def refuse(index: Any): Unit = index match {
    case imported: ImportedFileIndex => throw new NoDataException(imported.relation.name)
    case _ => ()
  }
}
