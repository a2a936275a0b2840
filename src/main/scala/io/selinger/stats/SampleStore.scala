package io.selinger.stats

import com.google.common.cache.{Cache, CacheBuilder}
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
 */
final case class ColumnFacts(summary: ColumnSummary, alike: Double)

/** Bounds of sampling one relation; see the settings of the same names. */
final case class SampleLimits(budgetMs: Long, maxRows: Int, threads: Int, cacheMaxBytes: Long)

/**
 * @param sample of the columns that could be read
 * @param columns those, in the order of the sample
 * @param complete whether all row groups that were wanted are in it
 * @param ms time that this call took
 */
final case class SampleAnswer(
    sample: Option[RelationSample],
    columns: Seq[StructField],
    complete: Boolean,
    ms: Double
)

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

  private final case class EvaluationKey(
      groups: String,
      rows: Int,
      columns: Seq[(String, DataType)],
      predicates: Seq[Expression]
  )

  private final case class Task(file: FileVersion, requests: Seq[ChunkKey])

  private final case class Caches(maxBytes: Long) {
    private def most = CacheBuilder.newBuilder().maximumWeight(maxBytes)

    // A column that cannot be sampled is remembered as none.
    val chunks: Cache[ChunkKey, Option[SampledChunk]] =
      most
        .weigher((_: ChunkKey, chunk: Option[SampledChunk]) =>
          200 + chunk.fold(0L)(_.bytes).min(Int.MaxValue.toLong / 2).toInt
        )
        .build[ChunkKey, Option[SampledChunk]]()

    // What follows from samples is small, whatever they hold.
    private def small = CacheBuilder.newBuilder().maximumSize(if (maxBytes > 0) 1000L else 0L)

    val facts: Cache[ColumnKey, ColumnFacts] = small.build()
    val evaluations: Cache[EvaluationKey, Evaluation] = small.build()

    val unreadable: Cache[FileVersion, java.lang.Boolean] =
      CacheBuilder.newBuilder().maximumSize(10000).expireAfterWrite(Duration.ofMinutes(1)).build()
  }

  private val sampleReads =
    new BoundedReads[Task, Map[ChunkKey, Option[SampledChunk]]]("selinger-samples")

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

  /** What `predicates` leave of a sample; evaluated once for each version of the files. */
  def evaluate(
      groups: RowGroups,
      answer: SampleAnswer,
      sample: RelationSample,
      predicates: Seq[Expression],
      limits: SampleLimits,
      deadline: Long
  ): Evaluation = {
    val caches = cachesOf(limits)
    val columns = answer.columns.map(c => FooterReader.columnName(c.name) -> c.dataType)
    val key = EvaluationKey(groups.id, limits.maxRows, columns, predicates)
    def result = sample.evaluate(predicates, deadline)
    if (!answer.complete || predicates.map(sizeOf).sum > mostNodes) result
    else
      Option(caches.evaluations.getIfPresent(key)).getOrElse {
        val fresh = result
        // What was left out for lack of time may be evaluated the next time.
        if (System.nanoTime() <= deadline) caches.evaluations.put(key, fresh)
        fresh
      }
  }

  /** What follows from the column at place `i` of a sample. */
  def facts(
      groups: RowGroups,
      answer: SampleAnswer,
      sample: RelationSample,
      i: Int,
      limits: SampleLimits
  ): ColumnFacts = {
    val column = answer.columns(i)
    def result = ColumnFacts(sample.columns(i).summary, sample.columns(i).alike)
    if (!answer.complete) result
    else {
      val name = FooterReader.columnName(column.name)
      val key = ColumnKey(groups.id, limits.maxRows, name, column.dataType)
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
      FileVersion.of(group.file),
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
    val files = groups.chosen.map(g => FileVersion.of(g.file) -> g.file).toMap
    val windows = groups.chosen
      .map(g => (FileVersion.of(g.file), g.index) -> g.parts * window)
      .toMap
    val tasks = missing
      .filter(key => caches.unreadable.getIfPresent(key.file) == null)
      .groupBy(_.file)
      .map { case (file, keys) => Task(file, keys) }
      .toSeq
    val budget = TimeUnit.MILLISECONDS.toNanos(limits.budgetMs)
    if (tasks.isEmpty || budget <= 0) Map.empty
    else {
      val configuration = hadoop
      // Readers stop a little earlier than we stop waiting, so that what they have arrives.
      val deadline = start + budget - budget / 5
      sampleReads
        .all(tasks, limits.threads, start + budget) { task =>
          val requests = task.requests.map { key =>
            ChunkRequest(key.index, key.rows, windows((key.file, key.index)), byKey(key.name)) ->
              key
          }.toMap
          readFile(reader, files(task.file), configuration, requests, deadline, caches)
        }
        .valuesIterator
        .foldLeft(Map.empty[ChunkKey, Option[SampledChunk]])(_ ++ _)
    }
  }

  private def readFile(
      reader: SampleReader,
      file: FileStatus,
      hadoop: Configuration,
      requests: Map[ChunkRequest, ChunkKey],
      deadline: Long,
      caches: Caches
  ): Option[Map[ChunkKey, Option[SampledChunk]]] = {
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
    Some(found.result())
  }

  /** The rows of those row groups whose columns have all arrived. */
  private def answer(
      groups: RowGroups,
      columns: Seq[StructField],
      chunks: Map[ChunkKey, Option[SampledChunk]],
      limits: SampleLimits,
      start: Long
  ): SampleAnswer = {
    val usable = columns.filter(column =>
      groups.chosen.forall(group => !chunks.get(keyOf(group, column, limits)).contains(None))
    )
    val whole = groups.chosen.filter(group =>
      usable.forall(column => chunks.contains(keyOf(group, column, limits)))
    )
    val complete = whole.size == groups.chosen.size
    val parts = usable.map { column =>
      column -> whole.map(group => chunks(keyOf(group, column, limits))).flatten
    }
    val sample = parts.headOption.filter(_ => whole.nonEmpty).map { case (_, first) =>
      RelationSample(
        parts.map { case (_, values) => ColumnSample(values.map(_.values)) }.toIndexedSeq,
        first.map(_.values.size),
        first.map(_.covered).sum
      )
    }
    SampleAnswer(sample, usable, complete, (System.nanoTime() - start) / 1e6)
  }
}
