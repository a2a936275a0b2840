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

  // Each key with the read that will bring its value, and those of the keys read with it.
  private val inFlight = new ConcurrentHashMap[K, CompletableFuture[Map[K, V]]]()

  // On storage that hangs, reads of many calls must not pile up.
  private val running = new Semaphore(128)

  /**
   * What `read` returns for each of `keys`, as far as it arrives.
   *
   * @param deadline on the clock of `System.nanoTime`
   * @param read must not raise
   */
  def all(keys: Seq[K], threads: Int, deadline: Long)(read: K => Option[V]): Map[K, V] =
    inGroups(keys.map(Seq(_)), threads, deadline) { one =>
      one.flatMap(key => read(key).map(key -> _)).toMap
    }

  /**
   * The same, where one call of `read` brings the values of several keys: of a group, less those that
   * others read at the moment.
   */
  def inGroups(groups: Seq[Seq[K]], threads: Int, deadline: Long)(
      read: Seq[K] => Map[K, V]
  ): Map[K, V] =
    if (groups.isEmpty) Map.empty
    else {
      val answers = attempt(groups, threads, deadline)(read)
      val found = answers.flatten.collect { case (key, Right(Some(value))) => key -> value }.toMap
      // What another query has begun and given up, this one reads itself.
      val left = answers.map(_.collect { case (key, Left(())) => key }).filter(_.nonEmpty)
      if (left.isEmpty || System.nanoTime() >= deadline) found
      else found ++ inGroups(left, threads, deadline)(read)
    }

  /** What arrived of each group, and on the left what others have given up. */
  private def attempt(groups: Seq[Seq[K]], threads: Int, deadline: Long)(
      read: Seq[K] => Map[K, V]
  ): Seq[Seq[(K, Either[Unit, Option[V]])]] = {
    val pool = newPool(threads)
    try {
      val awaited = groups.map { keys =>
        val result = new CompletableFuture[Map[K, V]]()
        // What another query reads at the moment is waited for, not read twice.
        val readers = keys.map(key => (key, Option(inFlight.putIfAbsent(key, result))))
        val ours = readers.collect { case (key, None) => key }
        if (ours.nonEmpty) {
          val task = new Read(ours, result, read)
          try pool.execute(task)
          // No thread to be had: others that wait for these keys go on without it.
          catch { case error: Throwable => task.abandon(); throw error }
        }
        readers.map { case (key, other) => (key, other.getOrElse(result), other.isEmpty) }
      }
      awaited.map(_.map { case (key, result, ours) =>
        val values = within(deadline, result)
        val answer = values.map(_.flatMap(_.get(key)))
        // The time of others, or what they could read of a file, may have ended before.
        val isLacking = values.exists(_.exists(!_.contains(key)))
        key -> (if (ours) Right(answer.getOrElse(None)) else if (isLacking) Left(()) else answer)
      })
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
      result: CompletableFuture[Map[K, V]]
  ): Either[Unit, Option[Map[K, V]]] =
    try Right(Some(result.get(math.max(0L, deadline - System.nanoTime()), TimeUnit.NANOSECONDS)))
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
  private final class Read(
      keys: Seq[K],
      result: CompletableFuture[Map[K, V]],
      read: Seq[K] => Map[K, V]
  ) extends BoundedReads.Task {

    override def run(): Unit =
      try
        if (running.tryAcquire()) {
          try {
            val answer = read(keys)
            // Before it is complete: whoever asks from now on finds the cache, or reads anew.
            forget()
            val _ = result.complete(answer)
          } finally running.release()
        }
      finally abandon()

    /** Whether the read was done or not, nobody is to wait for it any longer. */
    override def abandon(): Unit = {
      forget()
      val _ = result.cancel(false)
    }

    private def forget(): Unit = keys.foreach(inFlight.remove(_, result))
  }
}

object BoundedReads {
  private trait Task extends Runnable {
    def abandon(): Unit
  }
}
