package io.selinger.stats.sketches

import io.selinger.stats.FileVersion
import io.selinger.stats.files.SampleReader
import java.util.Random
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.TaskContext
import org.apache.spark.paths.SparkPath
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{FileFormat, PartitionedFile}
import org.apache.spark.sql.types.{StructField, StructType}
import org.apache.spark.sql.vectorized.ColumnarBatch
import scala.util.control.NonFatal

/**
 * A part of a file that one task reads.
 *
 * @param file its place among the files of the run
 * @param share of the file, by bytes
 * @param sampleRows rows to keep of it
 */
private[sketches] final case class FilePart(
    file: Int,
    path: String,
    start: Long,
    length: Long,
    fileLength: Long,
    modified: Long,
    share: Double,
    sampleRows: Int
) {

  /** The same for the same rows: what is drawn of them is the same for each column. */
  def seed: Long =
    Seq(path.hashCode, start, length, fileLength, modified, sampleRows).foldLeft(17L)((id, next) =>
      (id * 31 + next.hashCode) * 0x9e3779b97f4a7c15L
    )
}

/**
 * What was collected of a part.
 *
 * @param sketches a column each, as [[ColumnSketch.toBytes]] writes them
 * @param problem why there are none
 */
private[sketches] final case class PartResult(
    file: Int,
    sketches: Array[Array[Byte]],
    problem: Option[String]
)

/**
 * Reads columns of files with Spark's own vectorised readers, on the cluster, and sketches them:
 * nothing but sketches leaves a task.
 */
