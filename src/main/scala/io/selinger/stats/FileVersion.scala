package io.selinger.stats

import org.apache.hadoop.fs.FileStatus

/** One version of one file: what is read of it stays true for as long as these three do. */
final case class FileVersion(path: String, length: Long, modified: Long)

object FileVersion {
  def of(file: FileStatus): FileVersion =
    FileVersion(file.getPath.toString, file.getLen, file.getModificationTime)
}
