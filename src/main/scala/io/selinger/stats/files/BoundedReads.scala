package io.selinger.stats.files

import java.util.concurrent.{
  CancellationException,
  CompletableFuture,
  ConcurrentHashMap,
  LinkedBlockingQueue,
  Semaphore,
  ThreadPoolExecutor,
  TimeUnit,
  TimeoutException
}

/**
 * Reads many things in parallel, each only once at a time, and waits for them until a deadline.
 *
 * Threads live for one call. A read that outlasts its time is not interrupted, since interrupting a
 * file system client can break it for others; it ends by itself, and what it puts into a cache
 * serves the next query.
 *
 * @param threadName of the threads
 */
final class BoundedReads[K <: AnyRef, V <: AnyRef](threadName: String) {

  private val inFlight = new ConcurrentHashMap[K, CompletableFuture[Option[V]]]()

  // On storage that hangs, reads of many calls must not pile up.
  private val running = new Semaphore(128)

  /**
   * What `read` returns for each of `keys`, as far as it arrives.
   *
   * @param deadline on the clock of `System.nanoTime`
   * @param read must not raise
   */
  def all(keys: Seq[K], threads: Int, deadline: Long)(read: K => Option[V]): Map[K, V] =
    if (keys.isEmpty) Map.empty
    else {
      val answers = attempt(keys, threads, deadline)(read)
      val found = answers.collect { case (key, Right(Some(value))) => key -> value }.toMap
      // What another query has begun and given up, this one reads itself.
      val left = answers.collect { case (key, Left(())) => key }
      if (left.isEmpty || System.nanoTime() >= deadline) found
      else found ++ all(left, threads, deadline)(read)
    }

  /** What arrived, and on the left what others have given up. */
  private def attempt(keys: Seq[K], threads: Int, deadline: Long)(
      read: K => Option[V]
  ): Seq[(K, Either[Unit, Option[V]])] = {
    val pool = newPool(threads)
    try {
      val awaited = keys.map { key =>
        val task = new Read(key, read)
        // What another query reads at the moment is waited for, not read twice.
        Option(inFlight.putIfAbsent(key, task.result)) match {
          case Some(other) => (key, other, false)
          case None =>
            try pool.execute(task)
            // No thread to be had: others that wait for this key go on without it.
            catch { case error: Throwable => task.abandon(); throw error }
            (key, task.result, true)
        }
      }
      awaited.map { case (key, result, ours) =>
        val answer = within(deadline, result)
        key -> (if (ours) Right(answer.getOrElse(None)) else answer)
      }
    } finally {
      val unstarted = new java.util.ArrayList[Runnable]()
      pool.getQueue.drainTo(unstarted)
      unstarted.forEach {
        case task: BoundedReads.Task => task.abandon()
        case _ => ()
      }
      pool.shutdown()
    }
  }

  private def within(
      deadline: Long,
      result: CompletableFuture[Option[V]]
  ): Either[Unit, Option[V]] =
    try Right(result.get(math.max(0L, deadline - System.nanoTime()), TimeUnit.NANOSECONDS))
    catch {
      case _: TimeoutException => Right(None)
      case _: CancellationException => Left(())
    }

  // Made for one call and not kept: the threads inherit this user's credentials and end with it.
  private def newPool(threads: Int): ThreadPoolExecutor =
    new ThreadPoolExecutor(
      threads,
      threads,
      0L,
      TimeUnit.MILLISECONDS,
      new LinkedBlockingQueue[Runnable](),
      (task: Runnable) => {
        val thread = new Thread(task, threadName)
        thread.setDaemon(true)
        thread
      }
    )

  /** One read, unless too many hang already. */
  private final class Read(key: K, read: K => Option[V]) extends BoundedReads.Task {

    val result = new CompletableFuture[Option[V]]()

    override def run(): Unit =
      try
        if (running.tryAcquire()) {
          try {
            val answer = read(key)
            // Before it is complete: whoever asks from now on finds the cache, or reads anew.
            inFlight.remove(key, result)
            val _ = result.complete(answer)
          } finally running.release()
        }
      finally abandon()

    /** Whether the read was done or not, nobody is to wait for it any longer. */
    override def abandon(): Unit = {
      inFlight.remove(key, result)
      val _ = result.cancel(false)
    }
  }
}

object BoundedReads {
  private trait Task extends Runnable {
    def abandon(): Unit
  }
}
