package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.core.{OnDemandProbe, RuleActivity, RuleDescription}
import io.selinger.stats.footers.{FooterStore, ReadFooterStatistics}
import io.selinger.stats.samples.SamplePredicates
import io.selinger.testing.SharedSession
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.atomic.AtomicInteger
import org.apache.spark.scheduler.{SparkListener, SparkListenerJobStart}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Using

/** What is planned ahead of the first query, and that nobody sees anything of it. */
class WarmUpSuite extends AnyFunSuite with SharedSession {

  /** Which rules on statistics are asked, of those that stand behind the probe. */
  private final class Asked extends OnDemandProbe {
    val rules = mutable.Set.empty[RuleDescription]
    override def around[A](rule: RuleDescription)(work: => A): A = {
      rules += rule
      work
    }
  }

  private def calls(): Map[String, Long] =
    Registry.all.rules.map(rule => rule.id -> RuleActivity.of(rule).calls).toMap

  /** Files of ours in the folder for temporary ones; a JVM that is killed leaves its own. */
  private def files: Set[Path] =
    Using.resource(Files.list(Paths.get(System.getProperty("java.io.tmpdir")))) {
      _.iterator.asScala.filter(_.getFileName.toString.startsWith("selinger-warm-up")).toSet
    }

  test("footers and samples are read") {
    val asked = new Asked
    FooterStore.clear()
    // Queries on tables as small as our file are otherwise left alone.
    val limit = SelingerConf.SMALL_TABLE_MAX_BYTES
    withConf(limit.key -> limit.default) {
      OnDemandProbe.using(asked)(WarmUp.plan(spark))
    }
    assert(Set[RuleDescription](ReadFooterStatistics, SamplePredicates).subsetOf(asked.rules))
  }

  test("no job is started, nothing counted, and nothing left in the session or on disk") {
    val jobs = new AtomicInteger
    val listener = new SparkListener {
      override def onJobStart(started: SparkListenerJobStart): Unit = {
        val _ = jobs.incrementAndGet()
      }
    }
    val filesBefore = files
    val views = spark.sessionState.catalog.getTempViewNames()
    val confs = spark.conf.getAll
    val before = calls()
    spark.sparkContext.addSparkListener(listener)
    try {
      WarmUp.plan(spark)
      assert(calls() == before)
      // Events arrive in their order: once that of this job is there, all are.
      spark.range(1).collect()
      while (jobs.get == 0) Thread.sleep(1)
    } finally spark.sparkContext.removeSparkListener(listener)
    assert(jobs.get == 1)
    assert(spark.sessionState.catalog.getTempViewNames() == views)
    assert(spark.conf.getAll == confs)
    assert(files == filesBefore)
  }

  test("rules do look at what is planned") {
    val before = calls()
    val session = spark
    WarmUp.queries.foreach { sql =>
      Using.resource(getClass.getResourceAsStream("warm-up.parquet")) { in =>
        withFolder { folder =>
          Files.copy(in, folder.resolve("part.parquet"))
          session.read.schema(WarmUp.schema).parquet(folder.toString).createOrReplaceTempView("t")
          // A query that cannot run would warm up nothing that is needed.
          session.sql(sql).collect()
        }
      }
    }
    val after = calls()
    for (rule <- Seq("reorderJoins", "selectJoinOperator", "pushAggregateBelowJoin"))
      assert(after(rule) > before(rule), rule)
  }

  test("it begins once in a JVM, where the session wants it, and its thread ends") {
    def begun(settings: (String, String)*) = withConf(settings: _*)(WarmUp.begin(spark))
    val filesBefore = files
    val on = SelingerConf.WARM_UP.key -> "true"
    assert(begun().isEmpty)
    assert(begun(on, SelingerConf.MODE.key -> "OFF").isEmpty)
    // Spark would list the path by a job.
    assert(begun(on, "spark.sql.sources.parallelPartitionDiscovery.threshold" -> "0").isEmpty)
    val thread = begun(on)
    assert(thread.exists(_.isDaemon))
    thread.foreach(_.join())
    assert(begun(on).isEmpty)
    assert(files == filesBefore)
  }
}
