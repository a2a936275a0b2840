package io.selinger.rule

import io.selinger.core.RaisedErrors
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, Count}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.types._

/**
 * An aggregate computed partly below a join.
 *
 * @param path to the input that is aggregated first
 * @param divided functions of columns of that input, in its terms
 * @param parts what is computed below
 * @param values the aggregate's functions by their ids, computed from the parts
 */
private[rule] final case class AggregatePush private (
    aggregate: Aggregate,
    path: AggregatePath,
    divided: Seq[AggregateExpression],
    parts: Seq[Alias],
    values: Map[ExprId, Expression]
) {

  private val results: Seq[NamedExpression] =
    aggregate.aggregateExpressions.map(AggregatePush.replaced(_, values))

  /** What is read above of the columns of the plan, other than parts. */
  private val needed: AttributeSet =
    AttributeSet((aggregate.groupingExpressions ++ results).flatMap(_.references)) --
      parts.map(_.toAttribute)

  /** What the input is grouped by. */
  val keys: Seq[Attribute] = path.keys(needed)

  /** The input, grouped. */
  def below: Aggregate = Aggregate(keys, keys ++ parts, path.input)

  def result: Aggregate = {
    val child = path.over(needed, parts)
    // An outer join on the way makes parts nullable.
    val found = child.output.map(column => column.exprId -> column).toMap
    val ids = parts.map(_.exprId).toSet
    val merged = results.map { result =>
      AggregatePush.named(result.transform {
        case part: Attribute if ids(part.exprId) => found.getOrElse(part.exprId, part)
      })
    }
    val pushed = aggregate.copy(aggregateExpressions = merged, child = child)
    pushed.copyTagsFrom(aggregate)
    pushed
  }
}

private[rule] object AggregatePush {

  /** None if some function cannot be computed so. */
  def of(aggregate: Aggregate, path: AggregatePath): Option[AggregatePush] = {
    val rows = Alias(Count(Literal(1)).toAggregateExpression(), "partial_rows")()
    val weight =
      if (path.fillsWithNulls) Coalesce(Seq(rows.toAttribute.withNullability(true), Literal(1L)))
      else rows.toAttribute
    val computed = functionsOf(aggregate).map { function =>
      divided(function, path) match {
        case Some((below, partial)) =>
          Some((function.resultId, Some(below), partial.parts, partial.merged))
        case None =>
          PartialAggregate.weighted(function, weight, aggregate.child).map { value =>
            val counts = if (value.references.contains(rows.toAttribute)) Seq(rows) else Nil
            (function.resultId, None, counts, value)
          }
      }
    }
    Option.when(computed.forall(_.isDefined)) {
      val all = computed.flatten
      AggregatePush(
        aggregate,
        path,
        all.flatMap(_._2),
        all.flatMap(_._3).distinctBy(_.exprId),
        all.map(one => one._1 -> one._4).toMap
      )
    }
  }

  /** A function in terms of the input, taken apart; its conditions on other columns stay above. */
  private def divided(
      function: AggregateExpression,
      path: AggregatePath
  ): Option[(AggregateExpression, PartialAggregate)] = {
    val (bare, conditions) = ConditionalAggregate.split(function)
    val (below, above) =
      conditions.partition(condition => path.traced(bare.copy(filter = Some(condition))).isDefined)
    for {
      traced <- path.traced(bare.copy(filter = below.reduceOption(And(_, _))))
      if above.forall(RaisedErrors.isSafe)
      partial <- PartialAggregate.of(traced, path.input, above.reduceOption(And(_, _)))
    } yield (traced, partial)
  }

  def functionsOf(plan: LogicalPlan): Seq[AggregateExpression] =
    plan.expressions.flatMap(_.collect { case function: AggregateExpression => function })
      .distinctBy(_.resultId)

  private def replaced(
      result: NamedExpression,
      values: Map[ExprId, Expression]
  ): NamedExpression = named(result.transformUp {
    case function: AggregateExpression => values.getOrElse(function.resultId, function)
  })

  def named(expression: Expression): NamedExpression = expression match {
    case result: NamedExpression => result
    case other => throw new IllegalStateException(s"a result without a name: $other")
  }

  /** Whether equal values of a type are the same bits, and the other way. */
  def isComparable(key: Expression): Boolean = key.dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType | DateType | TimestampType |
        TimestampNTZType | BinaryType | _: DecimalType =>
      true
    case text: StringType => UnsafeRowUtils.isBinaryStable(text)
    case _ => false
  }
}
