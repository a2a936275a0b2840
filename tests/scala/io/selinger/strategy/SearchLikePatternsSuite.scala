package io.selinger.strategy

import io.selinger.core.Outcome
import io.selinger.exec.LikeTexts
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.{SparkPlan, WholeStageCodegenExec}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** The rule `searchLikePatterns` on real plans. */
class SearchLikePatternsSuite extends AnyFunSuite with SharedSession {

  private val rule = SearchLikePatterns

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  /** Patterns; both phases of an aggregation have those of its functions. */
  private def searched(df: DataFrame): Int = Plans.physical(df).flatMap((plan: SparkPlan) =>
    plan.expressions.flatMap(_.collect { case found: LikeTexts => found.pattern })
  ).distinct.size

  private def assertFires(query: String, times: Int, settings: (String, String)*): DataFrame = {
    val expected = stockAnswer(settings: _*)(spark.sql(query))
    withConf(settings: _*) {
      val df = spark.sql(query)
      assert(Answer.difference(expected, Answer.of(df)).isEmpty)
      assert(searched(df) == times)
      assert(Plans.decisions(df, rule.id).map(_.reason).toSet == Set(rule.PatternSearched))
      assert(Plans.decisions(df, rule.id).forall(_.outcome == Outcome.Changed))
      df
    }
  }

  private def assertSilent(query: String): Assertion = {
    val expected = stockAnswer()(spark.sql(query))
    val df = spark.sql(query)
    assert(Answer.of(df) == expected)
    assert(searched(df) == 0 && Plans.decisions(df, rule.id).isEmpty)
  }

  test("fires in filters, in generated code and without") {
    val query = "SELECT id FROM facts WHERE concat(s, k) NOT LIKE '%b%1%'"
    val df = assertFires(query, 1, "spark.sql.codegen.wholeStage" -> "true")
    assert(Plans.physical(df).exists(_.isInstanceOf[WholeStageCodegenExec]))
    val interpreted =
      Seq(
        "spark.sql.codegen.wholeStage" -> "false",
        "spark.sql.codegen.factoryMode" -> "NO_CODEGEN"
      )
    assertFires(query, 1, interpreted: _*)
  }

  test("fires in projections, aggregations and conditions of joins") {
    assertFires("SELECT id, concat(s, day) LIKE 'A%-01-%' AS a, s LIKE '%A%b' AS b FROM facts", 2)
    assertFires("SELECT count(*) FILTER (WHERE concat(s, k) LIKE '%b%2') FROM facts", 1)
    assertFires("SELECT max(concat(s, k) LIKE 'b%2%') FROM facts GROUP BY k", 1)
    assertFires(
      "SELECT f.id, d.id FROM facts f LEFT JOIN dims d ON f.k = d.k AND concat(f.s, d.s) LIKE '%A%b%'",
      1
    )
    assertFires(
      "SELECT f.id FROM facts f LEFT ANTI JOIN spans d ON concat(f.s, d.low) LIKE '%A%9%'",
      1
    )
    assertFires("SELECT id FROM dims WHERE k IN (SELECT k FROM facts WHERE s || k LIKE '%b%1%')", 1)
  }

  test("does not fire on patterns that are comparisons in Spark, or have underscores") {
    Seq("A%", "%b", "%b%", "A%b", "Ab", "%_b%A%", "_").foreach(pattern =>
      assertSilent(s"SELECT id FROM facts WHERE s LIKE '$pattern'")
    )
  }

  test("does not fire on patterns of columns, and texts with a collation") {
    assertSilent(
      "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k AND f.s LIKE concat('%', d.s, '%A%')"
    )
    assertSilent("SELECT id FROM facts WHERE s COLLATE UTF8_LCASE LIKE '%a%B%'")
  }

  test("a pattern that Spark refuses is an error of Spark") {
    val query = "SELECT id FROM facts WHERE s LIKE '%a%b\\\\c%'"
    val expected = stockAnswer()(spark.sql(query))
    assert(expected.isInstanceOf[Answer.Error] && Answer.of(spark.sql(query)) == expected)
  }

  test("switched off or in mode off nothing changes; mode advise says what it would do") {
    val query = "SELECT id FROM facts WHERE s LIKE '%A%b%'"
    Seq(rule.switch -> "false", "spark.selinger.mode" -> "off").foreach { setting =>
      withConf(setting)(assertSilent(query))
    }
    withConf("spark.selinger.mode" -> "advise") {
      val df = spark.sql(query)
      assert(searched(df) == 0)
      assert(Plans.decisions(df, rule.id).map(_.outcome) == Seq(Outcome.Advised))
    }
  }

  test("a second run on its result changes nothing") {
    val plan = Plans.execution(spark.sql("SELECT s LIKE '%A%b%' FROM facts")).sparkPlan
    val once = new SearchLikePatterns().apply(plan)
    assert(once ne plan)
    assert(new SearchLikePatterns().apply(once) eq once)
  }
}
