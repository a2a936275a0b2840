package io.selinger.explain

import io.selinger.conf.SelingerConf
import io.selinger.core.BuiltFor
import org.apache.spark.SPARK_VERSION
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
        val format = plan.conf.getConfString(SelingerConf.EXPLAIN_FORMAT.key, text)
        absent(plan) match {
          // Who asks for another format than text finds nothing, and asks selinger_status().
          case Some(why) => if (format == text) why else ""
          case None => explained(plan)
        }
      }
    catch {
      // Spark would lose the whole explain, or the query's page in the UI.
      case error @ (NonFatal(_) | _: LinkageError | _: StackOverflowError) =>
        s"The explanation failed: $error"
    }

  private def explained(plan: SparkPlan): String = {
    val explained = Explained.of(plan)
    SelingerConf.EXPLAIN_FORMAT.value match {
      case "json" => ExplainJson.render(plan, explained)
      case "report" => BugReport.render(plan, explained)
      case _ => ExplainText.render(explained, SelingerConf.EXPLAIN_ALL.value)
    }
  }

  /** Why there is nothing to explain in this session: the rest of Selinger is not there. */
  private def absent(plan: SparkPlan): Option[String] = {
    // To look one function up, its name must have other parts in another Spark line.
    def isLoaded = Option(plan.session).forall(
      _.sessionState.tableFunctionRegistry.listFunction()
        .exists(_.funcName == TableFunctions.statusName)
    )
    BuiltFor
      .unsupported(SPARK_VERSION)
      .map(why => s"Selinger is not active: $why.")
      .orElse(Option.unless(isLoaded)(
        "Selinger is not loaded in this session: spark.sql.extensions must name " +
          "io.selinger.SelingerExtension before the session is made."
      ))
  }

  private val text = "text"
}
