package io.selinger.stats.orc

import io.selinger.stats.{ChunkCount, ChunkDistinct}
import io.selinger.stats.files.DistinctRequest
import io.selinger.testing.SharedSession
import java.nio.file.{Files, Path}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path => HadoopPath}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable

/** Sizes of dictionaries in ORC stripes. Truth is what Spark counts. */
class OrcDictionariesSuite extends AnyFunSuite with SharedSession {

  private def withColumns[A](rows: Long, options: (String, String)*)(columns: String*)(
      body: (Path, FileStatus) => A
  ): A = withFolder { folder =>
    val target = folder.resolve("data")
    spark
      .range(0, rows, 1, 1)
      .selectExpr(columns: _*)
      .write
      .options(options.toMap)
      .orc(target.toString)
    val path = new HadoopPath(target.toUri)
    val files = FileSystem.get(path.toUri, new Configuration()).listStatus(path)
    body(target, files.find(_.getPath.getName.startsWith("part-")).getOrElse(fail("no file")))
  }

  private def counted(
      file: FileStatus,
      columns: Seq[String],
      groups: Seq[Int] = Seq(0),
      deadline: Long = Long.MaxValue
  ): Map[String, Seq[ChunkCount]] = {
    val found = mutable.Map.empty[String, Seq[ChunkCount]].withDefaultValue(Nil)
    OrcDictionaries.read(
      file,
      new Configuration(),
      groups.map(DistinctRequest(_, columns)),
      deadline
    )((_, name, count) => found(name) = found(name) :+ count)
    found.toMap
  }

  test("counts what Spark counts of texts") {
    withColumns(20000)(
      "string(id % 50) AS Few",
      "if(id % 5 = 0, null, concat('text ', id % 300)) AS with_nulls",
      "cast(null AS string) AS nothing"
    ) { (folder, file) =>
      val found = counted(file, Seq("few", "with_nulls", "nothing"))
      val df = spark.read.orc(folder.toString)
      Seq("few", "with_nulls").foreach { name =>
        val truth = df.selectExpr(s"count(DISTINCT $name)", s"count($name)").head()
        val expected =
          ChunkDistinct(truth.getLong(0).toDouble, truth.getLong(1).toDouble, None, None)
        assert(found(name) == Seq(ChunkCount.Counted(expected)))
      }
      assert(found("nothing") == Seq(ChunkCount.Empty))
    }
  }

  test("stripe by stripe") {
    withColumns(20000, "orc.stripe.row.count" -> "5000")("string(id DIV 1000) AS s") { (_, file) =>
      val rows = OrcFooters.read(file, new Configuration()).groups
      val (starts, ends) = (rows.scanLeft(0L)(_ + _), rows.scanLeft(0L)(_ + _).drop(1))
      val truth = starts.zip(ends).map { case (from, to) => (to - 1) / 1000 - from / 1000 + 1 }
      val found = counted(file, Seq("s"), groups = rows.indices)
      assert(rows.size > 2)
      assert(ChunkCount.merge(found)("s").map(_.values) == truth.map(_.toDouble))
    }
  }

  test("says nothing of texts without a dictionary, of other types and of missing columns") {
    withColumns(20000)("uuid() AS unique", "id % 3 AS i", "struct(string(id % 3) AS x) AS p") {
      (_, file) =>
        val found = counted(file, Seq("unique", "i", "p", "missing"))
        assert(found.size == 4 && found.values.forall(_ == Seq(ChunkCount.Unknown)))
    }
  }

  test("nothing is read after the deadline") {
    withColumns(100)("string(id % 3) AS s") { (_, file) =>
      assert(counted(file, Seq("s"), deadline = System.nanoTime() - 1).isEmpty)
    }
  }

  test("a vanished file raises") {
    withColumns(100)("string(id % 3) AS s") { (_, file) =>
      Files.delete(Path.of(file.getPath.toUri))
      val _ = intercept[Exception](counted(file, Seq("s")))
    }
  }
}
