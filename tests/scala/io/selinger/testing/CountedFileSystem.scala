package io.selinger.testing

import java.net.URI
import java.nio.ByteBuffer
import java.util.concurrent.atomic.AtomicInteger
import java.util.function.IntFunction
import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._

/** Local files under a scheme of their own, as if each request went to an object store. */
final class CountedFileSystem extends RawLocalFileSystem {

  override def getScheme: String = CountedFileSystem.scheme

  override def getUri: URI = URI.create(s"${CountedFileSystem.scheme}:///")

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    CountedFileSystem.opened.incrementAndGet()
    new CountedFileSystem.Stream(super.open(path, bufferSize))
  }
}

object CountedFileSystem {

  val scheme = "counted"

  /** Files that were opened, places that were jumped to, and ranges that were asked for together. */
  val opened, seeks, ranges = new AtomicInteger()

  /** Makes the scheme known to a reader of Spark. */
  val options: Map[String, String] = Map(s"fs.$scheme.impl" -> classOf[CountedFileSystem].getName)

  def configuration(): Configuration = {
    val conf = new Configuration()
    options.foreach { case (key, value) => conf.set(key, value) }
    conf
  }

  /** The same file through this file system. */
  def of(file: FileStatus): FileStatus = new FileStatus(
    file.getLen,
    false,
    1,
    file.getBlockSize,
    file.getModificationTime,
    new Path(s"$scheme:${file.getPath.toUri.getPath}")
  )

  private final class Stream(in: FSDataInputStream) extends FSDataInputStream(in) {

    override def seek(place: Long): Unit = {
      seeks.incrementAndGet()
      super.seek(place)
    }

    override def readVectored(
        wanted: java.util.List[_ <: FileRange],
        allocate: IntFunction[ByteBuffer]
    ): Unit = {
      ranges.addAndGet(wanted.size)
      super.readVectored(wanted, allocate)
    }
  }
}
