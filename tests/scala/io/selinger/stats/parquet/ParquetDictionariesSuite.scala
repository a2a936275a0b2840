package io.selinger.stats.parquet

import io.selinger.stats.{ChunkCount, ChunkDistinct}
import io.selinger.stats.files.{DistinctRequest, FileListing}
import io.selinger.stats.footers.{FooterLimits, FooterStore}
import io.selinger.testing.{CountedFileSystem, SharedSession}
import java.nio.file.{Files, Path}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, FileSystem, Path => HadoopPath}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable

/** Distinct counts out of dictionary pages' headers. Truth is what Spark counts. */
class ParquetDictionariesSuite extends AnyFunSuite with SharedSession {

  private def files(folder: Path): Seq[FileStatus] = {
    val path = new HadoopPath(folder.toUri)
    FileSystem
      .get(path.toUri, new Configuration())
      .listStatus(path)
      .toSeq
      .filter(_.getPath.getName.startsWith("part-"))
  }

  /** One file with these columns. */
  private def withColumns[A](rows: Long, options: (String, String)*)(columns: String*)(
      body: (Path, FileStatus) => A
  ): A = withFolder { folder =>
    val target = folder.resolve("data")
    spark
      .range(0, rows, 1, 1)
      .selectExpr(columns: _*)
      .write
      .options(options.toMap)
      .parquet(target.toString)
    body(target, files(target).head)
  }

  /** All columns of some row groups. */
  private def counted(
      file: FileStatus,
      groups: Seq[Int] = Seq(0),
      columns: Option[Seq[String]] = None,
      deadline: Long = Long.MaxValue,
      conf: Configuration = new Configuration()
  ): Map[String, Seq[ChunkCount]] = {
    val names = columns.getOrElse(
      ParquetFooters.read(file, new Configuration()).columns.keys.toSeq
    )
    val found = mutable.Map.empty[String, Seq[ChunkCount]].withDefaultValue(Nil)
    ParquetDictionaries.read(file, conf, groups.map(DistinctRequest(_, names)), deadline) {
      (_, name, count) => found(name) = found(name) :+ count
    }
    found.toMap
  }

  private def distinct(count: ChunkCount): ChunkDistinct = count match {
    case ChunkCount.Counted(found) => found
    case other => fail(s"not counted: $other")
  }

  test("counts what Spark counts, for every flat type that has a dictionary") {
    withColumns(20000)(
      "cast(id % 100 AS int) AS i",
      "id % 77 AS l",
      "if(id % 5 = 0, null, id % 30) AS withNulls",
      "float(id % 13) AS f",
      "if(id % 9 = 0, double('NaN'), double(id % 9)) AS d",
      "cast(id % 40 AS decimal(7,2)) AS d7",
      "string(id % 50) AS s",
      "cast(string(id % 51) AS binary) AS b",
      "date_add(date'2020-01-01', cast(id % 365 AS int)) AS dt",
      "timestamp_micros(id % 60) AS ts"
    ) { (folder, file) =>
      val group = counted(file).view.mapValues(chunks => distinct(chunks.head)).toMap
      val df = spark.read.parquet(folder.toString)
      assert(group.keySet == df.columns.map(_.toLowerCase).toSet)
      df.columns.foreach { name =>
        val truth = df.selectExpr(s"count(DISTINCT $name)", s"count($name)").head()
        val found = group(name.toLowerCase)
        assert(found.values == truth.getLong(0), name)
        assert(found.rows == truth.getLong(1), name)
      }
      assert(group("i").min.contains(0.0) && group("i").max.contains(99.0))
    }
  }

  test("says nothing of columns whose pages are not all dictionary-encoded, or have no dictionary") {
    withColumns(200000)("id AS key", "id % 2 = 0 AS flag", "uuid() AS text") { (_, file) =>
      val group = counted(file)
      assert(group == Seq("key", "flag", "text").map(_ -> Seq(ChunkCount.Unknown)).toMap)
      assert(ChunkCount.merge(group).isEmpty)
    }
  }

  test("says nothing of nested columns, and nothing but that of columns of nulls") {
    withColumns(1000)(
      "array(id % 3) AS list",
      "struct(id % 3 AS x) AS pair",
      "cast(null AS int) AS nothing",
      "id % 3 AS k"
    ) { (_, file) =>
      val group = counted(file)
      assert(group("list") == Seq(ChunkCount.Unknown) && group("pair") == Seq(ChunkCount.Unknown))
      assert(group("nothing") == Seq(ChunkCount.Empty))
      assert(ChunkCount.merge(group).keySet == Set("k"))
    }
  }

