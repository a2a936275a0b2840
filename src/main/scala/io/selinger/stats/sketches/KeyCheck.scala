package io.selinger.stats.sketches

import io.selinger.conf.SelingerConf
import io.selinger.core.Mode
import io.selinger.stats.{FileSet, FileVersion, KeyTypes, NumericAxis}
import io.selinger.stats.files.FooterReader
import io.selinger.stats.orc.OrcFooters
import java.time.LocalDate
import org.apache.spark.sql.{Column, DataFrame, Row}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.functions._
import org.apache.spark.sql.types._
import scala.jdk.CollectionConverters._

/** Looks for duplicates of a declared key in all rows of a relation, in one distributed job. */
private[sketches] object KeyCheck {

  /**
   * The key, as it was found.
   *
   * @throws java.lang.IllegalArgumentException where it has duplicates, where it cannot be proven, or where
   *   the files have changed
   */
  def run(session: SparkSession, target: Target, columns: Seq[String]): DeclaredKey = {
    val fields = fieldsOf(target, columns)
    if (!target.listsAllFiles) {
      refuse(
        target,
        "it is a table of the catalog with partitions, of which Spark lists only those that a query needs. " +
          "Declare the key of its path, and let queries read that"
      )
    }
    // A rule might take a key that is known already for granted, or an aggregation for needless.
    val plain = SketchJob.sessionLike(session, SelingerConf.MODE.key -> Mode.Off.label)
    val read = target.listedNow(plain)
    requireNames(plain, read)
    val keys = fields.map(field => col(quoted(field.name)))
    val groups = read.rows(plain).groupBy(keys: _*).agg(count(lit(1)).as(times))
    val isPresent = keys.map(_.isNotNull).reduce(_ && _)
    val (least, most) = numbers(fields)
    val found = groups
      .agg(
        coalesce(sum(times), lit(0L)),
        coalesce(sum(when(isPresent, 0L).otherwise(col(times))), lit(0L)),
        count(when(isPresent, 1)),
        coalesce(max(when(isPresent, col(times))), lit(0L)),
        least,
        most
      )
      .head()
    if (found.getLong(3) > 1) refuse(target, duplicatesIn(groups, isPresent, fields))
    fields.filter(_.dataType == DateType).foreach(field => requireCertainDays(read, plain, field))
    val files = filesOf(read)
    if (files != filesOf(target.listedNow(plain))) {
      refuse(target, "its files changed while they were read. Declare the key again")
    }
    DeclaredKey(
      fields.map(field => FooterReader.columnName(field.name) -> field.dataType).toMap,
      files,
      found.getLong(0),
      found.getLong(1),
      consecutive(found),
      System.currentTimeMillis()
    )
  }

  private def filesOf(target: Target): FileSet = FileSet.of(target.files.map(FileVersion.of))

  /** Queries use declared keys only where a column's name says which column of the files it is. */
  private def requireNames(session: SparkSession, target: Target): Unit = {
    val conf = session.sessionState.conf
    if (conf.caseSensitiveAnalysis) refuse(target, "spark.sql.caseSensitive is true")
    if (target.isParquet && conf.parquetFieldIdReadEnabled) {
      refuse(target, "spark.sql.parquet.fieldId.read.enabled is true")
    }
    if (!target.isParquet) {
      val hadoop = session.sessionState.newHadoopConfWithOptions(target.options)
      val unnamed =
        target.files.asJava.parallelStream().filter(OrcFooters.hasNoNames(_, hadoop)).findAny()
      if (unnamed.isPresent || hadoop.getBoolean("orc.force.positional.evolution", false)) {
        refuse(target, "columns of its ORC files are found by their places, not by their names")
      }
    }
  }

  // No column of a file: it would have to be named in this way.
  private val times = "selinger: rows of a key"

  private def quoted(name: String): String = s"`${name.replace("`", "``")}`"

  private def fieldsOf(target: Target, columns: Seq[String]): Seq[StructField] = {
    val all = target.schema
    val names = columns.map(FooterReader.columnName)
    if (names.isEmpty) refuse(target, "columns is empty: name those of the key")
    val twice = names.diff(names.distinct)
    if (twice.nonEmpty) refuse(target, s"${twice.head} is named twice")
    val partitions = target.partitions.map(field => FooterReader.columnName(field.name)).toSet
    names.map { name =>
      if (partitions(name)) refuse(target, s"$name is in no file, but in the names of folders")
      all.filter(field => FooterReader.columnName(field.name) == name) match {
        case Seq(field) if KeyTypes.hasDefault(field.metadata) =>
          refuse(target, s"${field.name} has a default for rows of files that lack it")
        case Seq(field) if KeyTypes.areProvable(field.dataType) => field
        case Seq(field) =>
          refuse(
            target,
            s"${field.name} is of type ${field.dataType.simpleString}, whose equal values may be stored " +
              "differently. A key has integers, decimals, dates, timestamps without time zone, or texts " +
              "without a collation"
          )
        case Seq() =>
          refuse(
            target,
            s"it has no column $name; it has ${all.map(_.name).take(50).mkString(", ")}"
          )
        case _ => refuse(target, s"it has several columns $name")
      }
    }
  }

  private def duplicatesIn(
      groups: DataFrame,
      isPresent: Column,
      fields: Seq[StructField]
  ): String = {
    val repeated = groups.where(isPresent && col(times) > 1)
    val one = repeated.orderBy(col(times).desc).head()
    val values = fields.indices.map(i => s"${fields(i).name} = ${text(one.get(i))}").mkString(", ")
    s"this is not a key: ${repeated.count()} of its values are in more than one row, such as $values, " +
      s"which is in ${one.getLong(fields.size)} rows. Nothing was kept"
  }

  private def text(value: Any): String = String.valueOf(value).take(100)

  private def requireCertainDays(
      target: Target,
      session: SparkSession,
      field: StructField
  ): Unit = {
    val first = target.rows(session).agg(min(unix_date(col(quoted(field.name))))).head()
    if (!first.isNullAt(0) && first.getInt(0) < KeyTypes.firstCertainDay) {
      val limit = LocalDate.ofEpochDay(KeyTypes.firstCertainDay.toLong)
      refuse(
        target,
        s"${field.name} has days before $limit, which Spark reads as one day or another by its settings"
      )
    }
  }

  /** The smallest and the largest, of a key of one column of whole numbers. */
  private def numbers(fields: Seq[StructField]): (Column, Column) = fields match {
    case Seq(field) if NumericAxis.isWhole(field.dataType) =>
      val key = col(quoted(field.name)).cast(LongType)
      (min(key), max(key))
    case _ => (lit(null).cast(LongType), lit(null).cast(LongType))
  }

  private def consecutive(found: Row): Option[(Long, Long)] =
    if (found.isNullAt(4)) None
    else {
      val (least, most) = (found.getLong(4), found.getLong(5))
      Option.when(BigInt(most) - BigInt(least) + 1 == BigInt(found.getLong(2)))((least, most))
    }

  private def refuse(target: Target, why: String): Nothing =
    throw new IllegalArgumentException(s"The key of ${target.name} is not declared: $why.")
}
