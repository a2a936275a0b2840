package io.selinger.explain

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode}
import io.selinger.conf.SelingerConf
import io.selinger.core.{BuildInfo, Evidence, RowTree}
import org.apache.spark.sql.execution.SparkPlan

/** Decisions for programs: one line of JSON. `docs/explain.md` defines the fields. */
object ExplainJson {

  def render(plan: SparkPlan, explained: Explained): String = {
    val mapper = new ObjectMapper()
    val root = mapper.createObjectNode()
    root
      .put("selinger", BuildInfo.version)
      .put("mode", explained.mode)
      .put("verdict", explained.verdict)
      .put("more", explained.more.orNull)
      .put("truth", explained.truth.orNull)
      .put("all", SelingerConf.EXPLAIN_ALL.value)
    val list = root.putArray("decisions")
    explained.decisions.foreach(shown => write(list.addObject(), shown))
    val inputs = root.putArray("inputs")
    explained.inputs.foreach(input => write(inputs.addObject(), input))
    write(root.putArray("tree"), DrawnPlan.of(plan), depth = 0)
    mapper.writeValueAsString(root)
  }

  private def write(json: ObjectNode, shown: ShownDecision): Unit = {
    val d = shown.decision
    json
      .put("rule", d.rule)
      .put("node", d.node)
      .put("title", d.title.getOrElse(d.node))
      .put("left", d.sides.map(_.left).orNull)
      .put("right", d.sides.map(_.right).orNull)
      .put("outcome", d.outcome.label)
      .put("chosen", d.chosen.orNull)
      .put("stock", d.stock.orNull)
      .put("first", shown.first.flatMap(_.chosen).orNull)
      .put("reason", d.reason.code)
      .put("why", d.reason.sentence)
      .put("detail", d.detail.orNull)
      .put("phase", d.phase.label)
    writeNumbers(json, d.evidence)
    val setting = ExplainText.settingOf(d)
    json
      .put("setting", setting.map(_._1).orNull)
      .put("setting_value", setting.map(_._2).orNull)
      .put("setting_to", d.settingTo.orNull)
    d.work.foreach { work =>
      json.putObject("work").put("stock", work.stock).put("chosen", work.chosen)
    }
    d.orders.foreach { orders =>
      val both = json.putObject("orders")
      write(both.putArray("stock"), orders.stock, depth = 0)
      write(both.putArray("chosen"), orders.chosen, depth = 0)
    }
    writeLines(json, "brief", ExplainText.paragraph(shown, all = false))
    writeLines(json, "full", ExplainText.paragraph(shown, all = true))
  }

  /** One after the other, inputs below: nested as deep as plans are, JSON could not be read. */
  private def write(array: ArrayNode, tree: RowTree, depth: Int): Unit = {
    val json = array.addObject().put("depth", depth).put("name", tree.name)
    tree.symbol.foreach(json.put("symbol", _))
    tree.table.foreach(json.put("table", _))
    tree.rows.foreach(json.put("rows", _))
    tree.estimated.foreach { expected =>
      json.put("estimated", expected.value).put("origin", expected.origin.label)
    }
    if (tree.isReduced) json.put("reduced", true)
    tree.inputs.foreach(write(array, _, depth + 1))
  }

  private[explain] def writeNumbers(json: ObjectNode, evidence: Seq[Evidence]): Unit = {
    val numbers = json.putArray("numbers")
    evidence.foreach { number =>
      numbers
        .addObject()
        .put("name", number.name)
        .put("value", number.value)
        .put("unit", number.unit)
        .put("origin", number.origin.label)
    }
  }

  private def writeLines(json: ObjectNode, field: String, lines: Seq[String]): Unit = {
    val array = json.putArray(field)
    lines.foreach(array.add(_))
  }

  private[explain] def write(json: ObjectNode, input: CountedInput): Unit = {
    val _ = json
      .put("name", input.name)
      .put("estimated", input.estimated)
      .put("origin", input.origin.label)
      .put("actual", input.actual)
      .put("reduced", input.isReduced)
      .put("text", input.text)
  }
}
