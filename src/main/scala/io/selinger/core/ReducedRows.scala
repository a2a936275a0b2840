package io.selinger.core

import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/** Marks operators that return fewer rows than the query asks of them, as a join drops the others. */
object ReducedRows {

  private val tag = TreeNodeTag[Unit]("selinger.reducedRows")

  def mark(node: TreeNode[_]): Unit = node.setTagValue(tag, ())

  def isMarked(node: TreeNode[_]): Boolean = node.getTagValue(tag).isDefined
}
