package io.selinger.testing

import java.io.IOException
import java.net.URI
import java.util.concurrent.ConcurrentLinkedQueue
import org.apache.hadoop.fs.{FSDataInputStream, Path, RawLocalFileSystem}

/** Local files under a scheme of their own; a test sees who opens them, and stands in between. */
final class WatchedFileSystem extends RawLocalFileSystem {

  override def getScheme: String = WatchedFileSystem.scheme

  override def getUri: URI = URI.create(s"${WatchedFileSystem.scheme}:///")

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    val thread = Thread.currentThread.getName
    if (thread.startsWith("selinger-")) {
      WatchedFileSystem.seen.add(path.getParent.getName)
      WatchedFileSystem.onOpen(path)
    }
    super.open(path, bufferSize)
  }
}

object WatchedFileSystem {

  val scheme = "watched"

  /** Makes the scheme known to a reader of Spark. */
  val options: Map[String, String] = Map(s"fs.$scheme.impl" -> classOf[WatchedFileSystem].getName)

  private val seen = new ConcurrentLinkedQueue[String]()

  @volatile private var onOpen: Path => Unit = _ => ()

  /** The folders of files that threads of ours have opened since the last call, sorted. */
  def opened(): Seq[String] = {
    val folders = Iterator.continually(seen.poll()).takeWhile(_ != null).toSeq
    folders.sorted
  }

  /** Runs `body`, while `action` is run before threads of ours open a file. */
  def watching[A](action: Path => Unit)(body: => A): A = {
    onOpen = action
    try body
    finally onOpen = _ => ()
  }

  /** Raises what a broken store raises. */
  def broken(path: Path): Unit = throw new IOException(s"broken on purpose: $path")
}
