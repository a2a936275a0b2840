package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Origin, Outcome, Reason}
import io.selinger.testing.{ExampleTables, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{SparkPlan, SubqueryBroadcastExec}
import org.apache.spark.sql.execution.adaptive.{AdaptiveSparkPlanExec, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.exchange.{
  ENSURE_REQUIREMENTS,
  EnsureRequirements,
  ReusedExchangeExec,
  ShuffleExchangeExec,
  ValidateRequirements
}
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.funsuite.AnyFunSuite

/** The rule `sizeShuffles` on real plans, in a session with Spark's default number of partitions. */
class SizeShufflesSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = SizeShuffles
  private val partitions = SQLConf.SHUFFLE_PARTITIONS.key
  private val off = rule.switch -> "false"

  // Four for each of two cores are fewer than the least number.
  private val least = 16

  // Joins stay joins of shuffled sides.
  private val noBroadcast = SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1"

  // Makes Spark believe that the small files of the tests are large, until it has read them.
  private val largeFiles = "spark.sql.sources.fileCompressionFactor" -> "1000000"

  private var before = ""

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
    ExampleTables.register(spark)
    before = spark.conf.get(partitions)
    spark.conf.unset(partitions)
  }

  override protected def afterEach(): Unit =
    try spark.conf.set(partitions, before)
    finally super.afterEach()

  private def sql(text: String): DataFrame = spark.sql(text)

  private def initialOf(df: DataFrame): SparkPlan = Plans.execution(df).executedPlan match {
    case adaptive: AdaptiveSparkPlanExec => adaptive.initialPlan
    case other => fail(s"not adaptive: $other")
  }

  private def exchangesOf(plans: Seq[SparkPlan]): Seq[ShuffleExchangeExec] =
    plans.collect { case exchange: ShuffleExchangeExec => exchange }

  /** Of the shuffles of a query, those of its subqueries included; a single partition has no number. */
  private def numbersOf(df: DataFrame): Set[Int] =
    exchangesOf(Plans.physical(df)).map(_.numPartitions).filter(_ > 1).toSet

  private def decisionsOf(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def decisionOf(df: DataFrame): Decision = decisionsOf(df) match {
    case Seq(decision) => decision
    case others => fail(s"expected one decision, got $others\n${Plans.execution(df).executedPlan}")
  }

  private def rows(df: DataFrame): Seq[String] =
    df.collect().map((row: Row) => row.toString).toSeq.sorted

  /** How often a query shuffles, how often it reads a shuffle again, and how it joins. */
  private def shape(df: DataFrame): (Int, Int, Seq[String]) = {
    val plans = Plans.physical(df)
    val reused = plans.collect { case again: ReusedExchangeExec => again }
    (exchangesOf(plans).size, reused.size, Plans.joins(df).sorted)
  }

  /** Runs a query, which gives the same rows by the same operators as without the rule. */
  private def assertSame(text: String): DataFrame = {
    val df = sql(text)
    val found = rows(df)
    withConf(off) {
      val stock = sql(text)
      assert(found == rows(stock))
      assert(numbersOf(stock) == Set(200))
      assert(
        shape(df) == shape(stock),
        s"${Plans.execution(df).executedPlan}\ninstead of\n" +
          s"${Plans.execution(stock).executedPlan}"
      )
    }
    df
  }

  private def assertFires(text: String): DataFrame = {
    val df = assertSame(text)
    assert(numbersOf(df) == Set(least), Plans.execution(df).executedPlan)
    val decisions = decisionsOf(df)
    assert(decisions.nonEmpty && decisions.forall(_.reason == SizeShuffles.Fewer), decisions)
    df
  }

  private def assertDeclines(text: String, reason: Reason): Decision = {
    val df = sql(text)
    df.collect()
    assert(decisionsOf(df).map(_.reason).distinct == Seq(reason))
    assert(decisionsOf(df).forall(_.outcome == Outcome.Declined))
    assert(numbersOf(df).forall(_ != least))
    decisionsOf(df).head
  }

  // ---- fires --------------------------------------------------------------------------------

  test("fires on an aggregation, and says by what") {
    val df = assertFires("SELECT k, count(*) FROM facts GROUP BY k")
    val decision = decisionOf(df)
    assert(decision.outcome == Outcome.Changed)
    assert(decision.title.contains("1 shuffle"))
    assert(decision.chosen.contains("16 partitions") && decision.stock.contains("200"))
    assert(decision.setting.contains(rule.switch) && decision.settingTo.contains("false"))
    assert(decision.evidence.map(_.name) == Seq(
      "expected in the largest shuffle",
      "room in 16 partitions"
    ))
  }

  Seq("INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "LEFT ANTI").foreach { kind =>
    test(s"fires on a $kind join") {
      withConf(noBroadcast) {
        val df =
          assertFires(s"SELECT a.* FROM facts a $kind JOIN dims b ON a.k = b.k AND a.id < 900")
        assert(decisionOf(df).title.contains("2 shuffles"))
      }
    }
  }

  Seq(
    "several joins" ->
      "SELECT a.id, b.id, c.id FROM facts a JOIN dims b ON a.k = b.k JOIN dims c ON a.big = c.big",
    "an aggregation of a join" ->
      "SELECT a.s, sum(b.id) FROM facts a JOIN dims b ON a.k = b.k GROUP BY a.s",
    "a join of aggregations" ->
      """SELECT a.k, n, m FROM (SELECT k, count(*) AS n FROM facts GROUP BY k) a
        |JOIN (SELECT k, max(id) AS m FROM dupes GROUP BY k) b ON a.k = b.k""".stripMargin,
    "DISTINCT" -> "SELECT k, count(DISTINCT s), count(DISTINCT day), sum(id) FROM facts GROUP BY k",
    "SELECT DISTINCT" -> "SELECT DISTINCT k, s FROM facts",
    "a rollup" -> "SELECT k, s, count(*) FROM facts GROUP BY ROLLUP (k, s)",
    "a window" -> "SELECT id, sum(id) OVER (PARTITION BY k ORDER BY id) FROM facts",
    "ranks" ->
      "SELECT * FROM (SELECT id, k, rank() OVER (PARTITION BY k ORDER BY id) r FROM facts) WHERE r < 3",
    "a global sort" -> "SELECT id, k, s FROM facts ORDER BY s, id",
    "set operations" ->
      "SELECT k FROM facts INTERSECT SELECT k FROM dims EXCEPT SELECT k FROM dupes",
    "a union of aggregations that is aggregated" ->
      """SELECT k, sum(n) FROM (SELECT k, count(*) AS n FROM facts GROUP BY k
        |UNION ALL SELECT k, count(*) FROM dims GROUP BY k) GROUP BY k""".stripMargin,
    "a shuffle that is used twice" ->
      """WITH t AS (SELECT k, count(*) AS n FROM facts GROUP BY k)
        |SELECT a.k, a.n FROM t a JOIN t b ON a.n = b.n AND a.k <> b.k""".stripMargin,
    "NaN, -0.0 and collated keys" ->
      """SELECT a.d, count(*) FROM facts a JOIN dims b ON a.d = b.d
        |AND a.s COLLATE UTF8_LCASE = b.s GROUP BY a.d""".stripMargin
  ).foreach { case (what, text) =>
    test(s"fires on $what") {
      withConf(noBroadcast) { val _ = assertFires(text) }
    }
  }

  test("no rows are no rows, however many partitions they have") {
    withConf(noBroadcast) {
      val text = "SELECT a.k, count(*) FROM facts a JOIN nothing b ON a.k = b.k GROUP BY a.k"
      assert(rows(sql(text)).isEmpty && decisionsOf(sql(text)).nonEmpty)
    }
  }

  test("a global sort gives the same order") {
    val text = "SELECT id, s FROM facts ORDER BY s DESC NULLS LAST, id"
    val found = sql(text).collect().toSeq
    withConf(off)(assert(found == sql(text).collect().toSeq))
  }

  test("fires on the inputs of a cogroup, where their size is known") {
    val session = spark
    import session.implicits._
    def cogrouped = {
      def keyed(table: String) =
        sql(s"SELECT k, id FROM $table WHERE k IS NOT NULL").as[(Int, Long)].groupByKey(_._1)
      keyed("facts").cogroup(keyed("dims")) { (key, left, right) =>
        Iterator((key, left.map(_._2).sum, right.size))
      }.toDF("k", "a", "b")
    }
    val found = rows(cogrouped)
    withConf(off)(assert(found == rows(cogrouped)))
  }

  test("a subquery that shares a shuffle with the query gets the same number") {
    withConf(noBroadcast) {
      val df = assertFires(
        """WITH t AS (SELECT k, count(*) AS n FROM facts GROUP BY k)
          |SELECT a.id, t.n FROM dims a JOIN t ON a.k = t.k
          |WHERE t.n > (SELECT avg(n) FROM t WHERE k IS NOT NULL)""".stripMargin
      )
      assert(shape(df)._2 > 0)
    }
  }

  test("a subquery that shares a shuffle gets the number that the larger of both needs") {
    // The query shuffles more than the subquery, and has both the same number.
    withConf(noBroadcast, SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key -> "5000") {
      val df = assertSame(
        """WITH t AS (SELECT k, count(*) AS n FROM dims GROUP BY k)
          |SELECT a.id, a.amount, t.n FROM facts a JOIN t ON a.k = t.k
          |WHERE t.n > (SELECT avg(n) FROM t WHERE k IS NOT NULL)""".stripMargin
      )
      assert(shape(df)._2 > 0)
      assert(numbersOf(df).size == 1 && numbersOf(df).head > least && numbersOf(df).head < 200)
    }
  }

  test("a subquery that shares nothing has a number of its own") {
    val df = assertFires(
      "SELECT k, count(*) FROM facts WHERE id > (SELECT count(DISTINCT k) FROM dims) GROUP BY k"
    )
    assert(decisionsOf(df).size == 2)
  }

  test("partitions are pruned by a build side that is shuffled, as they are without the rule") {
    withFolder { folder =>
      val path = folder.resolve("parts").toString
      spark.range(0, 2000, 1, 4).selectExpr("id", "id % 50 AS part").write.partitionBy("part")
        .parquet(path)
      def pruning(df: DataFrame) =
        Plans.physical(df).count(_.isInstanceOf[SubqueryBroadcastExec])
      // What the query itself shuffles needs more partitions than what is broadcast.
      withConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key -> "16000") {
        val text = s"""SELECT p.part, p.id % 1000, count(*), max(s), min(d.n)
          |FROM (SELECT *, string(id) AS s FROM parquet.`$path`) p JOIN
          |(SELECT k, count(*) AS n FROM dims WHERE id < 30 GROUP BY k) d ON p.part = d.k
          |GROUP BY p.part, p.id % 1000""".stripMargin
        val df = assertSame(text)
        assert(numbersOf(df).size == 1 && numbersOf(df).head < 200)
        assert(pruning(df) > 0 && withConf(off)(pruning(ran(text))) == pruning(df))
      }
    }
  }

  private def ran(text: String): DataFrame = {
    val df = sql(text)
    df.collect()
    df
  }

  test("fires on a cached table, and on what reads it") {
    val cached = sql("SELECT k, count(*) AS n FROM facts GROUP BY k").cache()
    try {
      cached.createOrReplaceTempView("cached")
      val text = "SELECT a.n, count(*) FROM cached a JOIN dims b ON a.k = b.k GROUP BY a.n"
      withConf(noBroadcast) {
        val found = rows(sql(text))
        assert(numbersOf(sql(text)).nonEmpty)
        withConf(off)(assert(found == rows(sql(text))))
      }
    } finally { val _ = cached.unpersist(blocking = true) }
  }

  test("a query that is run again has the same plan") {
    val df = sql("SELECT k, count(*) FROM facts GROUP BY k")
    val first = rows(df)
    assert(rows(df) == first && numbersOf(df) == Set(least))
    assert(rows(df.filter("k > 3")).size < first.size)
  }

  // ---- while the query runs -----------------------------------------------------------------

  private val keyed = "(SELECT k, big, count(*) AS n FROM facts GROUP BY k, big)"

  Seq(
    "a join of a finished side with one that is still to be shuffled" ->
      s"""SELECT a.id, b.n FROM dupes a JOIN
         |(SELECT x.k, sum(x.n) AS n FROM $keyed x JOIN dims y ON x.big = y.big GROUP BY x.k) b
         |ON a.k = b.k""".stripMargin,
    "both sides computed in several stages" ->
      s"""SELECT a.k, a.n, b.n FROM
         |(SELECT x.k, sum(x.n) AS n FROM $keyed x JOIN dims y ON x.big = y.big GROUP BY x.k) a
         |FULL JOIN (SELECT x.k, max(y.id) AS n FROM dupes x JOIN dims y ON x.s = y.s GROUP BY x.k) b
         |ON a.k = b.k""".stripMargin,
    "a union of a finished side with one that is still to be shuffled" ->
      s"""SELECT k, sum(n) FROM (SELECT k, count(*) AS n FROM dims GROUP BY k UNION ALL
         |SELECT x.k, sum(x.n) AS n FROM $keyed x JOIN dims y ON x.big = y.big GROUP BY x.k)
         |GROUP BY k""".stripMargin,
    "a window over a join over aggregations" ->
      s"""SELECT a.k, rank() OVER (PARTITION BY a.k ORDER BY b.n, a.id) FROM facts a JOIN
         |(SELECT x.k, sum(x.n) AS n FROM $keyed x JOIN dims y ON x.big = y.big GROUP BY x.k) b
         |ON a.k = b.k""".stripMargin
  ).foreach { case (what, text) =>
    val joined = Seq("sorted" -> Seq(noBroadcast), "to be broadcast" -> Seq(largeFiles))
    Grid.part(joined, share = 0.5, what).foreach {
      case (how, settings) =>
        test(s"re-plans keep the number, and shuffle nothing again: $what, $how") {
          // Without rules that change how often is shuffled by which stage finishes first.
          val fixed = Seq(AwaitBuildSide, ReduceJoinInput).map(_.switch -> "false")
          withConf(settings ++ fixed: _*) { val _ = assertFires(text) }
          withConf(settings: _*) {
            val found = rows(sql(text))
            withConf(off)(assert(found == rows(sql(text))))
          }
        }
    }
  }

  test("a shuffled side that turns out small is broadcast all the same") {
    withConf(largeFiles, SelectJoinOperator.switch -> "false") {
      val df = assertFires(
        s"""SELECT a.id, b.n FROM facts a JOIN
           |(SELECT x.k, sum(x.n) AS n FROM $keyed x JOIN dims y ON x.big = y.big
           |WHERE y.id = 3 GROUP BY x.k) b ON a.k = b.k""".stripMargin
      )
      assert(Plans.joins(df).exists(_.startsWith("BroadcastHashJoin")))
    }
  }

  test("a shuffle that Spark adds only because numbers differ is left out") {
    withConf(noBroadcast, AwaitBuildSide.switch -> "false") {
      val df = ran(
        """SELECT a.id, b.n FROM dupes a JOIN
          |(SELECT k, count(*) AS n FROM facts GROUP BY k) b ON a.k = b.k""".stripMargin
      )
      def isLeft(plan: SparkPlan) = plan.output.exists(_.name == "id")
      val finished = Plans.physical(df).collect { case stage: ShuffleQueryStageExec => stage }
      // As if the left side had finished first, and Spark planned the right side anew.
      val begun = initialOf(df).transformUp { case exchange: ShuffleExchangeExec =>
        if (isLeft(exchange)) finished.find(isLeft(_)).get
        else {
          exchange.outputPartitioning match {
            case hash: HashPartitioning =>
              exchange.copy(outputPartitioning = hash.copy(numPartitions = 200))
            case other => fail(s"not by hash: $other")
          }
        }
      }
      def numbers(plan: SparkPlan) =
        plan.collect { case exchange: ShuffleExchangeExec => exchange.numPartitions }
      assert(numbers(begun) == Seq(200))
      val replanned = EnsureRequirements().apply(begun)
      assert(numbers(replanned) == Seq(200, 200))
      val sized = new SizeShuffles(spark).apply(replanned)
      assert(numbers(sized) == Seq(least) && ValidateRequirements.validate(sized))
    }
  }

  test("a skewed partition is still split") {
    withConf(
      noBroadcast,
      "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes" -> "2000",
      "spark.sql.adaptive.skewJoin.skewedPartitionFactor" -> "1.5",
      SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key -> "2000",
      "spark.sql.adaptive.coalescePartitions.minPartitionSize" -> "1"
    ) {
      val text =
        """SELECT a.id, b.id FROM (SELECT id, if(id % 10 > 0, 7, id % 97) AS k FROM range(0, 3000, 1, 4)) a
          |JOIN (SELECT id, id % 97 AS k FROM range(0, 200, 1, 4)) b ON a.k = b.k""".stripMargin
      val df = sql(text)
      val found = rows(df)
      assert(numbersOf(df).size == 1 && numbersOf(df).head < 200)
      assert(Plans.execution(df).executedPlan.toString.contains("skew=true"))
      withConf(off)(assert(found == rows(sql(text))))
    }
  }

  // ---- does not fire ------------------------------------------------------------------------

  private val grouped = "SELECT k, count(*) FROM facts GROUP BY k"

  test("does not fire where the user has set the number (SHUFFLE_PARTITIONS_SET)") {
    withConf(partitions -> "200") {
      val decision = assertDeclines(grouped, SizeShuffles.PartitionsSet)
      assert(decision.setting.contains(partitions) && decision.settingTo.contains(""))
    }
    val initial = SQLConf.COALESCE_PARTITIONS_INITIAL_PARTITION_NUM.key
    withConf(initial -> "50") {
      assert(assertDeclines(grouped, SizeShuffles.PartitionsSet).setting.contains(initial))
      assert(numbersOf(sql(grouped)) == Set(50))
    }
  }

  test("does not fire where partitions must not be merged (COALESCING_OFF)") {
    withConf(SQLConf.COALESCE_PARTITIONS_ENABLED.key -> "false") {
      val _ = assertDeclines(grouped, SizeShuffles.CoalescingOff)
    }
  }

  test("does not fire where nothing is known of what is shuffled (NO_STATISTICS)") {
    withFolder { folder =>
      val path = folder.resolve("text").toString
      spark.range(300).selectExpr("cast(id as int) as k").write.json(path)
      val _ = assertDeclines(
        s"SELECT k, count(*) FROM json.`$path` GROUP BY k",
        Reason.NoStatistics
      )
    }
  }

  test("does not fire where the bytes need as many partitions (PARTITIONS_NEEDED)") {
    withConf(SQLConf.ADVISORY_PARTITION_SIZE_IN_BYTES.key -> "10") {
      val decision = assertDeclines(grouped, SizeShuffles.PartitionsNeeded)
      assert(decision.evidence.map(_.name).last == "room in 200 partitions")
    }
  }

  test("does not fire where the user wants at least as many (PARTITIONS_NEEDED)") {
    withConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM.key -> "200") {
      val _ = assertDeclines(grouped, SizeShuffles.PartitionsNeeded)
    }
    withConf(SQLConf.COALESCE_PARTITIONS_MIN_PARTITION_NUM.key -> "30") {
      assert(numbersOf(sql(grouped)) == Set(30))
    }
  }

  test("does not fire where a hint fixes the partitions of one side (PARTITIONING_FIXED)") {
    withConf(noBroadcast) {
      val hinted =
        "SELECT a.id FROM (SELECT /*+ REPARTITION(k) */ id, k FROM facts) a JOIN dims b ON a.k = b.k"
      val _ = assertDeclines(hinted, SizeShuffles.PartitioningFixed)
      val expected = withConf(off)(rows(sql(hinted)))
      assert(rows(sql(hinted)) == expected)
    }
  }

  test("leaves the shuffles alone that a query asks for, and sizes the others") {
    Seq("REPARTITION(7, k)", "REPARTITION(7)", "REPARTITION(k)", "REBALANCE(k)").foreach { hint =>
      val text = s"SELECT s, count(*) FROM (SELECT /*+ $hint */ k, s FROM facts) GROUP BY s"
      val df = sql(text)
      val expected = withConf(off)(rows(sql(text)))
      assert(rows(df) == expected)
      val (added, asked) =
        exchangesOf(Plans.physical(df)).partition(_.shuffleOrigin == ENSURE_REQUIREMENTS)
      assert(added.map(_.numPartitions) == Seq(least) && asked.nonEmpty, hint)
      assert(asked.forall(_.numPartitions != least), hint)
    }
  }

  test("does not fire without adaptive execution") {
    withConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false") {
      val df = sql(grouped)
      assert(decisionsOf(df).isEmpty && numbersOf(df) == Set(200))
    }
  }

  test("does not fire where nothing is shuffled, nor on a single partition") {
    Seq(
      "SELECT id FROM facts WHERE k = 3",
      "SELECT count(*) FROM facts",
      "SELECT a.id FROM facts a JOIN dims b ON a.k = b.k"
    ).foreach(text => assert(decisionsOf(sql(text)).isEmpty, text))
  }

  test("off and advise leave the plan as it is") {
    withConf(off)(assert(numbersOf(sql(grouped)) == Set(200)))
    withConf(SelingerConf.MODE.key -> "advise") {
      val df = sql(grouped)
      assert(exchangesOf(initialOf(df)).map(_.numPartitions) == Seq(200))
      assert(decisionOf(df).outcome == Outcome.Advised)
    }
  }

  test("a mode that changes while the query runs leaves it working") {
    val df =
      sql(s"SELECT x.k, sum(x.n) AS n FROM $keyed x JOIN dims y ON x.big = y.big GROUP BY x.k")
    Plans.execution(df).executedPlan
    val found = withConf(off)(rows(df))
    assert(found == rows(sql(s"SELECT x.k, sum(x.n) AS n FROM $keyed x JOIN dims y " +
      "ON x.big = y.big GROUP BY x.k")))
  }

  // ---- the number ---------------------------------------------------------------------------

  private def numberFor(expectedMiB: Double, mostMiB: Double = 1e12): Int = {
    val size = ShuffleSize(expectedMiB * (1 << 20), mostMiB * (1 << 20), Origin.Derived)
    SizeShuffles.numberFor(size, least)
  }

  test("the number is the least one, doubled until eight times the expected bytes have room") {
    assert(Seq(0.0, 1.0, 128.0).map(numberFor(_)).distinct == Seq(16))
    assert(numberFor(129.0) == 32 && numberFor(257.0) == 64 && numberFor(1024.0) == 128)
    assert(numberFor(1025.0) == 200 && numberFor(1e9) == 200)
  }

  test("there is no room for more bytes than there can be") {
    assert(numberFor(600.0, mostMiB = 700.0) == 16)
    assert(numberFor(600.0, mostMiB = 1100.0) == 32)
  }

  private def exchangesOf(plan: SparkPlan): Seq[ShuffleExchangeExec] =
    exchangesOf(Plans.operators(plan))
}
