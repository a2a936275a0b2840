package io.selinger.rule

import io.selinger.core.{RaisedErrors, TextDictionary}
import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * A table, with its filters, some texts of which get codes. It is read twice: for the dictionaries, and by
 * the query.
 *
 * @param rows the table, as the query has it
 * @param texts over the columns of `rows`
 */
private[rule] final case class TextTable(rows: LogicalPlan, texts: Seq[Expression]) {

  /** What the dictionaries are made from. It may have more texts than `rows`. */
  lazy val alone: LogicalPlan = TextTable.alone(rows)

  /** The dictionary of each text, all made by one subquery. */
  def dictionaries: Seq[Expression] = {
    val copy = PlanCopy
      .of(alone)
      .getOrElse(throw new IllegalStateException(s"no copy can be made of ${alone.nodeName}"))
    val arrays = texts.zipWithIndex.flatMap { case (text, i) =>
      Seq(Literal(s"text$i"), TextDictionary.of(copy.over(text)))
    }
    val all = Aggregate(Nil, Seq(Alias(CreateNamedStruct(arrays), "dictionaries")()), copy.plan)
    val subquery = ScalarSubquery(TidyPlan(all))
    texts.indices.map(GetStructField(subquery, _))
  }
}

private[rule] object TextTable {

  /** Whether a plan is a table that has the same rows, and raises no error, when it is read once more. */
  def isReadable(plan: LogicalPlan): Boolean = isTable(plan) && !RaisedErrors.mayRaise(alone(plan))

  /** Without conditions that depend on other parts of the query. */
  private def alone(table: LogicalPlan): LogicalPlan = table.transform {
    case Filter(condition, child) =>
      val own = Selectivity.conjuncts(condition).filterNot(_.containsPattern(PLAN_EXPRESSION))
      own.reduceOption(And(_, _)).fold(child)(Filter(_, child))
  }

  private def isTable(plan: LogicalPlan): Boolean = plan match {
    case Project(list, child) =>
      list.forall(_.deterministic) && !plan.containsPattern(PLAN_EXPRESSION) && isTable(child)
    case Filter(condition, child) => condition.deterministic && isTable(child)
    case LogicalRelation(_: HadoopFsRelation, _, _, _, _) => !plan.isStreaming
    case _ => false
  }
}
