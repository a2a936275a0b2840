package io.selinger.stats.footers

import io.selinger.core.Origin
import io.selinger.stats.{ChunkCount, ChunkDistinct, ColumnFooter, FileFooter}
import io.selinger.stats.files.{DistinctReader, DistinctRequest, FileListing, FooterReader}
import java.io.IOException
import java.util.concurrent.{ConcurrentHashMap, ConcurrentLinkedQueue, CountDownLatch}
import java.util.concurrent.atomic.AtomicInteger
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.scalatest.BeforeAndAfterEach
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.Duration
import scala.jdk.CollectionConverters._

/** The store's bounds and its cache, with a reader that needs no files. */
class FooterStoreSuite extends AnyFunSuite with BeforeAndAfterEach with Eventually {
  import FooterStoreSuite._

  implicit override val patienceConfig: PatienceConfig =
    PatienceConfig(timeout = Span(10, Seconds), interval = Span(20, Millis))

  override protected def beforeEach(): Unit = FooterStore.clear()

  override protected def afterEach(): Unit = {
    eventually(assert(threads.isEmpty))
    FooterStore.clear()
  }

  private val limits =
    FooterLimits(maxFiles = 1000, budgetMs = 60000, threads = 4, cacheMaxBytes = 64L << 20)

  private def ask(reader: FooterReader, files: Seq[FileStatus], limits: FooterLimits = limits) =
    FooterStore.statistics(
      reader,
      FileListing.of(files, limits.maxFiles),
      Set.empty,
      new Configuration(),
      limits
    )

  private def rowsOf(answer: FooterAnswer): Double =
    answer.statistics.map(_.rows.value).getOrElse(fail("no statistics"))

  test("all footers: exact rows and a bound") {
    val answer = ask(new StubReader, (1 to 50).map(file(_)))
    assert(answer.filesRead == 50 && answer.files == 50)
    assert(rowsOf(answer) == (1 to 50).sum)
    assert(answer.statistics.exists(s =>
      s.rows.origin == Origin.Exact && s.bound.contains(rowsOf(answer))
    ))
  }

  test("each version of a file is read once") {
    val reader = new StubReader
    val files = (1 to 20).map(file(_))
    ask(reader, files)
    ask(reader, files)
    ask(reader, files.take(10))
    assert(reader.reads.get == 20)
  }

  test("a file rewritten under its old name is read again: by length, or by time alone") {
    val reader = new StubReader
    assert(rowsOf(ask(reader, Seq(file(1, rows = 5)))) == 5)
    assert(rowsOf(ask(reader, Seq(file(1, rows = 8)))) == 8)
    ask(reader, Seq(file(1, rows = 8, modified = 2)))
    assert(reader.reads.get == 3)
  }

  test("beyond the bound of files: a sample, near the truth, that bounds nothing") {
    val reader = new StubReader
    val files = (1 to 1000).map(i => file(i, rows = 50 + i % 100))
    val answer = ask(reader, files, limits.copy(maxFiles = 40))
    val truth = files.map(rowsIn).sum.toDouble
    assert(reader.reads.get == 40)
    assert(answer.filesRead == 40 && answer.files == 1000)
    assert(math.abs(rowsOf(answer) / truth - 1) < 0.1)
    assert(answer.statistics.exists(s => s.rows.origin == Origin.Sampled && s.bound.isEmpty))
  }

  test("a sample sees every part of a relation") {
    val reader = new StubReader
    ask(reader, (1 to 1000).map(file(_)), limits.copy(maxFiles = 10))
    assert(reader.seen.map(_ / 100).toSet == (0 until 10).toSet)
  }

  test("beyond the budget of time: what has arrived; the rest at a later query") {
    val reader = new StubReader(sleepMs = 50)
    val files = (1 to 40).map(i => file(i, rows = 10))
    val first = ask(reader, files, limits.copy(budgetMs = 1, threads = 2))
    assert(first.filesRead < 40)
    assert(first.statistics.forall(s => s.rows.origin == Origin.Sampled && s.bound.isEmpty))
    eventually(assert(threads.isEmpty))
    val second = ask(reader, files, limits.copy(budgetMs = 300, threads = 2))
    assert(second.filesRead > first.filesRead && second.filesRead < 40)
    eventually(assert(threads.isEmpty))
    val last = ask(reader, files)
    assert(last.filesRead == 40 && rowsOf(last) == 400)
    assert(last.statistics.exists(_.bound.contains(400.0)))
  }

