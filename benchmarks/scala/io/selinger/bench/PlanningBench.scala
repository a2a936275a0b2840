package io.selinger.bench

import com.fasterxml.jackson.databind.ObjectMapper
import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.ordering.{OrderProblem, ReorderJoins}
import io.selinger.ordering.graph.JoinRegion
import io.selinger.ordering.search.{GreedyOperatorOrdering, JoinEnumerator}
import java.lang.management.ManagementFactory
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import scala.jdk.CollectionConverters._

/**
 * How long the order of joins takes to find, and how good it is: the part of `make bench-planning`
 * that runs inside Spark. `benchmarks/planning.py` asks for it in a JSON file and reads the answer,
 * one JSON object a line. Nothing is executed.
 *
 * Times are those of the whole rule, from the plan to the plan, in a warm JVM; costs are those of the
 * rule's own model.
 */
object PlanningBench {

  private val json = new ObjectMapper()

  // The middle one of so many counts, each of a plan of its own: garbage of others is not the search's.
  private val plannings = 3

  def main(arguments: Array[String]): Unit = {
    val request = json.readTree(Files.readString(Paths.get(arguments(0)), UTF_8))
    val session = SparkSession.builder().appName("planning").getOrCreate()
    try {
      val sizes = request.get("sizes").elements().asScala.map(_.asInt).toSeq
      val shapes = request.get("shapes").elements().asScala.map(_.asText).toSeq
      val queries = for {
        shape <- shapes
        size <- sizes
        mixed <- Seq(false, true)
        seed <- 1 to request.get("seeds").asInt
      } yield JoinShapes(shape, size, mixed, seed)
      warmUp(session, shapes, request.get("warmups").asInt)
      Progress.say(s"planning ${queries.size} queries")
      val lines = queries.map(measure(session, _, request.get("exhaustivePairs").asLong))
      val _ = Files.write(Paths.get(request.get("out").asText), lines.asJava, UTF_8)
    } finally session.stop()
  }

  private def warmUp(session: SparkSession, shapes: Seq[String], rounds: Int): Unit = {
    Progress.say("warming up")
    for {
      round <- 1 to rounds
      size <- Seq(8, 12, 20, 40, 100)
      shape <- shapes
      mixed <- Seq(false, true)
    } {
      val _ = planned(session, JoinShapes(shape, size, mixed, -round).plan)
    }
  }

  /** Milliseconds, and bytes that the thread has allocated. */
  private def planned(session: SparkSession, plan: LogicalPlan): (Double, Long) = {
    val rule = new ReorderJoins(session)
    val (bytes, start) = (allocated(), System.nanoTime())
    val _ = rule.apply(plan)
    val ms = (System.nanoTime() - start) / 1e6
    (ms, allocated() - bytes)
  }

  private def allocated(): Long = ManagementFactory.getThreadMXBean match {
    case threads: com.sun.management.ThreadMXBean =>
      threads.getThreadAllocatedBytes(Thread.currentThread.getId)
    case _ => 0L
  }

  private def measure(session: SparkSession, query: JoinShapes, exhaustivePairs: Long): String = {
    val (ms, bytes) =
      Seq.fill(plannings)(planned(session, query.copy().plan)).sorted.apply(plannings / 2)
    val line = json
      .createObjectNode()
      .put("shape", query.shape)
      .put("relations", query.relations)
      .put("mixed", query.mixed)
      .put("seed", query.seed)
      .put("ms", ms)
      .put("allocated_mb", bytes / 1e6)
    val _ = PlanningPass.start()
    val problem = query.plan
      .collectFirst(Function.unlift((node: LogicalPlan) => JoinRegion.at(node)))
      .flatMap(region => OrderProblem.of(session, region).toOption)
      .getOrElse(throw new IllegalStateException(s"no order to find: $query"))
    def search(maxPairs: Long) = new JoinEnumerator(
      problem.graph.shape,
      problem.trees,
      Some(problem.written),
      maxPairs,
      () => 0.0
    ).best()
    val graph = problem.graph.shape
    search(SelingerConf.ORDER_MAX_PAIRS.value).foreach { found =>
      line.put("method", found.method.toString).put("cost", found.tree.seconds)
      line.put("written", problem.written.seconds)
      val relations = (0 until graph.size).map(problem.trees.relation)
      // Costed in full, and with all neighbours tried, it would take minutes beyond.
      if (query.relations <= 30) GreedyOperatorOrdering
        .best(
          relations,
          graph,
          problem.trees,
          GreedyOperatorOrdering.neighbours(graph),
          () => false
        )
        .foreach(greedy => line.put("greedy", greedy.seconds))
      if (query.relations <= 18) {
        search(exhaustivePairs)
          .filter(_.method == JoinEnumerator.Method.Exact)
          .foreach(optimum => line.put("optimum", optimum.tree.seconds))
      }
    }
    line.toString
  }
}
