package io.selinger.strategy

import org.apache.spark.sql.catalyst.plans.logical._

/** What differs between Spark lines: join hints that adaptive execution sets by itself. */
object AdaptiveHintsShim {
  val hints: Set[JoinStrategyHint] = Set(NO_BROADCAST_HASH)
}
