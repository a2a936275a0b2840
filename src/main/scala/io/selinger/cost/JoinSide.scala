package io.selinger.cost

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.PlanEstimate
import org.apache.spark.sql.catalyst.expressions.Attribute

/**
 * One side of a join, the left or the right one: all that the choice of an operator asks of it. An
 * operator that builds a hash table calls one of them its build side and the other its probe side.
 *
 * @param rows expected rows, by which costs are compared
 * @param upperBound rows that it would be surprising to exceed, by which broadcasts are limited
 * @param maxRows rows that it cannot exceed, where that is known: limits hash tables that cannot spill
 * @param isCounted whether its rows are a count, not an estimate
 * @param rowBytes width of a row in Spark's format
 * @param widthIsKnown whether that is measured or computed; a default is no evidence
 * @param keyBytes width of its join key
 * @param packedKey whether the key is kept as one long, which several short ones may share
 * @param singleKey whether the key is one whole number, which Spark sorts by radix, without
 *   comparing rows
 * @param shuffleExists whether its shuffle has run already in this query, or its rows come
 *   partitioned by the join's keys, so that no other is needed
 * @param largestTaskShare of its rows, the most that one task of a shuffled join reads
 * @param otherBroadcastBytes that other broadcasts of the query take; the same table broadcast twice
 *   is one, for Spark reuses it
 * @param broadcastPlaces joins of the query that could broadcast the same rows by the same keys, this one
 *   included. Spark would do it once for all of them
 */
final case class JoinSide(
    rows: Double,
    upperBound: Double,
    maxRows: Option[Double],
    isCounted: Boolean,
    rowBytes: Double,
    widthIsKnown: Boolean,
    keyBytes: Double,
    packedKey: Boolean,
    singleKey: Boolean,
    shuffleExists: Boolean,
    largestTaskShare: Double,
    otherBroadcastBytes: Double,
    broadcastPlaces: Int
) {

  def bytes: Double = rows * rowBytes

  /** Of a hash table of so many of its rows. */
  def tableBytes(rows: Double): Double = HashTable.bytes(rows, rowBytes, keyBytes, packedKey)

  /** Of the hash table that the largest task of a shuffled join builds. */
  def taskTableBytes: Double = tableBytes(rows * largestTaskShare)

  /** As if the rows that are expected had been counted. */
  def asExpected: JoinSide = copy(upperBound = rows, maxRows = Some(rows), isCounted = true)
}

object JoinSide {

  /** Whether so many rows are a count, not an estimate. */
  def areCounted(rows: Quantity): Boolean =
    rows.origin == Origin.Measured || rows.origin == Origin.Exact

  /** Some columns of a plan, not shuffled yet, as far as they are known. */
  def of(estimate: PlanEstimate, columns: Seq[Attribute]): JoinSide =
    JoinSide(estimate.rows.value, estimate.rowBytes(columns), shuffleExists = false).copy(
      upperBound = estimate.upperBound,
      maxRows = estimate.bound,
      isCounted = areCounted(estimate.rows),
      widthIsKnown = estimate.widthIsKnown(columns)
    )

  /** Rows of which nothing else matters: for the cost of moving, sorting or reading them. */
  def apply(
      rows: Double,
      rowBytes: Double,
      shuffleExists: Boolean,
      singleKey: Boolean = false
  ): JoinSide =
    JoinSide(
      rows,
      upperBound = rows,
      maxRows = Some(rows),
      isCounted = false,
      rowBytes,
      widthIsKnown = true,
      keyBytes = 8.0,
      packedKey = singleKey,
      singleKey,
      shuffleExists,
      largestTaskShare = 1.0,
      otherBroadcastBytes = 0.0,
      broadcastPlaces = 1
    )
}
