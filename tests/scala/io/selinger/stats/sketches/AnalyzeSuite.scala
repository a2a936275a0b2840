package io.selinger.stats.sketches

import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.relations.UsedColumns
import io.selinger.stats.samples.{SamplePredicates, SampleStore}
import io.selinger.testing.{Plans, SharedSession}
import java.nio.file.{Files, Path}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.functions.col
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._

/** `selinger_analyze`, its store, and what estimates make of it. */
class AnalyzeSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    SketchStore.clear()
    SampleStore.clear()
    UsedColumns.clear()
  }

  /** A folder for data and one for the store. */
  private def withStore(body: (Path, Path) => Any): Unit = withFolder { folder =>
    val store = folder.resolve("store")
    withConf(SelingerConf.STATS_LOCATION.key -> store.toString) {
      val _ = body(folder.resolve("t"), store)
    }
  }

  private def analyze(target: Any, more: String = ""): Row =
    spark.sql(s"SELECT * FROM selinger_analyze('$target'$more)").head()

  private def stats(target: Any): Map[String, Row] =
    spark
      .sql(s"SELECT * FROM selinger_stats('$target')")
      .collect()
      .map(row => row.getAs[String]("column") -> row)
      .toMap

  private def estimate(df: DataFrame): PlanEstimate = {
    PlanningPass.start()
    LeafStatistics.estimator.estimate(Plans.execution(df).optimizedPlan).get
  }

  private def segments(store: Path): Seq[Path] = {
    val paths = Files.walk(store)
    try paths.iterator.asScala.filter(_.toString.endsWith(".sketch")).toSeq
    finally paths.close()
  }

  /** Refuses, with a message that has all of these. */
  private def refuses(sql: String)(parts: String*): Unit = {
    val error = intercept[Exception](spark.sql(sql).collect())
    parts.foreach(part => assert(error.getMessage.contains(part)))
  }

  private val everyType = Seq(
    "id % 2 = 0 AS flag",
    "cast(id % 100 AS tinyint) AS tiny",
    "cast(id % 1000 AS smallint) AS small",
    "cast(id % 5000 AS int) AS whole",
    "id AS big",
    "cast(id % 77 / 4 AS float) AS real",
    """CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D
      |WHEN 3 THEN double('Infinity') ELSE id / 8.0D END AS number""".stripMargin,
    "cast(id % 300 AS decimal(7, 2)) AS price",
    "cast(id AS decimal(18, 4)) AS exact",
    """CASE WHEN id = 0 THEN 9999999999999999999999999999.9999999999BD
      |ELSE cast(id % 40 AS decimal(38, 10)) END AS huge""".stripMargin,
    "date_add(date'2020-01-01', cast(id % 365 AS int)) AS day",
    "timestamp_micros(id * 1000000) AS at",
    "cast(timestamp_micros(id % 10 * 1000000) AS timestamp_ntz) AS local",
    "concat('text ', id % 250) AS text",
    "cast(concat('x', id % 30) AS binary) AS raw",
    "if(id % 4 = 0, null, id % 10) AS holes",
    "cast(null AS int) AS nothing",
    "array(id) AS list",
    "struct(id AS a) AS pair"
  )

  private val truth = Map(
    "flag" -> 2.0,
    "tiny" -> 100.0,
    "small" -> 1000.0,
    "whole" -> 5000.0,
    "big" -> 20000.0,
    "real" -> 77.0,
    "number" -> 4003.0,
    "price" -> 300.0,
    "exact" -> 20000.0,
    "huge" -> 41.0,
    "day" -> 365.0,
    "at" -> 20000.0,
    "local" -> 10.0,
    "text" -> 250.0,
    "raw" -> 30.0,
    "holes" -> 10.0,
    "nothing" -> 0.0
  )

  Seq("parquet" -> true, "parquet" -> false, "orc" -> true).foreach { case (format, dictionary) =>
    test(s"every type is counted: $format, dictionaries $dictionary") {
      withStore { (data, _) =>
        spark
          .range(0, 20000, 1, 3)
          .selectExpr(everyType: _*)
          .write
          .option("parquet.enable.dictionary", dictionary)
          .format(format)
          .save(data.toString)
        val done = analyze(data)
        assert(done.getAs[Int]("files_read") == 3 && done.getAs[Long]("rows_read") == 20000)
        assert(done.getAs[String]("columns_from") == "all")
        assert(done.getSeq[String](done.fieldIndex("columns_skipped")).size == 2)
        val found = stats(data)
        assert(found.keySet == truth.keySet)
        truth.foreach { case (name, distinct) =>
          val row = found(name)
          val counted = row.getAs[Double]("distinct")
          assert(row.getAs[Long]("rows") == 20000 && row.getAs[Boolean]("complete"), name)
          assert(math.abs(counted - distinct) <= 0.06 * distinct, s"$name: $counted")
        }
        assert(found("holes").getAs[Long]("nulls") == 5000)
        assert(found("nothing").getAs[Long]("nulls") == 20000)
        assert(found("day").getAs[String]("min") == "2020-01-01")
        assert(found("day").getAs[String]("max") == "2020-12-30")
        assert(found("whole").getAs[String]("max") == "4999")
        assert(found("price").getAs[String]("max") == "299.0")
        assert(found("text").getAs[Double]("average_bytes") > 6)
        val deciles =
          found("big").getSeq[String](found("big").fieldIndex("deciles")).map(_.toDouble)
        deciles.zipWithIndex.foreach { case (place, i) =>
          assert(math.abs(place - i * 2000) < 800, s"decile $i of big is $place")
        }
      }
    }
  }

  test("a table that is filtered, joined and grouped is estimated from what was collected") {
    withStore { (data, _) =>
      // Skewed: nine rows in ten have key 0 and low numbers.
      spark
        .range(0, 100000, 1, 4)
        .selectExpr(
          "if(id % 10 < 9, 0L, id) AS k",
          "if(id % 10 < 9, id % 10, id) AS n",
          "concat('name ', id % 20 * (id % 20)) AS s"
        )
        .write
        .parquet(data.toString)
      val df = spark.read.parquet(data.toString)
      def rows(predicate: String) = estimate(df.where(predicate)).rows.value
      withConf(SamplePredicates.switch -> "false") {
        val before = rows("n > 50000")
        // By default only the column that this query has used would be collected.
        analyze(data, ", columns => 'k, n, s'")
        val after = rows("n > 50000")
        assert(before > 40000 && math.abs(after - 5000) < 1500, s"$before, then $after")
        assert(math.abs(rows("n BETWEEN 0 AND 8") - 90000) < 3000)
        val key = estimate(df).columns.values.toSeq
        assert(key.exists(_.frequent.exists(f => f.value == 0L && f.share > 0.88)), key.toString)
        withConf(UseCollectedStatistics.switch -> "false") {
          assert(rows("n > 50000") == before)
        }
      }
      assert(math.abs(rows("s LIKE '%1' AND n < 5") - 10000) < 2000)
      val joined = df.join(spark.range(10).toDF("k"), "k")
      val decisions = Plans.decisions(joined, "useCollectedStatistics")
      assert(decisions.map(_.reason.code) == Seq("COLLECTED_STATISTICS_USED"))
    }
  }

  test("a second run reads new and changed files only") {
    withStore { (data, store) =>
      spark.range(0, 1000, 1, 2).write.parquet(data.toString)
      assert(analyze(data).getAs[Int]("files_read") == 2)
      val again = analyze(data)
      assert(again.getAs[Int]("files_read") == 0 && again.getAs[Int]("files_known") == 2)
      spark.range(1000, 3000, 1, 1).write.mode("append").parquet(data.toString)
      val more = analyze(data)
      assert(more.getAs[Int]("files_read") == 1 && more.getAs[Long]("rows_read") == 2000)
      assert(stats(data)("id").getAs[Long]("rows") == 3000)
      assert(segments(store).size == 2)
    }
  }

  test("a file that is read again: because of a change, of columns, or of a larger sample") {
    withStore { (data, _) =>
      spark.range(0, 1000, 1, 20).selectExpr("id AS a", "id AS b").write.parquet(data.toString)
      def again(more: String) = {
        val done = analyze(data, more)
        Seq("files_read", "files_changed", "files_other_columns", "files_larger_sample")
          .map(done.getAs[Int](_))
      }
      assert(again(", columns => 'a', sample => 0.5") == Seq(10, 0, 0, 0))
      // Half of them were never read.
      assert(again(", columns => 'a'") == Seq(10, 0, 0, 0))
      assert(again(", columns => 'a, b'") == Seq(20, 0, 20, 0))
      val listed = Files.list(data)
      val (sums, parts) =
        try
          listed.iterator.asScala.toSeq
            .filterNot(_.endsWith("_SUCCESS"))
            .partition(_.toString.endsWith(".crc"))
        finally listed.close()
      sums.foreach(Files.delete(_))
      Files.copy(parts(1), parts(0), java.nio.file.StandardCopyOption.REPLACE_EXISTING)
      assert(parts(0).toFile.setLastModified(1000000000000L))
      assert(again(", columns => 'a, b'") == Seq(1, 1, 0, 0))
      assert(again(", columns => 'a, b'") == Seq(0, 0, 0, 0))
    }
  }

  test("a file is read again where a smaller part of it was read before") {
    withStore { (data, _) =>
      spark.range(0, 60000, 1, 1).write.option("parquet.block.size", "65536")
        .parquet(data.toString)
      assert(analyze(data, ", sample => 0.2").getAs[Int]("files_read") == 1)
      val done = analyze(data)
      assert(done.getAs[Int]("files_read") == 1 && done.getAs[Int]("files_larger_sample") == 1)
      assert(done.getAs[Int]("files_changed") + done.getAs[Int]("files_other_columns") == 0)
    }
  }

  test("a file that changed is like one that was never seen") {
    withStore { (data, _) =>
      spark.range(0, 1000, 1, 1).write.parquet(data.toString)
      analyze(data)
      spark.range(0, 50, 1, 1).write.mode("overwrite").parquet(data.toString)
      SketchStore.clear()
      assert(stats(data).isEmpty)
      val df = spark.read.parquet(data.toString)
      val found = estimate(df)
      assert(found.rows.value == 50 && found.columns.values.forall(_.quantiles.isEmpty))
      val decisions = Plans.decisions(df.join(spark.range(5), "id"), "useCollectedStatistics")
      assert(decisions.map(_.reason.code) == Seq("COLLECTED_STATISTICS_STALE"))
      assert(analyze(data).getAs[Int]("files_read") == 1)
      assert(stats(data)("id").getAs[Long]("rows") == 50)
    }
  }

  test("damaged, foreign and newer files in the store are left out") {
    withStore { (data, store) =>
      spark.range(0, 1000, 1, 1).write.parquet(data.toString)
      analyze(data)
      val segment = segments(store).head
      val bytes = Files.readAllBytes(segment)
      def replaced(change: Array[Byte] => Array[Byte]): Unit = {
        Files.deleteIfExists(segment.resolveSibling(s".${segment.getFileName}.crc"))
        Files.write(segment, change(bytes.clone()))
        SketchStore.clear()
      }
      replaced(_.updated(11, 99.toByte))
      assert(stats(data).isEmpty)
      replaced(_.updated(40, (bytes(40) + 1).toByte))
      assert(stats(data).isEmpty)
      replaced(_.take(30))
      assert(stats(data).isEmpty)
      replaced(all => all.updated(all.length - 5, (all(all.length - 5) + 1).toByte))
      assert(stats(data).isEmpty)
      replaced(_ => "somebody else's".getBytes)
      assert(stats(data).isEmpty)
      assert(estimate(spark.read.parquet(data.toString)).rows.value == 1000)
      assert(analyze(data).getAs[Int]("files_read") == 1)
      assert(stats(data)("id").getAs[Long]("rows") == 1000)
    }
  }

  test("without a place nothing is collected, and the message says how to set it") {
    withFolder { folder =>
      val data = folder.resolve("t").toString
      spark.range(10).write.parquet(data)
      refuses(s"SELECT * FROM selinger_analyze('$data')")(SelingerConf.STATS_LOCATION.key, "SET ")
    }
  }

  test("wrong arguments are refused with what is right") {
    refuses("SELECT * FROM selinger_analyze()")("target is missing", "selinger_analyze(target")
    refuses("SELECT * FROM selinger_analyze('a', sample => 2.0)")("sample must be")
    refuses("SELECT * FROM selinger_analyze('a', colums => 'x')")("colums")
    refuses("SELECT * FROM selinger_analyze('a', 'b', 0.5, 1, 2)")("4 at most")
    refuses("SELECT * FROM selinger_analyze('a', columns => 1)")("array of texts")
  }

  test("only Parquet and ORC files, and views that are nothing else") {
    withStore { (data, _) =>
      spark.range(100).write.csv(data.toString)
      refuses(s"SELECT * FROM selinger_analyze('$data')")("neither a Parquet nor an ORC file")
      refuses("SELECT * FROM selinger_analyze('no_such_table')")("no such table, view or path")
      val parquet = s"$data-parquet"
      spark.range(100).write.parquet(parquet)
      spark.read.parquet(parquet).createOrReplaceTempView("plain_view")
      assert(analyze("plain_view").getAs[Int]("files_read") > 0)
      assert(stats(parquet).contains("id"))
      spark.sql("CREATE OR REPLACE TEMP VIEW part_view AS SELECT * FROM plain_view WHERE id < 5")
      refuses("SELECT * FROM selinger_analyze('part_view')")("Filter")
      refuses(s"SELECT * FROM selinger_analyze('$parquet', columns => 'nope')")("no column nope")
    }
  }

  test("EXPLAIN runs nothing, and a query runs it once") {
    withStore { (data, store) =>
      spark.range(0, 1000, 1, 1).write.parquet(data.toString)
      spark.sql(s"EXPLAIN SELECT * FROM selinger_analyze('$data')").collect()
      assert(!Files.exists(store))
      val df = spark.sql(s"SELECT * FROM selinger_analyze('$data')")
      assert(segments(store).size == 1)
      assert(df.head().getAs[Int]("files_read") == 1 && df.head().getAs[Int]("files_read") == 1)
      df.count()
      df.show()
      val some = spark.sql(s"SELECT files_read + 1 AS n FROM selinger_analyze('$data')")
      assert(some.head().getInt(0) == 1 && some.count() == 1)
      assert(segments(store).size == 1)
    }
  }

  test("columns that queries have used are those that are collected by default") {
    withStore { (data, _) =>
      spark.range(0, 1000, 1, 1).selectExpr("id AS a", "id AS b", "id AS c").write
        .parquet(data.toString)
      val df = spark.read.parquet(data.toString)
      df.where("b > 5").join(spark.range(10).toDF("x"), df("a") === col("x")).select("c").collect()
      val done = analyze(data)
      assert(done.getAs[String]("columns_from") == "used")
      assert(done.getSeq[String](done.fieldIndex("columns")).toSet == Set("a", "b"))
      val more = analyze(data, ", columns => array('c')")
      assert(more.getAs[String]("columns_from") == "given")
      assert(stats(data).keySet == Set("a", "b", "c"))
      spark.sql(s"SELECT * FROM selinger_forget('$data', 'a')").collect()
      assert(stats(data).keySet == Set("b", "c"))
      spark.sql(s"SELECT * FROM selinger_forget('$data')").collect()
      assert(stats(data).isEmpty)
    }
  }

  test("partitioned tables: the files that a query reads") {
    withStore { (data, _) =>
      spark
        .range(0, 10000, 1, 1)
        .selectExpr("id % 4 AS p", "id AS v", "id % 4 * 100 + id % 7 AS w")
        .write
        .partitionBy("p")
        .parquet(data.toString)
      val done = analyze(data)
      assert(done.getAs[Int]("files_read") == 4)
      val df = spark.read.parquet(data.toString)
      val one = estimate(df.where("p = 2"))
      assert(one.columns.values.flatMap(_.distinct).exists(d => math.abs(d - 7) < 0.5))
    }
  }

  test("tables by name, and partitions of theirs that a query reads") {
    withStore { (_, _) =>
      spark.sql("CREATE TABLE sketch_table (v BIGINT, p INT) USING parquet PARTITIONED BY (p)")
      try {
        spark.sql("INSERT INTO sketch_table SELECT id % 50, id % 3 FROM range(3000)")
        assert(analyze("sketch_table").getAs[Long]("rows_read") == 3000)
        val one = estimate(spark.table("sketch_table").where("p = 1 AND v > 24"))
        assert(math.abs(one.rows.value - 500) < 100)
      } finally { val _ = spark.sql("DROP TABLE sketch_table") }
    }
  }

  test("a file that vanishes between listing and reading is left out") {
    withStore { (data, _) =>
      spark.range(0, 1000, 1, 2).write.parquet(data.toString)
      spark.read.parquet(data.toString).createOrReplaceTempView("vanishing")
      val files = Files.list(data).iterator.asScala.filter(_.toString.endsWith(".parquet")).toSeq
      Files.delete(files.head)
      val done = analyze("vanishing")
      assert(done.getAs[Int]("files_read") == 1 && done.getAs[Int]("files_skipped") == 1)
      assert(done.getAs[String]("problem") != null)
    }
  }

  test("a part of the data is read when a sample is asked for, and it says so") {
    withStore { (data, _) =>
      spark.range(0, 40000, 1, 20).selectExpr("id AS k", "id % 10 AS v").write
        .parquet(data.toString)
      val done = analyze(data, ", sample => 0.5")
      assert(done.getAs[Int]("files_read") == 10 && done.getAs[Long]("rows_read") == 20000)
      assert(!stats(data)("k").getAs[Boolean]("complete"))
      val found = estimate(spark.read.parquet(data.toString))
      val distinct = found.columns.values.flatMap(_.distinct).toSeq.sorted
      assert(math.abs(distinct.head - 10) < 0.5 && math.abs(distinct.last - 40000) < 4000)
      assert(analyze(data).getAs[Int]("files_read") == 10)
      assert(stats(data)("k").getAs[Boolean]("complete"))
    }
  }

  test("as many bytes as are allowed at a time, until nothing is left") {
    withStore { (data, _) =>
      spark.range(0, 4000, 1, 4).write.parquet(data.toString)
      val left = Iterator.continually(analyze(data, ", max_bytes => 1").getAs[Int]("files_left"))
        .take(4).toSeq
      assert(left == Seq(3, 2, 1, 0))
    }
  }

  test("a table of 2,000 columns") {
    withStore { (data, _) =>
      spark.range(0, 20, 1, 1).select((0 until 2000).map(i => (col("id") + i).as(s"c$i")): _*)
        .write.parquet(data.toString)
      val done = analyze(data)
      assert(done.getSeq[String](done.fieldIndex("columns")).size == 2000)
      val found = stats(data)
      assert(found.size == 2000 && found("c1999").getAs[String]("max") == "2018")
    }
  }

  test("a view of some files does not cost the others what is known of them") {
    withStore { (data, store) =>
      val columns = (0 until 12).map(i => s"id + $i AS c$i")
      spark.range(0, 4000, 1, 4).selectExpr(columns: _*).write.parquet(data.toString)
      analyze(data, ", columns => array('c0')")
      val one = data.toFile.list().filter(_.startsWith("part-")).sorted.head
      spark.read.option("pathGlobFilter", one).parquet(data.toString).createOrReplaceTempView("one")
      (1 until 12).foreach(i => analyze("one", s", columns => array('c$i')"))
      assert(segments(store).size < 12)
      assert(stats(data)("c0").getAs[Boolean]("complete"))
      // Of a file that is gone nothing is kept.
      spark.range(
        0,
        4000,
        1,
        4
      ).selectExpr(columns: _*).write.mode("overwrite").parquet(data.toString)
      (0 until 12).foreach(i => analyze(data, s", columns => array('c$i')"))
      assert(estimate(spark.read.parquet(data.toString)).rows.value == 4000)
      assert(stats(data)("c0").getAs[Boolean]("complete"))
    }
  }

  test("a store within the table's own folder is not taken for data") {
    withStore { (data, _) =>
      spark.range(20).selectExpr(
        "id AS a",
        "id % 3 AS p"
      ).write.partitionBy("p").parquet(data.toString)
      withConf(SelingerConf.STATS_LOCATION.key -> data.toString) {
        analyze(data)
        assert(spark.read.parquet(data.toString).count() == 20)
        assert(stats(data).keySet == Set("a"))
        assert(analyze(data).getAs[Int]("files_read") == 0)
      }
    }
  }

  test("keys of one range that two tables do not share") {
    withStore { (data, _) =>
      val tables = Seq("even" -> "id * 2", "odd" -> "id * 2 + 1", "fourth" -> "id * 4").map {
        case (name, key) =>
          val path = s"$data-$name"
          spark.range(0, 10000, 1, 1).selectExpr(s"$key AS k", "id AS v").write.parquet(path)
          path
      }
      def rows(left: String, right: String): Double =
        estimate(spark.read.parquet(left).join(spark.read.parquet(right), "k")).rows.value
      // Samples see it as well, of tables as small as these.
      withConf(SamplePredicates.switch -> "false") {
        val before = rows(tables(0), tables(1))
        tables.foreach(analyze(_))
        assert(before > 5000 && rows(tables(0), tables(1)) < 50)
        assert(math.abs(rows(tables(0), tables(2)) - 5000) < 500)
        assert(math.abs(rows(tables(0), tables(0)) - 10000) < 500)
      }
    }
  }

  test("a part of the files is known: numbers are extrapolated, and planning may sample") {
    withStore { (data, _) =>
      spark.range(0, 10000, 1, 1).selectExpr("id AS k", "id % 7 AS v").write.parquet(data.toString)
      analyze(data)
      spark.range(10000, 20000, 1, 1).selectExpr("id AS k", "id % 7 AS v").write.mode("append")
        .parquet(data.toString)
      SketchStore.clear()
      val df = spark.read.parquet(data.toString)
      val distinct = estimate(df).columns.values.flatMap(_.distinct).toSeq.sorted
      assert(math.abs(distinct.head - 7) < 0.5 && math.abs(distinct.last - 20000) < 1500)
      val codes = Plans.decisions(df.join(spark.range(9).toDF("v"), "v"), "useCollectedStatistics")
      assert(codes.map(_.reason.code) == Seq("COLLECTED_STATISTICS_PARTIAL"))
    }
  }

  test("predicates are evaluated on the rows that were collected, and nothing is read") {
    withStore { (data, _) =>
      spark.range(0, 50000, 1, 5).selectExpr("id AS k", "id % 100 AS a", "id % 100 * 2 AS b")
        .write.parquet(data.toString)
      analyze(data)
      withConf(SelingerConf.SAMPLING_BUDGET_MS.key -> "0") {
        // Correlated: by formulas a ten-thousandth.
        val found = estimate(spark.read.parquet(data.toString).where("a = 7 AND b = 14"))
        assert(math.abs(found.rows.value - 500) < 200, found.rows.toString)
        assert(found.bound.contains(50000.0))
      }
    }
  }

  test("empty tables, and tables without a column that is sketched") {
    withStore { (data, _) =>
      spark.range(0, 10, 1, 1).where("id < 0").write.parquet(data.toString)
      assert(analyze(data).getAs[Long]("rows_read") == 0)
      assert(estimate(spark.read.parquet(data.toString)).rows.value == 0)
      val nested = s"$data-nested"
      spark.range(5).selectExpr("array(id) AS list").write.parquet(nested)
      val done = analyze(nested)
      assert(done.getAs[Int]("files_read") == 0 && stats(nested).isEmpty)
    }
  }
}
