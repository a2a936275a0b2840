package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * A region of inner joins in which window functions take the place of an aggregation of its own rows.
 *
 * @param beside relations that are joined below the windows. They are compared only with columns that are
 *   the same in a whole partition, so each row of a partition is repeated equally often
 */
private[rule] final case class AggregateWindow(found: RepeatedRows, beside: Seq[LogicalPlan]) {
  import found.{aggregate, region}

  private val specification = WindowSpecDefinition(
    found.keys,
    Nil,
    SpecifiedWindowFrame(RowFrame, UnboundedPreceding, UnboundedFollowing)
  )

  private val functions: Seq[(AggregateExpression, Alias)] =
    AggregateWindow.functionsOf(aggregate).map { function =>
      val over = found.over(function) match {
        case made: AggregateExpression => made
        case other => throw new IllegalStateException(s"no aggregate function: $other")
      }
      function -> Alias(WindowExpression(over, specification), "selinger_window")()
    }

  /** Columns of the groups, over columns of the other relations and of the windows. */
  private val results: AttributeMap[Expression] =
    AttributeMap(aggregate.aggregateExpressions.map { result =>
      val value = ExpressionSets.unnamed(result).transformDown {
        case function: AggregateExpression =>
          functions
            .collectFirst {
              case (known, window) if ExpressionSets.isSame(known, function) => window
            }
            .map(_.toAttribute)
            .getOrElse(function)
      }
      result.toAttribute -> found.over(value)
    })

  private def over(expression: Expression): Expression =
    expression.transformUp { case column: Attribute => results.getOrElse(column, column) }

  private val conditions: Seq[Expression] =
    ExpressionSets.distinct(region.conditions.map(over(_) match {
      case EqualTo(a: Attribute, b: Attribute) if a.exprId == b.exprId => IsNotNull(a)
      case other => other
    }))

  private val columns: Seq[NamedExpression] = region.columns.map { case (column, value) =>
    over(value) match {
      case same: Attribute if same.exprId == column.exprId => same
      case other =>
        Alias(other, column.name)(
          column.exprId,
          column.qualifier,
          explicitMetadata = Some(column.metadata)
        )
    }
  }

  /** The same in all rows of a partition: keys, and columns that the block requires to be equal to them. */
  private val ofPartition: AttributeSet = {
    val equal = EqualColumns.by(found.conditions)
    AttributeSet(found.own.flatMap(_.output).filter(column =>
      found.keys.exists(equal.areEqual(_, column))
    ))
  }

  /** Conditions that keep or drop the rows of a partition all together. */
  private val ofWholePartitions: Seq[Expression] = {
    val known = AttributeSet(beside.flatMap(_.output)) ++ ofPartition
    conditions.filter(condition =>
      condition.references.nonEmpty && condition.references.subsetOf(known)
    )
  }

  private val below: Seq[Expression] =
    ExpressionSets.distinct(found.conditions ++ ofWholePartitions)

  private val above: Seq[Expression] = conditions.filterNot(ExpressionSets.has(below, _))

  private val needed: AttributeSet =
    AttributeSet((above ++ columns).flatMap(_.references)) ++
      AttributeSet(functions.flatMap(_._2.references)) ++ AttributeSet(found.keys)

  /** Another relation that may be joined below the windows, since it is compared with a partition as a whole. */
  def mayTake(other: LogicalPlan): Boolean = !beside.exists(_ eq other) && {
    val known = AttributeSet(beside.flatMap(_.output)) ++ ofPartition
    conditions.exists {
      case EqualTo(a, b) =>
        def meets(one: Expression, two: Expression) =
          one.references.nonEmpty && two.references.nonEmpty &&
            one.references.subsetOf(known) && two.references.subsetOf(other.outputSet)
        meets(a, b) || meets(b, a)
      case _ => false
    }
  }

  def taking(other: LogicalPlan): AggregateWindow = copy(beside = beside :+ other)

  /** What the windows read. */
  lazy val rows: LogicalPlan = TidyPlan(input)

  private def input: LogicalPlan = {
    val inside = found.own ++ beside
    val joined = InnerRegion.joined(region.relations.filter(one => inside.exists(_ eq one)), below)
    Project(joined.output.filter(needed.contains), joined)
  }

  private def windows(child: LogicalPlan): Window =
    Window(functions.map(_._2), found.keys, Nil, child)

  def isOwn(other: Window): Boolean = {
    val own = functions.map(_._2.exprId)
    other.windowExpressions.exists(result => own.contains(result.exprId))
  }

  /** The windows alone. */
  lazy val window: LogicalPlan = windows(rows)

  /** The whole region, with the columns that it had. */
  lazy val plan: LogicalPlan = {
    val outside = found.others.filterNot(other => beside.exists(_ eq other))
    TidyPlan(Project(columns, InnerRegion.joined(windows(input) +: outside, above)))
  }

  /** The aggregation of the rows that have a partner in `beside`, as another rule would plan it. */
  lazy val reducedAggregate: Option[LogicalPlan] =
    Option.when(beside.nonEmpty) {
      val names = found.columns.toSeq.map { case (own, column) => column -> own }
      val inBlock = AttributeMap(names)
      val besideColumns = AttributeSet(beside.flatMap(_.output))
      val (alone, compared) = ofWholePartitions
        .filter(_.references.exists(besideColumns.contains))
        .partition(_.references.subsetOf(besideColumns))
      val right = InnerRegion.joined(beside, alone)
      val condition = compared.map(_.transform { case column: Attribute =>
        inBlock.getOrElse(column, column)
      })
      val left = InnerRegion.joined(found.block.relations, found.block.conditions)
      val join = Join(
        left,
        Project(
          right.output.filter(column => condition.exists(_.references.contains(column))),
          right
        ),
        LeftSemi,
        condition.reduceOption(And(_, _)),
        JoinHint.NONE
      )
      def inside(expression: Expression) = found.block.over(expression)
      val list = aggregate.aggregateExpressions.map { result =>
        AggregatePush.named(inside(result) match {
          case named: NamedExpression => named
          case other => Alias(other, result.name)(result.exprId)
        })
      }
      TidyPlan(Aggregate(aggregate.groupingExpressions.map(inside), list, join))
    }
}

private[rule] object AggregateWindow {

  def functionsOf(aggregate: Aggregate): Seq[AggregateExpression] =
    ExpressionSets.distinct(aggregate.aggregateExpressions.flatMap(_.collect {
      case function: AggregateExpression => function
    })).collect { case function: AggregateExpression => function }
}
