package io.selinger.stats.files

import io.selinger.stats.FileFooter
import io.selinger.testing.SharedSession
import java.nio.file.{Files, Path}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path => HadoopPath}
import org.apache.spark.sql.DataFrame
import org.scalatest.funsuite.AnyFunSuite

/** What the reader of either file format must do. Truth is what Spark computes from the same data. */
abstract class FooterReaderBehaviors(format: String, reader: FooterReader)
    extends AnyFunSuite
    with SharedSession {
  import FooterReaderBehaviors._

  protected def footersOf(folder: Path): Seq[FileFooter] =
    filesOf(folder).map(reader.read(_, new Configuration()))

  protected def filesOf(folder: Path): Seq[FileStatus] = {
    val path = new HadoopPath(folder.toUri)
    FileSystem
      .get(path.toUri, new Configuration())
      .listStatus(path)
      .toSeq
      .filter(_.getPath.getName.startsWith("part-"))
  }

  protected def write(df: DataFrame, folder: Path, options: (String, String)*): Path = {
    val target = folder.resolve("data")
    df.write.format(format).options(options.toMap).save(target.toString)
    target
  }

  /** One file of these columns, with 500 rows. */
  protected def withColumns[A](columns: String*)(body: FileFooter => A): A = withFolder { folder =>
    body(footersOf(write(spark.range(0, 500, 1, 1).selectExpr(columns: _*), folder)).head)
  }

  /** What Spark computes, all in one query. */
  private def truth(folder: Path, expressions: Seq[String]): Seq[Double] = {
    val table = spark.read.format(format).load(folder.toString)
    val row = table.selectExpr(expressions.map(e => s"cast($e as double)"): _*).head()
    expressions.indices.map(row.getDouble)
  }

  test("reads rows, nulls and ranges of every type with an axis as Spark computes them") {
    withFolder { folder =>
      val df = spark.range(0, 500, 1, 1).selectExpr(typed.map(t => s"${t.value} AS ${t.name}"): _*)
      val target = write(df, folder)
      val footer = footersOf(target).head
      assert(footer.rows == 500)
      assert(footer.columns.keySet == typed.map(_.name).toSet)
      val nulls = truth(target, typed.map(t => s"count_if(${t.name} IS NULL)"))
      val least = truth(target, typed.map(t => s"min(${t.onAxis})"))
      val most = truth(target, typed.map(t => s"max(${t.onAxis})"))
      typed.zipWithIndex.foreach { case (t, i) =>
        val column = footer.columns(t.name)
        assert(column.nulls.contains(nulls(i).toLong), t.name)
        assertClose(column.min, least(i), t.name)
        assertClose(column.max, most(i), t.name)
      }
    }
  }

  private def assertClose(found: Option[Double], expected: Double, name: String): Unit = {
    assert(
      found.exists(value => math.abs(value - expected) <= math.abs(expected) * 1e-12),
      s"$name: $found, $expected"
    )
    ()
  }

  test("types without an axis have a width and no range") {
    withColumns(
      "string(id) AS s",
      "cast(string(id) AS binary) AS bytes",
      "array(id, id + 1) AS list",
      "struct(id AS x, string(id) AS y) AS pair",
      "map(string(id), id) AS entries"
    ) { footer =>
      footer.columns.foreach { case (name, column) =>
        assert(column.min.isEmpty && column.max.isEmpty, name)
        assert(column.averageBytes.forall(_ > 0), name)
      }
      assert(footer.columns.keySet == Set("s", "bytes", "list", "pair", "entries"))
    }
  }

  test("a list is as wide as all its elements, a struct as all its fields") {
    withColumns(
      "sequence(id * 1000, id * 1000 + 99) AS various",
      "array_repeat(7L, 100) AS equal",
      "struct(id AS a, id * 7 AS b, id * 11 AS c, id * 13 AS d) AS fields"
    ) { footer =>
      def width(name: String) = footer.columns(name).averageBytes
      // A list that is not known to be long may be taken as the type's usual size, 800 is the truth.
      assert(width("various").forall(_ >= 400))
      assert(width("equal").forall(_ >= 400))
      assert(width("fields").forall(_ >= 32))
    }
  }

  test("a column of nulls has nulls and no range") {
    withColumns(
      "cast(null AS int) AS i",
      "cast(null AS string) AS s",
      "cast(null AS decimal(38,18)) AS d"
    ) {
      footer =>
        footer.columns.values.foreach { column =>
          assert(column.nulls.contains(500L))
          assert(column.min.isEmpty && column.max.isEmpty)
        }
    }
  }

  // Where a value has no place, a range that leaves out the others would be wrong.
  Seq(
    "NaN first" -> "if(id = 0, double('NaN'), double(id))",
    "NaN last" -> "if(id = 499, double('NaN'), double(id))",
    "only NaN" -> "double('NaN')",
    "NaN floats" -> "float(if(id % 7 = 0, double('NaN'), double(id)))"
  ).foreach { case (name, value) =>
    test(s"$name: no range, or that of the numbers") {
      withColumns(s"$value AS d") { footer =>
        val column = footer.columns("d")
        assert(!column.min.exists(_.isNaN) && !column.max.exists(_.isNaN))
        assert(column.min.forall(_ <= 1.0) && column.max.forall(_ >= 498.0))
        assert(column.nulls.contains(0L))
      }
    }
  }

  test("infinities and both zeros are numbers like others") {
    withColumns(
      "if(id = 3, double('Infinity'), if(id = 4, double('-Infinity'), 1.0D)) AS far",
      "if(id % 2 = 0, 0.0D, -0.0D) AS zero"
    ) { footer =>
      val (far, zero) = (footer.columns("far"), footer.columns("zero"))
      assert(far.min.contains(Double.NegativeInfinity) && far.max.contains(Double.PositiveInfinity))
      assert(zero.min.exists(_ == 0.0) && zero.max.exists(_ == 0.0))
    }
  }

  test("values at the limits of their types") {
    withColumns(
      s"if(id = 0, ${Long.MinValue + 1}, ${Long.MaxValue}) AS l",
      "if(id = 0, -99999999999999999999.999999999999999999BD, 99999999999999999999.999999999999999999BD) AS d"
    ) {
      footer =>
        assert(footer.columns("l").min.contains(Long.MinValue.toDouble))
        assert(footer.columns("l").max.contains(Long.MaxValue.toDouble))
        assert(footer.columns("d").min.contains(-1e20) && footer.columns("d").max.contains(1e20))
    }
  }

  test("an empty file has no rows and no ranges") {
    withFolder { folder =>
      val target = write(spark.range(0, 0, 1, 1).selectExpr("id", "string(id) AS s"), folder)
      footersOf(target).foreach { footer =>
        assert(footer.rows == 0)
        assert(footer.columns.values.forall(column =>
          column.min.isEmpty && column.averageBytes.isEmpty
        ))
      }
    }
  }

  test("columns are kept under lower-case names") {
    withColumns("id AS MixedCase")(footer => assert(footer.columns.keySet == Set("mixedcase")))
  }

  test("a table of 2,000 columns") {
    withFolder { folder =>
      val columns = (0 until 2000).map(i => s"id + $i AS c$i")
      val footer = footersOf(write(spark.range(0, 3, 1, 1).selectExpr(columns: _*), folder)).head
      assert(footer.columns.size == 2000)
      assert(footer.columns("c1999").max.contains(2001.0))
    }
  }

  private def withFile(damage: Path => Unit)(body: FileStatus => Unit): Unit =
    withFolder { folder =>
      val file = filesOf(write(spark.range(0, 500, 1, 1).toDF(), folder)).head
      damage(Path.of(file.getPath.toUri))
      body(file)
    }

  private def changed(change: Array[Byte] => Array[Byte])(file: Path): Unit = {
    val _ = Files.write(file, change(Files.readAllBytes(file)))
  }

  Seq[(String, Path => Unit)](
    "truncated" -> changed(bytes => bytes.take(bytes.length / 2)),
    "emptied" -> changed(_ => Array.emptyByteArray),
    "overwritten with noise" -> changed(bytes => bytes.map(b => (b ^ 0x5a).toByte)),
    "deleted" -> (file => Files.delete(file))
  ).foreach { case (name, damage) =>
    test(s"a file that was $name raises") {
      withFile(damage) { file =>
        val _ = intercept[Exception](reader.read(file, new Configuration()))
      }
    }
  }
}

