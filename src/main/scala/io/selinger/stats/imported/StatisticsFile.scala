package io.selinger.stats.imported

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.{ArrayNode, ObjectNode, TextNode}
import io.selinger.core.{Origin, Quantity}
import io.selinger.stats.{FrequentValue, Quantiles}
import io.selinger.stats.files.FooterReader
import org.apache.spark.sql.catalyst.expressions.{Cast, EvalMode, Literal}
import org.apache.spark.sql.types.{DataType, StringType, StructType}
import org.apache.spark.unsafe.types.UTF8String
import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

/**
 * The JSON form of statistics: `docs/statistics-file.md` defines it. Unknown fields are passed over,
 * so that later versions can add some; what has another meaning gets another version.
 */
object StatisticsFile {

  val format = "selinger-statistics"
  val version = 1

  // Memory of the driver: some hundred bytes a column, so this is a hundred thousand columns.
  private val mostCharacters = 64 << 20

  /** Numbers of a column, by the names of their fields. */
  private val numbers: Seq[(String, PortableColumn => Option[Quantity])] = Seq(
    "nullFraction" -> (_.nullFraction),
    "min" -> (_.min),
    "max" -> (_.max),
    "distinct" -> (_.distinct),
    "averageBytes" -> (_.averageBytes)
  )

  // ---- writing ------------------------------------------------------------------------------

  /** @param writers fields that say who wrote the file, in order */
  def render(relations: Seq[PortableRelation], writers: Seq[(String, String)]): String = {
    val mapper = new ObjectMapper()
    val root = mapper.createObjectNode()
    root.put("format", format).put("version", version)
    writers.foreach { case (field, value) => root.put(field, value) }
    val list = root.putArray("relations")
    relations.foreach(relation => write(list.addObject(), relation, mapper))
    lines(root, "", 4)
  }

  /** The outer `levels` on lines of their own, and what is below them on one: a line a column. */
  private def lines(node: JsonNode, indent: String, levels: Int): String = {
    val inner = indent + "  "
    def block(open: String, entries: Seq[String], close: String) =
      if (entries.isEmpty) open + close
      else entries.mkString(s"$open\n$inner", s",\n$inner", s"\n$indent$close")
    node match {
      case json: ObjectNode if levels > 0 && !(json.has("value") && json.has("origin")) =>
        val entries = json.properties.asScala.toSeq.map { entry =>
          s"${TextNode.valueOf(entry.getKey)}: ${lines(entry.getValue, inner, levels - 1)}"
        }
        block("{", entries, "}")
      case list: ArrayNode if levels > 0 =>
        block("[", list.elements.asScala.toSeq.map(lines(_, inner, levels - 1)), "]")
      case other => other.toString
    }
  }

  private def write(json: ObjectNode, relation: PortableRelation, mapper: ObjectMapper): Unit = {
    json.put("name", relation.name).put("source", relation.format)
    relation.path.foreach(json.put("path", _))
    json.set[ObjectNode]("schema", mapper.readTree(relation.schema.json))
    val partitions = json.putArray("partitionColumns")
    relation.partitionColumns.foreach(partitions.add)
    write(json, "bytes", relation.bytes)
    relation.files.foreach(write(json, "files", _))
    relation.rows.foreach(write(json, "rows", _))
    relation.bound.foreach(write(json, "bound", _))
    val columns = json.putObject("columns")
    relation.columns.toSeq.sortBy(_._1).foreach { case (name, column) =>
      val kind = kindOf(relation.schema, name)
      write(columns.putObject(name), column, kind)
    }
  }

  private def write(json: ObjectNode, column: PortableColumn, kind: Option[DataType]): Unit = {
    numbers.foreach { case (field, pick) => pick(column).foreach(write(json, field, _)) }
    val frequent = for {
      known <- column.frequent
      dataType <- kind
      text <- textOf(known.value, dataType)
    } yield (text, known.share)
    if (frequent.nonEmpty) {
      val list = json.putArray("frequent")
      frequent.foreach { case (text, share) =>
        list.addObject().put("value", text).put("share", share)
      }
    }
    column.quantiles.foreach { quantiles =>
      val list = json.putArray("quantiles")
      quantiles.points.foreach { case (place, below, upTo) =>
        val point = list.addObject()
        write(point, "at", place)
        point.put("below", below).put("upTo", upTo)
      }
    }
  }

