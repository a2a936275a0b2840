package io.selinger.testing

import io.selinger.cost.{BuildSides, Cluster, JoinCost, JoinFacts, JoinLimits, JoinSide}
import org.scalacheck.Gen

/** Hand-made sides of joins, and what they may use. */
object JoinSides {

  val mib: Double = 1 << 20

  def cluster(
      slots: Int = 4,
      executors: Int = 2,
      heapMib: Double = 4096,
      taskMib: Double = 256
  ): Cluster =
    Cluster(slots, executors, heapMib * mib, heapMib * mib, taskMib * mib)

  def cost(of: Cluster = cluster()): JoinCost =
    new JoinCost(of, JoinCost.calibratedWeight)

  val limits: JoinLimits = JoinLimits(
    broadcastBytes = Some(64 * mib),
    countedBroadcastBytes = Some(256 * mib),
    totalBroadcastBytes = 512 * mib,
    taskHashBytes = 0.4 * 256 * mib,
    hashMargin = 1.5,
    allowsShuffledHash = true
  )

  /** Of an inner join. */
  val bothSides: BuildSides = BuildSides(
    broadcastLeft = true,
    broadcastRight = true,
    shuffledLeft = true,
    shuffledRight = true,
    isInner = true
  )

  /** A side that cannot have more rows than are expected, unless the other arguments say otherwise. */
  def side(
      rows: Double,
      upperBound: Option[Double] = None,
      bounded: Boolean = true,
      rowBytes: Double = 32,
      shuffleExists: Boolean = false,
      largestTaskShare: Double = 1.0,
      otherBroadcastBytes: Double = 0,
      broadcastPlaces: Int = 1,
      widthIsKnown: Boolean = true,
      singleKey: Boolean = false,
      isCounted: Boolean = false
  ): JoinSide = {
    val most = upperBound.getOrElse(rows)
    JoinSide(
      rows,
      most,
      if (bounded) Some(most) else None,
      isCounted,
      rowBytes,
      widthIsKnown,
      keyBytes = 16,
      packedKey = true,
      singleKey,
      shuffleExists,
      largestTaskShare,
      otherBroadcastBytes,
      broadcastPlaces
    )
  }

  val rows: Gen[Double] = Gen.choose(0.0, 10.0).map(math.pow(10, _) - 1)

  val sides: Gen[JoinSide] = for {
    rows <- rows
    slack <- Gen.oneOf(1.0, 2.0, 1e3)
    bounded <- Gen.oneOf(true, false)
    rowBytes <- Gen.choose(16.0, 400.0)
    shuffled <- Gen.oneOf(true, false)
    share <- Gen.choose(0.01, 1.0)
    promised <- Gen.choose(0.0, 1000.0).map(_ * mib)
    measured = if (shuffled) share else 1.0
    counted <- Gen.oneOf(true, false)
  } yield side(
    rows,
    Some(rows * slack),
    bounded,
    rowBytes,
    shuffled,
    measured,
    promised,
    isCounted = counted
  )

  val anyBuilds: Gen[BuildSides] = for {
    broadcastLeft <- Gen.oneOf(true, false)
    broadcastRight <- Gen.oneOf(true, false)
    shuffledLeft <- Gen.oneOf(true, false)
    shuffledRight <- Gen.oneOf(true, false)
    inner <- Gen.oneOf(true, false)
  } yield BuildSides(broadcastLeft, broadcastRight, shuffledLeft, shuffledRight, inner)

  val anyLimits: Gen[JoinLimits] = for {
    limit <- Gen.option(Gen.choose(0.0, 1000.0).map(_ * mib))
    margin <- Gen.choose(1.0, 4.0)
    total <- Gen.oneOf(100.0, 512.0).map(_ * mib)
    hash <- Gen.choose(0.0, 500.0).map(_ * mib)
    allowed <- Gen.oneOf(true, true, false)
  } yield JoinLimits(limit, Some(256 * mib), total, hash, margin, allowed)

  def equiJoin(left: JoinSide, right: JoinSide, pairs: Double = 0.0): JoinFacts =
    new JoinFacts(left, right, bothSides, hasKeys = true, pairs)
}