  test("what was queued when time ran out is not read behind the query's back") {
    val reader = new StubReader(sleepMs = 30)
    ask(reader, (1 to 100).map(file(_)), limits.copy(budgetMs = 1, threads = 2))
    eventually(assert(threads.isEmpty))
    assert(reader.reads.get <= 4)
  }

  test("no thread is left, and a reader that hangs costs the budget only once more") {
    ask(new StubReader, (1 to 50).map(file(_)))
    eventually(assert(threads.isEmpty))
  }

  test("storage that hangs costs the budget twice, and then nothing for a while") {
    val gate = new CountDownLatch(1)
    val reader = new StubReader(gate = Some(gate))
    val files = (1 to 4).map(file(_))
    def answer(budgetMs: Long) = Await.result(
      Future(ask(reader, files, limits.copy(budgetMs = budgetMs)))(ExecutionContext.global),
      Duration(60, "s")
    )
    try {
      // While nothing arrives: two queries give up, and those that could wait for an hour do not.
      Seq(100L, 100L, 3600000L, 3600000L).foreach(ms => assert(answer(ms).statistics.isEmpty))
      assert(reader.reads.get <= 4)
    } finally gate.countDown()
  }

  test("a partial answer says that it may grow, and is not kept when it has") {
    val gate = new CountDownLatch(1)
    val reader = new StubReader(gate = Some(gate))
    val files = (1 to 4).map(file(_, rows = 10))
    try
      (1 to 3).foreach { _ =>
        val answer = ask(reader, files, limits.copy(budgetMs = 50))
        assert(answer.statistics.isEmpty && answer.cutShort)
      }
    finally gate.countDown()
    // Without any time: from what has arrived.
    eventually(assert(ask(reader, files, limits.copy(budgetMs = 0)).filesRead == 4))
  }

  test("a plan that had no time left says nothing of the storage") {
    val gate = new CountDownLatch(1)
    val reader = new StubReader(gate = Some(gate))
    val files = (1 to 4).map(file(_, rows = 10))
    try {
      val late = limits.copy(budgetMs = 0, isShort = true)
      (1 to 3).foreach { _ =>
        val answer = ask(reader, files, late)
        assert(answer.statistics.isEmpty && answer.cutShort)
      }
    } finally gate.countDown()
    val next = ask(reader, files)
    assert(rowsOf(next) == 40 && !next.cutShort)
  }

  test("a relation that outgrows both budget and cache keeps a partial answer for a while") {
    val reader = new StubReader(columns = 500, sleepMs = 10)
    val files = (1 to 400).map(i => file(i, rows = 10))
    val small = limits.copy(budgetMs = 200, threads = 2, cacheMaxBytes = 1L << 20)
    val answers = (1 to 5).map(_ => ask(reader, files, small))
    eventually(assert(threads.isEmpty))
    val before = reader.reads.get
    val last = ask(reader, files, small)
    assert((answers :+ last).forall(a => a.filesRead < 400 && rowsOf(a) > 3000 && rowsOf(a) < 5000))
    assert(reader.reads.get == before && before < 400)
  }

  test("a file that cannot be read makes the rest a sample, and is not tried at each query") {
    val reader = new StubReader(broken = Set(3))
    val files = (1 to 4).map(i => file(i, rows = 10))
    val answer = ask(reader, files)
    assert(answer.filesRead == 3 && rowsOf(answer) == 40)
    assert(answer.statistics.exists(s => s.rows.origin == Origin.Sampled && s.bound.isEmpty))
    val again = ask(reader, files)
    assert(reader.reads.get == 4 && !answer.cutShort && !again.cutShort)
  }

  test("a reader that raises a LinkageError is like a file that cannot be read") {
    val reader = new StubReader(broken = Set(1), error = () => new NoSuchMethodError("boom"))
    assert(ask(reader, Seq(file(1))).statistics.isEmpty)
  }

