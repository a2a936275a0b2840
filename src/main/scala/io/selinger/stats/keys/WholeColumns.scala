package io.selinger.stats.keys

import com.google.common.cache.{Cache, CacheBuilder}
import com.google.common.hash.Hashing
import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.stats.{FileVersion, KeyTypes, OrderedNumbers}
import io.selinger.stats.files.{
  BoundedReads,
  ChunkRequest,
  FooterReader,
  SampleReader,
  SampledChunk
}
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.relations.FileRelation
import io.selinger.stats.samples.SamplingTime
import io.selinger.stats.sketches.UseCollectedStatistics
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.concurrent.TimeUnit
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.types._
import org.slf4j.LoggerFactory
import scala.util.control.NonFatal

/**
 * What all values of some columns of a relation prove.
 *
 * @param isUnique whether no two rows have the same values, rows with a null left aside
 * @param hasNulls whether there are such rows
 * @param consecutive for one column of whole numbers: the smallest and the largest value, where no number
 *   between them is missing
 */
final case class KeyFacts(
    isUnique: Boolean,
    hasNulls: Boolean,
    consecutive: Option[(Long, Long)]
)

/**
 * Columns of small relations, read in full on the driver, and keys that jobs have checked. Unlike samples these are proofs, as long as
 * nobody overwrites a file in place: a change of the plan may rely on them.
 */
object WholeColumns {

  private val log = LoggerFactory.getLogger("io.selinger")

  /**
   * One question.
   *
   * @param files the same for the same versions of the same files
   * @param columns by lower-case name
   */
  private final case class Question(files: String, columns: Seq[(String, DataType)])

  private final case class Columns(
      reader: SampleReader,
      files: Seq[(FileStatus, Seq[Long])],
      fields: Seq[StructField]
  )

  /** A row group of a file. */
  private final case class Group(file: FileVersion, index: Int, question: Question)

  /** By the names of columns. */
  private type Chunks = Map[String, SampledChunk]

  private val reads = new BoundedReads[Question, KeyFacts]("selinger-keys")
  private val groupReads = new BoundedReads[Group, Chunks]("selinger-keys")

  private val known: Cache[Question, KeyFacts] =
    CacheBuilder.newBuilder().maximumSize(1000).build()
  // What cannot be read, or not in time, is not tried again at each query, but later.
  private val unknown: Cache[Question, java.lang.Boolean] =
    CacheBuilder.newBuilder().maximumSize(1000).expireAfterWrite(Duration.ofMinutes(1)).build()

  // A reader that nobody waits for any longer ends by then; what it finds serves the next query.
  private val longest = TimeUnit.SECONDS.toNanos(10)

  private val threads = 8

  // Driver memory for the values of one question.
  private val mostBytes = 64L << 20

  /** Forgets everything; the next query reads columns anew. */
  def clear(): Unit = {
    known.invalidateAll()
    unknown.invalidateAll()
  }

  /**
   * What the columns of all rows of a relation prove: as a job has found in just these files, or as they
   * are read now. `None` where there was no such job and the relation has more rows than
   * `spark.selinger.keys.maxRows`, or its columns cannot be read, or not in the time that samples have.
   */
  def facts(relation: FileRelation, columns: Seq[Attribute]): Option[KeyFacts] =
    if (areProvable(relation, columns))
      checked(relation, columns).orElse(readNow(relation, columns))
    else None

  /** Whether a job has found that columns tell the rows of just these files apart. */
  def areChecked(relation: FileRelation, columns: Seq[Attribute]): Boolean =
    areProvable(relation, columns) && checked(relation, columns).isDefined

  /** Whether all of them are in the files, with types whose equal values are equal objects. */
  private def areProvable(relation: FileRelation, columns: Seq[Attribute]): Boolean = {
    val partitions = relation.partitionSchema.fieldNames.map(FooterReader.columnName).toSet
    columns.nonEmpty && columns.forall(column =>
      KeyTypes.areProvable(column.dataType) && !partitions(FooterReader.columnName(column.name))
    )
  }

  private def checked(relation: FileRelation, columns: Seq[Attribute]): Option[KeyFacts] = {
    val asked = columns.map(column => FooterReader.columnName(column.name) -> column.dataType).toMap
    // Rows of files that lack a column may have another value than null for it.
    if (columns.exists(KeyTypes.hasDefault)) None
    else
      UseCollectedStatistics.key(relation, asked).map { key =>
        // With more columns than the key rows stay different, but these may have nulls.
        val isAll = key.columns.size == asked.size
        KeyFacts(isUnique = true, !isAll || key.hasNulls, key.consecutive.filter(_ => isAll))
      }
  }

  private def readNow(relation: FileRelation, columns: Seq[Attribute]): Option[KeyFacts] = {
    val fields = columns.map(column =>
      StructField(column.name, column.dataType, nullable = true, column.metadata)
    )
    for {
      reader <- relation.reader.samples
      most = SelingerConf.KEYS_MAX_ROWS.value.min(Int.MaxValue.toLong)
      if most > 0
      files <- ReadFooterStatistics.rowGroups(relation)
      if files.iterator.flatMap(_._2).sum <= most
      found <- ask(Columns(reader, files, fields), relation.hadoop)
    } yield found
  }

