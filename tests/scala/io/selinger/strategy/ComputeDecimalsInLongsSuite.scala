package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Outcome, Reason}
import io.selinger.exec.decimals.{CompareInLongs, ComputeInLongs, SumInInt128}
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.{BindReferences, Expression}
import org.apache.spark.sql.execution.{SparkPlan, WholeStageCodegenExec}
import org.apache.spark.sql.execution.aggregate.HashAggregateExec
import org.apache.spark.sql.functions.{col, udf}
import org.scalatest.funsuite.AnyFunSuite

/** The rule `computeDecimalsInLongs` on real plans. */
class ComputeDecimalsInLongsSuite extends AnyFunSuite with SharedSession {

  private val rule = ComputeDecimalsInLongs
  private val off = rule.switch -> "false"
  // Code that does not compile fails the query.
  private val strict = "spark.sql.codegen.fallback" -> "false"

  private val facts =
    "(SELECT *, cast(id * 37 % 1000 AS decimal(12, 2)) AS m, cast(k AS decimal(9, 1)) AS n FROM facts)"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private def expressions(df: DataFrame): Seq[Expression] =
    Plans.physical(df).flatMap((plan: SparkPlan) =>
      plan.expressions.flatMap(_.collect {
        case expression => expression
      })
    )

  private def sums(df: DataFrame): Int = expressions(df).count(_.isInstanceOf[SumInInt128])
  private def computed(df: DataFrame): Int = expressions(df).count(_.isInstanceOf[ComputeInLongs])

  private def compared(df: DataFrame): Int = expressions(df).count(_.isInstanceOf[CompareInLongs])

  private def reasons(df: DataFrame): Set[Reason] = Plans.decisions(df, rule.id).map(_.reason).toSet

  /** The query after it ran, whose answer is that of Spark. */
  private def sameAnswer(text: String, settings: (String, String)*): DataFrame = {
    val expected = withConf(settings :+ off: _*)(Answer.of(spark.sql(text)))
    withConf(settings :+ strict: _*) {
      val df = spark.sql(text)
      assert(Answer.difference(expected, Answer.of(df)).isEmpty)
      df
    }
  }

  test("fires on sums and averages of decimals with groups, in generated code") {
    val df =
      sameAnswer(s"SELECT k, sum(m), avg(m), sum(m * n), sum(m * m * m * n) FROM $facts GROUP BY k")
    assert(sums(df) > 0 && computed(df) > 0)
    val plans = Plans.physical(df)
    assert(plans.exists(_.isInstanceOf[HashAggregateExec]))
    assert(plans.exists(_.isInstanceOf[WholeStageCodegenExec]))
    assert(reasons(df) == Set(rule.DecimalsInLongs))
  }

  test("fires on arithmetic in projections and filters") {
    val df = sameAnswer(s"SELECT id, m * n, (m - n) / 2 FROM $facts WHERE m * 2 > n + 3")
    assert(computed(df) >= 3)
    assert(Plans.decisions(df, rule.id).forall(_.outcome == Outcome.Changed))
  }

  test("fires on comparisons with constants, of columns, and of computed values") {
    val df = sameAnswer(
      s"SELECT k, count_if(m > 500.5), sum(CASE WHEN n BETWEEN 1.5 AND 3 THEN m END) FILTER (WHERE m <> 7) " +
        s"FROM $facts WHERE (m >= n OR m * 2 = 4 OR amount / 3 < 100) AND m < 999.99 GROUP BY k",
      // Else whole numbers, which the decimals are computed from, may overflow.
      "spark.sql.ansi.enabled" -> "false"
    )
    assert(compared(df) >= 8 && reasons(df) == Set(rule.DecimalsInLongs))
  }

  test("does not fire on columns of more than 18 digits, nor on <=> and IN") {
    val df = sameAnswer(
      s"SELECT id FROM (SELECT *, cast(m AS decimal(20, 2)) AS wide FROM $facts) " +
        "WHERE wide < 600 AND (m <=> 3.5 OR m IN (4.00, 5.00))"
    )
    assert(compared(df) == 0 && reasons(df).isEmpty)
  }

