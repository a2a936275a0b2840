package io.selinger.stats

import io.selinger.core.{Outcome, PlanningPass}
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.footers.FooterStore
import io.selinger.stats.samples.SampleStore
import io.selinger.testing.{Answer, CountedFileSystem, Grid, Plans, SharedSession}
import java.nio.file.{Files, Path}
import java.nio.file.attribute.FileTime
import org.apache.spark.ml.linalg.{SQLDataTypes, Vectors}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.types.{LongType, StructField, StructType}
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * Tables that go wrong: all types, damaged and vanishing files. Whatever happens to a reader, the
 * query answers as stock Spark does, with the same rows or the same error.
 */
class HardTablesSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    FooterStore.clear()
    SampleStore.clear()
  }

  private def files(folder: Path): Seq[Path] = {
    val paths = Files.list(folder)
    try paths.iterator.asScala.filter(_.getFileName.toString.startsWith("part-")).toSeq.sorted
    finally paths.close()
  }

  /** The answer with Selinger is stock Spark's, and no rule failed. */
  private def assertSame(df: => DataFrame): Unit = {
    val expected = stockAnswer()(df)
    val found = Answer.of(df)
    Answer.difference(expected, found).foreach(difference => fail(difference))
  }

  private def estimated(df: DataFrame): Double = {
    PlanningPass.start()
    val plan = Plans.execution(df).optimizedPlan
    PlanningPass.current.workOn(plan)
    LeafStatistics.estimator.estimate(plan).map(_.rows.value).getOrElse(fail("no estimate"))
  }

  // ---- types --------------------------------------------------------------------------------

  // With a condition that most queries would write; the types that a format has.
  private val types: Seq[(String, String, Set[String])] = Seq(
    ("tinyint(id)", "c > 3", Set("parquet", "orc")),
    (
      "if(id % 3 = 0, null, cast(id AS decimal(38,18)))",
      "c BETWEEN 3 AND 50",
      Set("parquet", "orc")
    ),
    ("id % 2 = 0", "c", Set("parquet", "orc")),
    ("string(id)", "c LIKE '%1%'", Set("parquet", "orc")),
    ("cast(string(id) AS binary)", "c > X'31'", Set("parquet", "orc")),
    (
      "date_add(date'1500-01-01', cast(id * 3000 AS int))",
      "c < date'1600-01-01'",
      Set("parquet", "orc")
    ),
    (
      "timestamp'1850-01-01' + make_dt_interval(id * 500)",
      "c < '1950-01-01'",
      Set("parquet", "orc")
    ),
    ("timestamp_ntz'1850-01-01' + make_dt_interval(id)", "c < '1850-02-01'", Set("parquet", "orc")),
    ("make_dt_interval(id)", "c > interval '5' day", Set("parquet", "orc")),
    ("make_ym_interval(id)", "c > interval '5' year", Set("parquet", "orc")),
    ("if(id % 2 = 0, double('NaN'), -0.0D)", "c = 0.0", Set("parquet", "orc")),
    ("array(id, id + 1)", "c[0] > 7", Set("parquet", "orc")),
    ("array(struct(id AS x, array(string(id)) AS y))", "c[0].y[0] = '7'", Set("parquet", "orc")),
    ("struct(id AS x, struct(string(id) AS z) AS y)", "c.y.z = '7'", Set("parquet", "orc")),
    ("map(string(id), id)", "c['7'] = 7", Set("parquet", "orc")),
    ("parse_json(concat('{\"a\": ', id, '}'))", "variant_get(c, '$.a', 'int') > 7", Set("parquet")),
    ("null", "c IS NULL", Set("orc", "parquet"))
  )

  for ((value, condition, formats) <- types; format <- Grid.part(formats.toSeq.sorted, 0.5, value))
    test(s"$format: a column of $value") {
      withFolder { folder =>
        val target = folder.resolve("t").toString
        val df = spark.range(0, 100, 1, 3).selectExpr("id", s"$value AS c")
        // Some types a format refuses; then there is nothing to read.
        assume(Try(df.write.format(format).save(target)).isSuccess)
        def table = spark.read.format(format).load(target)
        assert(estimated(table.where(condition)) >= 0.0)
        assertSame(table.where(condition).selectExpr("id"))
        assertSame(table.join(table.where(condition).selectExpr("id"), "id").selectExpr("id"))
        assertSame(
          table.as("a").join(table.as("b"), org.apache.spark.sql.functions.expr("a.c = b.c"))
            .selectExpr("a.id")
        )
        assertSame(table.groupBy("c").count().selectExpr("count"))
      }
    }

  for (format <- Seq("parquet", "orc"))
    test(s"$format: char, varchar and collated texts of a catalog table") {
      spark.sql(
        s"""CREATE TABLE hard_texts (id BIGINT, c CHAR(6), v VARCHAR(6), s STRING COLLATE UTF8_LCASE)
           |USING $format""".stripMargin
      )
      try {
        spark.sql(
          """INSERT INTO hard_texts
            |SELECT id, string(id % 20), string(id % 20), if(id % 2 = 0, 'Ab', 'aB') FROM range(200)
            |""".stripMargin
        )
        def table = spark.table("hard_texts")
        Seq(
          "c = '7'",
          "c = '7     '",
          "v = '7'",
          "s = 'AB'",
          "c LIKE '7%'",
          "s LIKE 'a%'"
        ).foreach {
          condition =>
            assertSame(table.where(condition).selectExpr("id"))
            // Spark writes collated texts as ORC, and cannot read them.
            Try(table.where(condition).count()).foreach { count =>
              val truth = math.max(1L, count).toDouble
              val found = estimated(table.where(condition))
              assert(found <= truth * 12 && found >= truth / 12, s"$condition: $found, $truth")
            }
        }
        assertSame(spark.sql("SELECT count(*) FROM hard_texts a JOIN hard_texts b ON a.c = b.c"))
        assertSame(spark.sql("SELECT count(*) FROM hard_texts a JOIN hard_texts b ON a.s = b.s"))
        assertSame(
          spark.sql("SELECT s, count(*) FROM hard_texts GROUP BY s").selectExpr("count(1)")
        )
      } finally { val _ = spark.sql("DROP TABLE hard_texts") }
    }

  test("a column of a user-defined type") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      val schema = StructType(
        Seq(StructField("id", LongType), StructField("v", SQLDataTypes.VectorType))
      )
      val rows = (0L until 100L).map(i => Row(i, Vectors.dense(i.toDouble, 1.0)))
      spark.createDataFrame(rows.asJava, schema).write.parquet(target)
      def table = spark.read.parquet(target)
      assert(estimated(table.where("v IS NOT NULL AND id < 50")) == 50)
      assertSame(table.join(table.where("id < 9").selectExpr("id"), "id").selectExpr("string(v)"))
      assertSame(table.where("v IS NOT NULL").selectExpr("count(*)"))
    }
  }

  test("columns whose names differ in case only") {
    withFolder { folder =>
      withConf("spark.sql.caseSensitive" -> "true") {
        val target = folder.resolve("t").toString
        spark.range(100).selectExpr("id AS a", "id % 3 AS A").write.parquet(target)
        assertSame(spark.read.parquet(target).where("a = 50"))
        assertSame(spark.read.parquet(target).where("A = 2"))
      }
    }
  }

  test("2,000 columns: the first plan reads what it needs, the next ones nothing") {
    withFolder { folder =>
      val target = folder.resolve("t").toString
      val columns = (0 until 2000).map(i => s"id % ${i % 90 + 2} AS c$i")
      spark.range(0, 300, 1, 2).selectExpr(columns: _*).write.parquet(target)
      val table = spark.read.options(CountedFileSystem.options).parquet(s"counted:$target")
      val df = table.where("c7 = 3 AND c1900 < 5").groupBy("c12").count()
      def opened(): Int = {
        val before = CountedFileSystem.opened.get
        val plan = Plans.execution(df).optimizedPlan
        PlanningPass.start()
        PlanningPass.current.workOn(plan)
        assert(LeafStatistics.estimator.estimate(plan).nonEmpty)
        CountedFileSystem.opened.get - before
      }
      assert(opened() > 0)
      assert(Seq.fill(3)(opened()) == Seq(0, 0, 0))
      assertSame(table.where("c7 = 3 AND c1900 < 5").groupBy("c12").count())
    }
  }

  // ---- files --------------------------------------------------------------------------------

  private def damaged(format: String)(damage: Path => Unit)(): Unit = withFolder { folder =>
    val target = folder.resolve("t")
    spark
      .range(0, 4000, 1, 4)
      .selectExpr("id", "id % 50 AS k", "string(id % 70) AS s")
      .write
      .format(format)
      .save(target.toString)
    // Listed before the damage, so that what Selinger reads is not what it expects.
    val table = spark.read.format(format).load(target.toString)
    def queries: Seq[DataFrame] = Seq(
      table.where("s LIKE '%7%'").groupBy("k").count(),
      table.as("a").join(table.as("b"), "k").groupBy("k").count()
    )
    queries.foreach(df => Plans.execution(df).executedPlan)
    damage(target)
    uncheck(target)
    val expected = queries.map(df => stockAnswer()(df))
    // With what was known before, and with nothing.
    def assertSameAll(): Unit = queries.zip(expected).foreach { case (df, answer) =>
      Answer.difference(answer, Answer.of(df)).foreach(difference => fail(difference))
    }
    assertSameAll()
    FooterStore.clear()
    SampleStore.clear()
    assertSameAll()
    withConf(
      "spark.sql.files.ignoreCorruptFiles" -> "true",
      "spark.sql.files.ignoreMissingFiles" -> "true"
    ) {
      queries.indices.foreach(i => assertSame(queries(i)))
    }
  }

  /** Hadoop's local checksums would find all damage before the formats' readers do. */
  private def uncheck(folder: Path): Unit =
    if (Files.exists(folder)) {
      val paths = Files.list(folder)
      try paths.iterator.asScala.filter(_.toString.endsWith(".crc")).toSeq.foreach(Files.delete(_))
      finally paths.close()
    }

  private def cut(file: Path, to: Int => Int): Unit = {
    val bytes = Files.readAllBytes(file)
    val _ = Files.write(file, bytes.take(to(bytes.length)))
  }

  for (format <- Seq("parquet", "orc")) {
    Seq[(String, Path => Unit)](
      "one file is truncated" -> (folder => cut(files(folder)(1), _ / 2)),
      "one file has lost its last byte" -> (folder => cut(files(folder)(1), _ - 1)),
      "one file is emptied" -> (folder => cut(files(folder)(2), _ => 0)),
      "all files are noise" -> (folder =>
        files(folder).foreach { file =>
          val _ = Files.write(file, Files.readAllBytes(file).map(b => (b ^ 0x5a).toByte))
        }
      ),
      "one file has vanished" -> (folder => Files.delete(files(folder).head)),
      "all files have vanished" -> (folder => files(folder).foreach(Files.delete(_))),
      "the folder has vanished" -> { folder =>
        Files.list(folder).iterator.asScala.toSeq.foreach(Files.delete(_))
        Files.delete(folder)
      },
      "a folder has taken the place of a file" -> { folder =>
        val file = files(folder).head
        Files.delete(file)
        val _ = Files.createDirectory(file)
      }
    ).filter { case (name, _) => Grid.part(Seq("parquet", "orc"), 0.5, name).contains(format) }
      .foreach { case (name, damage) =>
        test(s"$format: $name")(damaged(format)(damage)())
      }

    test(s"$format: a file that was replaced in place, with the same length and another time") {
      withFolder { folder =>
        def write(name: String, first: Long): Path = {
          val target = folder.resolve(name)
          spark
            .range(first, first + 1000, 1, 1)
            .selectExpr("id", "id % 10 AS k")
            .write
            .format(format)
            .option("compression", "none")
            .save(target.toString)
          files(target).head
        }
        val old = write("old", 100000)
        // How many bytes numbers take depends on them.
        val (other, first) = Iterator
          .from(0)
          .take(50)
          .map(i => (write(s"new$i", 101000 + 64 * i), 101000 + 64 * i))
          .find { case (file, _) => Files.size(file) == Files.size(old) }
          .getOrElse(fail("no file has the same length"))
        def table = spark.read.format(format).load(folder.resolve("old").toString)
        def range = {
          PlanningPass.start()
          val plan = Plans.execution(table.where("id > 0")).optimizedPlan
          LeafStatistics.estimator.estimate(plan).toSeq.flatMap(_.columns.values.flatMap(_.max))
        }
        assert(range.max == 100999.0)
        Files.copy(other, old, java.nio.file.StandardCopyOption.REPLACE_EXISTING)
        uncheck(folder.resolve("old"))
        Files.setLastModifiedTime(old, FileTime.fromMillis(1234567000L))
        assert(range.max == first + 999.0)
        assertSame(table.where(s"id < ${first + 500}").groupBy("k").count())
      }
    }

    test(s"$format: empty files and hidden ones beside the data") {
      withFolder { folder =>
        val target = folder.resolve("t")
        spark.range(0, 1000, 1, 2).selectExpr(
          "id",
          "id % 9 AS k"
        ).write.format(format).save(target.toString)
        Files.createFile(target.resolve(s"part-99999.$format"))
        Files.write(target.resolve("_part-x"), Array[Byte](1, 2, 3))
        def table = spark.read.format(format).load(target.toString)
        assert(estimated(table) == 1000)
        assertSame(table.where("k = 4").groupBy("id").count())
      }
    }
  }

  test("a folder that may not be read") {
    withFolder { folder =>
      val target = folder.resolve("t")
      spark.range(0, 1000, 1, 2).selectExpr("id", "id % 9 AS k").write.parquet(target.toString)
      val table = spark.read.parquet(target.toString)
      def permit(allowed: Boolean): Unit = {
        val _ = target.toFile.setExecutable(allowed) && target.toFile.setReadable(allowed)
      }
      permit(false)
      try assertSame(table.where("k = 4").groupBy("id").count())
      finally permit(true)
    }
  }

  // ---- many at a time -----------------------------------------------------------------------

  test("queries planned and run on one relation from many threads") {
    withFolder { folder =>
      val target = folder.resolve("t")
      spark
        .range(0, 20000, 1, 8)
        .selectExpr("id", "id % 50 AS k", "string(id % 70) AS s")
        .write
        .parquet(target.toString)
      val table = spark.read.parquet(target.toString)
      val truth = table.where("s LIKE '%7%'").count()
      FooterStore.clear()
      SampleStore.clear()
      val failures = new java.util.concurrent.ConcurrentLinkedQueue[Throwable]()
      val threads = (1 to 8).map { i =>
        new Thread(() =>
          try {
            org.apache.spark.sql.SparkSession.setActiveSession(spark)
            (1 to 3).foreach { j =>
              val df = table
                .where(s"s LIKE '%7%' AND id >= 0 AND ${i * 10 + j} > 0")
                .as("a")
                .join(table.where(s"id < ${i * 1000}").as("b"), "id")
              assert(df.count() <= truth)
              val failed = Plans.decisions(df).filter(_.outcome == Outcome.Failed)
              assert(failed.isEmpty, failed)
            }
          } catch { case error: Throwable => val _ = failures.add(error) }
        )
      }
      threads.foreach(_.start())
      threads.foreach(_.join(120000))
      assert(threads.forall(!_.isAlive) && failures.isEmpty, failures)
    }
  }
}
