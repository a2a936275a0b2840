package io.selinger.stats

import io.selinger.core.{Origin, PlanningPass}
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.footers.FooterStore
import io.selinger.stats.samples.SampleStore
import io.selinger.testing.{EchoFileSystem, Plans, SharedSession}
import java.nio.file.{Files, Path}
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong, AtomicReference}
import org.apache.hadoop.fs.{FileStatus, Path => HadoopPath}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.StructType
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable

/** Relations of very many files: planning must stay quick, and the driver's memory bounded. */
class LargeListingSuite extends AnyFunSuite with SharedSession {
  import LargeListingSuite._

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    FooterStore.clear()
    SampleStore.clear()
    EchoFileSystem.delayMs = 0
  }

  override protected def afterEach(): Unit = {
    FooterStore.clear()
    SampleStore.clear()
    EchoFileSystem.delayMs = 0
  }

  /** A relation of `files` files, each of them the same 1,000 rows. */
  private def withRelation[A](files: Int)(body: (LogicalPlan, StubIndex) => A): A = withFolder {
    folder =>
      val target = folder.resolve("t").toString
      val df = spark.range(0, 1000, 1, 1).selectExpr("id", "id % 10 AS k", "string(id) AS s")
      df.write.parquet(target)
      val file = Files.list(Path.of(target)).filter(_.toString.endsWith(".parquet")).findFirst.get
      val settings = EchoFileSystem.settings(file)
      val index = new StubIndex(files, Files.size(file), settings)
      val relation = HadoopFsRelation(
        index,
        new StructType(),
        df.schema,
        None,
        new ParquetFileFormat,
        settings
      )(spark)
      body(LogicalRelation(relation), index)
  }

  private def estimate(plan: LogicalPlan) = {
    PlanningPass.start()
    PlanningPass.current.workOn(plan)
    val start = System.nanoTime()
    val found = LeafStatistics.estimator.estimate(plan).getOrElse(fail("no estimate"))
    (found, (System.nanoTime() - start) / 1e6)
  }

  test("a million files: a sample within the limits, and next to nothing at later passes") {
    withRelation(1000000) { (plan, index) =>
      EchoFileSystem.opened.set(0)
      val (first, cold) = estimate(plan)
      assert(first.rows.origin == Origin.Sampled && first.bound.isEmpty)
      assert(math.abs(first.rows.value / 1e9 - 1) < 1e-6)
      assert(EchoFileSystem.opened.get <= 2100)
      // Until all of the 2,000 footers are there.
      val later = Seq.fill(8)(estimate(plan))
      val opened = EchoFileSystem.opened.get
      val warm = (1 to 5).map(_ => estimate(plan)._2)
      info(f"first pass $cold%.0f ms, later ${later.map(_._2.round)} ms, warm ${warm.map(_.round)}")
      assert(later.forall(pass => math.abs(pass._1.rows.value / 1e9 - 1) < 1e-6))
      assert(EchoFileSystem.opened.get == opened)
      assert(warm.min < 20, warm)
      assert(index.listed.get == 1)
    }
  }

  test("a listing that was refreshed is looked through again") {
    withRelation(100) { (plan, index) =>
      assert(estimate(plan)._1.rows.value == 100000)
      index.become(50)
      assert(estimate(plan)._1.rows.value == 50000)
      assert(estimate(plan)._1.rows.value == 50000)
      assert(index.listed.get == 2)
    }
  }

  test("slow storage: many queries at a time read each footer once, and none waits for long") {
    withRelation(300) { (plan, _) =>
      EchoFileSystem.delayMs = 2
      EchoFileSystem.opened.set(0)
      val failures = new AtomicReference[Throwable]()
      val threads = (1 to 12).map { _ =>
        new Thread(() =>
          try {
            org.apache.spark.sql.SparkSession.setActiveSession(spark)
            val (found, ms) = estimate(plan)
            assert(found.rows.value == 300000 && ms < 20000)
            ()
          } catch { case error: Throwable => failures.set(error) }
        )
      }
      threads.foreach(_.start())
      threads.foreach(_.join(60000))
      assert(threads.forall(!_.isAlive) && failures.get == null, s"${failures.get}")
      // 300 footers, and the few that are opened again for their dictionaries and checks.
      assert(EchoFileSystem.opened.get < 400, EchoFileSystem.opened.get)
    }
  }

  test("a planning thread that is interrupted leaves no thread behind, and the next one goes on") {
    withRelation(300) { (plan, _) =>
      EchoFileSystem.delayMs = 30
      val outcome = new AtomicReference[Option[Throwable]](None)
      val thread = new Thread(() =>
        try {
          org.apache.spark.sql.SparkSession.setActiveSession(spark)
          val _ = estimate(plan)
        } catch { case error: Throwable => outcome.set(Some(error)) }
      )
      thread.start()
      Thread.sleep(300)
      thread.interrupt()
      thread.join(5000)
      assert(!thread.isAlive)
      assert(outcome.get.exists(_.isInstanceOf[InterruptedException]), outcome.get)
      val until = System.nanoTime() + 5000000000L
      while (readers.nonEmpty && System.nanoTime() < until) Thread.sleep(20)
      assert(readers.isEmpty)
      EchoFileSystem.delayMs = 0
      assert(estimate(plan)._1.rows.value == 300000)
    }
  }

  test("through whole queries: what a join over a million files costs to plan") {
    withRelation(1000000) { (plan, _) =>
      val table = plan match {
        case LogicalRelation(files, _, _, _, _) => spark.baseRelationToDataFrame(files)
        case other => fail(s"not a relation: $other")
      }
      def planned(): Double = {
        val other = spark.range(100).toDF("other")
        val df = table.join(other, table("k") === other("other"))
        val start = System.nanoTime()
        Plans.execution(df).executedPlan
        (System.nanoTime() - start) / 1e6
      }
      // Until all footers are there, however slow the machine is.
      def opened(): Int = { val _ = planned(); EchoFileSystem.opened.get }
      val settled = Iterator.continually((opened(), opened())).take(10).exists {
        case (before, after) => before == after
      }
      assert(settled)
      val ours = (1 to 5).map(_ => planned()).min
      val stock = withConf("spark.selinger.mode" -> "off")((1 to 5).map(_ => planned()).min)
      info(f"planned in $ours%.0f ms, without Selinger in $stock%.0f ms")
      // Looking through the listing anew would take a second and more.
      assert(ours < stock + 500)
    }
  }
}

