package io.selinger.strategy

import io.selinger.core.Reason
import io.selinger.cost.{
  BroadcastHash,
  BroadcastNestedLoop,
  BuildSides,
  Cluster,
  GroupsAbove,
  JoinFacts,
  JoinLimits,
  JoinOperator,
  JoinOperatorModel,
  JoinOperators,
  JoinSettings,
  JoinSide,
  ShuffledHash,
  SortMerge
}
import io.selinger.strategy.JoinChoice.Choice
import io.selinger.testing.JoinSides
import io.selinger.testing.JoinSides.{anyBuilds, anyLimits, bothSides, limits, mib, side, sides}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** The choice among operators, without Spark. */
class JoinChoiceSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def choice(
      left: JoinSide,
      right: JoinSide,
      limits: JoinLimits = limits,
      stock: Option[JoinOperator] = None,
      cluster: Cluster = JoinSides.cluster(),
      builds: BuildSides = bothSides,
      pairs: Double = 0.0,
      groups: GroupsAbove = GroupsAbove.none,
      hasKeys: Boolean = true,
      minGain: Double = 0.25
  ): Choice = {
    val model = new JoinOperatorModel(JoinOperators.all, JoinSides.cost(cluster), limits)
    val join = new JoinFacts(left, right, builds, hasKeys, pairs, groups, stock)
    new JoinChoice(model, minGain).choose(join)
  }

  private def choose(
      left: JoinSide,
      right: JoinSide,
      limits: JoinLimits = limits,
      stock: Option[JoinOperator] = None,
      cluster: Cluster = JoinSides.cluster(),
      builds: BuildSides = bothSides,
      minGain: Double = 0.25
  ): Option[(JoinOperator, Reason)] =
    choice(left, right, limits, stock, cluster, builds, minGain = minGain).best
      .map(c => (c.operator, c.reason))

  private val huge = side(1e9)
  private val small = side(1e4)

  // ---- broadcast ----------------------------------------------------------------------------

  test("broadcast fires on a small side, whichever it is") {
    assert(choose(huge, small).contains((BroadcastHash(BuildRight), Reason.BroadcastCheapest)))
    assert(choose(small, huge).contains((BroadcastHash(BuildLeft), Reason.BroadcastCheapest)))
  }

  test("broadcast does not fire on a side that the join type cannot build") {
    val right = bothSides.copy(broadcastLeft = false, shuffledLeft = false)
    assert(!choose(small, huge, builds = right).exists(_._1 == BroadcastHash(BuildLeft)))
  }

  test("broadcast does not fire without a limit: the user forbids it") {
    val stock = Some(BroadcastHash(BuildRight))
    val candidates = choice(huge, small, noBroadcast, stock).candidates
    assert(!candidates.exists(_.operator.isInstanceOf[BroadcastHash]))
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
    val unlimited = limits.copy(broadcastBytes = Some(1e15), totalBroadcastBytes = 1e15)
    val candidates = choice(side(6e8), side(6e8), unlimited).candidates
    assert(!candidates.exists(_.operator.isInstanceOf[BroadcastHash]))
  }

  test("broadcast does not fire where the query's total is promised already") {
    def fires(promised: Double) =
      choose(huge, side(4e5, otherBroadcastBytes = promised))
        .exists(_._1 == BroadcastHash(BuildRight))
    assert(fires(promised = 0))
    assert(!fires(promised = limits.totalBroadcastBytes - mib))
  }

  test("counted rows may fill what is left for surprises, and no more") {
    def fires(rows: Double, isCounted: Boolean, limits: JoinLimits = limits) =
      choose(huge, side(rows, isCounted = isCounted), limits)
        .exists(_._1 == BroadcastHash(BuildRight))
    val rows = 128 * mib / side(1).tableBytes(1)
    assert(fires(rows, isCounted = true) && !fires(rows, isCounted = false))
    assert(!fires(rows * 2.1, isCounted = true))
    assert(!fires(rows, isCounted = true, limits.copy(countedBroadcastBytes = Some(64 * mib))))
    assert(!fires(rows, isCounted = true, limits.copy(totalBroadcastBytes = 100 * mib)))
  }

  test("a table of up to 10 MiB is broadcast whatever has been promised") {
    val table = side(1e4, otherBroadcastBytes = limits.totalBroadcastBytes * 2)
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

  private val noBroadcast = limits.copy(broadcastBytes = None)

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
    val left = bothSides.copy(shuffledRight = false)
    assert(
      choose(huge, side(5e5), noBroadcast, builds = left)
        .contains((SortMerge, Reason.NothingFits))
    )
  }

  test("a shuffled hash join does not fire where the user demands sort-merge joins") {
    val demanded = noBroadcast.copy(allowsShuffledHash = false)
    assert(choose(huge, side(5e5), demanded).contains((SortMerge, Reason.NothingFits)))
  }

  test("share and margin of the hash memory decide at their edge") {
    val build = side(1e6)
    def fires(share: Double, margin: Double) = choose(
      huge,
      build,
      noBroadcast.copy(taskHashBytes = build.tableBytes(1e6) * share, hashMargin = margin)
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

  private val roomy = noBroadcast.copy(taskHashBytes = 0.4 * 4096 * mib)

  // ---- sort-merge ---------------------------------------------------------------------------

  test("sort-merge where nothing else is safe (NO_SAFE_HASH_TABLE)") {
    assert(choose(huge, huge).contains((SortMerge, Reason.NothingFits)))
  }

  test("sort-merge where hashing is possible and costs more (SORT_MERGE_CHEAPEST)") {
    val tiny = side(2)
    assert(choose(tiny, tiny, noBroadcast).contains((SortMerge, Reason.SortMergeCheapest)))
  }

  test("Spark's own operator stays where another saves little (STOCK_CHEAP_ENOUGH)") {
    val (left, right) = (side(1000), side(400))
    assert(choose(left, right, noBroadcast, minGain = 0).exists(_._1 != SortMerge))
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
    def cost(groups: Double, operator: JoinOperator, pairs: Double, isInner: Boolean) =
      choice(
        left,
        right,
        roomy.copy(broadcastBytes = Some(1e9), totalBroadcastBytes = 1e9),
        builds = bothSides.copy(isInner = isInner),
        pairs = pairs,
        groups = GroupsAbove(groups, groups)
      ).candidates
        .find(_.operator == operator)
        .map(_.seconds)
        .get
    def added(operator: JoinOperator, pairs: Double, isInner: Boolean) =
      cost(1e9, operator, pairs, isInner) - cost(1e3, operator, pairs, isInner)
    Seq[JoinOperator](ShuffledHash(BuildRight), BroadcastHash(BuildRight)).foreach { hashed =>
      val all = added(hashed, pairs = 2e7, isInner = true)
      assert(all > 0.0)
      // Rows that find no partner are not grouped, unless the join keeps them.
      assert(math.abs(added(hashed, pairs = 2e5, isInner = true) / all - 0.01) < 1e-6)
      assert(math.abs(added(hashed, pairs = 2e5, isInner = false) / all - 1.0) < 1e-6)
    }
    assert(added(SortMerge, pairs = 2e7, isInner = true) == 0.0)
  }

  test("rows that find very many partners are merged: each would be a jump in a hash table") {
    val (left, right) = (side(2e7), side(2e6))
    def best(pairs: Double) = choice(left, right, roomy, pairs = pairs).best.map(_.operator)
    assert(best(2e7).contains(ShuffledHash(BuildRight)))
    assert(best(2e10).contains(SortMerge))
  }

  // ---- invariants ---------------------------------------------------------------------------

  test("a tie goes to the operator whose label comes first") {
    assert(choose(small, small).exists(_._1 == BroadcastHash(BuildLeft)))
    assert(choose(side(5e5), side(5e5), noBroadcast).exists(_._1 == ShuffledHash(BuildLeft)))
  }

  test("whatever is chosen is the cheapest candidate, finite, allowed and safe") {
    forAll(sides, sides, anyLimits, anyBuilds) { (left, right, limits, builds) =>
      val found = choice(left, right, limits, builds = builds)
      assert(found.candidates.map(_.seconds).forall(s => s >= 0 && !s.isInfinite && !s.isNaN))
      assert(found.best.map(_.seconds).contains(found.candidates.map(_.seconds).min))
      def built(side: BuildSide) = if (side == BuildLeft) left else right
      found.candidates.map(_.operator).foreach {
        case BroadcastHash(build) =>
          assert(builds.broadcast(build))
          val table = built(build)
          val upper = table.tableBytes(table.upperBound)
          val limit = limits.broadcastBytes.get
          val most = if (table.isCounted) limits.countedBroadcastBytes.get else limit
          assert(table.tableBytes(table.rows) <= most)
          assert(upper <= limit * JoinSettings.surpriseFactor)
          assert(
            upper <= 10 * mib || table.otherBroadcastBytes + upper <= limits.totalBroadcastBytes
          )
        case ShuffledHash(build) =>
          assert(builds.shuffled(build) && limits.allowsShuffledHash)
          val rows = built(build).maxRows.get * built(build).largestTaskShare
          assert(built(build).tableBytes(rows) * limits.hashMargin <= limits.taskHashBytes)
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
    forAll(sides, sides) { (left, right) =>
      val here = choice(left, right)
      val there = choice(right, left)
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

  private def nested(
      left: JoinSide,
      right: JoinSide,
      limits: JoinLimits = limits,
      builds: BuildSides = bothSides,
      stock: Option[JoinOperator] = None
  ) =
    choice(left, right, limits, stock, builds = builds, hasKeys = false).best
      .map(c => (c.operator, c.reason))

  test("a nested loop fires on the side that fits (NESTED_LOOP_BROADCAST_FITS)") {
    assert(nested(huge, small).contains((BroadcastNestedLoop(BuildRight), Reason.NestedLoopFits)))
    assert(nested(small, huge).contains((BroadcastNestedLoop(BuildLeft), Reason.NestedLoopFits)))
  }

  test("a nested loop does not fire where no side fits, is allowed, or is known well enough") {
    assert(nested(huge, huge).isEmpty)
    assert(nested(huge, small, noBroadcast).isEmpty)
    assert(nested(huge, small, builds = bothSides.copy(broadcastRight = false)).isEmpty)
    assert(nested(huge, side(1e3, upperBound = Some(1e9))).isEmpty)
  }

  test("without keys, a Cartesian product is never chosen, and Spark's own choice says nothing") {
    assert(choice(huge, huge, hasKeys = false).candidates.isEmpty)
    val stock = Some(BroadcastNestedLoop(BuildLeft))
    assert(
      nested(side(400), side(399), stock = stock)
        .contains((BroadcastNestedLoop(BuildRight), Reason.NestedLoopFits))
    )
  }
}
