package io.selinger.bench

import java.security.MessageDigest
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import scala.util.matching.Regex

/**
 * A part of a query whose rows are estimated and counted.
 *
 * @param name the query and the part's place in it, root first
 * @param kind `filter`, `join` or `aggregate`
 * @param joins below, its own included
 * @param text of the plan, the same in every run
 */
final case class SubPlan(name: String, kind: String, joins: Int, plan: LogicalPlan, text: String) {

  /** What its rows are kept under. */
  lazy val key: String =
    MessageDigest
      .getInstance("SHA-256")
      .digest(text.getBytes("UTF-8"))
      .take(16)
      .map(byte => f"$byte%02x")
      .mkString
}

object SubPlans {

  /**
   * The filters, joins and aggregations of an optimized plan, those of its subqueries included. An
   * aggregation without groups returns one row whatever is believed of it, so it is left out.
   */
  def of(query: String, root: LogicalPlan): Seq[SubPlan] =
    root
      .collectWithSubqueries {
        case filter: Filter => "filter" -> filter
        case join: Join => "join" -> join
        case aggregate: Aggregate if aggregate.groupingExpressions.nonEmpty =>
          "aggregate" -> aggregate
        case distinct: Distinct => "aggregate" -> distinct
      }
      .zipWithIndex
      .map { case ((kind, plan), at) =>
        SubPlan(
          s"$query#$at",
          kind,
          plan.collect { case join: Join => join }.size,
          plan,
          text(plan)
        )
      }

  /** The same sub-plan of several queries, or of a query that uses a view twice, counts once. */
  def distinct(all: Seq[SubPlan]): Seq[SubPlan] = all.distinctBy(_.text)

  /** Expression ids differ from run to run, so they are numbered by their first appearance. */
  private def text(plan: LogicalPlan): String = {
    val tree = plan.treeString(verbose = true, addSuffix = false, maxFields = Int.MaxValue)
    val ids = Regex.quote("#") + "[0-9]+"
    val numbers = ids.r.findAllIn(tree).toSeq.distinct.zipWithIndex.toMap
    val stable = ids.r.replaceAllIn(tree, found => s"#${numbers(found.matched)}")
    // A relation's text has no name, and a literal may look like an id.
    val sources = plan.collectWithSubqueries {
      case LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
        files.location.rootPaths.map(_.getName).mkString(",")
      case local: LocalRelation => local.data.mkString(",")
    }
    val literals = plan.collectWithSubqueries { case node =>
      node.expressions.flatMap(_.collect { case literal: Literal => literal.sql })
    }
    s"$stable\n${sources.mkString(" ")}\n${literals.flatten.mkString(" ")}"
  }
}
