package io.selinger.stats.sketches

import io.selinger.conf.SelingerConf
import io.selinger.stats.{FileSet, FileVersion}
import io.selinger.stats.files.FooterReader
import java.time.{Instant, LocalDate}
import java.time.temporal.ChronoUnit.MICROS
import org.apache.spark.sql.{Row, SparkSession}
import org.apache.spark.sql.catalyst.expressions.{Attribute, AttributeReference, Cast, Literal}
import org.apache.spark.sql.catalyst.plans.logical.{LogicalPlan, Project}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.classic
import org.apache.spark.sql.execution.command.LeafRunnableCommand
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._

/** What the table functions do: commands, since they have effects and must run once. */
private[sketches] sealed trait SketchCommand extends LeafRunnableCommand {

  protected def answer(session: classic.SparkSession): Seq[Row]

  final override def run(session: SparkSession): Seq[Row] = session match {
    case known: classic.SparkSession => answer(known)
    case other => throw new IllegalStateException(s"not a classic Spark session: ${other.getClass}")
  }
}

private[sketches] object SketchCommand {

  def output(columns: (String, DataType)*): Seq[Attribute] =
    columns.map { case (name, kind) => AttributeReference(name, kind)() }

  val texts: DataType = ArrayType(StringType, containsNull = false)
}

private[sketches] final case class AnalyzeCommand(
    request: AnalyzeRequest,
    override val output: Seq[Attribute]
) extends SketchCommand {

  override protected def answer(session: classic.SparkSession): Seq[Row] = {
    val result = AnalyzeRun.run(session, request)
    Seq(
      Row(
        result.relation,
        result.files,
        result.filesRead,
        result.filesKnown,
        result.filesSkipped,
        result.filesLeft,
        result.bytesLeft,
        result.rows,
        result.columns,
        result.columnsFrom,
        result.skipped,
        result.problem.orNull,
        result.sample,
        result.bytes,
        result.seconds,
        result.changed,
        result.otherColumns,
        result.largerSample
      )
    )
  }
}

private[sketches] object AnalyzeCommand {
  def of(request: AnalyzeRequest): AnalyzeCommand = AnalyzeCommand(
    request,
    SketchCommand.output(
      "relation" -> StringType,
      "files" -> IntegerType,
      "files_read" -> IntegerType,
      "files_known" -> IntegerType,
      "files_skipped" -> IntegerType,
      "files_left" -> IntegerType,
      "bytes_left" -> LongType,
      "rows_read" -> LongType,
      "columns" -> SketchCommand.texts,
      "columns_from" -> StringType,
      "columns_skipped" -> SketchCommand.texts,
      "problem" -> StringType,
      "sample" -> DoubleType,
      "bytes_written" -> LongType,
      "seconds" -> DoubleType,
      "files_changed" -> IntegerType,
      "files_other_columns" -> IntegerType,
      "files_larger_sample" -> IntegerType
    )
  )
}

/** What is known of a relation, a row for each column. */
private[sketches] final case class StatsCommand(target: String, override val output: Seq[Attribute])
    extends SketchCommand {

  override protected def answer(session: classic.SparkSession): Seq[Row] = {
    val location = Location.required()
    val known = Target.resolve(session, target)
    val hadoop = session.sessionState.newHadoopConf()
    val cache = SelingerConf.COLLECTED_CACHE_MAX_BYTES.value
    val found = SketchStore.collected(SketchStore.folder(location, known.roots), hadoop, cache)
    val relation =
      new CollectedRelation(found, known.files.map(FileVersion.of), hadoop, cache)
    for {
      field <- known.schema
      name = FooterReader.columnName(field.name)
      merged <- relation.column(name, field.dataType)
    } yield {
      val frequent = merged.frequentValues
      val deciles = merged.quantiles.toSeq.flatMap(quantiles =>
        (0 to 10).map(i => quantiles.placeOf(i / 10.0))
      )
      Row(
        known.name,
        field.name,
        field.dataType.simpleString,
        known.files.size,
        merged.files,
        merged.whole,
        merged.rows.toLong,
        merged.nulls.toLong,
        boxed(merged.distinct.map(sketch => math.min(sketch.getEstimate, merged.present))),
        boxed(merged.distinct.map(error)),
        merged.low.map(placed(_, field.dataType)).orNull,
        merged.high.map(placed(_, field.dataType)).orNull,
        boxed(merged.averageBytes),
        deciles.map(placed(_, field.dataType)),
        frequent.map(value => text(value.value, field.dataType)),
        frequent.map(_.share)
      )
    }
  }

  private def boxed(number: Option[Double]): Any = number.map(Double.box).orNull

  /** One standard deviation, as a share of the number. */
  private def error(sketch: org.apache.datasketches.theta.CompactSketch): Double =
    if (!sketch.isEstimationMode) 0.0
    else 1.0 / math.sqrt(math.max(1, sketch.getRetainedEntries(true)).toDouble)

  private def placed(place: Double, kind: DataType): String = kind match {
    case _ if place.isInfinite && (kind == DoubleType || kind == FloatType) => place.toString
    case DateType => LocalDate.ofEpochDay(place.toLong).toString
    case TimestampType | TimestampNTZType => Instant.EPOCH.plus(place.toLong, MICROS).toString
    case BooleanType => (place > 0).toString
    case ByteType | ShortType | IntegerType | LongType => place.toLong.toString
    case _ => place.toString
  }

  private def text(value: Any, kind: DataType): String = value match {
    case bytes: Array[Byte] => bytes.take(64).map(byte => f"$byte%02X").mkString
    case other =>
      val zone = Some(SQLConf.get.sessionLocalTimeZone)
      String.valueOf(Cast(Literal(other, kind), StringType, zone).eval()).take(200)
  }
}

