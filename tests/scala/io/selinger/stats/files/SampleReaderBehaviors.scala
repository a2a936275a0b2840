package io.selinger.stats.files

import io.selinger.testing.SharedSession
import java.nio.file.{Files, Path}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path => HadoopPath}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.CatalystTypeConverters
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable

/** Single rows that the reader of either file format finds are the rows that Spark reads. */
abstract class SampleReaderBehaviors(format: String, reader: SampleReader)
    extends AnyFunSuite
    with SharedSession {

  private def file(folder: Path): FileStatus = {
    val path = new HadoopPath(folder.toUri)
    FileSystem
      .get(path.toUri, new Configuration())
      .listStatus(path)
      .find(_.getPath.getName.startsWith("part-"))
      .getOrElse(fail("no file"))
  }

  protected def withData[A](df: DataFrame, options: (String, String)*)(
      body: (DataFrame, FileStatus) => A
  ): A = withFolder { folder =>
    val target = folder.resolve("data")
    df.write.format(format).options(options.toMap).save(target.toString)
    body(spark.read.format(format).load(target.toString), file(target))
  }

  protected def read(
      file: FileStatus,
      columns: Seq[StructField],
      rows: Int,
      group: Int = 0,
      window: Long = Long.MaxValue,
      deadline: Long = Long.MaxValue,
      neighbours: Boolean = true
  ): Map[String, Option[SampledChunk]] = {
    val found = mutable.Map.empty[String, Option[SampledChunk]]
    reader.read(
      file,
      new Configuration(),
      columns.map(ChunkRequest(group, rows, window, _, neighbours)),
      deadline
    )((request, chunk) => found.update(request.column.name, chunk))
    found.toMap
  }

  protected def values(chunk: Option[SampledChunk]): Seq[Any] =
    chunk.map(_.values).getOrElse(fail("not sampled"))

  /** As the values of a sample are: Catalyst's, arrays by their content. */
  protected def truth(df: DataFrame, column: StructField): Seq[Any] = {
    val convert = CatalystTypeConverters.createToCatalystConverter(column.dataType)
    df.select(column.name).collect().toSeq.map(row => comparable(convert(row.get(0))))
  }

  protected def comparable(value: Any): Any = value match {
    case bytes: Array[Byte] => bytes.toSeq
    case other => other
  }

  private val types = Seq(
    "tinyint(id % 100) AS b",
    "smallint(id) AS sh",
    "int(id) AS i",
    "id AS l",
    "float(id) / 3 AS f",
    "if(id % 7 = 0, double('NaN'), if(id % 7 = 1, -0.0D, double(id) / 3)) AS d",
    "id % 2 = 0 AS bo",
    "cast(id - 250.25 AS decimal(5,2)) AS d5",
    "cast(id * 1000000 - 0.0001BD AS decimal(18,4)) AS d18",
    "cast(-id * 1000000000000 AS decimal(38,18)) AS d38",
    "string(id * 7) AS s",
    "repeat('ä', cast(id % 4 AS int)) AS dictionary",
    "cast(string(id) AS binary) AS bin",
    "date_add(date'1965-03-01', cast(id * 40 AS int)) AS dt",
    "timestamp_micros(-60000000001 + id * 3600000001) AS ts",
    "timestamp_ntz'1965-03-01 12:30:00.123456' + make_dt_interval(id) AS ntz",
    // Before calendars changed, and before clocks were set by zones.
    "date_add(date'0900-03-01', cast(id * 900 AS int)) AS old",
    "timestamp'0900-03-01 00:00:01' + make_dt_interval(id * 900) AS ancient",
    "timestamp'1870-03-01 00:00:01' + make_dt_interval(id * 40) AS local"
  )

  Seq("without nulls" -> "%s", "with nulls" -> "if(id %% 5 = 2, null, %s)").foreach {
    case (name, form) =>
      test(s"all rows of every type, $name, are what Spark reads") {
        val columns = types.map { column =>
          val (value, name) = column.splitAt(column.lastIndexOf(" AS "))
          form.format(value) + name
        }
        withData(spark.range(0, 500, 1, 1).selectExpr(columns: _*)) { (df, file) =>
          val found = read(file, df.schema, rows = 1000)
          df.schema.foreach { column =>
            val sampled = values(found(column.name)).map(comparable)
            assert(sampled.zip(truth(df, column)).forall { case (x, y) => same(x, y) }, column)
            assert(sampled.size == 500)
          }
        }
      }
  }

  private def same(x: Any, y: Any): Boolean = (x, y) match {
    case (a: Double, b: Double) => java.lang.Double.compare(a, b) == 0
    case (a: Float, b: Float) => java.lang.Float.compare(a, b) == 0
    case _ => x == y
  }

  test("some rows of all columns are the same rows, from everywhere, at every call") {
    withData(spark.range(0, 50000, 1, 1).selectExpr("id", "id * 2 AS twice", "string(id) AS s")) {
      (df, file) =>
        val found = read(file, df.schema, rows = 100)
        val ids = values(found("id")).collect { case id: Long => id }
        assert(ids.size == 100 && ids == ids.sorted)
        assert(ids.map(_ / 500) == (0 until 100))
        assert(values(found("twice")) == ids.map(_ * 2))
        assert(values(found("s")).map(_.toString) == ids.map(_.toString))
        assert(found("id").exists(_.covered == 50000))
        assert(values(read(file, df.schema, rows = 100)("id")) == ids)
    }
  }

  test("some rows come with the rows next to them, the same in all columns") {
    withData(spark.range(0, 50000, 1, 1).selectExpr("id", "string(id) AS s")) { (df, file) =>
      // One row in 500, one in three, and all of them.
      Seq(100, 16000, 50000).foreach { rows =>
        val found = read(file, df.schema, rows)
        val pairs = found("id").toSeq.flatMap(_.neighbours).collect { case id: Long => id }
        assert(pairs.size >= rows / 8 * 2 - 2)
        assert(pairs.grouped(2).forall(pair => pair.last == pair.head + 1))
        assert(found("s").toSeq.flatMap(_.neighbours).map(_.toString) == pairs.map(_.toString))
        val ids = values(found("id"))
        assert(ids.size == rows && ids.distinct == ids)
        assert(pairs.grouped(2).map(_.head).toSet.subsetOf(ids.toSet[Any].collect { case id: Long =>
          id
        }))
      }
    }
  }

  test("nested columns, and those of another type or name, are left out; the others are read") {
    withData(spark.range(0, 100, 1, 1).selectExpr(
      "id",
      "array(id) AS list",
      "struct(id AS x) AS p"
    )) {
      (df, file) =>
        val columns = df.schema ++ Seq(
          StructField("missing", LongType),
          StructField("ID", StringType)
        )
        val found = read(file, columns, rows = 10)
        assert(found("list").isEmpty && found("p").isEmpty && found("missing").isEmpty)
        assert(found("ID").isEmpty && found("id").isDefined)
    }
  }

  test("a column is found whatever the case of its name") {
    withData(spark.range(0, 10, 1, 1).selectExpr("id AS MixedCase")) { (_, file) =>
      val found = read(file, Seq(StructField("mixedcase", LongType)), rows = 20)
      assert(values(found("mixedcase")) == (0L until 10L))
    }
  }

  test("a wider type than the file's is read as Spark reads it") {
    withData(spark.range(0, 10, 1, 1).selectExpr("int(id) AS i")) { (_, file) =>
      val found = read(file, Seq(StructField("i", LongType)), rows = 20)("i")
      // Either as the wider type, or not at all.
      assert(found.forall(_.values == (0L until 10L)))
    }
  }

  test("long texts are left out") {
    withData(spark.range(0, 500, 1, 1).selectExpr("repeat(uuid(), 1000) AS s", "id")) {
      (df, file) =>
        val found = read(file, df.schema, rows = 500)
        assert(found("s").isEmpty && found("id").isDefined)
    }
  }

  test("nothing is read after the deadline") {
    withData(spark.range(0, 10, 1, 1).toDF()) { (df, file) =>
      assert(read(file, df.schema, rows = 10, deadline = System.nanoTime() - 1).isEmpty)
    }
  }

  Seq[(String, Path => Unit)](
    "truncated" -> { file =>
      val bytes = Files.readAllBytes(file)
      val _ = Files.write(file, bytes.take(bytes.length / 2))
    },
    "vanished" -> (file => Files.delete(file))
  ).foreach { case (name, damage) =>
    test(s"a $name file raises") {
      withData(spark.range(0, 1000, 1, 1).toDF()) { (df, file) =>
        damage(Path.of(file.getPath.toUri))
        val _ = intercept[Exception](read(file, df.schema, rows = 10))
      }
    }
  }

  test("places are in order, different, and one in each part") {
    for (count <- Seq(1, 7, 100, 999); rows <- Seq(1L, 100L, 1000L, 1000000L)) {
      val places = SampleReader.places(count, rows, seed = 3).toSeq
      assert(places == places.sorted && places.distinct.size == places.size)
      assert(places.size == math.min(count.toLong, rows) && places.forall(p => p >= 0 && p < rows))
    }
  }
}
