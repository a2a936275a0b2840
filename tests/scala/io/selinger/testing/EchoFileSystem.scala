package io.selinger.testing

import java.net.URI
import java.util.concurrent.atomic.AtomicInteger
import org.apache.hadoop.fs.{FSDataInputStream, Path, RawLocalFileSystem}

/** Every file, whatever its name, reads as the one that a setting names. */
final class EchoFileSystem extends RawLocalFileSystem {

  override def getScheme: String = EchoFileSystem.scheme

  override def getUri: URI = URI.create(s"${EchoFileSystem.scheme}:///")

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    EchoFileSystem.opened.incrementAndGet()
    Thread.sleep(EchoFileSystem.delayMs)
    super.open(new Path(getConf.get(EchoFileSystem.original)), bufferSize)
  }
}

object EchoFileSystem {
  val scheme = "echo"

  /** Hadoop's setting that names the file to read in place of all others. */
  val original = "selinger.test.echo"

  val opened = new AtomicInteger()

  @volatile var delayMs = 0L

  def settings(file: java.nio.file.Path): Map[String, String] = Map(
    s"fs.$scheme.impl" -> classOf[EchoFileSystem].getName,
    s"fs.$scheme.impl.disable.cache" -> "true",
    original -> file.toUri.toString.replaceFirst("^file:", s"$scheme:")
  )
}
