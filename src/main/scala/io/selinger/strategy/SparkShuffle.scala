package io.selinger.strategy

import io.selinger.exec.{BuildSideFirstExec, WaitForBuildSideExec}
import org.apache.spark.sql.catalyst.plans.physical.{
  HashPartitioning,
  Partitioning,
  PartitioningCollection
}
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ENSURE_REQUIREMENTS, ShuffleExchangeExec}
import org.apache.spark.sql.internal.SQLConf

/** Shuffles that Spark has added because an operator requires them; no query asks for them. */
private[strategy] object SparkShuffle {

  def unapply(plan: SparkPlan): Option[ShuffleExchangeExec] = plan match {
    case exchange: ShuffleExchangeExec if exchange.shuffleOrigin == ENSURE_REQUIREMENTS =>
      Some(exchange)
    case _ => None
  }

  /** Whether it waits for a side of a join, or such a side waits for it (awaitBuildSide). */
  def isHeld(exchange: ShuffleExchangeExec): Boolean = exchange.child match {
    case _: WaitForBuildSideExec | _: BuildSideFirstExec => true
    case _ => false
  }

  /** Whether `rows` are where a shuffle would send them. */
  def isPartitionedAs(wanted: Partitioning, rows: Partitioning): Boolean =
    (wanted, rows) match {
      case (_, PartitioningCollection(several)) => several.exists(isPartitionedAs(wanted, _))
      case (wanted: HashPartitioning, rows: HashPartitioning) =>
        wanted.numPartitions == rows.numPartitions &&
        wanted.expressions.size == rows.expressions.size &&
        wanted.expressions.zip(rows.expressions).forall { case (a, b) => a.semanticEquals(b) }
      case _ => false
    }
}

/** Which shuffles Spark may compute once for several places of a query, as long as they stay alike. */
private[strategy] final class SharedShuffles(plan: SparkPlan) {

  private lazy val found: Map[SparkPlan, Seq[SparkPlan]] =
    if (SQLConf.get.exchangeReuseEnabled) shufflesOf(plan).groupBy(_.canonicalized)
    else Map.empty

  private def alike(exchange: ShuffleExchangeExec): Seq[SparkPlan] =
    found.getOrElse(exchange.canonicalized, Nil)

  /** That ask for the same rows in the same shuffle. */
  def places(exchange: ShuffleExchangeExec): Int = math.max(1, alike(exchange).size)

  /** Whether one of them has begun to shuffle. */
  def isShuffled(exchange: ShuffleExchangeExec): Boolean =
    alike(exchange).exists(_.isInstanceOf[ShuffleQueryStageExec])

  private def shufflesOf(plan: SparkPlan): Seq[SparkPlan] = plan.flatMap { node =>
    val own = node match {
      case exchange: ShuffleExchangeExec => Seq(exchange)
      // Its canonical form is that of the exchange that it began as.
      case stage: ShuffleQueryStageExec => Seq(stage)
      case subquery: AdaptiveSparkPlanExec => shufflesOf(subquery.initialPlan)
      case _ => Nil
    }
    own ++ node.subqueries.flatMap(shufflesOf)
  }
}
