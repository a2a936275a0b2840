package io.selinger.stats

import io.selinger.core.{Origin, PlanningPass}
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.stats.footers.FooterStore
import io.selinger.stats.samples.SampleStore
import io.selinger.testing.{EchoFileSystem, Grid, Plans, SharedSession}
import java.nio.file.{Files, Path}
import java.util.concurrent.atomic.{AtomicInteger, AtomicLong, AtomicReference}
import org.apache.hadoop.fs.{FileStatus, Path => HadoopPath}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.execution.datasources._
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat
import org.apache.spark.sql.types.StructType
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}
import scala.collection.mutable

/** Relations of very many files: planning must stay quick, and the driver's memory bounded. */
class LargeListingSuite extends AnyFunSuite with SharedSession with Eventually {
  import LargeListingSuite._

  implicit override val patienceConfig: PatienceConfig =
    PatienceConfig(timeout = Span(60, Seconds), interval = Span(20, Millis))

  // Far beyond the 2,000 footers that are read at most.
  private val many = if (Grid.isWhole) 1000000 else 100000

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
    LeafStatistics.estimator.estimate(plan).getOrElse(fail("no estimate"))
  }

  test(s"$many files: a sample within the limits, and next to nothing at later passes") {
    withRelation(many) { (plan, index) =>
      val rows = many * 1000.0
      EchoFileSystem.opened.set(0)
      val first = estimate(plan)
      assert(first.rows.origin == Origin.Sampled && first.bound.isEmpty)
      assert(math.abs(first.rows.value / rows - 1) < 1e-6)
      assert(EchoFileSystem.opened.get <= 2100)
      // Until all of the 2,000 footers are there.
      val later = Seq.fill(8)(estimate(plan))
      assert(later.forall(pass => math.abs(pass.rows.value / rows - 1) < 1e-6))
      val (opened, walked) = (EchoFileSystem.opened.get, index.walked.get)
      (1 to 5).foreach(_ => estimate(plan))
      assert(EchoFileSystem.opened.get == opened)
      // Spark adds up the sizes of all files whenever it is asked for the size of the table.
      assert(index.walked.get - walked <= 5, "the listing was looked through again")
      assert(index.listed.get == 1)
    }
  }

  test("a listing that was refreshed is looked through again") {
    withRelation(100) { (plan, index) =>
      assert(estimate(plan).rows.value == 100000)
      index.become(50)
      assert(estimate(plan).rows.value == 50000)
      assert(estimate(plan).rows.value == 50000)
      assert(index.listed.get == 2)
    }
  }

  test("slow storage: many queries at a time read each footer once, and all have an answer") {
    withRelation(300) { (plan, _) =>
      EchoFileSystem.delayMs = 2
      EchoFileSystem.opened.set(0)
      val failures = new AtomicReference[Throwable]()
      val threads = (1 to 12).map { _ =>
        new Thread(() =>
          try {
            org.apache.spark.sql.SparkSession.setActiveSession(spark)
            assert(estimate(plan).rows.value == 300000)
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
      EchoFileSystem.opened.set(0)
      val outcome = new AtomicReference[Option[Throwable]](None)
      val thread = new Thread(() =>
        try {
          org.apache.spark.sql.SparkSession.setActiveSession(spark)
          val _ = estimate(plan)
        } catch { case error: Throwable => outcome.set(Some(error)) }
      )
      thread.start()
      eventually(assert(EchoFileSystem.opened.get > 0))
      thread.interrupt()
      thread.join(60000)
      assert(!thread.isAlive)
      assert(outcome.get.exists(_.isInstanceOf[InterruptedException]), outcome.get)
      eventually(assert(readers.isEmpty))
      assert(EchoFileSystem.opened.get < 300, "all footers were read before the interrupt")
      EchoFileSystem.delayMs = 0
      assert(estimate(plan).rows.value == 300000)
    }
  }

  test(s"through whole queries: planning a join over $many files lists them as stock Spark does") {
    withRelation(many) { (plan, index) =>
      val table = plan match {
        case LogicalRelation(files, _, _, _, _) => spark.baseRelationToDataFrame(files)
        case other => fail(s"not a relation: $other")
      }
      // How often the listing was asked for and looked through.
      def planned(): (Int, Int) = {
        val other = spark.range(100).toDF("other")
        val df = table.join(other, table("k") === other("other"))
        val (listed, walked) = (index.listed.get, index.walked.get)
        Plans.execution(df).executedPlan
        (index.listed.get - listed, index.walked.get - walked)
      }
      // Until all footers are there, however slow the machine is.
      def opened(): Int = { val _ = planned(); EchoFileSystem.opened.get }
      val settled = Iterator.continually((opened(), opened())).take(10).exists {
        case (before, after) => before == after
      }
      assert(settled)
      val stock = withConf("spark.selinger.mode" -> "off")(planned())
      // Once for the plan, and once for a thread that reads ahead where one has begun in this JVM.
      val ours = Iterator.continually(planned()).take(20).find(_._2 <= stock._2 + 2)
      assert(ours.map(_._1).contains(stock._1))
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
    val listed, walked = new AtomicInteger()
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
    override protected def leafFiles: mutable.LinkedHashMap[HadoopPath, FileStatus] = {
      walked.incrementAndGet()
      files.get
    }
    override protected def leafDirToChildrenFiles: Map[HadoopPath, Array[FileStatus]] = {
      walked.incrementAndGet()
      Map(root -> files.get.values.toArray)
    }
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