  for (
    (operator, hint) <- Seq(
      "BroadcastHashJoinExec" -> "BROADCAST(b)",
      "ShuffledHashJoinExec" -> "SHUFFLE_HASH(b)",
      "SortMergeJoinExec" -> "MERGE(b)",
      "BroadcastNestedLoopJoinExec" -> "BROADCAST(b)",
      "CartesianProductExec" -> "SHUFFLE_REPLICATE_NL(b)"
    );
    joinType <- Seq("INNER", "LEFT", "FULL", "LEFT SEMI", "LEFT ANTI")
    if joinType == "INNER" || operator != "CartesianProductExec"
  )
    test(s"fires on the condition of a $joinType join: $operator") {
      // A full outer join is not broadcast by its keys.
      val broadcasts = operator == "BroadcastHashJoinExec" && joinType == "FULL"
      val hash = operator.endsWith("HashJoinExec") || operator == "SortMergeJoinExec"
      val df = sameAnswer(
        s"SELECT /*+ $hint */ * FROM $facts a $joinType JOIN (SELECT k AS k2, m AS m2, n AS n2 FROM $facts " +
          s"WHERE id < 40) b ON ${if (hash) "a.k = b.k2 AND " else ""}(a.m * b.n2 > 30 OR a.m <= b.m2) " +
          "AND (a.n < 4.5 OR b.m2 > 100.25)"
      )
      assert(compared(df) >= 4)
      if (!broadcasts)
        assert(Plans.physical(df).exists(_.getClass.getSimpleName == operator), operator)
    }

  test("fires on arithmetic in each stage of an adaptive query") {
    // With one shuffle by k, there would be a stage less.
    withConf(ShuffleByCommonKeys.switch -> "false") {
      val df = sameAnswer(
        s"SELECT k, max(x), sum(y / 3) FROM (SELECT k, max(m * n) AS x, min(m - n) AS y FROM $facts " +
          "GROUP BY k, flag) GROUP BY k"
      )
      assert(computed(df) >= 6)
    }
  }

  test("fires on sums in windows, whatever their frames") {
    val df = sameAnswer(
      s"SELECT id, sum(m) OVER (PARTITION BY k ORDER BY id), sum(m) OVER (PARTITION BY k), " +
        s"avg(m) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 FOLLOWING) FROM $facts"
    )
    assert(sums(df) >= 3)
  }

  test("does not fire on a sum that may have more than 38 digits") {
    // The files have larger amounts.
    val df = sameAnswer(
      s"SELECT sum(amount), avg(cast(amount AS decimal(38, 2))) FROM $facts WHERE amount < 100 GROUP BY k"
    )
    assert(sums(df) == 0)
    assert(reasons(df) == Set(rule.DecimalSumTooWide))
  }

  test("fires on types of many digits where types below or footers say that values have few") {
    val df = sameAnswer(
      s"SELECT k, sum(cast(m AS decimal(32, 2))), avg(cast(m AS decimal(30, 2))), " +
        "sum(cast(id AS decimal(15, 2)) * (1 - cast(k AS decimal(15, 2)))), " +
        "sum(cast(big AS decimal(38, 6)) * cast(id AS decimal(30, 2)) * 1.5) " +
        s"FROM $facts GROUP BY k"
    )
    assert(sums(df) >= 4)
    assert(reasons(df) == Set(rule.DecimalsInLongs))
    val windows = sameAnswer(
      s"SELECT id, sum(cast(id AS decimal(32, 2))) OVER (PARTITION BY k ORDER BY id) FROM $facts"
    )
    assert(sums(windows) >= 1)
  }

  test("sums of partial sums stay in 128 bits") {
    val text = "SELECT d.s, sum(cast(f.id AS decimal(22, 2)) * cast(f.k AS decimal(12, 2))) " +
      "FROM facts f JOIN dims d ON f.k = d.k GROUP BY d.s"
    val df = sameAnswer(text, SelingerConf.EAGER_MIN_GAIN.key -> "0")
    assert(sums(df) >= 3 && !reasons(df).contains(rule.DecimalSumTooWide))
  }

