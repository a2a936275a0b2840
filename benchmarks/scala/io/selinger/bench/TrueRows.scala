package io.selinger.bench

import com.fasterxml.jackson.databind.ObjectMapper
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, StandardOpenOption}
import java.util.concurrent.{ConcurrentHashMap, Executors, TimeUnit}
import org.apache.spark.sql.{SparkSession => ApiSession}
import org.apache.spark.sql.catalyst.expressions.{Alias, Literal}
import org.apache.spark.sql.catalyst.expressions.aggregate.Count
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SQLExecution
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * Rows of sub-plans, counted by stock Spark and kept in a file, so that each is counted once.
 *
 * @param file one JSON object a line: `key`, and `rows` or the `seconds` that were not enough
 * @param seconds a count may take; 0 counts nothing
 */
final class TrueRows(session: SparkSession, file: Path, seconds: Int) {

  private val json = new ObjectMapper()
  private val known = new ConcurrentHashMap[String, Double]()
  private val timedOut = new ConcurrentHashMap[String, Int]()

  if (Files.exists(file)) {
    Files.readAllLines(file, UTF_8).asScala.map(json.readTree).foreach { line =>
      val key = line.get("key").asText
      if (line.has("rows")) known.put(key, line.get("rows").asDouble)
      else timedOut.put(key, line.get("seconds").asInt)
    }
  }

  def of(part: SubPlan): Option[Double] = Option(known.get(part.key))

  /** Counts what is not known yet, two at a time and the cheap ones first; says how far it is. */
  def countAll(parts: Seq[SubPlan]): Unit = {
    val left = parts.filter { part =>
      !known.containsKey(part.key) && Option(timedOut.get(part.key)).getOrElse(0) < seconds
    }
    val before = parts.count(part => known.containsKey(part.key))
    Progress.say(s"${parts.size} sub-plans, $before of them counted before")
    val progress = new Progress(left.size)
    val timer = Executors.newSingleThreadScheduledExecutor()
    val pool = Executors.newFixedThreadPool(2)
    left.sortBy(_.joins).foreach { part =>
      pool.submit((() => {
        val cancel: Runnable = () => session.sparkContext.cancelJobGroup(part.key)
        val limit =
          new java.util.concurrent.atomic.AtomicReference[java.util.concurrent.Future[_]]()
        val outcome =
          try {
            ApiSession.setActiveSession(session)
            session.sparkContext.setJobGroup(part.key, part.name)
            limit.set(timer.schedule(cancel, seconds.toLong, TimeUnit.SECONDS))
            val rows = count(part.plan)
            keep(part.key, Some(rows))
            f"$rows%,d rows"
          } catch {
            case NonFatal(error) =>
              keep(part.key, None)
              s"not counted: ${error.getMessage.linesIterator.nextOption().getOrElse("").take(200)}"
          } finally Option(limit.get).foreach(_.cancel(false))
        progress.step(s"${part.name} ${part.kind} over ${part.joins} joins: $outcome")
      }): Runnable)
    }
    pool.shutdown()
    val _ = pool.awaitTermination(1, TimeUnit.DAYS)
    val _ = timer.shutdownNow()
  }

  private def count(plan: LogicalPlan): Long = {
    val counted =
      Aggregate(Nil, Seq(Alias(Count(Literal(1)).toAggregateExpression(), "n")()), plan)
    val execution = session.sessionState.executePlan(counted)
    SQLExecution.withNewExecutionId(execution) {
      execution.executedPlan.executeCollect().head.getLong(0)
    }
  }

  private def keep(key: String, rows: Option[Long]): Unit = synchronized {
    val line = json.createObjectNode().put("key", key)
    rows match {
      case Some(count) =>
        known.put(key, count.toDouble)
        line.put("rows", count)
      case None => line.put("seconds", seconds)
    }
    val _ = Files.writeString(
      file,
      s"$line\n",
      UTF_8,
      StandardOpenOption.CREATE,
      StandardOpenOption.APPEND
    )
  }
}

/** Steps done and time left, a line every few seconds. */
final class Progress(total: Int) {
  private val start = System.nanoTime()
  private var done = 0
  private var said = start

  def step(text: String): Unit = synchronized {
    done += 1
    val now = System.nanoTime()
    if (done == total || now - said > 5e9) {
      said = now
      val elapsed = (now - start) / 1e9
      val left = elapsed / done * (total - done)
      Progress.say(f"[$done/$total $elapsed%.0f s, $left%.0f s left] $text")
    }
  }
}

object Progress {
  def say(text: String): Unit = System.err.println(text)
}
