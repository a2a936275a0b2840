package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Phase, Reason}
import io.selinger.exec.{BuildSideFirstExec, OneRoundStage, WaitForBuildSideExec}
import io.selinger.testing.{Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{ReusedExchangeExec, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.SortMergeJoinExec
import org.scalatest.Assertion
import org.scalatest.Inspectors.forAll
import org.scalatest.concurrent.TimeLimits.failAfter
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.SpanSugar._

/** The rule `awaitBuildSide` on real plans. */
class AwaitBuildSideSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] =
    SharedSession.interpreted ++ SharedSession.grouped

  private val rule = AwaitBuildSide

  // Makes Spark believe that the small files of the tests are large: it then sorts and merges.
  private val largeFiles = "spark.sql.sources.fileCompressionFactor" -> "1000000"
  private val off = rule.switch -> "false"

  // How long lists are is not known: ten elements are expected, and any number is possible.
  private def listed(elements: Int) =
    s"(SELECT k, tag FROM nested LATERAL VIEW explode(sequence(1, $elements)) t AS tag " +
      "WHERE point.x = 1)"
  private val few = listed(2)
  private val many = listed(200)
  private val none = s"(SELECT * FROM $few WHERE tag > 100)"

  // Holds what is expected of the lists, and not what there is of the long ones.
  private val limit = SelingerConf.BROADCAST_MAX_BYTES.key -> "100000"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def sql(text: String): DataFrame = spark.sql(text)

  private def decisionOf(df: DataFrame): Decision = Plans.decisions(df, rule.id) match {
    case Seq(decision) => decision
    case others => fail(s"expected one decision, got $others\n${Plans.execution(df).executedPlan}")
  }

  private def initialOf(df: DataFrame): SparkPlan = Plans.execution(df).executedPlan match {
    case adaptive: AdaptiveSparkPlanExec => adaptive.initialPlan
    case other => fail(s"not adaptive: $other")
  }

  private def waits(plan: SparkPlan): Int = plan.collect { case wait: WaitForBuildSideExec =>
    wait
  }.size

  private def shuffles(df: DataFrame): Int =
    Plans.physical(df).collect { case exchange: ShuffleExchangeExec => exchange }.size

  private def rows(df: DataFrame): Seq[String] =
    failAfter(60.seconds)(df.collect()).map((row: Row) => row.toString).toSeq.sorted

  private def assertSameRows(text: String): DataFrame = {
    val df = sql(text)
    val found = rows(df)
    SharedSession.onStock(spark) { stock =>
      Tables.register(stock)
      assert(found == rows(stock.sql(text)))
    }
    df
  }

  private def assertDeclines(text: String, reason: Reason): Assertion = {
    val df = sql(text)
    assert(waits(initialOf(df)) == 0)
    val decision = decisionOf(df)
    assert(decision.outcome == Outcome.Declined)
    assert(decision.reason == reason)
  }

  private def joinOf(kind: String, right: String = few): String = kind match {
    case "SEMI" | "ANTI" => s"SELECT * FROM facts a LEFT $kind JOIN $right b ON a.k = b.k"
    case _ => s"SELECT a.id, b.tag FROM facts a $kind JOIN $right b ON a.k = b.k"
  }

  // ---- fires --------------------------------------------------------------------------------

  Seq("INNER", "LEFT", "SEMI", "ANTI").foreach { kind =>
    test(s"fires on a $kind join: the large side is not shuffled where the other is small") {
      withConf(largeFiles, limit) {
        val df = assertSameRows(joinOf(kind))
        assert(waits(initialOf(df)) == 1)
        val decision = decisionOf(df)
        assert(decision.outcome == Outcome.Changed)
        assert(decision.reason == Reason.BuildSideAwaited)
        assert(decision.chosen.contains("right side first"))
        assert(decision.stock.contains("both sides at once"))
        assert(decision.setting.contains(rule.switch))
        assert(Plans.joins(df) == Seq("BroadcastHashJoin(right)"))
        assert(shuffles(df) == 1)
        withConf(off)(assert(shuffles(assertSameRows(joinOf(kind))) == 2))
      }
    }
  }

  test("fires on a RIGHT join for its left side") {
    withConf(largeFiles, limit) {
      val df = assertSameRows(s"SELECT * FROM $few a RIGHT JOIN facts b ON a.k = b.k")
      assert(decisionOf(df).chosen.contains("left side first"))
      assert(Plans.joins(df) == Seq("BroadcastHashJoin(left)"))
      assert(shuffles(df) == 1)
    }
  }

  test("a side that turns out larger than expected: the other is shuffled after it") {
    withConf(largeFiles, limit) {
      val df = assertSameRows(
        s"SELECT count(*), sum(b.tag) FROM facts a JOIN $many b ON a.k = b.k"
      )
      assert(waits(initialOf(df)) == 1)
      assert(Plans.decisions(df, "selectJoinOperator").map(_.phase) == Seq(Phase.Adaptive))
    }
  }

  test("a side that turns out empty: the other never runs") {
    withConf(largeFiles, limit) {
      val df = assertSameRows(joinOf("INNER", none))
      assert(waits(initialOf(df)) == 1)
      assert(Plans.joins(df).isEmpty)
      assertSameRows(joinOf("LEFT", none))
      assertSameRows(joinOf("ANTI", none))
    }
  }

  test("fires on a join of a join: each waits for its own") {
    withConf(largeFiles, limit, "spark.selinger.reorderJoins.enabled" -> "false") {
      val df = assertSameRows(
        s"""SELECT a.id, c.id, c.tag FROM facts a LEFT JOIN
           |(SELECT d.id, d.big, b.tag FROM dims d LEFT JOIN $few b ON d.k = b.k) c
           |ON a.big = c.big""".stripMargin
      )
      assert(waits(initialOf(df)) == 2)
      assert(Plans.joins(df).forall(_.startsWith("BroadcastHashJoin")))
      // The rows of the inner one bound those of the outer one, which is then broadcast at once.
      assert(shuffles(df) == 1)
    }
  }

  test("a query that is run twice, cached, or asked for its plan waits all the same") {
    withConf(largeFiles, limit) {
      val df = sql(joinOf("INNER"))
      df.explain(true)
      val first = rows(df)
      assert(shuffles(df) == 1)
      assert(rows(df) == first)
      val cached = sql(joinOf("INNER")).cache()
      try assert(rows(cached) == first && rows(cached.distinct()).nonEmpty)
      finally { val _ = cached.unpersist(blocking = true) }
    }
  }

  test("reuse of exchanges makes no difference to the answer, nor to whether there is one") {
    // With reuse, which is Spark's default, the tests above run the same joins.
    forAll(Grid.of(Seq("true", "false"), more = 0)(_ == "false")) { reuse =>
      withConf(largeFiles, limit, "spark.sql.exchange.reuse" -> reuse) {
        Seq(few, none).foreach(right => assertSameRows(joinOf("INNER", right)))
        // Many rows, which need not be fetched to be told apart.
        assertSameRows(
          s"""SELECT a.k, count(*), sum(a.id * b.tag) FROM facts a JOIN $many b ON a.k = b.k
             |GROUP BY a.k""".stripMargin
        )
        succeed
      }
    }
  }

  test("a stage that is awaited is never one that has run elsewhere, or the query would not end") {
    withConf(largeFiles, limit) {
      // The subquery shuffles the same rows by the same key, and may have done so before.
      val alike = s"SELECT k, tag, count(*) OVER (PARTITION BY k) AS n FROM $few"
      assertSameRows(
        s"""SELECT a.id, b.tag, (SELECT max(n) FROM ($alike)) AS most
           |FROM facts a JOIN $few b ON a.k = b.k""".stripMargin
      )
    }
  }

  // ---- groups that need no shuffle for the join ------------------------------------------------

  // For stock Spark too, which would broadcast all groups otherwise.
  private val threshold = "spark.sql.autoBroadcastJoinThreshold" -> "100000"

  // Shuffling so many rows costs more than counting the groups first.
  private val large = "range(800000)"

  // Twenty thousand groups, too many to be broadcast before the condition has been evaluated.
  private def grouped(condition: String, elements: Int = 20000) =
    s"""(SELECT bigint(tag) AS t, count(*) AS n, max(k) AS total FROM
       |(SELECT k, explode(sequence(1, $elements)) AS tag FROM nested WHERE k < 4)
       |GROUP BY bigint(tag) HAVING $condition)""".stripMargin
  private val fewGroups = "max(tag) % 1000 = 0 AND count(*) > 1"
  private val allGroups = "max(tag) >= 0 AND count(*) = count(tag)"
  private val noGroups = "max(tag) < 0"

  private def counted(plan: SparkPlan): Seq[BuildSideFirstExec] =
    plan.collect { case first: BuildSideFirstExec => first }

  private def ofGroups(kind: String, condition: String): String = kind match {
    case "SEMI" | "ANTI" =>
      s"""SELECT count(*), sum(r.id) FROM $large r
         |LEFT $kind JOIN ${grouped(condition)} g ON r.id = g.t""".stripMargin
    case _ =>
      s"""SELECT count(*), sum(r.id), sum(g.n), sum(g.total)
         |FROM $large r $kind JOIN ${grouped(condition)} g ON r.id = g.t""".stripMargin
  }

  Seq("INNER", "LEFT", "SEMI", "ANTI").foreach { kind =>
    test(s"fires on a $kind join with groups, which get a shuffle and are counted") {
      withConf(largeFiles, threshold) {
        val df = assertSameRows(ofGroups(kind, fewGroups))
        val initial = initialOf(df)
        assert(waits(initial) == 1 && counted(initial).size == 1)
        val decision = decisionOf(df)
        assert(decision.reason == AwaitBuildSide.GroupsCounted)
        assert(decision.evidence.exists(_.name == "cost of shuffling all groups"))
        assert(decision.chosen.contains("right side first"))
        assert(Plans.joins(df) == Seq("BroadcastHashJoin(right)"))
        withConf(off) {
          val without = assertSameRows(ofGroups(kind, fewGroups))
          assert(!Plans.joins(without).head.startsWith("BroadcastHashJoin"))
        }
      }
    }
  }

  test("groups that turn out many are joined in the order and the partitions that they have") {
    val merging = "spark.sql.join.preferSortMergeJoin" -> "true"
    // Groups that are sorted are joined without another sort: the shuffle must not lose their order.
    val sorted = Seq(
      "spark.sql.execution.useHashAggregateExec" -> "false",
      "spark.sql.execution.useObjectHashAggregateExec" -> "false",
      "spark.selinger.selectAggregateOperator.enabled" -> "false",
      "spark.selinger.stopPartialAggregation.enabled" -> "false"
    )
    forAll(Grid.of(Seq(Nil, sorted), more = 0)(_.isEmpty)) { more =>
      withConf(Seq(largeFiles, threshold, merging) ++ more: _*) {
        val df = assertSameRows(ofGroups("INNER", allGroups))
        val first = initialOf(df).collect { case join: SortMergeJoinExec => join.right }
        assert(first.map(_.getClass) == Seq(classOf[SortExec]))
        assert(counted(initialOf(df)).map(_.outputOrdering.nonEmpty) == Seq(more.nonEmpty))
        assert(Plans.joins(df).head.startsWith("SortMergeJoin"))
      }
    }
  }

  test("no group at all: the other side never runs") {
    withConf(largeFiles, threshold) {
      Seq("INNER", "LEFT", "SEMI", "ANTI").foreach { kind =>
        val df = assertSameRows(ofGroups(kind, noGroups))
        assert(waits(initialOf(df)) == 1)
        assert(Plans.joins(df).isEmpty)
      }
    }
  }

  test("groups that two joins ask for are counted once") {
    withConf(largeFiles, threshold) {
      val groups = grouped(fewGroups)
      val df = assertSameRows(
        s"""SELECT count(*), sum(r.id) FROM $large r LEFT SEMI JOIN $groups g ON r.id = g.t
           |UNION ALL
           |SELECT count(*), sum(r.id) FROM range(700000) r LEFT ANTI JOIN $groups g ON r.id = g.t
           |""".stripMargin
      )
      assert(counted(initialOf(df)).map(_.canonicalized).distinct.size == 1)
      assert(counted(initialOf(df)).size == 2)
      assert(Plans.joins(df).forall(_.startsWith("BroadcastHashJoin")))
      // What reuses it, or the broadcast of its rows, is no stage of its own.
      val run = Plans.physical(df).collect {
        case stage: ShuffleQueryStageExec
            if stage.shuffle.child.isInstanceOf[BuildSideFirstExec] =>
          stage.plan
      }.filterNot(_.isInstanceOf[ReusedExchangeExec])
      assert(run.size == 1)
    }
  }

  test("groups are counted in each place where Spark may not reuse shuffles") {
    withConf(largeFiles, threshold, "spark.sql.exchange.reuse" -> "false") {
      val df = assertSameRows(
        s"""${ofGroups("SEMI", fewGroups)} UNION ALL ${ofGroups("ANTI", fewGroups)}"""
      )
      assert(counted(initialOf(df)).size == 2)
      assert(Plans.joins(df).forall(_.startsWith("BroadcastHashJoin")))
    }
  }

  test("fires on groups by several keys, in another order than the join has them") {
    withConf(largeFiles, threshold) {
      val groups =
        s"""(SELECT bigint(tag) AS t, bigint(k) AS u, count(*) AS n FROM
           |(SELECT k, explode(sequence(1, 10000)) AS tag FROM nested WHERE k < 4)
           |GROUP BY bigint(k), bigint(tag) HAVING max(tag) % 1000 = 0 AND count(*) > 1)""".stripMargin
      val df = assertSameRows(
        s"""SELECT count(*), sum(r.id), sum(g.n) FROM $large r JOIN $groups g
           |ON r.id = g.t AND r.id % 4 = g.u""".stripMargin
      )
      assert(waits(initialOf(df)) == 1)
      assert(Plans.joins(df) == Seq("BroadcastHashJoin(right)"))
    }
  }

  test("groups are counted from the first plan on or not at all: a plan may get no more shuffles") {
    // The left side of the second join is partitioned by its key, until the first one is a broadcast.
    withConf(largeFiles, threshold, "spark.selinger.reorderJoins.enabled" -> "false") {
      val df = assertSameRows(
        s"""SELECT count(*), sum(r.id) FROM $large r
           |LEFT SEMI JOIN ${grouped(fewGroups)} a ON r.id = a.t
           |LEFT SEMI JOIN ${grouped("max(tag) % 500 = 0", 30000)} b ON r.id = b.t""".stripMargin
      )
      assert(counted(initialOf(df)).size == 1)
      assert(Plans.joins(df).contains("BroadcastHashJoin(right)"))
      assert(counted(Plans.execution(df).executedPlan match {
        case adaptive: AdaptiveSparkPlanExec => adaptive.executedPlan
        case other => other
      }).size <= 1)
    }
  }

  test("does not fire on groups that may raise an error, which nobody may ask for") {
    withConf(largeFiles, threshold, "spark.sql.ansi.enabled" -> "true") {
      assertDeclines(
        ofGroups("INNER", s"100 / (max(tag) - 20001) < 0 AND $fewGroups"),
        Reason.MayRaise
      )
    }
  }

  test("does not fire on groups above operators that would run for all of them") {
    withConf(largeFiles, threshold, "spark.sql.ansi.enabled" -> "true") {
      // The join below is by the same key: no shuffle lies between it and the aggregation.
      val lists =
        "(SELECT bigint(tag) AS t, k FROM (SELECT k, explode(sequence(1, 20000)) AS tag FROM nested WHERE k < 4))"
      val df = sql(
        s"""SELECT count(*), sum(r.id) FROM $large r LEFT SEMI JOIN
           |(SELECT a.t FROM $lists a JOIN $lists b ON a.t = b.t AND 100 / (a.k - b.k) < 7
           |GROUP BY a.t HAVING max(a.k) % 1000 = 1) g ON r.id = g.t""".stripMargin
      )
      assert(counted(initialOf(df)).isEmpty)
    }
  }

  test("the other side does not wait for groups if each place would compute it (SHARED_SUBPLAN)") {
    withConf(largeFiles, threshold) {
      val side =
        s"""(SELECT id + r AS id FROM
           |(SELECT id, row_number() OVER (PARTITION BY id ORDER BY id % 7, id % 11) AS r FROM $large))""".stripMargin
      def joined(condition: String) =
        s"SELECT count(*), sum(g.total) FROM $side r LEFT JOIN ${grouped(condition)} g ON r.id = g.t"
      val df = withConf("spark.sql.ansi.enabled" -> "false") {
        val found = sql(s"${joined(fewGroups)} UNION ALL ${joined("max(tag) % 500 = 0")}")
        assert(counted(initialOf(found)).isEmpty)
        found
      }
      val made = Plans.decisions(df, rule.id).map(_.reason)
      assert(made.nonEmpty && made.forall(_ == Reason.SharedSubplan), made)
    }
  }

  test("does not fire on groups without a condition, which their own shuffle counts") {
    withConf(largeFiles, threshold) {
      val df = sql(ofGroups("INNER", "true"))
      assert(waits(initialOf(df)) == 0 && Plans.decisions(df, rule.id).isEmpty)
    }
  }

  test("does not fire on groups that cost more to count than a broadcast saves (MEASURING_COSTLY)") {
    withConf(largeFiles, threshold) {
      assertDeclines(
        s"SELECT f.id, g.n FROM facts f LEFT JOIN ${grouped(fewGroups)} g ON f.big = g.t",
        AwaitBuildSide.MeasuringCostly
      )
    }
  }

  test("does not fire on groups on both sides, of which neither can wait") {
    withConf(largeFiles, threshold) {
      val df = sql(
        s"SELECT a.n, b.n FROM ${grouped(fewGroups)} a JOIN ${grouped("count(*) > 2")} b ON a.t = b.t"
      )
      assert(waits(initialOf(df)) == 0)
      assert(Plans.decisions(df, rule.id).isEmpty)
    }
  }

  test("a second run on groups that are counted changes nothing") {
    withConf(largeFiles, threshold) {
      val plan = initialOf(sql(ofGroups("INNER", fewGroups)))
      assert(waits(plan) == 1)
      assert(new AwaitBuildSide(spark)(plan) eq plan)
    }
  }

  // ---- does not fire ------------------------------------------------------------------------

  test("does not fire where the user forbids broadcasts between stages (NO_SMALL_SIDE)") {
    withConf(largeFiles, limit, "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "-1") {
      assertDeclines(joinOf("LEFT"), Reason.NoSmallSide)
    }
  }

  test("does not fire on a hinted join (HINT_OBEYED)") {
    withConf(largeFiles, limit) {
      assertDeclines(
        s"SELECT /*+ MERGE(b) */ a.id FROM facts a JOIN $few b ON a.k = b.k",
        Reason.HintObeyed
      )
    }
  }

  test("does not fire where nothing is known of a side (NO_STATISTICS)") {
    withFolder { folder =>
      val path = folder.resolve("text").toString
      spark.range(300).selectExpr("cast(id as int) as k").write.json(path)
      withConf(largeFiles, limit) {
        assertDeclines(
          s"SELECT a.id FROM facts a JOIN json.`$path` b ON a.k = b.k",
          Reason.NoStatistics
        )
      }
    }
  }

  test("does not fire where no side is expected to be small (NO_SMALL_SIDE)") {
    withConf(largeFiles, SelingerConf.BROADCAST_MAX_BYTES.key -> "1") {
      assertDeclines(joinOf("INNER"), Reason.NoSmallSide)
    }
  }

  test("does not fire where the side that would wait can raise an error (ERRORS_DEPEND_ON_PLAN)") {
    withConf(largeFiles, limit) {
      def query(value: String) =
        s"SELECT a.v, b.tag FROM (SELECT k, $value AS v FROM facts) a JOIN $few b ON a.k = b.k"
      assertDeclines(query("1 / (id - 70)"), Reason.MayRaise)
      assertDeclines(query("assert_true(id > 0)"), Reason.MayRaise)
      assertDeclines(
        s"SELECT a.id, b.tag FROM facts a LEFT JOIN $few b ON CAST(a.s AS int) = b.k",
        Reason.MayRaise
      )
      assert(decisionOf(sql(query("upper(s)"))).reason == Reason.BuildSideAwaited)
    }
  }

  test("does not fire where the query asks for the same rows elsewhere (SHARED_SUBPLAN)") {
    withConf(largeFiles, limit) {
      val other = s"SELECT a.id, b.tag FROM dupes a LEFT JOIN $few b ON a.k = b.k"
      val twice = s"${joinOf("LEFT")} UNION ALL $other"
      val df = assertSameRows(twice)
      assert(waits(initialOf(df)) == 0)
      assert(Plans.decisions(df, rule.id).map(_.reason).toSet == Set(Reason.SharedSubplan))
    }
  }

  test("does not fire where each place would compute what one shuffle serves (SHARED_SUBPLAN)") {
    def twice(side: String) = Seq(2, 3)
      .map(n => s"SELECT a.k, b.tag FROM $side a JOIN ${listed(n)} b ON a.k = b.k")
      .mkString(" UNION ALL ")
    def reasons(df: DataFrame) = Plans.decisions(df, rule.id).map(_.reason).toSet
    val groups = "(SELECT k, id FROM facts GROUP BY k, id HAVING count(*) < 2)"
    withConf(largeFiles, SelingerConf.BROADCAST_MAX_BYTES.key -> "30000") {
      val shared = sql(twice(groups))
      assert(waits(initialOf(shared)) == 0)
      assert(reasons(shared) == Set(Reason.SharedSubplan))
      assertSameRows(twice(groups))
      // Spark shares nothing then.
      withConf("spark.sql.exchange.reuse" -> "false") {
        assert(waits(initialOf(sql(twice(groups)))) == 2)
        assertSameRows(twice(groups))
      }
      // Rows that are only read are read twice sooner than shuffled.
      val read = sql(twice("facts"))
      assert(waits(initialOf(read)) == 2)
      assert(reasons(read) == Set(Reason.BuildSideAwaited))
      assertSameRows(twice("facts"))
    }
  }

  test("does not fire where a subquery asks for the same rows, nor in that subquery") {
    withConf(largeFiles, limit) {
      val text =
        s"""SELECT a.id, b.tag, (SELECT max(a.id) FROM facts a LEFT JOIN $few b ON a.k = b.k
           |  WHERE b.tag > 0 OR a.id > 5) AS most
           |FROM facts a LEFT JOIN $few b ON a.k = b.k""".stripMargin
      val df = assertSameRows(text)
      val initial = initialOf(df)
      val subqueries = initial.subqueries.flatMap(_.collect {
        case adaptive: AdaptiveSparkPlanExec =>
          adaptive.initialPlan
      })
      assert(subqueries.size == 1)
      assert((initial +: subqueries).map(waits) == Seq(0, 0))
      assert(decisionOf(df).reason == Reason.SharedSubplan)
    }
  }

  test("does not fire on sides that are broadcast at once, or not shuffled") {
    withConf(largeFiles) {
      val df = sql("SELECT a.id, b.id FROM facts a JOIN dims b ON a.k = b.k")
      assert(Plans.joins(df) == Seq("BroadcastHashJoin(right)"))
      assert(Plans.decisions(df, rule.id).isEmpty)
    }
  }

  test("switched off, in mode off, or without selectJoinOperator, the plan is the same object") {
    withConf(largeFiles, limit) {
      val waiting = initialOf(sql(joinOf("INNER")))
      val plan = withConf(off)(initialOf(sql(joinOf("INNER"))))
      assert(waits(waiting) == 1 && waits(plan) == 0)
      val awaiting = new AwaitBuildSide(spark)
      assert(awaiting(plan) ne plan)
      forAll(
        Seq(
          off,
          "spark.selinger.mode" -> "off",
          SelectJoinOperator.switch -> "false"
        )
      )(setting => withConf(setting)(assert(awaiting(plan) eq plan)))
    }
  }

  test("mode advise leaves the plan and says what would wait") {
    withConf(largeFiles, limit) {
      val plan = withConf(off)(initialOf(sql(joinOf("INNER"))))
      withConf("spark.selinger.mode" -> "advise") {
        assert(new AwaitBuildSide(spark)(plan) eq plan)
        val decision = decisionOf(sql(joinOf("INNER")))
        assert(decision.outcome == Outcome.Advised)
        assert(decision.reason == Reason.BuildSideAwaited)
      }
    }
  }

  test("a second run on its result changes nothing") {
    withConf(largeFiles, limit) {
      val plan = initialOf(sql(joinOf("INNER")))
      assert(waits(plan) == 1)
      assert(new AwaitBuildSide(spark)(plan) eq plan)
    }
  }

  // ---- operators ----------------------------------------------------------------------------

  test("a round is unfinished when first looked at, however often it was printed") {
    val round = new OneRoundStage
    assert(round.toString.nonEmpty && round.computeStats().isEmpty)
    assert(!round.isMaterialized)
    assert(round.isMaterialized)
  }

  test("what waits looks like its input, what is awaited like nothing else") {
    val input = Plans.execution(sql("SELECT k FROM facts")).sparkPlan
    def waiting = WaitForBuildSideExec(input, new OneRoundStage)
    def awaited = BuildSideFirstExec(input, new BuildSideFirstExec.Mark)
    assert(waiting.sameResult(input) && waiting.sameResult(waiting))
    assert(!awaited.sameResult(input) && !awaited.sameResult(awaited))
    val one = awaited
    assert(one.sameResult(one.clone()))
    Seq(waiting, awaited).foreach { plan =>
      assert(plan.output == input.output)
      assert(plan.outputPartitioning == input.outputPartitioning)
      assert(plan.outputOrdering == input.outputOrdering)
    }
  }
}