  private def write(json: ObjectNode, field: String, number: Quantity): Unit = {
    val pair = json.putObject(field)
    write(pair, "value", number.value)
    val _ = pair.put("origin", number.origin.label)
  }

  /** Whole numbers without a fraction; what JSON has no number for as text. */
  private def write(json: ObjectNode, field: String, value: Double): Unit = {
    val _ =
      if (value.isInfinite) json.put(field, value.toString)
      else if (value.isWhole && math.abs(value) < 1e15) json.put(field, value.toLong)
      else json.put(field, value)
  }

  private def kindOf(schema: StructType, column: String): Option[DataType] =
    schema.fields.find(field => FooterReader.columnName(field.name) == column).map(_.dataType)

  /** A Catalyst value as SQL would print it, in UTC. */
  private def textOf(value: Any, kind: DataType): Option[String] =
    cast(Literal(value, kind), StringType).map(_.toString)

  private def valueOf(text: String, kind: DataType): Option[Any] =
    cast(Literal(UTF8String.fromString(text), StringType), kind)

  private def cast(literal: Literal, to: DataType): Option[Any] =
    if (literal.dataType == to) Option(literal.value)
    else if (!Cast.canCast(literal.dataType, to)) None
    else Option(Cast(literal, to, Some("UTC"), EvalMode.LEGACY).eval())

  // ---- reading ------------------------------------------------------------------------------

  /**
   * The relations of a file.
   *
   * @throws java.lang.IllegalArgumentException that says what is wrong with it
   */
  def parse(text: String): Seq[PortableRelation] = {
    if (text.length > mostCharacters) {
      wrong(s"it has ${text.length} characters, of which $mostCharacters are read at most")
    }
    val root =
      try Option(new ObjectMapper().readTree(text))
      catch {
        case error: JsonProcessingException =>
          wrong(s"it is not JSON, or a part of it is missing: ${error.getOriginalMessage}")
      }
    val json = root.filter(_.isObject).getOrElse(wrong("it is no JSON object"))
    if (json.path("format").asText() != format) wrong(s"its \"format\" is not \"$format\"")
    json.path("version") match {
      case number if !number.isInt || number.asInt < 1 => wrong("its \"version\" is no version")
      case newer if newer.asInt > version =>
        wrong(
          s"its version is ${newer.asInt} and this Selinger reads up to $version: " +
            "use a newer Selinger, or export again with this one"
        )
      case _ => ()
    }
    val relations = elements(json, "relations", "the file").map(relationOf)
    relations
      .groupBy(_.name.toLowerCase(java.util.Locale.ROOT))
      .collectFirst { case (name, same) if same.size > 1 => name }
      .foreach(name => wrong(s"it describes $name more than once"))
    relations
  }

  private def wrong(what: String): Nothing =
    throw new IllegalArgumentException(s"The statistics file cannot be used: $what.")

  private def relationOf(json: JsonNode): PortableRelation = {
    val name = textIn(json, "name").filter(_.trim.nonEmpty).getOrElse(
      wrong("a relation has no \"name\"")
    )
    val schema = schemaOf(json.path("schema"), name)
    val partitions = elements(json, "partitionColumns", name, required = false).map(_.asText)
    partitions.filter(kindOfExact(schema, _).isEmpty).foreach(column =>
      wrong(s"the partition column $column of $name is not in its schema")
    )
    val rows = quantity(json, "rows", name)(least = 0)
    val bound = number(json.path("bound"), s"bound of $name", least = 0)
    for (count <- rows; most <- bound if most < count.value)
      wrong(s"the bound of $name is lower than its rows")
    PortableRelation(
      name,
      textIn(json, "source").getOrElse("parquet"),
      textIn(json, "path"),
      schema,
      partitions,
      number(json.path("bytes"), s"bytes of $name", least = 0)
        .getOrElse(wrong(s"$name has no \"bytes\"")),
      number(json.path("files"), s"files of $name", least = 0),
      rows,
      bound,
      columnsOf(json.path("columns"), schema, name)
    )
  }

  private def kindOfExact(schema: StructType, column: String): Option[DataType] =
    kindOf(schema, FooterReader.columnName(column))

