package io.selinger.strategy

import io.selinger.core.PlanFact
import io.selinger.cost.BuildSides
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.QueryPlan
import org.apache.spark.sql.catalyst.plans.logical.{Join, JoinHint, LogicalPlan}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/** Which joins of a query could broadcast the same rows by the same keys: Spark then broadcasts them once. */
object SharedBroadcasts extends PlanFact[Map[Int, Int]] {

  /** In how many joins of the present plan, at least one, a side with these rows and keys could be broadcast. */
  def places(side: LogicalPlan, keys: Seq[Expression]): Int =
    current.getOrElse(identify(side, keys), 1)

  override private[selinger] def unknown: Map[Int, Int] = Map.empty

  override private[selinger] def compute(root: LogicalPlan): Map[Int, Int] = {
    val joins = root.collect { case join: Join => join }
    if (joins.size < 2) unknown
    else joins.flatMap(sidesOf(_).distinct).groupBy(identity).map { case (side, found) =>
      side -> found.size
    }
  }

  private def sidesOf(join: Join): Seq[Int] = join match {
    // Others are obeyed, whatever a broadcast costs.
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, _, _, JoinHint.NONE) =>
      val builds = BuildSides.of(join.joinType, hasKeys = true)
      BuildSides.all.filter(builds.broadcast).map { side =>
        if (side == BuildLeft) identify(join.left, leftKeys) else identify(join.right, rightKeys)
      }
    case _ => Nil
  }

  /** The same for the same rows and keys, whatever ids their columns have. */
  private def identify(side: LogicalPlan, keys: Seq[Expression]): Int = {
    val plan = side match {
      case stage: LogicalQueryStage if QueryStages.isBroadcast(stage) => stage.logicalPlan
      case other => other
    }
    (plan.semanticHash(), keys.map(QueryPlan.normalizeExpressions(_, plan.output).canonicalized))
      .hashCode()
  }
}
