package io.selinger.stats

import com.google.common.hash.Hashing
import java.nio.charset.StandardCharsets.UTF_8
import org.apache.hadoop.fs.FileStatus

/**
 * One row group of a file.
 *
 * @param index within the file
 * @param parts how many of the equal parts of a relation it stands for
 */
final case class RowGroup(file: FileStatus, index: Int, rows: Long, parts: Int) {
  val version: FileVersion = FileVersion.of(file)
}

/**
 * Some row groups of a relation, at even distances of rows: where samples come from.
 *
 * @param id the same for the same versions of the same files
 */
final case class RowGroups(chosen: Seq[RowGroup], id: String)

object RowGroups {

  val none: RowGroups = RowGroups(Nil, "")

  /** Parts that a relation is cut into; each is represented by the row group in its middle. */
  val parts: Int = 16

  /** Of files and the rows of their row groups. */
  def spread(files: Seq[(FileStatus, Seq[Long])]): RowGroups = {
    val groups = files.flatMap { case (file, rows) =>
      rows.zipWithIndex.collect { case (n, i) if n > 0 => (file, i, n) }
    }.toIndexedSeq
    if (groups.isEmpty) none
    else {
      val ends = groups.iterator.map(_._3).scanLeft(0L)(_ + _).drop(1).toArray
      val middles = (0 until parts).map { i =>
        val row = ((i + 0.5) / parts * ends.last.toDouble).toLong
        val found = java.util.Arrays.binarySearch(ends, row + 1)
        if (found >= 0) found else -found - 1
      }
      val chosen = middles.distinct.map { at =>
        val (file, index, rows) = groups(at)
        RowGroup(file, index, rows, middles.count(_ == at))
      }
      RowGroups(chosen, idOf(chosen))
    }
  }

  private def idOf(chosen: Seq[RowGroup]): String = {
    val hasher = Hashing.murmur3_128().newHasher()
    chosen.foreach { group =>
      hasher
        .putString(group.version.path, UTF_8)
        .putLong(group.version.length)
        .putLong(group.version.modified)
        .putInt(group.index)
        .putInt(group.parts)
    }
    hasher.hash().toString
  }
}
