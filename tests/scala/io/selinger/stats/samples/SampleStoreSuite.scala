package io.selinger.stats.samples

import io.selinger.stats.{RelationSample, RowGroups, SampleAnswer, SampledGroup}
import io.selinger.stats.files.{ChunkRequest, SampleReader, SampledChunk}
import io.selinger.testing.Samples
import java.io.IOException
import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch}
import java.util.concurrent.atomic.AtomicInteger
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.scalatest.BeforeAndAfterEach
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Millis, Seconds, Span}
import scala.collection.immutable.ArraySeq
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.Duration
import scala.jdk.CollectionConverters._

/** The store's bounds and its cache, with a reader that needs no files. */
class SampleStoreSuite extends AnyFunSuite with BeforeAndAfterEach with Eventually {
  import SampleStoreSuite._

  implicit override val patienceConfig: PatienceConfig =
    PatienceConfig(timeout = Span(10, Seconds), interval = Span(20, Millis))

  override protected def beforeEach(): Unit = SampleStore.clear()

  override protected def afterEach(): Unit = {
    eventually(assert(threads.isEmpty))
    SampleStore.clear()
  }

  private val limits =
    SampleLimits(budgetMs = 60000, maxRows = 1600, threads = 4, cacheMaxBytes = 64L << 20)

  private def ask(
      reader: SampleReader,
      groups: RowGroups,
      columns: Seq[StructField] = Seq(a, b),
      limits: SampleLimits = limits
  ): SampleAnswer = SampleStore.sample(reader, groups, columns, new Configuration(), limits)

  private def sampleOf(answer: SampleAnswer): RelationSample =
    answer.sample.getOrElse(fail("no sample"))

  test("rows of all row groups, the same rows of every column") {
    val answer = ask(new StubReader, relation(files = 4, groups = 4))
    val sample = sampleOf(answer)
    assert(answer.complete && answer.usable == Set(0, 1))
    assert(sample.sizes == Seq.fill(16)(100) && sample.rows == 1600)
    sample.columns(0).chunks.zip(sample.columns(1).chunks).foreach { case (x, y) =>
      assert(x == y)
    }
  }

  test("each column of each row group is read once") {
    val reader = new StubReader
    val groups = relation(files = 3, groups = 2)
    ask(reader, groups, Seq(a))
    ask(reader, groups, Seq(a))
    assert(reader.chunks.get == 6)
    ask(reader, groups, Seq(a, b))
    assert(reader.chunks.get == 12)
  }

  test("a file rewritten under its old name is read again") {
    val reader = new StubReader
    ask(reader, relation(files = 1, groups = 1, modified = 1), Seq(a))
    ask(reader, relation(files = 1, groups = 1, modified = 2), Seq(a))
    assert(reader.chunks.get == 2)
  }

  test("without time nothing is read") {
    val reader = new StubReader
    val answer = ask(reader, relation(files = 2, groups = 1), limits = limits.copy(budgetMs = 0))
    assert(answer.sample.isEmpty && !answer.complete && reader.chunks.get == 0)
  }

  test("beyond the budget of time: what has arrived; more of it at later queries") {
    val reader = new StubReader(sleepMs = 20)
    val groups = relation(files = 16, groups = 1)
    val short = limits.copy(budgetMs = 100, threads = 2)
    val first = ask(reader, groups, Seq(a), short)
    assert(!first.complete)
    eventually(assert(ask(reader, groups, Seq(a), short).complete))
  }

  test("a reader that hangs costs the budget and no more") {
    val gate = new CountDownLatch(1)
    val reader = new StubReader(gate = Some(gate))
    val groups = relation(files = 2, groups = 1)
    // Nothing arrives before the gate opens, so this must give up.
    try {
      val answer = Future(ask(reader, groups, Seq(a), limits.copy(budgetMs = 50)))(
        ExecutionContext.global
      )
      assert(Await.result(answer, Duration(60, "s")).sample.isEmpty)
    } finally gate.countDown()
  }

  test("a column that cannot be sampled is left out, and not tried again") {
    val reader = new StubReader(unsupported = Set("b"))
    val groups = relation(files = 2, groups = 2)
    val answer = ask(reader, groups)
    assert(answer.usable == Set(0) && sampleOf(answer).rows == 1600)
    ask(reader, groups)
    assert(reader.chunks.get == 8)
  }

  test("a file that cannot be read leaves the others, and is not tried at each query") {
    val reader = new StubReader(broken = Set(1))
    val groups = relation(files = 4, groups = 1)
    val answer = ask(reader, groups, Seq(a))
    assert(!answer.complete && sampleOf(answer).rows == 1200)
    val opened = reader.opened.size
    ask(reader, groups, Seq(a))
    assert(reader.opened.size == opened)
  }

  test("a reader that raises a LinkageError is like a file that cannot be read") {
    val reader = new StubReader(broken = Set(0), error = () => new NoSuchMethodError("boom"))
    assert(ask(reader, relation(files = 1, groups = 1)).sample.isEmpty)
  }

