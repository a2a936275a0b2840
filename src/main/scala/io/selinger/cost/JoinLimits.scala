package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.Phase

/**
 * What the query, its user and its memory allow to joins.
 *
 * What can fail for want of memory is judged by the number that matches its stake: a broadcast by
 * the rows that it would be surprising to exceed, a shuffled hash table, which cannot spill, by the
 * rows that cannot be exceeded.
 *
 * @param broadcastBytes largest hash table to broadcast; none where the user forbids broadcasts
 * @param countedBroadcastBytes the same where its rows have been counted
 * @param totalBroadcastBytes of all broadcasts of the query
 * @param taskHashBytes largest hash table that one task of a shuffled join may build
 * @param hashMargin factor by which that may turn out larger than computed
 * @param allowsShuffledHash false where the user demands sort-merge joins
 */
final case class JoinLimits(
    broadcastBytes: Option[Double],
    countedBroadcastBytes: Option[Double],
    totalBroadcastBytes: Double,
    taskHashBytes: Double,
    hashMargin: Double,
    allowsShuffledHash: Boolean
) {
  import JoinLimits._

  // Below zero where broadcasts are forbidden: no table is as small as that.
  private val mostExpected = broadcastBytes.getOrElse(-1.0)
  private val mostCounted =
    if (broadcastBytes.isEmpty) -1.0 else countedBroadcastBytes.getOrElse(mostExpected)
  private val mostSurprising = mostExpected * JoinSettings.surpriseFactor

  /**
   * Safe if the hash table of the expected rows fits the limit, and that of a surprising number of
   * them what the limit leaves room for. Where Spark would broadcast as well, only an estimate far
   * above the limit speaks against it.
   */
  def mayBroadcast(build: JoinSide, stockAgrees: Boolean): Boolean =
    build.rows <= mostBroadcastRows && {
      val expected = build.tableBytes(build.rows)
      val upper = build.tableBytes(build.upperBound)
      build.widthIsKnown &&
      expected <= (if (build.isCounted) mostCounted else mostExpected) &&
      upper <= mostSurprising &&
      (upper <= smallBytes || build.otherBroadcastBytes + upper <= totalBroadcastBytes) ||
      stockAgrees && expected <= mostExpected * stockMargin
    }

  /** Safe if the largest task's part of the most rows there can be fits that task's memory share. */
  def mayHash(build: JoinSide): Boolean =
    allowsShuffledHash && build.widthIsKnown && (build.maxRows match {
      case Some(rows) =>
        build.tableBytes(rows * build.largestTaskShare) * hashMargin <= taskHashBytes
      case None => false
    })
}

object JoinLimits {

  /** Tables of this size, which Spark broadcasts by default, do not compete for the query's total. */
  val smallBytes: Double = 10.0 * (1 << 20)

  /** Spark refuses to broadcast more rows than this. */
  private val mostBroadcastRows = 512000000.0

  /**
   * How far above our limit an estimate must be before it overrules a broadcast of Spark's. Set by hand,
   * and not measured: up to it, the broadcast stays as in stock Spark.
   */
  val stockMargin = 4.0

  /** What the session's settings say. */
  def ofSession(phase: Phase, cluster: Cluster): JoinLimits =
    JoinLimits(
      broadcastBytes = JoinSettings.broadcastLimit(phase, cluster),
      countedBroadcastBytes = JoinSettings.countedLimit(phase, cluster),
      totalBroadcastBytes = SelingerConf.BROADCAST_TOTAL_SHARE.value * cluster.smallerHeapBytes,
      taskHashBytes = SelingerConf.HASH_MEMORY_SHARE.value * cluster.taskMemoryBytes,
      hashMargin = SelingerConf.HASH_MEMORY_MARGIN.value,
      allowsShuffledHash = !JoinSettings.sortMergeDemanded
    )
}
