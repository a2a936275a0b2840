package io.selinger.rule

import org.apache.spark.sql.execution.planmerging.PlanMerger

/** What differs between Spark lines: where Spark keeps what merges plans, and how it is made. */
object PlanMergerShim {

  /** One that lets filters differ on both sides, and below joins. */
  def create(): PlanMerger = new PlanMerger(true, true, true, false)
}
