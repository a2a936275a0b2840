package io.selinger.cost

/**
 * One input of a join, as far as its operators' costs go.
 *
 * @param rows expected rows
 * @param rowBytes width of a row in Spark's format
 * @param shuffleExists whether its shuffle has run already in this query, or its rows come
 *   partitioned by the join's keys, so that no other is needed
 * @param singleKey whether the key is one whole number, which Spark sorts by radix, without
 *   comparing rows
 */
final case class JoinSide(
    rows: Double,
    rowBytes: Double,
    shuffleExists: Boolean,
    singleKey: Boolean = false
) {
  def bytes: Double = rows * rowBytes
}

/**
 * Time that each join operator takes, in seconds of an otherwise idle cluster: not a forecast, but
 * a scale on which operators compare.
 *
 * Each step costs time per row and time per byte. They were set by hand, from TPC-DS queries at scale
 * factor 10 on Spark 4.3 (`make bench-operators` compares them with measured times), and hold at the
 * default weight; `spark.selinger.cbo.weight` shifts them against each other as
 * in the reference formula, weight × rows + (1 − weight) × bytes.
 *
 * @param weight of rows against bytes, 0 to 1
 */
final class JoinCost(cluster: Cluster, weight: Double) {
  import JoinCost._

  private val perRow = weight / calibratedWeight
  private val perByte = (1.0 - weight) / (1.0 - calibratedWeight)

  private def step(rows: Double, bytes: Double, nsPerRow: Double, nsPerByte: Double): Double =
    (rows * nsPerRow * perRow + bytes * nsPerByte * perByte) * 1e-9

  /** Broadcast hash join that builds from `build`. */
  def broadcastHash(build: JoinSide, stream: JoinSide): Double =
    broadcast(build) + stepOf(stream, probeNs, 0.0) / cluster.slots

  /** Shuffled hash join that builds from `build`. */
  def shuffledHash(build: JoinSide, stream: JoinSide): Double =
    (shuffle(build) + shuffle(stream) +
      stepOf(build, buildNs, buildByteNs) + stepOf(
        stream,
        probeNs,
        0.0
      )) / cluster.slots + stageSeconds

  /** Sort-merge join. */
  def sortMerge(left: JoinSide, right: JoinSide): Double =
    (shuffle(left) + shuffle(right) + sort(left) + sort(right)) / cluster.slots + stageSeconds

  /**
   * What pairs of equal keys cost a hash join beyond one for each streamed row: each is a jump in a
   * table that has outgrown the processor's cache.
   *
   * @param tableBytes of what one task builds
   */
  def hashedPairs(pairs: Double, stream: JoinSide, tableBytes: Double): Double =
    if (tableBytes <= cacheBytes) mergedPairs(pairs, stream)
    else step(math.max(0.0, pairs - stream.rows), 0.0, hashedPairNs, 0.0) / cluster.slots

  /** The same for a sort-merge join, which walks over rows of equal keys in their order. */
  def mergedPairs(pairs: Double, stream: JoinSide): Double =
    step(math.max(0.0, pairs - stream.rows), 0.0, mergedPairNs, 0.0) / cluster.slots

  /** What it takes a join to return rows, whichever operator runs it. */
  def output(rows: Double, rowBytes: Double): Double =
    step(rows, rows * rowBytes, outputNs, outputByteNs) / cluster.slots

  /** Collected and built on the driver by one thread, then copied to every executor. */
  def broadcast(side: JoinSide): Double = {
    val copies = math.log(cluster.executors + 1.0) / math.log(2.0)
    stepOf(side, collectNs + buildNs, collectByteNs + buildByteNs + copies * networkByteNs) +
      broadcastSeconds
  }

  /** What a shuffle of rows takes. */
  def shuffled(side: JoinSide): Double = shuffle(side) / cluster.slots

  /** What it takes to read rows of a scan, or of a shuffle that has run. */
  def read(side: JoinSide): Double = stepOf(side, readNs, readByteNs) / cluster.slots

  /** What it takes to look rows up in a hash table that is there. */
  def probed(rows: Double): Double = step(rows, 0.0, probeNs, 0.0) / cluster.slots

  /** What it takes to put rows into the groups of an aggregation. */
  def grouped(rows: Double): Double = step(rows, 0.0, buildNs, 0.0) / cluster.slots

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

  /** The weight at which the constants below hold. */
  val calibratedWeight: Double = 0.7

  private val shuffleNs = 150.0
  private val shuffleByteNs = 4.0
  private val readNs = 40.0
  private val readByteNs = 1.0
  private val sortNs = 30.0
  private val radixSortNs = 100.0
  private val sortByteNs = 1.0
  private val mergeNs = 40.0
  private val buildNs = 150.0
  private val buildByteNs = 0.5
  private val probeNs = 60.0
  private val collectNs = 100.0
  private val collectByteNs = 5.0
  private val networkByteNs = 1.0
  private val hashedPairNs = 45.0
  private val mergedPairNs = 10.0
  private val outputNs = 40.0
  private val outputByteNs = 0.3
  private val groupMissNs = 250.0
  private val cacheBytes = 2.0 * (1 << 20)
  private val broadcastSeconds = 0.02
  private val stageSeconds = 0.05
}
