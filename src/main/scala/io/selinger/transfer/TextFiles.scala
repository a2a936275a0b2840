package io.selinger.transfer

import java.io.FileNotFoundException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.{EnumSet, UUID}
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{CreateFlag, FileContext, Path}
import org.apache.hadoop.fs.Options.Rename
import scala.util.Using

/** Small texts on any Hadoop file system. */
object TextFiles {

  private val mostBytes = 64 << 20

  /** Writes beside the file and renames, so that readers see the old text or the new one. */
  def write(file: String, text: String, hadoop: Configuration): Unit = {
    val target = new Path(file)
    val files = FileContext.getFileContext(target.toUri, hadoop)
    val draft = new Path(target.getParent, s".${target.getName}.${UUID.randomUUID()}.tmp")
    try {
      val flags = EnumSet.of(CreateFlag.CREATE)
      Using.resource(files.create(draft, flags))(_.write(text.getBytes(UTF_8)))
      files.rename(draft, target, Rename.OVERWRITE)
    } finally {
      // Renamed already, unless something went wrong.
      val _ = if (files.util.exists(draft)) files.delete(draft, false)
    }
  }

  /** @throws java.lang.IllegalArgumentException where there is no such file, or a huge one */
  def read(file: String, hadoop: Configuration): String = {
    val path = new Path(file)
    val files = path.getFileSystem(hadoop)
    val length =
      try files.getFileStatus(path).getLen
      catch {
        case _: FileNotFoundException =>
          throw new IllegalArgumentException(s"There is no file $file.")
      }
    if (length > mostBytes) {
      throw new IllegalArgumentException(
        s"$file has $length bytes, of which $mostBytes are read at most."
      )
    }
    Using.resource(files.open(path))(in => new String(in.readAllBytes(), UTF_8))
  }
}