object FooterReaderBehaviors {

  /** A column, and the place of its values on the axis of statistics, both as Spark SQL. */
  final case class Typed(name: String, value: String, onAxis: String)

  private def plain(name: String, kind: String, value: String) =
    Typed(name, s"cast(if(id % 7 = 3, null, $value) AS $kind)", s"cast($name AS double)")

  val typed: Seq[Typed] = Seq(
    plain("b", "byte", "id % 100 - 50"),
    plain("sh", "short", "id * 60 - 15000"),
    plain("i", "int", "id * 4000000 - 1000000000"),
    plain("l", "bigint", "id * 10000000000 - 7"),
    plain("f", "float", "id / 8 - 20"),
    plain("d", "double", "id * 1.25D - 100"),
    plain("d5", "decimal(5,2)", "id - 250.25BD"),
    plain("d18", "decimal(18,4)", "id * 1000000 - 0.0001BD"),
    plain("d38", "decimal(38,18)", "id * 1000000000000 - 0.000000000000000001BD"),
    plain("bo", "boolean", "id % 2 = 0").copy(onAxis = "cast(cast(bo AS int) AS double)"),
    Typed(
      "dt",
      "if(id % 5 = 1, null, date_add(date'1965-03-01', cast(id * 40 AS int)))",
      "unix_date(dt)"
    ),
    Typed(
      "ntz",
      "if(id % 5 = 2, null, timestamp_ntz'1965-03-01 12:30:00.123456' + make_dt_interval(id))",
      "unix_micros(cast(ntz AS timestamp))"
    )
  )
}
