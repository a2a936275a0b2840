package io.selinger.stats.samples

import com.google.common.cache.{Cache, CacheBuilder}
import io.selinger.stats.{
  ColumnSample,
  ColumnSummary,
  FileVersion,
  RelationSample,
  RowGroup,
  RowGroups,
  SampleAnswer,
  SampledGroup
}
import io.selinger.stats.files.{
  BoundedReads,
  ChunkRequest,
  FooterReader,
  SampleReader,
  SampledChunk
}
import java.time.Duration
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicReference
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.expressions.{Expression, InSet}
import org.apache.spark.sql.types.{DataType, StructField}
import org.slf4j.LoggerFactory
import scala.util.control.NonFatal

/**
 * What follows from all sampled values of a column.
 *
 * @param alike how much the values of a row group are alike, 0 to 1
 * @param hashed where rows can be compared by them
 */
final case class ColumnFacts(
    summary: ColumnSummary,
    alike: Double,
    hashed: Option[HashedColumn]
) {

  /** Driver memory, in bytes. */
  def bytes: Long = 400L + hashed.fold(0L)(_.bytes)
}

/**
 * What is asked of a sample.
 *
 * @param groups [[RowGroups.id]] of the relation
 * @param rows wanted
 * @param columns by lower-case name
 * @param predicates bound to them
 */
final case class SampleQuestion(
    groups: String,
    rows: Int,
    columns: Seq[(String, DataType)],
    predicates: Seq[Expression]
)

/**
 * @param applied places of the predicates that were evaluated
 * @param groups how many rows they left in each row group
 * @param covered rows that the sample was spread over
 * @param alike how much the rows of a row group are alike in the columns of these predicates
 * @param columns of the rows that are left, by their places, as far as they were read
 * @param keys the values of these rows
 */
final case class SampleResult(
    applied: Seq[Int],
    groups: Seq[SampledGroup],
    covered: Long,
    alike: Double,
    columns: Map[Int, ColumnSummary],
    keys: SampledKeys
)

/** Bounds of sampling one relation; see the settings of the same names. */
final case class SampleLimits(budgetMs: Long, maxRows: Int, threads: Int, cacheMaxBytes: Long)

/**
 * The driver's store of sampled columns: reads them in parallel, once for each version of a file,
 * within bounds of rows, time and memory, and keeps what predicates have left of them.
 */
object SampleStore {

  private val log = LoggerFactory.getLogger("io.selinger")

  private final case class ChunkKey(
      file: FileVersion,
      index: Int,
      rows: Int,
      name: String,
      kind: DataType
  )

  private final case class ColumnKey(groups: String, rows: Int, name: String, kind: DataType)

  private final case class Caches(maxBytes: Long) {
    // Each segment has its own part of the weight, and one thread plans most queries.
    private def most(share: Double) =
      CacheBuilder.newBuilder().concurrencyLevel(1).maximumWeight((maxBytes * share).toLong)

    // A column that cannot be sampled is remembered as none.
    val chunks: Cache[ChunkKey, Option[SampledChunk]] =
      most(0.5)
        .weigher((_: ChunkKey, chunk: Option[SampledChunk]) =>
          200 + chunk.fold(0L)(_.bytes).min(Int.MaxValue.toLong / 2).toInt
        )
        .build[ChunkKey, Option[SampledChunk]]()

    val facts: Cache[ColumnKey, ColumnFacts] =
      most(0.2)
        .weigher((_: ColumnKey, facts: ColumnFacts) =>
          facts.bytes.min(Int.MaxValue.toLong / 2).toInt
        )
        .build[ColumnKey, ColumnFacts]()

    val results: Cache[SampleQuestion, SampleResult] =
      most(0.3)
        .weigher((_: SampleQuestion, result: SampleResult) =>
          2000 + result.columns.size * 400 + result.keys.bytes.min(Int.MaxValue.toLong / 2).toInt
        )
        .build[SampleQuestion, SampleResult]()

    val unreadable: Cache[FileVersion, java.lang.Boolean] =
      CacheBuilder.newBuilder().maximumSize(10000).expireAfterWrite(Duration.ofMinutes(1)).build()
  }

  private val sampleReads = new BoundedReads[ChunkKey, Option[SampledChunk]]("selinger-samples")

  private val current = new AtomicReference[Caches]()

  // Rows of a row group that are decoded at most, for each part of the relation that it stands for.
  private val window = 65536L

  // A longer predicate is evaluated anew rather than kept.
  private val mostNodes = 2000

  /** Rows of `groups` with these columns. */
  def sample(
      reader: SampleReader,
      groups: RowGroups,
      columns: Seq[StructField],
      hadoop: => Configuration,
      limits: SampleLimits
  ): SampleAnswer = {
    val start = System.nanoTime()
    val caches = cachesOf(limits)
    val keys = for (group <- groups.chosen; column <- columns) yield keyOf(group, column, limits)
    val known = keys.distinct.flatMap(key =>
      Option(caches.chunks.getIfPresent(key)).map(key -> _)
    ).toMap
    val missing = keys.filterNot(known.contains)
    val fresh =
      if (missing.isEmpty) Map.empty[ChunkKey, Option[SampledChunk]]
      else readMissing(reader, groups, columns, missing, hadoop, limits, start, caches)
    answer(groups, columns, known ++ fresh, limits, start)
  }

  /** Forgets everything; the next query reads samples anew. */
  def clear(): Unit = current.set(null)

