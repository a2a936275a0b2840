package io.selinger.rule

import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import scala.jdk.CollectionConverters._

/** What takes the places of some parts of a query. */
private[rule] final class Replacements {
  private val plans = new IdentityHashMap[LogicalPlan, LogicalPlan]

  def put(place: LogicalPlan, plan: LogicalPlan): Unit = {
    val _ = plans.put(place, plan)
  }

  /** Whether a plan is a part of what is replaced, and will not be in the query any more. */
  def isGone(part: LogicalPlan): Boolean =
    plans.keySet.asScala.exists(_.collectWithSubqueries { case `part` => part }.nonEmpty)

  /** The query with these in their places; itself if there are none. */
  def in(query: LogicalPlan): LogicalPlan =
    if (plans.isEmpty) query
    else
      // From below, so that nothing is looked for in what has taken a place.
      query.transformUpWithSubqueries {
        case part if plans.containsKey(part) => plans.get(part)
      }
}
