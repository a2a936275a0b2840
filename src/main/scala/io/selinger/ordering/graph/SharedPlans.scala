package io.selinger.ordering.graph

import io.selinger.ordering.ablation.Mechanism
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern

/**
 * What IN and EXISTS ask for several times in one query, as with a common table expression: as long as
 * all of its occurrences stay alike Spark computes it once and reuses the exchange. Ordered together
 * with the joins around it, each occurrence would become another one.
 */
final class SharedPlans private (plans: java.util.Set[LogicalPlan]) {

  def apply(plan: LogicalPlan): Boolean = plans.contains(plan)
}

object SharedPlans {

  val none: SharedPlans = new SharedPlans(java.util.Set.of())

  /** The right sides of a query's semi, anti and existence joins that have joins and occur twice. */
  def of(query: LogicalPlan): SharedPlans = {
    val asked = query.collect {
      case Join(_, right, LeftSemi | LeftAnti | ExistenceJoin(_), _, _)
          if right.containsPattern(TreePattern.JOIN) =>
        right
    }
    if (asked.size < 2 || !Mechanism.SharedSubplans.isOn) none
    else {
      val found = java.util.Collections.newSetFromMap[LogicalPlan](new java.util.IdentityHashMap)
      asked
        .groupBy(_.canonicalized)
        .valuesIterator
        .filter(_.size > 1)
        .foreach(_.foreach(found.add))
      new SharedPlans(found)
    }
  }
}
