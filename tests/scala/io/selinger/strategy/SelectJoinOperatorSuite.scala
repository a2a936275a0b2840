package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Origin, Outcome, Phase, PlanningPass, Reason}
import io.selinger.cost.Cluster
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.rule.EliminateJoins
import io.selinger.testing.{Answer, LateFileSystem, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.adaptive.{BroadcastQueryStageExec, LogicalQueryStage}
import org.scalatest.Assertion
import org.scalatest.Inspectors.forAll
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.Duration

/** The rule `selectJoinOperator` on real plans. */
class SelectJoinOperatorSuite extends AnyFunSuite with SharedSession with Eventually {

  // Joins that change nothing are there to be decided about.
  override protected def ofSuite: Seq[(String, String)] =
    Seq(SelingerConf.switchOf(EliminateJoins).key -> "false")

  implicit override val patienceConfig: PatienceConfig =
    PatienceConfig(timeout = Span(10, Seconds), interval = Span(20, Millis))

  private val rule = SelectJoinOperator

  // Makes Spark believe that the small files of the tests are large: it then sorts and merges.
  private val largeFiles = "spark.sql.sources.fileCompressionFactor" -> "1000000"
  private val noBroadcast = SelingerConf.BROADCAST_MAX_BYTES.key -> "1"
  // Rows that are planned, not read: enough for hashing to pay.
  private val many = "(SELECT id, id AS k FROM range(2000000000))"
  private val some = "(SELECT id, id AS k FROM range(2000000))"
  private val noAdaptive = "spark.sql.adaptive.enabled" -> "false"
  private val tinyHashTables = SelingerConf.HASH_MEMORY_SHARE.key -> "0.0000001"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def sql(text: String): DataFrame = spark.sql(text)

  private def decisionOf(df: DataFrame): Decision = Plans.decisions(df, rule.id) match {
    case Seq(decision) => decision
    case others => fail(s"expected one decision, got $others\n${Plans.execution(df).executedPlan}")
  }

  private def assertFires(text: String, operator: String, stock: String, reason: Reason): Unit = {
    val df = sql(text)
    val decision = decisionOf(df)
    assert(Plans.joins(df) == Seq(operator), decision)
    assert(decision.outcome == Outcome.Changed)
    assert(decision.reason == reason)
    assert(decision.chosen.contains(operator))
    assert(decision.stock.contains(stock))
    assert(decision.phase == Phase.Static)
    ()
  }

  /** Asserts that a session without the extension makes the same plan under the same confs. */
  private def assertPlanOfStock(text: String): DataFrame = {
    def canonical(df: DataFrame) = Plans.execution(df).executedPlan.canonicalized.toString
    val df = sql(text)
    SharedSession.onStock(spark) { stock =>
      Tables.register(stock)
      val expected = stock.sql(text)
      assert(Plans.joins(df) == Plans.joins(expected))
      assert(canonical(df) == canonical(expected))
    }
    df
  }

  private def assertDeclines(text: String, reason: Reason): Unit = {
    val decision = decisionOf(assertPlanOfStock(text))
    assert(decision.outcome == Outcome.Declined)
    assert(decision.reason == reason)
    ()
  }

  private def joinOf(kind: String, left: String = "facts", right: String = "dims") = kind match {
    case "SEMI" | "ANTI" => s"SELECT * FROM $left a LEFT $kind JOIN $right b ON a.k = b.k"
    case _ => s"SELECT a.id, b.id FROM $left a $kind JOIN $right b ON a.k = b.k"
  }

  // ---- fires --------------------------------------------------------------------------------

  Seq("INNER", "LEFT", "SEMI", "ANTI").foreach { kind =>
    test(s"fires on a $kind join with a small right side: broadcast instead of sort-merge") {
      withConf(largeFiles) {
        assertFires(
          joinOf(kind),
          "BroadcastHashJoin(right)",
          "SortMergeJoin",
          Reason.BroadcastCheapest
        )
      }
    }
  }

  Seq("INNER", "RIGHT").foreach { kind =>
    test(s"fires on a $kind join with a small left side: broadcast instead of sort-merge") {
      withConf(largeFiles) {
        assertFires(
          joinOf(kind, "dims", "facts"),
          "BroadcastHashJoin(left)",
          "SortMergeJoin",
          Reason.BroadcastCheapest
        )
      }
    }
  }

  Seq("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI").foreach { kind =>
    test(s"fires on a $kind join whose hash table fits a task: hash instead of sort") {
      withConf(noBroadcast) {
        assertFires(
          joinOf(kind, many, some),
          "ShuffledHashJoin(right)",
          "SortMergeJoin",
          Reason.HashBuildCheapest
        )
      }
    }
  }

  test("fires on a range join: nested loop instead of a cartesian product") {
    withConf(largeFiles) {
      assertFires(
        "SELECT f.id FROM facts f JOIN spans s ON f.k BETWEEN s.low AND s.high",
        "BroadcastNestedLoopJoin(right)",
        "CartesianProduct",
        Reason.NestedLoopFits
      )
    }
  }

  test("fires on a full outer join without equalities by building the smaller side") {
    withConf(largeFiles) {
      val df = sql("SELECT f.id FROM spans s FULL JOIN facts f ON f.k BETWEEN s.low AND s.high")
      assert(Plans.joins(df) == Seq("BroadcastNestedLoopJoin(left)"))
    }
  }

  test("fires on null-safe equality, on several keys, on empty inputs and on columns of nulls") {
    withConf(largeFiles) {
      Seq(
        "SELECT a.id FROM facts a JOIN dims b ON a.k <=> b.k",
        "SELECT a.id FROM facts a JOIN dims b ON a.k = b.k AND a.s = b.s AND a.amount = b.amount",
        "SELECT a.id FROM facts a JOIN nothing b ON a.k = b.k",
        "SELECT a.id FROM facts a JOIN nulls b ON a.k = b.k"
      ).foreach { text =>
        assertFires(text, "BroadcastHashJoin(right)", "SortMergeJoin", Reason.BroadcastCheapest)
      }
    }
  }

  test("fires on several joins of one query, each with its own decision") {
    withConf(largeFiles) {
      val df = sql("SELECT a.id FROM facts a JOIN dims b ON a.k = b.k JOIN spans c ON a.id = c.id")
      assert(Plans.joins(df) == Seq("BroadcastHashJoin(right)", "BroadcastHashJoin(right)"))
      assert(Plans.decisions(df, rule.id).map(_.key).distinct.size == 2)
    }
  }

  test("does not fire where the gain is within the error of estimates (STOCK_CHEAP_ENOUGH)") {
    withConf(largeFiles, noBroadcast, SelingerConf.JOIN_MIN_GAIN.key -> "0.5") {
      val df = assertPlanOfStock(joinOf("INNER"))
      val decision = decisionOf(df)
      assert(decision.outcome == Outcome.Same && decision.reason == Reason.StockCheapEnough)
      assert(decision.chosen.contains("SortMergeJoin"))
      assert(decision.setting.contains(SelingerConf.JOIN_MIN_GAIN.key))
    }
  }

  test("says the same where stock Spark would choose the same") {
    val df = assertPlanOfStock(joinOf("INNER"))
    assert(decisionOf(df).outcome == Outcome.Same)
    assert(Plans.joins(df) == Seq("BroadcastHashJoin(right)"))
  }

  test("planning the same query again decides the same") {
    withConf(largeFiles) {
      val (first, second) = (sql(joinOf("LEFT")), sql(joinOf("LEFT")))
      assert(decisionOf(first).copy(key = "") == decisionOf(second).copy(key = ""))
      assert(Plans.joins(first) == Plans.joins(second))
    }
  }

  // ---- does not fire ------------------------------------------------------------------------

  test("does not fire on a stream (STREAMING_PLAN)") {
    val stream = spark.readStream.format("rate").load().selectExpr("cast(value as int) as k")
    val plan = Plans.execution(stream.join(spark.table("dims"), "k")).analyzed
    assert(declinedDirectly(plan) == Reason.StreamingPlan)
  }

  private def declinedDirectly(plan: LogicalPlan): Reason = {
    val join = plan.collectFirst { case join: Join => join }.get
    assert(new SelectJoinOperator(spark)(join).isEmpty)
    Decision.recordedAt(join).map(_.reason) match {
      case Seq(reason) => reason
      case other => fail(s"expected one decision, got $other")
    }
  }

  private val hints = Seq(
    "BROADCAST(b)",
    "BROADCAST(a)",
    "MERGE(b)",
    "SHUFFLE_HASH(a)",
    "SHUFFLE_HASH(b)",
    "SHUFFLE_REPLICATE_NL(b)",
    "BROADCAST(a), MERGE(b)",
    "MERGE(a), SHUFFLE_HASH(b)",
    "SHUFFLE_HASH(a), SHUFFLE_REPLICATE_NL(b)",
    "BROADCAST(a), BROADCAST(b)",
    "SHUFFLE_HASH(a), SHUFFLE_HASH(b)"
  )

  for (hint <- hints; kind <- Seq("INNER", "LEFT", "FULL"))
    test(s"does not fire on a $kind join hinted $hint (HINT_OBEYED)") {
      withConf(largeFiles) {
        assertDeclines(
          s"SELECT /*+ $hint */ a.id, b.id FROM facts a $kind JOIN dims b ON a.k = b.k",
          Reason.HintObeyed
        )
      }
    }

  test("does not fire on hints of joins without equalities (HINT_OBEYED)") {
    withConf(largeFiles) {
      Seq("BROADCAST(f)", "MERGE(s)", "SHUFFLE_REPLICATE_NL(s)").foreach { hint =>
        assertDeclines(
          s"SELECT /*+ $hint */ f.id FROM facts f JOIN spans s ON f.k < s.low",
          Reason.HintObeyed
        )
      }
    }
  }

  test("does not fire on NOT IN (NULL_AWARE_ANTI_JOIN)") {
    withConf(largeFiles) {
      assertDeclines(
        "SELECT id FROM facts WHERE k NOT IN (SELECT k FROM dims)",
        Reason.NullAwareAntiJoin
      )
    }
  }

  test("does not fire where nothing is known of a side (NO_STATISTICS)") {
    withFolder { folder =>
      Seq("csv", "json").foreach { format =>
        val path = folder.resolve(format).toString
        spark.range(100).selectExpr("cast(id as int) as k").write.format(format).save(path)
        val source = if (format == "csv") s"SELECT cast(_c0 as int) AS k FROM csv.`$path`"
        else s"SELECT k FROM json.`$path`"
        withConf(largeFiles) {
          assertDeclines(
            s"SELECT a.id FROM facts a JOIN ($source) b ON a.k = b.k",
            Reason.NoStatistics
          )
        }
      }
    }
  }

  test("says whose rows are unknown, below other operators and beside relations that are known") {
    def unknown(text: String) = {
      val decision = decisionOf(sql(text))
      assert(decision.reason == Reason.NoStatistics)
      decision.detail.mkString
    }
    withTextFiles { (left, right) =>
      withConf(largeFiles) {
        val of = "It is unknown for "
        val grouped = s"(SELECT k, max(v) AS v FROM $right WHERE v > 7 GROUP BY k)"
        assert(unknown(s"SELECT a.id FROM facts a JOIN $grouped b ON a.k = b.k") == s"${of}right")
        assert(unknown(s"SELECT a.v FROM $left a JOIN $grouped b ON a.k = b.k") == s"${of}left")
        val ids = spark.range(9).toDF("k")
        spark.createDataFrame(ids.rdd, ids.schema).createOrReplaceTempView("made")
        assert(unknown("SELECT 1 FROM facts a JOIN made b ON a.k = b.k") == s"${of}rows of an RDD")
        withConf(ReadFooterStatistics.switch -> "false") {
          assert(unknown(joinOf("INNER")) == s"${of}facts")
        }
      }
    }
  }

  test("shows no upper bound of rows where none is known") {
    withConf(largeFiles) {
      val exploded = "(SELECT explode(sequence(1, id)) AS k FROM dims)"
      val df = sql(s"SELECT a.id FROM facts a JOIN $exploded b ON a.k = b.k")
      val names = decisionOf(df).evidence.map(_.name)
      assert(names.contains("left rows at most") && names.contains("right rows"))
      assert(!names.contains("right rows at most"))
      val bounds = decisionOf(sql(joinOf("INNER"))).evidence.map(_.name)
      assert(bounds.contains("right rows at most"))
    }
  }

  test("footers that arrive when a plan has been made are known to the next one, in each mode") {
    val hadoop = spark.sparkContext.hadoopConfiguration
    hadoop.set("fs.late.impl", classOf[LateFileSystem].getName)
    for (mode <- Seq("advise", "on")) withFolder { folder =>
      val path = folder.resolve("late").toString
      spark.range(100).selectExpr("id AS k").write.parquet(path)
      def made = {
        spark.read.schema("k BIGINT").parquet(s"late:$path").createOrReplaceTempView("late")
        decisionOf(sql("SELECT a.id FROM facts a JOIN late b ON a.k = b.k"))
      }
      withConf(
        largeFiles,
        SelingerConf.MODE.key -> mode,
        SelingerConf.FOOTER_BUDGET_MS.key -> "50"
      ) {
        LateFileSystem.hold {
          // The last one does not even wait.
          for (_ <- 1 to 3) {
            assert(made.reason == Reason.NoStatistics)
            assert(made.detail.exists(
              _ == "It is unknown for late, whose footers could not be read in time"
            ))
          }
        }
        eventually(assert(made.reason != Reason.NoStatistics))
      }
    }
  }

  test("does not fire where footers are not to be read (NO_STATISTICS)") {
    withConf(largeFiles, ReadFooterStatistics.switch -> "false") {
      assertDeclines(joinOf("INNER"), Reason.NoStatistics)
    }
  }

  test("does not fire where the user's threshold lets Spark broadcast (USER_THRESHOLD_OBEYED)") {
    withConf("spark.sql.autoBroadcastJoinThreshold" -> "10485760") {
      assertDeclines(joinOf("INNER"), Reason.UserThreshold)
    }
  }

  test("does not broadcast with autoBroadcastJoinThreshold=-1, whatever is allowed to us") {
    withConf(
      largeFiles,
      "spark.sql.autoBroadcastJoinThreshold" -> "-1",
      SelingerConf.BROADCAST_MAX_BYTES.key -> "1g"
    ) {
      Seq("INNER", "LEFT", "FULL", "SEMI", "ANTI").foreach { kind =>
        assert(!Plans.joins(sql(joinOf(kind))).exists(_.startsWith("Broadcast")))
      }
      assertDeclines(
        "SELECT f.id FROM facts f JOIN spans s ON f.k < s.low",
        Reason.NestedLoopTooLarge
      )
    }
  }

  test("takes the user's threshold as the limit of a build side") {
    def joins(threshold: String) =
      withConf(
        largeFiles,
        "spark.sql.autoBroadcastJoinThreshold" -> threshold
      )(Plans.joins(sql(joinOf("INNER"))))
    assert(!joins("100").exists(_.startsWith("Broadcast")))
    assert(joins("1000000") == Seq("BroadcastHashJoin(right)"))
  }

  test("does not hash where the user demands sort-merge joins") {
    withConf(noBroadcast, "spark.sql.join.preferSortMergeJoin" -> "true") {
      val df = assertPlanOfStock(joinOf("INNER", many, some))
      assert(Plans.joins(df) == Seq("SortMergeJoin"))
      assert(decisionOf(df).outcome == Outcome.Same)
    }
  }

  test("does not hash where no side is known to fit (NO_SAFE_HASH_TABLE)") {
    withConf(noBroadcast, tinyHashTables) {
      val df = assertPlanOfStock(joinOf("INNER", many, some))
      assert(Plans.joins(df) == Seq("SortMergeJoin"))
      assert(decisionOf(df).reason == Reason.NothingFits)
    }
  }

  test("does not hash a side whose rows are only guessed (NO_SAFE_HASH_TABLE)") {
    withConf(largeFiles, noBroadcast) {
      val df = sql("""SELECT a.id FROM facts a JOIN
                     |(SELECT k, tag FROM nested LATERAL VIEW explode(tags) t AS tag) b
                     |ON a.k = b.k AND a.id = b.tag""".stripMargin)
      assert(decisionOf(df).chosen.exists(_ != "ShuffledHashJoin(right)"))
    }
  }

  test("does not hash or broadcast rows whose width is only a default (NO_SAFE_HASH_TABLE)") {
    val sized = "(SELECT id AS k, repeat('x', cast(id AS int)) AS text FROM range(2000000))"
    val df = assertPlanOfStock(s"SELECT a.id, b.text FROM $many a JOIN $sized b ON a.id = b.k")
    assert(Plans.joins(df) == Seq("SortMergeJoin"))
    assert(decisionOf(df).reason == Reason.NothingFits)
  }

  test("does not fire on a cartesian product whose sides are too large (NESTED_LOOP_TOO_LARGE)") {
    withConf(largeFiles, noBroadcast) {
      assertDeclines(
        "SELECT f.id FROM facts f JOIN spans s ON f.k < s.low",
        Reason.NestedLoopTooLarge
      )
    }
  }

  test("does not fire where Spark lacks the operator (OPERATOR_UNSUPPORTED)") {
    // A scalar subquery's join has no sort-merge form.
    withConf(largeFiles, noBroadcast, tinyHashTables) {
      assertDeclines(
        "SELECT id, (SELECT b.id FROM spans b WHERE b.id = a.id) FROM facts a",
        Reason.UnsupportedByOperator
      )
    }
  }

  test("does not fire on collated keys, which Spark can only sort (OPERATOR_UNSUPPORTED)") {
    withConf(largeFiles) {
      val key = "s COLLATE UTF8_LCASE"
      val df = assertPlanOfStock(s"SELECT a.id FROM facts a JOIN dims b ON a.$key = b.$key")
      assert(decisionOf(df).reason == Reason.UnsupportedByOperator)
    }
  }

  test("does not fire on a join with a side that has been broadcast (BROADCAST_STAGE_RUNNING)") {
    withConf(largeFiles) {
      val df = sql(joinOf("INNER"))
      df.collect()
      val stage = Plans.physical(df).collectFirst { case stage: BroadcastQueryStageExec =>
        stage
      }.get
      val optimized = Plans.execution(df).optimizedPlan
      val join = optimized.collectFirst { case join: Join => join }.get
      // Built anew, since the join of the query carries the decision of its first planning.
      val replanned =
        Join(
          join.left,
          LogicalQueryStage(join.right, stage),
          join.joinType,
          join.condition,
          join.hint
        )
      assert(declinedDirectly(replanned) == Reason.BroadcastStage)
    }
  }

  test("does not fire once the budget is used up (PLANNING_BUDGET_EXCEEDED)") {
    withConf(largeFiles, SelingerConf.PLANNING_BUDGET_MS.key -> "1") {
      val join = Plans.execution(sql(joinOf("INNER"))).optimizedPlan.collectFirst { case j: Join =>
        j
      }.get
      PlanningPass.start().timed(Thread.sleep(5))
      val again = join.copy(hint = join.hint)
      assert(new SelectJoinOperator(spark)(again).isEmpty)
      assert(Decision.recordedAt(again).map(_.reason) == Seq(Reason.BudgetExceeded))
    }
  }

  // ---- switches -----------------------------------------------------------------------------

  private val joins = Seq(
    joinOf("INNER"),
    joinOf("ANTI"),
    joinOf("FULL", many, some),
    "SELECT f.id FROM facts f JOIN spans s ON f.k BETWEEN s.low AND s.high"
  )

  test("mode off gives the plan of a session without the extension, and no decision") {
    withConf(largeFiles, SelingerConf.MODE.key -> "off") {
      joins.foreach(text => assert(Plans.decisions(assertPlanOfStock(text)).isEmpty))
    }
  }

  test("the rule's switch gives the plan of a session without the extension, and no decision") {
    withConf(largeFiles, rule.switch -> "false") {
      joins.foreach(text => assert(Plans.decisions(assertPlanOfStock(text), rule.id).isEmpty))
    }
  }

  test("mode advise gives the plan of a session without the extension, and says what it would do") {
    withConf(largeFiles, SelingerConf.MODE.key -> "advise") {
      joins.foreach { text =>
        val decision = decisionOf(assertPlanOfStock(text))
        assert(decision.outcome == Outcome.Advised)
        assert(decision.chosen.isDefined && decision.chosen != decision.stock)
      }
    }
  }

  // ---- adaptive -----------------------------------------------------------------------------

  // Sides of which nothing is known before they have run: files without footers.
  private def withTextFiles(body: (String, String) => Assertion): Assertion = withFolder { folder =>
    def write(name: String, rows: Long): String = {
      val path = folder.resolve(name).toString
      spark.range(rows).selectExpr("cast(id as int) as k", "id * 2 as v").write.json(path)
      s"json.`$path`"
    }
    body(write("left", 2000), write("right", 300))
  }

  test("an aggregation whose input has been counted returns no more rows than that") {
    withTextFiles { (_, right) =>
      withConf(largeFiles) {
        // An outer side cannot be broadcast, so Spark waits for the aggregation.
        val df = sql(
          s"SELECT f.id FROM facts f LEFT JOIN (SELECT DISTINCT k, v FROM $right) b ON f.k = b.k"
        )
        assert(decisionOf(df).reason == Reason.NoStatistics)
        val _ = df.collect()
        val decision = decisionOf(df)
        assert(decision.phase == Phase.Adaptive && decision.reason == Reason.BroadcastCheapest)
        assert(decision.evidence.exists(e => e.name == "right rows at most" && e.value <= 300))
        assert(Plans.joins(df) == Seq("BroadcastHashJoin(right)"))
      }
    }
  }

  test("fires at an adaptive re-plan on measured rows where nothing was known before") {
    withTextFiles { (left, right) =>
      withConf(largeFiles, "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
        val df = sql(s"SELECT a.v, b.v FROM $left a JOIN $right b ON a.k = b.k")
        assert(Plans.joins(df) == Seq("SortMergeJoin"))
        assert(decisionOf(df).reason == Reason.NoStatistics)
        assert(df.collect().length == 300)
        val decision = decisionOf(df)
        assert(Plans.joins(df) == Seq("ShuffledHashJoin(right)"))
        assert(decision.phase == Phase.Adaptive)
        assert(decision.outcome == Outcome.Changed)
        assert(decision.reason == Reason.HashBuildCheapest)
        assert(decision.evidence.exists(e =>
          e.name == "right rows" && e.value == 300 && e.origin == Origin.Measured
        ))
      }
    }
  }

  test("an aggregation above a shuffle has its partitions: a hash table is what one task builds") {
    withTextFiles { (left, right) =>
      // Less than 300 rows take, more than a few of them do.
      val share = 10000.0 / Cluster.of(spark.asInstanceOf[SparkSession]).taskMemoryBytes
      val small = "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "1"
      val large = "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> "64MB"
      val totals =
        s"""SELECT a.v, b.total FROM $left a LEFT JOIN
           |(SELECT k AS key, sum(v) AS total FROM $right GROUP BY k) b ON a.k = b.key""".stripMargin
      forAll(Seq(
        (totals, small, "ShuffledHashJoin(right)"),
        (totals, large, "SortMergeJoin"),
        // The shuffle of the left side serves the right one as well, under other names.
        (
          s"SELECT a.v FROM $right a LEFT SEMI JOIN $right b ON a.k = b.k AND a.v <= b.v",
          small,
          "ShuffledHashJoin(right)"
        )
      )) { case (query, taskBytes, operator) =>
        withConf(
          largeFiles,
          taskBytes,
          "spark.sql.autoBroadcastJoinThreshold" -> "-1",
          "spark.sql.shuffle.partitions" -> "100",
          SelingerConf.HASH_MEMORY_SHARE.key -> f"$share%.12f"
        ) {
          val df = sql(query)
          assert(df.collect().length >= 300)
          assert(Plans.joins(df) == Seq(operator))
        }
      }
    }
  }

  test("what a join below reads leaves less of a hash table's side to each task") {
    withTextFiles { (left, right) =>
      val share = 10000.0 / Cluster.of(spark.asInstanceOf[SparkSession]).taskMemoryBytes
      def operators(taskBytes: Long): Seq[String] = withConf(
        largeFiles,
        "spark.sql.adaptive.advisoryPartitionSizeInBytes" -> taskBytes.toString,
        "spark.sql.autoBroadcastJoinThreshold" -> "-1",
        "spark.sql.shuffle.partitions" -> "100",
        SelingerConf.HASH_MEMORY_SHARE.key -> f"$share%.12f"
      ) {
        val df = sql(
          s"""SELECT a.v, b.v, c.total FROM $left a LEFT JOIN $left b ON a.k = b.k LEFT JOIN
             |(SELECT k AS key, sum(v) AS total FROM $right GROUP BY k) c ON a.k = c.key""".stripMargin
        )
        assert(df.collect().length == 2000)
        Plans.joins(df)
      }
      // By themselves, the shuffled totals fit one task of this size; beside the other rows they do not.
      assert(operators(taskBytes = 8000).contains("ShuffledHashJoin(right)"))
      assert(!operators(taskBytes = 64 << 20).contains("ShuffledHashJoin(right)"))
    }
  }

  test("does not fire at a re-plan with adaptive execution off") {
    withTextFiles { (left, right) =>
      withConf(largeFiles, noAdaptive) {
        val df = sql(s"SELECT a.v, b.v FROM $left a JOIN $right b ON a.k = b.k")
        assert(df.collect().length == 300)
        assert(Plans.joins(df) == Seq("SortMergeJoin"))
        assert(decisionOf(df).reason == Reason.NoStatistics)
      }
    }
  }

  test("fires with adaptive execution off as it does before the query runs with it") {
    withConf(largeFiles, noAdaptive) {
      assertFires(
        joinOf("INNER"),
        "BroadcastHashJoin(right)",
        "SortMergeJoin",
        Reason.BroadcastCheapest
      )
    }
  }

  // The side is read before the join if it is shuffled, and never if an empty broadcast meets it.
  test("does not fire where an empty side would hide an error (ERRORS_DEPEND_ON_PLAN)") {
    val text = "SELECT f.id FROM (SELECT * FROM facts WHERE 10 / (id % 7) > 1) f " +
      "JOIN nothing n ON f.k = n.k"
    def assertLeft(text: String): Unit = {
      val decision = decisionOf(sql(text))
      assert(decision.outcome == Outcome.Declined && decision.reason == Reason.MayRaise)
      assert(Plans.joins(sql(text)) == Seq("SortMergeJoin"))
      ()
    }
    withConf("spark.sql.ansi.enabled" -> "true", largeFiles, noAdaptive) {
      assertLeft(text)
      assert(Answer.of(sql(text)) == Answer.Error("DIVIDE_BY_ZERO"))
      // An outer side is read in any case, but which sides are is not asked.
      assertLeft(text.replace("JOIN", "LEFT JOIN"))
      assertFires(
        text.replace("10 / (id % 7)", "id % 7"),
        "BroadcastHashJoin(right)",
        "SortMergeJoin",
        Reason.BroadcastCheapest
      )
    }
    withConf("spark.sql.ansi.enabled" -> "true", noBroadcast) {
      // Spark broadcasts: were there no rows, the other side would not be read, adaptive or not.
      assertDeclines(text.replace("nothing", "dims"), Reason.MayRaise)
    }
    withConf("spark.sql.ansi.enabled" -> "true", largeFiles) {
      // Here stock Spark shuffles both sides at once and, by luck, drops one before it fails.
      val decision = decisionOf(sql(text))
      assert(decision.outcome == Outcome.Changed && decision.reason == Reason.BroadcastCheapest)
    }
  }

  test("corrects a wrong estimate at an adaptive re-plan") {
    withConf(largeFiles, noBroadcast) {
      // An exploded list bounds nothing; once it has run, its rows are known.
      val df = sql("""SELECT a.id FROM facts a JOIN
                     |(SELECT k, tag FROM nested LATERAL VIEW explode(tags) t AS tag) b
                     |ON a.k = b.k AND a.d = b.tag""".stripMargin)
      df.collect()
      val decision = decisionOf(df)
      assert(decision.phase == Phase.Adaptive)
      assert(decision.evidence.exists(e => e.name == "right rows" && e.origin == Origin.Measured))
    }
  }

  test("a user's adaptive threshold forbids broadcasts between the stages") {
    withTextFiles { (left, right) =>
      withConf(largeFiles, "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "-1") {
        val df = sql(s"SELECT a.v, b.v FROM $left a JOIN $right b ON a.k = b.k")
        df.collect()
        assert(Plans.joins(df) == Seq("ShuffledHashJoin(right)"))
      }
    }
  }

  test("fires on a cached side, by its measured rows") {
    withConf(largeFiles) {
      val cached = sql("SELECT k, id FROM dims").cache()
      try {
        cached.count()
        cached.createOrReplaceTempView("cached_dims")
        val df = sql("SELECT a.id FROM facts a JOIN cached_dims b ON a.k = b.k")
        assert(decisionOf(df).evidence.exists(e => e.name == "right rows" && e.value <= 150))
        assert(df.count() == sql("SELECT a.id FROM facts a JOIN dims b ON a.k = b.k").count())
      } finally { val _ = cached.unpersist(blocking = true) }
    }
  }

  test("plans on several threads at a time decide as one does alone") {
    withConf(largeFiles) {
      val alone = Plans.joins(sql(joinOf("LEFT")))
      implicit val pool: ExecutionContext = ExecutionContext.global
      val together = Future.traverse((1 to 8).toList)(_ => Future(Plans.joins(sql(joinOf("LEFT")))))
      assert(Await.result(together, Duration(60, "s")).forall(_ == alone))
    }
  }

  test("fires in subqueries and in the input of commands") {
    withConf(largeFiles) {
      val inSubquery =
        sql(s"SELECT id FROM dims WHERE id > (SELECT max(a) FROM (${joinOf("INNER")}) t(a, b))")
      assert(Plans.joins(inSubquery) == Seq("BroadcastHashJoin(right)"))
      withFolder { folder =>
        val target = folder.resolve("copy").toString
        sql(
          s"INSERT OVERWRITE DIRECTORY '$target' USING parquet ${joinOf("INNER").replace("b.id", "b.id AS other")}"
        )
        assert(spark.read.parquet(target).count() > 0)
      }
    }
  }
}
