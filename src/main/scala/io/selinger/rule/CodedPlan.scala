package io.selinger.rule

import io.selinger.core.CodedText
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag

/**
 * A plan that has taken the place of another one, with codes instead of some of its texts.
 *
 * @param output of the other one
 * @param owed of its columns that `plan` does not have: how they are computed from those of `plan`
 */
private[rule] final case class CodedPlan(
    plan: LogicalPlan,
    output: Seq[Attribute],
    owed: AttributeMap[Expression]
) {

  /** With the columns of the plan that was there before. */
  def decoded: LogicalPlan =
    if (owed.isEmpty) plan
    else Project(
      output.map(column => owed.get(column).fold(column: NamedExpression)(as(column, _))),
      plan
    )

  private def as(column: Attribute, value: Expression): NamedExpression =
    Alias(value, column.name)(column.exprId, column.qualifier, Some(column.metadata))

  private val codes: AttributeMap[Attribute] =
    AttributeMap(owed.collect { case (text, CodedText(_, code: Attribute)) => text -> code }.toSeq)

  /** Whether codes are all that is owed. What is computed of them may be random, so it is not put off. */
  def owesCodes: Boolean = owed.nonEmpty && codes.size == owed.size

  private def owes(expression: Expression): Boolean = expression.references.exists(owed.contains)

  /** With codes instead of texts, where both compare alike. */
  private def coded[A <: Expression](expression: A): A =
    expression.transform { case text: Attribute => codes.getOrElse(text, text) }.asInstanceOf[A]

  /** An operator above the plan, over the codes as far as it only compares them. */
  def under(operator: LogicalPlan): Option[CodedPlan] = operator match {
    case Project(list, _) => Some(projected(list))
    case filter @ Filter(condition, _) =>
      val tested = condition.transform {
        case IsNotNull(text: Attribute) if codes.contains(text) => IsNotNull(codes(text))
        case IsNull(text: Attribute) if codes.contains(text) => IsNull(codes(text))
      }
      Option.unless(owes(tested))(on(filter.copy(tested, plan)))
    case sort: Sort if areCoded(sort.order) =>
      Some(on(sort.copy(sort.order.map(coded), child = plan)))
    // Spark plans a sort with its limit and offset together; without a sort it stops early, at the root only.
    case limit: GlobalLimit if isSorted(plan) => Some(on(limit.copy(child = plan)))
    case limit: LocalLimit if isSorted(plan) => Some(on(limit.copy(child = plan)))
    case offset: Offset if isSorted(plan) => Some(on(offset.copy(child = plan)))
    case limit: WindowGroupLimit if areCoded(limit.partitionSpec ++ limit.orderSpec) =>
      Some(on(limit.copy(
        limit.partitionSpec.map(coded),
        limit.orderSpec.map(coded),
        coded(limit.rankLikeFunction),
        child = plan
      )))
    case window: Window
        if areCoded(window.partitionSpec ++ window.orderSpec) &&
          window.windowExpressions.forall(onlyRanks) =>
      Some(on(window.copy(
        window.windowExpressions.map(coded),
        window.partitionSpec.map(coded),
        window.orderSpec.map(coded),
        child = plan
      )))
    case _ => None
  }

  private def isSorted(rows: LogicalPlan): Boolean = rows match {
    case Sort(_, global, _, _) => global
    case Project(_, child) => isSorted(child)
    case GlobalLimit(_, child) => isSorted(child)
    case LocalLimit(_, child) => isSorted(child)
    case Offset(_, child) => isSorted(child)
    case _ => false
  }

  /** Whether texts are compared as they are, without being computed with. */
  private def areCoded(specification: Seq[Expression]): Boolean = specification.forall {
    case order: SortOrder => (order.child +: order.sameOrderExpressions.toSeq).forall(isCode)
    case other => isCode(other)
  }

  private def isCode(expression: Expression): Boolean = expression match {
    case _: Attribute => true
    case other => !owes(other)
  }

  /** Whether the values that window functions compute depend on texts by their order only. */
  private def onlyRanks(result: NamedExpression): Boolean =
    result.collect { case WindowExpression(function, window) => function -> window }.forall {
      case (_: RankLike, window) => areCoded(window.partitionSpec ++ window.orderSpec)
      case (function, window) =>
        !owes(function) && areCoded(window.partitionSpec ++ window.orderSpec)
    }

  private def on(operator: LogicalPlan): CodedPlan =
    CodedPlan(operator, output ++ operator.output.filterNot(plan.outputSet.contains), owed)

  /** Texts that are only passed on stay codes; others are computed here. */
  private def projected(list: Seq[NamedExpression]): CodedPlan = {
    val passed = list.flatMap { result =>
      ExpressionSets.unnamed(result) match {
        case text: Attribute => owed.get(text).map(result.toAttribute -> _)
        case _ => None
      }
    }
    val owedAbove = AttributeMap(passed)
    val results = list.filterNot(result => owedAbove.contains(result.toAttribute)).map(over)
    val columns = passed.flatMap(_._2.references).distinctBy(_.exprId)
    CodedPlan(Project(results ++ columns, plan), list.map(_.toAttribute), owedAbove)
  }

  private def over(result: NamedExpression): NamedExpression =
    if (!owes(result)) result
    else
      result
        .transform { case column: Attribute => owed.getOrElse(column, column) }
        .asInstanceOf[NamedExpression]
}

