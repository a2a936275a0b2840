package io.selinger.stats.files

import io.selinger.stats.{ChunkCount, FileFooter}
import java.util.Locale
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.FileStatus

/** Reads what a file format stores about a whole file, without reading its data. */
trait FooterReader {

  /** @throws java.io.IOException or a format's own error, where the file cannot be read */
  def read(file: FileStatus, hadoop: Configuration): FileFooter

  /** What reads single rows of this format, if anything does. */
  def samples: Option[SampleReader] = None

  /** What counts distinct values in this format, if anything does. */
  def dictionaries: Option[DistinctReader] = None
}

/** Reads what a file format stores about distinct values, without reading its data. */
trait DistinctReader {

  /**
   * Exact numbers of distinct values of some columns in some row groups, one after the other until
   * `deadline` (on the clock of `System.nanoTime`).
   *
   * @param requests at most one for a row group
   * @param answer takes each column of each row group as soon as it is known
   * @throws java.io.IOException or a format's own error, where the file cannot be read
   */
  def read(
      file: FileStatus,
      hadoop: Configuration,
      requests: Seq[DistinctRequest],
      deadline: Long
  )(answer: (Int, String, ChunkCount) => Unit): Unit
}

/**
 * @param index of a row group in its file
 * @param columns wanted of it, by lower-case name
 */
final case class DistinctRequest(index: Int, columns: Seq[String])

object FooterReader {

  /** A range of values; none where a file keeps NaN as a bound. */
  def range(low: Double, high: Double): Option[(Double, Double)] =
    if (low.isNaN || high.isNaN) None else Some((low, high))

  /** Statistics are kept under lower-case names, as Spark resolves columns by default. */
  def columnName(name: String): String = name.toLowerCase(Locale.ROOT)
}
