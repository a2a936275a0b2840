package io.selinger.stats.footers

import com.google.common.cache.{Cache, CacheBuilder}
import io.selinger.stats.{
  ChunkCount,
  FileFooter,
  FileVersion,
  FooterMerge,
  KeyRanges,
  RelationStatistics,
  RowGroups,
  RowsWithKeys
}
import io.selinger.stats.files.{
  BoundedReads,
  DistinctReader,
  DistinctRequest,
  FileListing,
  FooterReader
}
import java.time.Duration
import java.util.concurrent.{ConcurrentLinkedQueue, TimeUnit, TimeoutException}
import java.util.concurrent.atomic.AtomicReference
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.slf4j.LoggerFactory
import scala.util.control.NonFatal

/**
 * Bounds of reading the footers of one relation; see the settings of the same names.
 *
 * @param isShort whether so much of the time had been used up that storage which does not answer in
 *   the rest may be quick nevertheless
 */
final case class FooterLimits(
    maxFiles: Int,
    budgetMs: Long,
    threads: Int,
    cacheMaxBytes: Long,
    isShort: Boolean = false
)

/**
 * @param statistics of the relation, if any footer was read
 * @param filesRead footers known, of `files`
 * @param ms time that this call took
 * @param cutShort whether the time that there was may have been too little
 */
final case class FooterAnswer(
    statistics: Option[RelationStatistics],
    filesRead: Int,
    files: Int,
    ms: Double,
    cutShort: Boolean
)

/**
 * The driver's store of footers: reads them in parallel, once for each version of a file (path,
 * length, modification time), within bounds of files, time and memory. Once the footers are there,
 * the time that is left goes to the distinct counts of those columns that a query asks for, in some
 * row groups, each once for a version of a file.
 */
object FooterStore {

  private val log = LoggerFactory.getLogger("io.selinger")

  // Row groups whose distinct values are looked up; these files and groups are spread evenly.
  private val countedGroups = 8

  // Of the time that there is. Readers stop earlier than we stop waiting, so that what they have arrives.
  private val shareOfReaders = 0.9

  // No query really needs the distinct values of more columns.
  private val countedColumns = 2000

  /** One row group of a file, and one of its columns. */
  private final case class ChunkKey(file: FileVersion, index: Int, column: String)

  /**
   * What is kept of a relation.
   *
   * @param counted row groups whose distinct values are looked up
   */
  private final case class MergedFooters(
      statistics: RelationStatistics,
      read: Int,
      counted: Seq[(FileStatus, Seq[Int])]
  )

  /**
   * An answer from those footers of a relation that are known.
   *
   * @param mayGrow whether the others may be known later
   */
  private final case class Known(
      relation: Option[MergedFooters],
      read: Int,
      mayGrow: Boolean
  )

  private final case class Caches(maxBytes: Long) {
    private def cache[K <: AnyRef, V <: AnyRef](share: Double)(weight: V => Int): Cache[K, V] =
      CacheBuilder
        .newBuilder()
        .maximumWeight((maxBytes * share).toLong)
        .weigher((_: K, value: V) => weight(value))
        .build[K, V]()

    val footers: Cache[FileVersion, FileFooter] =
      cache(0.6) { f =>
        val ranges = f.columns.valuesIterator.map(_.groups.lows.size).sum
        300 + 170 * f.columns.size + 8 * f.groups.size + 16 * ranges
      }
    val counts: Cache[ChunkKey, ChunkCount] = cache(0.2)(_ => 350)
    val relations: Cache[String, MergedFooters] =
      cache(0.2)(known => 4000 + 160 * known.statistics.columns.size)
    val partial: Cache[String, Known] =
      CacheBuilder.newBuilder().maximumSize(100).expireAfterWrite(Duration.ofMinutes(1)).build()
    val attempts: Cache[String, Integer] = CacheBuilder.newBuilder().maximumSize(1000).build()
    // A file that cannot be read is not tried again at each query, but later, for it may recover.
    val unreadable: Cache[FileVersion, java.lang.Boolean] = forAMinute
    val uncounted: Cache[FileVersion, java.lang.Boolean] = forAMinute

    private def forAMinute: Cache[FileVersion, java.lang.Boolean] =
      CacheBuilder.newBuilder().maximumSize(10000).expireAfterWrite(Duration.ofMinutes(1)).build()
  }

