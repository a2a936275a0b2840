package io.selinger.testing

import io.selinger.core.Decision
import io.selinger.explain.PlanDecisions
import java.nio.file.{Files, Path, Paths}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.streaming.runtime.StreamingQueryWrapper
import org.apache.spark.sql.streaming.Trigger
import scala.jdk.CollectionConverters._

/**
 * A query that makes a rule give one of its reasons, from a file. Lines at its beginning say what is
 * done before, in their order; `${tmp}` stands for a folder that is the query's own:
 *
 *   - `-- set key=value`: a setting of the session
 *   - `-- unset key`: the setting is as if nobody had set it
 *   - `-- run statement`
 *   - `-- let name = query`: `${name}` stands for the first value that the query returns
 *   - `-- stream table`: the table is read as a stream, and the query is run as one
 *
 * Any other comment is only read by people.
 */
final class ReasonQuery(text: String) {
  import ReasonQuery._

  private val (head, body) = text.linesIterator.toSeq.span(_.startsWith("--"))

  /** Whether it is run as a stream. */
  def isStream: Boolean = head.exists(Stream.matches)

  /** Does what is to be done before, and returns the query itself. */
  def prepare(session: SparkSession, folder: Path): String = {
    val values = head.foldLeft(Map("tmp" -> folder.toString)) { (values, line) =>
      filled(line, values) match {
        case Setting(key, value) =>
          session.conf.set(key, value)
          values
        case Unset(key) =>
          session.conf.unset(key)
          values
        case Statement(statement) =>
          session.sql(statement).collect()
          values
        case Value(name, query) =>
          values.updated(name, session.sql(query).head().getString(0))
        case Stream(table) =>
          readAsStream(session, table)
          values
        case _ => values
      }
    }
    filled(body.mkString("\n"), values)
  }

  /**
   * What was decided about the query in a session, when it was planned or when it ran as a stream.
   *
   * @param prepared the query as `prepare` returned it
   * @param runs whether it also runs as a query
   */
  def decisions(
      session: SparkSession,
      prepared: String,
      folder: Path,
      runs: Boolean
  ): Seq[Decision] = {
    val df = session.sql(prepared)
    if (!isStream) Plans.decisions(df, runs)
    else {
      val query = df.writeStream
        .format("noop")
        .trigger(Trigger.AvailableNow())
        .option("checkpointLocation", folder.resolve("checkpoint").toString)
        .start()
      query.awaitTermination()
      query match {
        case wrapper: StreamingQueryWrapper =>
          val execution = wrapper.streamingQuery.lastExecution
          PlanDecisions.shown(execution.executedPlan).map(_.decision)
        case other => throw new IllegalStateException(s"not a query of this process: $other")
      }
    }
  }

  private def readAsStream(session: SparkSession, table: String): Unit = {
    val df = session.table(table)
    val folder = Paths.get(new java.net.URI(df.inputFiles.head)).getParent.toString
    session.readStream.schema(df.schema).parquet(folder).createOrReplaceTempView(table)
  }

  private def filled(text: String, values: Map[String, String]): String =
    values.foldLeft(text) { case (text, (name, value)) => text.replace("${" + name + "}", value) }
}

object ReasonQuery {
  private val Setting = "-- set ([^=]+)=(.*)".r
  private val Unset = "-- unset (.+)".r
  private val Statement = "(?s)-- run (.*)".r
  private val Value = "-- let (\\w+) = (.*)".r
  private val Stream = "-- stream (\\w+)".r

  /** The queries of a folder, by the names of their files. */
  def all(folder: Path): Map[String, ReasonQuery] =
    if (!Files.isDirectory(folder)) Map.empty
    else {
      val paths = Files.list(folder)
      try
        paths.iterator.asScala.map { path =>
          path.getFileName.toString.stripSuffix(".sql") -> new ReasonQuery(Files.readString(path))
        }.toMap
      finally paths.close()
    }
}
