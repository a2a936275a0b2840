package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.predicates.Selectivity
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  GlobalLimit,
  Join,
  LogicalPlan,
  Window
}

/** What a rule must know of the rest of a query before it changes a part. */
private[rule] final class WholeQuery(plan: LogicalPlan) {

  private lazy val operators: Seq[LogicalPlan] =
    plan.collectWithSubqueries {
      case operator @ (_: Join | _: Aggregate | _: Window | _: GlobalLimit) => operator
    }

  def isStreaming: Boolean = plan.isStreaming

  /** All joins, aggregations, window functions or limits that are equal to one, itself included. */
  def equalTo(part: LogicalPlan): Seq[LogicalPlan] = {
    val hash = part.semanticHash()
    operators.filter(other =>
      other.getClass == part.getClass && other.semanticHash() == hash && other.sameResult(part)
    )
  }

  /** How often the query has a join, aggregation, window function or limit. */
  def times(part: LogicalPlan): Int = equalTo(part).size

  /**
   * Whether a condition above a part of the plan can raise an error, and may be tested for its rows as soon
   * as they are there. One that needs other relations stays where it is: no order of joins moves it.
   */
  def testsUnsafely(part: LogicalPlan): Boolean = testsUnsafely(plan, part)

  private def testsUnsafely(above: LogicalPlan, part: LogicalPlan): Boolean =
    (above ne part) && ((above match {
      case Filter(condition, _) => isUnsafe(condition, part.outputSet)
      case join: Join =>
        join.condition.toSeq
          .flatMap(Selectivity.conjuncts)
          .filter(_.references.subsetOf(part.outputSet))
          .exists(isUnsafe(_, part.outputSet))
      case _ => false
    }) || above.children.exists(testsUnsafely(_, part)))

  private def isUnsafe(condition: Expression, columns: AttributeSet): Boolean =
    condition.references.exists(columns.contains) && !RaisedErrors.isSafe(condition.transform {
      // It runs whether there are rows or not.
      case subquery: ScalarSubquery if subquery.outerAttrs.isEmpty =>
        Literal(null, subquery.dataType)
    })

  /** Whether a part of a plan is computed more often than the plan. */
  def isSharedBeyond(part: LogicalPlan, whole: LogicalPlan): Boolean = part match {
    case _: Join | _: Aggregate | _: Window => times(part) > times(whole)
    case _ => false
  }

  /** Whether a join in an aggregation is computed for something else than aggregations by the same columns. */
  def isSharedBeyondAlike(aggregate: Aggregate): Boolean = {
    val joins = aggregate.child.collect { case join: Join => join }
    def keysOf(some: Aggregate) = some.groupingExpressions.map {
      case column: Attribute => column.name
      case computed => computed.sql
    }.toSet
    lazy val alike = operators.collect {
      case other: Aggregate if keysOf(other) == keysOf(aggregate) => other
    }
    joins.exists { join =>
      val uses = equalTo(join)
      uses.size > 1 && uses.exists(use => !alike.exists(_.exists(_ eq use)))
    }
  }

  /** Spark prunes partitions by the rows of a join's side only while both are the same plan. */
  private lazy val prunesPartitions: Boolean =
    plan.collectWithSubqueries {
      case operator if operator.expressions.exists(_.exists(_.isInstanceOf[DynamicPruning])) =>
        operator
    }.nonEmpty

  /** Whether what a push would change is computed for something else, too. */
  def isShared(push: AggregatePush): Boolean = prunesPartitions || {
    val joins = push.path.joins ++ push.path.input.collectFirst { case join: Join => join }
    lazy val uses = times(push.aggregate)
    joins.exists(times(_) > uses)
  }

  /** Whether the joins and aggregations on the right side of a join are computed for something else, too. */
  def sharesSideOf(join: Join): Boolean = prunesPartitions || {
    lazy val uses = times(join)
    join.right
      .collectFirst { case operator @ (_: Join | _: Aggregate) => operator }
      .exists(times(_) > uses)
  }

  /** Whether joins of a part of a plan are computed more often than the whole that it belongs to. */
  def isSharedWithin(part: LogicalPlan, whole: LogicalPlan): Boolean = {
    val joins = whole.collect { case join: Join if join.exists(_ eq part) => join } ++
      part.collectFirst { case join: Join => join }
    lazy val uses = joins.headOption.fold(1)(times)
    joins.drop(1).exists(times(_) > uses)
  }
}
