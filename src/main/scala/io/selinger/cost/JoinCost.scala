package io.selinger.cost

import io.selinger.estimate.PlanEstimate

/**
 * Time that each join operator takes, in seconds of an otherwise idle cluster: not a forecast, but
 * a scale on which operators compare.
 *
 * Each step costs time per row and time per byte. The constants were set by hand, from TPC-DS queries
 * at scale factor 10 on Spark 4.3. `make bench-operators` compares what they say with measured times,
 * and fits them. They hold at the default weight; `spark.selinger.cbo.weight` shifts rows against
 * bytes as in the reference formula, weight × rows + (1 − weight) × bytes.
 *
 * @param weight of rows against bytes, 0 to 1
 */
final class JoinCost(cluster: Cluster, weight: Double) {
  import JoinCost._

  private val perRow = weight / calibratedWeight
  private val perByte = (1.0 - weight) / (1.0 - calibratedWeight)

  private def step(rows: Double, bytes: Double, nsPerRow: Double, nsPerByte: Double): Double =
    (rows * nsPerRow * perRow + bytes * nsPerByte * perByte) * 1e-9

  /** Tasks that run at a time. */
  def slots: Int = cluster.slots

  /** Broadcast hash join, without what more than one pair for each probe row costs. */
  def broadcastHash(build: JoinSide, probe: JoinSide): Double =
    broadcast(build) + stepOf(probe, probeNs, 0.0) / cluster.slots

  /** The same for a shuffled hash join. */
  def shuffledHash(build: JoinSide, probe: JoinSide): Double = {
    val built = stepOf(build, buildNs, buildByteNs)
    (shuffle(build) + shuffle(probe) + built + stepOf(probe, probeNs, 0.0)) / cluster.slots +
      stageSeconds
  }

  /** The same for a sort-merge join. */
  def sortMerge(left: JoinSide, right: JoinSide): Double =
    (shuffle(left) + shuffle(right) + sort(left) + sort(right)) / cluster.slots + stageSeconds

  /** A Cartesian product: each task reads one partition of each side. */
  def cartesian(left: JoinSide, right: JoinSide): Double =
    allPairs(left, right) + (read(left) + read(right)) * cluster.slots

  /**
   * Every pair of rows is looked at. Where the rows of a side are doubtful, a product of the rows that
   * are expected would be the cheapest join of all, and the worst one if they are more: so the
   * geometric mean of them and their upper bound counts.
   */
  def allPairs(left: JoinSide, right: JoinSide): Double = {
    val pairs = math.sqrt(left.rows * left.upperBound) * math.sqrt(right.rows * right.upperBound)
    output(math.min(PlanEstimate.most, pairs), 0.0)
  }

  /**
   * What pairs of equal keys cost a hash join beyond one for each probe row: each is a jump in a
   * table that has outgrown the processor's cache.
   *
   * @param tableBytes of what one task builds
   */
  def hashedPairs(pairs: Double, probe: JoinSide, tableBytes: Double): Double =
    if (tableBytes <= cacheBytes) mergedPairs(pairs, probe)
    else step(math.max(0.0, pairs - probe.rows), 0.0, hashedPairNs, 0.0) / cluster.slots

  /** The same for a sort-merge join, which walks over rows of equal keys in their order. */
  def mergedPairs(pairs: Double, probe: JoinSide): Double =
    step(math.max(0.0, pairs - probe.rows), 0.0, mergedPairNs, 0.0) / cluster.slots

  /** What it takes a join to return rows, whichever operator runs it. */
  def output(rows: Double, rowBytes: Double): Double =
    step(rows, rows * rowBytes, outputNs, outputByteNs) / cluster.slots

  /**
   * Collected and built on the driver by one thread, then copied to every executor. Joins that share a
   * broadcast share what it costs.
   */
  def broadcast(side: JoinSide): Double = {
    val copies = math.log(cluster.executors + 1.0) / math.log(2.0)
    val once =
      stepOf(side, collectNs + buildNs, collectByteNs + buildByteNs + copies * networkByteNs) +
        broadcastSeconds
    once / side.broadcastPlaces
  }

  /** What a shuffle of rows takes. */
  def shuffled(side: JoinSide): Double = shuffle(side) / cluster.slots

  /** What it takes to read rows of a scan, or of a shuffle that has run. */
  def read(side: JoinSide): Double = stepOf(side, readNs, readByteNs) / cluster.slots

  /** What it takes to look rows up in a hash table that is there. */
  def probed(rows: Double): Double = step(rows, 0.0, probeNs, 0.0) / cluster.slots

  /** What it takes to put rows into the groups of an aggregation. */
  def grouped(rows: Double): Double = step(rows, 0.0, buildNs, 0.0) / cluster.slots

  /** What it takes an Expand to return rows, and an aggregation to hash and compare all of their columns. */
  def copied(side: JoinSide): Double = stepOf(side, copyNs, copyByteNs) / cluster.slots

  /** What it takes an aggregation to hash, compare and copy texts, beyond what numbers in their place take. */
  def textKeys(values: Double, bytes: Double): Double =
    step(values, bytes, textNs, copyByteNs) / cluster.slots

