package io.selinger.cost

import io.selinger.core.Reason
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.execution.SparkPlan

/** The operators that joins may run by. Ordering, the choice and explain ask this list. */
object JoinOperators {

  val all: Seq[JoinOperator] = Seq(
    BroadcastHash(BuildLeft),
    BroadcastHash(BuildRight),
    ShuffledHash(BuildLeft),
    ShuffledHash(BuildRight),
    SortMerge,
    BroadcastNestedLoop(BuildLeft),
    BroadcastNestedLoop(BuildRight),
    Cartesian
  )

  /** The operator that Spark has planned. */
  def plannedAs(plan: SparkPlan): Option[JoinOperator] = all.find(_.isPlannedAs(plan))

  /** Why one of them may be chosen, or why none is. */
  def reasons: Seq[Reason] = all.flatMap(o => Seq(o.reason, o.reasonIfAlone)).distinct

  /** Key of the setting that would most likely change a choice made for this reason. */
  def settingOf(reason: Reason): Option[String] =
    all.find(o => o.reason == reason || o.reasonIfAlone == reason).map(_.setting)
}
