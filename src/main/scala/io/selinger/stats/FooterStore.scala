package io.selinger.stats

import com.google.common.cache.{Cache, CacheBuilder}
import com.google.common.hash.Hashing
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicReference
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus
import org.slf4j.LoggerFactory
import scala.util.control.NonFatal

/** Bounds of reading the footers of one relation; see the settings of the same names. */
final case class FooterLimits(maxFiles: Int, budgetMs: Long, threads: Int, cacheMaxBytes: Long)

/**
 * @param statistics of the relation, if any footer was read
 * @param filesRead footers known, of `files`
 * @param ms time that this call took
 */
final case class FooterAnswer(
    statistics: Option[RelationStatistics],
    filesRead: Int,
    files: Int,
    ms: Double
)

/**
 * The driver's store of footers: reads them in parallel, once for each version of a file (path,
 * length, modification time), within bounds of files, time and memory. Once the footers are there,
 * the time that is left goes to the distinct counts of some files.
 */
object FooterStore {

  private val log = LoggerFactory.getLogger("io.selinger")

  // Row groups whose distinct values are looked up; these files and groups are spread evenly.
  private val countedGroups = 8

  private final case class Caches(maxBytes: Long) {
    private def cache[K <: AnyRef, V <: AnyRef](share: Double)(weight: V => Int): Cache[K, V] =
      CacheBuilder
        .newBuilder()
        .maximumWeight((maxBytes * share).toLong)
        .weigher((_: K, value: V) => weight(value))
        .build[K, V]()

    val footers: Cache[FileVersion, FileFooter] =
      cache(0.6)(f => 300 + 140 * f.columns.size + 8 * f.groups.size)
    val distinct: Cache[FileVersion, FileDistinct] =
      cache(0.2)(f => 300 + f.groups.map(group => 300 + 160 * group.counted.size).sum)
    val relations: Cache[String, RelationStatistics] =
      cache(0.2)(r =>
        4000 + 160 * r.columns.size + 100 * r.dictionaries.valuesIterator.map(_.size).sum
      )
    // A file that cannot be read is not tried again at each query, but later, for it may recover.
    val unreadable: Cache[FileVersion, java.lang.Boolean] =
      CacheBuilder.newBuilder().maximumSize(10000).expireAfterWrite(Duration.ofMinutes(1)).build()
  }

  private val footerReads = new BoundedReads[FileVersion, FileFooter]("selinger-footers")
  private val distinctReads = new BoundedReads[FileVersion, FileDistinct]("selinger-footers")

  private val current = new AtomicReference[Caches]()

  /** Statistics of a relation that consists of `files`. */
  def statistics(
      reader: FooterReader,
      files: Seq[FileStatus],
      hadoop: => Configuration,
      limits: FooterLimits
  ): FooterAnswer = {
    val start = System.nanoTime()
    val caches = cachesOf(limits)
    val chosen = spread(files, limits.maxFiles)
    val fingerprint = fingerprintOf(files, limits.maxFiles)
    Option(caches.relations.getIfPresent(fingerprint)) match {
      case Some(known) => FooterAnswer(Some(known), chosen.size, files.size, since(start))
      case None =>
        lazy val configuration = hadoop
        val deadline = start + TimeUnit.MILLISECONDS.toNanos(limits.budgetMs)
        val fresh = readFooters(reader, chosen, configuration, limits, deadline, caches)
        // Not from the cache alone: it may be too small for what has just been read.
        val found = chosen.map { file =>
          val key = FileVersion.of(file)
          file -> fresh.get(key).orElse(Option(caches.footers.getIfPresent(key)))
        }.toMap
        val merged = FooterMerge.merge(
          files.map(file => FooterMerge.File(file.getLen, found.get(file).flatten))
        )
        val known = chosen.flatMap(file => found(file).map(file -> _))
        val counted =
          readDistinct(reader, known.map(_._1), configuration, limits, deadline, caches)
        val statistics = merged.map(
          _.copy(
            dictionaries = FileDistinct.merge(counted.flatten),
            groups = RowGroups.spread(known.map { case (file, footer) => file -> footer.groups })
          )
        )
        // A partial answer is not kept: the next query finds more in the caches.
        if (known.size == chosen.size && counted.forall(_.isDefined)) {
          statistics.foreach(caches.relations.put(fingerprint, _))
        }
        FooterAnswer(statistics, known.size, files.size, since(start))
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
      footerReads.all(missing.keys.toSeq, limits.threads, deadline)(key =>
        readOne(key, missing(key), reader, configuration, caches)
      )
    }
  }

  /** Distinct counts of some of the files; `None` for those that did not arrive in time. */
  private def readDistinct(
      reader: FooterReader,
      files: Seq[FileStatus],
      hadoop: => Configuration,
      limits: FooterLimits,
      deadline: Long,
      caches: Caches
  ): Seq[Option[FileDistinct]] =
    reader.dictionaries.filter(_ => files.nonEmpty).toSeq.flatMap { dictionaries =>
      val chosen = spread(files, countedGroups).map(file => FileVersion.of(file) -> file).toMap
      val perFile = (countedGroups + chosen.size - 1) / chosen.size
      val (known, missing) = chosen.keys.toSeq.partitionMap(key =>
        Option(caches.distinct.getIfPresent(key)).toLeft(key)
      )
      def read(configuration: Configuration)(key: FileVersion) = {
        val counted = countOne(chosen(key), dictionaries, configuration, perFile)
        caches.distinct.put(key, counted)
        Some(counted)
      }
      val fresh =
        if (missing.isEmpty) Map.empty[FileVersion, FileDistinct]
        else distinctReads.all(missing, limits.threads, deadline)(read(hadoop))
      known.map(Some(_)) ++ missing.map(fresh.get)
    }

  // These counts are an extra: without them values are estimated, so nothing is worth a warning.
  private def countOne(
      file: FileStatus,
      reader: DistinctReader,
      hadoop: Configuration,
      groups: Int
  ): FileDistinct =
    try reader.read(file, hadoop, groups)
    catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        log.debug(s"Distinct values of ${file.getPath} are not known: $error")
        FileDistinct(Nil)
    }

  private def readOne(
      key: FileVersion,
      file: FileStatus,
      reader: FooterReader,
      hadoop: Configuration,
      caches: Caches
  ): Option[FileFooter] =
    try {
      val footer = reader.read(file, hadoop)
      caches.footers.put(key, footer)
      Some(footer)
    } catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        caches.unreadable.put(key, java.lang.Boolean.TRUE)
        log.warn(
          s"The footer of ${file.getPath} could not be read, so its rows are estimated: $error"
        )
        None
    }

  /** At most `most` of the files, at even distances, so that every part of a relation is seen. */
  private def spread(files: Seq[FileStatus], most: Int): Seq[FileStatus] =
    if (files.size <= most) files
    else {
      val indexed = files.toIndexedSeq
      (0 until most).map(i => indexed((i.toLong * indexed.size / most).toInt))
    }

  private def fingerprintOf(files: Seq[FileStatus], maxFiles: Int): String = {
    val hasher = Hashing.murmur3_128().newHasher().putInt(maxFiles)
    files.foreach { file =>
      hasher
        .putString(file.getPath.toString, UTF_8)
        .putLong(file.getLen)
        .putLong(file.getModificationTime)
    }
    hasher.hash().toString
  }

  private def since(start: Long): Double = (System.nanoTime() - start) / 1e6
}