  /** What more bytes add to a shuffle. */
  def shuffledBytes(bytes: Double): Double = step(0.0, bytes, 0.0, shuffleByteNs) / cluster.slots

  /** What it takes to test values, to compute with them, or to add them up. */
  def evaluated(values: Double): Double = step(values, 0.0, evaluateNs, 0.0) / cluster.slots

  /** What it takes to start a stage, whatever its rows. */
  def stage: Double = stageSeconds

  /** What it takes to sort rows within their partitions. */
  def sorted(side: JoinSide): Double = sort(side) / cluster.slots

  /**
   * Whether rows that several places of a query ask for should be computed once and shuffled for all
   * of them, rather than computed in each place.
   *
   * @param computation of the rows, once
   * @param side whose `shuffleExists` says that one place shuffles them in any case
   */
  def isBetterShared(places: Int, computation: Double, side: JoinSide): Boolean = {
    val shuffle = if (side.shuffleExists) 0.0 else shuffled(side)
    (places - 1) * (computation - read(side)) > shuffle
  }

  private def shuffle(side: JoinSide): Double =
    if (side.shuffleExists) stepOf(side, readNs, readByteNs)
    else stepOf(side, shuffleNs, shuffleByteNs)

  private def sort(side: JoinSide): Double = {
    val perTask = math.max(2.0, side.rows / cluster.slots)
    val comparing = sortNs * math.log(perTask) / math.log(2.0)
    stepOf(side, mergeNs + (if (side.singleKey) radixSortNs else comparing), sortByteNs)
  }

  /**
   * What an aggregation of `rows` above pays if they do not come sorted by the join's key: where its
   * groups outgrow the processor's cache, each row looks one up in memory.
   *
   * @param groupBytes of all groups that one task holds
   */
  def scattered(rows: Double, groupBytes: Double): Double =
    if (groupBytes <= cacheBytes) 0.0 else step(rows, 0.0, groupMissNs, 0.0) / cluster.slots

  private def stepOf(side: JoinSide, nsPerRow: Double, nsPerByte: Double): Double =
    step(side.rows, side.bytes, nsPerRow, nsPerByte)
}

object JoinCost {

  /** The weight at which the constants below hold: Spark's `spark.sql.cbo.joinReorder.card.weight`. */
  val calibratedWeight: Double = 0.7

  // Units: …Ns is nanoseconds of one slot for each row, …ByteNs the same for each byte of its rows,
  // …Seconds is once for each join. `make bench-operators` fits each of them to measured times, but for
  // those whose comment says otherwise, and docs/benchmarks.md shows both. They are rounded, and kept where
  // a fit moves time from one to another (a table's rows and bytes, say): what counts is the regret of the
  // choices that they lead to, which the same command publishes.

  // Writing a shuffle and reading it.
  private val shuffleNs = 150.0
  private val shuffleByteNs = 4.0
  // Reading alone: a scan, or a shuffle that has run.
  private val readNs = 40.0
  private val readByteNs = 1.0
  // Sorting: for each comparison that a row takes part in, or for a whole number as key, once.
  private val sortNs = 30.0
  private val radixSortNs = 100.0
  private val sortByteNs = 1.0
  // Walking over sorted rows.
  private val mergeNs = 40.0
  // Putting a row into a hash table, and looking one up.
  private val buildNs = 150.0
  private val buildByteNs = 0.5
  private val probeNs = 60.0
  // Bringing a row to the driver.
  private val collectNs = 100.0
  private val collectByteNs = 5.0
  // From the driver to other processes, for each doubling of them. Not fitted, as one machine sends
  // nothing: 1 ns a byte is a network of 8 Gbit/s.
  private val networkByteNs = 1.0
  // For each pair of rows beyond one for each probe row: out of a hash table that is larger than
  // the cache, and out of sorted rows.
  private val hashedPairNs = 45.0
  private val mergedPairNs = 10.0
  // Returning a row.
  private val outputNs = 40.0
  private val outputByteNs = 0.3
  // One step of an expression, or one update of an aggregate. Not fitted but set by hand, to the order of
  // magnitude: it only has to be far below what a row of a join costs.
  private val evaluateNs = 2.0
  // Finding the group of a row where groups are larger than the cache.
  private val groupMissNs = 250.0
  // Bytes of a processor's cache that one task can count on. Not fitted but set by hand, to the size
  // of an L2 cache; `make bench-operators` measures groups far below it and far above.
  private val cacheBytes = 2.0 * (1 << 20)
  // Copying a row for one of several DISTINCT, beyond putting it into a group. Not fitted but set by hand, so
  // that costs compare as the times of `make bench-aggregates` do, q11 and q29 to q32 (ADR 30).
  private val copyNs = 60.0
  private val copyByteNs = 0.5
  // Finding the group of a row by a text, beyond a number. Not fitted but set by hand, to what queries of
  // TPC-DS tables at scale factor 10 lose by it (ADR 39).
  private val textNs = 60.0
  // Starting a broadcast, and a stage.
  private val broadcastSeconds = 0.02
  private val stageSeconds = 0.05
}