private[sketches] object StatsCommand {
  def of(target: String): StatsCommand = StatsCommand(
    target,
    SketchCommand.output(
      "relation" -> StringType,
      "column" -> StringType,
      "type" -> StringType,
      "files" -> IntegerType,
      "files_known" -> IntegerType,
      "complete" -> BooleanType,
      "rows" -> LongType,
      "nulls" -> LongType,
      "distinct" -> DoubleType,
      "distinct_error" -> DoubleType,
      "min" -> StringType,
      "max" -> StringType,
      "average_bytes" -> DoubleType,
      "deciles" -> SketchCommand.texts,
      "frequent" -> SketchCommand.texts,
      "frequent_shares" -> ArrayType(DoubleType, containsNull = false)
    )
  )
}

/** Checks a key, and keeps what was found. */
private[sketches] final case class DeclareKeyCommand(
    target: String,
    columns: Seq[String],
    override val output: Seq[Attribute]
) extends SketchCommand {

  override protected def answer(session: classic.SparkSession): Seq[Row] = {
    val start = System.nanoTime()
    val location = Location.required()
    val known = Target.resolve(session, target)
    val key = KeyCheck.run(session, known, columns)
    val hadoop = session.sessionState.newHadoopConf()
    val cache = SelingerConf.COLLECTED_CACHE_MAX_BYTES.value
    SketchStore.add(SketchStore.folder(location, known.roots), key, hadoop, cache)
    val seconds = (System.nanoTime() - start) / 1e9
    // Spark may have listed the files before, and use that list.
    val isCurrent = key.files == FileSet.of(known.files.map(FileVersion.of))
    Seq(
      Row(
        known.name,
        columns,
        key.files.count,
        key.rows,
        key.nulls,
        key.consecutive.isDefined,
        isCurrent,
        seconds
      )
    )
  }
}

private[sketches] object DeclareKeyCommand {
  def of(target: String, columns: Seq[String]): DeclareKeyCommand = DeclareKeyCommand(
    target,
    columns,
    SketchCommand.output(
      "relation" -> StringType,
      "columns" -> SketchCommand.texts,
      "files" -> IntegerType,
      "rows" -> LongType,
      "nulls" -> LongType,
      "consecutive" -> BooleanType,
      "current" -> BooleanType,
      "seconds" -> DoubleType
    )
  )
}

/** The keys that were declared for a relation, a row for each. */
private[sketches] final case class KeysCommand(target: String, override val output: Seq[Attribute])
    extends SketchCommand {

  override protected def answer(session: classic.SparkSession): Seq[Row] = {
    val location = Location.required()
    val known = Target.resolve(session, target)
    val hadoop = session.sessionState.newHadoopConf()
    val cache = SelingerConf.COLLECTED_CACHE_MAX_BYTES.value
    val keys = SketchStore.collected(SketchStore.folder(location, known.roots), hadoop, cache).keys
    lazy val files = FileSet.of(known.files.map(FileVersion.of))
    keys.values.toSeq.sortBy(key =>
      (-key.checked, key.columns.keys.toSeq.sorted.mkString(","))
    ).map { key =>
      Row(
        known.name,
        key.columns.keys.toSeq.sorted,
        key.files.count,
        key.rows,
        key.nulls,
        key.consecutive.isDefined,
        Instant.ofEpochMilli(key.checked).toString,
        key.files == files
      )
    }
  }
}

private[sketches] object KeysCommand {
  def of(target: String): KeysCommand = KeysCommand(
    target,
    SketchCommand.output(
      "relation" -> StringType,
      "columns" -> SketchCommand.texts,
      "files" -> IntegerType,
      "rows" -> LongType,
      "nulls" -> LongType,
      "consecutive" -> BooleanType,
      "checked" -> StringType,
      "current" -> BooleanType
    )
  )
}

/** Forgets what was collected of a relation, or of some of its columns. */
private[sketches] final case class ForgetCommand(
    target: String,
    columns: Option[Seq[String]],
    override val output: Seq[Attribute]
) extends SketchCommand {

  override protected def answer(session: classic.SparkSession): Seq[Row] = {
    val location = Location.required()
    val known = Target.resolve(session, target)
    val forgotten = SketchStore.forget(
      SketchStore.folder(location, known.roots),
      known.name,
      columns.map(_.map(FooterReader.columnName).toSet),
      session.sessionState.newHadoopConf(),
      SelingerConf.COLLECTED_CACHE_MAX_BYTES.value
    )
    Seq(Row(known.name, forgotten))
  }
}

private[sketches] object ForgetCommand {
  def of(target: String, columns: Option[Seq[String]]): ForgetCommand = ForgetCommand(
    target,
    columns,
    SketchCommand.output("relation" -> StringType, "columns_forgotten" -> IntegerType)
  )
}

/**
 * `SELECT * FROM selinger_analyze(…)` is the command itself: Spark runs commands at once and keeps
 * their rows where they are the whole plan, also over Spark Connect, whose client would otherwise
 * send the text again at each action.
 */
object RunFunctionsOnce extends Rule[LogicalPlan] {
  override def apply(plan: LogicalPlan): LogicalPlan = plan match {
    case Project(list, command: SketchCommand)
        if list.map(_.exprId) == command.output.map(_.exprId) =>
      command
    case other => other
  }
}
