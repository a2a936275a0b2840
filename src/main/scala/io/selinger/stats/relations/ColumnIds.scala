package io.selinger.stats.relations

import org.apache.spark.sql.catalyst.expressions.{And, Attribute, EqualTo, ExprId, Expression}
import scala.collection.mutable

/** Columns by id, as notes on a whole plan hold them. */
private[stats] object ColumnIds {

  /** Columns that expressions name. */
  def named(expressions: IterableOnce[Expression]): Set[ExprId] = {
    val found = mutable.HashSet.empty[ExprId]
    def add(expression: Expression): Unit = expression match {
      case column: Attribute => found += column.exprId
      // Sets of attributes are slow to make, and most conditions are equalities.
      case And(left, right) => add(left); add(right)
      case EqualTo(left, right) => add(left); add(right)
      case other => other.references.foreach((column: Attribute) => found += column.exprId)
    }
    expressions.iterator.foreach(add)
    found.toSet
  }

  /**
   * With the columns that these are computed from, however often they are renamed.
   *
   * @param computed what each computed column is made of
   */
  def withSources(found: Set[ExprId], computed: Map[ExprId, Set[ExprId]]): Set[ExprId] = {
    // What is computed is little beside the columns of a hundred joins.
    val more = computed.iterator.filter(c => found(c._1)).flatMap(_._2).filterNot(found).toSet
    if (more.isEmpty) found else withSources(found ++ more, computed)
  }
}