  // To make a configuration takes a millisecond, and most answers are known.
  private def ask(columns: Columns, hadoop: => Configuration): Option[KeyFacts] = {
    val question = Question(
      idOf(columns.files.map(_._1)),
      columns.fields.map(field => FooterReader.columnName(field.name) -> field.dataType)
    )
    Option(known.getIfPresent(question)).orElse {
      val budgetMs = SamplingTime.leftMs
      if (unknown.getIfPresent(question) != null) None
      else if (budgetMs <= 0) {
        PlanningPass.current.cutShort()
        None
      } else {
        val start = System.nanoTime()
        val deadline = start + TimeUnit.MILLISECONDS.toNanos(budgetMs)
        val configuration = hadoop
        val found = reads.all(Seq(question), 1, deadline) {
          read(_, columns, configuration, start + longest)
        }
        SamplingTime.add((System.nanoTime() - start) / 1e6)
        if (found.isEmpty && System.nanoTime() >= deadline) PlanningPass.current.cutShort()
        found.get(question)
      }
    }
  }

  private def idOf(files: Seq[FileStatus]): String = {
    val hasher = Hashing.murmur3_128().newHasher()
    files.map(FileVersion.of).foreach { file =>
      hasher.putString(file.path, UTF_8).putLong(file.length).putLong(file.modified)
    }
    hasher.hash().toString
  }

  private def read(
      question: Question,
      columns: Columns,
      hadoop: Configuration,
      deadline: Long
  ): Option[KeyFacts] = {
    val groups = for {
      (file, sizes) <- columns.files
      (rows, index) <- sizes.zipWithIndex
      if rows > 0
    } yield Group(FileVersion.of(file), index, question) -> (file, rows)
    val sources = groups.toMap
    val found = groupReads.all(groups.map(_._1), threads, deadline) { group =>
      val (file, rows) = sources(group)
      Some(readGroup(file, group.index, rows, columns, hadoop, deadline))
    }
    val names = question.columns.map(_._1)
    val chunks = groups.map { case (group, (_, rows)) =>
      names.map(name => found.get(group).flatMap(_.get(name)).filter(_.values.size == rows))
    }
    val areThere = chunks.forall(_.forall(_.isDefined)) &&
      chunks.iterator.flatten.flatten.map(_.bytes).sum <= mostBytes
    val facts = Option.when(areThere) {
      val values = chunks.map(_.flatten.map(_.values))
      if (columns.fields.indices.exists(i => isAncient(columns.fields(i), values.map(_(i)))))
        KeyFacts(isUnique = false, hasNulls = true, None)
      else factsOf(values)
    }
    facts match {
      case Some(proven) => known.put(question, proven)
      case None => unknown.put(question, java.lang.Boolean.TRUE)
    }
    facts
  }

  private def isAncient(field: StructField, chunks: Seq[IndexedSeq[Any]]): Boolean =
    field.dataType == DateType && chunks.iterator.flatten.exists {
      case day: Int => day < KeyTypes.firstCertainDay
      case _ => false
    }

  private def readGroup(
      file: FileStatus,
      index: Int,
      rows: Long,
      columns: Columns,
      hadoop: Configuration,
      deadline: Long
  ): Chunks = {
    val found = Map.newBuilder[String, SampledChunk]
    val requests = columns.fields.map(ChunkRequest(index, rows.toInt, rows, _, neighbours = false))
    try
      columns.reader.read(file, hadoop, requests, deadline) { (request, chunk) =>
        chunk.foreach(found += FooterReader.columnName(request.column.name) -> _)
      }
    catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        log.debug(s"The keys of ${file.getPath} are not known: $error")
    }
    found.result()
  }

  /** @param chunks for each row group the values of each column */
  private[keys] def factsOf(chunks: Seq[Seq[IndexedSeq[Any]]]): KeyFacts =
    chunks.headOption.map(_.size) match {
      case Some(1) => ofOne(chunks.map(_.head))
      case Some(_) =>
        def rows = chunks.iterator.flatMap(columns =>
          columns.head.indices.iterator.map(i => columns.map(_(i)))
        )
        KeyFacts(
          areDistinct(rows.filterNot(_.contains(null))),
          hasNulls = rows.exists(_.contains(null)),
          None
        )
      case None => KeyFacts(isUnique = true, hasNulls = false, None)
    }

  private def ofOne(chunks: Seq[IndexedSeq[Any]]): KeyFacts =
    if (chunks.forall(isOfNumbers)) {
      val sorted = chunks.iterator.flatMap(numbersOf).toArray
      java.util.Arrays.sort(sorted)
      var (repeats, isComplete) = (false, true)
      (1 until sorted.length).foreach { i =>
        val step = sorted(i) - sorted(i - 1)
        repeats ||= step == 0
        isComplete &&= step == 0 || step == 1
      }
      KeyFacts(
        !repeats,
        hasNulls = sorted.length < chunks.iterator.map(_.size).sum,
        Option.when(isComplete && sorted.nonEmpty)((sorted.head, sorted.last))
      )
    } else {
      def values = chunks.iterator.flatten
      KeyFacts(areDistinct(values.filter(_ != null)), hasNulls = values.contains(null), None)
    }

  /** Whether values are whole numbers, or nulls only. */
  private def isOfNumbers(values: IndexedSeq[Any]): Boolean =
    values.find(_ != null).forall {
      case _: Byte | _: Short | _: Int | _: Long => true
      case _ => false
    }

  private def numbersOf(values: IndexedSeq[Any]): Array[Long] = values match {
    case ordered: OrderedNumbers =>
      values.indices.iterator.filterNot(ordered.isNull).map(ordered.number).toArray
    case others => others.iterator.collect { case number: Number => number.longValue }.toArray
  }

  private def areDistinct(values: Iterator[Any]): Boolean = {
    val seen = new java.util.HashSet[Any]()
    values.forall(seen.add)
  }
}
