package io.selinger.cost

import io.selinger.testing.{Plans, SharedSession}
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight}
import org.apache.spark.sql.catalyst.plans.logical.Join
import org.apache.spark.sql.classic.SparkSession
import org.scalatest.funsuite.AnyFunSuite

/** What each operator says of itself. */
class JoinOperatorsSuite extends AnyFunSuite with SharedSession {

  private def join(condition: String): Join = {
    val df = spark.range(1000).toDF("k").crossJoin(spark.range(100).toDF("l")).where(condition)
    Plans.execution(df).optimizedPlan.collectFirst { case join: Join => join }.get
  }

  private def planned(join: Join): Option[JoinOperator] =
    spark.asInstanceOf[SparkSession].sessionState.planner
      .JoinSelection(join)
      .headOption
      .flatMap(JoinOperators.plannedAs)

  test("labels are unique: they decide ties, and people read them") {
    assert(JoinOperators.all.map(_.label).distinct.size == JoinOperators.all.size)
  }

  JoinOperators.all.foreach { operator =>
    test(s"${operator.label}: Spark builds it by its hint, and it is recognised in the plan") {
      val keyed = join("k = l")
      val hasKeys = operator match {
        case Cartesian | _: BroadcastNestedLoop => false
        case _ => true
      }
      val hinted = (if (hasKeys) keyed else join("k < l")).copy(hint = operator.hint)
      assert(planned(hinted).contains(operator))
    }
  }

  test("a choice names the setting by which it would be another one") {
    JoinOperators.all.foreach { operator =>
      assert(operator.setting.startsWith("spark.selinger."), operator)
      Seq(operator.reason, operator.reasonIfAlone).foreach { reason =>
        assert(JoinOperators.settingOf(reason).contains(operator.setting), operator)
      }
    }
  }

  test("what can fail for want of memory says how much it takes") {
    val (large, small) =
      (JoinSide(1e6, 40, shuffleExists = false), JoinSide(1e3, 40, shuffleExists = false))
    val builds = BuildSides(true, true, true, true, isInner = true)
    val facts = new JoinFacts(large, small.copy(largestTaskShare = 0.25), builds, hasKeys = true)
    val table = small.tableBytes(1e3)
    assert(BroadcastHash(BuildRight).memoryBytes(facts) == table)
    assert(BroadcastNestedLoop(BuildRight).memoryBytes(facts) == table)
    assert(ShuffledHash(BuildRight).memoryBytes(facts) == table / 4)
    assert(BroadcastHash(BuildLeft).memoryBytes(facts) == large.tableBytes(1e6))
    assert(SortMerge.memoryBytes(facts) == 0 && Cartesian.memoryBytes(facts) == 0)
  }

  test("a product costs the more, the less certain the rows of its sides are") {
    val cost = new JoinCost(Cluster(4, 2, 1e9, 1e9, 1e8), JoinCost.calibratedWeight)
    val side = JoinSide(1e3, 40, shuffleExists = false)
    val doubtful = side.copy(upperBound = 1e5)
    assert(cost.allPairs(side, side) < cost.allPairs(side, doubtful))
    assert(math.abs(cost.allPairs(side, doubtful) / cost.allPairs(side, side) - 10) < 1e-9)
  }
}
