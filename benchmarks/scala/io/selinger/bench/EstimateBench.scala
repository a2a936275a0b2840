package io.selinger.bench

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Path, Paths}
import org.apache.spark.sql.classic.{Dataset, SparkSession}
import scala.jdk.CollectionConverters._

/**
 * Estimated against true rows of all sub-plans of a list of queries: the part of
 * `make bench-estimates` that runs inside Spark. `benchmarks/estimates.py` asks for it in a JSON
 * file and reads the answer, one JSON object a line.
 *
 * The plans are those of stock Spark, one a query, so that every estimator is asked for the same
 * sub-plans. The session has no trace of Selinger: its estimator is called as a function.
 */
object EstimateBench {

  private val json = new ObjectMapper()

  def main(arguments: Array[String]): Unit = {
    val request = json.readTree(Files.readString(Paths.get(arguments(0)), UTF_8))
    val session = SparkSession.builder().appName("estimates").getOrCreate()
    try {
      entries(request.get("tables")).foreach { case (name, path) =>
        session.read.parquet(path).createOrReplaceTempView(name)
      }
      val parts = subPlans(session, entries(request.get("queries")))
      val truth =
        new TrueRows(session, Paths.get(request.get("rows").asText), request.get("seconds").asInt)
      truth.countAll(parts)
      val analyzed = Option(request.get("analyzed")).filterNot(_.isNull).map(_.asText)
      val sketches = Option(request.get("sketches")).filterNot(_.isNull).map(_.asText)
      sketches.foreach(Estimators.analyze(session, entries(request.get("tables")), _))
      val estimators = Estimators.all(session, analyzed.map(Paths.get(_)), sketches)
      write(Paths.get(request.get("out").asText), parts, truth, estimators)
    } finally session.stop()
  }

  private def entries(node: JsonNode): Seq[(String, String)] =
    node.properties().asScala.toSeq.map(entry => entry.getKey -> entry.getValue.asText)

  private def subPlans(session: SparkSession, queries: Seq[(String, String)]): Seq[SubPlan] =
    SubPlans.distinct(queries.flatMap { case (name, text) =>
      session.sql(text) match {
        case query: Dataset[_] => SubPlans.of(name, query.queryExecution.optimizedPlan)
        case other => throw new IllegalStateException(s"not a classic Dataset: $other")
      }
    })

  private def write(
      out: Path,
      parts: Seq[SubPlan],
      truth: TrueRows,
      estimators: Seq[Estimator]
  ): Unit = {
    Progress.say(s"estimating: ${estimators.map(_.name).mkString(", ")}")
    // What has not been read in time serves the next query, which is the one that is measured.
    parts.foreach(part => estimators.foreach(_.estimate(part.plan)))
    val lines = parts.map { part =>
      val line = json
        .createObjectNode()
        .put("name", part.name)
        .put("kind", part.kind)
        .put("joins", part.joins)
        .put("plan", part.plan.treeString)
      truth.of(part).foreach(line.put("rows", _))
      estimators.foreach { estimator =>
        estimator.estimate(part.plan).foreach { estimate =>
          line.put(estimator.name, estimate.rows)
          estimate.upperBound.foreach(line.put(s"${estimator.name}_high", _))
          estimate.bound.foreach(line.put(s"${estimator.name}_bound", _))
        }
      }
      line.toString
    }
    val _ = Files.write(out, lines.asJava, UTF_8)
  }
}
