package io.selinger.core

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.optimizer.NormalizeNaNAndZero
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, QueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryRelation
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.execution.datasources.orc.OrcFileFormat
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types._

/**
 * Which expressions can raise an error for a row, so that it matters for which rows they are
 * evaluated.
 */
object RaisedErrors {

  /**
   * Whether an expression gives the same value wherever it is evaluated, and never an error. A list
   * of what is known to, since much can raise errors; nothing random and no subquery is on it.
   */
  def isSafe(expression: Expression): Boolean = expression match {
    case _: Attribute | _: Literal => true
    case cast: Cast => isSafe(cast) && isSafe(cast.child)
    case _: BinaryComparison | _: And | _: Or | _: Not | _: In | _: InSet | _: IsNull |
        _: IsNotNull | _: IsNaN | _: Coalesce | _: If | _: CaseWhen | _: Greatest | _: Least |
        _: DateAdd | _: DateSub | _: DateDiff | _: Year | _: Quarter | _: Month | _: DayOfMonth |
        _: StartsWith | _: EndsWith | _: Contains | _: Substring | _: Lower | _: Upper |
        _: StringTrim | _: Length | _: Concat | _: CreateNamedStruct | _: GetStructField |
        _: Alias | _: KnownNotNull | _: KnownNullable | _: KnownFloatingPointNormalized | _: NormalizeNaNAndZero =>
      expression.children.forall(isSafe)
    // A pattern that ends in an escape raises an error.
    case Like(value, Literal(pattern, _), escape) =>
      isSafe(value) && !String.valueOf(pattern).contains(escape)
    case arithmetic: BinaryArithmetic =>
      isSafe(arithmetic) && arithmetic.children.forall(isSafe)
    case _ => false
  }

  private def isSafe(cast: Cast): Boolean = (cast.child.dataType, cast.dataType) match {
    case (from, to) if from == to => true
    case (_: NumericType, _: NumericType) if Cast.canUpCast(cast.child.dataType, cast.dataType) =>
      true
    case (_: NumericType | BooleanType | DateType, _: StringType) => true
    case (TimestampType | TimestampNTZType, DateType) => true
    case (_: NumericType | _: StringType, _: NumericType) => cast.evalMode != EvalMode.ANSI
    case _ => false
  }

  // Arithmetic on intervals raises errors whatever the mode.
  private def isSafe(arithmetic: BinaryArithmetic): Boolean =
    (arithmetic, arithmetic.dataType) match {
      case (_, _: NumericType) if arithmetic.evalMode != EvalMode.ANSI => true
      case (_: Add | _: Subtract | _: Multiply, FloatType | DoubleType) => true
      // Wide enough for any result, unless the width had to be cut.
      case (_: Add | _: Subtract | _: Multiply, decimal: DecimalType) =>
        decimal.precision < DecimalType.MAX_PRECISION
      case (_: Divide, decimal: DecimalType) =>
        decimal.precision < DecimalType.MAX_PRECISION && isKnownNotZero(arithmetic.right)
      case (_, _: DecimalType) => false
      case (_: Divide | _: Remainder | _: Pmod, _: NumericType) =>
        isKnownNotZero(arithmetic.right)
      case _ => false
    }

  private def isKnownNotZero(divisor: Expression): Boolean = divisor match {
    case Literal(value: Number, _) => value.doubleValue != 0.0
    case Literal(value: Decimal, _) => !value.isZero
    case _ => false
  }

  /**
   * Sums and averages of decimals as Spark computes them of whole numbers: those that have room for any
   * result. A sum has ten digits more than its values, which no group has enough rows to exceed.
   */
  private object OfUnscaled {
    def unapply(result: Expression): Boolean = result match {
      case MakeDecimal(Aggregated(Sum(UnscaledValue(Of(value)), _)), precision, _, _) =>
        precision >= value.precision + 10
      case Cast(
            Divide(Aggregated(Average(UnscaledValue(Of(value)), _)), Literal(by: Double, _), _),
            average: DecimalType,
            _,
            _
          ) =>
        by >= math.pow(10.0, value.scale.toDouble) &&
        average.precision - average.scale >= value.precision - value.scale
      case _ => false
    }
  }

  private object Aggregated {
    def unapply(expression: Expression): Option[AggregateFunction] = expression match {
      case aggregate: AggregateExpression => Some(aggregate.aggregateFunction)
      case _ => None
    }
  }

