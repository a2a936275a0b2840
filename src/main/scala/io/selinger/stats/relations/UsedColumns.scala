package io.selinger.stats.relations

import com.google.common.cache.{Cache, CacheBuilder}
import io.selinger.core.PlanFact
import io.selinger.stats.files.FooterReader
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.catalyst.expressions.{Alias, ExprId}
import org.apache.spark.sql.catalyst.plans.logical._
import scala.util.control.NonFatal

/**
 * The columns that queries filter, join, group or sort by: those that statistics are worth being
 * collected of. Those of the plan that is being planned, and those that this application's queries
 * have used of each relation.
 */
object UsedColumns extends PlanFact[Set[ExprId]] {

  // Per relation the lower-case names; the relations used last.
  private val seen: Cache[String, Set[String]] =
    CacheBuilder.newBuilder().maximumSize(1000).build[String, Set[String]]()

  private val mostColumns = 1000

  override private[selinger] def unknown: Set[ExprId] = Set.empty

  /** Remembers for each relation of the plan that is about to be planned which columns it uses. */
  def remember(root: LogicalPlan): Unit = {
    val ids = current
    root.foreach {
      case FileRelation(relation) =>
        val names = relation.plan.output
          .filter(column => ids(column.exprId))
          .map(column => FooterReader.columnName(column.name))
          .toSet
        if (names.nonEmpty) add(relation, names)
      case _ => ()
    }
  }

  private def add(relation: FileRelation, names: Set[String]): Unit =
    try {
      val key = keyOf(relation.roots)
      val before = Option(seen.getIfPresent(key)).getOrElse(Set.empty[String])
      if (!names.subsetOf(before)) seen.put(key, (before ++ names).take(mostColumns))
    } catch {
      // Not worth a query.
      case NonFatal(_) => ()
    }

  private def keyOf(roots: Seq[Path]): String = roots.map(_.toString).sorted.mkString("\n")

  /** Those that queries have used of a relation, by lower-case name. */
  def namesIn(roots: Seq[Path]): Set[String] =
    Option(seen.getIfPresent(keyOf(roots))).getOrElse(Set.empty[String])

  /** Forgets what queries have used. */
  def clear(): Unit = seen.invalidateAll()

  override private[selinger] def compute(root: LogicalPlan): Set[ExprId] = {
    val deciding = root.collect {
      case filter: Filter => Seq(filter.condition)
      case join: Join => join.condition.toSeq
      case aggregate: Aggregate => aggregate.groupingExpressions
      case Distinct(child) => child.output
      case sort: Sort => sort.order
      case window: Window => window.partitionSpec
    }.flatten
    val renamed = root
      .collect { case project @ (_: Project | _: Aggregate | _: Window) => project.expressions }
      .flatten
      .flatMap(_.collect { case alias @ Alias(child, _) =>
        alias.exprId -> ColumnIds.named(Seq(child))
      })
      .toMap
    ColumnIds.withSources(ColumnIds.named(deciding), renamed)
  }
}
