package io.selinger.strategy

import io.selinger.core.{Origin, Reason}
import io.selinger.cost.{Cluster, HashTable, JoinCost, JoinSettings, JoinSide}
import io.selinger.estimate.PlanEstimate
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}

/** A way to run a join. */
sealed trait JoinOperator {
  def label: String
}

object JoinOperator {
  private def side(build: BuildSide): String = if (build == BuildLeft) "left" else "right"

  final case class BroadcastHash(build: BuildSide) extends JoinOperator {
    def label: String = s"BroadcastHashJoin(${side(build)})"
  }
  final case class ShuffledHash(build: BuildSide) extends JoinOperator {
    def label: String = s"ShuffledHashJoin(${side(build)})"
  }
  case object SortMerge extends JoinOperator {
    def label: String = "SortMergeJoin"
  }
  final case class BroadcastNestedLoop(build: BuildSide) extends JoinOperator {
    def label: String = s"BroadcastNestedLoopJoin(${side(build)})"
  }
  case object Cartesian extends JoinOperator {
    def label: String = "CartesianProduct"
  }
}

/**
 * One input of a join with the evidence about it.
 *
 * @param estimate of its rows
 * @param rowBytes width of one
 * @param widthIsKnown whether that is measured or computed; a default is no evidence
 * @param keyBytes width of its join key
 * @param numericKey whether the key packs into one long
 * @param shuffleExists see [[JoinSide]]
 * @param promisedBytes that other broadcasts of the query take; the same table broadcast twice is
 *   one, for Spark reuses it
 * @param largestTaskShare of its rows, the most that one task of a shuffled join reads: measured
 *   from the shuffle where that has run, else 1, since a single key may hold them all
 */
final case class JoinInput(
    estimate: PlanEstimate,
    rowBytes: Double,
    widthIsKnown: Boolean,
    keyBytes: Double,
    numericKey: Boolean,
    shuffleExists: Boolean,
    singleKey: Boolean,
    promisedBytes: Double,
    largestTaskShare: Double
) {

  def side: JoinSide = JoinSide(estimate.rows.value, rowBytes, shuffleExists, singleKey)

  def isCounted: Boolean =
    estimate.rows.origin == Origin.Measured || estimate.rows.origin == Origin.Exact

  def tableBytes(rows: Double): Double = HashTable.bytes(rows, rowBytes, keyBytes, numericKey)

  /** Of the hash table that the largest task of a shuffled join builds. */
  def taskTableBytes: Double = tableBytes(estimate.rows.value * largestTaskShare)
}

/**
 * What the query, its user and Spark's operators allow.
 *
 * @param broadcastLimitBytes of one build side; none where the user forbids broadcasts
 * @param countedLimitBytes the same where its rows have been counted
 * @param minGain share of the cost of Spark's operator that another one must save
 * @param totalLimitBytes of all broadcasts of the query
 */
final case class JoinLimits(
    broadcastBuilds: Set[BuildSide],
    shuffledBuilds: Set[BuildSide],
    sortable: Boolean,
    broadcastLimitBytes: Option[Double],
    countedLimitBytes: Option[Double],
    totalLimitBytes: Double,
    hashMemoryShare: Double,
    hashMemoryMargin: Double,
    minGain: Double
)

/**
 * The choice among join operators, as a pure function of estimates, costs and limits.
 *
 * What can fail for want of memory is judged by the number that matches its stake: a broadcast by
 * the rows that would be surprising to exceed, a shuffled hash table, which cannot spill, by the
 * rows that cannot be exceeded. Among operators that are safe the cheapest wins, by expected rows.
 */
final class JoinChoice(cluster: Cluster, cost: JoinCost, limits: JoinLimits) {
  import JoinChoice._
  import JoinOperator._

  /**
   * For a join with equalities.
   *
   * @param stock what Spark would run
   * @param pairs of rows with equal keys
   * @param groups bytes of the groups that an aggregation above makes of the join's keys, in all
   *   and in one task of a shuffled join; 0 where there is none
   */
  def equiJoin(
      left: JoinInput,
      right: JoinInput,
      stock: Option[JoinOperator],
      pairs: Double = 0.0,
      groups: GroupsAbove = GroupsAbove.none
  ): Choice = {
    val rows = math.max(left.estimate.rows.value, right.estimate.rows.value)
    val broadcasts = limits.broadcastBuilds.toSeq.collect {
      case build if mayBroadcast(build, left, right, stock.contains(BroadcastHash(build))) =>
        val (b, s) = (pick(build, left, right), pick(other(build), left, right))
        Candidate(
          BroadcastHash(build),
          cost.broadcastHash(b.side, s.side) + cost.scattered(rows, groups.bytes) +
            cost.hashedPairs(pairs, s.side, b.tableBytes(b.estimate.rows.value)),
          Reason.BroadcastCheapest
        )
    }
    val shuffled = limits.shuffledBuilds.toSeq.collect {
      case build if tableIsSafe(pick(build, left, right)) =>
        val (b, s) = (pick(build, left, right), pick(other(build), left, right))
        Candidate(
          ShuffledHash(build),
          cost.shuffledHash(b.side, s.side) + cost.scattered(rows, groups.bytesPerTask) +
            cost.hashedPairs(pairs, s.side, b.taskTableBytes),
          Reason.HashBuildCheapest
        )
    }
    val sorted = if (limits.sortable) {
      val reason =
        if (broadcasts.isEmpty && shuffled.isEmpty) Reason.NothingFits else Reason.SortMergeCheapest
      val seconds = cost.sortMerge(left.side, right.side) +
        cost.mergedPairs(pairs, if (left.side.rows >= right.side.rows) left.side else right.side)
      Seq(Candidate(SortMerge, seconds, reason))
    } else Nil
    // Ties go to the operator named first, so the choice does not depend on the order of a set.
    val candidates = (broadcasts ++ shuffled ++ sorted).sortBy(c => (c.seconds, c.operator.label))
    Choice(worthwhile(candidates, stock), candidates)
  }

