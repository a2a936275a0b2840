package io.selinger.transfer

import io.selinger.stats.imported.UseImportedStatistics
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, SubqueryAlias}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.LogicalRelation

/**
 * Finds imported tables whose names have several parts, such as `sales.orders`: a temporary view
 * cannot have such a name, and no catalog of the session knows the database.
 *
 * Runs as a hint resolution rule, because these come before Spark looks names up, where an unknown
 * catalog would be an error already. Sessions that have imported nothing get the very plan back.
 * It finds what the user has asked for rather than optimises, so no switch turns it off.
 */
final class ResolveImportedTables(session: SparkSession) extends Rule[LogicalPlan] {

  override def apply(plan: LogicalPlan): LogicalPlan =
    if (UseImportedStatistics.forSession(session).tables.isEmpty) plan
    else
      plan.resolveOperatorsUp {
        case relation: UnresolvedRelation if !relation.isStreaming =>
          val name = relation.multipartIdentifier
          UseImportedStatistics
            .table(session, name)
            .map(index => SubqueryAlias(name, LogicalRelation(index.toRelation(session))))
            .getOrElse(relation)
      }
}
