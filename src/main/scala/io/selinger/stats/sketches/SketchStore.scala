package io.selinger.stats.sketches

import com.google.common.cache.{Cache, CacheBuilder}
import com.google.common.hash.Hashing
import io.selinger.stats.FileVersion
import java.io.{FileNotFoundException, IOException}
import java.nio.charset.StandardCharsets.UTF_8
import java.time.Duration
import java.util.UUID
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicReference
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FSDataOutputStream, FileStatus, FileSystem, Path}
import org.apache.spark.sql.types.DataType
import org.slf4j.LoggerFactory
import scala.util.control.NonFatal

/**
 * All that was collected of one relation.
 *
 * @param segments newest first
 * @param id the same for the same segments and keys
 * @param keys that were declared and checked, by the file of each
 */
private[stats] final case class Collected(
    segments: Seq[Segment],
    id: String,
    keys: Map[Path, DeclaredKey] = Map.empty
) {

  /** Where the best entry of each of `files` lies: the largest share, then the newest. */
  def entries(
      name: String,
      kind: DataType,
      files: collection.Map[FileVersion, Int]
  ): Map[Segment, Map[Int, Int]] = {
    val best = collection.mutable.HashMap.empty[Int, (Double, Segment, Int)]
    for (segment <- segments; column <- segment.columns.get((name, kind))) {
      var i = 0
      while (i < column.entries.length) {
        val place = column.entries(i)
        files.get(segment.files(place)).foreach { file =>
          if (!best.get(file).exists(_._1 >= column.shares(i))) {
            best.update(file, (column.shares(i), segment, place))
          }
        }
        i += 1
      }
    }
    best.toSeq
      .groupMap { case (_, (_, segment, _)) => segment } { case (file, (_, _, place)) =>
        place -> file
      }
      .map { case (segment, places) => segment -> places.toMap }
  }

  /** Shares that are known of each of `files`. */
  def shares(
      name: String,
      kind: DataType,
      files: collection.Map[FileVersion, Int]
  ): Map[Int, Double] = {
    val found = for {
      segment <- segments.iterator
      column <- segment.columns.get((name, kind)).iterator
      i <- column.entries.indices.iterator
      file <- files.get(segment.files(column.entries(i))).iterator
    } yield file -> column.shares(i)
    found.toSeq.groupMapReduce(_._1)(_._2)(math.max(_, _))
  }
}

private[stats] object Collected {
  val none: Collected = Collected(Nil, "")
}

/**
 * Where collected statistics are kept: below the location a folder for each relation, in it one
 * immutable file for each run, under a name that nobody else chooses. A file is written under
 * another name and renamed when it is complete, so readers find complete files, those of all
 * writers; entries of one file version say the same, whoever wrote them. What cannot be read is
 * left out with a warning.
 */
