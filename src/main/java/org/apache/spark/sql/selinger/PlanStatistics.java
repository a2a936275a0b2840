package org.apache.spark.sql.selinger;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Statistics;
import scala.Option;

/** What Spark's plans let only themselves change; Java sees it as public. */
public final class PlanStatistics {

  private PlanStatistics() {}

  /** What {@code plan.stats} is from now on, for this node object and no copy of it. */
  public static void set(LogicalPlan plan, Statistics statistics) {
    plan.statsCache_$eq(Option.apply(statistics));
  }
}
