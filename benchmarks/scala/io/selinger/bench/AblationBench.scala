package io.selinger.bench

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import io.selinger.conf.SelingerConf
import io.selinger.core.PlanningPass
import io.selinger.ordering.{OrderProblem, ReorderJoins}
import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.{JoinRegion, SharedPlans, SubqueryJoins}
import io.selinger.ordering.sharing.SharedOrders
import java.lang.management.ManagementFactory
import java.nio.charset.StandardCharsets.UTF_8
import java.nio.file.{Files, Paths}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import scala.jdk.CollectionConverters._

/**
 * What each mechanism of the ordering brings: the same queries are planned with all of them and with
 * each left out. `benchmarks/ablation.py` asks for it in a JSON file and reads the answer, one JSON
 * object a line. Nothing is executed.
 *
 * Orders are compared by what the whole model says that they cost, whatever was left out to find them.
 */
object AblationBench {

  private val json = new ObjectMapper()

  // With everything, twice: what differs between these two is noise.
  private val all = ""
  private val again = "nothing (noise)"

  def main(arguments: Array[String]): Unit = {
    val request = json.readTree(Files.readString(Paths.get(arguments(0)), UTF_8))
    val session = SparkSession.builder().appName("ablation").getOrCreate()
    try {
      val wanted = texts(request.get("mechanisms"))
      val known = Mechanism.all.map(_.name)
      val unknown = wanted.diff(known)
      require(
        unknown.isEmpty,
        s"no such mechanism: ${unknown.mkString(", ")}; there are ${known.mkString(", ")}"
      )
      val configurations =
        (all +: known.filter(wanted.isEmpty || wanted.contains(_))) :+ again
      val lines = generated(session, request, configurations) ++
        request.get("scales").asScala.flatMap(scaled(session, request, _, configurations))
      val _ = Files.write(Paths.get(request.get("out").asText), lines.asJava, UTF_8)
    } finally session.stop()
  }

  private def texts(list: JsonNode): Seq[String] = list.elements().asScala.map(_.asText).toSeq

  private def leaveOut[A](session: SparkSession, configuration: String)(body: => A): A = {
    val isOne = configuration != all && configuration != again
    withSettings(session, Seq(Mechanism.setting -> configuration).filter(_ => isOne))(body)
  }

  private def withSettings[A](session: SparkSession, settings: Seq[(String, String)])(
      body: => A
  ): A = {
    val before = session.conf.getAll
    settings.foreach { case (key, value) => session.conf.set(key, value) }
    try body
    finally
      settings.foreach { case (key, _) =>
        before.get(key) match {
          case Some(value) => session.conf.set(key, value)
          case None => session.conf.unset(key)
        }
      }
  }

  // ---- joins of generated forms ---------------------------------------------------------------

  private def generated(
      session: SparkSession,
      request: JsonNode,
      configurations: Seq[String]
  ): Seq[String] = {
    val shapes = texts(request.get("shapes"))
    val sizes = request.get("sizes").elements().asScala.map(_.asInt).toSeq
    def queries(sizes: Seq[Int], seeds: Seq[Int]) = for {
      size <- sizes
      shape <- shapes
      mixed <- Seq(false, true)
      seed <- seeds
    } yield JoinShapes(shape, size, mixed, seed)
    for {
      round <- 1 to request.get("warmups").asInt
      query <- queries(sizes.map(math.min(_, 40)).distinct, Seq(-round))
      configuration <- configurations
    } {
      val _ = leaveOut(session, configuration)(planned(session, query.plan))
    }
    for {
      query <- queries(sizes, 1 to request.get("seeds").asInt)
      configuration <- configurations
    } yield {
      val times = request.get("plannings").asInt
      val (ms, plan) = leaveOut(session, configuration) {
        // The session checks every plan in full, which takes time that users do not pay.
        val _ = planned(session, query.copy().plan)
        withSettings(session, Seq(SelingerConf.FAIL_ON_ERROR.key -> "false")) {
          Seq.fill(times)(planned(session, query.copy().plan)).minBy(_._1)
        }
      }
      json
        .createObjectNode()
        .put("set", if (query.mixed) s"${query.shape}, mixed" else query.shape)
        .put("query", s"${query.relations} relations, seed ${query.seed}")
        .put("relations", query.relations)
        .put("without", configuration)
        .put("ms", ms)
        .put("cost", seconds(session, plan))
        .toString
    }
  }

