package io.selinger.ordering.graph

import org.apache.spark.sql.catalyst.expressions._

/**
 * Whether a predicate is never true of a row whose columns of one relation are all null: what
 * decides how outer joins may change places. From the form of the expression alone, by what Spark
 * calls null-intolerant, and so true at any place of the plan.
 */
object NullRejection {

  def rejects(predicate: Expression, columns: AttributeSet): Boolean = predicate match {
    case And(left, right) => rejects(left, columns) || rejects(right, columns)
    case Or(left, right) => rejects(left, columns) && rejects(right, columns)
    case IsNotNull(child) => isNull(child, columns)
    case Not(IsNull(child)) => isNull(child, columns)
    case other => isNull(other, columns)
  }

  /** Whether a value is null wherever all of these columns are. */
  private def isNull(expression: Expression, columns: AttributeSet): Boolean = expression match {
    case attribute: Attribute => columns.contains(attribute)
    case In(value, _) => isNull(value, columns)
    case InSet(value, _) => isNull(value, columns)
    case other => other.nullIntolerant && other.children.exists(isNull(_, columns))
  }
}
