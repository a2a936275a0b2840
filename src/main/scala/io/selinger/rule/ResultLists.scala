package io.selinger.rule

import io.selinger.rule.ExpressionSets._
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{AggregateExpression, AggregateFunction}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan

/**
 * The result columns of similar projections or aggregations.
 *
 * @param columns all that any of them has, each value once, and what is owed tests
 * @param of for each of them: its columns to these
 * @param areUnlike whether something is computed that not all of them compute
 */
private[rule] final case class ResultLists(
    columns: Seq[NamedExpression],
    of: Seq[AttributeMap[Attribute]],
    areUnlike: Boolean
) {

  /** The covering plan of the operators with these results. */
  def over(plan: LogicalPlan, below: CoveringPlan): CoveringPlan =
    CoveringPlan(
      plan,
      of,
      below.owed.map(_.map(_.transform { case column: Attribute =>
        columns.find(unnamed(_).semanticEquals(column)).fold(column)(_.toAttribute)
      })),
      below.hasForeignRows
    )
}

private[rule] object ResultLists {

  /** @param below the covering plan of what the similar operators read */
  def of(lists: Seq[Seq[NamedExpression]], below: CoveringPlan): Option[ResultLists] =
    all(lists.zipWithIndex.map { case (list, i) => below.allTranslated(i, list.map(unnamed)) })
      .filterNot(values => areMistaken(values.flatten))
      .map { values =>
        val first = lists.head
        val more = distinct(values.tail.flatten).filterNot(has(values.head, _))
        val computed = first ++ more.map(named)
        val tested = distinct(below.owed.flatten.flatMap(_.references))
        val columns = computed ++
          tested.filterNot(has(computed.map(unnamed), _)).collect { case a: Attribute => a }
        val others = lists.tail.zip(values.tail).map { case (list, of) =>
          AttributeMap(list.zip(of).flatMap { case (column, value) =>
            columns
              .find(column => isSame(unnamed(column), value))
              .map(column.toAttribute -> _.toAttribute)
          })
        }
        // Each column of the first is its own place, though another may have the same value.
        val own = AttributeMap(first.map(column => column.toAttribute -> column.toAttribute))
        val functions = values.map(_.filterNot(_.isInstanceOf[Attribute]))
        ResultLists(
          columns,
          own +: others,
          areUnlike = functions.exists(list => !hasAll(list, functions.flatten))
        )
      }

  /** Spark takes functions for the same that add up in another order, and computes one of them. */
  private def areMistaken(values: Seq[Expression]): Boolean = {
    val different = distinct(values)
    different.map(_.canonicalized).distinct.size < different.size
  }

  private def named(value: Expression): NamedExpression = value match {
    case column: NamedExpression => column
    case computed => Alias(
        computed.transform { case function: AggregateExpression => own(function) },
        "computed"
      )()
  }

  /** Places that come from one text have functions whose results and buffers have the same ids. */
  private def own(function: AggregateExpression): AggregateExpression = function.copy(
    aggregateFunction = function.aggregateFunction.clone().asInstanceOf[AggregateFunction],
    resultId = NamedExpression.newExprId
  )
}
