package io.selinger.ordering.tree

import io.selinger.cost.{Cluster, JoinFacts, JoinOperatorModel}
import io.selinger.core.Phase
import io.selinger.ordering.OrderProblem
import org.apache.spark.sql.classic.SparkSession

/** The last join of an order as it is written, as join ordering sees it. */
object WrittenJoin {

  def facts(session: SparkSession, problem: OrderProblem): JoinFacts = problem.written match {
    case JoinTree.Joined(left, right, how, estimate, _, _, _, _) =>
      val values = problem.graph.keys.map { key =>
        key.members.map { case (i, member) =>
          val known = problem.trees.estimates(i)
          i -> known.distinct(member).getOrElse(known.rows.value)
        }.toMap
      }
      val compared = new ComparedKeys(problem.graph, values)
      val model = JoinOperatorModel.ofSession(Phase.Static, Cluster.of(session))
      new OperatorCost(problem.graph, compared, model).facts(left, right, how, estimate)
    case relation => throw new IllegalArgumentException(s"$relation joins nothing")
  }
}
