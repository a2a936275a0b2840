package io.selinger.explain

import io.selinger.conf.SelingerConf
import org.apache.spark.sql.ExtendedExplainGenerator
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.internal.SQLConf
import scala.util.control.NonFatal

/**
 * The Selinger section of `df.explain()` and of the SQL page in Spark's UI. Spark calls it if
 * `spark.sql.extendedExplainProviders` names this class.
 */
class SelingerExplain extends ExtendedExplainGenerator {

  override def title: String = "Selinger"

  override def generateExtendedInfo(plan: SparkPlan): String =
    try
      // By the settings of the plan's own session: while a plan is explained another may be active.
      SQLConf.withExistingConf(plan.conf) {
        val explained = Explained.of(plan)
        SelingerConf.EXPLAIN_FORMAT.value match {
          case "json" => ExplainJson.render(explained)
          case "report" => BugReport.render(plan, explained)
          case _ => ExplainText.render(explained, SelingerConf.EXPLAIN_ALL.value)
        }
      }
    catch {
      // Spark would lose the whole explain, or the query's page in the UI.
      case error @ (NonFatal(_) | _: LinkageError) => s"The explanation failed: $error"
    }
}
