package io.selinger.strategy

import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.exec.PartitionedByEitherKeyExec
import io.selinger.testing.{ExampleTables, Plans, SharedSession, Tables}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.execution.{SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.exchange.{ShuffleExchangeExec, ValidateRequirements}
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.funsuite.AnyFunSuite

/** The rule `shuffleByCommonKeys` on real plans. */
class ShuffleByCommonKeysSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] =
    SharedSession.interpreted ++ SharedSession.grouped

  private val rule = ShuffleByCommonKeys
  private val off = rule.switch -> "false"

  // Joins stay joins of shuffled sides, and none of them waits for the other.
  private val shuffled = Seq(
    SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1",
    "spark.selinger.join.broadcastMaxBytes" -> "1",
    AwaitBuildSide.switch -> "false"
  )

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
    ExampleTables.register(spark)
  }

  private def initialOf(df: DataFrame): SparkPlan = Plans.execution(df).executedPlan match {
    case adaptive: AdaptiveSparkPlanExec => adaptive.initialPlan
    case other => other
  }

  private def keysIn(plans: Seq[SparkPlan]): Seq[Int] =
    plans.collect { case exchange: ShuffleExchangeExec => exchange.outputPartitioning }
      .collect { case hash: HashPartitioning => hash.expressions.size }

  /** Of each shuffle of the plan that has run, the number of keys. */
  private def keysOf(df: DataFrame): Seq[Int] = keysIn(Plans.physical(df))

  /** How many shuffles a query begins with, which may end early where there are no rows. */
  private def planned(df: DataFrame): Int =
    keysIn(initialOf(df).collect { case node => node }).size

  private def decisionsOf(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def rows(df: DataFrame): Seq[String] =
    df.collect().map((row: Row) => row.toString).toSeq.sorted

  /** Runs a query, which returns the same rows as without the rule, and how many shuffles it saves. */
  private def saved(text: String): (DataFrame, Int) = {
    val df = spark.sql(text)
    val found = rows(df)
    assert(ValidateRequirements.validate(initialOf(df)))
    val before = withConf(off) {
      val plain = spark.sql(text)
      assert(found == rows(plain))
      assert(keysOf(df).size <= keysOf(plain).size)
      planned(plain)
    }
    (df, before - planned(df))
  }

  private def assertFires(text: String, shuffles: Int = 1): DataFrame = {
    val (df, less) = saved(text)
    assert(less == shuffles, initialOf(df))
    assert(decisionsOf(df).exists(_.reason == ShuffleByCommonKeys.Once), decisionsOf(df))
    df
  }

  private def assertKeeps(text: String): DataFrame = {
    val (df, less) = saved(text)
    assert(less == 0, initialOf(df))
    df
  }

  private def assertDeclines(text: String, reason: Reason): Decision = {
    val df = assertKeeps(text)
    decisionsOf(df) match {
      case Seq(decision) =>
        assert(decision.reason == reason && decision.outcome == Outcome.Declined)
        decision
      case others => fail(s"expected one decision, got $others")
    }
  }

  private val total =
    "SELECT k, day, sum(n) OVER (PARTITION BY k ORDER BY day) AS total " +
      "FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day)"

  // ---- fires --------------------------------------------------------------------------------

  test("fires on a window over an aggregation, and says by what") {
    val df = assertFires(total)
    assert(keysOf(df) == Seq(1))
    val decision = decisionsOf(df).head
    assert(decision.outcome == Outcome.Changed && decision.node == "Shuffle by k")
    assert(decision.chosen.contains("1 shuffle") && decision.stock.contains("2 shuffles"))
    assert(decision.setting.contains(rule.switch) && decision.settingTo.contains("false"))
    assert(decision.evidence.map(_.name).take(3) == Seq(
      "values of the common keys",
      "input of the first operator",
      "the most frequent value"
    ))
  }

  Seq(
    "an aggregation of an aggregation" ->
      "SELECT k, max(n), avg(n) FROM (SELECT k, day, s, count(*) AS n FROM facts GROUP BY k, day, s) GROUP BY k",
    "a window through names, filters and columns computed beside the keys" ->
      """SELECT name, rank() OVER (PARTITION BY name ORDER BY half, day)
        |FROM (SELECT k AS name, day, cast(count(*) AS double) * 0.5D AS half FROM facts GROUP BY k, day)
        |WHERE half > 0.5D""".stripMargin,
    "two windows" ->
      """SELECT k, s, a, max(a) OVER (PARTITION BY k ORDER BY s, id)
        |FROM (SELECT k, s, id, row_number() OVER (PARTITION BY k, s ORDER BY id) AS a FROM facts)""".stripMargin,
    "a key among several functions, with DISTINCT below" ->
      "SELECT k, count(*), max(s) FROM (SELECT DISTINCT k, s, day FROM facts) GROUP BY k",
    "DISTINCT in an aggregation" -> "SELECT k, count(DISTINCT s), max(id) FROM facts GROUP BY k",
    "a window over a broadcast join with what was grouped" ->
      """SELECT /*+ BROADCAST(b) */ a.k, a.n, b.id, rank() OVER (PARTITION BY a.k ORDER BY a.n, b.id)
        |FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day) a JOIN dims b ON a.k = b.k""".stripMargin,
    "the same keys in another order, as a window has them" ->
      """SELECT s, k, sum(n) OVER (PARTITION BY s, k ORDER BY day)
        |FROM (SELECT k, s, day, count(*) AS n FROM facts GROUP BY k, s, day)""".stripMargin,
    "nulls and duplicates of every key" ->
      """SELECT k, s, sum(n) OVER (PARTITION BY k ORDER BY s)
        |FROM (SELECT k, s, count(*) AS n FROM nulls GROUP BY k, s)""".stripMargin,
    "texts, one of which is empty" ->
      """SELECT s, k, sum(n) OVER (PARTITION BY s ORDER BY k)
        |FROM (SELECT s, k, count(*) AS n FROM facts GROUP BY s, k)""".stripMargin,
    "decimals" ->
      """SELECT amount, k, sum(n) OVER (PARTITION BY amount ORDER BY k)
        |FROM (SELECT amount, k, count(*) AS n FROM facts GROUP BY amount, k)""".stripMargin,
    "no rows" ->
      """SELECT k, s, sum(n) OVER (PARTITION BY k ORDER BY s)
        |FROM (SELECT k, s, count(*) AS n FROM nothing GROUP BY k, s)""".stripMargin
  ).foreach { case (what, text) =>
    test(s"fires on $what") {
      val _ = assertFires(text)
    }
  }

  Seq("INNER", "LEFT", "LEFT SEMI", "LEFT ANTI").foreach { kind =>
    test(s"fires above a $kind join: both of its sides are shuffled by what is grouped by") {
      withConf(shuffled: _*) {
        val _ = assertFires(
          s"""SELECT a.k, count(*) FROM facts a $kind JOIN dims b ON a.k = b.k AND a.big = b.big
             |GROUP BY a.k""".stripMargin
        )
      }
    }
  }

  // The sides of full outer joins: each has keys that the other has not, and null among its keys.
  private val sides =
    """WITH a AS (SELECT k, day, n, max(n) OVER (PARTITION BY k ORDER BY day) AS t FROM
      |  (SELECT k, day, count(*) AS n FROM
      |    (SELECT if(id % 50 = 0, null, k) AS k, id % 3 AS day FROM facts) GROUP BY k, day)),
      |b AS (SELECT j, m, max(n) OVER (PARTITION BY j ORDER BY m) AS u FROM
      |  (SELECT j, m, count(*) AS n FROM
      |    (SELECT if(id % 40 = 0, null, k + 7) AS j, id % 4 AS m FROM facts) GROUP BY j, m))
      |""".stripMargin

  Seq(
    "coalesce" -> "coalesce(k, j)",
    "coalesce, the right key first" -> "coalesce(j, k)",
    "CASE" -> "CASE WHEN k IS NOT NULL THEN k ELSE j END",
    "if" -> "if(k IS NULL, j, k)"
  ).foreach { case (what, key) =>
    test(s"fires above a full outer join by the key that a row has, written with $what") {
      withConf(shuffled: _*) {
        val df = assertFires(
          s"""$sides SELECT key, count(*), max(t), max(u), min(m) FROM
             |  (SELECT $key AS key, t, u, m FROM a FULL JOIN b ON k = j AND day = m) GROUP BY key""".stripMargin,
          shuffles = 5
        )
        assert(keysOf(df) == Seq(1, 1), Plans.execution(df).executedPlan)
        assert(df.filter("key IS NULL").count() == 1)
        assert(Plans.physical(df).exists(_.isInstanceOf[PartitionedByEitherKeyExec]))
      }
    }
  }

  test("fires between full outer joins by the same keys, which USING names") {
    withConf(shuffled: _*) {
      val three =
        """SELECT k, x.n, y.m, z.o FROM (SELECT k, count(*) AS n FROM facts GROUP BY k) x
          |FULL JOIN (SELECT if(k > 5, k, null) AS k, id AS m FROM facts) y USING (k)
          |FULL JOIN (SELECT k + 3 AS k, id AS o FROM facts WHERE id % 2 = 0) z USING (k)""".stripMargin
      val df = assertFires(three)
      assert(keysOf(df) == Seq(1, 1, 1))
    }
  }

  Seq("1", "3").foreach { partitions =>
    test(s"full outer joins and what is above read the same $partitions partitions") {
      withConf(shuffled :+ (SQLConf.SHUFFLE_PARTITIONS.key -> partitions): _*) {
        val _ = assertFires(
          s"""$sides SELECT key, t, m, max(u) OVER (PARTITION BY key ORDER BY t, m) AS top
             |FROM (SELECT coalesce(k, j) AS key, t, u, m FROM a FULL JOIN b ON k = j AND day = m)""".stripMargin,
          shuffles = 5
        )
      }
    }
  }

  Seq("a WHERE false" -> "b", "a" -> "b WHERE false", "a WHERE k IS NULL" -> "b WHERE j IS NULL")
    .foreach { case (left, right) =>
      test(s"a full outer join of $left and $right has all rows") {
        withConf(shuffled: _*) {
          val (df, _) = saved(
            s"""$sides SELECT key, count(*), max(t), max(u) FROM (SELECT coalesce(k, j) AS key, t, u
               |  FROM (SELECT * FROM $left) FULL JOIN (SELECT * FROM $right) ON k = j AND day = m)
               |GROUP BY key""".stripMargin
          )
          assert(rows(df).nonEmpty)
        }
      }
    }

  // Several partitions until the end: rows that lie elsewhere than claimed would be grouped twice.
  private val apart = shuffled ++ Seq(
    SQLConf.COALESCE_PARTITIONS_ENABLED.key -> "false",
    SQLConf.SHUFFLE_PARTITIONS.key -> "2"
  )

  // Keys of facts lie between 0 and 119.
  private val plain =
    """SELECT key, count(*) FROM (SELECT coalesce(a.k, b.k) AS key FROM facts a
      |  FULL JOIN (SELECT k + 30 AS k FROM facts) b ON a.k = b.k) GROUP BY key""".stripMargin

  Seq("generated code" -> SharedSession.compiled, "interpreted" -> SharedSession.interpreted)
    .foreach { case (what, settings) =>
      Seq("true", "false").foreach { sorted =>
        test(
          s"full outer joins in several partitions, $what, ${SQLConf.PREFER_SORTMERGEJOIN.key} $sorted"
        ) {
          withConf(
            apart ++ settings ++ Seq(
              SelectJoinOperator.switch -> "false",
              SQLConf.PREFER_SORTMERGEJOIN.key -> sorted
            ): _*
          ) {
            val df = assertFires(plain)
            assert(
              Plans.physical(df).exists {
                case code: WholeStageCodegenExec =>
                  code.exists(_.isInstanceOf[PartitionedByEitherKeyExec])
                case _ => false
              } == (settings == SharedSession.compiled)
            )
          }
        }
      }
    }

  // Keys with a sample of their own, so that they are known to be even enough for several partitions.
  private val windows =
    """WITH a AS (SELECT k, id, max(day) OVER (PARTITION BY k ORDER BY id) AS t FROM facts),
      |b AS (SELECT k, id, min(day) OVER (PARTITION BY k ORDER BY id) AS u FROM facts WHERE id % 3 = 0)
      |""".stripMargin

  Seq("coalesce(b.k, a.k)", "if(a.k IS NULL, b.k, a.k)").foreach { key =>
    test(s"full outer joins above windows, by $key, in several partitions") {
      withConf(apart: _*) {
        val _ = assertFires(
          s"""$windows SELECT key, count(*), max(t), min(u) FROM (SELECT $key AS key, t, u
             |  FROM a FULL JOIN b ON a.k = b.k AND a.id = b.id) GROUP BY key""".stripMargin,
          shuffles = 3
        )
      }
    }
  }

  test("full outer joins by USING, in several partitions") {
    withConf(apart: _*) {
      val _ = assertFires(
        """SELECT k, count(*), count(x), count(y), count(z)
          |FROM (SELECT k, id AS x FROM facts WHERE id % 4 = 0)
          |FULL JOIN (SELECT k + 30 AS k, id AS y FROM facts WHERE id % 4 = 1) USING (k)
          |FULL JOIN (SELECT k + 60 AS k, id AS z FROM facts WHERE id % 4 = 2) USING (k)
          |GROUP BY k""".stripMargin,
        shuffles = 2
      )
    }
  }

  // The inner join becomes a broadcast when its small side is measured, later than the other side ran.
  Seq(
    "sides by the same key" -> ("USING (k)" -> "SELECT k, id AS t FROM dupes"),
    "a side with groups" -> ("USING (k, big)" ->
      """SELECT k, big, max(n) OVER (PARTITION BY k ORDER BY big) AS t
        |FROM (SELECT k, big, count(*) AS n FROM dupes GROUP BY k, big)""".stripMargin)
  ).foreach { case (what, (keys, side)) =>
    test(s"a re-plan of a full outer join, $what, is not refused after one side has run") {
      withConf(
        AwaitBuildSide.switch -> "false",
        SelectJoinOperator.switch -> "false",
        SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1",
        SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB"
      ) {
        val df = assertFires(
          s"""SELECT k, count(*), max(t) FROM
             |(SELECT f.k, f.big FROM facts f JOIN (SELECT id, count(*) FROM dims GROUP BY id) d ON f.id = d.id)
             |FULL JOIN ($side) $keys GROUP BY k""".stripMargin,
          shuffles = if (keys.contains("big")) 3 else 1
        )
        assert(
          Plans.joins(df).exists(_.startsWith("BroadcastHashJoin")),
          Plans.execution(df).executedPlan
        )
      }
    }
  }

  Seq(
    "coalesce(if(d.k > 50, d.k, -1), f.k)" -> "if(d.k > 50, d.k, -1) = f.k",
    "coalesce(f.k, coalesce(d.k, 0))" -> "coalesce(d.k, 0) = f.k"
  ).foreach { case (key, condition) =>
    test(
      s"passes over $key, of which one key is computed, and not null in rows that its side lacks"
    ) {
      withConf(apart: _*) {
        val df = assertKeeps(
          s"""SELECT key, count(*) FROM (SELECT $key AS key
             |  FROM (SELECT if(id % 9 = 0, null, k) AS k FROM facts WHERE k > 100) d
             |  FULL JOIN (SELECT if(id % 7 = 0, null, k) AS k FROM facts) f ON $condition)
             |GROUP BY key""".stripMargin
        )
        assert(decisionsOf(df).isEmpty)
      }
    }
  }

  test(
    "passes over a side that lies by another column, equal only to the join key of some of its rows"
  ) {
    withConf(apart :+ (SQLConf.REQUIRE_ALL_CLUSTER_KEYS_FOR_CO_PARTITION.key -> "false"): _*) {
      val (df, _) = saved(
        """SELECT key, count(*) FROM (SELECT coalesce(a.k, c.j) AS key FROM facts a
          |  FULL JOIN (SELECT c.x, d.j FROM (SELECT k + 20 AS x FROM facts) c
          |    LEFT JOIN (SELECT k AS j FROM facts WHERE k < 110) d ON c.x = d.j) c
          |  ON a.k = c.j AND a.k = c.x) GROUP BY key""".stripMargin
      )
      assert(decisionsOf(df).isEmpty)
    }
  }

  test("fires on each of three shuffles that need one key only") {
    val df = assertFires(
      "SELECT k, count(DISTINCT s) FROM (SELECT k, day, min(s) AS s FROM facts GROUP BY k, day) GROUP BY k",
      shuffles = 2
    )
    val plan = initialOf(df)
    assert(new ShuffleByCommonKeys(spark)(plan) eq plan)
  }

  test("fires above an aggregation of a full outer join by more keys") {
    withConf(shuffled: _*) {
      val df = assertFires(
        s"""$sides SELECT key, max(n), max(t) FROM
           |  (SELECT coalesce(k, j) AS key, coalesce(day, m) AS d, count(*) AS n, max(greatest(t, u)) AS t
           |   FROM a FULL JOIN b ON k = j AND day = m GROUP BY 1, 2) GROUP BY key""".stripMargin,
        shuffles = 6
      )
      val plan = initialOf(df)
      assert(new ShuffleByCommonKeys(spark)(plan) eq plan)
    }
  }

  test("does not fire where another part of the query reads the shuffle of one side") {
    withConf(shuffled: _*) {
      val (df, _) = saved(
        s"""$sides SELECT coalesce(k, j) AS key, max(t), max(u) FROM a FULL JOIN b ON k = j AND day = m
           |GROUP BY coalesce(k, j)
           |UNION ALL
           |SELECT k, max(t), max(u) FROM a LEFT JOIN b ON k = j AND day = m GROUP BY k, day""".stripMargin
      )
      assert(decisionsOf(df).exists(_.reason == Reason.SharedSubplan), decisionsOf(df))
    }
  }

  test(
    "does not fire where the sides lie by a column with few values, though Spark's windows need no more"
  ) {
    withConf(apart: _*) {
      val _ = assertDeclines(
        """WITH w AS (SELECT flag, id, max(k) OVER (PARTITION BY flag ORDER BY id) AS t FROM facts)
          |SELECT key, max(t), max(u) FROM (SELECT coalesce(a.flag, b.flag) AS key, a.t, b.u
          |  FROM w a FULL JOIN (SELECT flag, id, min(k) OVER (PARTITION BY flag ORDER BY id) AS u FROM facts) b
          |  ON a.flag = b.flag AND a.id = b.id) GROUP BY key""".stripMargin,
        rule.Uneven
      )
    }
  }

  test("a second run changes nothing") {
    val plan = initialOf(assertFires(total))
    assert(new ShuffleByCommonKeys(spark)(plan) eq plan)
  }

  Seq("1", "3", "200").foreach { partitions =>
    test(s"keeps one shuffle through re-plans, with $partitions partitions") {
      withConf(shuffled :+ (SQLConf.SHUFFLE_PARTITIONS.key -> partitions): _*) {
        val df = assertFires(
          """SELECT a.k, count(*) FROM facts a JOIN (SELECT k, big, max(id) AS last FROM dims GROUP BY k, big) b
            |ON a.k = b.k AND a.big = b.big GROUP BY a.k""".stripMargin
        )
        assert(keysOf(df) == Seq(1, 1))
      }
    }
  }

  test("a re-plan whose one side has run shuffles neither side again, and is not refused") {
    // The inner join becomes a broadcast when its small side is measured, later than the other side ran.
    val text =
      """SELECT x.k, count(*) FROM
        |(SELECT f.k, f.big FROM facts f JOIN (SELECT id, count(*) FROM dims GROUP BY id) d ON f.id = d.id) x
        |JOIN dupes b ON x.k = b.k AND x.big = b.big GROUP BY x.k""".stripMargin
    withConf(
      AwaitBuildSide.switch -> "false",
      SelectJoinOperator.switch -> "false",
      SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1",
      SQLConf.ADAPTIVE_AUTO_BROADCASTJOIN_THRESHOLD.key -> "10MB"
    ) {
      val df = assertFires(text)
      assert(
        Plans.joins(df).exists(_.startsWith("BroadcastHashJoin")),
        Plans.execution(df).executedPlan
      )
    }
  }

  test("advises and changes nothing in mode advise") {
    withConf("spark.selinger.mode" -> "advise") {
      val df = spark.sql(total)
      df.collect()
      assert(keysOf(df).sorted == Seq(1, 2))
      assert(decisionsOf(df).map(_.outcome) == Seq(Outcome.Advised))
    }
  }

  // ---- does not fire ------------------------------------------------------------------------

  private val large = "spark.sql.adaptive.coalescePartitions.minPartitionSize" -> "1"

  test("does not fire on common keys with few values") {
    withConf(large) {
      val decision =
        assertDeclines(
          total.replace("BY k", "BY flag").replace("SELECT k", "SELECT flag"),
          rule.Uneven
        )
      assert(decision.evidence.exists(_.name == "partitions"))
    }
  }

  test("does not fire on a common key that is null in many rows") {
    withConf(large, SQLConf.SHUFFLE_PARTITIONS.key -> "4") {
      spark.sql("SELECT id, if(id % 2 = 0, null, id) AS k, id % 7 AS day FROM range(5000)")
        .createOrReplaceTempView("source")
      withFolder { folder =>
        val path = folder.resolve("half").toString
        spark.table("source").write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView("facts")
        val _ = assertDeclines(total, rule.Uneven)
        spark.read.parquet(path).where("k IS NOT NULL").createOrReplaceTempView("facts")
        val _ = assertFires(total)
      }
    }
  }

  test("does not fire where another part of the query reads the shuffle") {
    val shared =
      """WITH totals AS (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day)
        |SELECT k, day, sum(n) OVER (PARTITION BY k ORDER BY day) FROM totals
        |UNION ALL
        |SELECT k, day, max(n) OVER (PARTITION BY k ORDER BY day) FROM totals""".stripMargin
    val df = assertKeeps(shared)
    assert(decisionsOf(df).map(_.reason).distinct == Seq(Reason.SharedSubplan))
  }

  test("does not fire on what can raise an error, which a join might then not run") {
    val _ = assertDeclines(total.replace("count(*)", "sum(1 / (id + 1))"), Reason.MayRaise)
  }

  test("passes over shuffles for joins, whose measured size decides the operator") {
    withConf(shuffled: _*) {
      Seq("INNER", "LEFT", "RIGHT").foreach { kind =>
        val df = assertKeeps(
          s"""SELECT a.* FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day) a
             |$kind JOIN (SELECT k, s, max(id) AS m FROM dims GROUP BY k, s) b
             |ON a.k = b.k AND a.n < 100""".stripMargin
        )
        assert(decisionsOf(df).isEmpty)
      }
    }
  }

  Seq(
    "one key of a full outer join, which rows of the other side lack" -> "k",
    "an expression of both keys that is neither" -> "k + j",
    "the key that a row has, or another value" -> "coalesce(k, j, 0)",
    "the key that a row has not" -> "if(k IS NOT NULL, j, k)",
    "keys that are not joined to each other" -> "coalesce(k, m)"
  ).foreach { case (what, key) =>
    test(s"passes over $what") {
      withConf(shuffled: _*) {
        val (df, _) = saved(
          s"$sides SELECT $key, count(*) FROM a FULL JOIN b ON k = j AND day = m GROUP BY $key"
        )
        assert(!initialOf(df).exists(_.isInstanceOf[PartitionedByEitherKeyExec]))
      }
    }
  }

  test("passes over full outer joins by collated keys, which differ in bytes where they are equal") {
    withConf(shuffled: _*) {
      val _ = assertKeeps(
        """SELECT key, count(*) FROM (SELECT coalesce(a.c, b.c) AS key
          |  FROM (SELECT upper(s) COLLATE UTF8_LCASE AS c, id FROM facts) a
          |  FULL JOIN (SELECT s COLLATE UTF8_LCASE AS c, id + 5 AS id FROM facts) b
          |  ON a.c = b.c AND a.id = b.id) GROUP BY key""".stripMargin
      )
    }
  }

  test("does not fire where an error could be raised below a side's shuffle, which would go too") {
    withConf(shuffled: _*) {
      val text =
        """WITH a AS (SELECT k, id, 1 / (k + 1) + max(day) OVER (PARTITION BY k ORDER BY id) AS t
          |  FROM (SELECT k, id, id AS day FROM facts)),
          |b AS (SELECT k, id, min(id) OVER (PARTITION BY k ORDER BY id) AS u FROM facts WHERE id % 3 = 0)
          |SELECT key, count(t), max(u) FROM (SELECT coalesce(a.k, b.k) AS key, t, u
          |  FROM a FULL JOIN b ON a.k = b.k AND a.id = b.id) GROUP BY key""".stripMargin
      val _ = assertDeclines(text, Reason.MayRaise)
    }
  }

  test("passes over full outer joins by floating-point keys, which a join compares in one form") {
    withConf(shuffled: _*) {
      val _ = assertKeeps(
        """SELECT key, count(*) FROM (SELECT coalesce(a.d, b.d) AS key FROM facts a
          |  FULL JOIN (SELECT -d AS d, id FROM facts) b ON a.d = b.d AND a.id = b.id)
          |GROUP BY key""".stripMargin
      )
    }
  }

  Seq(
    "keys that are computed in between" ->
      """SELECT j, sum(n) OVER (PARTITION BY j ORDER BY day)
        |FROM (SELECT k % 10 AS j, day, n FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day))""".stripMargin,
    "keys that the aggregation below computes" ->
      """SELECT n, sum(n) OVER (PARTITION BY n ORDER BY day)
        |FROM (SELECT k, day, count(*) AS n FROM facts GROUP BY k, day)""".stripMargin,
    "a window over all rows" ->
      "SELECT k, sum(n) OVER (ORDER BY k) FROM (SELECT k, count(*) AS n FROM facts GROUP BY k)",
    "a shuffle that the query asks for" ->
      """SELECT k, count(*) FROM (SELECT /*+ REPARTITION(4, k, day) */ k, day FROM facts) GROUP BY k""",
    "a subquery, whose shuffles the query may share" ->
      s"SELECT id FROM facts WHERE id > (SELECT max(total) FROM ($total))",
    "keys that the shuffle below does not have" ->
      """SELECT k, s, day, a, max(a) OVER (PARTITION BY day ORDER BY id) FROM
        |(SELECT k, s, day, id, row_number() OVER (PARTITION BY k, s ORDER BY id) AS a FROM facts)""".stripMargin,
    "floating-point keys, which a window compares in one form" ->
      """SELECT d, k, sum(n) OVER (PARTITION BY d ORDER BY k)
        |FROM (SELECT d, k, count(*) AS n FROM facts GROUP BY d, k)""".stripMargin
  ).foreach { case (what, text) =>
    test(s"passes over $what") {
      assert(decisionsOf(assertKeeps(text)).isEmpty)
    }
  }

  test("passes by without adaptive execution") {
    withConf(SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false") {
      assert(decisionsOf(assertKeeps(total)).isEmpty)
    }
  }

  test("fires beside a scalar subquery, whose own shuffles stay") {
    val df = assertFires(
      "SELECT k, s, max(n) OVER (PARTITION BY k ORDER BY s) FROM (SELECT k, s, count(*) AS n " +
        s"FROM facts WHERE id > (SELECT max(total) FROM ($total)) GROUP BY k, s)"
    )
    assert(decisionsOf(df).map(_.node) == Seq("Shuffle by k"))
  }

  test("leaves sides that wait to awaitBuildSide, and what these are waited for by") {
    withConf(
      "spark.sql.sources.fileCompressionFactor" -> "1000000",
      "spark.selinger.join.broadcastMaxBytes" -> "100000"
    ) {
      val df = spark.sql(
        """SELECT a.k, count(*) FROM facts a JOIN (SELECT k, tag FROM nested
          |LATERAL VIEW explode(sequence(1, 2)) t AS tag WHERE point.x = 1) b
          |ON a.k = b.k AND a.id = b.tag GROUP BY a.k""".stripMargin
      )
      df.collect()
      assert(Plans.decisions(df, AwaitBuildSide.id).exists(_.outcome == Outcome.Changed))
      assert(decisionsOf(df).forall(_.outcome != Outcome.Changed))
    }
  }
}
