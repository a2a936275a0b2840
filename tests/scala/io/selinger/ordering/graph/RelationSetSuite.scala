package io.selinger.ordering.graph

import io.selinger.testing.Subsets
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** Sets of relations against Scala's sets, from less than one word of bits to several. */
class RelationSetSuite extends AnyFunSuite {

  private val random = new Random(11)

  private def drawn(most: Int): Set[Int] = {
    val share = random.nextDouble()
    (0 until most).filter(_ => random.nextDouble() < share).toSet
  }

  test("sets have the members, and the relations to each other, of Scala's sets") {
    for (most <- Seq(1, 5, 63, 64, 65, 128, 200); _ <- 1 to 50) {
      val (one, other) = (drawn(most), drawn(most))
      val (a, b) = (RelationSet.of(one), RelationSet.of(other))
      def members(set: RelationSet) = set.members.toList
      assert(members(a) == one.toList.sorted)
      assert(a.size == one.size && a.isEmpty == one.isEmpty)
      assert(members(a | b) == (one | other).toList.sorted)
      assert(members(a & b) == (one & other).toList.sorted)
      assert(members(a.without(b)) == (one &~ other).toList.sorted)
      assert(a.within(b) == one.subsetOf(other))
      assert(a.meets(b) == (one & other).nonEmpty)
      assert(a.lowestShared(b) == (one & other).minOption.getOrElse(-1))
      assert(a.exists(_ % 7 == 3) == one.exists(_ % 7 == 3))
      assert((0 until most).forall(i => a.contains(i) == one(i)))
      assert((a | b) == (b | a) && (a | b).hashCode == (b | a).hashCode)
      one.minOption.foreach(least => assert(a.lowest == least))
    }
  }

  test("the first relations, and all subsets, each after its own") {
    Seq(0, 1, 63, 64, 65, 130).foreach { n =>
      assert(RelationSet.first(n).members == (0 until n))
    }
    Seq(Set(0, 3, 5), Set(2, 64, 70)).foreach { all =>
      val subsets = Subsets.of(RelationSet.of(all)).toList
      assert(subsets.map(_.members.toSet).toSet == all.subsets().filter(_.nonEmpty).toSet)
      subsets.zipWithIndex.foreach { case (set, i) =>
        assert(Subsets.of(set).forall(part => subsets.take(i + 1).contains(part)))
      }
    }
  }
}