  test("does not fire on sums that Spark computes in longs itself, nor on doubles") {
    val df = sameAnswer(
      s"SELECT k, sum(cast(m AS decimal(6, 2))), sum(d), sum(big) FROM $facts GROUP BY k"
    )
    assert(sums(df) == 0 && reasons(df).isEmpty)
  }

  test("does not fire on inputs that are random or may raise an error") {
    val decimal = udf((value: Int) => java.math.BigDecimal.valueOf(value.toLong))
    val random = spark.table("facts").select((col("amount") * decimal(col("k"))).as("x"))
    assert(computed(random) == 0)
    withConf("spark.sql.ansi.enabled" -> "true") {
      assert(computed(spark.sql("SELECT cast(s AS decimal(9, 2)) * 2.5 FROM facts")) == 0)
    }
    assert(computed(spark.sql("SELECT cast(rand() AS decimal(9, 2)) * 2.5 FROM facts")) == 0)
  }

  test("does not fire with its switch off, nor in the mode advise") {
    val text = s"SELECT k, sum(m * n) FROM $facts GROUP BY k"
    withConf(off) {
      val df = spark.sql(text)
      assert(sums(df) == 0 && computed(df) == 0 && reasons(df).isEmpty)
    }
    withConf("spark.selinger.mode" -> "advise") {
      for (query <- Seq(text, "SELECT id FROM facts WHERE amount / 3 < 100")) {
        val df = spark.sql(query)
        df.collect(): Unit
        assert(sums(df) + computed(df) + compared(df) == 0)
        assert(Plans.decisions(df, rule.id).map(_.outcome).toSet == Set(Outcome.Advised))
      }
    }
  }

  test("sums survive an aggregation that runs out of memory and sorts") {
    val df = sameAnswer(
      s"SELECT id % 90, sum(m * n), avg(m), sum(amount / 3) FROM $facts WHERE id < 600 GROUP BY 1",
      "spark.sql.TungstenAggregate.testFallbackStartsAt" -> "2, 5"
    )
    assert(sums(df) > 0)
  }

  for (whole <- Seq(true, false); elimination <- Seq(true, false); split <- Seq(true, false))
    test(s"code: whole stages $whole, common expressions $elimination, small methods $split") {
      val df = sameAnswer(
        "SELECT k, flag, sum(m * n), sum(m * n * m), avg(m * n) FILTER (WHERE flag), " +
          s"sum(DISTINCT m), max(m * n), sum(m / 7) FROM $facts GROUP BY k, flag",
        "spark.sql.codegen.wholeStage" -> whole.toString,
        "spark.sql.subexpressionElimination.enabled" -> elimination.toString,
        "spark.sql.codegen.methodSplitThreshold" -> (if (split) "10" else "1024")
      )
      assert(sums(df) > 0 && computed(df) > 0)
    }

  test("does not fire on a sum whose filter may hide an error") {
    val x = "cast(cast(id AS decimal(38, 0)) * 10000000000000000000 * id AS decimal(28, 0))"
    val df = sameAnswer(
      s"SELECT id % 2, sum($x) FILTER (WHERE id = 0) FROM range(9) GROUP BY 1",
      "spark.sql.ansi.enabled" -> "true"
    )
    assert(sums(df) == 0)
  }

  test("arithmetic over computed inputs is shown as it was written, in generated code too") {
    val df = spark.sql(s"SELECT coalesce(m, n) * n AS x FROM $facts")
    val plan =
      Plans.physical(df).find(_.expressions.exists(_.exists(_.isInstanceOf[ComputeInLongs])))
    val bound = plan.toSeq.flatMap { operator =>
      operator.expressions.map(BindReferences.bindReference(_, operator.children.head.output))
    }
    assert(bound.exists(_.toString.contains("coalesce")))
    assert(bound.exists(_.sql.contains("coalesce")))
  }
}
