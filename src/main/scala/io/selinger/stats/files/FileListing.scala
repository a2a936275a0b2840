package io.selinger.stats.files

import com.google.common.cache.{Cache, CacheBuilder}
import com.google.common.hash.Hashing
import io.selinger.stats.{ColumnStatistics, FileSet, FileVersion}
import java.lang.ref.WeakReference
import java.util.concurrent.atomic.AtomicReference
import org.apache.hadoop.fs.FileStatus
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, ExprId, Expression}
import org.apache.spark.sql.execution.datasources.PartitioningAwareFileIndex
import org.apache.spark.sql.selinger.Listing

/**
 * What is needed of a listing of files, however long it is.
 *
 * @param files how many there are
 * @param bytes of all of them
 * @param chosen those whose footers are read, at even distances
 * @param fingerprint the same for the same versions of the same files
 * @param partitions statistics of partition columns, by lower-case name
 */
final case class FileListing(
    files: Int,
    bytes: Double,
    chosen: IndexedSeq[FileStatus],
    fingerprint: String,
    partitions: Map[String, ColumnStatistics] = Map.empty
)

object FileListing {

  /** @param most files to choose */
  def of(files: Iterable[FileStatus], most: Int): FileListing = {
    val indexed = files.toIndexedSeq
    val hasher = Hashing.murmur3_128().newHasher().putInt(most)
    indexed.foreach { file =>
      hasher
        .putUnencodedChars(file.getPath.toString)
        .putLong(file.getLen)
        .putLong(file.getModificationTime)
    }
    FileListing(
      indexed.size,
      indexed.iterator.map(_.getLen.toDouble).sum,
      spread(indexed, most),
      hasher.hash().toString
    )
  }

  /** At most `most` of the items, at even distances, so that every part of them is seen. */
  def spread[A](items: IndexedSeq[A], most: Int): IndexedSeq[A] =
    if (items.size <= most) items
    else (0 until most).map(i => items((i.toLong * items.size / most).toInt))
}

/**
 * A cache of listings. Listing a million files takes a second, and each query on the relation would
 * do it again, and so would each adaptive re-plan.
 */
private[stats] object FileListings {

  /** @param filters on partitions, with columns by name */
  private final case class Part(filters: Seq[Expression], most: Int)

  // The files that an index had then, and the listings of parts of them.
  private final class CachedListings(val files: WeakReference[AnyRef]) {
    val parts: Cache[Part, FileListing] =
      CacheBuilder.newBuilder().maximumSize(partsOfOne).build()
    val set = new AtomicReference[FileSet]()
  }

  private val partsOfOne = 8L

  // Weak: a listing ends with its index, which lives as long as tables and data frames.
  private val known: Cache[PartitioningAwareFileIndex, CachedListings] =
    CacheBuilder.newBuilder().weakKeys().maximumSize(1000).build()

  /** The result of `list`, which runs once for as long as the index is not refreshed. */
  def cached(index: PartitioningAwareFileIndex, filters: Seq[Expression], most: Int)(
      list: => FileListing
  ): FileListing = {
    val found = listingsOf(index)
    val part = Part(filters.map(byName), most)
    Option(found.parts.getIfPresent(part)).getOrElse {
      val listing = list
      found.parts.put(part, listing)
      listing
    }
  }

  /** All files of an index. */
  def all(index: PartitioningAwareFileIndex): FileSet = {
    val found = listingsOf(index)
    Option(found.set.get).getOrElse {
      val files = index.listFiles(Nil, Nil).iterator.flatMap(_.files).map(_.fileStatus)
      found.set.set(FileSet.of(files.map(FileVersion.of).toSeq))
      found.set.get
    }
  }

  private def listingsOf(index: PartitioningAwareFileIndex): CachedListings = {
    // Before listing: files that are refreshed meanwhile count as others.
    val files = Listing.of(index)
    Option(known.getIfPresent(index)).filter(_.files.get eq files).getOrElse {
      val fresh = new CachedListings(new WeakReference(files))
      known.put(index, fresh)
      fresh
    }
  }

  /** Each query gives columns other ids. */
  private def byName(filter: Expression): Expression = filter.transform {
    case column: AttributeReference => column.withExprId(anyId).withQualifier(Nil)
  }

  private val anyId = ExprId(0)
}
