package io.selinger.stats

import com.google.common.cache.{Cache, CacheBuilder}
import com.google.common.hash.Hashing
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.concurrent.{
  CompletableFuture,
  ConcurrentHashMap,
  LinkedBlockingQueue,
  Semaphore,
  ThreadPoolExecutor,
  TimeUnit,
  TimeoutException
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

  private val inFlight = new ConcurrentHashMap[Key, CompletableFuture[Option[FileFooter]]]()

  // On storage that hangs, reads of many calls must not pile up.
  private val running = new Semaphore(128)

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
          file -> fresh.get(key).orElse(Option(caches.footers.getIfPresent(key)))
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

  /** Reads what the caches lack, as far as the time allows. */
  private def readMissing(
      reader: FooterReader,
      files: Seq[FileStatus],
      hadoop: => Configuration,
      limits: FooterLimits,
      caches: Caches
  ): Map[Key, FileFooter] = {
    val missing = files.map(file => keyOf(file) -> file).filter { case (key, _) =>
      caches.footers.getIfPresent(key) == null && caches.unreadable.getIfPresent(key) == null
    }
    if (missing.isEmpty) Map.empty
    else {
      val configuration = hadoop
      val deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limits.budgetMs)
      val pool = newPool(limits.threads)
      try {
        val awaited = missing.map { case (key, file) =>
          val read = new Read(key, file, reader, configuration, caches)
          // A file that another query reads at the moment is waited for, not read twice.
          Option(inFlight.putIfAbsent(key, read.footer)) match {
            case Some(running) => key -> running
            case None =>
              pool.execute(read)
              key -> read.footer
          }
        }
        awaited.flatMap { case (key, footer) => within(deadline, footer).map(key -> _) }.toMap
      } finally {
        val unstarted = new java.util.ArrayList[Runnable]()
        pool.getQueue.drainTo(unstarted)
        unstarted.forEach {
          case read: Read => read.abandon()
          case _ => ()
        }
        pool.shutdown()
      }
    }
  }

  private def within(
      deadline: Long,
      footer: CompletableFuture[Option[FileFooter]]
  ): Option[FileFooter] =
    try footer.get(math.max(0L, deadline - System.nanoTime()), TimeUnit.NANOSECONDS)
    catch { case _: TimeoutException => None }

  // Made for one call and not kept: the threads inherit this user's credentials and end with it.
  private def newPool(threads: Int): ThreadPoolExecutor =
    new ThreadPoolExecutor(
      threads,
      threads,
      0L,
      TimeUnit.MILLISECONDS,
      new LinkedBlockingQueue[Runnable](),
      (task: Runnable) => {
        val thread = new Thread(task, "selinger-footers")
        thread.setDaemon(true)
        thread
      }
    )

  /** Reads one footer, unless too many reads hang already. */
  private final class Read(
      key: Key,
      file: FileStatus,
      reader: FooterReader,
      hadoop: Configuration,
      caches: Caches
  ) extends Runnable {

    val footer = new CompletableFuture[Option[FileFooter]]()

    override def run(): Unit =
      try
        if (running.tryAcquire()) {
          try {
            val _ = footer.complete(readOne(key, file, reader, hadoop, caches))
          } finally running.release()
        }
      finally abandon()

    /** Nobody waits for this read any longer, whether it was done or not. */
    def abandon(): Unit = {
      inFlight.remove(key, footer)
      val _ = footer.complete(None)
    }
  }

  private def readOne(
      key: Key,
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
