package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.Phase
import org.apache.spark.SparkEnv
import org.apache.spark.sql.internal.SQLConf

/** What the session's settings, ours and Spark's, say about joins. Read at every call. */
object JoinSettings {

  private val autoBroadcast = SQLConf.AUTO_BROADCASTJOIN_THRESHOLD
  private val adaptiveBroadcast = SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD

  // While a broadcast is built the driver holds it about three times: collected rows, hash table,
  // and serialised blocks, beside what running tasks hold of the same heap. Set by hand: a limit of
  // memory that no command shows. A larger side is shuffled instead.
  private val maxResultSize = "spark.driver.maxResultSize"
  private val heapShare = 128.0
  private val most = 256.0 * (1 << 20)

  /**
   * How much larger than the limit a table may be that would be surprising: the limit leaves room, and
   * a join that is broadcast only where nothing can go wrong is hardly ever broadcast. Set by hand: it
   * matters only where estimates are wrong, which no benchmark of ours shows.
   */
  val surpriseFactor: Double = 4.0

  /** The threshold that the user set for broadcasts in this phase, if any; -1 forbids them. */
  def userThreshold(phase: Phase): Option[Long] = {
    val conf = SQLConf.get
    val adaptive =
      if (phase == Phase.Adaptive) conf.getConf(adaptiveBroadcast) else None
    adaptive.orElse {
      if (conf.contains(autoBroadcast.key)) Some(conf.getConf(autoBroadcast)) else None
    }
  }

  /** The conf from which the limit of broadcasts comes in this phase. */
  def broadcastKey(phase: Phase): String = {
    val conf = SQLConf.get
    if (phase == Phase.Adaptive && conf.getConf(adaptiveBroadcast).isDefined) adaptiveBroadcast.key
    else if (conf.contains(autoBroadcast.key)) autoBroadcast.key
    else SelingerConf.BROADCAST_MAX_BYTES.key
  }

  /** Largest hash table to broadcast; none where the user forbids broadcasts. */
  def broadcastLimit(phase: Phase, cluster: Cluster): Option[Double] =
    userThreshold(phase) match {
      case Some(bytes) if bytes < 0 => None
      case Some(bytes) => Some(bytes.toDouble)
      case None =>
        SelingerConf.BROADCAST_MAX_BYTES.value match {
          case 0 => Some(math.min(cluster.smallerHeapBytes / heapShare, mostOfAny))
          case bytes => Some(bytes.toDouble)
        }
    }

  /**
   * Largest hash table to broadcast whose rows have been counted: it needs no room for surprises. The
   * user's own limits stay as they are.
   */
  def countedLimit(phase: Phase, cluster: Cluster): Option[Double] =
    if (userThreshold(phase).isDefined || SelingerConf.BROADCAST_MAX_BYTES.value != 0) {
      broadcastLimit(phase, cluster)
    } else Some(math.min(cluster.smallerHeapBytes / heapShare * surpriseFactor, mostOfAny))

  /** The driver refuses results of jobs above a limit of its own, and collects broadcasts by a job. */
  private def mostOfAny: Double = {
    val results = Option(SparkEnv.get).fold(0L)(_.conf.getSizeAsBytes(maxResultSize, "1g"))
    if (results > 0) math.min(most, results.toDouble) else most
  }

  /** Whether the user asked for sort-merge joins in so many words. */
  def sortMergeDemanded: Boolean = {
    val conf = SQLConf.get
    conf.contains(SQLConf.PREFER_SORTMERGEJOIN.key) && conf.getConf(SQLConf.PREFER_SORTMERGEJOIN)
  }
}
