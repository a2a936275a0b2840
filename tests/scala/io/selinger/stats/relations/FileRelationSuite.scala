package io.selinger.stats.relations

import io.selinger.conf.SelingerConf
import io.selinger.core.{Decision, Origin, Outcome, PlanningPass, Reason}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.RelationStatistics
import io.selinger.stats.footers.{FooterStore, ReadFooterStatistics}
import io.selinger.testing.{Plans, SharedSession}
import java.nio.file.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LeafNode}
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite

/** Which scans have footers, and what is known of them as relations: the rule `readFooterStatistics`. */
class FileRelationSuite extends AnyFunSuite with SharedSession {

  private val rule = ReadFooterStatistics
  private val version2 = "spark.sql.sources.useV1SourceList" -> ""

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    FooterStore.clear()
  }

  private def leaf(df: DataFrame): LeafNode =
    Plans.execution(df).optimizedPlan.collectLeaves().head match {
      case leaf: LeafNode => leaf
      case other => fail(s"not a leaf: $other")
    }

  private def predicates(df: DataFrame): Seq[Expression] = Plans
    .execution(df)
    .optimizedPlan
    .collect { case filter: Filter => filter.condition }
    .flatMap(Selectivity.conjuncts)

  private def statistics(df: DataFrame): Option[RelationStatistics] =
    FileRelation.unapply(leaf(df)).flatMap(ReadFooterStatistics.read(_, predicates(df)))

  private def rows(df: DataFrame): Double =
    statistics(df).map(_.rows.value).getOrElse(fail("no statistics"))

  private def saved(format: String, folder: Path, partitioned: Boolean = false): DataFrame = {
    val target = folder.resolve(format).toString
    val df = spark.range(0, 100, 1, 4).selectExpr(
      "id",
      "if(id < 50, 1, if(id < 90, 2, null)) AS p",
      "string(id) AS s"
    )
    val writer = df.write.format(format)
    (if (partitioned) writer.partitionBy("p") else writer).save(target)
    spark.read.format(format).load(target)
  }

  for (format <- Seq("parquet", "orc"); v2 <- Seq(false, true)) {
    val name = s"$format${if (v2) " through DataSource V2" else ""}"

    def inVersion[A](body: => A): A = if (v2) withConf(version2)(body) else body

    test(s"$name: fires on a plain folder") {
      inVersion(withFolder { folder =>
        val df = saved(format, folder)
        assert(leaf(df).isInstanceOf[DataSourceV2ScanRelation] == v2)
        assert(rows(df) == 100)
        assert(statistics(df).exists(_.columns("id").max.contains(99.0)))
      })
    }

    test(s"$name: a filter on data does not change the relation's rows") {
      inVersion(withFolder(folder => assert(rows(saved(format, folder).where("id < 10")) == 100)))
    }

    test(s"$name: a filter on partitions leaves the rows of those partitions") {
      inVersion(withFolder { folder =>
        val df = saved(format, folder, partitioned = true)
        assert(rows(df) == 100)
        assert(rows(df.where("p = 2")) == 40)
        assert(rows(df.where("p = 2 AND id > 60")) == 40)
        assert(rows(df.where("p IS NULL")) == 10)
        assert(rows(df.where("p = 7")) == 0)
      })
    }

    test(s"$name: partition columns have the values of the listing") {
      inVersion(withFolder { folder =>
        val column = statistics(saved(format, folder, partitioned = true)).get.columns("p")
        assert(column.min.contains(1.0) && column.max.contains(2.0))
        assert(column.distinct.contains(2.0))
        assert(column.nullFraction.exists(share => share > 0 && share < 1))
      })
    }
  }

  test("counts nulls of partition columns in rows, not in partitions") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      val p = "if(id < 9000, 1, if(id < 18000, 2, null)) AS p"
      spark.range(0, 20000, 1, 1).selectExpr("id", p).write.partitionBy("p").parquet(target)
      val column = statistics(spark.read.parquet(target)).get.columns("p")
      assert(column.nullFraction.exists(share => math.abs(share - 0.1) < 0.05), column)
    }
  }

  test("leaves nothing on a leaf, which queries share") {
    withFolder { folder =>
      val df = saved("parquet", folder)
      statistics(df)
      assert(Decision.recordedAt(leaf(df)).isEmpty)
    }
  }

  private def withCatalogTable(partitioned: String)(body: DataFrame => Assertion): Assertion = {
    spark.sql(
      s"CREATE TABLE footer_test USING parquet $partitioned AS SELECT id, id % 3 AS p FROM range(30)"
    )
    try body(spark.table("footer_test"))
    finally { val _ = spark.sql("DROP TABLE footer_test") }
  }

  test("fires on a catalog table") {
    withCatalogTable("") { table =>
      assert(rows(table) == 30)
      assert(FileRelation.unapply(leaf(table)).exists(_.name.endsWith("footer_test")))
    }
  }

  test("fires on a catalog table whose partitions are chosen by a filter") {
    withCatalogTable("PARTITIONED BY (p)")(table => assert(rows(table.where("p = 1")) == 10))
  }

  test("does not fire on a catalog table whose partitions are not listed yet") {
    withCatalogTable("PARTITIONED BY (p)") { table =>
      assert(FileRelation.unapply(leaf(table)).isEmpty)
    }
  }

  test("does not take a column's default value for null") {
    spark.sql("CREATE TABLE default_test (id BIGINT) USING parquet")
    try {
      spark.sql("INSERT INTO default_test SELECT id FROM range(10)")
      spark.sql("ALTER TABLE default_test ADD COLUMN extra INT DEFAULT 7")
      spark.sql("INSERT INTO default_test SELECT id, 1000 FROM range(5)")
      val column = statistics(spark.table("default_test")).get.columns.get("extra")
      assert(column.forall(c => c.nullFraction.forall(_ == 0) && c.min.forall(_ <= 7)))
    } finally { val _ = spark.sql("DROP TABLE default_test") }
  }

  test("sees files that were added or rewritten") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      def write(rows: Long, mode: String) = spark.range(rows).write.mode(mode).parquet(target)
      write(10, "overwrite")
      assert(rows(spark.read.parquet(target)) == 10)
      write(20, "append")
      assert(rows(spark.read.parquet(target)) == 30)
      write(5, "overwrite")
      assert(rows(spark.read.parquet(target)) == 5)
    }
  }

  test("takes files that lack a column, or write it in another case, together") {
    withFolder { folder =>
      def write(name: String, columns: String*) =
        spark.range(
          0,
          10,
          1,
          1
        ).selectExpr(columns: _*).write.mode("append").parquet(folder.resolve(name).toString)
      write("t", "id", "id * 2 AS Value")
      write("t", "id + 100 AS ID")
      val found = statistics(
        spark.read.schema("id bigint, value bigint").parquet(folder.resolve("t").toString)
      ).get
      assert(found.rows.value == 20)
      assert(found.columns("id").max.contains(109.0))
      assert(found.columns("value").nullFraction.isEmpty)
    }
  }

  test("does not fire on other formats") {
    withFolder { folder =>
      Seq("csv", "json", "text").foreach { format =>
        val target = folder.resolve(format).toString
        spark.range(10).selectExpr("string(id) AS value").write.format(format).save(target)
        Seq("csv,json,text", "").foreach { v1 =>
          withConf("spark.sql.sources.useV1SourceList" -> v1) {
            assert(FileRelation.unapply(leaf(spark.read.format(format).load(target))).isEmpty)
          }
        }
      }
    }
  }

  test("does not fire on streams, local rows, ranges and caches") {
    withFolder { folder =>
      val static = saved("parquet", folder)
      val stream =
        spark.readStream.schema(static.schema).parquet(folder.resolve("parquet").toString)
      val leaves = Plans.execution(stream).analyzed.collectLeaves() ++
        Seq(spark.range(3).toDF(), spark.sql("SELECT * FROM VALUES (1), (2)")).map(leaf)
      leaves.foreach(plan => assert(FileRelation.unapply(plan).isEmpty))
      static.cache()
      try assert(Plans.execution(
          static
        ).withCachedData.collectLeaves().forall(FileRelation.unapply(_).isEmpty))
      finally { val _ = static.unpersist() }
    }
  }

  test("does not fire where an aggregate was pushed into the scan") {
    withFolder { folder =>
      val df = saved("parquet", folder)
      withConf(version2, "spark.sql.parquet.aggregatePushdown" -> "true") {
        val counted = spark.read.parquet(folder.resolve("parquet").toString).selectExpr("count(*)")
        assert(FileRelation.unapply(leaf(counted)).isEmpty)
        assert(counted.head().getLong(0) == df.count())
      }
    }
  }

  test("does not fire when switched off, and reads nothing") {
    withFolder { folder =>
      withConf(rule.switch -> "false") {
        val df = saved("parquet", folder)
        assert(statistics(df).isEmpty)
        assert(PlanningPass.current.informed(leaf(df)).headOption.isEmpty)
      }
    }
  }

  private def decision(df: DataFrame): Decision = {
    statistics(df)
    PlanningPass.current.informed(leaf(df)).headOption.getOrElse(fail("nothing was noted"))
  }

  test("records what was read (FOOTERS_READ)") {
    withFolder { folder =>
      val found = decision(saved("parquet", folder))
      assert(found.reason == Reason.FootersRead && found.outcome == Outcome.Informed)
      assert(found.evidence.exists(e =>
        e.name == "rows" && e.value == 100 && e.origin == Origin.Exact
      ))
      assert(found.evidence.exists(e => e.name == "files of the relation" && e.value == 4))
    }
  }

  test("records what was sampled, with the setting that would read more (FOOTERS_SAMPLED)") {
    withFolder { folder =>
      withConf(SelingerConf.FOOTER_MAX_FILES.key -> "2") {
        val found = decision(saved("parquet", folder))
        assert(found.reason == Reason.FootersSampled)
        assert(found.setting.contains(SelingerConf.FOOTER_MAX_FILES.key))
      }
    }
  }

  test("records that nothing could be read (FOOTERS_UNAVAILABLE)") {
    withFolder { folder =>
      val df = saved("parquet", folder)
      val files = folder.resolve("parquet").toFile.listFiles.filter(_.getName.startsWith("part-"))
      files.foreach(file => java.nio.file.Files.write(file.toPath, Array[Byte](1, 2, 3)))
      assert(decision(
        spark.read.schema(df.schema).parquet(folder.resolve("parquet").toString)
      ).reason == Reason.FootersUnavailable)
    }
  }

  test("survives more partitions than it can hold in one batch of threads") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      spark.range(0, 60, 1, 1).selectExpr("id", "id AS p").write.partitionBy("p").parquet(target)
      assert(rows(spark.read.parquet(target).where("p < 30")) == 30)
    }
  }
}