  private object Of {
    def unapply(value: Expression): Option[DecimalType] = value.dataType match {
      case decimal: DecimalType => Some(decimal)
      case _ => None
    }
  }

  /**
   * Whether running `plan` can raise an error that depends on its rows. A list of operators and sources
   * that are known not to: user code, and files of text, can.
   *
   * @param sumFits whether sums of an expression over a plan are known not to leave their type
   */
  def mayRaise(
      plan: LogicalPlan,
      sumFits: (Expression, LogicalPlan) => Boolean = (_, _) => false
  ): Boolean = plan match {
    case stage: LogicalQueryStage if stage.physicalPlan.isInstanceOf[QueryStageExec] => false
    case stage: LogicalQueryStage => mayRaise(stage.logicalPlan, sumFits)
    case _: LocalRelation | _: Range | _: OneRowRelation => false
    // Filled when it is first read, by the plan that was cached.
    case cached: InMemoryRelation =>
      !cached.cacheBuilder.isCachedColumnBuffersLoaded &&
      mayRaise(cached.cacheBuilder.logicalPlan, sumFits)
    case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
      files.fileFormat match {
        case _: ParquetFileFormat | _: OrcFileFormat => false
        case _ => true
      }
    case _ => operatorMayRaise(plan, sumFits) || plan.children.exists(mayRaise(_, sumFits))
  }

  /**
   * The same of an operator by itself, whatever its inputs are.
   *
   * @param sumFits whether sums of an expression over a plan are known not to leave their type
   */
  def operatorMayRaise(
      operator: LogicalPlan,
      sumFits: (Expression, LogicalPlan) => Boolean = (_, _) => false
  ): Boolean = {
    def holds(function: AggregateFunction) = hasRoom(function) || (function match {
      case Sum(value, _) => operator.children.forall(sumFits(value, _))
      case Average(value, _) => operator.children.forall(sumFits(value, _))
      case _ => false
    })
    operator match {
      case _: Project | _: Filter | _: Join | _: Aggregate | _: Union | _: Distinct | _: Expand |
          _: RepartitionOperation | _: GlobalLimit | _: LocalLimit | _: Sort | _: Window =>
        operator.expressions.exists(each => !isSafe(withoutFilters(computed(each, holds))))
      // The rank itself raises none.
      case WindowGroupLimit(partitionSpec, orderSpec, _, _, _) =>
        !(partitionSpec ++ orderSpec.map(_.child)).forall(isSafe)
      case _ => true
    }
  }

  /** Spark's runtime filters raise no errors of their own. */
  private def withoutFilters(expression: Expression): Expression = expression.transform {
    case _: DynamicPruning | _: BloomFilterMightContain => Literal.TrueLiteral
  }

  /** Without aggregates, ranks and sort orders that cannot raise an error. */
  private def computed(
      expression: Expression,
      holds: AggregateFunction => Boolean
  ): Expression = expression.transformDown {
    case decimal @ OfUnscaled() if aggregatesOf(decimal).forall(hasSafeInputs) =>
      AttributeReference("result", decimal.dataType)()
    case aggregate @ Aggregated(function)
        if holds(function) && aggregatesOf(aggregate).forall(hasSafeInputs) =>
      AttributeReference("result", aggregate.dataType)()
    case order: SortOrder if isSafe(order.child) => order.child
    case WindowExpression(function, specification) if isSafe(function, specification, holds) =>
      AttributeReference("result", function.dataType)()
  }

  /**
   * Whether an aggregate holds its result whatever its inputs are. Sums have ten digits, or a factor of
   * 2³², more than their values, which no group has enough rows to exceed.
   */
  private def hasRoom(function: AggregateFunction): Boolean = function match {
    case _: Count | _: Min | _: Max => true
    // Of double, which does not overflow, and divided by numbers of rows only, which are tested for zero.
    case _: StddevPop | _: StddevSamp | _: VariancePop | _: VarianceSamp | _: Covariance => true
    case Sum(UnscaledValue(Of(value)), _) => value.precision + 10 <= Decimal.MAX_LONG_DIGITS
    case Sum(value, context) if context.evalMode != EvalMode.ANSI =>
      value.dataType.isInstanceOf[NumericType]
    case Sum(value, _) =>
      (value.dataType, function.dataType) match {
        case (from: DecimalType, to: DecimalType) => to.precision >= from.precision + 10
        case (ByteType | ShortType | IntegerType | FloatType | DoubleType, _) => true
        case _ => false
      }
    case Average(Of(value), _) => value.precision + 10 <= DecimalType.MAX_PRECISION
    case Average(value, _) => value.dataType.isInstanceOf[NumericType]
    case _ => false
  }