  /** Milliseconds of processor time that the whole rule takes, and the plan that it returns. */
  private def planned(session: SparkSession, plan: LogicalPlan): (Double, LogicalPlan) = {
    val rule = new ReorderJoins(session)
    val threads = ManagementFactory.getThreadMXBean
    val start = threads.getCurrentThreadCpuTime
    val result = rule.apply(plan)
    ((threads.getCurrentThreadCpuTime - start) / 1e6, result)
  }

  // ---- queries over imported statistics -------------------------------------------------------

  private def scaled(
      session: SparkSession,
      request: JsonNode,
      scale: JsonNode,
      configurations: Seq[String]
  ): Seq[String] = {
    val name = scale.get("name").asText
    Progress.say(s"planning $name")
    val cluster = scale.get("conf").properties().asScala.toSeq
    withSettings(session, cluster.map(entry => entry.getKey -> entry.getValue.asText)) {
      atScale(session, request, scale, configurations)
    }
  }

  private def atScale(
      session: SparkSession,
      request: JsonNode,
      scale: JsonNode,
      configurations: Seq[String]
  ): Seq[String] = {
    val options = json.createObjectNode().set[ObjectNode]("scale", scale.get("growth")).toString
    val arguments = Map("file" -> request.get("statistics").asText, "options" -> options)
    val _ = session
      .sql("SELECT * FROM selinger_import_stats(:file, :options)", arguments)
      .collect()
    request.get("queries").elements().asScala.toSeq.flatMap { query =>
      val inputs = PlanRecorder.of(session, query.get("text").asText)
      def ordered(configuration: String) =
        leaveOut(session, configuration)(inputs.map(planned(session, _)._2))
      val full = ordered(all)
      val cost = full.map(seconds(session, _)).sum
      configurations.map { configuration =>
        val found = ordered(configuration)
        val isSame = found.map(textOf) == full.map(textOf)
        json
          .createObjectNode()
          .put("set", scale.get("name").asText)
          .put("query", query.get("name").asText)
          .put("without", configuration)
          .put("changed", !isSame)
          .put("cost", if (isSame) cost else found.map(seconds(session, _)).sum)
          .toString
      }
    }
  }

  /** The plan without ids, of which rewriting subqueries makes new ones each time. */
  private def textOf(plan: LogicalPlan): String = plan.toString.replaceAll("#\\d+L?", "#")

  // ---- costs ----------------------------------------------------------------------------------

  /** What the joins of a plan cost in the order in which they are, by the whole model. */
  private def seconds(session: SparkSession, plan: LogicalPlan): Double = {
    val _ = PlanningPass.start().workOn(plan)
    (plan +: plan.subqueriesAll).map { part =>
      val joined = SubqueryJoins.rewritten(part)
      val regions = regionsOf(session, joined, SharedPlans.of(joined))
      new SharedOrders(regions.toIndexedSeq, () => false).secondsOfBest
    }.sum
  }

  private def regionsOf(
      session: SparkSession,
      plan: LogicalPlan,
      shared: SharedPlans
  ): Seq[SharedOrders.Region] = JoinRegion.at(plan, shared) match {
    case Some(region) if region.relations.size > 1 =>
      region.relations.flatMap(regionsOf(session, _, shared)) ++
        OrderProblem.of(session, region).toSeq.map { problem =>
          SharedOrders.Region(problem.graph, problem.trees, problem.written, problem.written)
        }
    case _ => plan.children.flatMap(regionsOf(session, _, shared))
  }
}