private[rule] object CodedPlan {

  private val done = TreeNodeTag[Unit]("selinger.groupedByCodes")

  /** Whether an aggregation has been made by [[grouped]]: the texts that it has left are to stay. */
  def isGrouped(aggregate: Aggregate): Boolean = aggregate.getTagValue(done).isDefined

  /** The plan itself, or the same with other inputs. */
  def unchanged(plan: LogicalPlan): CodedPlan = CodedPlan(plan, plan.output, AttributeMap.empty)

  /**
   * An aggregation by codes, marked as such.
   *
   * @param input codes of some of the texts that it groups by
   */
  def grouped(aggregate: Aggregate, input: CodedInput): CodedPlan = {
    def codeOf(key: Expression) =
      input.of.collectFirst { case (text, code) if text.semanticEquals(key) => code }
    val keys = aggregate.groupingExpressions.map(key => codeOf(key).fold(key)(_.column))
    def isCoded(expression: Expression) = expression.exists(codeOf(_).isDefined)
    val (texts, others) = aggregate.aggregateExpressions.partition(isCoded)
    // What texts are computed with needs all else of the groups below.
    val values = texts.map { result =>
      result -> valueOf(ExpressionSets.unnamed(result), aggregate.groupingExpressions, codeOf)
    }
    val needed = values.flatMap(_._2._2)
    val results = (others ++ needed).distinctBy(_.exprId)
    val made = Aggregate(keys, results, input.plan, aggregate.hint)
    made.copyTagsFrom(aggregate)
    made.setTagValue(done, ())
    CodedPlan(
      made,
      aggregate.output,
      AttributeMap(values.map { case (result, (value, _)) => result.toAttribute -> value })
    )
  }

  /** A result over the columns of the groups, and these columns. */
  private def valueOf(
      result: Expression,
      keys: Seq[Expression],
      codeOf: Expression => Option[Code]
  ): (Expression, Seq[NamedExpression]) = result match {
    case text if codeOf(text).isDefined =>
      val code = codeOf(text).get
      (code.text, Seq(code.column))
    case function: AggregateExpression =>
      val column = Alias(function, function.aggregateFunction.prettyName)()
      (column.toAttribute, Seq(column))
    case key: Attribute if ExpressionSets.has(keys, key) => (key, Seq(key))
    case key if ExpressionSets.has(keys, key) =>
      val column = Alias(key, "key")()
      (column.toAttribute, Seq(column))
    case other =>
      val parts = other.children.map(valueOf(_, keys, codeOf))
      (other.withNewChildren(parts.map(_._1)), parts.flatMap(_._2))
  }
}
