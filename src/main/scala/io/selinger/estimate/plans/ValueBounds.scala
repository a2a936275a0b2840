package io.selinger.estimate.plans

import io.selinger.core.{PassKey, PlanningPass}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.{ColumnStatistics, NumericAxis}
import io.selinger.stats.files.FooterReader
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.relations.FileRelation
import java.math.MathContext
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage
import org.apache.spark.sql.types._
import scala.collection.concurrent.TrieMap

/**
 * What whole numbers and decimals, days and microseconds cannot exceed in the rows of a plan: by their
 * types, by the footers of all files that a scan reads, which Spark trusts as well when it skips row
 * groups, and by how they are computed from such columns. These are proofs, not estimates: a change of the plan may rely on them, as long
 * as nobody overwrites a file in place while a query is planned or runs.
 */
object ValueBounds {

  /** It is assumed that no group has more rows. */
  val mostRows: BigDecimal = exact(BigInt(1) << 32)

  private val columns =
    new PassKey[TrieMap[ExprId, Option[BigDecimal]]]("what columns cannot exceed")

  // Footers are kept as doubles.
  private val margin = exact("1.000000001")

  /** What absolute values do not exceed; none for other types. */
  def largest(value: Expression, plan: LogicalPlan): Option[BigDecimal] =
    ofType(value.dataType).map { most =>
      // Arithmetic that leaves its type wraps around, or ends in null or an error.
      computed(value, plan).map(_ + unit(value.dataType)).fold(most)(_.min(most))
    }

  private def computed(value: Expression, plan: LogicalPlan): Option[BigDecimal] = {
    def all(values: Seq[Expression]) = {
      val known = values.map(largest(_, plan))
      if (known.exists(_.isEmpty)) None else known.flatten.maxOption
    }
    def both(left: Expression, right: Expression)(f: (BigDecimal, BigDecimal) => BigDecimal) =
      for (l <- largest(left, plan); r <- largest(right, plan)) yield f(l, r)
    value match {
      case column: Attribute => ofColumn(column, plan)
      case Literal(null, _) => Some(exact(0))
      case Literal(number: Decimal, _) => Some(exact(number.toJavaBigDecimal).abs)
      case Literal(number: Number, kind) if NumericAxis.isWhole(kind) =>
        Some(exact(number.longValue).abs)
      case Coalesce(values) => all(values)
      case Least(values) => all(values)
      case Greatest(values) => all(values)
      case If(_, one, other) => all(Seq(one, other))
      case CaseWhen(branches, other) => all(branches.map(_._2) ++ other)
      case KnownNotNull(child) => largest(child, plan)
      case UnaryMinus(child, _) => largest(child, plan)
      case Abs(child, _) => largest(child, plan)
      case CheckOverflow(child, _, _) => largest(child, plan)
      case Cast(child, _, _, _) if child.dataType == BooleanType => Some(exact(1))
      // Between days, microseconds and numbers a cast changes the unit.
      case Cast(child, to, _, _) if isTime(child.dataType) || isTime(to) => None
      case Cast(child, _, _, _) => largest(child, plan)
      case UnscaledValue(child) => largest(child, plan).map(_ * power(scaleOf(child)))
      case MakeDecimal(child, _, scale, _) => largest(child, plan).map(over(_, power(scale)))
      case Add(left, right, _) => both(left, right)(_ + _)
      case Subtract(left, right, _) => both(left, right)(_ + _)
      case Multiply(left, right, _) => both(left, right)(_ * _)
      case AggregateExpression(function, _, _, _, _) => ofGroup(function, plan)
      case _ => None
    }
  }

  private def ofGroup(function: AggregateFunction, plan: LogicalPlan): Option[BigDecimal] =
    function match {
      case Min(value) => largest(value, plan)
      case Max(value) => largest(value, plan)
      case First(value, _) => largest(value, plan)
      case Last(value, _) => largest(value, plan)
      case AnyValue(value, _) => largest(value, plan)
      case Average(value, _) => largest(value, plan)
      case Sum(value, _) => largest(value, plan).map(_ * mostRows)
      case _: Count => Some(mostRows)
      case _ => None
    }

  // A column may be read many times, in each of many projections.
  private def ofColumn(column: Attribute, plan: LogicalPlan): Option[BigDecimal] =
    PlanningPass.current
      .memo(columns, plan)(TrieMap.empty[ExprId, Option[BigDecimal]])
      .getOrElseUpdate(column.exprId, traced(column, plan))