  test("reads a few of many row groups") {
    withColumns(40000, "parquet.block.size" -> "4096", "parquet.page.row.count.limit" -> "500")(
      "id % 10 AS k",
      "id DIV 1000 AS sorted"
    ) { (_, file) =>
      val footer = ParquetFooters.read(file, new Configuration())
      assert(footer.groups.size > 10 && footer.groups.sum == 40000)
      val found = counted(file, groups = (0 until 4).map(_ * footer.groups.size / 4))
      assert(found("k").map(distinct(_).values) == Seq.fill(4)(10.0))
      val merged = ChunkCount.merge(found)
      assert(merged("sorted").map(_.min).distinct.size == 4)
    }
  }

  private def requests[A](body: => A): (Int, Int) = {
    CountedFileSystem.seeks.set(0)
    CountedFileSystem.ranges.set(0)
    body
    (CountedFileSystem.seeks.get, CountedFileSystem.ranges.get)
  }

  test("headers that lie close together are read at once, and only those of columns asked for") {
    withColumns(200)((0 until 300).map(i => s"id % ${i % 50 + 2} AS c$i"): _*) { (_, local) =>
      val (file, conf) = (CountedFileSystem.of(local), CountedFileSystem.configuration())
      ParquetFooters.read(file, conf)
      val names = Seq("c10", "c11", "c12", "c90")
      val made = requests {
        val found = counted(file, columns = Some(names), conf = conf)
        assert(found.keySet == names.toSet)
        assert(names.map(name => distinct(found(name).head).values) == Seq(12.0, 13.0, 14.0, 42.0))
      }
      assert(made == ((1, 0)))
    }
  }

  test("headers far apart are asked for together where the store can do that") {
    val columns =
      (0 until 4).map(i => s"concat('a common prefix ', abs(hash(id, $i)) % 3000) AS c$i")
    withColumns(300000)(columns: _*) { (folder, local) =>
      val (file, conf) = (CountedFileSystem.of(local), CountedFileSystem.configuration())
      ParquetFooters.read(file, conf)
      val made = requests {
        val found = counted(file, conf = conf)
        val df = spark.read.parquet(folder.toString)
        found.foreach { case (name, chunks) =>
          assert(distinct(chunks.head).values == df.select(name).distinct().count(), name)
        }
        assert(found.size == 4)
      }
      assert(made == ((0, 4)))
    }
  }

  test("nothing is read after the deadline") {
    withColumns(1000)("id % 3 AS a", "id % 4 AS b") { (_, file) =>
      val late = counted(file, columns = Some(Seq("a")), deadline = System.nanoTime() - 1)
      assert(late.isEmpty)
    }
  }

  test("a table of 2,000 columns") {
    withColumns(20)((0 until 2000).map(i => s"id % 3 AS c$i"): _*) { (_, file) =>
      val group = counted(file)
      assert(group.size == 2000 && group.values.forall(c => distinct(c.head).values == 3))
    }
  }

  test("an empty file has no row groups") {
    withColumns(0)("id")((_, file) => assert(counted(file, groups = Nil).isEmpty))
  }

  Seq[(String, Path => Unit)](
    "truncated" -> (file => cut(file)),
    "vanished" -> (file => Files.delete(file))
  ).foreach { case (name, damage) =>
    test(s"a $name file raises, and the store goes on without its counts") {
      withColumns(1000)("id % 3 AS k") { (_, file) =>
        damage(Path.of(file.getPath.toUri))
        val _ = intercept[Exception](counted(file, columns = Some(Seq("k"))))
      }
    }
  }

  private def cut(file: Path): Unit = {
    val bytes = Files.readAllBytes(file)
    val _ = Files.write(file, bytes.take(bytes.length / 2))
  }

  test("the store merges the counts of several files") {
    withFolder { folder =>
      FooterStore.clear()
      val target = folder.resolve("data")
      spark
        .range(0, 30000, 1, 6)
        .selectExpr("id DIV 100 AS sorted", "id % 40 AS same", "string(id % 25) AS text")
        .write
        .parquet(target.toString)
      val answer = FooterStore.statistics(
        ParquetFooters,
        FileListing.of(files(target), 100),
        Set("sorted", "same", "text"),
        new Configuration(),
        FooterLimits(maxFiles = 100, budgetMs = 60000, threads = 2, cacheMaxBytes = 1L << 20)
      )
      val found = answer.statistics.getOrElse(fail("no statistics"))
      assert(found.dictionaries.keySet == Set("sorted", "same", "text"))
      assert(found.dictionaries("same").map(_.values) == Seq.fill(6)(40.0))
      assert(found.dictionaries("sorted").map(_.values).sum == 300.0)
      assert(found.groups.chosen.size == 6)
      FooterStore.clear()
    }
  }
}
