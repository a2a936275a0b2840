package io.selinger.core

import org.scalatest.funsuite.AnyFunSuite
import scala.reflect.runtime.universe.{typeOf, TypeTag}

class ReasonSuite extends AnyFunSuite {

  private def family[A: TypeTag]: Set[String] =
    typeOf[A].typeSymbol.asClass.knownDirectSubclasses.map(_.name.toString)

  test("labels of outcomes and phases are unique") {
    val outcomes = Seq(
      Outcome.Changed,
      Outcome.Same,
      Outcome.Advised,
      Outcome.Declined,
      Outcome.Failed,
      Outcome.Informed
    )
    assert(outcomes.map(_.toString).toSet == family[Outcome])
    assert(outcomes.map(_.label).distinct.size == outcomes.size)
    assert(Phase.Static.label != Phase.Adaptive.label)
  }

  test("the first unmet precondition gives the reason, in the order given") {
    val conditions = Seq(
      Precondition[Int](Reason.StreamingPlan)(_ > 0),
      Precondition[Int](Reason.NoStatistics)(_ > 10)
    )
    assert(Precondition.firstUnmet(conditions, -1).contains(Reason.StreamingPlan))
    assert(Precondition.firstUnmet(conditions, 5).contains(Reason.NoStatistics))
    assert(Precondition.firstUnmet(conditions, 11).isEmpty)
  }
}
