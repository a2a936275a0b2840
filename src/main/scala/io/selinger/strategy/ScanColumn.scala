package io.selinger.strategy

import io.selinger.core.RaisedErrors
import io.selinger.exec.decimals.InLongs
import org.apache.spark.sql.catalyst.expressions.{
  Alias,
  Attribute,
  BloomFilterMightContain,
  Cast,
  DynamicPruning,
  Expression,
  Literal,
  NamedExpression
}
import org.apache.spark.sql.catalyst.expressions.aggregate.Partial
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.plans.{
  ExistenceJoin,
  InnerLike,
  JoinType,
  LeftAnti,
  LeftOuter,
  LeftSemi,
  RightOuter
}
import org.apache.spark.sql.execution.{
  FileSourceScanExec,
  FilterExec,
  ProjectExec,
  SortExec,
  SparkPlan,
  UnionExec
}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.joins.BroadcastHashJoinExec
import org.apache.spark.sql.types.{ByteType, IntegerType, LongType, ShortType}

/**
 * A column of a file scan whose values reach an operator above in the same tasks, such that rows with
 * other values can be left out of the scan without a change to those that remain.
 *
 * @param mayRaise whether an expression in between can raise an error for rows that are left out
 */
private[strategy] final case class ScanColumn(
    scan: FileSourceScanExec,
    column: Attribute,
    mayRaise: Boolean
)

/** The two sides of a broadcast hash join: Spark keeps which is which to itself. */
private[strategy] final class JoinSidesByUse(join: BroadcastHashJoinExec) {
  private val buildsLeft = join.buildSide == BuildLeft
  val (build, probe) = if (buildsLeft) (join.left, join.right) else (join.right, join.left)
  val (buildKeys, probeKeys) =
    if (buildsLeft) (join.leftKeys, join.rightKeys) else (join.rightKeys, join.leftKeys)
}

private[strategy] object ScanColumn {

  /** Where the values of `value` are read from: several scans below a UNION ALL, none if computed. */
  def below(plan: SparkPlan, value: Expression): Seq[ScanColumn] = value match {
    case column: Attribute => below(plan, column)
    // Whole numbers stay what they are.
    case Cast(input, to, _, _) if isWhole(input) && Cast.canUpCast(input.dataType, to) =>
      below(plan, input)
    case _ => Nil
  }

  private def isWhole(value: Expression): Boolean = value.dataType match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  private def below(plan: SparkPlan, column: Attribute): Seq[ScanColumn] = plan match {
    case scan: FileSourceScanExec =>
      scan.output
        .find(_.exprId == column.exprId)
        .filterNot(isPartitioned(scan, _))
        .map(ScanColumn(scan, _, mayRaise = false))
        .toSeq
    case FilterExec(condition, child) => through(Seq(condition), below(child, column))
    // One that was moved below the join: as written, only rows with a partner are grouped.
    case ProjectExec(_, partial: BaseAggregateExec) if isPerTask(partial) =>
      sourceOf(column, partial.groupingExpressions).toSeq.flatMap(below(partial.child, _))
    case ProjectExec(list, child) =>
      through(list, sourceOf(column, list).toSeq.flatMap(below(child, _)))
    case join: BroadcastHashJoinExec if keepsRowsApart(join.joinType) =>
      val sides = new JoinSidesByUse(join)
      through(sides.probeKeys ++ join.condition, below(sides.probe, column))
    case SortExec(order, false, child, _) =>
      through(order.map(_.child), below(child, column))
    case union: UnionExec =>
      val place = union.output.indexWhere(_.exprId == column.exprId)
      if (place < 0) Nil
      else union.children.flatMap(child => below(child, child.output(place)))
    case _ => Nil
  }

  /** Values of partition columns come from folders, whatever a file has under the same name. */
  private def isPartitioned(scan: FileSourceScanExec, column: Attribute): Boolean =
    scan.relation.partitionSchema.fieldNames.exists(_.equalsIgnoreCase(column.name))

  /** What a column is, in terms of the input. */
  private def sourceOf(column: Attribute, list: Seq[NamedExpression]): Option[Expression] =
    list.find(_.exprId == column.exprId).map {
      case alias: Alias => alias.child
      case same => same
    }

  private def isPerTask(aggregate: BaseAggregateExec): Boolean =
    aggregate.aggregateExpressions.nonEmpty &&
      aggregate.aggregateExpressions.forall(_.mode == Partial)

  private def through(expressions: Seq[Expression], found: Seq[ScanColumn]): Seq[ScanColumn] =
    if (found.isEmpty || expressions.forall(isSafe)) found
    else found.map(_.copy(mayRaise = true))

  /** Whether an expression cannot raise an error for a row that is left out. */
  def isSafe(expression: Expression): Boolean =
    RaisedErrors.isSafeInput(expression.transform {
      // Spark's runtime filters raise no errors of their own.
      case _: DynamicPruning | _: BloomFilterMightContain => Literal.TrueLiteral
      case inLongs: InLongs if !inLongs.raises && inLongs.inputs.forall(isSafe) =>
        Literal(null, inLongs.dataType)
    })

  /** Joins in which what becomes of one streamed row does not depend on the others. */
  private def keepsRowsApart(joinType: JoinType): Boolean = joinType match {
    case _: InnerLike | LeftOuter | RightOuter | LeftSemi | LeftAnti | _: ExistenceJoin => true
    case _ => false
  }
}
