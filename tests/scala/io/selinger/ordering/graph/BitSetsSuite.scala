package io.selinger.ordering.graph

import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

class BitSetsSuite extends AnyFunSuite {

  test("sets have numbers in the order in which they come, whatever their bits") {
    val random = new Random(3)
    // Neighbouring numbers, ends of the range, and thousands of others, so that the table grows.
    val drawn = (1L to 100L) ++ Seq(Long.MinValue, -1L) ++ Seq.fill(5000)(random.nextLong())
    val sets = new BitSets
    assert(!sets.contains(7L) && sets.size == 0)
    (drawn ++ random.shuffle(drawn)).foreach { bits =>
      val number = sets.add(bits)
      assert(sets(bits) == number && sets.bits(number) == bits && sets.contains(bits))
    }
    assert(sets.size == drawn.distinct.size)
    assert((0 until sets.size).map(sets.bits) == drawn.distinct)
    assert(!sets.contains(101L << 40))
  }
}