  test("nothing is known where no file can be read") {
    val answer = ask(new StubReader(broken = Set(1, 2)), Seq(file(1), file(2)))
    assert(answer.statistics.isEmpty && answer.filesRead == 0)
  }

  test("no files: no rows") {
    assert(rowsOf(ask(new StubReader, Nil)) == 0)
  }

  test("without a cache footers are read at every query, and known all the same") {
    val reader = new StubReader
    val files = (1 to 5).map(i => file(i, rows = 10))
    val none = limits.copy(cacheMaxBytes = 0)
    assert(rowsOf(ask(reader, files, none)) == 50)
    assert(rowsOf(ask(reader, files, none)) == 50)
    assert(reader.reads.get == 10)
  }

  test("a relation whose footers outgrow the cache is read whole nevertheless") {
    val reader = new StubReader(columns = 500)
    val answer =
      ask(reader, (1 to 200).map(i => file(i, rows = 10)), limits.copy(cacheMaxBytes = 1L << 20))
    assert(answer.filesRead == 200 && rowsOf(answer) == 2000)
    assert(answer.statistics.exists(_.rows.origin == Origin.Exact))
  }

  test("the cache forgets rather than grows") {
    val reader = new StubReader(columns = 100)
    val small = limits.copy(cacheMaxBytes = 1L << 20)
    val files = (1 to 500).map(file(_))
    files.foreach(f => ask(reader, Seq(f), small))
    val before = reader.reads.get
    files.foreach(f => ask(reader, Seq(f), small))
    // Some 70 footers of 14 kB fit 1 MiB; the others have to be read again.
    assert(reader.reads.get - before > 350)
  }

  private def distinct(
      reader: FooterReader,
      columns: Set[String],
      files: Seq[FileStatus],
      limits: FooterLimits = limits
  ): Map[String, Seq[ChunkDistinct]] = FooterStore
    .statistics(
      reader,
      FileListing.of(files, limits.maxFiles),
      columns,
      new Configuration(),
      limits
    )
    .statistics
    .getOrElse(fail("no statistics"))
    .dictionaries

  test("distinct values are counted for the columns asked for, once, and more at later queries") {
    val reader = new StubReader(columns = 5)
    val files = (1 to 20).map(i => file(i, rows = 10))
    assert(distinct(reader, Set.empty, files).isEmpty && reader.counted.isEmpty)
    assert(distinct(reader, Set("c1"), files).keySet == Set("c1"))
    assert(reader.counted == Seq.fill(8)("c1"))
    assert(distinct(reader, Set("c1", "c3", "other"), files).keySet == Set("c1", "c3"))
    assert(reader.counted == Seq.fill(8)("c1") ++ Seq.fill(8)("c3"))
    distinct(reader, Set("c1", "c3"), files)
    assert(reader.counted.size == 16 && reader.reads.get == 20)
    distinct(reader, Set("c1"), files.take(19) :+ file(20, rows = 10, modified = 2))
    assert(reader.reads.get == 21)
  }

  test("counting stops with the time and goes on at the next query") {
    val reader = new StubReader(columns = 40, countMs = 10)
    val files = Seq(file(1, rows = 10))
    val columns = (0 until 40).map(i => s"c$i").toSet
    val short = limits.copy(budgetMs = 100)
    val first = distinct(reader, columns, files, short)
    assert(first.size < 40)
    eventually(assert(threads.isEmpty))
    val begun = reader.counted.size
    assert(begun < 20)
    eventually {
      assert(distinct(reader, columns, files, short).size == 40)
    }
    assert(reader.counted.size <= 42 && reader.counted.distinct.size == 40)
  }

  test("a file whose distinct values cannot be read is not asked again at each query") {
    val reader = new StubReader(countError = Some(() => new IOException("broken file")))
    val files = Seq(file(1), file(2))
    assert(distinct(reader, Set("c0"), files).isEmpty)
    assert(distinct(reader, Set("c0"), files).isEmpty)
    assert(reader.counted.size == 2)
  }

