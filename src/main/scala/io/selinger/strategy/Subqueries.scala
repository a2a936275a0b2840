package io.selinger.strategy

import org.apache.spark.sql.catalyst.expressions.PlanExpression
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.catalyst.trees.{TreeNodeTag, TreePattern}

/**
 * Subqueries of a plan, which adaptive execution plans and runs each by itself. What they and the query
 * have in common, Spark computes once, but none of these plans sees another.
 */
private[strategy] object Subqueries {

  /** The plans of the subqueries in a plan's own expressions. */
  def of(plan: LogicalPlan): Seq[LogicalPlan] =
    if (!plan.containsPattern(TreePattern.PLAN_EXPRESSION)) Nil
    else {
      plan.flatMap(_.expressions).flatMap(_.collect { case subquery: PlanExpression[_] =>
        subquery.plan
      }).collect { case subquery: LogicalPlan => subquery }
    }

  /** The plans of all subqueries of a plan, those of subqueries included. */
  def within(plan: LogicalPlan): Seq[LogicalPlan] =
    of(plan).flatMap(subquery => subquery +: within(subquery))

  private val insideTag = TreeNodeTag[Unit]("selinger.inSubquery")

  /** Marks the operators of a plan's subqueries, before these are planned by themselves. */
  def mark(root: LogicalPlan): Unit =
    of(root).foreach(_.foreach { node =>
      // Relations may belong to other queries too.
      if (node.children.nonEmpty) node.setTagValue(insideTag, ())
    })

  /** Whether an operator has been marked as one of a subquery. */
  def contain(node: LogicalPlan): Boolean = node.getTagValue(insideTag).isDefined

  private val sharedTag = TreeNodeTag[Unit]("selinger.sharedWithSubquery")

  /** Marks joins that are the same in a query and a subquery of it, or in two of its subqueries. */
  def markShared(root: LogicalPlan): Unit = {
    // Of subqueries that are the same, Spark runs one.
    val subqueries = within(root).distinctBy(_.canonicalized)
    if (subqueries.nonEmpty) {
      val joins = for {
        (plan, number) <- (root +: subqueries).zipWithIndex
        join <- plan.collect { case join: Join => join }
      } yield (join, number)
      joins.groupBy(_._1.canonicalized).values.foreach { same =>
        if (same.map(_._2).distinct.size > 1) same.foreach(_._1.setTagValue(sharedTag, ()))
      }
    }
  }

  def isShared(join: Join): Boolean = join.getTagValue(sharedTag).isDefined
}
