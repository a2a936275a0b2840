package io.selinger.core

import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.{ExistenceJoin, JoinType}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, LogicalPlan}

/** How decisions name the operators that they are about. */
object NodeText {

  private val longest = 160

  /** Readable: `Join Inner (ss_item_sk = i_item_sk)`, `Aggregate by item, year`. */
  def of(plan: LogicalPlan): String = plan match {
    case join: Join =>
      val condition = join.condition.map(readable).getOrElse("no condition")
      shorten(s"Join ${kind(join.joinType)} $condition")
    case Aggregate(keys, _, _, _) if keys.nonEmpty =>
      shorten(s"Aggregate by ${keys.map(readable).mkString(", ")}")
    case other => shorten(other.nodeName)
  }

  /** The same operator has the same key whenever it is planned again within one query. */
  def key(plan: LogicalPlan): String = plan match {
    case join: Join if join.condition.isDefined =>
      s"Join ${kind(join.joinType)} ${join.condition.mkString}"
    case other => s"${other.nodeName} ${other.output.map(_.exprId.id).mkString(",")}"
  }

  private def kind(joinType: JoinType): String = joinType match {
    // Its mark column differs from run to run, and `sql` is not defined for it.
    case _: ExistenceJoin => "Existence"
    case other => other.toString
  }

  def readable(expression: Expression): String =
    expression.toString.replaceAll("#\\d+L?", "")

  def shorten(text: String): String =
    if (text.length <= longest) text else text.take(longest - 1) + "…"
}
