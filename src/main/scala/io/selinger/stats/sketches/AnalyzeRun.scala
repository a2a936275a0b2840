package io.selinger.stats.sketches

import io.selinger.conf.SelingerConf
import io.selinger.stats.FileVersion
import io.selinger.stats.files.FooterReader
import io.selinger.stats.parquet.ParsedFooters
import io.selinger.stats.relations.UsedColumns
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileStatus, Path}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types.{DataType, StructField}
import org.slf4j.LoggerFactory
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * What is asked for.
 *
 * @param columns by name; none: those that queries have used, or all if none have been
 * @param sample share of the data to read, above 0 and at most 1
 * @param maxBytes of files to read at once; the next run goes on from there
 */
private[selinger] final case class AnalyzeRequest(
    target: String,
    columns: Option[Seq[String]],
    sample: Double,
    maxBytes: Option[Long]
)

/**
 * What a run has done.
 *
 * @param files of the relation
 * @param filesRead in this run
 * @param filesKnown that had been read before and have not changed
 * @param filesSkipped that could not be read
 * @param filesLeft for the next run
 * @param columnsFrom `given`, `used` (by queries of this application) or `all`
 * @param skipped columns of which nothing is collected, with why
 * @param rows read in this run
 * @param bytes that this run has written
 * @param changed of the files read: those that had been read before and have changed since
 * @param otherColumns of the files read: those that had been read before, for other columns only
 * @param largerSample of the files read: those of which a smaller part had been read before
 */
private[selinger] final case class AnalyzeResult(
    relation: String,
    files: Int,
    filesRead: Int,
    filesKnown: Int,
    filesSkipped: Int,
    filesLeft: Int,
    bytesLeft: Long,
    rows: Long,
    columns: Seq[String],
    columnsFrom: String,
    skipped: Seq[String],
    problem: Option[String],
    sample: Double,
    bytes: Long,
    seconds: Double,
    changed: Int,
    otherColumns: Int,
    largerSample: Int
)

/**
 * Collects statistics of a relation: of the files and columns of which nothing current is kept, in
 * distributed passes whose results are sketches, and writes them in one segment a pass.
 *
 * Driver memory: a pass takes as many files as have results of [[passBytes]] at most, serialised,
 * and twice that while they are merged and written.
 */
