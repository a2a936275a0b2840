package io.selinger.strategy

import io.selinger.core.{Origin, Reason}
import io.selinger.cost.{Cluster, JoinCost, JoinSettings}
import io.selinger.strategy.JoinOperator._
import io.selinger.testing.JoinInputs
import io.selinger.testing.JoinInputs.side
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** The choice among operators, without Spark. */
class JoinChoiceSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private val mib: Double = 1 << 20
  private val bothSides: Set[BuildSide] = Set(BuildLeft, BuildRight)

  private val limits = JoinLimits(
    broadcastBuilds = bothSides,
    shuffledBuilds = bothSides,
    sortable = true,
    broadcastLimitBytes = Some(64 * mib),
    countedLimitBytes = Some(256 * mib),
    totalLimitBytes = 512 * mib,
    hashMemoryShare = 0.4,
    hashMemoryMargin = 1.5,
    minGain = 0.25
  )

  private def chooser(limits: JoinLimits, cluster: Cluster = JoinInputs.cluster()) =
    new JoinChoice(cluster, new JoinCost(cluster, JoinCost.calibratedWeight), limits)

  private def choose(
      left: JoinInput,
      right: JoinInput,
      limits: JoinLimits = limits,
      stock: Option[JoinOperator] = None,
      cluster: Cluster = JoinInputs.cluster()
  ): Option[(JoinOperator, Reason)] =
    chooser(limits, cluster).equiJoin(left, right, stock).best.map(c => (c.operator, c.reason))

  /** The same with rows of this origin. */
  private def of(origin: Origin, input: JoinInput): JoinInput = input.copy(estimate =
    input.estimate.copy(rows = input.estimate.rows.copy(origin = origin))
  )

  private val huge = side(1e9)
  private val small = side(1e4)

  // ---- broadcast ----------------------------------------------------------------------------

  test("broadcast fires on a small side, whichever it is") {
    assert(choose(huge, small).contains((BroadcastHash(BuildRight), Reason.BroadcastCheapest)))
    assert(choose(small, huge).contains((BroadcastHash(BuildLeft), Reason.BroadcastCheapest)))
  }

  test("broadcast does not fire on a side that the join type cannot build") {
    val right = limits.copy(broadcastBuilds = Set(BuildRight), shuffledBuilds = Set(BuildRight))
    assert(!choose(small, huge, right).exists(_._1 == BroadcastHash(BuildLeft)))
  }

  test("broadcast does not fire without a limit: the user forbids it") {
    val none = limits.copy(broadcastLimitBytes = None)
    assert(!chooser(none).equiJoin(huge, small, Some(BroadcastHash(BuildRight))).candidates.exists {
      candidate => candidate.operator.isInstanceOf[BroadcastHash]
    })
  }

  test("broadcast does not fire where a surprising number of rows breaks the limit") {
    val risky = side(1e4, upperBound = Some(1e7))
    assert(!choose(huge, risky).exists(_._1 == BroadcastHash(BuildRight)))
  }

  test("broadcast stays where stock Spark agrees and the expected rows fit") {
    val risky = side(1e4, upperBound = Some(1e7))
    val stock = Some(BroadcastHash(BuildRight))
    assert(choose(huge, risky, stock = stock).exists(_._1 == BroadcastHash(BuildRight)))
  }

  test(
    "broadcast does not stay where the expected rows break the limit by far, though Spark would"
  ) {
    val stock = Some(BroadcastHash(BuildRight))
    def stays(rows: Double) =
      choose(huge, side(rows), stock = stock).exists(_._1 == BroadcastHash(BuildRight))
    assert(stays(rows = 1e6))
    assert(!stays(rows = 1e7))
  }

  test("stock's word counts for its own side only") {
    val risky = side(1e4, upperBound = Some(1e7))
    val stock = Some(BroadcastHash(BuildLeft))
    assert(!choose(huge, risky, stock = stock).exists(_._1 == BroadcastHash(BuildRight)))
  }

  test("broadcast does not fire on rows of unknown width, unless Spark would as well") {
    val wide = side(1e4, widthIsKnown = false)
    assert(!choose(huge, wide).exists(_._1 == BroadcastHash(BuildRight)))
    val stock = Some(BroadcastHash(BuildRight))
    assert(choose(huge, wide, stock = stock).exists(_._1 == BroadcastHash(BuildRight)))
  }

  test("broadcast does not fire on more rows than Spark can broadcast") {
    val unlimited = limits.copy(broadcastLimitBytes = Some(1e15), totalLimitBytes = 1e15)
    val candidates = chooser(unlimited).equiJoin(side(6e8), side(6e8), None).candidates
    assert(!candidates.exists(_.operator.isInstanceOf[BroadcastHash]))
  }

  test("broadcast does not fire where the query's total is promised already") {
    def fires(promised: Double) =
      choose(huge, side(4e5, promisedBytes = promised)).exists(_._1 == BroadcastHash(BuildRight))
    assert(fires(promised = 0))
    assert(!fires(promised = limits.totalLimitBytes - mib))
  }

  test("counted rows may fill what is left for surprises, and no more") {
    def fires(rows: Double, origin: Origin, limits: JoinLimits = limits) =
      choose(huge, of(origin, side(rows)), limits).exists(_._1 == BroadcastHash(BuildRight))
    val rows = 128 * mib / side(1).tableBytes(1)
    assert(fires(rows, Origin.Measured) && fires(rows, Origin.Exact))
    assert(!fires(rows, Origin.Derived) && !fires(rows, Origin.Sampled))
    assert(!fires(rows * 2.1, Origin.Measured))
    assert(!fires(rows, Origin.Measured, limits.copy(countedLimitBytes = Some(64 * mib))))
    assert(!fires(rows, Origin.Measured, limits.copy(totalLimitBytes = 100 * mib)))
  }

  test("a table of up to 10 MiB is broadcast whatever has been promised") {
    val table = side(1e4, promisedBytes = limits.totalLimitBytes * 2)
    assert(choose(huge, table).exists(_._1 == BroadcastHash(BuildRight)))
  }

  test("a large broadcast does not fire where both sides are shuffled already") {
    def fires(rows: Double) =
      choose(
        side(1e9, shuffleExists = true),
        side(rows, shuffleExists = true)
      ).exists(_._1 == BroadcastHash(BuildRight))
    assert(fires(rows = 1e4))
    assert(!fires(rows = 4e5))
  }

  // ---- shuffled hash ------------------------------------------------------------------------

  private val noBroadcast = limits.copy(broadcastLimitBytes = None)

  test("a shuffled hash join fires where the most rows that there can be fit") {
    val fits = side(5e5)
    assert(choose(
      huge,
      fits,
      noBroadcast
    ).contains((ShuffledHash(BuildRight), Reason.HashBuildCheapest)))
    assert(choose(
      fits,
      huge,
      noBroadcast
    ).contains((ShuffledHash(BuildLeft), Reason.HashBuildCheapest)))
  }

  test("a shuffled hash join does not fire without a bound (NO_SAFE_HASH_TABLE)") {
    val guessed = side(1e3, bounded = false)
    assert(choose(huge, guessed, noBroadcast).contains((SortMerge, Reason.NothingFits)))
  }

  test("a shuffled hash join does not fire on rows of unknown width (NO_SAFE_HASH_TABLE)") {
    val wide = side(1e3, widthIsKnown = false)
    assert(choose(huge, wide, noBroadcast).contains((SortMerge, Reason.NothingFits)))
  }

  test("a shuffled hash join does not fire where the bound breaks the memory share") {
    val loose = side(1e3, upperBound = Some(1e8))
    assert(choose(huge, loose, noBroadcast).contains((SortMerge, Reason.NothingFits)))
  }

  test("a shuffled hash join does not fire on a side that the join type cannot build") {
    val left = noBroadcast.copy(shuffledBuilds = Set(BuildLeft))
    assert(choose(huge, side(5e5), left).contains((SortMerge, Reason.NothingFits)))
  }

  test("share and margin of the hash memory decide at their edge") {
    val build = side(1e6)
    val cluster = JoinInputs.cluster(taskMib = build.tableBytes(1e6) / mib)
    def fires(share: Double, margin: Double) = choose(
      huge,
      build,
      noBroadcast.copy(hashMemoryShare = share, hashMemoryMargin = margin),
      cluster = cluster
    ).exists(_._1 == ShuffledHash(BuildRight))
    assert(fires(share = 1.0, margin = 1.0))
    assert(!fires(share = 0.99, margin = 1.0))
    assert(!fires(share = 1.0, margin = 1.01))
  }

  test("a measured shuffle counts by its largest task") {
    val spread = side(1e7, shuffleExists = true, largestTaskShare = 0.05)
    val skewed = side(1e7, shuffleExists = true, largestTaskShare = 0.9)
    assert(choose(huge, spread, noBroadcast).exists(_._1 == ShuffledHash(BuildRight)))
    assert(choose(huge, skewed, noBroadcast).exists(_._1 == SortMerge))
  }

  // ---- sort-merge ---------------------------------------------------------------------------

  test("sort-merge where nothing else is safe (NO_SAFE_HASH_TABLE)") {
    assert(choose(huge, huge).contains((SortMerge, Reason.NothingFits)))
  }

  test("sort-merge where hashing is possible and costs more (SORT_MERGE_CHEAPEST)") {
    val tiny = side(2)
    assert(choose(tiny, tiny, noBroadcast).contains((SortMerge, Reason.SortMergeCheapest)))
  }

  test("nothing where nothing is safe and keys cannot be sorted") {
    assert(choose(huge, huge, limits.copy(sortable = false)).isEmpty)
  }

  test("Spark's own operator stays where another saves little (STOCK_CHEAP_ENOUGH)") {
    val (left, right) = (side(1000), side(400))
    assert(choose(left, right, noBroadcast.copy(minGain = 0)).exists(_._1 != SortMerge))
    assert(
      choose(left, right, noBroadcast, stock = Some(SortMerge))
        .contains((SortMerge, Reason.StockCheapEnough))
    )
  }

  test("Spark's own operator does not stay where another saves much, or where it is not safe") {
    val build = side(5e5)
    assert(choose(
      huge,
      build,
      noBroadcast,
      stock = Some(SortMerge)
    ).exists(_._1 == ShuffledHash(BuildRight)))
    val stock = Some(ShuffledHash(BuildLeft))
    assert(choose(huge, huge, noBroadcast, stock = stock).contains((SortMerge, Reason.NothingFits)))
  }

  test("groups above that outgrow the cache speak for rows sorted by the key") {
    val (left, right) = (side(2e7, singleKey = true), side(2e6, singleKey = true))
    val roomy = JoinInputs.cluster(taskMib = 4096)
    def cost(groups: Double, operator: JoinOperator) = chooser(noBroadcast, roomy)
      .equiJoin(left, right, None, groups = JoinChoice.GroupsAbove(groups, groups))
      .candidates
      .find(_.operator == operator)
      .map(_.seconds)
      .get
    assert(cost(1e9, ShuffledHash(BuildRight)) > cost(1e3, ShuffledHash(BuildRight)))
    assert(cost(1e9, SortMerge) == cost(1e3, SortMerge))
  }

  test("rows that find very many partners are merged: each would be a jump in a hash table") {
    val (left, right) = (side(2e7), side(2e6))
    val roomy = JoinInputs.cluster(taskMib = 4096)
    def best(pairs: Double) =
      chooser(noBroadcast, roomy).equiJoin(left, right, None, pairs).best.map(_.operator)
    assert(best(2e7).contains(ShuffledHash(BuildRight)))
    assert(best(2e10).contains(SortMerge))
  }

  // ---- invariants ---------------------------------------------------------------------------

  test("a tie goes to the operator whose label comes first") {
    assert(choose(small, small).exists(_._1 == BroadcastHash(BuildLeft)))
    assert(choose(side(5e5), side(5e5), noBroadcast).exists(_._1 == ShuffledHash(BuildLeft)))
  }

  private val inputs: Gen[JoinInput] = for {
    rows <- Gen.choose(0.0, 10.0).map(math.pow(10, _) - 1)
    slack <- Gen.oneOf(1.0, 2.0, 1e3)
    bounded <- Gen.oneOf(true, false)
    rowBytes <- Gen.choose(16.0, 400.0)
    shuffled <- Gen.oneOf(true, false)
    share <- Gen.choose(0.01, 1.0)
    promised <- Gen.choose(0.0, 1000.0).map(_ * mib)
    measured = if (shuffled) share else 1.0
    origin <- Gen.oneOf(Origin.Exact, Origin.Measured, Origin.Sampled, Origin.Derived)
  } yield of(
    origin,
    side(rows, Some(rows * slack), bounded, rowBytes, shuffled, measured, promised)
  )

  private val anyLimits: Gen[JoinLimits] = for {
    broadcasts <- Gen.someOf(bothSides)
    shuffles <- Gen.someOf(bothSides)
    limit <- Gen.option(Gen.choose(0.0, 1000.0).map(_ * mib))
    margin <- Gen.choose(1.0, 4.0)
  } yield limits.copy(
    broadcastBuilds = broadcasts.toSet,
    shuffledBuilds = shuffles.toSet,
    broadcastLimitBytes = limit,
    hashMemoryMargin = margin
  )

  test("whatever is chosen is the cheapest candidate, finite, allowed and safe") {
    val cluster = JoinInputs.cluster()
    forAll(inputs, inputs, anyLimits) { (left, right, limits) =>
      val choice = chooser(limits, cluster).equiJoin(left, right, None)
      assert(choice.candidates.map(_.seconds).forall(s => s >= 0 && !s.isInfinite && !s.isNaN))
      assert(choice.best.map(_.seconds).contains(choice.candidates.map(_.seconds).min))
      def built(side: BuildSide) = if (side == BuildLeft) left else right
      choice.candidates.map(_.operator).foreach {
        case BroadcastHash(build) =>
          assert(limits.broadcastBuilds(build))
          val table = built(build)
          val feared = table.tableBytes(table.estimate.upperBound)
          val limit = limits.broadcastLimitBytes.get
          val most = if (table.isCounted) limits.countedLimitBytes.get else limit
          assert(table.tableBytes(table.estimate.rows.value) <= most)
          assert(feared <= limit * JoinSettings.surpriseFactor)
          assert(feared <= 10 * mib || table.promisedBytes + feared <= limits.totalLimitBytes)
        case ShuffledHash(build) =>
          assert(limits.shuffledBuilds(build))
          val rows = built(build).estimate.bound.get * built(build).largestTaskShare
          assert(
            built(build).tableBytes(rows) * limits.hashMemoryMargin <=
              cluster.taskMemoryBytes * limits.hashMemoryShare
          )
        case other => assert(other == SortMerge)
      }
    }
  }

  test("the choice does not depend on which side is called left") {
    def mirrored(operator: JoinOperator): JoinOperator = {
      def other(build: BuildSide) = if (build == BuildLeft) BuildRight else BuildLeft
      operator match {
        case BroadcastHash(build) => BroadcastHash(other(build))
        case ShuffledHash(build) => ShuffledHash(other(build))
        case same => same
      }
    }
    forAll(inputs, inputs) { (left, right) =>
      val here = chooser(limits).equiJoin(left, right, None)
      val there = chooser(limits).equiJoin(right, left, None)
      val (cost, mirror) = (here.best.get.seconds, there.best.get.seconds)
      assert(math.abs(cost - mirror) <= cost * 1e-9)
      assert(
        here.candidates.map(_.operator).toSet == there.candidates.map(c =>
          mirrored(c.operator)
        ).toSet
      )
    }
  }

  // ---- joins without equalities -------------------------------------------------------------

  private def nested(left: JoinInput, right: JoinInput, limits: JoinLimits = limits) =
    chooser(limits).nestedLoop(left, right).best.map(c => (c.operator, c.reason))

  test("a nested loop fires on the side that fits (NESTED_LOOP_BROADCAST_FITS)") {
    assert(nested(huge, small).contains((BroadcastNestedLoop(BuildRight), Reason.NestedLoopFits)))
    assert(nested(small, huge).contains((BroadcastNestedLoop(BuildLeft), Reason.NestedLoopFits)))
  }

  test("a nested loop does not fire where no side fits, is allowed, or is known well enough") {
    assert(nested(huge, huge).isEmpty)
    assert(nested(huge, small, noBroadcast).isEmpty)
    assert(nested(huge, small, limits.copy(broadcastBuilds = Set(BuildLeft))).isEmpty)
    assert(nested(huge, side(1e3, upperBound = Some(1e9))).isEmpty)
  }
}