private[stats] object SketchStore {

  private val log = LoggerFactory.getLogger("io.selinger")

  private val suffix = ".sketch"
  private val keySuffix = ".key"
  private val temporarySuffix = ".tmp"
  private val unfinished = s"_[0-9a-f-]{36}\\$temporarySuffix".r
  private val abandonedAfterMs = 24L * 3600 * 1000

  // What another session writes is seen after so long at the latest.
  private val listingSeconds = 2L

  // Segments beyond these are merged by the next run, as far as they are small.
  private val mostSegments = 8
  private val smallBytes = 32L << 20

  private final case class Listing(checked: Long, collected: Collected)

  private final case class Caches(maxBytes: Long) {
    val listings: Cache[String, Listing] = CacheBuilder
      .newBuilder()
      .maximumWeight(maxBytes / 2)
      .weigher { (_: String, listing: Listing) =>
        val Collected(segments, _, keys) = listing.collected
        val bytes = 200L + segments.map(_.bytes).sum + 500L * keys.size
        bytes.min(Int.MaxValue / 2).toInt
      }
      .build[String, Listing]()

    val merged: Cache[AnyRef, Weighed] = CacheBuilder
      .newBuilder()
      .maximumWeight(maxBytes / 2)
      .weigher((_: AnyRef, value: Weighed) => value.bytes.min(Int.MaxValue / 2).toInt)
      .build[AnyRef, Weighed]()

    val unreadable: Cache[FileVersion, java.lang.Boolean] =
      CacheBuilder.newBuilder().maximumSize(10000).expireAfterWrite(Duration.ofMinutes(10)).build()
  }

  /** What is kept in the driver's memory, with its size. */
  trait Weighed extends AnyRef { def bytes: Long }

  private val current = new AtomicReference[Caches]()

  private def caches(maxBytes: Long): Caches = current.updateAndGet { caches =>
    if (caches == null || caches.maxBytes != maxBytes) Caches(maxBytes) else caches
  }

  /** Forgets what this driver has read. */
  def clear(): Unit = current.set(null)

  /** `compute` once for each `key`, as far as the memory allows; what is `None` is not kept. */
  def kept[A <: Weighed](key: AnyRef, maxBytes: Long)(compute: => Option[A])(
      cast: PartialFunction[Weighed, A]
  ): Option[A] =
    Option(caches(maxBytes).merged.getIfPresent(key)).flatMap(cast.lift).orElse {
      val made = compute
      made.foreach(caches(maxBytes).merged.put(key, _))
      made
    }

  /** The folder of a relation: the same whoever reads it, and by whatever name. */
  def folder(location: String, roots: Seq[Path]): Path = {
    val digest = Hashing
      .sha256()
      .hashString(roots.map(_.toString).sorted.mkString("\n"), UTF_8)
      .toString
    // Hidden, so that nobody takes it for data where the location is a table's own folder.
    new Path(new Path(location), s"_selinger-${digest.take(32)}")
  }

  // ---- reading ------------------------------------------------------------------------------

  /**
   * What the folder holds, from memory if it was listed a moment ago.
   *
   * @throws java.io.IOException where it cannot be listed
   */
  def collected(folder: Path, hadoop: => Configuration, maxBytes: Long): Collected = {
    val kept = caches(maxBytes)
    val now = System.nanoTime()
    Option(kept.listings.getIfPresent(folder.toString)) match {
      case Some(known) if now - known.checked < TimeUnit.SECONDS.toNanos(listingSeconds) =>
        known.collected
      case known =>
        val found = list(folder.getFileSystem(hadoop), folder, known.map(_.collected), kept)
        kept.listings.put(folder.toString, Listing(now, found))
        found
    }
  }

  private def list(
      fs: FileSystem,
      folder: Path,
      before: Option[Collected],
      kept: Caches
  ): Collected = {
    val files = filesOf(fs, folder)
    val id =
      files.map(file => s"${file.getPath.getName} ${file.getLen} ${file.getModificationTime}")
        .mkString("\n")
    before.filter(_.id == id).getOrElse {
      val known = before.toSeq.flatMap(_.segments).map(segment => segment.path -> segment).toMap
      val (segmentFiles, keyFiles) = files.partition(_.getPath.getName.endsWith(suffix))
      val segments = segmentFiles.flatMap { file =>
        known.get(file.getPath).orElse(open(file, kept)(SegmentFile.open(fs, file.getPath)))
      }
      val keys = keyFiles.flatMap { file =>
        val key = before.flatMap(_.keys.get(file.getPath))
        key.orElse(open(file, kept)(readKey(fs, file))).map(file.getPath -> _)
      }
      Collected(
        segments.sortBy(segment => (-segment.created, segment.path.toString)),
        id,
        keys.toMap
      )
    }
  }

  private def readKey(fs: FileSystem, file: FileStatus): DeclaredKey = {
    val in = fs.open(file.getPath)
    try {
      val bytes = new Array[Byte](file.getLen.toInt)
      in.readFully(0L, bytes)
      DeclaredKey.fromBytes(bytes)
    } finally in.close()
  }

  private def filesOf(fs: FileSystem, folder: Path): Seq[FileStatus] =
    try
      fs.listStatus(folder)
        .toSeq
        .filter(file => file.isFile && Seq(suffix, keySuffix).exists(file.getPath.getName.endsWith))
        .sortBy(_.getPath.getName)
    catch { case _: FileNotFoundException => Nil }

  /** Files of writers that died: nobody writes one for as long as that. */
  private def abandoned(fs: FileSystem, folder: Path): Seq[Path] =
    fs.listStatus(folder)
      .toSeq
      .filter(file => file.isFile && unfinished.matches(file.getPath.getName))
      .filter(_.getModificationTime < System.currentTimeMillis() - abandonedAfterMs)
      .map(_.getPath)

  private def open[A](file: FileStatus, kept: Caches)(read: => A): Option[A] = {
    val version = FileVersion.of(file)
    if (kept.unreadable.getIfPresent(version) != null) None
    else
      try Some(read)
      catch {
        case error @ (NonFatal(_) | _: LinkageError) =>
          kept.unreadable.put(version, java.lang.Boolean.TRUE)
          warn(file.getPath, error)
          None
      }
  }

  /** The entries of one column; a section that cannot be read is left out with a warning. */
  def read(segment: Segment, name: String, kind: DataType, hadoop: Configuration)(
      take: SegmentFile.Entry => Unit
  ): Boolean = segment.columns.get((name, kind)).exists { column =>
    try {
      SegmentFile.entries(segment.path.getFileSystem(hadoop), segment, column)(_.foreach(take))
      true
    } catch {
      case error @ (NonFatal(_) | _: LinkageError) =>
        warn(segment.path, error)
        false
    }
  }

  private def warn(path: Path, error: Throwable): Unit =
    log.warn(s"Collected statistics in $path are left out: ${error.getMessage}")

  // ---- writing ------------------------------------------------------------------------------

  /**
   * Adds what one run has collected.
   *
   * @throws java.io.IOException where the place cannot be written
   */
  def add(
      folder: Path,
      relation: String,
      files: IndexedSeq[FileVersion],
      columns: Seq[((String, DataType), SegmentFile.Entries)],
      hadoop: Configuration
  ): Path =
    written(folder, suffix, hadoop)((out, created) =>
      SegmentFile.write(out, created, relation, files, columns)
    )

  /**
   * Adds a key, in place of what was known of it.
   *
   * @throws java.io.IOException where the place cannot be written
   */
  def add(folder: Path, key: DeclaredKey, hadoop: Configuration, maxBytes: Long): Path = {
    val before = collected(folder, hadoop, maxBytes).keys
    val path = written(folder, keySuffix, hadoop)((out, _) => out.write(key.toBytes))
    val old = before.collect { case (file, other) if other.columns == key.columns => file }
    remove(folder, old.toSeq, hadoop)
    path
  }

  /** @param write is given when the file was begun, in milliseconds since 1970 */
  private def written(folder: Path, suffix: String, hadoop: Configuration)(
      write: (FSDataOutputStream, Long) => Unit
  ): Path = {
    val fs = folder.getFileSystem(hadoop)
    val id = UUID.randomUUID().toString
    val created = System.currentTimeMillis()
    val temporary = new Path(folder, s"_$id$temporarySuffix")
    val complete = new Path(folder, f"$created%015d-$id$suffix")
    fs.mkdirs(folder)
    try {
      val out = fs.create(temporary, false)
      try write(out, created)
      finally out.close()
      if (!fs.rename(temporary, complete)) {
        throw new IOException(s"$temporary could not be renamed to $complete")
      }
    } catch {
      case error: Throwable =>
        try { val _ = fs.delete(temporary, false) }
        catch { case NonFatal(_) => () }
        throw error
    }
    forgetListing(folder)
    complete
  }

  private def forgetListing(folder: Path): Unit =
    Option(current.get()).foreach(_.listings.invalidate(folder.toString))

  /** Merges small segments once there are many, without what is no longer current. */
  def compact(
      folder: Path,
      relation: String,
      files: collection.Map[FileVersion, Int],
      hadoop: Configuration,
      maxBytes: Long
  ): Unit = {
    val fs = folder.getFileSystem(hadoop)
    forgetListing(folder)
    val collected = this.collected(folder, hadoop, maxBytes)
    val small = collected.segments.filter(segment => sizeOf(fs, segment.path) <= smallBytes)
    if (collected.segments.size > mostSegments && small.size > 1) {
      val others = unlisted(small.flatMap(_.files).distinct, files.keySet, hadoop)
      val kept = (files.toSeq.sortBy(_._2).map(_._1) ++ others).zipWithIndex.toMap
      rewrite(folder, relation, Collected(small, ""), kept, Set.empty, hadoop)
    }
  }

  /**
   * Files that exist, but not in the listing at hand: that of a view which shows a part of the
   * folder, or one from before they came.
   */
  private def unlisted(
      known: Seq[FileVersion],
      listed: collection.Set[FileVersion],
      hadoop: Configuration
  ): Seq[FileVersion] = {
    val paths = listed.map(_.path)
    known.filterNot(file => paths(file.path)).filter { file =>
      val path = new Path(file.path)
      try FileVersion.of(path.getFileSystem(hadoop).getFileStatus(path)) == file
      catch {
        case _: FileNotFoundException => false
        // It may be there again in a moment.
        case NonFatal(_) => true
      }
    }
  }

  private def sizeOf(fs: FileSystem, path: Path): Long =
    try fs.getFileStatus(path).getLen
    catch { case _: FileNotFoundException => Long.MaxValue }

  /** One segment in place of several: the best entries of `files`, without columns `without`. */
  private def rewrite(
      folder: Path,
      relation: String,
      old: Collected,
      files: collection.Map[FileVersion, Int],
      without: Set[String],
      hadoop: Configuration
  ): Unit = {
    val versions = files.toSeq.sortBy(_._2).map(_._1).toIndexedSeq
    val places = versions.zipWithIndex.toMap
    val columns = old.segments.flatMap(_.columns.keys).distinct.filterNot(c => without(c._1))
    val kept = columns.map { case (name, kind) =>
      val entries = old.entries(name, kind, places).iterator.flatMap { case (segment, places) =>
        val found = Vector.newBuilder[SegmentFile.Entry]
        val complete = read(segment, name, kind, hadoop) { entry =>
          places.get(entry.place).foreach(file => found += entry.copy(place = file))
        }
        // What is there must not be lost because it could not be read for a moment.
        if (!complete) throw new IOException(s"${segment.path} could not be read")
        found.result()
      }
      ((name, kind), entries)
    }
    if (kept.nonEmpty) { val _ = add(folder, relation, versions, kept, hadoop) }
    remove(folder, old.segments.map(_.path), hadoop)
  }

  private def remove(folder: Path, paths: Seq[Path], hadoop: Configuration): Unit = {
    val fs = folder.getFileSystem(hadoop)
    val left = if (fs.exists(folder)) abandoned(fs, folder) else Nil
    (paths ++ left).foreach(path => fs.delete(path, false))
    forgetListing(folder)
  }

  /**
   * Forgets a relation, or some of its columns, and the keys that have them.
   *
   * @return how many columns were forgotten
   */
  def forget(
      folder: Path,
      relation: String,
      columns: Option[Set[String]],
      hadoop: Configuration,
      maxBytes: Long
  ): Int = {
    val fs = folder.getFileSystem(hadoop)
    forgetListing(folder)
    val found = collected(folder, hadoop, maxBytes)
    val sketched = found.segments.flatMap(_.columns.keys.map(_._1)).toSet
    val known = sketched ++ found.keys.values.flatMap(_.columns.keys)
    columns match {
      case Some(some) =>
        val gone = known.intersect(some)
        val affected = found.segments.filter(_.columns.keys.exists(key => gone(key._1)))
        if (affected.nonEmpty) {
          val versions = affected.flatMap(_.files).distinct.zipWithIndex.toMap
          rewrite(folder, relation, Collected(affected, ""), versions, gone, hadoop)
        }
        val keys = found.keys.collect { case (file, key) if key.columns.keys.exists(gone) => file }
        if (keys.nonEmpty) remove(folder, keys.toSeq, hadoop)
        gone.size
      case None =>
        // Other files are not ours to delete.
        remove(folder, filesOf(fs, folder).map(_.getPath), hadoop)
        known.size
    }
  }
}
