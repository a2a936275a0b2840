package io.selinger.transfer

import io.selinger.core.BuildInfo
import io.selinger.explain.TableFunction
import io.selinger.stats.imported.{PortableRelation, ScaleStatistics, StatisticsFile}
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.types.{DataType, DoubleType, StringType}

/**
 * Statistics out of a session and into another, from SQL, and so from every language and over Spark
 * Connect.
 */
object TransferFunctions {

  val all: Seq[TableFunction] = Seq(exporting, importing, listing, forgetting)

  private def exporting = function(
    "selinger_export_stats",
    "Statistics of tables or paths as JSON. Arguments: their names, then options as JSON: values " +
      "(false leaves frequent values out), names (other names for them), file (written there).",
    Seq("json" -> StringType)
  ) { (name, arguments) =>
    val (texts, options) = split(name, arguments, Seq("values", "names", "file"))
    if (texts.isEmpty) throw new IllegalArgumentException(s"$name: name a table or a path.")
    val names = options.texts("names")
    if (names.exists(_.size != texts.size)) {
      throw new IllegalArgumentException(s"$name: names must name each of the relations.")
    }
    val withValues = options.flag("values", default = true)
    val file = options.text("file")
    session => {
      val relations = texts.zipWithIndex.map { case (where, i) =>
        val relation = CollectStatistics.collect(session, where, names.map(_(i)))
        if (withValues) relation else relation.withoutValues
      }
      relations.groupBy(_.name).collectFirst {
        case (twice, same) if same.size > 1 =>
          throw new IllegalArgumentException(
            s"$name: two relations would be named $twice: give them other names."
          )
      }
      val json = StatisticsFile.render(
        relations,
        Seq("selinger" -> BuildInfo.version, "spark" -> SPARK_VERSION)
      )
      file.foreach(TextFiles.write(_, json, session.sessionState.newHadoopConf()))
      Seq(Row(json))
    }
  }

  private def importing = function(
    "selinger_import_stats",
    "Plans queries by the statistics of a file, without its data. Arguments: the JSON or the " +
      "file's path, then options as JSON: scale (a factor, or one for each table), tables " +
      "(those wanted), override (also of tables that have data here).",
    described
  ) { (name, arguments) =>
    val (texts, options) = split(
      name,
      arguments.take(1),
      arguments.drop(1),
      Seq(
        "scale",
        "tables",
        "override"
      )
    )
    if (texts.size != 1) {
      throw new IllegalArgumentException(s"$name: give the JSON or the path of one file.")
    }
    val factors = options.factors("scale")
    val tables = options.texts("tables")
    val replace = options.flag("override", default = false)
    session => {
      val text = texts.head
      val json =
        if (text.trim.startsWith("{")) text
        else TextFiles.read(text, session.sessionState.newHadoopConf())
      val relations = StatisticsFile.parse(json)
      val scale = factorOf(session, name, relations, factors)
      ImportStatistics(session, relations, tables, scale, replace).map(row)
    }
  }

  private def listing = function(
    "selinger_imported_stats",
    "Relations that this session plans by imported statistics.",
    described
  ) { (name, arguments) =>
    if (arguments.nonEmpty) throw new IllegalArgumentException(s"$name takes no arguments.")
    session => ImportStatistics.list(session).map(row)
  }

  private def forgetting = function(
    "selinger_forget_imported",
    "Forgets imported statistics: those of the tables named, or all.",
    described
  ) { (_, arguments) => session =>
    ImportStatistics.forget(session, Option.when(arguments.nonEmpty)(arguments)).map(row)
  }

  private def described =
    Seq("name" -> StringType, "rows" -> DoubleType, "bytes" -> DoubleType, "kind" -> StringType)

  private def row(imported: Imported): Row = {
    val relation = imported.relation
    Row(
      relation.name,
      relation.rows.map(rows => Double.box(rows.value)).orNull,
      relation.bytes,
      imported.kind
    )
  }

  private def factorOf(
      session: SparkSession,
      function: String,
      relations: Seq[PortableRelation],
      factors: Either[Double, Map[String, Double]]
  ): String => Double = factors match {
    case Left(one) =>
      // Who means a calendar too, names it.
      val calendars = relations.filter(ScaleStatistics.isCalendar).map(_.name).toSet
      name => if (calendars(name)) 1.0 else one
    case Right(each) =>
      def key(name: String) =
        RelationNames.text(RelationNames.parts(session, name)).toLowerCase(java.util.Locale.ROOT)
      val known = relations.map(relation => key(relation.name)).toSet
      val byKey = each.map { case (name, factor) => key(name) -> factor }
      byKey.keys.find(!known(_)).foreach(name =>
        throw new IllegalArgumentException(
          s"$function: scale names $name, which is not in the file."
        )
      )
      // What is not named stays as it is.
      name => byKey.getOrElse(key(name), 1.0)
  }

  private def split(name: String, arguments: Seq[String], known: Seq[String]) = {
    val (options, texts) = arguments.partition(_.trim.startsWith("{"))
    (texts, optionsOf(name, options, known))
  }

  private def split(
      name: String,
      texts: Seq[String],
      options: Seq[String],
      known: Seq[String]
  ): (Seq[String], Options) = (texts, optionsOf(name, options, known))

  private def optionsOf(name: String, options: Seq[String], known: Seq[String]): Options =
    options match {
      case Seq() => Options.parse(name, "{}", known)
      case Seq(one) => Options.parse(name, one, known)
      case _ =>
        throw new IllegalArgumentException(s"$name takes options once, as the last argument.")
    }

  private def function(name: String, usage: String, columns: Seq[(String, DataType)])(
      prepare: (String, Seq[String]) => SparkSession => Seq[Row]
  ): TableFunction = {
    def build(expressions: Seq[Expression]): LogicalPlan = {
      val arguments = Options.arguments(name, expressions)
      TransferCommand(
        name,
        columns.map { case (column, kind) => AttributeReference(column, kind)() },
        prepare(name, arguments)
      )
    }
    TableFunction(name, usage, build)
  }
}

/**
 * What one of these functions does when its query runs: naming it in a view, or explaining it, must
 * change nothing.
 */
final case class TransferCommand(
    function: String,
    override val output: Seq[Attribute],
    private val body: SparkSession => Seq[Row]
) extends LeafRunnableCommand {

  override def run(session: sql.SparkSession): Seq[Row] = session match {
    case known: SparkSession => body(known)
    case other => throw new IllegalStateException(s"not a classic Spark session: ${other.getClass}")
  }

  // Texts as long as a file would fill logs.
  override def simpleString(maxFields: Int): String = function

  override def nodeName: String = function
}
