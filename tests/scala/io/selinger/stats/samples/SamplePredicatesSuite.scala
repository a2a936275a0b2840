package io.selinger.stats.samples

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Origin, Outcome, PlanningPass, Reason}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.footers.{FooterStore, ReadFooterStatistics}
import io.selinger.stats.relations.FileRelation
import io.selinger.testing.{CountedFileSystem, Plans, SharedSession}
import java.nio.file.{Files, Path}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode}
import org.apache.spark.sql.functions.udf
import org.scalatest.funsuite.AnyFunSuite

/** Predicates on samples of files: the rule `samplePredicates`, and the estimates that follow. */
class SamplePredicatesSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = SamplePredicates
  private val budget = SelingerConf.SAMPLING_BUDGET_MS.key
  private val rows = 40000L

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    FooterStore.clear()
    SampleStore.clear()
  }

  private def estimate(df: DataFrame): PlanEstimate = {
    PlanningPass.start()
    LeafStatistics.estimator
      .estimate(Plans.execution(df).optimizedPlan)
      .getOrElse(fail("no estimate"))
  }

  private def leaf(df: DataFrame): LeafNode =
    Plans.execution(df).optimizedPlan.collectLeaves().head match {
      case leaf: LeafNode => leaf
      case other => fail(s"not a leaf: $other")
    }

  private def decision(df: DataFrame): Option[Decision] = {
    val plan = Plans.execution(df).optimizedPlan
    PlanningPass.start()
    LeafStatistics.estimator.estimate(plan)
    PlanningPass.current.informed(plan.collectLeaves().head).find(_.rule == rule.id)
  }

  /** Eight files of one table; `flag` follows from `code`, `late` is in the last file only. */
  private def withTable[A](body: DataFrame => A): A = body(spark.read.parquet(shared.toString))

  // Written once: what is known of it is forgotten before each test.
  private lazy val shared: Path = {
    val target = Files.createTempDirectory("selinger-samples").resolve("t")
    val _ = written(target)
    target
  }

  private def written(target: Path, partitioned: Boolean = false): DataFrame = {
    val df = spark.range(0, rows, 1, 8).selectExpr(
      "id",
      "abs(hash(id)) % 1000 AS code",
      "abs(hash(id)) % 1000 < 100 AS flag",
      "concat('item ', abs(hash(id, 1)) % 500, if(id % 50 = 0, ' special', '')) AS text",
      "if(id % 4 = 0, null, abs(hash(id, 2)) % 30) AS sparse",
      "if(id >= 39000, 'late', 'early') AS late",
      "array(id) AS list",
      "id % 2 AS p"
    )
    val writer = df.write
    (if (partitioned) writer.partitionBy("p") else writer).parquet(target.toString)
    spark.read.parquet(target.toString)
  }

  private def assertNear(df: DataFrame, factor: Double): Unit = {
    val truth = math.max(1.0, df.count().toDouble)
    val found = estimate(df)
    assert(
      found.rows.value <= truth * factor && found.rows.value >= truth / factor,
      s"${found.rows}, not $truth"
    )
    assert(found.upperBound >= truth && found.bound.contains(rows.toDouble))
    ()
  }

  Seq(
    "text LIKE '%special%'" -> 1.3,
    "text LIKE 'item 1%'" -> 1.2,
    "code < 100 AND flag" -> 1.2,
    "code < 100 AND NOT flag" -> 10.0,
    "length(text) = 8" -> 1.2,
    "code % 7 = 3 AND upper(text) LIKE '%9'" -> 1.5,
    "sparse IS NULL AND flag" -> 1.3,
    "sparse > 20 OR code = 5" -> 1.2,
    "code BETWEEN 10 AND 500 AND text > 'item 3'" -> 1.2,
    "late = 'late'" -> 1.6
  ).foreach { case (predicate, factor) =>
    test(s"fires: $predicate is within a factor of $factor") {
      withTable { table =>
        val df = table.where(predicate)
        assertNear(df, factor)
        val made = decision(df).getOrElse(fail("no decision"))
        assert(made.reason == Reason.PredicatesSampled && made.outcome == Outcome.Informed)
        assert(made.evidence.exists(e => e.name == "rows sampled" && e.value == 10000))
        assert(made.detail.isEmpty, made.detail)
      }
    }
  }

  test("the upper bound sinks, but not to the rows expected; `bound` stays") {
    withTable { table =>
      val found = estimate(table.where("text LIKE '%special%'"))
      assert(found.rows.origin == Origin.Sampled)
      assert(found.upperBound < rows * 0.5 && found.upperBound > found.rows.value)
      assert(found.bound.contains(rows.toDouble))
    }
  }

  test("of a relation that the sample holds whole, shares are counted") {
    withConf(SelingerConf.SAMPLING_MAX_ROWS.key -> "1000000") {
      withTable { table =>
        val df = table.where("text LIKE '%special%'")
        val found = estimate(df)
        assert(found.rows.value == df.count() && found.upperBound == found.rows.value)
        assert(found.bound.contains(rows.toDouble))
      }
    }
  }

  test("columns of the rows that are left have the sample's values") {
    withTable { table =>
      val df = table.where("code < 50 AND text IS NOT NULL")
      val found = estimate(df)
      val output = Plans.execution(df).optimizedPlan.output
      def column(name: String) =
        found.columns(output.find(_.name == name).getOrElse(fail(name)).exprId)
      assert(column("code").distinct.exists(d => d >= 45 && d <= 50))
      assert(column("code").nullFraction.contains(0.0))
      assert(column("text").averageBytes.exists(width => math.abs(width - 8) < 1))
    }
  }

  test("frequent values are known, with their share") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      spark
        .range(0, 20000, 1, 4)
        .selectExpr("if(abs(hash(id)) % 10 < 3, -1, id) AS k")
        .write
        .parquet(target)
      val df = spark.read.parquet(target).where("k < 1000000000")
      val column = estimate(df).columns.values.find(_.frequent.nonEmpty).getOrElse(fail("none"))
      assert(column.frequent.map(_.value) == Seq(-1L))
      assert(math.abs(column.frequent.head.share - 0.3) < 0.03)
    }
  }

  test("keys of joins and groups are sampled where no dictionary counts them (COLUMNS_SAMPLED)") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      // Too many values for a dictionary of 16 kB.
      spark
        .range(0, 60000, 1, 4)
        .selectExpr("string(abs(hash(id)) % 5000) AS k", "id AS v")
        .write
        .option("parquet.dictionary.page.size", "16384")
        .parquet(target)
      val df = spark.read.parquet(target).groupBy("k").count()
      PlanningPass.start()
      val plan = Plans.execution(df).optimizedPlan
      PlanningPass.current.workOn(plan)
      val found = LeafStatistics.estimator.estimate(plan).getOrElse(fail("no estimate"))
      assert(found.rows.value > 4000 && found.rows.value < 6000)
      val made = PlanningPass.current.informed(plan.collectLeaves().head)
      assert(made.filter(_.rule == rule.id).map(_.reason) == Seq(Reason.ColumnsSampled))
    }
  }

  private def assertFormulas(df: DataFrame): Unit = {
    val made = decision(df)
    assert(made.forall(_.reason == Reason.SampleUnavailable), made)
    val found = estimate(df)
    val formulas = withConf(rule.switch -> "false")(estimate(df))
    assert(found.rows == formulas.rows && found.upperBound == formulas.upperBound)
    ()
  }

  private val secret = udf { (id: Long) => SamplePredicatesSuite.calls.add(id); id > 10 }

  test("does not evaluate user code, which may have effects") {
    withTable { table =>
      SamplePredicatesSuite.calls.clear()
      assertFormulas(table.where(secret(table("id"))))
      assert(SamplePredicatesSuite.calls.isEmpty)
    }
  }

  test("does not evaluate what is random, subqueries, or predicates on nested columns") {
    withTable { table =>
      assertFormulas(table.where("rand() < 0.5"))
      assertFormulas(table.where("id > rand() * 10"))
      assertFormulas(table.where("list[0] > 5"))
      table.createOrReplaceTempView("sampled")
      assertFormulas(spark.sql("SELECT * FROM sampled WHERE id > (SELECT avg(code) FROM sampled)"))
    }
  }

  test("evaluates the predicates that it may and leaves the others to formulas, and says so") {
    withTable { table =>
      val df = table.where("text LIKE '%special%' AND list[0] > 5")
      val made = decision(df).getOrElse(fail("no decision"))
      assert(made.reason == Reason.PredicatesSampled)
      assert(made.detail.exists(_.contains("list")))
    }
  }

  test("a predicate that raises is left to formulas, and the query raises as it would") {
    withTable { table =>
      withConf("spark.sql.ansi.enabled" -> "true") {
        val df = table.where("cast(text AS int) = 3")
        assertFormulas(df)
        val _ = intercept[Exception](df.count())
        assertFormulas(table.where("code / (id - id) > 1"))
      }
    }
  }

  test("null tests alone are answered by the footers") {
    withTable { table =>
      assert(decision(table.where("sparse IS NOT NULL")).isEmpty)
      assert(decision(table).isEmpty)
    }
  }

  test("filters on partitions are answered by the listing") {
    withFolder { folder =>
      val table = written(folder.resolve("t"), partitioned = true)
      assert(decision(table.where("p = 1")).isEmpty)
      val df = table.where("p = 1 AND text LIKE '%special%'")
      assert(decision(df).exists(_.reason == Reason.PredicatesSampled))
      val found = estimate(df)
      assert(found.bound.contains(rows / 2.0))
    }
  }

  test("does not fire on csv") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      spark.range(100).selectExpr("string(id) AS s").write.csv(target)
      val df = spark.read.csv(target).toDF("s")
      val plan = Plans.execution(df.where("s LIKE '%1%'")).optimizedPlan
      PlanningPass.start()
      LeafStatistics.estimator.estimate(plan)
      assert(PlanningPass.current.informed(plan.collectLeaves().head).isEmpty)
    }
  }

  Seq(false, true).foreach { v2 =>
    test(s"of ORC files the same${if (v2) ", through DataSource V2" else ""}") {
      withConf("spark.sql.sources.useV1SourceList" -> (if (v2) "" else "orc")) {
        withFolder { folder =>
          val target = folder.resolve("t").toString
          withTable(_.write.orc(target))
          val df = spark.read.orc(target).where("text LIKE '%special%'")
          assertNear(df, 1.3)
          assert(decision(df).exists(_.reason == Reason.PredicatesSampled))
        }
      }
    }
  }

  test("through DataSource V2 the same") {
    withConf("spark.sql.sources.useV1SourceList" -> "") {
      withTable { table =>
        val df = table.where("text LIKE '%special%'")
        assertNear(df, 1.3)
        assert(decision(df).exists(_.reason == Reason.PredicatesSampled))
      }
    }
  }

  Seq(
    "switched off" -> (rule.switch -> "false"),
    "mode off" -> (SelingerConf.MODE.key -> "off")
  ).foreach { case (name, setting) =>
    test(s"does not fire and reads nothing when $name") {
      withTable { table =>
        withConf(setting) {
          assert(sampled(table).isEmpty)
          assert(decision(table.where("text LIKE '%a%'")).isEmpty)
        }
      }
    }
  }

  private def sampled(table: DataFrame): Option[SampledRelation] = {
    val df = table.where("text LIKE '%special%'")
    val predicates = Plans
      .execution(df)
      .optimizedPlan
      .collect { case filter: Filter => filter.condition }
      .flatMap(Selectivity.conjuncts)
    for {
      relation <- FileRelation.unapply(leaf(df))
      statistics <- withConf(rule.switch -> "true", SelingerConf.MODE.key -> "on") {
        ReadFooterStatistics.read(relation, predicates)
      }
      sample <- SamplePredicates.evaluate(relation, statistics, predicates)
    } yield sample
  }

  test("in mode advise samples inform as in mode on") {
    withConf(SelingerConf.MODE.key -> "advise")(withTable(table => assert(sampled(table).nonEmpty)))
  }

  test("without time formulas serve, and explain says so (SAMPLE_UNAVAILABLE)") {
    withTable { table =>
      withConf(budget -> "0") {
        val df = table.where("text LIKE '%special%'")
        assertFormulas(df)
        val made = decision(df).getOrElse(fail("no decision"))
        assert(made.reason == Reason.SampleUnavailable && made.setting.contains(budget))
      }
    }
  }

  test("a second plan finds everything in the cache") {
    withFolder { folder =>
      val target = folder.resolve("t")
      written(target)
      val table = spark.read.options(CountedFileSystem.options).parquet(s"counted:$target")
      def opened(): Int = {
        val before = CountedFileSystem.opened.get
        val found = estimate(table.where("text LIKE '%special%' AND code < 700"))
        assert(found.rows.origin == Origin.Sampled)
        CountedFileSystem.opened.get - before
      }
      assert(opened() > 0 && opened() == 0)
    }
  }

  test("files that were rewritten are sampled anew") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      def write(value: String) =
        spark.range(
          0,
          20000,
          1,
          2
        ).selectExpr(s"$value AS k").write.mode("overwrite").parquet(target)
      write("id % 2")
      assert(estimate(spark.read.parquet(target).where("k = 1")).rows.value > 9000)
      write("id % 200")
      assert(estimate(spark.read.parquet(target).where("k = 1")).rows.value < 200)
    }
  }

  test("files that vanish after they were listed leave the others, or formulas") {
    withFolder { folder =>
      val target = folder.resolve("t")
      val table = written(target)
      val df = table.where("text LIKE '%special%'")
      estimate(df.where("id > 0"))
      SampleStore.clear()
      val files = target.toFile.listFiles.filter(_.getName.startsWith("part-")).sorted
      files.take(4).foreach(file => Files.delete(file.toPath))
      val found = estimate(table.where("text LIKE '%special%'"))
      assert(found.rows.value > 400 && found.rows.value < 1600)
      files.drop(4).foreach(file => Files.delete(file.toPath))
      SampleStore.clear()
      assert(estimate(table.where("text LIKE '%special%'")).rows.value > 0)
    }
  }

  test("a table of 2,000 columns") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      val columns = (0 until 2000).map(i => s"id % ${i + 2} AS c$i")
      spark.range(0, 400, 1, 1).selectExpr(columns: _*).write.parquet(target)
      val df = spark.read.parquet(target).where("c1999 + c7 = 14 AND c3 = 4")
      val truth = df.count()
      assert(estimate(df).rows.value == math.max(1L, truth))
    }
  }

  test("an empty table has nothing to sample") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      spark.range(0, 0, 1, 1).selectExpr("string(id) AS s").write.parquet(target)
      val found = estimate(spark.read.parquet(target).where("s LIKE '%1%'"))
      assert(found.bound.contains(0.0) && found.rows.value == 0.0)
    }
  }

  test("a column that some files lack is left to formulas") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      spark.range(100).selectExpr("id").write.parquet(target)
      spark.range(100).selectExpr("id", "string(id) AS s").write.mode("append").parquet(target)
      val df = spark.read.schema("id bigint, s string").parquet(target)
      assertFormulas(df.where("s LIKE '%1%'"))
    }
  }

  test("a join that filters a side by text is decided with the sample's number") {
    withTable { table =>
      table.createOrReplaceTempView("sampled")
      val df = spark.sql(
        "SELECT count(*), max(a.text) FROM sampled a JOIN sampled b ON a.id = b.id WHERE b.text LIKE '%special%'"
      )
      assert(df.head().getLong(0) == rows / 50)
      val made = Plans.decisions(df, rule.id)
      assert(made.exists(_.reason == Reason.PredicatesSampled))
    }
  }
}

object SamplePredicatesSuite {
  private val calls = new java.util.concurrent.ConcurrentLinkedQueue[Long]()
}
