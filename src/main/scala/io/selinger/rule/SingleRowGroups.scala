package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.stats.KeyTypes
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types._

/**
 * An aggregation by columns that may tell all rows apart, so that each group has one row.
 *
 * @param key columns of which no two rows have the same values, by the estimates
 */
private[rule] final case class SingleRowGroups(aggregate: Aggregate, key: Seq[Attribute]) {

  /** Whether a group shows what its row has: of -0.0 it shows 0.0. */
  def showsRows: Boolean =
    !aggregate.groupingExpressions.exists(key => SingleRowGroups.hasFloats(key.dataType))

  def isProven: Boolean =
    ProvenKeys.areUnique(key, aggregate.child) && ProvenKeys.areNeverNull(key, aggregate.child)

  /**
   * Whether anything of it, or of the columns that it reads, can raise an error. Spark computes all of an
   * aggregation for all of its rows, but a projection only of what is returned, and after filters and limits
   * above it.
   */
  def mayRaise: Boolean = {
    val computed = aggregate.groupingExpressions ++ rows.toSeq.flatMap(_.expressions)
    !computed.forall(RaisedErrors.isSafe) ||
    aggregate.references.exists(RaisedErrors.columnMayRaise(_, aggregate.child))
  }

  /** The rows themselves; none if a function is not known for a group of one row. */
  lazy val rows: Option[LogicalPlan] =
    ExpressionSets.all(aggregate.aggregateExpressions.map(SingleRowGroups.ofRow))
      .map(Project(_, aggregate.child))
}

private[rule] object SingleRowGroups {

  // More columns are rarely needed to tell rows apart, and take long to read.
  private val mostColumns = 3

  // Keys are among the first columns of a table; each column is followed to its table.
  private val mostTried = 16

  /**
   * The ways in which the groups may be single rows, as far as estimates speak for it, those first whose
   * columns take little time to read.
   */
  def of(aggregate: Aggregate): Seq[SingleRowGroups] = {
    val columns = aggregate.groupingExpressions.collect { case column: Attribute =>
      column
    }.distinct
    val single = columns.filter(column => KeyTypes.areProvable(column.dataType)).take(mostTried)
    val several = Option.when(columns.size > 1 && columns.size <= mostColumns)(columns)
    def likely(keys: Seq[Seq[Attribute]]) =
      keys.filter(ProvenKeys.mayBeUnique(_, aggregate.child)).map(SingleRowGroups(aggregate, _))
    if (columns.isEmpty || aggregate.hint.isDefined) Nil
    else {
      val keys = likely(single.sortBy(_.dataType.defaultSize).map(Seq(_)))
      if (keys.nonEmpty) keys.take(mostRead) else likely(several.toSeq)
    }
  }

  // Of columns that look like keys, some may have a few duplicates.
  private val mostRead = 2

  /** A result of a group that has one row, over the columns of that row. */
  private def ofRow(result: NamedExpression): Option[NamedExpression] = {
    var known = true
    val over = result.transformDown { case call: AggregateExpression =>
      ofRow(call).getOrElse {
        known = false
        call
      }
    }
    over match {
      case _ if !known => None
      // What is known of the column stays as it was: that it may be null, and its metadata.
      case alias: Alias if alias ne result =>
        val value =
          if (result.nullable && !alias.child.nullable) KnownNullable(alias.child) else alias.child
        Some(alias.copy(child = value)(
          alias.exprId,
          alias.qualifier,
          Some(result.metadata),
          alias.nonInheritableMetadataKeys
        ))
      case named: NamedExpression => Some(named)
      case _ => None
    }
  }

  private def ofRow(call: AggregateExpression): Option[Expression] = {
    val function = call.aggregateFunction
    val value: Option[Expression] = function match {
      case first: First => Some(first.child)
      case last: Last => Some(last.child)
      case most: Max => Some(most.child)
      case least: Min => Some(least.child)
      // Spark makes -0.0 to 0.0 before it looks for duplicates.
      case by: MaxMinBy if !call.isDistinct => Some(nullIf(IsNull(by.orderingExpr), by.valueExpr))
      case count: Count =>
        val isCounted = count.children.map(IsNotNull(_): Expression).reduceOption(And)
        Some(isCounted.fold[Expression](Literal(1L))(If(_, Literal(1L), Literal(0L))))
      // A sum of zero and -0.0 is 0.0, so floating-point numbers are left out.
      case sum: Sum if isExact(sum.child.dataType) => Some(Cast(sum.child, sum.dataType))
      case average: Average if isWhole(average.child.dataType) =>
        Some(Cast(average.child, average.dataType))
      case _ => None
    }
    value.map { found =>
      val kept = call.filter.fold(found) { condition =>
        val none = if (function.isInstanceOf[Count]) Literal(0L) else Literal(null, found.dataType)
        If(condition, found, none)
      }
      if (kept.dataType == call.dataType) kept else Cast(kept, call.dataType)
    }
  }

  private def hasFloats(kind: DataType): Boolean = kind match {
    case FloatType | DoubleType => true
    case ArrayType(element, _) => hasFloats(element)
    case MapType(key, value, _) => hasFloats(key) || hasFloats(value)
    case struct: StructType => struct.exists(field => hasFloats(field.dataType))
    case other: UserDefinedType[_] => hasFloats(other.sqlType)
    case _ => false
  }

  private def nullIf(condition: Expression, value: Expression): Expression =
    If(condition, Literal(null, value.dataType), value)

  private def isWhole(kind: DataType): Boolean = kind match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  private def isExact(kind: DataType): Boolean = isWhole(kind) || kind.isInstanceOf[DecimalType]
}
