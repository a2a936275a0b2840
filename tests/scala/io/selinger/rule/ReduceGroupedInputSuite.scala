package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.execution.exchange.ReusedExchangeExec
import org.apache.spark.sql.types.{IntegerType, LongType}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Input of aggregations and windows, filtered by keys of a join above: where, and that the answers stay. */
class ReduceGroupedInputSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = ReduceGroupedInput
  private val always = SelingerConf.REDUCE_GROUPED_MIN_GAIN.key -> "0"
  private val ansi = "spark.sql.ansi.enabled" -> "true"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def changed(df: DataFrame): Seq[Decision] =
    decisions(df).filter(_.outcome == Outcome.Changed)

  /** The semi joins that the rule has put in. */
  private def reducers(df: DataFrame): Seq[Join] =
    Plans.execution(df).optimizedPlan.collectWithSubqueries {
      case join @ Join(_, _, LeftSemi, _, _) if GroupedInput.isReducer(join) => join
    }

  private def isSame(text: String, settings: (String, String)*): DataFrame =
    withConf(settings: _*) {
      val expected = stockAnswer(settings: _*)(spark.sql(text))
      val df = spark.sql(text)
      Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
      df
    }

  /** Asserts that so many semi joins filter groups, whatever the cost, with the answer of stock Spark. */
  private def fires(text: String, times: Int, settings: (String, String)*): DataFrame = {
    val df = isSame(text, always +: settings: _*)
    assert(reducers(df).size == times, Plans.execution(df).optimizedPlan)
    assert(changed(df).nonEmpty && changed(df).forall(_.reason == rule.Reduced))
    df
  }

  private def passesOver(text: String, settings: (String, String)*): Assertion = {
    val df = isSame(text, always +: settings: _*)
    assert(reducers(df).isEmpty, Plans.execution(df).optimizedPlan)
    assert(decisions(df).isEmpty, decisions(df))
  }

  private def declines(text: String, reason: Reason, settings: (String, String)*): Assertion = {
    val df = isSame(text, settings: _*)
    assert(reducers(df).isEmpty, Plans.execution(df).optimizedPlan)
    assert(decisions(df).map(_.reason).contains(reason), decisions(df))
  }

  private val groups = "(SELECT k, count(*) AS n, max(id) AS m FROM facts GROUP BY k)"

  test("fires on groups that are joined with few rows, on either side and in each mode") {
    for (adaptive <- Seq("true", "false"); broadcast <- Seq("-1", "10m")) {
      val modes = Seq(
        "spark.sql.adaptive.enabled" -> adaptive,
        "spark.sql.autoBroadcastJoinThreshold" -> broadcast
      )
      fires(
        s"SELECT d.id, a.n FROM dims d JOIN $groups a ON d.k = a.k WHERE d.id < 9",
        1,
        modes: _*
      )
      fires(
        s"SELECT d.id, a.n FROM $groups a JOIN dims d ON d.k = a.k WHERE d.id < 9",
        1,
        modes: _*
      )
    }
  }

  test("fires on a correlated scalar subquery") {
    fires(
      "SELECT f.id FROM facts f JOIN dims e ON f.k = e.k WHERE e.id < 9 AND " +
        "f.id > (SELECT avg(id) FROM facts x WHERE x.k = e.k)",
      1,
      ComputeAggregateAsWindow.switch -> "false"
    )
  }

  test("fires on outer, semi and anti joins that drop groups without a partner") {
    val few = "(SELECT * FROM dims WHERE id < 9)"
    fires(s"SELECT d.id, a.n FROM $few d LEFT JOIN $groups a ON d.k = a.k", 1)
    fires(s"SELECT d.id, a.n FROM $groups a RIGHT JOIN $few d ON d.k = a.k", 1)
    fires(
      s"SELECT d.id FROM $few d WHERE EXISTS (SELECT 1 FROM $groups a WHERE a.k = d.k AND a.n > 5)",
      1
    )
    fires(
      s"SELECT d.id FROM $few d WHERE NOT EXISTS (SELECT 1 FROM $groups a WHERE a.k = d.k AND a.n > 5)",
      1
    )
    fires(
      s"SELECT d.id FROM $few d WHERE flag OR EXISTS (SELECT 1 FROM $groups a WHERE a.k = d.k AND a.n > 5)",
      1
    )
  }

  test("passes over joins that keep groups without a partner") {
    val few = "(SELECT * FROM dims WHERE id < 9)"
    passesOver(s"SELECT d.id, a.n FROM $groups a LEFT JOIN $few d ON d.k = a.k")
    passesOver(s"SELECT d.id, a.n FROM $few d RIGHT JOIN $groups a ON d.k = a.k")
    passesOver(s"SELECT d.id, a.n FROM $few d FULL JOIN $groups a ON d.k = a.k")
    passesOver(s"SELECT a.k FROM $groups a WHERE NOT EXISTS (SELECT 1 FROM $few d WHERE d.k = a.k)")
    passesOver(
      s"SELECT a.k FROM $groups a WHERE a.n > 1 OR EXISTS (SELECT 1 FROM $few d WHERE d.k = a.k)"
    )
    passesOver(s"SELECT a.k FROM $groups a WHERE a.k NOT IN (SELECT k FROM dims WHERE id < 9)")
    passesOver(s"SELECT d.id, a.n FROM $few d CROSS JOIN $groups a")
    passesOver(s"SELECT d.id, a.n FROM $few d JOIN $groups a ON d.id = a.n")
  }

  test("nulls, no rows and null-safe comparisons") {
    fires(s"SELECT d.id, a.n FROM nulls d JOIN $groups a ON d.k <=> a.k WHERE d.id < 9", 1)
    fires(s"SELECT d.id, a.n FROM nothing d JOIN $groups a ON d.k = a.k WHERE d.id < 9", 1)
    fires(s"SELECT d.id, a.n FROM nothing d LEFT JOIN $groups a ON d.k = a.k", 1)
    // Rows that the inner outer join makes up have a key, which its right side lacks.
    val coalesced =
      "(SELECT d.id, coalesce(x.k, 1) AS k FROM dims d LEFT JOIN (SELECT * FROM dupes WHERE id < 3) x " +
        "ON d.id = x.id)"
    val df = fires(s"SELECT d.id, a.n FROM $coalesced d JOIN $groups a ON d.k = a.k", 1)
    assert(reducers(df).head.right.exists(_.isInstanceOf[Join]))
    fires(
      s"SELECT d.id, a.n FROM (SELECT d.id, x.k FROM dims d LEFT JOIN dupes x ON d.id = x.id) d " +
        s"JOIN $groups a ON d.k <=> a.k",
      1
    )
  }

  test("fires on several keys, and on those of one of several tables") {
    val two = "(SELECT k, s, count(*) AS n FROM facts GROUP BY k, s)"
    val both = fires(
      s"SELECT d.id, a.n FROM dims d JOIN $two a ON d.k = a.k AND d.s = a.s WHERE d.id < 9",
      1
    )
    assert(reducers(both).head.right.output.size == 2)
    fires(
      s"SELECT d.id, a.n FROM dims d JOIN dupes e ON d.id = e.id JOIN $two a ON d.k = a.k AND e.s = a.s " +
        "WHERE d.id < 9 AND e.id < 20",
      1
    )
  }

  test("fires where the key is computed, and where keys are cast") {
    fires(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT upper(s) AS u, count(*) AS n FROM facts " +
        "GROUP BY upper(s)) a ON d.s = a.u WHERE d.id < 9",
      1
    )
    fires(s"SELECT d.id, a.n FROM dims d JOIN $groups a ON d.id = a.k WHERE d.id < 9", 1)
    Seq("amount", "day", "at", "s", "flag", "big").foreach { key =>
      fires(
        s"SELECT d.id, a.n FROM dims d JOIN (SELECT $key AS c, count(*) AS n FROM facts " +
          s"GROUP BY $key) a ON d.$key = a.c WHERE d.id < 9",
        1
      )
    }
  }

  test("fires below joins, unions, DISTINCT and further aggregations, next to the relation") {
    val joined = "(SELECT f.k, count(*) AS n FROM facts f JOIN dupes e ON f.id = e.id GROUP BY f.k)"
    val below = fires(s"SELECT d.id, a.n FROM dims d JOIN $joined a ON d.k = a.k WHERE d.id < 9", 1)
    assert(!reducers(below).head.left.exists(_.isInstanceOf[Join]))
    fires(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT k, count(*) AS n FROM (SELECT k FROM facts UNION ALL " +
        "SELECT k + 0 FROM dupes) GROUP BY k) a ON d.k = a.k WHERE d.id < 9",
      2
    )
    fires(
      "SELECT d.id, a.s FROM dims d JOIN (SELECT DISTINCT k, s FROM facts) a ON d.k = a.k WHERE d.id < 9",
      1
    )
    val twice = fires(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT k, count(*) AS n FROM (SELECT k, s, max(id) AS m " +
        "FROM facts GROUP BY k, s) GROUP BY k) a ON d.k = a.k WHERE d.id < 9",
      1
    )
    assert(!reducers(twice).head.left.exists(_.isInstanceOf[Aggregate]))
    fires(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT x.k, count(*) AS n FROM facts x LEFT JOIN dupes y " +
        "ON x.id = y.id GROUP BY x.k) a ON d.k = a.k WHERE d.id < 9",
      1
    )
    fires(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT y.k, count(*) AS n FROM facts x LEFT JOIN dupes y " +
        "ON x.id = y.id GROUP BY y.k) a ON d.k = a.k WHERE d.id < 9",
      1
    )
  }

  test("fires on ROLLUP, for keys that it groups by") {
    val rollup = "(SELECT k, s, count(*) AS n FROM facts GROUP BY ROLLUP (k, s))"
    val df = fires(s"SELECT d.id, a.* FROM dims d JOIN $rollup a ON d.k = a.k WHERE d.id < 9", 1)
    assert(!reducers(df).head.left.exists(_.isInstanceOf[Expand]))
    // Here the total, of which no row may be missing, has partners.
    val safe =
      fires(s"SELECT d.id, a.* FROM dims d JOIN $rollup a ON d.k <=> a.k WHERE d.id < 40", 1)
    assert(reducers(safe).head.left.exists(_.isInstanceOf[Expand]))
  }

  test("fires on filters of ranks, by their partitions") {
    val latest =
      "(SELECT * FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY id DESC) AS r " +
        "FROM facts) WHERE r <= 2)"
    val df = fires(s"SELECT d.id, a.* FROM dims d JOIN $latest a ON d.k = a.k WHERE d.id < 9", 1)
    assert(!reducers(df).head.exists(_.isInstanceOf[WindowGroupLimit]))
  }

  test("fires on window functions, by their partitions") {
    val sums = "(SELECT id, k, sum(id) OVER (PARTITION BY k ORDER BY id) AS w," +
      " row_number() OVER (PARTITION BY k, s ORDER BY id) AS r FROM facts)"
    fires(s"SELECT d.id, a.* FROM dims d JOIN $sums a ON d.k = a.k WHERE d.id < 9", 1)
    passesOver(
      "SELECT d.id, a.* FROM dims d JOIN (SELECT id, k, sum(id) OVER (PARTITION BY s) AS w FROM facts) a " +
        "ON d.k = a.k WHERE d.id < 9"
    )
  }

  test("equal groups in several places are filtered by the keys of all, and computed once") {
    val text =
      s"WITH t AS $groups SELECT a.k, a.n, b.n AS other FROM t a JOIN dims d ON a.k = d.k AND d.id < 9 " +
        "JOIN t b ON b.n = a.n JOIN dims e ON b.k = e.k AND e.id > 140"
    val df = fires(text, 2)
    assert(reducers(df).forall(_.right.isInstanceOf[Union]))
    val reused = Plans.physical(df).collect { case reused: ReusedExchangeExec => reused }
    assert(reused.nonEmpty, Plans.execution(df).executedPlan)
  }

  test("does not fire where another part of the query needs all groups (GROUPS_SHARED)") {
    declines(
      s"WITH t AS $groups SELECT a.k, a.n, b.n AS other FROM t a JOIN dims d ON a.k = d.k AND d.id < 9 " +
        "CROSS JOIN t b",
      rule.GroupsShared,
      always
    )
    // One plan in two places, since Spark puts it below each branch of a union.
    Seq("EXCEPT", "INTERSECT").foreach { both =>
      val few =
        "(SELECT id FROM dims WHERE id < 9 UNION ALL SELECT id + 0 FROM dupes WHERE id > 300)"
      isSame(
        s"$few $both SELECT k FROM (SELECT k, count(*) AS n FROM facts GROUP BY k) WHERE n > 12",
        always
      )
    }
  }

  test("does not fire where fewer errors would be raised (ERRORS_DEPEND_ON_PLAN)") {
    val divided = "(SELECT k, sum(10 div (id + 1)) AS n FROM facts GROUP BY k)"
    declines(
      s"SELECT d.id, a.n FROM dims d JOIN $divided a ON d.k = a.k WHERE d.id < 9",
      Reason.MayRaise,
      always,
      ansi
    )
    // The files tell that the sum of these values cannot overflow.
    fires(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT k, sum(id) AS n FROM facts GROUP BY k) a ON d.k = a.k " +
        "WHERE d.id < 9",
      1,
      ansi
    )
  }

  test("does not fire on random values (RANDOM_VALUES)") {
    val random = "(SELECT k, count(*) AS n FROM facts WHERE rand(3) < 0.5 GROUP BY k)"
    withConf(always) {
      val df = spark.sql(s"SELECT d.id, a.n FROM dims d JOIN $random a ON d.k = a.k WHERE d.id < 9")
      assert(decisions(df).map(_.reason) == Seq(MergeSubplansByCost.RandomValues))
    }
  }

  test("passes over keys that may differ when they are computed again, and keys compared loosely") {
    passesOver(s"SELECT d.k, a.n FROM (SELECT k FROM dims LIMIT 5) d JOIN $groups a ON d.k = a.k")
    passesOver(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT d AS c, count(*) AS n FROM facts GROUP BY d) a " +
        "ON d.d = a.c WHERE d.id < 9"
    )
    passesOver(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT s COLLATE UTF8_LCASE AS c, count(*) AS n FROM facts " +
        "GROUP BY s COLLATE UTF8_LCASE) a ON d.s COLLATE UTF8_LCASE = a.c WHERE d.id < 9"
    )
  }

  test("ranks and sums below the keys are left out, what is below them has the keys") {
    val ranked =
      "(SELECT * FROM (SELECT id, k, row_number() OVER (PARTITION BY s ORDER BY id) AS r FROM dims " +
        "WHERE id < 30) WHERE r <= 2)"
    val df = fires(s"SELECT d.id, a.n FROM $ranked d JOIN $groups a ON d.k = a.k", 1)
    assert(!reducers(df).exists(_.right.exists(_.isInstanceOf[Window])))
    val summed =
      "(SELECT k, sum(id) AS total FROM dims WHERE id < 30 GROUP BY k HAVING sum(id) > 20)"
    // Two aggregations, each of which is filtered by the keys of the other's rows.
    val sums = fires(s"SELECT d.total, a.n FROM $summed d JOIN $groups a ON d.k = a.k", 2)
    assert(!reducers(sums).exists(_.right.exists(_.isInstanceOf[Aggregate])))
  }

  test("passes over groups whose input has been filtered by the same keys") {
    passesOver(
      "SELECT d.id, a.n FROM (SELECT * FROM dims WHERE id < 9) d JOIN (SELECT f.k, count(*) AS n FROM facts f " +
        "LEFT SEMI JOIN (SELECT * FROM dims WHERE id < 9) e ON f.k = e.k GROUP BY f.k) a ON d.k = a.k"
    )
  }

  test("keys of scalar subqueries, of EXISTS and of cached rows") {
    // A row without a match has the key 50, which the subquery lacks: its keys are less than 9.
    val scalar =
      "(SELECT x.id, coalesce((SELECT e.k FROM dupes e WHERE e.id = x.id + 390 AND e.k IS NOT NULL), 50) " +
        "AS k FROM dims x)"
    isSame(s"SELECT d.id, a.n FROM $scalar d JOIN $groups a ON d.k = a.k", always)
    val either =
      "(SELECT * FROM dims x WHERE id < 5 OR EXISTS (SELECT 1 FROM dupes e WHERE e.id = x.k))"
    val df = isSame(s"SELECT d.id, a.n FROM $either d JOIN $groups a ON d.k = a.k", always)
    assert(!decisions(df).exists(_.outcome == Outcome.Failed), decisions(df))
    SharedSession.withViews(spark) {
      spark.sql("CACHE LAZY TABLE kept AS SELECT * FROM dims LIMIT 9")
      passesOver(s"SELECT d.id, a.n FROM kept d JOIN $groups a ON d.k = a.k")
      spark.sql("UNCACHE TABLE kept")
    }
  }

  test("passes over joins whose own keys can raise errors for groups without a partner") {
    passesOver(
      "SELECT d.id, a.n FROM dims d JOIN (SELECT k, count(flag) AS n FROM facts GROUP BY k) a " +
        "ON d.k = a.k AND d.id = 100 % a.n WHERE d.id < 9",
      ansi
    )
  }

  test("a key that is computed step by step does not grow beyond all bounds") {
    val key = AttributeReference("k", IntegerType)()
    val step =
      Alias(If(EqualTo(key, Literal(1)), Literal(2), If(IsNull(key), Literal(3), key)), "k")(
        exprId = key.exprId
      )
    val keys = Iterator.iterate(Option[Expression](key))(_.flatMap(KeyOrigins.below(Seq(step), _)))
    assert(keys.take(60).toSeq.last.isEmpty)
  }

  test("does not fire on one plan that stands in two places, which need other groups") {
    val few = withConf(SelingerConf.MODE.key -> "off") {
      val text = s"SELECT d.id, a.n FROM dims d JOIN $groups a ON d.k = a.k WHERE d.id < 9"
      Plans.execution(spark.sql(text)).optimizedPlan
    }
    val others = few.transform { case filter: Filter =>
      filter.transformExpressions { case Literal(9L, LongType) => Literal(30L) }
    }
    val both = Union(few, others)
    val aggregates = both.collect { case aggregate: Aggregate => aggregate }
    assert(aggregates.size == 2 && (aggregates.head eq aggregates.last) && others != few)
    withConf(always) {
      assert(new ReduceGroupedInput(spark).apply(both) eq both)
      assert(Decision.recordedAt(aggregates.head).map(_.reason).contains(rule.GroupsShared))
      assert(new ReduceGroupedInput(spark).apply(few) ne few)
    }
  }

  test("hints stay with their joins") {
    Seq("BROADCAST(a)", "MERGE(a)", "SHUFFLE_HASH(d)").foreach { hint =>
      fires(
        s"SELECT /*+ $hint */ d.id, a.n FROM dims d JOIN $groups a ON d.k = a.k WHERE d.id < 9",
        1
      )
    }
    val hinted =
      "(SELECT /*+ MERGE(e) */ f.k, count(*) AS n FROM facts f JOIN dupes e ON f.id = e.id " +
        "GROUP BY f.k)"
    val df = fires(s"SELECT d.id, a.n FROM dims d JOIN $hinted a ON d.k = a.k WHERE d.id < 9", 1)
    assert(Plans.execution(df).optimizedPlan.exists {
      case join: Join => join.hint != JoinHint.NONE
      case _ => false
    })
  }

  test("sides that are read once for two purposes stay as they are") {
    val pairs = "(SELECT x.k, count(*) AS n FROM facts x JOIN facts y ON x.k = y.k GROUP BY x.k)"
    val df = fires(s"SELECT d.id, a.n FROM dims d JOIN $pairs a ON d.k = a.k WHERE d.id < 9", 1)
    assert(reducers(df).head.left.exists(_.isInstanceOf[Join]))
  }

  test("random filters of the keys are left out") {
    withConf(always) {
      val df = spark.sql(
        s"SELECT d.id, a.n FROM (SELECT * FROM dims WHERE rand(3) < 0.5) d JOIN $groups a ON d.k = a.k"
      )
      assert(reducers(df).size == 1 && reducers(df).forall(_.right.deterministic))
    }
  }

  test("by estimates, fires only where it saves enough, and says what would change that") {
    val many = "(SELECT id AS k, count(*) AS n FROM range(50000000) GROUP BY id)"
    def joined(keys: String) = s"SELECT d.id, a.n FROM range($keys) d JOIN $many a ON d.id = a.k"
    val found = spark.sql(joined("100"))
    val made = changed(found).head
    assert(
      made.evidence.map(_.name).contains("rows to group with these keys") && made.work.isDefined
    )
    withConf(made.setting.get -> made.settingTo.get)(
      assert(reducers(spark.sql(joined("100"))).isEmpty)
    )
    def declined(text: String, reason: Reason, settings: (String, String)*) =
      withConf(settings: _*) {
        val df = spark.sql(text)
        assert(reducers(df).isEmpty && decisions(df).map(_.reason) == Seq(reason), decisions(df))
      }
    declined(joined("100"), rule.FewDropped, SelingerConf.EAGER_MIN_ROWS.key -> "60000000")
    declined(joined("30000000"), rule.TooManyKeys)
    // Nearly all groups are needed: nothing is said.
    assert(decisions(spark.sql(joined("49000000"))).isEmpty)
  }
}