object LargeListingSuite {

  private val versions = new AtomicLong()

  private def readers: Seq[Thread] = {
    val all = mutable.Buffer.empty[Thread]
    Thread.getAllStackTraces.keySet.forEach(t => if (t.getName.startsWith("selinger-")) all += t)
    all.toSeq
  }

  /** An index that lists so many files of one length. */
  private final class StubIndex(count: Int, length: Long, settings: Map[String, String])
      extends PartitioningAwareFileIndex(
        org.apache.spark.sql.classic.SparkSession.active,
        settings,
        None
      ) {
    val listed = new AtomicInteger()
    private val root = new HadoopPath("echo:/table")
    // What earlier tests have read is of other versions.
    private val files = new AtomicReference(make(count, versions.incrementAndGet()))

    private def make(count: Int, modified: Long) = {
      val all = mutable.LinkedHashMap.empty[HadoopPath, FileStatus]
      (0 until count).foreach { i =>
        val path = new HadoopPath(root, f"part-$i%07d.parquet")
        all.put(path, new FileStatus(length, false, 1, 1L << 20, modified, path))
      }
      all
    }

    def become(count: Int): Unit = files.set(make(count, versions.incrementAndGet()))

    override def rootPaths: Seq[HadoopPath] = Seq(root)
    override def partitionSpec(): PartitionSpec = PartitionSpec.emptySpec
    override protected def leafFiles: mutable.LinkedHashMap[HadoopPath, FileStatus] = files.get
    override protected def leafDirToChildrenFiles: Map[HadoopPath, Array[FileStatus]] =
      Map(root -> files.get.values.toArray)
    override def refresh(): Unit = ()

    override def listFiles(
        partitions: Seq[Expression],
        data: Seq[Expression]
    ): Seq[PartitionDirectory] = {
      listed.incrementAndGet()
      super.listFiles(partitions, data)
    }
  }
}
