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

  override def open(path: Path, bufferSize: Int): FSDataInputStream =
    new CountedFileSystem.Stream(super.open(path, bufferSize))
}

object CountedFileSystem {

  val scheme = "counted"

  /** Places that were jumped to, and ranges that were asked for together. */
  val seeks, ranges = new AtomicInteger()

  def configuration(): Configuration = {
    val conf = new Configuration()
    conf.set(s"fs.$scheme.impl", classOf[CountedFileSystem].getName)
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
