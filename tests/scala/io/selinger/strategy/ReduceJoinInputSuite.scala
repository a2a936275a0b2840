package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Outcome, Phase}
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import java.nio.file.Files
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec
import org.apache.spark.sql.execution.exchange.ShuffleExchangeExec
import org.apache.spark.sql.execution.joins.{BroadcastHashJoinExec, ShuffledJoin}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** The rule `reduceJoinInput` on queries that run. */
class ReduceJoinInputSuite extends AnyFunSuite with SharedSession {

  private val rule = ReduceJoinInput
  private val off = SelingerConf.MODE.key -> "off"
  private val ansi = "spark.sql.ansi.enabled"

  // Large sides of few different keys are small once each task has removed duplicates.
  private val withDuplicates = "spark.selinger.deduplicateSemiJoins.enabled" -> "false"

  // Makes Spark believe that files are large: it shuffles then. Of what is known to be smaller, only the
  // small sides are broadcast.
  private val largeFiles = Seq(
    "spark.sql.sources.fileCompressionFactor" -> "1000000",
    "spark.sql.autoBroadcastJoinThreshold" -> "2m"
  )

  // The rows of `facts`, among many without a partner.
  private lazy val large: String = {
    val stock = SharedSession.stock
    Tables.register(stock)
    val path = Files.createTempDirectory("selinger-large").resolve("large").toString
    stock
      .sql(
        """SELECT id, k, big, s, d, amount, day, flag FROM facts
          |UNION ALL
          |SELECT id, cast(-1 - id AS int), -1 - id, concat('no ', id), -1000.5D - id,
          |  cast(-1 - id AS decimal(38, 10)), date'1900-01-01', id % 2 = 0 FROM range(300000)""".stripMargin
      )
      .repartition(2)
      .write
      .parquet(path)
    path
  }

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
    spark.read.parquet(large).createOrReplaceTempView("large")
  }

  private def run(text: String): (DataFrame, Answer) = {
    val df = spark.sql(text)
    (df, Answer.of(df))
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def isSame(text: String, settings: (String, String)*): DataFrame =
    withConf(largeFiles ++ settings :+ withDuplicates: _*) {
      // Compiled: there are many rows.
      val expected = withConf(off)(Answer.of(spark.sql(text)))
      val (df, found) = run(text)
      Answer.difference(expected, found).foreach(difference =>
        fail(s"$text\n$difference\n${Plans.execution(df).executedPlan}")
      )
      df
    }

  /** How many joins were reduced. */
  private def reduced(df: DataFrame): Int = decisions(df).count(_.outcome == Outcome.Changed)

  private def fires(
      text: String,
      times: Int = 1,
      settings: Seq[(String, String)] = Nil
  ): DataFrame = {
    val df = isSame(text, settings: _*)
    assert(reduced(df) == times, s"$text\n${Plans.execution(df).executedPlan}")
    df
  }

  private def doesNotFire(text: String, settings: (String, String)*): Assertion = {
    val df = isSame(text, settings: _*)
    assert(reduced(df) == 0, s"$text\n${Plans.execution(df).executedPlan}")
  }

  // ---- fires --------------------------------------------------------------------------------

  test("fires on a semi join of few rows: the keys are broadcast, and few rows are shuffled") {
    val df = fires("SELECT * FROM dims a WHERE EXISTS (SELECT * FROM large b WHERE a.k = b.k)")
    val made = decisions(df).head
    assert(made.reason == ReduceJoinInput.Reduced && made.phase == Phase.Adaptive)
    assert(made.chosen.contains("right side reduced to the keys of left side"))
    val operators = Plans.physical(df)
    assert(operators.exists {
      case join: BroadcastHashJoinExec => join.joinType == LeftSemi
      case _ => false
    })
    val shuffled = operators.collect { case exchange: ShuffleExchangeExec =>
      exchange.metrics("shuffleRecordsWritten").value
    }
    assert(shuffled.nonEmpty && shuffled.forall(_ < 10000), shuffled)
  }

  test("fires on anti, left outer, right outer and existence joins") {
    fires("SELECT * FROM dims a LEFT ANTI JOIN large b ON a.k = b.k")
    fires(
      "SELECT * FROM dims a WHERE NOT EXISTS (SELECT * FROM large b WHERE a.k = b.k AND b.id > 7)"
    )
    fires("SELECT a.id, b.id, b.s FROM dims a LEFT JOIN large b ON a.k = b.k AND b.id % 3 <> 1")
    fires("SELECT a.id, b.id, b.s FROM large b RIGHT JOIN dims a ON a.k = b.k")
    fires("SELECT * FROM dims a WHERE a.flag OR EXISTS (SELECT * FROM large b WHERE a.k = b.k)")
  }

  test("fires with conditions beside the keys, of which it changes nothing") {
    fires(
      "SELECT * FROM dims a WHERE EXISTS (SELECT * FROM large b WHERE a.k = b.k AND a.s <> b.s)"
    )
    fires(
      "SELECT * FROM dims a LEFT ANTI JOIN large b ON a.k = b.k AND (a.d > b.d OR b.flag IS NULL)"
    )
    // Nothing it asks of a pair can raise an error for another pair: the pairs are the same.
    fires("SELECT * FROM dims a LEFT JOIN large b ON a.k = b.k AND 100 / (b.id + 1) > a.id")
  }

  test("fires on keys of every type, nulls, NaN, -0.0 and duplicates among them") {
    Seq("k", "big", "amount", "day").foreach { key =>
      val joins = Seq(
        s"SELECT * FROM dims a LEFT SEMI JOIN large b ON a.$key = b.$key",
        s"SELECT * FROM dupes a LEFT ANTI JOIN large b ON a.$key = b.$key AND a.id > b.id"
      )
      Grid.part(joins, share = 0.5, key).foreach(text => withClue(Grid.clue)(fires(text)))
    }
    fires("SELECT * FROM dims a LEFT SEMI JOIN large b ON a.s = b.s")
    fires("SELECT * FROM dims a LEFT SEMI JOIN large b ON a.k <=> b.k")
    isSame("SELECT * FROM dims a LEFT ANTI JOIN large b ON a.k = b.k AND a.d = b.d")
    // Keys of floating-point numbers are compared in a normalized form.
    isSame("SELECT * FROM dims a LEFT SEMI JOIN large b ON a.d = b.d")
    isSame("SELECT * FROM dupes a LEFT ANTI JOIN large b ON a.d = b.d AND a.id > b.id")
    // Nothing is left of the large side, so that adaptive execution drops the join.
    isSame("SELECT * FROM dims a LEFT ANTI JOIN large b ON a.k = b.big")
  }

  test("the same rows by collated keys") {
    Grid.part(Seq("SEMI", "ANTI"), share = 0.5, "collated").foreach { kind =>
      isSame(
        s"""SELECT a.id FROM dims a LEFT $kind JOIN large b
           |ON collate(a.s, 'UTF8_LCASE') = collate(b.s, 'UTF8_LCASE')""".stripMargin
      )
    }
  }

  test("the same rows where a side is empty, or has null keys only") {
    Seq("nothing", "nulls", "(SELECT * FROM dims WHERE id < 0)").foreach { small =>
      Grid.part(Seq("SEMI", "ANTI", "OUTER"), share = 0.6, small).foreach { kind =>
        withClue(
          Grid.clue
        )(isSame(s"SELECT a.* FROM $small a LEFT $kind JOIN large b ON a.k = b.k"))
      }
    }
    Seq("SEMI", "ANTI", "OUTER").foreach { kind =>
      isSame(
        s"SELECT a.* FROM dims a LEFT $kind JOIN (SELECT * FROM large WHERE id < 0) b ON a.k = b.k"
      )
    }
  }

  test("fires on semi and anti joins of one another, by the keys of the innermost") {
    fires(
      """SELECT * FROM dims a WHERE EXISTS (SELECT * FROM large b WHERE a.k = b.k AND a.id <> b.id)
        |AND NOT EXISTS (SELECT * FROM large b WHERE a.k = b.k AND a.d < b.d)""".stripMargin,
      times = 2
    )
    fires(
      """SELECT * FROM dims a WHERE a.k IN (SELECT k FROM large)
        |AND a.k IN (SELECT b.k FROM large b WHERE b.flag)""".stripMargin,
      times = 2
    )
  }

  test("fires on a right side that is a join, whose inputs are reduced") {
    val df = fires(
      """SELECT * FROM dims a WHERE a.k IN
        |(SELECT b.k FROM large b JOIN large c ON b.k = c.k WHERE b.s <> c.s)""".stripMargin
    )
    val large = Plans.physical(df).collect { case exchange: ShuffleExchangeExec =>
      exchange.metrics("shuffleRecordsWritten").value
    }
    assert(large.forall(_ < 10000), large)
  }

  test("the same rows where a join of the right side preserves a side, or unites others") {
    Seq(
      "SELECT b.k FROM large b LEFT JOIN large c ON b.k = c.k AND b.s <> c.s",
      "SELECT c.k FROM large b LEFT JOIN large c ON b.k = c.k AND b.s <> c.s",
      "SELECT c.k FROM large b FULL JOIN (SELECT * FROM large WHERE id < 99) c ON b.k = c.k",
      "SELECT k FROM (SELECT k FROM large UNION ALL SELECT big FROM large) WHERE k < 50",
      "SELECT b.k + 1 AS k FROM large b JOIN (SELECT k, count(*) AS n FROM large GROUP BY k) c ON b.k = c.k",
      "SELECT max(k) AS k FROM large GROUP BY id % 1000"
    ).foreach { right =>
      val kinds = Seq(
        s"a.k IN ($right)",
        s"NOT EXISTS (SELECT * FROM ($right) r WHERE r.k = a.k)"
      )
      Grid.part(kinds, share = 0.5, right).foreach { kind =>
        withClue(Grid.clue)(isSame(s"SELECT * FROM dims a WHERE $kind"))
      }
    }
  }

  test("the same rows, or the same error, under ANSI and without it") {
    val errors = Seq(
      // Computed just below the join.
      "SELECT * FROM dims a WHERE EXISTS (SELECT * FROM (SELECT k, 1 / (k + 5) AS x FROM large) b WHERE a.k = b.k AND b.x < 5)",
      // In the key.
      "SELECT * FROM dims a WHERE EXISTS (SELECT * FROM large b WHERE a.k = cast(b.s AS int))",
      // In the condition.
      "SELECT * FROM dims a WHERE EXISTS (SELECT * FROM large b WHERE a.k = b.k AND 1 / (b.id - 5) > 0)"
    )
    for (text <- errors; strict <- Seq("true", "false")) isSame(text, ansi -> strict)
  }

  // ---- does not fire ------------------------------------------------------------------------

  private val semi = "SELECT * FROM dims a WHERE EXISTS (SELECT * FROM large b WHERE a.k = b.k)"

  test("does not fire where it is switched off, or what it needs is") {
    doesNotFire(semi, rule.switch -> "false")
    doesNotFire(semi, AwaitBuildSide.switch -> "false")
    doesNotFire(semi, SelectJoinOperator.switch -> "false")
    doesNotFire(semi, "spark.sql.adaptive.enabled" -> "false")
    doesNotFire(semi, "spark.sql.autoBroadcastJoinThreshold" -> "-1")
    doesNotFire(semi, off)
  }

  test("advises and changes nothing in mode advise") {
    val df = isSame(semi, SelingerConf.MODE.key -> "advise")
    assert(reduced(df) == 0)
    assert(!Plans.physical(df).exists(_.isInstanceOf[BroadcastHashJoinExec]))
  }

  test("does not fire on a join with a hint, without equalities, or of few rows") {
    doesNotFire("SELECT /*+ MERGE(b) */ * FROM dims a LEFT SEMI JOIN large b ON a.k = b.k")
    doesNotFire("SELECT * FROM dims a LEFT SEMI JOIN facts b ON a.k = b.k")
    doesNotFire("SELECT count(*) FROM dims a FULL JOIN large b ON a.k = b.k")
    doesNotFire("SELECT * FROM dims a WHERE k NOT IN (SELECT k FROM facts)")
  }

  test("does not fire where columns of the large side can raise errors") {
    doesNotFire(
      "SELECT a.id, b.x FROM dims a LEFT JOIN (SELECT k, 1 / (k - 1000000) AS x FROM large) b ON a.k = b.k",
      ansi -> "true"
    )
  }

  test("the join above needs no other shuffle") {
    val text =
      """SELECT a.k, count(*) FROM (SELECT * FROM dims a WHERE EXISTS
        |(SELECT * FROM large b WHERE a.k = b.k AND a.id <> b.id)) a GROUP BY a.k""".stripMargin
    def shuffles(settings: (String, String)*) = {
      val df = isSame(text, settings: _*)
      Plans.execution(df).executedPlan match {
        case adaptive: AdaptiveSparkPlanExec =>
          Plans.operators(adaptive).collect { case exchange: ShuffleExchangeExec =>
            exchange
          }.distinct.size
        case other => fail(s"not adaptive: $other")
      }
    }
    assert(shuffles() <= shuffles(rule.switch -> "false"))
  }

  test("of joins that are not reduced, both sides are shuffled as ever") {
    val df = isSame(semi, rule.switch -> "false")
    assert(Plans.physical(df).exists(_.isInstanceOf[ShuffledJoin]))
  }
}