private[selinger] object AnalyzeRun {

  private val log = LoggerFactory.getLogger("io.selinger")

  // Results of one pass, and within it of the theta sketches.
  private val passBytes = 96L << 20
  private val thetaBytes = 64L << 20
  // What the rest of an entry takes, about: quantiles, frequent values, some sampled rows.
  private val restBytes = 8L << 10

  private val leastEntries = 512

  // Values of one run's sample: of wide tables fewer rows are kept.
  private val sampledValues = 2000000
  private val leastSampled = 500

  // So much data is sketched value by value; of more one value in sixteen makes quantiles.
  private val everyValueBytes = 64L << 20
  private val stride = 16

  def run(session: SparkSession, request: AnalyzeRequest): AnalyzeResult = {
    val start = System.nanoTime()
    val location = Location.required()
    val target = Target.resolve(session, request.target)
    val hadoop = session.sessionState.newHadoopConf()
    val folder = SketchStore.folder(location, target.roots)
    val (columns, from, skipped) = chosen(target, request.columns)
    val cache = SelingerConf.COLLECTED_CACHE_MAX_BYTES.value
    val collected = SketchStore.collected(folder, hadoop, cache)
    val versions = target.files.map(FileVersion.of)
    val places = versions.zipWithIndex.toMap
    // A part of a file is as good as asked for, or it is read again.
    val shares = columns.map { column =>
      column -> collected.shares(nameOf(column), column.dataType, places)
    }
    val missing = shares.map { case (column, known) =>
      column -> target.files.indices.filterNot(i =>
        known.get(i).exists(_ >= math.min(0.999, request.sample * 0.5))
      ).toSet
    }
    val wanted = wantedParts(target, request.sample, hadoop)
    val todo = missing.map { case (column, files) => column -> files.intersect(wanted.keySet) }
    val open = todo.flatMap(_._2).toSet
    val now = limited(open.toSeq.sorted, target.files, request.maxBytes)
    val passes = for {
      (files, group) <- todo.map { case (c, files) => (files.intersect(now), c) }
        .groupMap(_._1)(_._2).toSeq.sortBy(_._1.toSeq.minOption)
      if files.nonEmpty
    } yield pass(session, target, folder, files, group, wanted, hadoop)
    if (passes.nonEmpty) compacted(folder, target, places, hadoop, cache)
    val skippedFiles = passes.flatMap(_.problems.map(_._1)).toSet
    val left = open.diff(now)
    val before = collected.segments.flatMap(_.files).toSet
    val again = rereadFiles(now -- skippedFiles, versions, before, shares.map(_._2))
    AnalyzeResult(
      target.name,
      target.files.size,
      now.size - skippedFiles.size,
      target.files.indices.count(i => missing.nonEmpty && missing.forall(!_._2(i))),
      skippedFiles.size,
      left.size,
      left.toSeq.map(target.files(_).getLen).sum,
      passes.map(_.rows).maxOption.getOrElse(0L),
      columns.map(_.name),
      from,
      skipped,
      passes.flatMap(_.problems.map(_._2)).headOption,
      request.sample,
      passes.map(_.bytes).sum,
      (System.nanoTime() - start) / 1e9,
      again(Changed),
      again(OtherColumns),
      again(LargerSample)
    )
  }

  // ---- why a file is read again ---------------------------------------------------------------

  private sealed trait Reread
  private case object Changed extends Reread
  private case object OtherColumns extends Reread
  private case object LargerSample extends Reread

  /**
   * How many of `files` had been read before, by the reason to read them again.
   *
   * @param before all that is kept of
   * @param shares for each column the part that is kept of each file
   */
  private def rereadFiles(
      files: Set[Int],
      versions: IndexedSeq[FileVersion],
      before: Set[FileVersion],
      shares: Seq[Map[Int, Double]]
  ): Map[Reread, Int] = {
    val paths = before.map(_.path)
    val reasons: Seq[Reread] = files.toSeq.flatMap { i =>
      if (!paths(versions(i).path)) None
      else if (!before(versions(i))) Some(Changed)
      else if (shares.exists(!_.contains(i))) Some(OtherColumns)
      else Some(LargerSample)
    }
    reasons.groupMapReduce(identity)(_ => 1)(_ + _).withDefaultValue(0)
  }

  // ---- what to collect ----------------------------------------------------------------------

  private def nameOf(column: StructField): String = FooterReader.columnName(column.name)

  /** The columns, where they come from, and those that are left out, with why. */
  private def chosen(
      target: Target,
      requested: Option[Seq[String]]
  ): (Seq[StructField], String, Seq[String]) = {
    val used = UsedColumns.namesIn(target.roots)
    val (names, from) = requested match {
      case Some(names) => (Some(known(target, names)), "given")
      case None if used.nonEmpty => (Some(used), "used")
      case None => (None, "all")
    }
    val twice = target.schema.map(nameOf).groupBy(identity).filter(_._2.size > 1).keySet
    val asked = target.schema.filter(column => names.forall(_(nameOf(column))))
    val (some, others) = asked.partition(column =>
      ColumnSketcher.supports(column.dataType) && !twice(nameOf(column))
    )
    val partitions = target.partitions.filter(column => names.exists(_(nameOf(column))))
    val why = others.map { column =>
      if (twice(nameOf(column))) s"${column.name}: another column has the same name"
      else s"${column.name}: values of type ${column.dataType.simpleString} are not sketched"
    } ++ partitions.map(column =>
      s"${column.name}: the listing has all values of a partition column"
    )
    (some, from, why.map(_.take(200)))
  }

  private def known(target: Target, names: Seq[String]): Set[String] = {
    val all = (target.schema ++ target.partitions).map(nameOf).toSet
    val unknown = names.filterNot(name => all(FooterReader.columnName(name)))
    if (names.isEmpty || unknown.nonEmpty) {
      throw new IllegalArgumentException(
        if (names.isEmpty) "columns is empty: name some, or leave it out"
        else
          s"${target.name} has no column ${unknown.mkString(", ")}; it has " +
            (target.schema ++ target.partitions).map(_.name).take(50).mkString(", ")
      )
    }
    names.map(FooterReader.columnName).toSet
  }

  /** The parts of each file that a run reads which reads `sample` of the data. */
  private def wantedParts(
      target: Target,
      sample: Double,
      hadoop: Configuration
  ): Map[Int, Seq[(Long, Long, Double)]] = {
    val files = target.files
    def whole(i: Int) = i -> Seq.empty[(Long, Long, Double)]
    if (sample >= 1.0 || files.isEmpty) files.indices.map(whole).toMap
    else if (files.size * sample >= leastSampledFiles || !target.isParquet) {
      val count = math.max(1, math.ceil(files.size * sample).toInt)
      evenly(count, files.size).map(whole).toMap
    } else {
      // Few files: some row groups of each.
      val groups = files.indices.flatMap { i =>
        try
          ParsedFooters.read(files(i), hadoop).getBlocks.asScala.toSeq.map { block =>
            val middle = block.getStartingPos + block.getCompressedSize / 2
            (i, middle, block.getCompressedSize.toDouble / math.max(1L, files(i).getLen))
          }
        catch { case NonFatal(_) => Nil }
      }
      if (groups.isEmpty) files.indices.map(whole).toMap
      else
        evenly(math.max(1, math.ceil(groups.size * sample).toInt), groups.size)
          .map(groups(_))
          .groupMap(_._1) { case (_, middle, share) => (middle, 1L, share) }
    }
  }

  private val leastSampledFiles = 8

  private def evenly(count: Int, of: Int): Seq[Int] =
    (0 until count).map(i => ((i + 0.5) * of / count).toInt.min(of - 1)).distinct

  private def limited(
      files: Seq[Int],
      all: IndexedSeq[FileStatus],
      maxBytes: Option[Long]
  ): Set[Int] = maxBytes match {
    case None => files.toSet
    case Some(most) =>
      val sums = files.scanLeft(0L)((sum, i) => sum + all(i).getLen)
      // One at least, or nothing would ever be done.
      files.zip(sums).zipWithIndex.collect {
        case ((file, before), i) if i == 0 || before + all(file).getLen <= most => file
      }.toSet
  }

  // ---- passes -------------------------------------------------------------------------------

  private final case class Pass(rows: Long, bytes: Long, problems: Seq[(Int, String)])

  /** Collects `columns` of `files`, as many at a time as the driver's memory allows. */
  private def pass(
      session: SparkSession,
      target: Target,
      folder: Path,
      files: Set[Int],
      columns: Seq[StructField],
      wanted: Map[Int, Seq[(Long, Long, Double)]],
      hadoop: Configuration
  ): Pass = {
    val slots = session.sparkContext.defaultParallelism
    val sorted = files.toSeq.sorted
    val most = SketchJob.partBytes(sorted.map(target.files(_).getLen).sum, slots)
    val parts = partsOf(target, sorted, wanted, most, columns.size)
    val entries = entriesFor(parts.size.toLong * columns.size)
    val perPart = columns.size * (entries * 8L + restBytes)
    val sizes = SketchSizes(
      entries,
      if (target.files.map(_.getLen).sum <= everyValueBytes) 1 else stride
    )
    val waves = inWaves(parts, math.max(1, (passBytes / perPart).toInt))
    val results = waves.map(wave(session, target, folder, _, columns, most, sizes, hadoop))
    Pass(results.map(_.rows).sum, results.map(_.bytes).sum, results.flatMap(_.problems))
  }

  private def partsOf(
      target: Target,
      files: Seq[Int],
      wanted: Map[Int, Seq[(Long, Long, Double)]],
      most: Long,
      columns: Int
  ): Seq[FilePart] = {
    val fitting = math.max(leastSampled, sampledValues / math.max(1, columns))
    val sampleRows = SelingerConf.SAMPLING_MAX_ROWS.value.min(fitting.toLong).toInt
    val whole = SketchJob.wholeFiles(target.files, most, sampleRows).groupBy(_.file)
    files.flatMap { i =>
      val ranges = wanted(i)
      if (ranges.isEmpty) whole.getOrElse(i, Nil)
      else {
        val rows = whole.getOrElse(i, Nil).map(_.sampleRows).sum
        ranges.map { case (start, length, share) =>
          SketchJob.part(target.files(i), i, start, length, share, math.max(8, rows / ranges.size))
        }
      }
    }
  }

  /** Entries of a theta sketch, so that all together stay within their bytes. */
  private def entriesFor(sketches: Long): Int =
    Iterator
      .iterate(ColumnSketch.mostEntries)(_ / 2)
      .dropWhile(entries => entries > leastEntries && sketches * entries * 8 > thetaBytes)
      .next()

  /** Parts of one file stay together. */
  private def inWaves(parts: Seq[FilePart], most: Int): Seq[Seq[FilePart]] = {
    val byFile = parts.groupBy(_.file).toSeq.sortBy(_._1).map(_._2)
    val (full, last) = byFile.foldLeft((Vector.empty[Seq[FilePart]], Vector.empty[FilePart])) {
      case ((done, open), file) =>
        if (open.nonEmpty && open.size + file.size > most) (done :+ open, file.toVector)
        else (done, open ++ file)
    }
    if (last.isEmpty) full else full :+ last
  }

  private def wave(
      session: SparkSession,
      target: Target,
      folder: Path,
      parts: Seq[FilePart],
      columns: Seq[StructField],
      most: Long,
      sizes: SketchSizes,
      hadoop: Configuration
  ): Pass = {
    val tasks = SketchJob.tasks(parts, most)
    // Bands of columns, each in a job of its own.
    val bands = columns.grouped(SketchJob.columnsAtOnce).toSeq.map { band =>
      band -> SketchJob.run(
        session,
        target.format,
        target.options,
        target.schema,
        band,
        tasks,
        sizes
      )
    }
    val problems = bands
      .flatMap(_._2)
      .flatMap(result => result.problem.map(result.file -> _))
      .distinctBy(_._1)
    problems.foreach { case (i, problem) =>
      log.warn(s"${target.files(i).getPath} could not be analysed and is left out: $problem")
    }
    val failed = problems.map(_._1).toSet
    val read = parts.map(_.file).distinct.filterNot(failed)
    val seeds = parts.groupBy(_.file).map { case (i, of) => i -> of.map(_.seed).sum }
    val placeOf = read.zipWithIndex.toMap
    var rows = 0L
    val sections = bands.flatMap { case (band, results) =>
      val byFile = results.filterNot(result => failed(result.file)).groupBy(_.file)
      band.zipWithIndex.map { case (column, c) =>
        val entries = read.iterator.map { i =>
          val sketch = ColumnSketch.mergeParts(
            byFile(i).map(result => ColumnSketch.fromBytes(result.sketches(c), column.dataType)),
            seeds(i)
          )
          if (column eq columns.head) rows += sketch.rows
          SegmentFile.Entry(placeOf(i), sketch.share, ColumnSketch.toBytes(sketch))
        }
        ((nameOf(column), column.dataType: DataType), entries)
      }
    }
    if (read.isEmpty) Pass(0L, 0L, problems)
    else {
      val versions = read.map(i => FileVersion.of(target.files(i))).toIndexedSeq
      val path = SketchStore.add(folder, target.name, versions, sections, hadoop)
      Pass(rows, path.getFileSystem(hadoop).getFileStatus(path).getLen, problems)
    }
  }

  private def compacted(
      folder: Path,
      target: Target,
      places: Map[FileVersion, Int],
      hadoop: Configuration,
      cache: Long
  ): Unit =
    try SketchStore.compact(folder, target.name, places, hadoop, cache)
    catch {
      // What was collected is there; the next run tries again.
      case NonFatal(error) => log.warn(s"$folder could not be compacted: $error")
    }
}
