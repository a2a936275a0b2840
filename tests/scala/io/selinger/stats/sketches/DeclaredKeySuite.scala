package io.selinger.stats.sketches

import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.rule.EliminateJoins
import io.selinger.stats.keys.{KeyFacts, WholeColumns}
import io.selinger.stats.relations.FileRelation
import io.selinger.testing.{Plans, SharedSession}
import java.nio.file.{Files, Path}
import org.apache.spark.sql.{DataFrame, Row}
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join}
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._

/** Keys that a user declares: that the job finds what is wrong, and for which files they count. */
class DeclaredKeySuite extends AnyFunSuite with SharedSession {

  // What planning could read by itself does not count here.
  override protected def ofSuite: Seq[(String, String)] =
    SharedSession.interpreted :+ (SelingerConf.KEYS_MAX_ROWS.key -> "0")

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    SketchStore.clear()
    WholeColumns.clear()
  }

  /** A folder for data and one for the store. */
  private def withStore(body: (Path, Path) => Any): Unit = withFolder { folder =>
    val store = folder.resolve("store")
    withConf(SelingerConf.STATS_LOCATION.key -> store.toString) {
      val _ = body(folder.resolve("t"), store)
    }
  }

  private def declare(target: Any, columns: String*): Row =
    spark
      .sql(s"SELECT * FROM selinger_declare_key('$target', '${columns.mkString(",")}')")
      .head()

  private def keys(target: Any): Seq[Row] =
    spark.sql(s"SELECT * FROM selinger_keys('$target')").collect().toSeq

  private def columnsOf(key: Row): Seq[String] = key.getSeq[String](key.fieldIndex("columns"))

  private def refuses(target: Any, columns: String*)(parts: String*): Assertion = {
    val error = intercept[Exception](declare(target, columns: _*))
    parts.foreach(part => assert(error.getMessage.contains(part)))
    SketchStore.clear()
    assert(keys(target).isEmpty, "nothing is kept")
  }

  /** What is proven of columns of a scan, as a new driver would see it. */
  private def facts(scan: DataFrame, columns: String*): Option[KeyFacts] = {
    SketchStore.clear()
    PlanningPass.start()
    Plans.execution(scan).optimizedPlan.collectFirst { case FileRelation(relation) =>
      val named = columns.map(name => relation.plan.output.find(_.name == name).get)
      WholeColumns.facts(relation, named)
    }.get
  }

  private def withTable(name: String)(body: => Any): Unit =
    try { val _ = body }
    finally { val _ = spark.sql(s"DROP TABLE IF EXISTS $name") }

  private def files(folder: Path, suffix: String): Seq[Path] = {
    val paths = Files.walk(folder)
    try paths.iterator.asScala.filter(_.toString.endsWith(suffix)).toSeq
    finally paths.close()
  }

  Seq("parquet", "orc").foreach { format =>
    test(s"a key is believed of just the files that were checked: $format") {
      withStore { (data, _) =>
        def scan = spark.read.format(format).load(data.toString)
        spark.range(0, 1000, 1, 3).write.format(format).save(data.toString)
        assert(facts(scan, "id").isEmpty)
        val row = declare(data, "id")
        assert(row.toSeq.slice(1, 6) == Seq[Any](Seq("id"), 3, 1000L, 0L, true))
        assert(facts(scan, "id").contains(KeyFacts(true, false, Some(0L -> 999L))))
        spark.range(500, 501).write.format(format).mode("append").save(data.toString)
        assert(facts(scan, "id").isEmpty)
        assert(keys(data).map(_.getAs[Boolean]("current")) == Seq(false))
        val error = intercept[Exception](declare(data, "id"))
        assert(
          error.getMessage.contains("1 of its values are in more than one row, such as id = 500")
        )
        assert(facts(scan, "id").isEmpty)
      }
    }
  }

  test(
    "a file that is gone, or was written anew, makes the key unknown until it is declared again"
  ) {
    withStore { (data, _) =>
      spark.range(0, 300, 1, 3).write.parquet(data.toString)
      declare(data, "id")
      Files.delete(files(data, ".parquet").head)
      assert(facts(spark.read.parquet(data.toString), "id").isEmpty)
      declare(data, "id")
      assert(facts(spark.read.parquet(data.toString), "id").exists(_.isUnique))
      assert(keys(data).size == 1, "the older one is gone")
      val file = files(data, ".parquet").head
      Files.setLastModifiedTime(file, java.nio.file.attribute.FileTime.fromMillis(1000000000L))
      assert(facts(spark.read.parquet(data.toString), "id").isEmpty)
    }
  }

  test("keys of several columns, and of more columns than were declared") {
    withStore { (data, _) =>
      spark
        .range(1000)
        .selectExpr("id DIV 10 AS a", "string(id % 10) AS b", "id % 7 AS c", "decimal(id) AS d")
        .write
        .parquet(data.toString)
      def scan = spark.read.parquet(data.toString)
      refuses(data, "a")("100 of its values are in more than one row, such as a =", "10 rows")
      declare(data, "B", "a")
      assert(facts(scan, "a", "b").contains(KeyFacts(true, false, None)))
      assert(facts(scan, "b", "c", "a").contains(KeyFacts(true, true, None)))
      assert(facts(scan, "a").isEmpty && facts(scan, "b", "c").isEmpty)
      declare(data, "d")
      assert(facts(scan, "d").contains(KeyFacts(true, false, None)))
      assert(keys(data).map(columnsOf).toSet == Set(Seq("a", "b"), Seq("d")))
    }
  }

  test("nulls are left aside, counted, and no numbers") {
    withStore { (data, _) =>
      spark.range(100).selectExpr(
        "if(id < 10, null, id) AS k",
        "id AS n"
      ).write.parquet(data.toString)
      assert(declare(data, "k").toSeq.slice(3, 6) == Seq[Any](100L, 10L, true))
      assert(facts(
        spark.read.parquet(data.toString),
        "k"
      ).contains(KeyFacts(true, true, Some(10L -> 99L))))
      assert(declare(data, "k", "n").getAs[Long]("nulls") == 10L)
    }
    withStore { (data, _) =>
      spark.range(5).selectExpr("bigint(null) AS k").write.parquet(data.toString)
      assert(declare(data, "k").toSeq.slice(3, 6) == Seq[Any](5L, 5L, false))
      spark.range(0).selectExpr("id AS k").write.mode("overwrite").parquet(data.toString)
      assert(declare(data, "k").toSeq.slice(3, 6) == Seq[Any](0L, 0L, false))
    }
  }

  test("numbers of which one is missing are not consecutive") {
    withStore { (data, _) =>
      spark.range(10).where("id <> 4").write.parquet(data.toString)
      assert(!declare(data, "id").getAs[Boolean]("consecutive"))
      val ends = s"SELECT id FROM VALUES (${Long.MinValue}L), (${Long.MaxValue}L) AS t(id)"
      spark.sql(ends).write.mode("overwrite").parquet(data.toString)
      assert(!declare(data, "id").getAs[Boolean]("consecutive"))
    }
  }

  test("types whose equal values may differ, and unknown columns, are refused") {
    withStore { (data, _) =>
      spark
        .sql(
          "SELECT id, double(id) AS d, timestamp_micros(id) AS at, string(id) COLLATE UTF8_LCASE AS s, " +
            "array(id) AS list, date_add(date'1582-10-10', int(id)) AS day FROM range(9)"
        )
        .write
        .parquet(data.toString)
      refuses(data, "d")("d is of type double")
      refuses(data, "at")("at is of type timestamp")
      refuses(data, "s")("s is of type string collate UTF8_LCASE")
      refuses(data, "list")("list is of type array<bigint>")
      refuses(data, "day")("day has days before 1582-10-15")
      refuses(data, "none")("it has no column none; it has id, d, at")
      refuses(data, "id", "ID")("id is named twice")
      refuses(data)("columns is empty")
    }
  }

  test("what is missing is said: a place for keys, columns, a table") {
    val missing = intercept[Exception](declare("nowhere", "id"))
    assert(missing.getMessage.contains(SelingerConf.STATS_LOCATION.key))
    withStore { (data, _) =>
      val none =
        intercept[Exception](spark.sql(s"SELECT * FROM selinger_declare_key('$data')").head())
      assert(none.getMessage.contains("columns is missing"))
      val nothing = intercept[Exception](declare(data, "id"))
      assert(nothing.getMessage.contains("there is no such table, view or path"))
      spark.range(9).write.parquet(data.toString)
      withConf("spark.sql.caseSensitive" -> "true") {
        val error = intercept[Exception](declare(data, "id"))
        assert(error.getMessage.contains("spark.sql.caseSensitive is true"))
      }
    }
  }

  test("a file that cannot be read is an error, whatever the session allows") {
    withStore { (data, _) =>
      spark.range(0, 100, 1, 2).write.parquet(data.toString)
      declare(data, "id")
      spark.read.parquet(data.toString).createOrReplaceTempView("damaged")
      val file = files(data, ".parquet").head
      Files.delete(file.resolveSibling(s".${file.getFileName}.crc"))
      Files.write(file, "no Parquet at all".getBytes)
      withConf("spark.sql.files.ignoreCorruptFiles" -> "true") {
        assert(spark.table("damaged").count() == 50)
        val error = intercept[Exception](declare("damaged", "id"))
        assert(error.getMessage.contains("FAILED_READ_FILE"))
      }
    }
  }

  test(
    "columns that are read as another type, by ids, or by names that depend on case, are not believed"
  ) {
    withStore { (data, _) =>
      spark.range(256).selectExpr("int(id) AS id").write.parquet(data.toString)
      declare(data, "id")
      def scan = spark.read.schema("id int").parquet(data.toString)
      assert(facts(scan, "id").isDefined)
      assert(facts(spark.read.schema("id bigint").parquet(data.toString), "id").isEmpty)
      Seq("spark.sql.caseSensitive", "spark.sql.parquet.fieldId.read.enabled").foreach { conf =>
        withConf(conf -> "true")(assert(facts(scan, "id").isEmpty, conf))
      }
      withConf(SelingerConf.switchOf(UseCollectedStatistics).key -> "false") {
        assert(facts(scan, "id").isEmpty)
      }
    }
  }

  test("a key of all partitions counts for some of them, but not as consecutive numbers") {
    withStore { (data, _) =>
      spark
        .range(100)
        .selectExpr("id", "id % 10 AS n", "int(id DIV 10) AS p")
        .write
        .partitionBy("p")
        .parquet(data.toString)
      refuses(data, "n")("10 of its values")
      refuses(data, "id", "p")("p is in no file")
      declare(data, "id")
      def scan = spark.read.parquet(data.toString).where("p = 3")
      assert(facts(scan, "id").contains(KeyFacts(true, false, Some(0L -> 99L))))
      // It lists the files of one partition.
      withConf("spark.sql.sources.useV1SourceList" -> "")(assert(facts(scan, "id").isEmpty))
    }
  }

  test("a partitioned table of the catalog is refused, since Spark does not list all its files") {
    withStore { (data, _) =>
      withTable("parted") {
        spark.sql(
          s"CREATE TABLE parted (id BIGINT, p INT) USING parquet PARTITIONED BY (p) LOCATION '$data'"
        )
        spark.sql("INSERT INTO parted SELECT id, 1 FROM range(9)")
        refuses("parted", "id")(
          "it is a table of the catalog with partitions",
          "Declare the key of its path"
        )
        declare(data, "id")
        assert(facts(spark.read.parquet(data.toString), "id").isDefined)
      }
    }
  }

  test("a list of files that is old is not that of the key, and the result says so") {
    withStore { (data, _) =>
      spark.range(9).write.parquet(data.toString)
      val before = spark.read.parquet(data.toString)
      before.createOrReplaceTempView("listed")
      spark.range(9, 12).write.mode("append").parquet(data.toString)
      val key = declare("listed", "id")
      assert(key.getAs[Long]("rows") == 12L && !key.getAs[Boolean]("current"))
      assert(facts(before, "id").isEmpty)
      assert(facts(spark.read.parquet(data.toString), "id").isDefined)
      spark.range(5, 6).write.mode("append").parquet(data.toString)
      val error = intercept[Exception](declare("listed", "id"))
      assert(error.getMessage.contains("such as id = 5"), "the new file is read, too")
    }
  }

  test("columns with a default for files that lack them are refused, and not believed") {
    withStore { (data, _) =>
      withTable("early") {
        spark.sql(s"CREATE TABLE early (id INT) USING parquet LOCATION '$data'")
        spark.sql("INSERT INTO early VALUES (1), (2)")
        spark.sql("ALTER TABLE early ADD COLUMN k INT DEFAULT 7")
        spark.sql("INSERT INTO early VALUES (3, 8), (4, 9)")
        assert(spark.table("early").where("k = 7").count() == 2)
        refuses("early", "k")("k has a default for rows of files that lack it")
        val plain = spark.read.schema("id INT, k INT").parquet(data.toString)
        plain.createOrReplaceTempView("plain")
        assert(declare("plain", "k").getAs[Long]("nulls") == 2L)
        assert(facts(plain, "k").isDefined)
        assert(facts(spark.table("early"), "k").isEmpty)
      }
    }
  }

  test("files whose columns are found by their places, or by ids, are refused") {
    withStore { (data, _) =>
      spark.range(9).selectExpr("id AS _col0", "id % 3 AS _col1").write.orc(data.toString)
      spark.read.schema("a BIGINT, b BIGINT").orc(data.toString).createOrReplaceTempView("places")
      assert(spark.table("places").where("a = 8").count() == 1)
      refuses("places", "a")("columns of its ORC files are found by their places")
    }
    withStore { (data, _) =>
      spark.range(9).write.parquet(data.toString)
      withConf("spark.sql.parquet.fieldId.read.enabled" -> "true") {
        val error = intercept[Exception](declare(data, "id"))
        assert(error.getMessage.contains("spark.sql.parquet.fieldId.read.enabled is true"))
      }
    }
  }

  test("the check does not believe what was declared before") {
    withStore { (data, _) =>
      // Files of the same length: each value takes eight bytes.
      def write(keys: String, path: String) =
        spark
          .range(0, 100, 1, 1)
          .selectExpr(s"$keys AS id")
          .write
          .options(Map(
            "compression" -> "none",
            "parquet.enable.dictionary" -> "false",
            "parquet.page.write-checksum.enabled" -> "false"
          ))
          .parquet(path)
      write("if(id < 0, 51, id)", data.toString)
      write("if(id = 50, 51, id)", s"$data-twice")
      declare(data, "id")
      val file = files(data, ".parquet").head
      val (time, length) = (Files.getLastModifiedTime(file), Files.size(file))
      // The same path, length and time, as a careless copy leaves them.
      Files.delete(file.resolveSibling(s".${file.getFileName}.crc"))
      Files.write(file, Files.readAllBytes(files(Path.of(s"$data-twice"), ".parquet").head))
      Files.setLastModifiedTime(file, time)
      assert(Files.size(file) == length)
      val error = intercept[Exception](declare(data, "id"))
      assert(error.getMessage.contains("such as id = 51, which is in 2 rows"))
    }
  }

  test("a key of two columns leaves out a DISTINCT") {
    withStore { (data, _) =>
      spark.range(3000).selectExpr("id DIV 30 AS a", "id % 30 AS b").write.parquet(data.toString)
      def grouped = Plans
        .execution(spark.read.parquet(data.toString).dropDuplicates("a", "b"))
        .optimizedPlan
        .exists(_.isInstanceOf[Aggregate])
      assert(grouped)
      declare(data, "a", "b")
      assert(!grouped)
    }
  }

  test("a damaged key file, and one of a later version, are left out") {
    withStore { (data, store) =>
      spark.range(9).write.parquet(data.toString)
      for (
        change <- Seq[String => String](
          _.replace("\"format\":1", "\"format\":2"),
          _.replace("digest", "other"),
          _.replace("\"rows\"", "}"),
          _ => ""
        )
      ) {
        declare(data, "id")
        assert(facts(spark.read.parquet(data.toString), "id").isDefined)
        val file = files(store, ".key").head
        val text = Files.readString(file)
        Files.delete(file.resolveSibling(s".${file.getFileName}.crc"))
        Files.write(file, change(text).getBytes)
        assert(facts(spark.read.parquet(data.toString), "id").isEmpty, change(text))
        spark.sql(s"SELECT * FROM selinger_forget('$data')").collect()
        assert(files(store, ".key").isEmpty)
      }
    }
  }

  test("forget deletes the keys of a relation, and those of some columns") {
    withStore { (data, _) =>
      spark.range(9).selectExpr("id", "id AS other").write.parquet(data.toString)
      declare(data, "id")
      declare(data, "other")
      def forget(more: String) =
        spark.sql(s"SELECT * FROM selinger_forget('$data'$more)").head().getInt(1)
      assert(forget(", 'id'") == 1)
      assert(keys(data).map(columnsOf) == Seq(Seq("other")))
      assert(forget("") == 1)
      assert(keys(data).isEmpty)
    }
  }

  test(
    "a join with a large table is left out by its declared key, and comes back with a duplicate"
  ) {
    withStore { (data, _) =>
      spark.range(2000).selectExpr("id", "string(id) AS s").write.parquet(data.toString)
      spark.range(100).selectExpr("id", "id AS k").createOrReplaceTempView("rows")
      def query = spark.sql(s"SELECT r.id FROM rows r LEFT JOIN parquet.`$data` d ON r.k = d.id")
      def joins = Plans.execution(query).optimizedPlan.collect { case _: Join => 1 }.size
      assert(joins == 1)
      assert(Plans.decisions(
        query,
        EliminateJoins.id
      ).map(_.reason) == Seq(EliminateJoins.KeyNotProven))
      declare(data, "id")
      assert(joins == 0)
      spark.range(3, 4).selectExpr("id", "'again' AS s").write.mode("append").parquet(data.toString)
      assert(joins == 1)
      assert(query.count() == 101)
    }
  }
}
