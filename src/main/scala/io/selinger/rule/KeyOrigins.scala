package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Follows a key, an expression over the output of an operator, down to the operator's inputs. It follows
 * only keys that have the same value wherever they are evaluated, and never raise an error.
 */
private[rule] object KeyOrigins {

  /** Over the input of a projection. */
  def below(list: Seq[NamedExpression], key: Expression): Option[Expression] = {
    val values = AttributeMap(list.collect { case alias: Alias =>
      alias.toAttribute -> alias.child
    })
    over(values, key)
  }

  // A key that is computed step by step, of one that it uses twice in each, would grow beyond all bounds.
  private val mostNodes = 100

  private def over(values: AttributeMap[Expression], key: Expression): Option[Expression] = {
    // From below, since what takes the place of a column may have a column of the same id.
    val below = key.transformUp { case column: Attribute => values.getOrElse(column, column) }
    val isShort = below.collect { case node => node }.size <= mostNodes
    Option.when(isShort && RaisedErrors.isSafe(below))(below)
  }

  /** Over the input of an aggregation, for keys of columns that it groups by, whose groups they tell apart. */
  def belowGroups(aggregate: Aggregate, key: Expression): Option[Expression] = {
    def isGrouped(column: Attribute) =
      AggregatePush.isComparable(column) && aggregate.aggregateExpressions.exists(result =>
        result.exprId == column.exprId &&
          ExpressionSets.has(aggregate.groupingExpressions, ExpressionSets.unnamed(result))
      )
    if (key.references.nonEmpty && key.references.forall(isGrouped))
      below(aggregate.aggregateExpressions, key)
    else None
  }

  /** The same for the partitions of window functions, or of a filter of their ranks. */
  def belowPartitions(partitionSpec: Seq[Expression], key: Expression): Option[Expression] = {
    def isPartitioned(column: Attribute) =
      AggregatePush.isComparable(column) && ExpressionSets.has(partitionSpec, column)
    Option.when(key.references.nonEmpty && key.references.forall(isPartitioned))(key)
  }

  /**
   * Over the input of the copies of rows that GROUPING SETS make, where a column of a key is null in some
   * copies: these match nothing.
   */
  def belowCopies(expand: Expand, key: Expression): Option[Expression] = {
    val origins = key.references.toSeq.map { column =>
      val place = expand.output.indexWhere(_.exprId == column.exprId)
      expand.projections.map(_(place)).filterNot(isNull).distinctBy(_.canonicalized) match {
        case Seq(one) => Some(column -> one)
        case _ => None
      }
    }
    ExpressionSets
      .all(origins)
      .filter(_ => isNullOfNull(key))
      .flatMap(known => over(AttributeMap(known), key))
  }

  private def isNull(expression: Expression): Boolean = expression match {
    case Literal(null, _) => true
    case _ => false
  }

  /** Over one branch of a union, whose columns stand in the same places. */
  def inBranch(union: Union, branch: LogicalPlan, key: Expression): Expression = {
    val columns = AttributeMap(union.output.zip(branch.output))
    key.transform { case column: Attribute => columns.getOrElse(column, column) }
  }

  /**
   * Over one side of a join: the key itself, or the column of that side that an inner join, or the left
   * side of a semi join, requires to be equal to it.
   */
  def onSide(join: Join, left: Boolean, key: Expression): Option[Expression] = {
    val side = if (left) join.left else join.right
    def isThere(expression: Expression) =
      expression.references.nonEmpty && expression.references.subsetOf(side.outputSet)
    lazy val equal = key match {
      case column: Attribute
          if equates(join.joinType, left) && AggregatePush.isComparable(column) =>
        join.condition.toSeq.flatMap(Selectivity.conjuncts).collectFirst {
          case EqualTo(a: Attribute, b: Attribute) if isSame(a, column) && isEqual(b, column) => b
          case EqualTo(b: Attribute, a: Attribute) if isSame(a, column) && isEqual(b, column) => b
        }
      case _ => None
    }
    def isSame(one: Attribute, other: Attribute) = one.exprId == other.exprId
    def isEqual(one: Attribute, other: Attribute) = one.dataType == other.dataType && isThere(one)
    if (repeatsColumns(join)) None
    else if (isThere(key) && (left || returnsRight(join.joinType)))
      Option.when(!suppliesNulls(join.joinType, left) || isNullOfNull(key))(key)
    else equal
  }

  /** Whether both sides have a column of the same id, so that it is not clear which one is read. */
  def repeatsColumns(join: Join): Boolean =
    join.left.outputSet.intersect(join.right.outputSet).nonEmpty

  /** Rows that an outer join makes up have nulls, which no part of that side may have. */
  private def suppliesNulls(joinType: JoinType, left: Boolean): Boolean = joinType match {
    case _: InnerLike | LeftSemi | LeftAnti | _: ExistenceJoin => false
    case LeftOuter => !left
    case RightOuter => left
    case FullOuter => true
    // Joins of scalar subqueries, of which Spark has a type of its own.
    case _ => !left
  }

  /** Whether a key is null for such a row, so that it matches nothing. */
  private def isNullOfNull(key: Expression): Boolean = key match {
    case _: Attribute => true
    case cast: Cast => isNullOfNull(cast.child)
    case _ => false
  }

  private def returnsRight(joinType: JoinType): Boolean = joinType match {
    case _: InnerLike | LeftOuter | RightOuter | FullOuter => true
    case _ => false
  }

  /** Whether rows of the join are equal to some row of that side in the columns that are compared. */
  private def equates(joinType: JoinType, left: Boolean): Boolean = joinType match {
    case _: InnerLike => true
    case LeftSemi => !left
    case _ => false
  }
}
