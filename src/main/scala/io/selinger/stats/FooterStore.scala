package io.selinger.stats

import com.google.common.cache.{Cache, CacheBuilder}
import com.google.common.hash.Hashing
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.concurrent.{
  ConcurrentHashMap,
  ConcurrentMap,
  CountDownLatch,
  LinkedBlockingQueue,
  ThreadPoolExecutor,
  TimeUnit
}
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
 * length, modification time), within bounds of files, time and memory.
 *
 * Threads live for one call. A read that outlasts the budget is not interrupted, since interrupting
 * a file system client can break it for others; it ends by itself, and its footer serves the next
 * query.
 */
object FooterStore {

  private val log = LoggerFactory.getLogger("io.selinger")

  private final case class Key(path: String, length: Long, modified: Long)

  private final case class Caches(maxBytes: Long) {
    private def cache[K <: AnyRef, V <: AnyRef](share: Double)(weight: V => Int): Cache[K, V] =
      CacheBuilder
        .newBuilder()
        .maximumWeight((maxBytes * share).toLong)
        .weigher((_: K, value: V) => weight(value))
        .build[K, V]()

    val footers: Cache[Key, FileFooter] = cache(0.8)(f => 300 + 140 * f.columns.size)
    val relations: Cache[String, RelationStatistics] = cache(0.2)(r => 300 + 160 * r.columns.size)
    // A file that cannot be read is not tried again at each query, but later, for it may recover.
    val unreadable: Cache[Key, java.lang.Boolean] =
      CacheBuilder.newBuilder().maximumSize(10000).expireAfterWrite(Duration.ofMinutes(1)).build()
  }

  // On storage that hangs, reads of many calls must not pile up.
  private val inFlight = ConcurrentHashMap.newKeySet[Key]()
  private val mostInFlight = 128

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
        val fresh = readMissing(reader, chosen, hadoop, limits, caches)
        // Not from the cache alone: it may be too small for what has just been read.
        val found = chosen.map { file =>
          val key = keyOf(file)
          file -> Option(fresh.get(key)).orElse(Option(caches.footers.getIfPresent(key)))
        }.toMap
        val merged = FooterMerge.merge(
          files.map(file => FooterMerge.File(file.getLen, found.get(file).flatten))
        )
        val read = found.values.count(_.isDefined)
        // A partial answer is not kept: the next query finds more footers in the cache.
        if (read == chosen.size) merged.foreach(caches.relations.put(fingerprint, _))
        FooterAnswer(merged, read, files.size, since(start))
    }
  }

  /** Forgets everything; the next query reads footers anew. */
  def clear(): Unit = current.set(null)

  private def cachesOf(limits: FooterLimits): Caches = current.updateAndGet { caches =>
    if (caches == null || caches.maxBytes != limits.cacheMaxBytes) Caches(limits.cacheMaxBytes)
    else caches
  }

  private def readMissing(
      reader: FooterReader,
      files: Seq[FileStatus],
      hadoop: => Configuration,
      limits: FooterLimits,
      caches: Caches
  ): ConcurrentMap[Key, FileFooter] = {
    val fresh = new ConcurrentHashMap[Key, FileFooter]()
    val missing = files.filter { file =>
      val key = keyOf(file)
      caches.footers.getIfPresent(key) == null && caches.unreadable.getIfPresent(key) == null
    }
    if (missing.nonEmpty) {
      val configuration = hadoop
      val done = new CountDownLatch(missing.size)
      val queue = new LinkedBlockingQueue[Runnable]()
      // Made here and not kept: the threads inherit this user's credentials and end with the call.
      val pool = new ThreadPoolExecutor(
        limits.threads,
        limits.threads,
        0L,
        TimeUnit.MILLISECONDS,
        queue,
        (task: Runnable) => {
          val thread = new Thread(task, "selinger-footers")
          thread.setDaemon(true)
          thread
        }
      )
      try {
        missing.foreach { file =>
          pool.execute { () =>
            try once(file)(readOne(reader, file, configuration, caches, fresh))
            finally done.countDown()
          }
        }
        val _ = done.await(limits.budgetMs, TimeUnit.MILLISECONDS)
      } finally {
        queue.clear()
        pool.shutdown()
      }
    }
    fresh
  }

  /** Skips a file that an earlier call, which did not wait for it, still reads. */
  private def once(file: FileStatus)(read: => Unit): Unit = {
    val key = keyOf(file)
    if (inFlight.size < mostInFlight && inFlight.add(key)) {
      try read
      finally {
        val _ = inFlight.remove(key)
      }
    }
  }

  private def readOne(
      reader: FooterReader,
      file: FileStatus,
      hadoop: Configuration,
      caches: Caches,
      fresh: ConcurrentMap[Key, FileFooter]
  ): Unit =
    try {
      val footer = reader.read(file, hadoop)
      fresh.put(keyOf(file), footer)
      caches.footers.put(keyOf(file), footer)
    } catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        caches.unreadable.put(keyOf(file), java.lang.Boolean.TRUE)
        log.warn(
          s"The footer of ${file.getPath} could not be read, so its rows are estimated: $error"
        )
    }

  /** At most `most` of the files, at even distances, so that every part of a relation is seen. */
  private def spread(files: Seq[FileStatus], most: Int): Seq[FileStatus] =
    if (files.size <= most) files
    else {
      val indexed = files.toIndexedSeq
      (0 until most).map(i => indexed((i.toLong * indexed.size / most).toInt))
    }

  private def keyOf(file: FileStatus): Key =
    Key(file.getPath.toString, file.getLen, file.getModificationTime)

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
