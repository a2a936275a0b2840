package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, GuardedObserver, OpenPlanningPass, PlanningPass, Reason}
import io.selinger.ordering.ReorderJoins
import io.selinger.stats.footers.{FooterStore, ReadFooterStatistics}
import io.selinger.stats.samples.{SamplePredicates, SampleStore}
import io.selinger.strategy.SelectJoinOperator
import io.selinger.testing.{Answer, Plans, SharedSession}
import java.nio.file.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan, ReturnAnswer}
import org.scalatest.funsuite.AnyFunSuite

/** Our sizes in Spark's statistics, for joins that Spark decides. */
class ShareEstimatesSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = ShareEstimates
  private val on = rule.switch -> "true"
  private val threshold = "spark.sql.autoBroadcastJoinThreshold"

  // Spark decides by sizes alone, and takes files for a thousand times as large.
  private val sparkDecides = Seq(
    SelectJoinOperator.switch -> "false",
    ReorderJoins.switch -> "false",
    "spark.sql.sources.fileCompressionFactor" -> "1000",
    "spark.sql.adaptive.enabled" -> "false"
  )

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    FooterStore.clear()
    SampleStore.clear()
  }

  private def withTables[A](body: => A): A = withFolder { folder =>
    def save(name: String, rows: Long, columns: String*): Unit = {
      val target: Path = folder.resolve(name)
      spark.range(0, rows, 1, 4).selectExpr(columns: _*).write.parquet(target.toString)
      spark.read.parquet(target.toString).createOrReplaceTempView(name)
    }
    save("shared_facts", 60000, "id", "id % 1000 AS k", "id % 7 AS v")
    save("shared_dims", 20000, "id AS k", "concat('name ', id % 500) AS name", "string(id) AS text")
    try body
    finally Seq("shared_facts", "shared_dims").foreach(spark.catalog.dropTempView(_))
  }

  private val query =
    "SELECT count(*), sum(v) FROM shared_facts facts JOIN shared_dims dims ON facts.k = dims.k WHERE name LIKE '% 7'"

  private def joins(settings: (String, String)*): Seq[String] =
    withConf(sparkDecides ++ settings: _*)(Plans.joins(spark.sql(query)))

  private def decisions(plan: LogicalPlan): Seq[Decision] =
    plan.collectLeaves().flatMap(PlanningPass.current.informed(_)).filter(_.rule == rule.id)

  /** What the strategy leaves on the nodes of a plan that it may change. */
  private def shared(df: DataFrame): LogicalPlan = {
    val plan = Plans.execution(df).optimizedPlan.clone()
    startsOn(plan)
    plan
  }

  /** As when Spark's planner starts on a plan. */
  private def startsOn(plan: LogicalPlan): Unit = {
    OpenPlanningPass(ReturnAnswer(plan))
    val observer = new GuardedObserver(rule, SelingerConf.switches, ShareEstimates.share)
    assert(observer(ReturnAnswer(plan)).isEmpty)
    ()
  }

  private def filter(plan: LogicalPlan): Filter =
    plan.collectFirst { case filter: Filter if filter.toString.contains("name") => filter }
      .getOrElse(fail(s"no filter in $plan"))

  test("fires: Spark broadcasts what a filter leaves of a large table") {
    withTables {
      assert(joins() == Seq("SortMergeJoin"))
      assert(joins(on) == Seq("BroadcastHashJoin(right)"))
    }
  }

  test("fires on a null-aware join's subquery and other plans, with the same answers") {
    withTables {
      Seq(
        query,
        "SELECT count(*) FROM shared_facts WHERE k NOT IN (SELECT k FROM shared_dims WHERE text LIKE '%9%')",
        "SELECT count(*) FROM shared_facts f LEFT JOIN shared_dims d ON f.k = d.k AND text LIKE '1%'",
        "SELECT count(*) FROM shared_facts f WHERE EXISTS (SELECT 1 FROM shared_dims d WHERE d.k = f.k AND name = 'name 3')"
      ).foreach { text =>
        val expected = stockAnswer()(spark.sql(text))
        val found = withConf(sparkDecides :+ on: _*)(Answer.of(spark.sql(text)))
        assert(Answer.difference(expected, found).isEmpty, text)
      }
    }
  }

  test("fires for runtime filters, which read sizes before joins are planned") {
    withTables {
      val settings = sparkDecides ++ Seq(
        threshold -> "-1",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold" -> "0",
        "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold" -> "1m"
      )
      def filters(settings: Seq[(String, String)]): Int = withConf(settings: _*) {
        Plans.execution(spark.sql(query)).optimizedPlan.toString
          .split("might_contain", -1).length - 1
      }
      assert(filters(settings) == 0 && filters(settings :+ on) > 0)
    }
  }

  test("the size is that of the upper bound of the rows, in memory, and rows are those expected") {
    withTables {
      withConf(sparkDecides :+ on: _*) {
        val df = spark.sql("SELECT * FROM shared_dims WHERE name LIKE '% 7'")
        val truth = df.count()
        val plan = shared(df)
        val stats = filter(plan).stats
        assert(stats.rowCount.exists(rows => rows > truth / 3 && rows < truth * 3), stats)
        assert(stats.sizeInBytes > truth * 40 && stats.sizeInBytes < 20000 * 40, stats)
        assert(decisions(plan).map(_.reason) == Seq(Reason.EstimateShared))
      }
    }
  }

  test("a second run changes nothing") {
    withTables {
      withConf(sparkDecides :+ on: _*) {
        val plan = shared(spark.sql(query))
        val first = filter(plan).stats
        startsOn(plan)
        assert(filter(plan).stats == first)
        assert((new ShareEstimates.ForRules).apply(plan) eq plan)
        assert(filter(plan).stats == first)
      }
    }
  }

  test("leaves nothing on plans that other queries share") {
    withTables {
      val df = spark.table("shared_dims").where("name LIKE '% 7'")
      val before = Plans.execution(df).analyzed.stats.sizeInBytes
      withConf(sparkDecides.filterNot(_._1.contains("Factor")) :+ on: _*) {
        val _ = df.join(spark.table("shared_facts"), "k").count()
      }
      assert(Plans.execution(df).analyzed.stats.sizeInBytes == before)
      assert(Plans.execution(df).analyzed.stats.rowCount.isEmpty)
      assert(Plans.execution(df).optimizedPlan.stats.rowCount.isEmpty)
    }
  }

  test("off by default, and then the same plan object with Spark's own sizes") {
    withTables {
      withConf(sparkDecides: _*) {
        val plan = Plans.execution(spark.sql(query)).optimizedPlan.clone()
        assert((new ShareEstimates.ForRules).apply(plan) eq plan)
        val stock = filter(plan).stats
        val same = shared(spark.sql(query))
        assert(filter(same).stats.sizeInBytes == stock.sizeInBytes && stock.rowCount.isEmpty)
        assert(decisions(same).isEmpty)
      }
    }
  }

  Seq("advise", "off").foreach { mode =>
    test(s"in mode $mode plans stay as they are") {
      withTables(assert(joins(on, SelingerConf.MODE.key -> mode) == Seq("SortMergeJoin")))
    }
  }

  private def assertDeclined(reason: Reason, settings: (String, String)*)(text: String): Unit =
    withConf((sparkDecides :+ on) ++ settings: _*) {
      val df = spark.sql(text)
      val stock = withConf(rule.switch -> "false")(filter(shared(df)).stats)
      val plan = shared(df)
      assert(decisions(plan).map(_.reason).contains(reason), decisions(plan))
      assert(filter(plan).stats.sizeInBytes == stock.sizeInBytes)
      ()
    }

  test("does not fire where formulas estimate the filter (ESTIMATE_UNCERTAIN)") {
    withTables {
      withConf((sparkDecides :+ on) :+ (SamplePredicates.switch -> "false"): _*) {
        val plan = shared(spark.sql("SELECT * FROM shared_dims WHERE name LIKE '% 7'"))
        assert(decisions(plan).map(_.reason) == Seq(Reason.EstimateUncertain))
        // Of the relation itself all rows were counted.
        val stats = filter(plan).stats
        assert(stats.rowCount.isEmpty && stats.sizeInBytes > 20000 * 40)
      }
    }
  }

  test("does not fire where a join decides what raises an error (ERRORS_DEPEND_ON_PLAN)") {
    withTables {
      withConf("spark.sql.ansi.enabled" -> "true") {
        Seq(
          "SELECT count(*) FROM shared_facts f JOIN shared_dims d ON f.k = d.k AND 1 / f.v > 0 WHERE name LIKE '% 7'",
          "SELECT count(x) FROM (SELECT k, 1 / v AS x FROM shared_facts) f JOIN shared_dims d ON f.k = d.k WHERE name LIKE '% 7'"
        ).foreach(assertDeclined(Reason.MayRaise)(_))
      }
    }
  }

  test("does not fire where nothing is known (NO_STATISTICS)") {
    withTables(
      assertDeclined(Reason.NoStatistics, ReadFooterStatistics.switch -> "false")(
        "SELECT * FROM shared_dims WHERE name LIKE '% 7'"
      )
    )
  }

  test("does not fire where Spark's own optimizer is on (SPARK_ESTIMATES)") {
    withTables(
      assertDeclined(Reason.SparkEstimates, "spark.sql.cbo.enabled" -> "true")(
        "SELECT * FROM shared_dims WHERE name LIKE '% 7'"
      )
    )
  }

  test("does not raise a size where the user has set a threshold (USER_THRESHOLD_OBEYED)") {
    withTables {
      // Files are smaller than their rows in memory.
      val small = Seq("spark.sql.sources.fileCompressionFactor" -> "0.01", threshold -> "1m")
      assertDeclined(
        Reason.UserThreshold,
        small: _*
      )("SELECT * FROM shared_dims WHERE name LIKE 'n%'")
      assert(joins(small :+ on: _*) == joins(small: _*))
    }
  }

  test("does not fire on what is not a scan of files") {
    withTables {
      withConf(on) {
        val plan = shared(spark.sql("SELECT * FROM range(10) WHERE id > 3"))
        assert(decisions(plan).isEmpty)
      }
    }
  }

  test("hints and -1 are obeyed") {
    withTables {
      assert(joins(on, threshold -> "-1") == Seq("SortMergeJoin"))
      withConf(sparkDecides :+ on: _*) {
        val hinted = query.replace("SELECT", "SELECT /*+ MERGE(dims) */")
        assert(Plans.joins(spark.sql(hinted)) == Seq("SortMergeJoin"))
      }
    }
  }
}
