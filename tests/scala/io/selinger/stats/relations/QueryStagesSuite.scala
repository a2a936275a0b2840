package io.selinger.stats.relations

import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** How much of a shuffle the largest task may read. */
class QueryStagesSuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  private def share(most: Long, bytes: Long*): Double =
    QueryStages.largestShare(bytes.toArray, new Array[Long](bytes.size), most)

  test("a large partition is a task by itself") {
    assert(share(100, 50, 900, 50) == 0.9)
  }

  test("small neighbours become one task, up to the target") {
    assert(share(100, 50, 50, 50, 50) == 0.5)
    assert(share(1000, 50, 50, 50, 50) == 1.0)
  }

  test("the other side's bytes fill a task as well") {
    val (own, beside) = (Array(50L, 50L, 50L, 50L), Array(50L, 50L, 50L, 50L))
    assert(QueryStages.largestShare(own, beside, 100) == 0.25)
  }

  test("an empty shuffle counts as one task") {
    assert(share(100, 0, 0, 0) == 1.0)
    assert(share(100) == 1.0)
  }

  private val shuffles = for {
    n <- Gen.choose(1, 12)
    own <- Gen.listOfN(n, Gen.choose(0L, 1000L))
    beside <- Gen.listOfN(n, Gen.choose(0L, 1000L))
    most <- Gen.choose(1L, 3000L)
  } yield (own, beside, most)

  test("no run of partitions that adaptive execution may give a task holds more") {
    forAll(shuffles) { case (own, beside, most) =>
      val found = QueryStages.largestShare(own.toArray, beside.toArray, most)
      assert(found >= 0 && found <= 1)
      for (from <- own.indices; until <- from + 1 to own.size) {
        val (task, both) =
          (own.slice(from, until).sum, own.slice(from, until).sum + beside.slice(from, until).sum)
        if (until == from + 1 || both <= most) assert(found * own.sum >= task - 1e-6)
      }
    }
  }
}
