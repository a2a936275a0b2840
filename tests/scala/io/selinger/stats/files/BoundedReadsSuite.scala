package io.selinger.stats.files

import java.util.concurrent.{ConcurrentLinkedQueue, CountDownLatch, TimeUnit}
import org.scalatest.funsuite.AnyFunSuite
import scala.concurrent.{Await, ExecutionContext, Future}
import scala.concurrent.duration.Duration
import scala.jdk.CollectionConverters._

/** Reads that several callers want at the same time. */
class BoundedReadsSuite extends AnyFunSuite {

  private def reads = new BoundedReads[String, String]("selinger-test")

  private def soon: Long = System.nanoTime() + TimeUnit.SECONDS.toNanos(60)

  private def later[A](body: => A): Future[A] = Future(body)(ExecutionContext.global)

  private def result[A](future: Future[A]): A = Await.result(future, Duration(60, "s"))

  private def upper(keys: Seq[String]): Map[String, String] =
    keys.map(key => key -> key.toUpperCase).toMap

  test("the keys of a group are read by one call, and each key has its value") {
    val calls = new ConcurrentLinkedQueue[Set[String]]()
    val found = reads.inGroups(Seq(Seq("a", "b"), Seq("c")), 2, soon) { keys =>
      calls.add(keys.toSet)
      upper(keys)
    }
    assert(found == Map("a" -> "A", "b" -> "B", "c" -> "C"))
    assert(calls.asScala.toSet == Set(Set("a", "b"), Set("c")))
  }

  test("groups that overlap: what another caller reads is waited for, and the rest is read") {
    val shared = reads
    val begun, gate = new CountDownLatch(1)
    val first = later(shared.inGroups(Seq(Seq("a", "b")), 1, soon) { keys =>
      begun.countDown()
      gate.await()
      keys.map(key => key -> s"first $key").toMap
    })
    begun.await()
    val rest = new ConcurrentLinkedQueue[String]()
    val second = later(shared.inGroups(Seq(Seq("b", "c")), 1, soon) { keys =>
      keys.foreach(rest.add)
      gate.countDown()
      keys.map(key => key -> s"second $key").toMap
    })
    assert(result(first) == Map("a" -> "first a", "b" -> "first b"))
    assert(result(second) == Map("b" -> "first b", "c" -> "second c"))
    assert(rest.asScala.toSeq == Seq("c"))
  }

  test("what does not arrive is read by those who waited for it") {
    val shared = reads
    val begun, gate = new CountDownLatch(1)
    val first = later(shared.inGroups(Seq(Seq("a", "b")), 1, soon) { keys =>
      begun.countDown()
      gate.await()
      upper(keys).removed("b")
    })
    begun.await()
    val second = later(shared.all(Seq("b", "c"), 1, soon) { key =>
      gate.countDown()
      Some(key.toUpperCase)
    })
    assert(result(first) == Map("a" -> "A"))
    assert(result(second) == Map("b" -> "B", "c" -> "C"))
  }

  test("what its reader gives up is read by those who waited for it") {
    val shared = reads
    val begun, gate = new CountDownLatch(1)
    // One thread for two groups: time is over before the second one has begun.
    val first = later(shared.inGroups(Seq(Seq("a"), Seq("b")), 1, System.nanoTime() + 200000000L) {
      keys =>
        begun.countDown()
        gate.await()
        upper(keys)
    })
    begun.await()
    val second = later(shared.all(Seq("b"), 1, soon)(key => Some(s"second $key")))
    assert(result(second) == Map("b" -> "second b"))
    // Unless the second call was the first to ask for b.
    assert(result(first).removed("b").isEmpty && !result(first).get("b").contains("B"))
    gate.countDown()
  }
}
