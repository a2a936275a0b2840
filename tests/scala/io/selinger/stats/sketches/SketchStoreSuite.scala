package io.selinger.stats.sketches

import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.FileVersion
import io.selinger.testing.{Answer, HangingFileSystem, Plans, SharedSession}
import java.nio.file.{Files, Path => LocalPath}
import java.util.concurrent.{Callable, Executors}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path
import org.apache.spark.sql.types.LongType
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._

/** The files that collected statistics are kept in, and what can go wrong with them. */
class SketchStoreSuite extends AnyFunSuite with SharedSession {

  private val hadoop = new Configuration()
  private val cache = 1L << 20

  private def version(i: Int) = FileVersion(s"file:/data/$i.parquet", 100L + i, 7L)

  private def sketch(rows: Long, share: Double = 1.0): ColumnSketch =
    ColumnSketch(share, rows, 0, None, None, None, None, 1, None, FrequentCounts(Nil, 0), None)

  /** Adds a run that has read these files, with so many rows each. */
  private def add(folder: Path, files: Seq[Int], rows: Long, column: String = "k"): Unit = {
    val entries = files.indices.iterator.map(i =>
      SegmentFile.Entry(i, 1.0, ColumnSketch.toBytes(sketch(rows)))
    )
    val _ = SketchStore.add(
      folder,
      "t",
      files.map(version).toIndexedSeq,
      Seq(((column, LongType), entries)),
      hadoop
    )
  }

  private def rows(folder: Path, files: Seq[Int], column: String = "k"): Option[Long] = {
    SketchStore.clear()
    val found = SketchStore.collected(folder, hadoop, cache)
    new CollectedRelation(found, files.map(version), hadoop, cache)
      .column(column, LongType)
      .map(_.rows.toLong)
  }

  private def segments(folder: Path): Int =
    folder.getFileSystem(hadoop).listStatus(folder).count(_.getPath.getName.endsWith(".sketch"))

  private def withPlace(body: Path => Any): Unit = withFolder { folder =>
    SketchStore.clear()
    val _ = body(new Path(folder.resolve("statistics").toUri))
  }

  test("the entries of all runs count, the newest of each file") {
    withPlace { folder =>
      assert(rows(folder, Seq(1)).isEmpty)
      add(folder, Seq(1, 2), 10)
      Thread.sleep(5)
      add(folder, Seq(2, 3), 20)
      assert(rows(folder, Seq(1)).contains(10L))
      assert(rows(folder, Seq(2)).contains(20L))
      assert(rows(folder, Seq(1, 2, 3)).contains(50L))
      assert(rows(folder, Seq(4)).isEmpty && rows(folder, Seq(1), "other").isEmpty)
    }
  }

  test("two writers at once lose nothing") {
    withPlace { folder =>
      val pool = Executors.newFixedThreadPool(4)
      try {
        val tasks = (0 until 24).map(i =>
          new Callable[Unit] { override def call(): Unit = add(folder, Seq(i), 1) }
        )
        pool.invokeAll(tasks.asJava).forEach(_.get())
      } finally pool.shutdown()
      assert(segments(folder) == 24 && rows(folder, 0 until 24).contains(24L))
    }
  }

  test("many small runs become one, without files that are no longer there") {
    withPlace { folder =>
      (0 until 12).foreach(i => add(folder, Seq(i), i + 1L))
      val current = (2 until 12).map(i => version(i) -> i).toMap
      SketchStore.compact(folder, "t", current, hadoop, cache)
      assert(segments(folder) == 1)
      assert(rows(folder, 2 until 12).contains((3 to 12).sum.toLong))
      assert(rows(folder, Seq(0, 1)).isEmpty)
    }
  }

  test("a column is forgotten, others stay") {
    withPlace { folder =>
      add(folder, Seq(1), 10)
      add(folder, Seq(1), 20, "other")
      assert(SketchStore.forget(folder, "t", Some(Set("k", "no")), hadoop, cache) == 1)
      assert(rows(folder, Seq(1)).isEmpty && rows(folder, Seq(1), "other").contains(20L))
      assert(SketchStore.forget(folder, "t", None, hadoop, cache) == 1)
      assert(segments(folder) == 0)
    }
  }

  test("a writer that died leaves nothing that is read") {
    withPlace { folder =>
      add(folder, Seq(1), 10)
      val fs = folder.getFileSystem(hadoop)
      val out = fs.create(new Path(folder, "_1234.tmp"))
      out.write(Array[Byte](1, 2, 3))
      out.close()
      assert(rows(folder, Seq(1)).contains(10L))
    }
  }

  // ---- places that cannot be used -------------------------------------------------------------

