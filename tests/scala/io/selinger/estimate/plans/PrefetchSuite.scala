package io.selinger.estimate.plans

import io.selinger.conf.SelingerConf
import io.selinger.stats.footers.FooterStore
import io.selinger.stats.samples.SampleStore
import io.selinger.testing.{Answer, SharedSession, WatchedFileSystem}
import java.nio.file.Path
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, CountDownLatch, TimeUnit}
import java.util.concurrent.atomic.AtomicBoolean
import org.apache.hadoop.fs.{Path => HadoopPath}
import org.apache.spark.sql.DataFrame
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}
import scala.jdk.CollectionConverters._

/** What is read ahead of need, by whom, and that the answer is the same whatever becomes of it. */
class PrefetchSuite extends AnyFunSuite with SharedSession with Eventually {

  implicit override val patienceConfig: PatienceConfig =
    PatienceConfig(timeout = Span(60, Seconds), interval = Span(20, Millis))

  override protected def ofSuite: Seq[(String, String)] =
    SharedSession.interpreted :+ (SelingerConf.PREFETCH.key -> "true")

  private val join =
    """SELECT i.name, count(*) FROM sales s JOIN items i ON s.item = i.id
      |WHERE i.name LIKE 'a%' GROUP BY i.name""".stripMargin

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    forget()
  }

  override protected def afterEach(): Unit =
    try super.afterEach()
    finally forget()

  private def forget(): Unit = {
    settle()
    FooterStore.clear()
    SampleStore.clear()
    val _ = WatchedFileSystem.opened()
  }

  /** Until nobody reads any more. */
  private def settle(): Unit = {
    val _ = eventually(assert(!threads("selinger-")))
  }

  /** Whether there are any whose names begin like this. */
  private def threads(name: String): Boolean =
    Thread.getAllStackTraces.keySet.asScala.exists(_.getName.startsWith(name))

  private def withTables[A](body: => A): A = withFolder { folder =>
    view(folder, "sales", spark.range(0, 2000, 1, 1).selectExpr("id % 50 AS item", "id AS amount"))
    view(
      folder,
      "items",
      spark.range(0, 50, 1, 1).selectExpr("id", "concat(if(id < 9, 'a', 'b'), id) AS name")
    )
    try body
    finally settle()
  }

  private def view(folder: Path, name: String, rows: DataFrame): Unit = {
    val path = folder.resolve(name)
    rows.write.parquet(path.toString)
    spark.read
      .options(WatchedFileSystem.options)
      .parquet(s"${WatchedFileSystem.scheme}:$path")
      .createOrReplaceTempView(name)
    val _ = WatchedFileSystem.opened()
  }

  private def optimized(sql: String): Unit = {
    val _ = spark.sql(sql).queryExecution.optimizedPlan
  }

  /** The tables whose files are opened, as often as they are, while this is optimized for the first time. */
  private def opened(settings: (String, String)*)(sql: String): Seq[String] = withTables {
    withConf(settings: _*) {
      optimized(sql)
      settle()
    }
    WatchedFileSystem.opened()
  }

  private val asked = SelingerConf.PREFETCH.key -> "false"

  test("several tables are read at the same time") {
    withTables {
      val both = new CountDownLatch(2)
      val alone = new ConcurrentLinkedQueue[HadoopPath]()
      val tables = ConcurrentHashMap.newKeySet[String]()
      // Whoever comes first waits for the other one.
      def meet(file: HadoopPath): Unit = {
        if (tables.add(file.getParent.getName)) both.countDown()
        if (!both.await(30, TimeUnit.SECONDS)) { val _ = alone.add(file) }
      }
      WatchedFileSystem.watching(meet)(optimized(join))
      assert(alone.isEmpty && tables.asScala == Set("sales", "items"))
    }
  }

  test("nothing is read twice, and nothing that rules do not ask for") {
    val ahead = opened()(join)
    assert(ahead.toSet == Set("sales", "items") && ahead == opened(asked)(join))
  }

  test("a query that is optimized again reads nothing") {
    withTables {
      optimized(join)
      settle()
      assert(WatchedFileSystem.opened().nonEmpty)
      optimized(join)
      settle()
      assert(WatchedFileSystem.opened().isEmpty)
    }
  }

  /** Whether files are opened while a thread that reads ahead waits for them. */
  private def isAhead(settings: (String, String)*)(sql: String): Boolean = {
    val seen = new AtomicBoolean
    def look(@annotation.unused file: HadoopPath): Unit =
      if (threads(Prefetch.threadName)) seen.set(true)
    val _ = WatchedFileSystem.watching(look)(opened(settings: _*)(sql))
    seen.get
  }

  test("without joins and groups, nothing is read ahead of a rule that asks") {
    assert(isAhead()(join))
    assert(isAhead()("SELECT item, max(amount) FROM sales GROUP BY item"))
    assert(!isAhead(asked)(join))
    val single = "SELECT max(amount) FROM sales WHERE item < 7"
    assert(!isAhead()(single) && opened()(single) == opened(asked)(single))
  }

  test("small tables, and mode off, are left alone") {
    assert(opened(SelingerConf.SMALL_TABLE_MAX_BYTES.key -> "1000000")(join).isEmpty)
    assert(opened(SelingerConf.MODE.key -> "off")(join).isEmpty)
    assert(opened(SelingerConf.MODE.key -> "advise")(join).nonEmpty)
  }

  test("partitions that a filter leaves out are not read, and without a filter none is read ahead") {
    withFolder { folder =>
      val path = folder.resolve("visits")
      spark.range(0, 3000, 1, 1).selectExpr("id", "id % 3 AS day", "id % 7 AS page")
        .write.partitionBy("day").parquet(path.toString)
      spark.read
        .options(WatchedFileSystem.options)
        .parquet(s"${WatchedFileSystem.scheme}:$path")
        .createOrReplaceTempView("visits")
      val _ = WatchedFileSystem.opened()
      def isAheadOf(sql: String): Boolean = {
        forget()
        val seen = new AtomicBoolean
        def look(@annotation.unused file: HadoopPath): Unit =
          if (threads(Prefetch.threadName)) seen.set(true)
        WatchedFileSystem.watching(look) {
          // The join's operator asks for the rows.
          val _ = spark.sql(sql).queryExecution.executedPlan
          settle()
        }
        seen.get
      }
      val joined = "SELECT * FROM visits v JOIN range(9) p ON v.page = p.id"
      assert(!isAheadOf(joined))
      assert(WatchedFileSystem.opened().toSet == Set("day=0", "day=1", "day=2"))
      assert(isAheadOf(s"$joined WHERE v.day = 1"))
      assert(WatchedFileSystem.opened().toSet == Set("day=1"))
    }
  }

  test("tables of subqueries are read, too") {
    val sql = "SELECT sum(amount) FROM sales WHERE amount > (SELECT count(*) FROM items i JOIN " +
      "sales s ON s.item = i.id WHERE i.name LIKE 'a%')"
    assert(isAhead()(sql))
    // The query around it needs more columns, which take a reading of their own.
    assert(opened()(sql).toSet == opened(asked)(sql).toSet)
  }

  test("a store that fails, ahead or when asked: the same answer") {
    withTables {
      val expected = stockAnswer()(spark.sql(join))
      // Spark reads as well, by threads of its own.
      val answer = WatchedFileSystem.watching(WatchedFileSystem.broken)(Answer.of(spark.sql(join)))
      assert(answer == expected)
    }
  }

  test("answers are those of a plan whose tables were read when rules asked") {
    withTables {
      val ahead = Answer.of(spark.sql(join))
      forget()
      assert(withConf(asked)(Answer.of(spark.sql(join))) == ahead)
      assert(stockAnswer()(spark.sql(join)) == ahead)
    }
  }
}