  private def traced(column: Attribute, plan: LogicalPlan): Option[BigDecimal] = plan match {
    case Project(list, child) => ofResult(column, list, child)
    case aggregate: Aggregate =>
      ofResult(column, aggregate.aggregateExpressions, aggregate.child)
    case union: Union =>
      val place = union.output.indexWhere(_.exprId == column.exprId)
      greatest(union.children.map(child => child.output.lift(place).flatMap(largest(_, child))))
    case Expand(projections, output, child) =>
      val place = output.indexWhere(_.exprId == column.exprId)
      greatest(projections.map(_.lift(place).flatMap(largest(_, child))))
    case Filter(condition, leaf: LeafNode) =>
      ofLeaf(column, leaf, Selectivity.conjuncts(condition))
    case leaf: LeafNode => ofLeaf(column, leaf, Nil)
    // A column of the same id has the values of the child, or is null.
    case _: Filter | _: Join | _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset | _: Distinct |
        _: RepartitionOperation | _: RebalancePartitions | _: Window | _: WindowGroupLimit |
        _: Generate | _: Sample | _: SubqueryAlias =>
      greatest(plan.children.filter(_.outputSet.contains(column)).map(largest(column, _)))
    case _ => None
  }

  private def ofResult(
      column: Attribute,
      results: Seq[NamedExpression],
      child: LogicalPlan
  ): Option[BigDecimal] = greatest(results.filter(_.exprId == column.exprId).map {
    case Alias(value, _) => largest(value, child)
    case other => largest(other, child)
  })

  private def greatest(found: Seq[Option[BigDecimal]]): Option[BigDecimal] =
    if (found.exists(_.isEmpty)) None else found.flatten.maxOption

  private def ofLeaf(
      column: Attribute,
      leaf: LeafNode,
      predicates: Seq[Expression]
  ): Option[BigDecimal] = leaf match {
    case stage: LogicalQueryStage => largest(column, stage.logicalPlan)
    case range: Range => Some(exact(range.start).abs.max(exact(range.end).abs))
    case FileRelation(relation) => ofFiles(column, relation, predicates)
    case _ => None
  }

  private def ofFiles(
      column: Attribute,
      relation: FileRelation,
      predicates: Seq[Expression]
  ): Option[BigDecimal] =
    for {
      source <- relation.plan.output.find(_.exprId == column.exprId)
      files <- ReadFooterStatistics.ofAllFiles(relation, predicates)
      most <-
        if (files.rows.value == 0.0) Some(exact(0))
        else files.columns.get(FooterReader.columnName(source.name)).flatMap(largest(column, _))
    } yield most

  private def largest(column: Attribute, known: ColumnStatistics): Option[BigDecimal] =
    for {
      low <- known.min
      high <- known.max
      // Read as whole numbers, decimals and times would be so many of their units.
      if known.isWhole || !NumericAxis.isWhole(column.dataType)
      most = low.abs.max(high.abs)
      if !most.isInfinite
    } yield exact(new java.math.BigDecimal(most)) * margin

  private def isTime(dataType: DataType): Boolean = dataType match {
    case DateType | TimestampType | TimestampNTZType => true
    case _ => false
  }

  private def ofType(dataType: DataType): Option[BigDecimal] = dataType match {
    case whole if NumericAxis.isWhole(whole) =>
      Some(exact(BigInt(1) << (8 * whole.defaultSize - 1)))
    case time @ (DateType | TimestampType | TimestampNTZType) =>
      Some(exact(BigInt(1) << (8 * time.defaultSize - 1)))
    case decimal: DecimalType => Some(power(decimal.precision - decimal.scale))
    case _ => None
  }

  /** By how much the rounding of a result can make it larger. */
  private def unit(dataType: DataType): BigDecimal = dataType match {
    case decimal: DecimalType => over(exact(1), power(decimal.scale))
    case _ => exact(0)
  }

  private def scaleOf(value: Expression): Int = value.dataType match {
    case decimal: DecimalType => decimal.scale
    case _ => 0
  }

  /** Exact as well: the divisor is a power of ten. */
  private def over(value: BigDecimal, divisor: BigDecimal): BigDecimal =
    exact(value.bigDecimal.divide(divisor.bigDecimal))

  private[plans] def power(exponent: Int): BigDecimal =
    exact(java.math.BigDecimal.ONE.scaleByPowerOfTen(exponent))

  private def exact(value: java.math.BigDecimal): BigDecimal =
    new BigDecimal(value, MathContext.UNLIMITED)
  private def exact(value: BigInt): BigDecimal = exact(new java.math.BigDecimal(value.bigInteger))
  private def exact(value: Long): BigDecimal = exact(java.math.BigDecimal.valueOf(value))
  private def exact(value: String): BigDecimal = exact(new java.math.BigDecimal(value))
}
