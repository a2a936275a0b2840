package io.selinger.core

import org.scalatest.funsuite.AnyFunSuite
import scala.reflect.runtime.universe.typeOf

class OriginSuite extends AnyFunSuite {
  import Origin._

  private val bestFirst = Seq(Exact, Measured, Sampled, Derived, Default)

  test("the list here is the whole family, with unique labels") {
    assert(
      bestFirst.map(_.toString).toSet ==
        typeOf[Origin].typeSymbol.asClass.knownDirectSubclasses.map(_.name.toString)
    )
    assert(bestFirst.map(_.label).distinct.size == bestFirst.size)
  }

  test("the worse of two origins is the later one, in either order") {
    for ((a, i) <- bestFirst.zipWithIndex; (b, j) <- bestFirst.zipWithIndex) {
      val expected = bestFirst(math.max(i, j))
      assert(a.worse(b) == expected)
      assert(b.worse(a) == expected)
    }
  }

  test("the worst of several is the worst, and of none exact") {
    bestFirst.indices.foreach(i => assert(Origin.worst(bestFirst.take(i + 1)) == bestFirst(i)))
    assert(Origin.worst(Nil) == Exact)
  }
}
