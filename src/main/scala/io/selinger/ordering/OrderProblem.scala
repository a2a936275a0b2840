package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core.{Origin, Phase, Precondition, RaisedErrors, Reason}
import io.selinger.cost.{Cluster, JoinOperatorModel}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.estimate.predicates.Selectivity
import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{JoinGraph, JoinRegion}
import io.selinger.ordering.tree.{JoinTree, JoinTreeCost, JoinTreePlan}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf

/**
 * An order that is to be found: what a search needs of one region.
 *
 * @param written the order written, at what it costs
 */
private[selinger] final case class OrderProblem(
    region: JoinRegion,
    graph: JoinGraph,
    trees: JoinTreeCost,
    written: JoinTree
) {

  /** Share of the cost of the order written that another order must save. */
  def margin: Double = OrderProblem.marginOf(
    SelingerConf.ORDER_MIN_GAIN.value,
    trees.estimates.map(_.rows.origin),
    joins = region.relations.size - 1
  )

  def planOf(tree: JoinTree): LogicalPlan = JoinTreePlan.planOf(tree, graph, region)
}

private[selinger] object OrderProblem {

  // Shares of the margin: estimates lose some precision with every join (Leis et al.,
  // How Good Are Query Optimizers, Really?, VLDB 2015), and a change that saves 90 % is always worth it.
  // Both are set by hand; `python -m benchmarks.ablation --mechanisms doubtMargin` shows what they do.
  private val doubtPerJoin = 0.02
  private val mostMargin = 0.9

  private val preconditions: Seq[Precondition[JoinRegion]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.root.isStreaming),
    Precondition(Reason.SparkReorders)(_ => !SQLConf.get.joinReorderEnabled),
    Precondition(Reason.MayRaise)(!_.relations.exists(RaisedErrors.computesUnsafeColumns)),
    // Which relations are read once another has turned out empty is a matter of their order; adaptive
    // execution leaves it to luck even for the written one.
    Precondition(Reason.MayRaise)(region =>
      SQLConf.get.adaptiveExecutionEnabled || !region.relations.exists(RaisedErrors.mayRaise(_))
    ),
    // Spark copies a subquery, with the ids of its columns, where a filter asks for its result.
    Precondition(Reason.RepeatedColumns)(region => haveOwnColumns(region.relations)),
    // Spark tells products that the query asks for from those that it is to refuse by their type.
    Precondition(Reason.CrossProduct)(region => !isForbidden(region.root))
  )

  private def haveOwnColumns(relations: Seq[LogicalPlan]): Boolean = {
    val ids = relations.flatMap(_.outputSet.toSeq.map(_.exprId))
    ids.distinct.size == ids.size
  }

  /** What a search for the order of a region needs, or why there is none. */
  def of(session: SparkSession, region: JoinRegion): Either[Reason, OrderProblem] =
    Precondition.firstUnmet(preconditions, region) match {
      case Some(reason) => Left(reason)
      case None =>
        val estimator = LeafStatistics.estimator
        def isUnknown(relation: LogicalPlan) = estimator.estimate(relation).isEmpty
        JoinGraph.of(region.relations, region.written, region.needed) match {
          case _ if LeafStatistics.smallestFirst(region.relations).exists(isUnknown) =>
            Left(Reason.NoStatistics)
          case Some(graph) if graph.isConnected =>
            // Under the conditions that concern them alone, which have moved to the relations.
            val trees = costs(session, graph, graph.relations.flatMap(estimator.estimate(_)))
            JoinTreePlan
              .treeOf(region.written, graph, trees)
              .map(OrderProblem(region, graph, trees, _))
              .toRight(Reason.CrossProduct)
          case _ => Left(Reason.CrossProduct)
        }
    }

  private def costs(
      session: SparkSession,
      graph: JoinGraph,
      estimates: IndexedSeq[PlanEstimate]
  ): JoinTreeCost =
    new JoinTreeCost(
      graph,
      estimates,
      JoinOperatorModel.ofSession(Phase.Static, Cluster.of(session))
    )

  /** Whether it has a product of two sides where the user wants Spark to refuse these. */
  def isForbidden(plan: LogicalPlan): Boolean =
    !SQLConf.get.crossJoinEnabled && plan.exists {
      case join: Join =>
        !join.condition.toSeq.flatMap(Selectivity.conjuncts).exists(condition =>
          condition.references.exists(join.left.outputSet.contains) &&
            condition.references.exists(join.right.outputSet.contains)
        )
      case _ => false
    }

  /**
   * The more, the less is known of the relations, and the more often errors multiply. The shares are set
   * by hand; `python -m benchmarks.ablation --mechanisms doubtMargin` shows what the margin changes.
   */
  private[ordering] def marginOf(minGain: Double, origins: Seq[Origin], joins: Int): Double =
    if (!Mechanism.DoubtMargin.isOn) minGain
    else {
      val doubt = Origin.worst(origins) match {
        case Origin.Exact | Origin.Measured => 0.0
        case Origin.Sampled => 0.1
        case Origin.Derived => 0.2
        case Origin.Default => 1.0
      }
      val manyJoins = 1.0 + doubtPerJoin * math.max(0, joins - 2)
      math.min(mostMargin, minGain * (1.0 + doubt) * manyJoins)
    }
}
