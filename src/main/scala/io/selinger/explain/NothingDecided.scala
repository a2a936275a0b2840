package io.selinger.explain

import io.selinger.conf.SelingerConf
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Command, Join}
import org.apache.spark.sql.execution._
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, QueryStageExec}
import org.apache.spark.sql.execution.aggregate.BaseAggregateExec
import org.apache.spark.sql.execution.command.{DataWritingCommandExec, ExecutedCommandExec}
import org.apache.spark.sql.execution.datasources.text.TextFileFormat
import org.apache.spark.sql.execution.datasources.v2.V2CommandExec
import org.apache.spark.sql.execution.joins.BaseJoinExec

/** Why a plan has no decisions, in one line. */
private[explain] object NothingDecided {

  /** Empty for commands and for the queries by which Spark and tools look up a schema. */
  def why(root: SparkPlan, mode: String): String = {
    val all = operators(root)
    if (mode == "off") {
      s"Selinger is off (${SelingerConf.MODE.key} = off): this is Spark's own plan."
    } else if (isCommand(root) || all.forall(isLookUp)) ""
    else if (all.exists(isJoin)) {
      val switch = "spark.selinger.selectJoinOperator.enabled"
      if (SelingerConf.textOf(switch).contains("false"))
        s"Nothing was decided: $switch is false, so joins are left to Spark."
      else
        "Nothing was decided: this plan was made while Selinger was off, or its joins were " +
          "already planned elsewhere, as in a cached table."
    } else if (all.exists(isAggregate)) {
      "Nothing to decide: the query has no join, and no rule makes its aggregation cheaper."
    } else "Nothing to decide: the query has no join and no aggregation."
  }

  private def operators(plan: SparkPlan): Seq[SparkPlan] = plan match {
    case adaptive: AdaptiveSparkPlanExec => operators(adaptive.executedPlan)
    case stage: QueryStageExec => operators(stage.plan)
    case command: CommandResultExec => plan +: operators(command.commandPhysicalPlan)
    case other => other +: (other.children ++ other.subqueries).flatMap(operators)
  }

  private def isCommand(plan: SparkPlan): Boolean = plan match {
    case _: CommandResultExec | _: ExecutedCommandExec | _: V2CommandExec |
        _: DataWritingCommandExec => true
    case adaptive: AdaptiveSparkPlanExec => isCommand(adaptive.initialPlan)
    case other => other.logicalLink.exists(_.isInstanceOf[Command])
  }

  /** No rows at all, or the first lines of a text file: that is how Spark infers a schema. */
  private def isLookUp(plan: SparkPlan): Boolean = plan match {
    case local: LocalTableScanExec => local.rows.isEmpty
    case _: EmptyRelationExec => true
    case scan: FileSourceScanExec => scan.relation.fileFormat.isInstanceOf[TextFileFormat]
    case leaf: LeafExecNode => leaf.nodeName == "Scan ExistingRDD"
    case other => !isJoin(other) && !isAggregate(other)
  }

  private def isJoin(plan: SparkPlan): Boolean =
    plan.isInstanceOf[BaseJoinExec] || plan.logicalLink.exists(_.isInstanceOf[Join])

  private def isAggregate(plan: SparkPlan): Boolean =
    plan.isInstanceOf[BaseAggregateExec] || plan.logicalLink.exists(_.isInstanceOf[Aggregate])
}
