package io.selinger.estimate.plans

import io.selinger.core.{Decision, OpenPlanningPass, Origin, Outcome, PlanningPass, Reason}
import io.selinger.estimate.PlanEstimate
import io.selinger.testing.Estimates.{counted, Relation}
import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.dsl.plans._
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression}
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.funsuite.AnyFunSuite

/** Which estimates are found again for an equal plan, and which are asked for anew. */
class EqualPlansSuite extends AnyFunSuite {

  private val fact = counted(1000)
  private val dim = counted(10)
  private val another = counted(7)

  /** An estimator that counts how often it asks a leaf, and does `asked` then. */
  private final class Counted(asked: LeafNode => Unit = _ => ()) {
    var calls = 0
    val estimator = new CardinalityEstimator((leaf: LeafNode, _: Seq[Expression]) => {
      calls += 1
      asked(leaf)
      Some((PlanEstimate.exactly(calls.toDouble, Origin.Exact), Nil))
    })

    /** How many leaves are asked for an estimate of `plan`, as a part of `root`. */
    def callsFor(plan: LogicalPlan, root: LogicalPlan): Int = {
      val before = calls
      PlanningPass.current.workOn(root)
      estimator.estimate(plan)
      calls - before
    }
  }

  private def joinOn(left: Relation, right: Relation, key: Relation => Attribute): Join =
    Join(left.plan, right.plan, Inner, Some(key(left) === key(right)), JoinHint.NONE)

  private val plan = joinOn(fact, dim, _.a).where(fact.b > 1.0)

  test("an equal plan is estimated once while a query is optimized") {
    PlanningPass.start()
    val counted = new Counted
    assert(counted.callsFor(plan, plan) == 2)
    val copy = plan.clone()
    assert(copy ne plan)
    assert(counted.callsFor(copy, copy) == 0)
  }

  test("what a rule has left as it was is not estimated again") {
    PlanningPass.start()
    val counted = new Counted
    assert(counted.callsFor(plan, plan) == 2)
    val changed = plan.limit(5)
    assert(counted.callsFor(changed, changed) == 0)
  }

  test("Spark's planner goes on with the estimates of the optimizer") {
    PlanningPass.start()
    val counted = new Counted
    counted.callsFor(plan, plan)
    val copy = plan.clone()
    OpenPlanningPass(ReturnAnswer(copy))
    assert(counted.callsFor(copy, copy) == 0)
  }

  test("another query shares nothing") {
    PlanningPass.start()
    val counted = new Counted
    counted.callsFor(plan, plan)
    PlanningPass.start()
    assert(counted.callsFor(plan, plan) == 2)
  }

  test("only relations of whose other columns something is asked are asked again") {
    PlanningPass.start()
    val counted = new Counted
    counted.callsFor(plan, plan)
    // As if a rule had begun to join one relation by another column.
    val other = Join(plan, another.plan, Inner, Some(fact.b === another.b), JoinHint.NONE)
    assert(counted.callsFor(plan, other) == 1)
  }

  test("other settings are other estimates") {
    PlanningPass.start()
    val counted = new Counted
    counted.callsFor(plan, plan)
    val conf = SQLConf.get
    conf.setConfString("spark.selinger.stats.sampling.maxRows", "17")
    try assert(counted.callsFor(plan.clone(), plan.limit(3)) == 2)
    finally conf.unsetConf("spark.selinger.stats.sampling.maxRows")
  }

  test("what was cut short by lack of time is asked again, and so is all that was asked later") {
    PlanningPass.start()
    val counted = new Counted(leaf => if (leaf eq dim.plan) PlanningPass.current.cutShort())
    assert(counted.callsFor(fact.plan, plan) == 1)
    // The side is estimated before the join that it is a part of, and remembered for this plan.
    assert(counted.callsFor(dim.plan, plan) == 1)
    assert(counted.callsFor(plan, plan) == 0)
    // The other relation's answer was complete.
    assert(counted.callsFor(plan, plan.limit(3)) == 1)
    // There is time again.
    OpenPlanningPass(ReturnAnswer(plan))
    assert(counted.callsFor(dim.plan, plan) == 1)
  }

  test("a leaf that may change while the query runs is asked again") {
    PlanningPass.start()
    val counted = new Counted
    val leaf = Changing(fact.plan.output)
    assert(counted.callsFor(leaf.where(fact.a > 1), leaf) == 1)
    assert(counted.callsFor(leaf.where(fact.a > 1), leaf.limit(2)) == 1)
  }

  test("what was said of leaves is said of those of an equal plan, in each pass") {
    PlanningPass.start()
    val said = Decision("x", "Scan", "k", Outcome.Informed, Reason.FootersRead)
    val counted = new Counted(leaf => PlanningPass.current.inform(leaf, said))
    counted.callsFor(plan, plan)
    val copy = plan.clone()
    OpenPlanningPass(ReturnAnswer(copy))
    val leaves = copy.collectLeaves()
    assert(leaves.forall(PlanningPass.current.informed(_).isEmpty))
    counted.callsFor(copy, copy)
    assert(leaves.size == 2 && leaves.forall(PlanningPass.current.informed(_) == Seq(said)))
  }
}

/** A leaf of which nothing is known but its columns. */
private final case class Changing(override val output: Seq[Attribute]) extends LeafNode
