package io.selinger.explain

import io.selinger.conf.{SelingerConf, Setting}
import io.selinger.core.{BuildInfo, RuleActivity, RuleDescription}
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry.TableFunctionBuilder
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression, ExpressionInfo}
import org.apache.spark.sql.catalyst.plans.logical.{LocalRelation, LogicalPlan}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types.{BooleanType, DataType, DoubleType, LongType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import scala.util.Try

/** A table function as Spark's extensions take it. */
final case class TableFunction(name: String, usage: String, builder: TableFunctionBuilder) {

  def description: (FunctionIdentifier, ExpressionInfo, TableFunctionBuilder) =
    (
      FunctionIdentifier(name),
      new ExpressionInfo(
        getClass.getName,
        null,
        name,
        usage,
        "",
        "",
        "",
        "",
        "0.1.0",
        "",
        "scala_udf"
      ),
      builder
    )
}

/** What Selinger says of itself in SQL, so that every language and Spark Connect can ask. */
object TableFunctions {

  /** Of the function that is there wherever the extension is loaded. */
  private[explain] val statusName = "selinger_status"

  /**
   * @param inactive why the rest of Selinger is not loaded, if it is not
   * @param unknownSettings keys of the session that look like settings of ours and are none
   */
  def status(inactive: Option[String], unknownSettings: => Seq[String]): TableFunction =
    of(
      statusName,
      "What Selinger is, and whether it works in this session.",
      Seq("key" -> StringType, "value" -> StringType)
    ) {
      val conf = SQLConf.get
      // Asked when something is wrong, so a bad value is an answer and not an error.
      val problem = inactive.orElse(Try(SelingerConf.MODE.value).failed.toOption.map(_.getMessage))
      val mode = if (problem.isEmpty) SelingerConf.MODE.value else "off"
      val providers = conf.getConfString("spark.sql.extendedExplainProviders", "")
      Seq(
        "version" -> BuildInfo.version,
        "spark_version" -> SPARK_VERSION,
        "built_for" -> BuildInfo.sparkLine,
        "active" -> (problem.isEmpty && mode != "off").toString,
        "reason" -> problem.getOrElse(if (mode == "off") s"${SelingerConf.MODE.key} is off"
        else ""),
        "mode" -> mode,
        "explain_provider" ->
          providers.split(',').map(_.trim).contains(classOf[SelingerExplain].getName).toString,
        "unknown_settings" -> unknownSettings.mkString(", ")
      ).map { case (key, value) => Seq(key, value) }
    }

  /** @param all the rules of the registry */
  def rules(all: Seq[RuleDescription]): TableFunction =
    of(
      "selinger_rules",
      "The rules of Selinger, with their switches and what they did in this session.",
      Seq(
        "rule" -> StringType,
        "kind" -> StringType,
        "hook" -> StringType,
        "enabled" -> BooleanType,
        "setting" -> StringType,
        "description" -> StringType,
        "calls" -> LongType,
        "fired" -> LongType,
        "ms" -> DoubleType
      )
    ) {
      all.map { rule =>
        val activity = RuleActivity.of(rule)
        Seq(
          rule.id,
          rule.kind.label,
          rule.hooks.map(_.label).distinct.mkString(", "),
          SelingerConf.switches.enabled(rule),
          rule.switch,
          rule.summary,
          activity.calls,
          activity.fired,
          activity.ms
        )
      }
    }

  /** @param all the settings of the registry */
  def settings(all: Seq[Setting[_]]): TableFunction =
    of(
      "selinger_settings",
      "The settings of Selinger, with their values in this session.",
      Seq("key", "value", "default", "category", "unit", "description").map(_ -> StringType)
    ) {
      all.map(s => Seq(s.key, s.text, s.default, s.category, s.unit, s.doc))
    }

  private def of(name: String, usage: String, columns: Seq[(String, DataType)])(
      rows: => Seq[Seq[Any]]
  ): TableFunction = {
    def build(arguments: Seq[Expression]): LogicalPlan = {
      if (arguments.nonEmpty) {
        throw new IllegalArgumentException(
          s"$name takes no arguments: write SELECT * FROM $name()"
        )
      }
      val output = columns.map { case (column, kind) => AttributeReference(column, kind)() }
      LocalRelation(output, rows.map(row => InternalRow.fromSeq(row.map(catalyst))))
    }
    TableFunction(name, usage, build)
  }

  private def catalyst(value: Any): Any = value match {
    case text: String => UTF8String.fromString(text)
    case other => other
  }
}