  /** For a join without equalities; only the broadcast of one side is ours to choose. */
  def nestedLoop(left: JoinInput, right: JoinInput): Choice = {
    val candidates = limits.broadcastBuilds.toSeq
      .collect {
        case build if broadcastIsSafe(pick(build, left, right), stockAgrees = false) =>
          val (b, s) = (pick(build, left, right), pick(other(build), left, right))
          Candidate(
            BroadcastNestedLoop(build),
            cost.broadcastHash(b.side, s.side),
            Reason.NestedLoopFits
          )
      }
      .sortBy(c => (c.seconds, c.operator.label))
    Choice(candidates.headOption, candidates)
  }

  /** The cheapest, or Spark's own choice where that costs little more than estimates are worth. */
  private def worthwhile(
      candidates: Seq[Candidate],
      stock: Option[JoinOperator]
  ): Option[Candidate] =
    candidates.headOption.map { cheapest =>
      candidates
        .find(c => stock.contains(c.operator))
        .filter(_.seconds * (1.0 - limits.minGain) <= cheapest.seconds)
        .map(_.copy(reason = Reason.StockCheapEnough))
        .filter(_.operator != cheapest.operator)
        .getOrElse(cheapest)
    }

  /**
   * Once both sides are shuffled by the join's keys, a large broadcast saves little: it would give
   * up small hash tables, and rows of one key in one task, which an aggregation above thrives on.
   */
  private def mayBroadcast(
      build: BuildSide,
      left: JoinInput,
      right: JoinInput,
      stockAgrees: Boolean
  ): Boolean = {
    val side = pick(build, left, right)
    val shuffled = left.shuffleExists && right.shuffleExists
    broadcastIsSafe(side, stockAgrees) &&
    (!shuffled || stockAgrees || side.tableBytes(side.estimate.upperBound) <= smallBytes)
  }

  /**
   * Safe if the expected rows fit the limit, and a surprising number of them what it leaves room
   * for. Where Spark would broadcast as well, only an
   * estimate far above the limit speaks against it.
   */
  private def broadcastIsSafe(build: JoinInput, stockAgrees: Boolean): Boolean =
    limits.broadcastLimitBytes.exists { limit =>
      val expected = build.tableBytes(build.estimate.rows.value)
      val feared = build.tableBytes(build.estimate.upperBound)
      val most = if (build.isCounted) limits.countedLimitBytes.getOrElse(limit) else limit
      val fits = build.widthIsKnown && expected <= most &&
        feared <= limit * JoinSettings.surpriseFactor &&
        (feared <= smallBytes || build.promisedBytes + feared <= limits.totalLimitBytes)
      build.estimate.rows.value <= mostBroadcastRows &&
      (fits || stockAgrees && expected <= limit * stockMargin)
    }

  /** Safe if the largest task's part of the most rows there can be fits that task's memory share. */
  private def tableIsSafe(build: JoinInput): Boolean =
    build.widthIsKnown && build.estimate.bound.exists { rows =>
      val bytes = build.tableBytes(rows * build.largestTaskShare) * limits.hashMemoryMargin
      bytes <= cluster.taskMemoryBytes * limits.hashMemoryShare
    }

  private def pick(build: BuildSide, left: JoinInput, right: JoinInput): JoinInput =
    if (build == BuildLeft) left else right

  private def other(build: BuildSide): BuildSide = if (build == BuildLeft) BuildRight else BuildLeft
}

object JoinChoice {

  /** An operator that is allowed and safe, with its cost and the reason if it is the cheapest. */
  final case class Candidate(operator: JoinOperator, seconds: Double, reason: Reason)

  /** See [[JoinChoice.equiJoin]]. */
  final case class GroupsAbove(bytes: Double, bytesPerTask: Double)

  object GroupsAbove {
    val none: GroupsAbove = GroupsAbove(0.0, 0.0)
  }

  /** @param best none where no operator is both possible and safe */
  final case class Choice(best: Option[Candidate], candidates: Seq[Candidate])

  /** Spark refuses to broadcast more rows than this. */
  private val mostBroadcastRows = 512000000.0

  /** How far above our limit an estimate must be before it overrules a broadcast of Spark's. */
  private val stockMargin = 4.0

  /** Tables of this size, which Spark broadcasts by default, do not compete for the query's total. */
  private val smallBytes = 10.0 * (1 << 20)
}
