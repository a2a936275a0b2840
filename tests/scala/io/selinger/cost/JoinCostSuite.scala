package io.selinger.cost

import io.selinger.testing.JoinSides
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

class JoinCostSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def cost(
      weight: Double = JoinCost.calibratedWeight,
      cluster: Cluster = JoinSides.cluster()
  ) =
    new JoinCost(cluster, weight)

  private val operators: Seq[(String, (JoinCost, JoinSide, JoinSide) => Double)] = Seq(
    "broadcast hash" -> (_.broadcastHash(_, _)),
    "shuffled hash" -> (_.shuffledHash(_, _)),
    "sort-merge" -> (_.sortMerge(_, _))
  )

  private val sides: Gen[JoinSide] = for {
    rows <- Gen.oneOf(Gen.const(0.0), Gen.choose(0.0, 12.0).map(math.pow(10, _)))
    width <- Gen.choose(16.0, 1000.0)
    exists <- Gen.oneOf(true, false)
  } yield JoinSide(rows, width, exists)

  operators.foreach { case (name, seconds) =>
    test(s"$name: finite and positive, at every weight") {
      forAll(sides, sides, Gen.choose(0.0, 1.0)) { (build, stream, weight) =>
        val found = seconds(cost(weight), build, stream)
        assert(found >= 0 && !found.isNaN && !found.isInfinite)
      }
    }

    test(s"$name: more rows, or wider ones, never cost less") {
      forAll(sides, sides, Gen.choose(1.0, 100.0)) { (build, stream, factor) =>
        val before = seconds(cost(), build, stream)
        def larger(side: JoinSide) = side.copy(rows = side.rows * factor)
        def wider(side: JoinSide) = side.copy(rowBytes = side.rowBytes * factor)
        Seq(
          larger(build) -> stream,
          build -> larger(stream),
          wider(build) -> stream,
          build -> wider(stream)
        )
          .foreach { case (b, s) => assert(seconds(cost(), b, s) >= before) }
      }
    }

    test(s"$name: more slots never cost more") {
      forAll(sides, sides) { (build, stream) =>
        assert(
          seconds(cost(cluster = JoinSides.cluster(slots = 64)), build, stream) <=
            seconds(cost(cluster = JoinSides.cluster(slots = 4)), build, stream)
        )
      }
    }
  }

  private val big = JoinSide(1e8, 64, shuffleExists = false)
  private val small = JoinSide(1e4, 64, shuffleExists = false)

  test("a shuffle that exists already costs less") {
    def shuffled(side: JoinSide) = side.copy(shuffleExists = true)
    assert(cost().sortMerge(shuffled(big), big) < cost().sortMerge(big, big))
    assert(cost().shuffledHash(shuffled(small), big) < cost().shuffledHash(small, big))
    assert(cost().broadcastHash(shuffled(small), big) == cost().broadcastHash(small, big))
  }

  test(
    "broadcasting a small side costs less than shuffling a big one; the other way round it costs more"
  ) {
    assert(cost().broadcastHash(small, big) < cost().shuffledHash(small, big))
    assert(cost().broadcastHash(big, small) > cost().shuffledHash(small, big))
  }

  test("building from the smaller side costs less") {
    assert(cost().shuffledHash(small, big) < cost().shuffledHash(big, small))
    assert(cost().broadcastHash(small, big) < cost().broadcastHash(big, small))
  }

  test("more executors make a broadcast dearer, and nothing else") {
    def on(executors: Int) = cost(cluster = JoinSides.cluster(slots = 64, executors = executors))
    assert(on(32).broadcastHash(big, big) > on(2).broadcastHash(big, big))
    assert(on(32).shuffledHash(big, big) == on(2).shuffledHash(big, big))
    assert(on(32).sortMerge(big, big) == on(2).sortMerge(big, big))
  }

  test("the weight shifts rows against bytes") {
    val narrow = JoinSide(1e8, 16, shuffleExists = false)
    val wide = JoinSide(1e5, 16000, shuffleExists = false)
    def ratio(weight: Double) =
      cost(weight).sortMerge(narrow, narrow) / cost(weight).sortMerge(wide, wide)
    assert(ratio(1.0) > ratio(0.7))
    assert(ratio(0.7) > ratio(0.1))
  }

  test("at weight 1 widths do not count, and at weight 0 rows do not") {
    val wide = big.copy(rowBytes = 6400)
    assert(cost(1.0).sortMerge(wide, wide) == cost(1.0).sortMerge(big, big))
    val many = big.copy(rows = big.rows * 10, rowBytes = big.rowBytes / 10)
    assert(math.abs(cost(0.0).shuffledHash(many, many) / cost(0.0).shuffledHash(
      big,
      big
    ) - 1) < 1e-9)
  }

  test(
    "rows are shared where computing them again takes longer than their shuffle and its reading"
  ) {
    val side = JoinSide(1e6, 40, shuffleExists = false)
    val (shuffle, read) = (cost().shuffled(side), cost().read(side))
    def shared(places: Int, computation: Double, side: JoinSide = side) =
      cost().isBetterShared(places, computation, side)
    assert(!shared(1, 1e9))
    assert(!shared(2, read + shuffle * 0.99) && shared(2, read + shuffle * 1.01))
    assert(!shared(3, read + shuffle * 0.49) && shared(3, read + shuffle * 0.51))
    // What is shuffled in any case need only be read.
    val shuffled = side.copy(shuffleExists = true)
    assert(!shared(2, read * 0.99, shuffled) && shared(2, read * 1.01, shuffled))
  }
}
