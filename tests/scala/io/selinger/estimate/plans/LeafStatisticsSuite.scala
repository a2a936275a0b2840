package io.selinger.estimate.plans

import io.selinger.conf.SelingerConf
import io.selinger.core.{Origin, PlanningPass}
import io.selinger.estimate.PlanEstimate
import io.selinger.testing.{Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** What is known of each kind of leaf, and how well. */
class LeafStatisticsSuite extends AnyFunSuite with SharedSession {

  private def estimate(df: DataFrame): Option[PlanEstimate] = {
    PlanningPass.start()
    LeafStatistics.estimator.estimate(Plans.execution(df).optimizedPlan)
  }

  private def assertExact(df: DataFrame, rows: Long): Unit = {
    val found = estimate(df)
    assert(found.exists(e =>
      e.rows.value == rows && e.rows.origin == Origin.Exact && e.bound.contains(rows.toDouble)
    ))
    ()
  }

  test("local rows, ranges and no table at all are counted") {
    assertExact(spark.sql("SELECT * FROM VALUES (1), (2), (2) AS v(k)"), 3)
    assertExact(spark.range(5, 50).toDF(), 45)
    assertExact(spark.range(50, 5, -5).toDF(), 9)
    assertExact(spark.range(5, 5).toDF(), 0)
    assertExact(spark.sql("SELECT rand()"), 1)
  }

  test("a range knows its values") {
    val df = spark.range(50, 5, -5).toDF()
    val column = estimate(df).get.columns.values.head
    assert(column.min.contains(10.0) && column.max.contains(50.0) && column.distinct.contains(9.0))
  }

  test("files are counted by their footers") {
    Tables.register(spark)
    assertExact(spark.table("facts"), 3000)
    assertExact(spark.table("nothing"), 0)
    val column = estimate(spark.table("dims")).get.columns.values.flatMap(_.distinct)
    assert(column.nonEmpty && column.forall(_ <= 150))
  }

  test("a sample of files bounds nothing") {
    Tables.register(spark)
    withConf(SelingerConf.FOOTER_MAX_FILES.key -> "1") {
      val found = estimate(spark.table("facts")).get
      assert(
        found.rows.origin == Origin.Sampled && found.bound.isEmpty && found.upperBound > found.rows.value
      )
    }
  }

  test("a distorted estimate is wrong, the same each time, and keeps what is certain") {
    Tables.register(spark)
    def facts = estimate(spark.table("facts")).get
    val right = facts
    def distorted(seed: Int) = withConf(SelingerConf.DISTORTION.key -> seed.toString)(facts)
    val found = (1 to 20).map(distorted)
    assert(found.map(_.rows.value).distinct.size == 20)
    assert(found.exists(_.rows.value < 300) && found.exists(_.rows.value > 30000))
    assert(found.forall(e => e.bound.exists(_ >= 3000) && e.upperBound >= e.rows.value))
    assert(found.forall(_.domains.values.map(_.unique) == right.domains.values.map(_.unique)))
    assert(distorted(1).rows == found.head.rows)
    withConf(SelingerConf.DISTORTION.key -> "7")(assertExact(spark.table("nothing"), 0))
    assert(facts.rows == right.rows)
  }

  test("small files are asked first, for which large ones might leave no time") {
    Tables.register(spark)
    val texts =
      Seq("SELECT * FROM facts WHERE id > 5", "SELECT * FROM dims", "SELECT * FROM VALUES 1")
    val plans = texts.map(text => Plans.execution(spark.sql(text)).optimizedPlan)
    assert(LeafStatistics.smallestFirst(plans) == plans.reverse)
    assert(LeafStatistics.smallestFirst(Nil).isEmpty)
  }

  test("a cache is measured once it is filled, and a guess before") {
    val df = spark.range(0, 1000, 1, 2).selectExpr("id % 7 AS k").cache()
    try {
      assert(!estimate(df.select("k")).exists(_.rows.origin == Origin.Measured))
      df.count()
      val found = estimate(spark.range(0, 1000, 1, 2).selectExpr("id % 7 AS k"))
      val cached = LeafStatistics.estimator.estimate(Plans.execution(df.select("k")).withCachedData)
      assert(found.isDefined)
      assert(cached.exists(e => e.rows.value == 1000 && e.rows.origin == Origin.Measured))
    } finally { val _ = df.unpersist(blocking = true) }
  }

  Seq("by default" -> "false", "with Spark's cost-based optimizer on" -> "true").foreach {
    case (name, cbo) =>
      test(s"without footers Spark's own statistics serve, where ANALYZE has counted rows: $name") {
        withConf("spark.sql.cbo.enabled" -> cbo)(assertAnalyzed())
      }
  }

  private def assertAnalyzed(): Assertion = {
    spark.sql("CREATE TABLE leaf_test (k INT, s STRING) USING csv")
    try {
      spark.sql("INSERT INTO leaf_test SELECT id % 10, string(id) FROM range(100)")
      assert(estimate(spark.table("leaf_test")).isEmpty)
      spark.sql("ANALYZE TABLE leaf_test COMPUTE STATISTICS FOR ALL COLUMNS")
      val found = estimate(spark.table("leaf_test")).getOrElse(fail("nothing is known"))
      assert(found.rows.value == 100 && found.rows.origin == Origin.Derived && found.bound.isEmpty)
      assert(found.columns.values.exists(_.distinct.contains(10.0)))
    } finally { val _ = spark.sql("DROP TABLE leaf_test") }
  }

  test("histograms of ANALYZE say how values are spread") {
    spark.sql("CREATE TABLE leaf_histogram (k INT) USING csv")
    try {
      spark.sql("INSERT INTO leaf_histogram SELECT if(id < 90, id % 10, id) FROM range(100)")
      withConf("spark.sql.statistics.histogram.enabled" -> "true") {
        spark.sql("ANALYZE TABLE leaf_histogram COMPUTE STATISTICS FOR ALL COLUMNS")
      }
      val found = estimate(spark.table("leaf_histogram").where("k > 50")).get
      assert(math.abs(found.rows.value - 10) < 3, found.rows.toString)
    } finally { val _ = spark.sql("DROP TABLE leaf_histogram") }
  }

  test("nothing is known of text files") {
    withFolder { folder =>
      val path = folder.resolve("t").toString
      spark.range(10).write.json(path)
      assert(estimate(spark.read.json(path)).isEmpty)
    }
  }
}