  private def table(folder: LocalPath): String = {
    val path = folder.resolve("t").toString
    spark.range(0, 1000, 1, 2).write.parquet(path)
    path
  }

  private def estimated(path: String): Double = {
    PlanningPass.start()
    val plan = Plans.execution(spark.read.parquet(path)).optimizedPlan
    LeafStatistics.estimator.estimate(plan).get.rows.value
  }

  test("queries work where the place is missing, a file, or of an unknown file system") {
    withFolder { folder =>
      val path = table(folder)
      val file = Files.writeString(folder.resolve("file"), "x").toString
      Seq(folder.resolve("missing").toString, file, "nosuchfs://host/x").foreach { place =>
        SketchStore.clear()
        withConf(SelingerConf.STATS_LOCATION.key -> place)(assert(estimated(path) == 1000))
      }
      withConf(SelingerConf.STATS_LOCATION.key -> "nosuchfs://host/x") {
        val joined = spark.read.parquet(path).join(spark.range(5), "id")
        val codes = Plans.decisions(joined, "useCollectedStatistics").map(_.reason.code)
        assert(codes == Seq("COLLECTED_STATISTICS_UNREADABLE"))
        assert(joined.count() == 5)
      }
    }
  }

  test("a place that hangs is waited for within the time of footers, and only once a minute") {
    withFolder { folder =>
      val path = table(folder)
      val hadoop = spark.sparkContext.hadoopConfiguration
      hadoop.set("fs.hangs.impl", classOf[HangingFileSystem].getName)
      withConf(
        SelingerConf.STATS_LOCATION.key -> s"hangs://$folder/store",
        SelingerConf.FOOTER_BUDGET_MS.key -> "500"
      ) {
        try {
          // The place answers nothing before it is released, so this must give up; and then not ask.
          assert(estimated(path) == 1000)
          val asked = HangingFileSystem.asked.get
          assert(asked > 0)
          assert(estimated(path) == 1000)
          assert(HangingFileSystem.asked.get == asked)
          val again = spark.read.parquet(path).join(spark.range(5), "id")
          val decision = Plans.decisions(again, "useCollectedStatistics").head
          assert(decision.reason.code == "COLLECTED_STATISTICS_UNREADABLE")
          assert(again.count() == 5)
        } finally {
          HangingFileSystem.release()
          hadoop.unset("fs.hangs.impl")
        }
      }
    }
  }

  test("a place that cannot be written fails analyze with what Hadoop says, and no query") {
    withFolder { folder =>
      val path = table(folder)
      val file = Files.writeString(folder.resolve("file"), "x").toString
      withConf(SelingerConf.STATS_LOCATION.key -> s"$file/below") {
        val error = intercept[Exception](
          spark.sql(s"SELECT * FROM selinger_analyze('$path')").collect()
        )
        assert(error.getMessage.contains("file"), error.toString)
        assert(estimated(path) == 1000)
      }
    }
  }

  test("a store that is only read serves queries") {
    withFolder { folder =>
      val path = table(folder)
      val store = folder.resolve("store")
      withConf(SelingerConf.STATS_LOCATION.key -> store.toString) {
        spark.sql(s"SELECT * FROM selinger_analyze('$path')").collect()
        val all = Files.walk(store).iterator.asScala.toSeq
        all.foreach(_.toFile.setWritable(false))
        try {
          SketchStore.clear()
          val df = spark.read.parquet(path).where("id < 100").join(spark.range(50), "id")
          val codes = Plans.decisions(df, "useCollectedStatistics").map(_.reason.code)
          assert(codes == Seq("COLLECTED_STATISTICS_USED") && df.count() == 50)
        } finally all.foreach(_.toFile.setWritable(true))
      }
    }
  }

  test("two sessions that analyse at once both succeed, and the answers stay") {
    withFolder { folder =>
      val path = table(folder)
      withConf(SelingerConf.STATS_LOCATION.key -> folder.resolve("store").toString) {
        val session = spark
        val pool = Executors.newFixedThreadPool(2)
        try {
          val task: Callable[Int] = () => {
            org.apache.spark.sql.SparkSession.setActiveSession(session)
            session.sql(s"SELECT * FROM selinger_analyze('$path')").head().getAs[Int]("files_read")
          }
          val done = pool.invokeAll(Seq(task, task).asJava).asScala.map(_.get())
          assert(done.forall(n => n == 2 || n == 0) && done.contains(2))
        } finally pool.shutdown()
        val sql = s"SELECT count(*) FROM parquet.`$path` a JOIN parquet.`$path` b USING (id)"
        val with1 = Answer.of(spark.sql(sql))
        withConf(UseCollectedStatistics.switch -> "false") {
          assert(Answer.difference(Answer.of(spark.sql(sql)), with1).isEmpty)
        }
      }
    }
  }
}