  test("no row groups: no sample") {
    assert(ask(new StubReader, RowGroups.none).sample.isEmpty)
  }

  test("without a cache samples are read at every query, and known all the same") {
    val reader = new StubReader
    val none = limits.copy(cacheMaxBytes = 0)
    val groups = relation(files = 2, groups = 1)
    assert(sampleOf(ask(reader, groups, Seq(a), none)).rows == 1600)
    assert(sampleOf(ask(reader, groups, Seq(a), none)).rows == 1600)
    assert(reader.chunks.get == 4)
  }

  test("the cache forgets rather than grows") {
    val reader = new StubReader
    val small = limits.copy(cacheMaxBytes = 100000)
    (1 to 50).foreach(i => ask(reader, relation(1, 1, modified = i.toLong), Seq(a), small))
    val before = reader.chunks.get
    (1 to 50).foreach(i => ask(reader, relation(1, 1, modified = i.toLong), Seq(a), small))
    assert(reader.chunks.get - before > 40)
  }

  test("many queries at a time") {
    val reader = new StubReader(sleepMs = 1)
    val groups = relation(files = 8, groups = 2)
    val answers = (1 to 8).map { i =>
      Future(ask(reader, groups, if (i % 2 == 0) Seq(a) else Seq(a, b)))(ExecutionContext.global)
    }
    answers.foreach { answer =>
      assert(sampleOf(Await.result(answer, Duration(30, "s"))).rows == 1600)
    }
  }

  private def question(groups: RowGroups, most: Long): SampleQuestion = SampleQuestion(
    groups.id,
    limits.maxRows,
    Seq("a" -> LongType),
    Seq(LessThan(BoundReference(0, LongType, nullable = true), Literal(most)))
  )

  private val noKeys = Samples.keys("none", Nil)()

  test("what predicates left is kept, by predicate and by version of the files") {
    val groups = relation(files = 2, groups = 1)
    val result = SampleResult(Seq(0), Seq(SampledGroup(3, 100)), 100L, 0.5, Map.empty, noKeys)
    SampleStore.keep(question(groups, 10), result, limits)
    assert(SampleStore.known(question(groups, 10), limits).contains(result))
    assert(SampleStore.known(question(groups, 20), limits).isEmpty)
    val changed = relation(files = 2, groups = 1, modified = 2)
    assert(SampleStore.known(question(changed, 10), limits).isEmpty)
  }

  test("results of very long predicates are not kept") {
    val groups = relation(files = 1, groups = 1)
    val column = BoundReference(0, LongType, nullable = true)
    val long = question(groups, 1).copy(predicates = Seq(InSet(column, (1L to 5000L).toSet)))
    SampleStore.keep(long, SampleResult(Nil, Nil, 0L, 0.0, Map.empty, noKeys), limits)
    assert(SampleStore.known(long, limits).isEmpty)
  }

  test("what follows from a column is computed once") {
    val groups = relation(files = 2, groups = 1)
    def facts = {
      val answer = ask(new StubReader, groups, Seq(a))
      SampleStore.facts(question(groups, 10), answer, sampleOf(answer), 0, limits)
    }
    assert(facts eq facts)
    assert(facts.summary.rows == 1600)
  }
}

object SampleStoreSuite {

  private val a = StructField("a", LongType)
  private val b = StructField("b", LongType)

  private def threads: Set[Thread] =
    Thread.getAllStackTraces.keySet.asScala.toSet.filter(_.getName == "selinger-samples")

  private def relation(files: Int, groups: Int, modified: Long = 1): RowGroups =
    RowGroups.spread((0 until files).map { i =>
      val path = new Path(s"/nowhere/$i")
      new FileStatus(1000, false, 1, 1L << 20, modified, path) -> Seq.fill(groups)(100000L)
    })

  /** Every column holds the places of its rows. */
  private final class StubReader(
      sleepMs: Long = 0,
      gate: Option[CountDownLatch] = None,
      broken: Set[Int] = Set.empty,
      unsupported: Set[String] = Set.empty,
      error: () => Throwable = () => new IOException("broken file")
  ) extends SampleReader {

    val chunks = new AtomicInteger()
    val opened = new ConcurrentLinkedQueue[String]()

    override def read(
        file: FileStatus,
        hadoop: Configuration,
        requests: Seq[ChunkRequest],
        deadline: Long
    )(answer: (ChunkRequest, Option[SampledChunk]) => Unit): Unit = {
      opened.add(file.getPath.getName)
      if (broken(file.getPath.getName.toInt)) throw error()
      requests.foreach { request =>
        if (System.nanoTime() < deadline) {
          gate.foreach(_.await())
          Thread.sleep(sleepMs)
          chunks.incrementAndGet()
          val places = SampleReader.places(request.rows, request.window, request.index)
          answer(
            request,
            Option.unless(unsupported(request.column.name))(
              SampledChunk(
                ArraySeq.from[Any](places),
                ArraySeq.empty,
                request.window,
                24L * places.length
              )
            )
          )
        }
      }
    }
  }
}