private[sketches] object SketchJob {

  /** More columns at a time would not be read in batches; others are read in further passes. */
  val columnsAtOnce: Int = 100

  /** Longer values, on average, are not kept in samples. */
  private val longestSampled = 512

  /**
   * @param format Spark's own Parquet or ORC
   * @param schema of the files, without partition columns
   * @param columns of them, at most [[columnsAtOnce]]
   * @param tasks the parts that each task reads
   */
  def run(
      session: SparkSession,
      format: FileFormat,
      options: Map[String, String],
      schema: StructType,
      columns: Seq[StructField],
      tasks: Seq[Seq[FilePart]],
      sizes: SketchSizes
  ): Seq[PartResult] = {
    val batches = vectorised(session)
    val read = format.buildReaderWithPartitionValues(
      batches,
      schema,
      StructType(Nil),
      StructType(columns),
      Nil,
      options + (FileFormat.OPTION_RETURNING_BATCH -> "true"),
      batches.sessionState.newHadoopConfWithOptions(options)
    )
    val wanted = columns.toArray
    session.sparkContext
      .parallelize(tasks, tasks.size)
      .mapPartitions(_.flatten.map(part => sketch(part, read, wanted, sizes)))
      .collect()
      .toSeq
  }

  /** A session with the settings of another one, but for some. */
  def sessionLike(session: SparkSession, others: (String, String)*): SparkSession = {
    val made = session.newSession()
    session.conf.getAll.foreach { case (key, value) =>
      if (made.conf.isModifiable(key)) made.conf.set(key, value)
    }
    others.foreach { case (key, value) => made.conf.set(key, value) }
    made
  }

  /** A session with these settings whose readers return batches, whatever the user has set. */
  private def vectorised(session: SparkSession): SparkSession =
    sessionLike(
      session,
      "spark.sql.parquet.enableVectorizedReader" -> "true",
      "spark.sql.orc.enableVectorizedReader" -> "true",
      "spark.sql.codegen.wholeStage" -> "true",
      "spark.sql.codegen.maxFields" -> columnsAtOnce.toString,
      "spark.sql.columnVector.offheap.enabled" -> "false",
      // Files that cannot be read are reported by name, and must not count as empty.
      "spark.sql.files.ignoreMissingFiles" -> "false",
      "spark.sql.files.ignoreCorruptFiles" -> "false"
    )

  // ---- in a task ----------------------------------------------------------------------------

  private def sketch(
      part: FilePart,
      read: PartitionedFile => Iterator[InternalRow],
      columns: Array[StructField],
      sizes: SketchSizes
  ): PartResult =
    try {
      val sketchers = columns.map(column => ColumnSketcher.forType(column.dataType, sizes))
      val rows = new Reservoir(part.sampleRows, part.seed)
      val samples = columns.map(_ => new SampledColumn(part.sampleRows))
      val file = PartitionedFile(
        InternalRow.empty,
        SparkPath.fromUrlString(part.path),
        part.start,
        part.length,
        Array.empty,
        part.modified,
        part.fileLength,
        Map.empty
      )
      // A reader of batches says that it returns rows.
      read(file).asInstanceOf[Iterator[Any]].foreach {
        case batch: ColumnarBatch => add(batch, sketchers, rows, samples)
        case other => throw new IllegalStateException(s"not a batch: ${other.getClass}")
      }
      val results = sketchers.zip(samples).map { case (sketcher, values) =>
        val whole = sketcher.result(part.share, Some(values.result(rows.filled, part.seed)))
        val long = whole.bytes.exists(_ > longestSampled.toLong * math.max(1L, whole.present))
        ColumnSketch.toBytes(if (long) whole.copy(sample = None) else whole)
      }
      PartResult(part.file, results, None)
    } catch {
      case error @ (NonFatal(_) | _: LinkageError)
          if !Option(TaskContext.get()).exists(_.isInterrupted()) =>
        PartResult(part.file, Array.empty, Some(reasonOf(error)))
    }

  private def reasonOf(error: Throwable): String =
    Iterator.iterate(error)(_.getCause).takeWhile(_ != null).take(10).toSeq.last.toString.take(500)

  private def add(
      batch: ColumnarBatch,
      sketchers: Array[ColumnSketcher],
      rows: Reservoir,
      samples: Array[SampledColumn]
  ): Unit = {
    if (Option(TaskContext.get()).exists(_.isInterrupted())) {
      throw new InterruptedException("the task was stopped")
    }
    rows.next(batch.numRows)
    var i = 0
    while (i < sketchers.length) {
      val column = batch.column(i)
      sketchers(i).add(column, batch.numRows)
      var pick = 0
      while (pick < rows.picked) {
        val row = rows.row(pick)
        def next = if (row + 1 < batch.numRows) sketchers(i).sampled(column, row + 1) else null
        samples(i).put(rows.slot(pick), sketchers(i).sampled(column, row), next)
        pick += 1
      }
      i += 1
    }
  }

  /** One column of sampled rows, of which some are kept with the row next to them. */
  private final class SampledColumn(size: Int) {
    private val values = new Array[Any](size)
    private val neighbours = values.indices.filter(SampleReader.hasNeighbour)
    private val next = new Array[Any](size)

    /** @param after the value of the next row, null where it is not at hand */
    def put(slot: Int, value: Any, after: => Any): Unit = {
      values(slot) = value
      if (SampleReader.hasNeighbour(slot)) next(slot) = after
    }

    def result(filled: Int, seed: Long): SampledRows = {
      val pairs = neighbours.takeWhile(_ < filled).flatMap(slot => Seq(values(slot), next(slot)))
      // Values that were drawn early lie in front.
      SampledRows(seed, ColumnSketch.shuffled(values.take(filled), seed), pairs)
    }
  }

  /**
   * Rows at random out of a stream of unknown length (Li, "Reservoir-Sampling Algorithms of Time
   * Complexity O(n(1 + log(N/n)))", 1994). Depends on the seed and on how many rows come only.
   */
  private[sketches] final class Reservoir(size: Int, seed: Long) {
    private val random = new Random(seed)
    private var seen = 0L
    private var weight = math.exp(math.log(unit()) / math.max(1, size))
    private var target = if (size == 0) Long.MaxValue else size - 1 + skip()
    private var rows = new Array[Int](64)
    private var slots = new Array[Int](64)

    /** Rows of the last batch that are kept, each in a slot; a later one replaces an earlier one. */
    var picked = 0
    def row(pick: Int): Int = rows(pick)
    def slot(pick: Int): Int = slots(pick)

    def filled: Int = math.min(size.toLong, seen).toInt

    def next(count: Int): Unit = {
      picked = 0
      var i = 0
      while (i < count && seen + i < size) {
        pick(i, (seen + i).toInt)
        i += 1
      }
      while (target < seen + count) {
        pick((target - seen).toInt, random.nextInt(size))
        weight *= math.exp(math.log(unit()) / size)
        target += skip()
      }
      seen += count
    }

    private def skip(): Long = {
      val rows = math.log(unit()) / math.log1p(-weight)
      if (rows.isNaN || rows > 1e18) Long.MaxValue / 4 else rows.toLong + 1
    }

    private def unit(): Double = 1.0 - random.nextDouble()

    private def pick(row: Int, slot: Int): Unit = {
      if (picked == rows.length) {
        rows = java.util.Arrays.copyOf(rows, picked * 2)
        slots = java.util.Arrays.copyOf(slots, picked * 2)
      }
      rows(picked) = row
      slots(picked) = slot
      picked += 1
    }
  }

  // ---- parts --------------------------------------------------------------------------------

  /** How large a part is at most, if all are to be spread over so many tasks. */
  def partBytes(total: Long, slots: Int): Long =
    math.max(8L << 20, math.min(256L << 20, total / math.max(1, slots * 2)))

  // Opening a file costs as much as reading so many bytes.
  private val openBytes = 2L << 20

  /** Parts of whole files, each file's rows sampled in proportion to its bytes. */
  def wholeFiles(files: Seq[FileStatus], most: Long, sampleRows: Int): Seq[FilePart] = {
    val total = math.max(1.0, files.map(_.getLen.toDouble).sum)
    def rowsOf(bytes: Long): Int = math.ceil(sampleRows * (bytes / total)).toInt.max(8)
    files.zipWithIndex.flatMap { case (file, i) =>
      val pieces = math.max(1L, (file.getLen + most - 1) / most)
      (0L until pieces).map { piece =>
        val start = file.getLen * piece / pieces
        val length = file.getLen * (piece + 1) / pieces - start
        part(file, i, start, length, length.toDouble / math.max(1L, file.getLen), rowsOf(length))
      }
    }
  }

  def part(
      file: FileStatus,
      place: Int,
      start: Long,
      length: Long,
      share: Double,
      sampleRows: Int
  ): FilePart = {
    val version = FileVersion.of(file)
    FilePart(
      place,
      SparkPath.fromFileStatus(file).urlEncoded,
      start,
      length,
      version.length,
      version.modified,
      share,
      sampleRows
    )
  }

  /** Parts together in tasks, the largest first, so that none waits for one that began last. */
  def tasks(parts: Seq[FilePart], most: Long): Seq[Seq[FilePart]] = {
    val sorted = parts.sortBy(part => (-part.length, part.path, part.start))
    val (full, last, _) =
      sorted.foldLeft((Vector.empty[Seq[FilePart]], Vector.empty[FilePart], 0L)) {
        case ((done, open, size), part) =>
          val cost = part.length + openBytes
          if (open.nonEmpty && size + cost > most + openBytes) (done :+ open, Vector(part), cost)
          else (done, open :+ part, size + cost)
      }
    if (last.isEmpty) full else full :+ last
  }
}
