package io.selinger.explain

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import io.selinger.core.BuildInfo
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.execution.SparkPlan

/**
 * What a bug report needs of a plan and its decisions, as one line of JSON. Nothing that the data or
 * the query's literals hold is in it: texts that could hold some are left out, not searched for them.
 */
object BugReport {

  def render(root: SparkPlan, explained: Explained): String = {
    val mapper = new ObjectMapper()
    val json = mapper.createObjectNode()
    val versions = json.putObject("versions")
    versions
      .put("selinger", BuildInfo.version)
      .put("selinger built for Spark", BuildInfo.sparkLine)
      .put("Spark", SPARK_VERSION)
      .put("Scala", scala.util.Properties.versionNumberString)
      .put("Java", System.getProperty("java.version"))
      .put("operating system", s"${System.getProperty("os.name")} ${System.getProperty("os.arch")}")
      .put("driver heap in MiB", Runtime.getRuntime.maxMemory >> 20)
    json.put("mode", explained.mode).put("verdict", explained.verdict)
    val plan = json.putArray("plan")
    RedactedPlan.lines(root).foreach(plan.add(_))
    val decisions = json.putArray("decisions")
    explained.decisions.foreach(shown => write(decisions.addObject(), shown))
    val inputs = json.putArray("inputs")
    explained.inputs.foreach { input =>
      ExplainJson.write(inputs.addObject(), input.copy(name = withoutValues(input.name)))
    }
    mapper.writeValueAsString(json)
  }

  private def write(json: ObjectNode, shown: ShownDecision): Unit = {
    val d = shown.decision
    json
      .put("rule", d.rule)
      // The operator's own text has its condition, with literals; a title has tables only.
      .put("title", d.title.map(withoutValues).orNull)
      .put("outcome", d.outcome.label)
      .put("chosen", d.chosen.map(withoutValues).orNull)
      .put("stock", d.stock.map(withoutValues).orNull)
      .put("first", shown.first.flatMap(_.chosen).map(withoutValues).orNull)
      .put("reason", d.reason.code)
      .put("error", d.detail.filter(_ => d.outcome.label == "failed").flatMap(errorClass).orNull)
      .put("phase", d.phase.label)
      .put("setting", d.setting.orNull)
    ExplainJson.writeNumbers(json, d.evidence.map(n => n.copy(name = withoutValues(n.name))))
  }

  /**
   * A folder of a partition has a value in its name: `country=DE`. Where the value ends cannot be told, as
   * it may have blanks and brackets, so nothing that follows is kept.
   */
  private[explain] def withoutValues(name: String): String = name.indexOf('=') match {
    case -1 => name
    case place => s"${name.take(place)}=?"
  }

  /** Of `java.lang.IllegalStateException: message`, the part before the message. */
  private def errorClass(text: String): Option[String] =
    Some(text.takeWhile(_ != ':')).filter(_.matches("[\\w.$]+"))
}
