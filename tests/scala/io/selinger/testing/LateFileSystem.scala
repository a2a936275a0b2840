package io.selinger.testing

import java.net.URI
import java.util.concurrent.CountDownLatch
import org.apache.hadoop.fs.{FSDataInputStream, Path, RawLocalFileSystem}

/** Files under `late:`, which are listed at once, and open when [[LateFileSystem.hold]] is over. */
final class LateFileSystem extends RawLocalFileSystem {

  override def getUri: URI = URI.create("late:///")

  override def open(path: Path, bufferSize: Int): FSDataInputStream = {
    LateFileSystem.gate.await()
    super.open(path, bufferSize)
  }
}

object LateFileSystem {
  @volatile private var gate = new CountDownLatch(0)

  /** No file opens before `body` has ended. */
  def hold[A](body: => A): A = {
    val held = new CountDownLatch(1)
    gate = held
    try body
    finally held.countDown()
  }
}