  test("without a cache distinct values are read at every query, and known all the same") {
    val reader = new StubReader
    val none = limits.copy(cacheMaxBytes = 0)
    assert(distinct(reader, Set("c0"), Seq(file(1)), none).keySet == Set("c0"))
    assert(distinct(reader, Set("c0"), Seq(file(1)), none).keySet == Set("c0"))
    assert(reader.counted.size == 2)
  }

  test("two relations that share files share footers") {
    val reader = new StubReader
    ask(reader, (1 to 10).map(file(_)))
    assert(rowsOf(ask(reader, (6 to 15).map(file(_)))) == (6 to 15).sum)
    assert(reader.reads.get == 15)
  }

  test("what a query with little time has given up is read by one that waits for it") {
    val reader = new StubReader(sleepMs = 20)
    val files = (1 to 30).map(i => file(i, rows = 10))
    val hasty = scala.concurrent.Future(
      ask(reader, files, limits.copy(budgetMs = 100, threads = 1))
    )(scala.concurrent.ExecutionContext.global)
    eventually(assert(reader.reads.get > 0))
    val patient = ask(reader, files)
    assert(patient.filesRead == 30 && rowsOf(patient) == 300)
    assert(
      scala.concurrent.Await.result(
        hasty,
        scala.concurrent.duration.Duration(30, "s")
      ).filesRead < 30
    )
  }

  test("many queries at a time") {
    val reader = new StubReader(sleepMs = 1)
    val answers = (1 to 8).map { i =>
      scala.concurrent.Future(rowsOf(ask(
        reader,
        (1 to 50 + i).map(file(_))
      )))(scala.concurrent.ExecutionContext.global)
    }
    answers.zipWithIndex.foreach { case (answer, i) =>
      val n = 51 + i
      assert(
        scala.concurrent.Await.result(
          answer,
          scala.concurrent.duration.Duration(30, "s")
        ) == n * (n + 1) / 2
      )
    }
  }
}

object FooterStoreSuite {

  private def threads: Set[Thread] =
    Thread.getAllStackTraces.keySet.asScala.toSet.filter(_.getName == "selinger-footers")

  private val bytesPerRow = 100

  /** The file number `i`; its length tells the stub how many rows it has. */
  private def file(i: Int, rows: Int = -1, modified: Long = 1): FileStatus = {
    val count = if (rows < 0) i else rows
    new FileStatus(
      count.toLong * bytesPerRow,
      false,
      1,
      1L << 20,
      modified,
      new Path(s"/nowhere/$i")
    )
  }

  private def rowsIn(file: FileStatus): Int = (file.getLen / bytesPerRow).toInt

  private final class StubReader(
      sleepMs: Long = 0,
      gate: Option[CountDownLatch] = None,
      broken: Set[Int] = Set.empty,
      error: () => Throwable = () => new IOException("broken file"),
      columns: Int = 1,
      countMs: Long = 0,
      countError: Option[() => Throwable] = None
  ) extends FooterReader {

    val reads = new AtomicInteger()
    private val counts = new ConcurrentLinkedQueue[String]()

    def counted: Seq[String] = counts.asScala.toSeq

    override def dictionaries: Option[DistinctReader] = Some(new DistinctReader {
      override def read(
          file: FileStatus,
          hadoop: Configuration,
          requests: Seq[DistinctRequest],
          deadline: Long
      )(answer: (Int, String, ChunkCount) => Unit): Unit =
        for (request <- requests; column <- request.columns if System.nanoTime() < deadline) {
          Thread.sleep(countMs)
          counts.add(column)
          countError.foreach(error => throw error())
          answer(request.index, column, ChunkCount.Counted(ChunkDistinct(3, 10, None, None)))
        }
    })
    private val names = ConcurrentHashMap.newKeySet[Int]()

    def seen: Seq[Int] = names.asScala.toSeq

    override def read(file: FileStatus, hadoop: Configuration): FileFooter = {
      reads.incrementAndGet()
      gate.foreach(_.await())
      Thread.sleep(sleepMs)
      val number = file.getPath.getName.toInt
      names.add(number - 1)
      if (broken(number)) throw error()
      val column = ColumnFooter(8, Some(0), Some(0), Some(1), None)
      FileFooter(rowsIn(file).toLong, (0 until columns).map(i => s"c$i" -> column).toMap, Seq(10L))
    }
  }
}
