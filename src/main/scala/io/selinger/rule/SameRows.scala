package io.selinger.rule

import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.plans.logical.{LeafNode, LogicalPlan}
import org.apache.spark.sql.execution.datasources.{
  HadoopFsRelation,
  LogicalRelation,
  PartitioningAwareFileIndex
}

/** Readings of a table that return the same rows. */
private[rule] object SameRows {

  def areIn(one: LogicalPlan, other: LogicalPlan): Boolean = (one, other) match {
    case (a: LeafNode, b: LeafNode) => a.sameResult(b) && haveSameFiles(a, b)
    case _ => false
  }

  /** For Spark, lists of files are equal if their folders are, however long ago each was made. */
  private def haveSameFiles(one: LeafNode, other: LeafNode): Boolean = (one, other) match {
    case (
          LogicalRelation(a: HadoopFsRelation, _, _, _, _),
          LogicalRelation(b: HadoopFsRelation, _, _, _, _)
        ) =>
      (a.location eq b.location) || ((a.location, b.location) match {
        case (listed: PartitioningAwareFileIndex, again: PartitioningAwareFileIndex) =>
          FileRelation.filesOf(listed) == FileRelation.filesOf(again)
        case _ => true
      })
    case _ => true
  }
}
