package io.selinger.explain

import com.fasterxml.jackson.databind.ObjectMapper
import com.fasterxml.jackson.databind.node.ObjectNode
import io.selinger.conf.SelingerConf
import io.selinger.core.BuildInfo

/** Decisions for programs: one line of JSON. `docs/explain.md` defines the fields. */
object ExplainJson {

  def render(decisions: Seq[ShownDecision]): String = {
    val mapper = new ObjectMapper()
    val root = mapper.createObjectNode()
    root.put("selinger", BuildInfo.version).put("mode", SelingerConf.MODE.value)
    val list = root.putArray("decisions")
    decisions.foreach(shown => write(list.addObject(), shown))
    mapper.writeValueAsString(root)
  }

  private def write(json: ObjectNode, shown: ShownDecision): Unit = {
    val d = shown.decision
    json
      .put("rule", d.rule)
      .put("node", d.node)
      .put("outcome", d.outcome.label)
      .put("chosen", d.chosen.orNull)
      .put("stock", d.stock.orNull)
      .put("first", shown.first.flatMap(_.chosen).orNull)
      .put("reason", d.reason.code)
      .put("why", d.reason.sentence)
      .put("detail", d.detail.orNull)
      .put("phase", d.phase.label)
    val numbers = json.putArray("numbers")
    d.evidence.foreach { number =>
      numbers
        .addObject()
        .put("name", number.name)
        .put("value", number.value)
        .put("unit", number.unit)
        .put("origin", number.origin.label)
    }
    val setting = ExplainText.settingOf(d)
    json.put("setting", setting.map(_._1).orNull).put("setting_value", setting.map(_._2).orNull)
    ()
  }
}