  /** What was found out before about the same rows; files that changed have other rows. */
  def known(question: SampleQuestion, limits: SampleLimits): Option[SampleResult] =
    Option(cachesOf(limits).results.getIfPresent(question))

  def keep(question: SampleQuestion, result: SampleResult, limits: SampleLimits): Unit =
    if (question.predicates.map(sizeOf).sum <= mostNodes) {
      cachesOf(limits).results.put(question, result)
    }

  /** What follows from the column at place `i` of a sample. */
  def facts(
      question: SampleQuestion,
      answer: SampleAnswer,
      sample: RelationSample,
      i: Int,
      limits: SampleLimits
  ): ColumnFacts = {
    val (name, kind) = question.columns(i)
    def result = {
      val column = sample.columns(i)
      val hashed = HashedColumn.hash(column, kind)
      val summary = hashed.fold(column.summary)(_.summaryOfAll(column))
      ColumnFacts(summary, column.alike, hashed)
    }
    if (!answer.complete) result
    else {
      val key = ColumnKey(question.groups, question.rows, name, kind)
      cachesOf(limits).facts.get(key, () => result)
    }
  }

  /** Memory of a predicate, in nodes. */
  private def sizeOf(predicate: Expression): Int = predicate.collect {
    case InSet(_, values) => values.size
    case _ => 1
  }.sum

  private def cachesOf(limits: SampleLimits): Caches = current.updateAndGet { caches =>
    if (caches == null || caches.maxBytes != limits.cacheMaxBytes) Caches(limits.cacheMaxBytes)
    else caches
  }

  private def keyOf(group: RowGroup, column: StructField, limits: SampleLimits): ChunkKey =
    ChunkKey(
      group.version,
      group.index,
      rowsOf(group, limits),
      FooterReader.columnName(column.name),
      column.dataType
    )

  private def rowsOf(group: RowGroup, limits: SampleLimits): Int =
    math
      .max(1L, limits.maxRows.toLong * group.parts / RowGroups.parts)
      .min(group.rows)
      .toInt

  private def readMissing(
      reader: SampleReader,
      groups: RowGroups,
      columns: Seq[StructField],
      missing: Seq[ChunkKey],
      hadoop: => Configuration,
      limits: SampleLimits,
      start: Long,
      caches: Caches
  ): Map[ChunkKey, Option[SampledChunk]] = {
    val byKey = columns.map(c => FooterReader.columnName(c.name) -> c).toMap
    val files = groups.chosen.map(g => g.version -> g.file).toMap
    val windows = groups.chosen
      .map(g => (g.version, g.index) -> g.parts * window)
      .toMap
    val perFile = missing
      .filter(key => caches.unreadable.getIfPresent(key.file) == null)
      .groupBy(_.file)
      .valuesIterator
      .toSeq
    val budget = TimeUnit.MILLISECONDS.toNanos(limits.budgetMs)
    if (perFile.isEmpty || budget <= 0) Map.empty
    else {
      val configuration = hadoop
      // Readers stop a little earlier than we stop waiting, so that what they have arrives.
      val deadline = start + budget - budget / 5
      sampleReads.inGroups(perFile, limits.threads, start + budget) { keys =>
        val requests = keys.map { key =>
          ChunkRequest(key.index, key.rows, windows((key.file, key.index)), byKey(key.name)) -> key
        }.toMap
        // Others may have tried since it was missing.
        if (caches.unreadable.getIfPresent(keys.head.file) != null) Map.empty
        else readFile(reader, files(keys.head.file), configuration, requests, deadline, caches)
      }
    }
  }

  private def readFile(
      reader: SampleReader,
      file: FileStatus,
      hadoop: Configuration,
      requests: Map[ChunkRequest, ChunkKey],
      deadline: Long,
      caches: Caches
  ): Map[ChunkKey, Option[SampledChunk]] = {
    val found = Map.newBuilder[ChunkKey, Option[SampledChunk]]
    try
      reader.read(file, hadoop, requests.keys.toSeq, deadline) { (request, chunk) =>
        caches.chunks.put(requests(request), chunk)
        val _ = found += requests(request) -> chunk
      }
    catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        caches.unreadable.put(FileVersion.of(file), java.lang.Boolean.TRUE)
        log.warn(s"${file.getPath} could not be sampled, so predicates are estimated: $error")
    }
    found.result()
  }

  /** The rows of those row groups whose columns have all arrived. */
  private def answer(
      groups: RowGroups,
      columns: Seq[StructField],
      chunks: Map[ChunkKey, Option[SampledChunk]],
      limits: SampleLimits,
      start: Long
  ): SampleAnswer = {
    val found = columns.map(column =>
      groups.chosen.map(group => chunks.get(keyOf(group, column, limits)))
    )
    val usable = found.indices.filterNot(i => found(i).contains(Some(None)))
    val whole = groups.chosen.indices.filter(g => usable.forall(i => found(i)(g).isDefined))
    val parts = found.indices.map { i =>
      if (usable.contains(i)) whole.flatMap(found(i)(_).flatten) else Nil
    }
    val sample = usable.headOption.filter(_ => whole.nonEmpty).map { first =>
      RelationSample(
        parts.map(chunks =>
          ColumnSample(chunks.map(_.values), chunks.flatMap(_.neighbours).toIndexedSeq)
        ),
        parts(first).map(_.values.size),
        parts(first).map(_.covered).sum
      )
    }
    SampleAnswer(
      sample,
      usable.toSet,
      whole.size == groups.chosen.size,
      (System.nanoTime() - start) / 1e6
    )
  }
}