  private val footerReads = new BoundedReads[FileVersion, FileFooter]("selinger-footers")
  private val distinctReads = new BoundedReads[ChunkKey, ChunkCount]("selinger-footers")

  private val current = new AtomicReference[Caches]()

  /**
   * Statistics of a relation that consists of the files of `listing`.
   *
   * @param columns whose distinct values are wanted, by lower-case name
   */
  def statistics(
      reader: FooterReader,
      listing: FileListing,
      columns: Set[String],
      hadoop: => Configuration,
      limits: FooterLimits
  ): FooterAnswer = {
    val start = System.nanoTime()
    val caches = cachesOf(limits)
    lazy val configuration = hadoop
    val budget = TimeUnit.MILLISECONDS.toNanos(limits.budgetMs)
    val known = kept(listing, caches)
      .getOrElse(relationOf(reader, listing, configuration, limits, start + budget, caches))
    val statistics = known.relation.map { relation =>
      val wanted = columns.filter(relation.statistics.columns.contains)
      if (wanted.isEmpty) relation.statistics
      else {
        val counts =
          countsOf(reader, relation, wanted, configuration, limits, start, budget, caches)
        relation.statistics.copy(dictionaries = ChunkCount.merge(counts))
      }
    }
    val ms = since(start)
    val cutShort = known.mayGrow || ms >= limits.budgetMs * shareOfReaders
    FooterAnswer(statistics, known.read, listing.files, ms, cutShort)
  }

  /**
   * Rows that a reader has to look at which wants certain keys only, by those footers of a relation
   * that have been read already. `None` where none has.
   *
   * @param column by lower-case name
   */
  def rowsWith(
      listing: FileListing,
      column: String,
      keys: KeyRanges,
      limits: FooterLimits
  ): Option[RowsWithKeys] = {
    val caches = cachesOf(limits)
    val known = listing.chosen.flatMap { file =>
      Option(caches.footers.getIfPresent(FileVersion.of(file))).map(file -> _)
    }
    known.map { case (_, footer) => RowsWithKeys.of(footer, column, keys) }
      .reduceOption(_ + _)
      .map { rows =>
        if (known.size == listing.files) rows
        else rows.extrapolated(listing.bytes / known.map(_._1.getLen.toDouble).sum)
      }
  }

