package io.selinger.estimate.plans

import io.selinger.stats.imported.UseImportedStatistics
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.LeafNode

/**
 * Rows that a scan reads under predicates: those of the row groups in which any may match. Only where
 * the rows of a row group are alike do predicates leave out row groups.
 */
object RowsRead {

  // Intraclass correlation of the values, above which other row groups have other values.
  private val leastAlike = 0.05

  /** @param rows of the whole relation */
  def of(leaf: LeafNode, predicates: Seq[Expression], rows: Double): Double = {
    val pushed = predicates.filter(isPushed)
    val share = leaf match {
      case FileRelation(relation)
          if pushed.nonEmpty && UseImportedStatistics.forLeaf(leaf).isEmpty =>
        for {
          facts <- FileFacts.of(relation, predicates, pushed)
          sample <- facts.sample
          if sample.applied.nonEmpty && sample.alike > leastAlike
        } yield math.max(1, sample.groups.count(_.matched > 0)).toDouble / sample.groups.size
      case _ => None
    }
    rows * share.getOrElse(1.0)
  }

  /** What Spark hands to the reader of files, to compare with the ranges of row groups. */
  private def isPushed(predicate: Expression): Boolean = predicate match {
    case And(left, right) => isPushed(left) && isPushed(right)
    case Or(left, right) => isPushed(left) && isPushed(right)
    case comparison: BinaryComparison =>
      comparison.children.exists(isColumn) && comparison.children.exists(_.foldable)
    case In(value, list) => isColumn(value) && list.forall(_.foldable)
    case InSet(value, _) => isColumn(value)
    case IsNotNull(value) => isColumn(value)
    case IsNull(value) => isColumn(value)
    case StartsWith(value, prefix) => isColumn(value) && prefix.foldable
    case _ => false
  }

  private def isColumn(expression: Expression): Boolean = expression.isInstanceOf[Attribute]
}
