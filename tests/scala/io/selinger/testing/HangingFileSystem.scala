package io.selinger.testing

import java.net.URI
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger
import org.apache.hadoop.fs.{FileStatus, Path, RawLocalFileSystem}

/** Files under `hangs:`, whose listings do not return before [[HangingFileSystem.release]]. */
final class HangingFileSystem extends RawLocalFileSystem {

  override def getUri: URI = URI.create("hangs:///")

  override def listStatus(path: Path): Array[FileStatus] = {
    HangingFileSystem.asked.incrementAndGet()
    HangingFileSystem.latch.await()
    super.listStatus(path)
  }
}

object HangingFileSystem {
  private val latch = new CountDownLatch(1)

  /** Listings that were asked for. */
  val asked = new AtomicInteger()

  def release(): Unit = latch.countDown()
}
