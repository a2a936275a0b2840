package io.selinger.stats

import com.google.common.hash.Hashing
import java.nio.charset.StandardCharsets.UTF_8

/**
 * Certain versions of certain files, whatever order they are listed in.
 *
 * @param bytes of all of them
 * @param digest SHA-256 of their paths, lengths and modification times
 */
final case class FileSet(count: Int, bytes: Long, digest: String)

object FileSet {

  def of(files: Seq[FileVersion]): FileSet = {
    val hasher = Hashing.sha256().newHasher()
    files.sortBy(_.path).foreach { file =>
      hasher
        .putInt(file.path.length)
        .putString(file.path, UTF_8)
        .putLong(file.length)
        .putLong(file.modified)
    }
    FileSet(files.size, files.iterator.map(_.length).sum, hasher.hash().toString)
  }
}