  // Frames of values compute where they begin and end.
  private def isSafe(
      function: Expression,
      specification: WindowSpecDefinition,
      holds: AggregateFunction => Boolean
  ): Boolean = {
    val frameIsSafe = specification.frameSpecification match {
      case SpecifiedWindowFrame(_, lower, upper) =>
        lower.isInstanceOf[SpecialFrameBoundary] && upper.isInstanceOf[SpecialFrameBoundary]
      case _ => false
    }
    val functionIsSafe = function match {
      case _: RowNumber | _: RankLike => true
      case other => isSafe(computed(other, holds))
    }
    functionIsSafe && frameIsSafe &&
    (specification.partitionSpec ++ specification.orderSpec.map(_.child)).forall(isSafe)
  }

  private def aggregatesOf(expression: Expression): Seq[AggregateExpression] =
    expression.collect { case aggregate: AggregateExpression => aggregate }

  private def hasSafeInputs(aggregate: AggregateExpression): Boolean =
    aggregate.filter.forall(isSafe) && aggregate.aggregateFunction.children.forall(isSafeInput)

  /** The same of what an aggregate function takes: Spark computes with decimals as whole numbers. */
  def isSafeInput(input: Expression): Boolean = input match {
    case UnscaledValue(value) => isSafe(value)
    case other => isSafe(other)
  }

  /** Whether computing one column of a plan can raise an error, wherever below it is computed. */
  def columnMayRaise(column: Attribute, plan: LogicalPlan): Boolean = {
    def anyOf(columns: Iterable[Attribute], child: LogicalPlan) =
      columns.exists(columnMayRaise(_, child))
    plan match {
      case Project(list, child) =>
        !list.filter(_.exprId == column.exprId).forall(result =>
          isSafe(result) && !anyOf(result.references, child)
        )
      case aggregate: Aggregate =>
        operatorMayRaise(aggregate) ||
        aggregate.aggregateExpressions.filter(_.exprId == column.exprId).exists(result =>
          anyOf(result.references, aggregate.child)
        )
      case union: Union =>
        val place = union.output.indexWhere(_.exprId == column.exprId)
        union.children.exists(child => columnMayRaise(child.output(place), child))
      case leaf: LeafNode => mayRaise(leaf)
      case _ if plan.children.exists(_.outputSet.contains(column)) =>
        plan.children.filter(_.outputSet.contains(column)).exists(columnMayRaise(column, _))
      // Computed here.
      case _ =>
        operatorMayRaise(plan) || plan.children.exists(child => anyOf(plan.references, child))
    }
  }

  /**
   * Whether a column of `plan` is computed by what can raise an error, just before something uses
   * it. A join that streams such rows computes the column only for those that find a partner, one
   * that shuffles them, or builds a table of them, for all: so its operator, and the order of joins,
   * decide whether the query fails.
   */
  def computesUnsafeColumns(plan: LogicalPlan): Boolean =
    computesUnsafeColumns(plan, plan.outputSet)

  private def computesUnsafeColumns(plan: LogicalPlan, needed: AttributeSet): Boolean = plan match {
    case Project(list, child) =>
      val used = list.filter(needed.contains)
      !used.forall(isSafe) || computesUnsafeColumns(child, AttributeSet(used.flatMap(_.references)))
    case Filter(_, child) => computesUnsafeColumns(child, needed)
    case Join(left, right, _, _, _) =>
      computesUnsafeColumns(left, needed) || computesUnsafeColumns(right, needed)
    // Its input is used up by the aggregation; what its results are computed with is not.
    case aggregate: Aggregate =>
      aggregate.aggregateExpressions.filter(needed.contains).exists { result =>
        !isSafe(result.transform {
          case decimal @ OfUnscaled() => AttributeReference("result", decimal.dataType)()
          case function: AggregateExpression =>
            AttributeReference("result", function.dataType)(function.resultId)
        })
      }
    case stage: LogicalQueryStage =>
      stage.physicalPlan match {
        case _: QueryStageExec => false
        case _ => computesUnsafeColumns(stage.logicalPlan, needed)
      }
    // These keep whole rows.
    case _: Sort | _: Window | _: RepartitionOperation | _: RebalancePartitions | _: Distinct =>
      false
    case other => other.children.exists(computesUnsafeColumns(_))
  }
}