  private def schemaOf(json: JsonNode, relation: String): StructType = {
    val schema =
      try DataType.fromJson(json.toString)
      catch {
        case NonFatal(error) =>
          wrong(s"the schema of $relation is not one of Spark's: ${error.getMessage}")
      }
    schema match {
      case struct: StructType if struct.nonEmpty => struct
      case _ => wrong(s"the schema of $relation has no columns")
    }
  }

  private def columnsOf(
      json: JsonNode,
      schema: StructType,
      relation: String
  ): Map[String, PortableColumn] = {
    if (!json.isObject && !json.isMissingNode) wrong(s"the columns of $relation are no object")
    json.properties.asScala.flatMap { entry =>
      val name = FooterReader.columnName(entry.getKey)
      kindOf(schema, name).map(kind =>
        name -> columnOf(entry.getValue, kind, s"$relation.${entry.getKey}")
      )
    }.toMap
  }

  private def columnOf(json: JsonNode, kind: DataType, column: String): PortableColumn = {
    def quantityOf(field: String, least: Double, most: Double) =
      quantity(json, field, column)(least, most)
    val everything = Double.PositiveInfinity
    val found = PortableColumn(
      quantityOf("nullFraction", 0, 1),
      quantityOf("min", -everything, everything),
      quantityOf("max", -everything, everything),
      quantityOf("distinct", 0, Double.MaxValue),
      quantityOf("averageBytes", 0, Double.MaxValue),
      elements(json, "frequent", column, required = false).flatMap(frequentOf(_, kind, column)),
      quantilesOf(elements(json, "quantiles", column, required = false), column)
    )
    for (low <- found.min; high <- found.max if low.value > high.value)
      wrong(s"the smallest value of $column is above its largest")
    found
  }

  private def frequentOf(json: JsonNode, kind: DataType, column: String): Option[FrequentValue] = {
    val share = number(json.path("share"), s"share of a frequent value of $column", 0, 1)
      .getOrElse(wrong(s"a frequent value of $column has no \"share\""))
    textIn(json, "value").flatMap(valueOf(_, kind)).map(FrequentValue(_, share))
  }

  private def quantilesOf(list: Seq[JsonNode], column: String): Option[Quantiles] = {
    val points = list.map { point =>
      def numberOf(field: String, least: Double, most: Double) =
        number(point.path(field), s"\"$field\" of a quantile of $column", least, most)
          .getOrElse(wrong(s"a quantile of $column has no \"$field\""))
      val everywhere = Double.PositiveInfinity
      (numberOf("at", -everywhere, everywhere), numberOf("below", 0, 1), numberOf("upTo", 0, 1))
    }
    if (points.isEmpty) None
    else
      Quantiles.fromPoints(points).orElse(
        wrong(s"the quantiles of $column do not rise, or are more than ${Quantiles.most}")
      )
  }

  private def elements(
      json: JsonNode,
      field: String,
      where: String,
      required: Boolean = true
  ): Seq[JsonNode] = json.path(field) match {
    case list: ArrayNode => list.elements.asScala.toSeq
    case absent if absent.isMissingNode && !required => Nil
    case _ => wrong(s"\"$field\" of $where is no list")
  }

  private def textIn(json: JsonNode, field: String): Option[String] =
    Option(json.path(field)).filter(_.isTextual).map(_.asText)

  private def quantity(json: JsonNode, field: String, where: String)(
      least: Double,
      most: Double = Double.MaxValue
  ): Option[Quantity] = {
    val pair = json.path(field)
    if (pair.isMissingNode || pair.isNull) None
    else
      number(pair.path("value"), s"$field of $where", least, most)
        .orElse(wrong(s"$field of $where has no \"value\""))
        .map(Quantity(_, originOf(pair.path("origin").asText())))
  }

  /** An origin that is not known yet is worth no more than a guess. */
  private def originOf(label: String): Origin =
    Origin.all.find(_.label == label).getOrElse(Origin.Default)

  private def number(
      json: JsonNode,
      what: String,
      least: Double,
      most: Double = Double.MaxValue
  ): Option[Double] =
    if (json.isMissingNode || json.isNull) None
    else {
      val value =
        if (json.isNumber) Some(json.asDouble)
        else if (json.isTextual) json.asText.toDoubleOption
        else None
      Some(
        value
          .filter(v => !v.isNaN && v >= least && v <= most)
          .getOrElse(wrong(s"the $what is $json"))
      )
    }
}
