package io.selinger.core

import io.selinger.Registry
import io.selinger.conf.SelingerConf
import io.selinger.ordering.ReorderJoins
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.strategy.{SelectJoinOperator, SizeShuffles}
import io.selinger.testing.{Answer, ExampleTables, Plans, SharedSession}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.execution.ExplainMode
import org.scalatest.funsuite.AnyFunSuite

/** Queries whose tables are all small are left to Spark. */
class SmallTablesSuite extends AnyFunSuite with SharedSession {

  private val limit = SelingerConf.SMALL_TABLE_MAX_BYTES

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    ExampleTables.register(spark)
  }

  private val joins =
    """SELECT c.city, count(*) FROM sales s JOIN items i ON s.item = i.id
      |JOIN customers c ON s.customer = c.id GROUP BY c.city""".stripMargin

  private def largest(df: DataFrame): Double = LargestTable.of(Plans.execution(df).optimizedPlan)

  private def calls(): Map[String, Long] =
    Registry.all.rules.map(rule => rule.id -> RuleActivity.of(rule).calls).toMap

  /** The rules that were at work while `body` ran. */
  private def atWork(body: => Any): Set[String] = {
    val before = calls()
    val _ = body
    calls().collect { case (rule, count) if count > before(rule) => rule }.toSet
  }

  private def plan(sql: String): String = {
    val plan = Plans.execution(spark.sql(sql)).executedPlan
    Plans.operators(plan).map(_.nodeName).mkString(" ")
  }

  private def explained(sql: String): String =
    Plans.execution(spark.sql(sql)).explainString(ExplainMode.fromString("formatted"))

  private def withLimit[A](bytes: Double)(body: => A): A =
    withConf(limit.key -> bytes.toLong.toString)(body)

  test("no rule runs and no file is read but what the number of partitions needs") {
    val stock = withConf(SelingerConf.MODE.key -> "off")(plan(joins))
    withLimit(largest(spark.table("sales"))) {
      assert(atWork(assert(plan(joins) == stock)) == Set(SizeShuffles.id))
    }
  }

  test("one table that is larger is enough for all rules to run") {
    withLimit(largest(spark.table("sales")) - 1) {
      val rules = atWork(plan(joins))
      assert(Set(ReorderJoins.id, SelectJoinOperator.id, ReadFooterStatistics.id).subsetOf(rules))
    }
  }

  test("a limit of 0 leaves no query alone") {
    withLimit(0)(assert(atWork(plan(joins)).contains(SelectJoinOperator.id)))
  }

  test("tables of subqueries count") {
    val sales = largest(spark.table("sales"))
    val alone = "SELECT * FROM items i JOIN customers c ON i.id = c.id"
    withLimit(sales - 1) {
      assert(!atWork(plan(alone)).contains(SelectJoinOperator.id))
      Seq("i.id IN (SELECT item FROM sales)", "i.id < (SELECT max(item) FROM sales)").foreach {
        condition =>
          val rules = atWork(plan(s"$alone WHERE $condition"))
          assert(rules.contains(SelectJoinOperator.id), condition)
      }
    }
  }

  test("what Spark does not know is not small") {
    val rows = spark.createDataFrame(spark.sparkContext.parallelize(Seq((1L, "a"), (2L, "b"))))
    rows.toDF("id", "text").createOrReplaceTempView("of_rdd")
    withConf(limit.key -> limit.default) {
      val rules = atWork(plan("SELECT * FROM of_rdd r JOIN items i ON r.id = i.id"))
      assert(rules.contains(SelectJoinOperator.id))
    }
  }

  test("old statistics of a catalog do not make a table small, nor does a cache that is empty yet") {
    withFolder { folder =>
      val path = folder.resolve("t")
      spark.range(0).write.parquet(path.toString)
      spark.sql(s"CREATE TABLE grown USING parquet LOCATION '${path.toUri}'")
      try {
        spark.sql("ANALYZE TABLE grown COMPUTE STATISTICS")
        spark.range(100000).write.mode("append").parquet(path.toString)
        spark.catalog.refreshTable("grown")
        val cached = spark.sql("SELECT explode(sequence(1, 100000)) AS id").cache()
        cached.createOrReplaceTempView("cached")
        try
          withLimit(100000) {
            Seq("grown", "cached").foreach { table =>
              // A column of both is used, so that no join is left out.
              val query = s"SELECT * FROM $table t JOIN items i ON t.id % 1000 = i.id"
              assert(atWork(plan(query)).contains(SelectJoinOperator.id), table)
            }
          }
        finally { val _ = cached.unpersist() }
      } finally { val _ = spark.sql("DROP TABLE grown") }
    }
  }

  test("two large tables are not small because what they were grouped to is") {
    val query =
      """SELECT /*+ MERGE(x) */ x.item, y.total FROM (SELECT item, count(*) AS n FROM sales GROUP BY item) x
        |JOIN (SELECT item, sum(quantity) AS total FROM inventory GROUP BY item) y
        |ON x.item = y.item AND y.total > x.n""".stripMargin
    withConf(
      limit.key -> "1500",
      "spark.sql.adaptive.enabled" -> "true",
      "spark.sql.autoBroadcastJoinThreshold" -> "-1"
    ) {
      val df = spark.sql(query)
      assert(atWork(df.collect()).contains(SelectJoinOperator.id))
      assert(Plans.decisions(df).forall(_.reason != Reason.SmallTables))
    }
  }

  test("partitions are not merged where a join of small tables may return many rows") {
    withLimit(largest(spark.table("sales"))) {
      withConf("spark.sql.adaptive.enabled" -> "true") {
        spark.conf.unset("spark.sql.shuffle.partitions")
        try {
          def reasons(sql: String) = Plans.decisions(spark.sql(sql), SizeShuffles.id).map(_.reason)
          assert(
            reasons("SELECT item, count(*) FROM sales GROUP BY item") == Seq(SizeShuffles.Fewer)
          )
          assert(reasons(joins) == Seq(Reason.NoStatistics))
        } finally spark.conf.set("spark.sql.shuffle.partitions", 4L)
      }
    }
  }

  test("joins of few rows with many results are planned again with what was measured") {
    // Some 50,000 rows of 2,000, distinct in all of their columns.
    val query =
      """SELECT /*+ BROADCAST(c) */ x.id, c.city FROM (
        |  SELECT DISTINCT a.item AS id, a.sold, b.sold AS other, b.ticket
        |  FROM sales a JOIN sales b ON a.customer = b.customer AND a.item < b.item
        |) x JOIN inventory v ON x.id = v.item JOIN customers c ON x.other = c.id""".stripMargin
    val settings = Seq(
      limit.key -> largest(spark.table("sales")).toLong.toString,
      "spark.sql.autoBroadcastJoinThreshold" -> "1",
      "spark.sql.adaptive.enabled" -> "true"
    )
    val expected = stockAnswer(settings: _*)(spark.sql(query))
    withConf(settings: _*) {
      val df = spark.sql(query)
      assert(!atWork(Plans.execution(df).executedPlan).contains(SelectJoinOperator.id))
      assert(atWork {
        assert(Answer.of(df) == expected)
      }.contains(SelectJoinOperator.id))
    }
  }

  test("explain says that the query was left to Spark, why, and how to change that") {
    withLimit(largest(spark.table("sales"))) {
      val decisions = Plans.decisions(spark.sql(joins)).filter(_.reason == Reason.SmallTables)
      assert(decisions.size == 1)
      assert(decisions.flatMap(_.setting) == Seq(limit.key))
      assert(decisions.flatMap(_.settingTo) == Seq("0"))
      assert(explained(joins).contains("Nothing changed: every table of this query is small"))
    }
    assert(Plans.decisions(spark.sql(joins)).forall(_.reason != Reason.SmallTables))
  }

  test("switched off, nothing is said of small tables") {
    withConf(limit.key -> "1g", SelingerConf.MODE.key -> "off") {
      assert(Plans.decisions(spark.sql(joins)).isEmpty)
    }
  }
}