  /**
   * Rows of each row group of all files, in their order. `None` where a footer is not known or not all
   * files are wanted.
   */
  def rowGroups(
      reader: FooterReader,
      listing: FileListing,
      hadoop: => Configuration,
      limits: FooterLimits
  ): Option[Seq[(FileStatus, Seq[Long])]] =
    if (listing.chosen.size < listing.files) None
    else {
      val caches = cachesOf(limits)
      val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limits.budgetMs)
      val known = footersOf(reader, listing.chosen, hadoop, limits, deadline, caches)
      Option.when(known.size == listing.files)(known.map { case (file, footer) =>
        file -> footer.groups
      })
    }

  /** What is kept of a relation, unless footers have arrived that it was made without. */
  private def kept(listing: FileListing, caches: Caches): Option[Known] = {
    val id = listing.fingerprint
    def hasGrown(partial: Known) = partial.mayGrow && partial.read < listing.chosen
      .count(file => caches.footers.getIfPresent(FileVersion.of(file)) != null)
    Option(caches.relations.getIfPresent(id))
      .map(relation => Known(Some(relation), relation.read, mayGrow = false))
      .orElse(Option(caches.partial.getIfPresent(id)).filterNot(hasGrown))
  }

  private def relationOf(
      reader: FooterReader,
      listing: FileListing,
      hadoop: => Configuration,
      limits: FooterLimits,
      deadline: Long,
      caches: Caches
  ): Known = {
    val read = footersOf(reader, listing.chosen, hadoop, limits, deadline, caches)
    val files = read.map { case (file, footer) => FooterMerge.File(file.getLen, Some(footer)) }
    val merged = FooterMerge.merge(files, listing.files, listing.bytes).map { merged =>
      val groups = read.map { case (file, footer) => file -> footer.groups }
      MergedFooters(merged.copy(groups = RowGroups.spread(groups)), read.size, chosenGroups(groups))
    }
    val damaged = listing.chosen
      .count(file => caches.unreadable.getIfPresent(FileVersion.of(file)) != null)
    val known = Known(merged, read.size, mayGrow = read.size + damaged < listing.chosen.size)
    keep(listing, known, limits, caches)
    known
  }

  /** Those footers that are known, or can be read in time. */
  private def footersOf(
      reader: FooterReader,
      files: IndexedSeq[FileStatus],
      hadoop: => Configuration,
      limits: FooterLimits,
      deadline: Long,
      caches: Caches
  ): IndexedSeq[(FileStatus, FileFooter)] = {
    val fresh = readFooters(reader, files, hadoop, limits, deadline, caches)
    // Not from the cache alone: it may be too small for what has just been read.
    files.flatMap { file =>
      val key = FileVersion.of(file)
      fresh.get(key).orElse(Option(caches.footers.getIfPresent(key))).map(file -> _)
    }
  }

  /**
   * A partial answer is not kept, since the next query finds more in the caches. It is kept for a
   * minute where asking again would not help: files are damaged, storage hangs, or footers outgrow the
   * cache. What arrives meanwhile ends that (see [[kept]]).
   */
  private def keep(
      listing: FileListing,
      known: Known,
      limits: FooterLimits,
      caches: Caches
  ): Unit = {
    val id = listing.fingerprint
    if (known.read == listing.chosen.size) known.relation.foreach(caches.relations.put(id, _))
    else if (caches.maxBytes > 0) {
      if (!known.mayGrow) caches.partial.put(id, known)
      // With hardly any time, that nothing arrives says nothing of the storage.
      else if (!limits.isShort) {
        val before = Option(caches.attempts.asMap.put(id, Int.box(known.read)))
        if (before.exists(known.read <= _.intValue * 1.1)) caches.partial.put(id, known)
      }
    }
  }

  /** Some row groups with rows, at even distances over all files. */
  private def chosenGroups(
      files: IndexedSeq[(FileStatus, Seq[Long])]
  ): Seq[(FileStatus, Seq[Int])] = {
    val chosen = FileListing.spread(files, countedGroups)
    val perFile = (countedGroups + chosen.size - 1) / math.max(1, chosen.size)
    chosen.map { case (file, rows) =>
      val filled = rows.indices.filter(rows(_) > 0)
      file -> (
        if (filled.size <= perFile) filled
        else (0 until perFile).map(i => filled(((i + 0.5) * filled.size / perFile).toInt))
      )
    }
  }

  /** Forgets everything; the next query reads footers anew. */
  def clear(): Unit = current.set(null)

  private def cachesOf(limits: FooterLimits): Caches = current.updateAndGet { caches =>
    if (caches == null || caches.maxBytes != limits.cacheMaxBytes) Caches(limits.cacheMaxBytes)
    else caches
  }

  /** Reads what the caches lack, as far as the time allows. */
  private def readFooters(
      reader: FooterReader,
      files: Seq[FileStatus],
      hadoop: => Configuration,
      limits: FooterLimits,
      deadline: Long,
      caches: Caches
  ): Map[FileVersion, FileFooter] = {
    val missing = files
      .map(file => FileVersion.of(file) -> file)
      .filter { case (key, _) =>
        caches.footers.getIfPresent(key) == null && caches.unreadable.getIfPresent(key) == null
      }
      .toMap
    if (missing.isEmpty) Map.empty
    else {
      val configuration = hadoop
      val failed = new ConcurrentLinkedQueue[(FileStatus, Throwable)]()
      val found = footerReads.all(missing.keys.toSeq, limits.threads, deadline) { key =>
        val file = missing(key)
        // Others may have read it, or tried to, since it was missing.
        if (caches.unreadable.getIfPresent(key) != null) None
        else Option(caches.footers.getIfPresent(key)).orElse {
          readOne(key, file, reader, configuration, caches) match {
            case Right(footer) => Some(footer)
            case Left(error) =>
              failed.add(file -> error)
              None
          }
        }
      }
      warn(failed)
      found
    }
  }

  /** Once for all files: there may be thousands. */
  private def warn(failed: ConcurrentLinkedQueue[(FileStatus, Throwable)]): Unit =
    Option(failed.peek).foreach { case (file, error) =>
      val others = failed.size - 1
      val rest = if (others > 0) s" and those of $others other files" else ""
      log.warn(
        s"The footer of ${file.getPath}$rest could not be read, so their rows are estimated: $error"
      )
    }

  /** Distinct counts of these columns, as far as they arrive in time. */
  private def countsOf(
      reader: FooterReader,
      relation: MergedFooters,
      columns: Set[String],
      hadoop: => Configuration,
      limits: FooterLimits,
      start: Long,
      budget: Long,
      caches: Caches
  ): Map[String, Seq[ChunkCount]] =
    reader.dictionaries.fold(Map.empty[String, Seq[ChunkCount]]) { dictionaries =>
      val names = columns.toSeq.sorted.take(countedColumns)
      val files = relation.counted.map { case (file, _) => FileVersion.of(file) -> file }.toMap
      val keys = for {
        (file, groups) <- relation.counted
        version = FileVersion.of(file)
        index <- groups
        name <- names
      } yield ChunkKey(version, index, name)
      def kept(wanted: Seq[ChunkKey]): Map[ChunkKey, ChunkCount] =
        wanted.flatMap(key => Option(caches.counts.getIfPresent(key)).map(key -> _)).toMap
      val known = kept(keys)
      val missing = keys.filterNot(key =>
        known.contains(key) || caches.uncounted.getIfPresent(key.file) != null
      )
      val found =
        if (missing.isEmpty) known
        else {
          val configuration = hadoop
          val deadline = start + (budget * shareOfReaders).toLong
          val perFile = missing.groupBy(_.file).valuesIterator.toSeq
          val fresh = distinctReads.inGroups(perFile, limits.threads, start + budget) { chunks =>
            val file = files(chunks.head.file)
            // Others may have tried since it was missing.
            if (caches.uncounted.getIfPresent(chunks.head.file) != null) Map.empty
            else countOne(chunks, file, dictionaries, configuration, caches)(deadline)
          }
          // What readers that are late have put there is there as well.
          known ++ kept(missing) ++ fresh
        }
      keys.groupBy(_.column).map { case (name, chunks) => name -> chunks.flatMap(found.get) }
    }

  // These counts are an extra: without them values are estimated, so nothing is worth a warning.
  private def countOne(
      chunks: Seq[ChunkKey],
      file: FileStatus,
      reader: DistinctReader,
      hadoop: Configuration,
      caches: Caches
  )(deadline: Long): Map[ChunkKey, ChunkCount] = {
    val version = chunks.head.file
    val requests = chunks.groupBy(_.index).map { case (index, ofGroup) =>
      DistinctRequest(index, ofGroup.map(_.column))
    }
    val found = Map.newBuilder[ChunkKey, ChunkCount]
    try
      reader.read(file, hadoop, requests.toSeq.sortBy(_.index), deadline) {
        (index, column, count) =>
          val key = ChunkKey(version, index, column)
          caches.counts.put(key, count)
          val _ = found += key -> count
      }
    catch {
      // A store that is slow today is asked again.
      case _: TimeoutException => ()
      case error @ (NonFatal(_) | _: LinkageError) =>
        caches.uncounted.put(version, java.lang.Boolean.TRUE)
        log.debug(s"Distinct values of ${file.getPath} are not known: $error")
    }
    found.result()
  }

  private def readOne(
      key: FileVersion,
      file: FileStatus,
      reader: FooterReader,
      hadoop: Configuration,
      caches: Caches
  ): Either[Throwable, FileFooter] =
    try {
      val footer = reader.read(file, hadoop)
      caches.footers.put(key, footer)
      Right(footer)
    } catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        caches.unreadable.put(key, java.lang.Boolean.TRUE)
        Left(error)
    }

  private def since(start: Long): Double = (System.nanoTime() - start) / 1e6
}
