package io.selinger.stats.imported

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import com.fasterxml.jackson.databind.node.ObjectNode
import io.selinger.core.{Origin, Quantity}
import io.selinger.stats.{FrequentValue, Quantiles}
import java.nio.file.{Files, Paths}
import org.apache.spark.sql.catalyst.expressions.Literal
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._

/** The JSON form of statistics: what is written is read again, and what is wrong is said. */
class StatisticsFileSuite extends AnyFunSuite {

  private val schema = StructType(Seq(
    StructField("Id", LongType, nullable = false),
    StructField("name", StringType),
    StructField("day", DateType),
    StructField("at", TimestampType),
    StructField("price", DecimalType(9, 2)),
    StructField("share", DoubleType),
    StructField("flag", BooleanType),
    StructField("bytes", BinaryType),
    StructField("point", StructType(Seq(StructField("x", IntegerType))))
  ))

  private def of(value: Double, origin: Origin) = Some(Quantity(value, origin))

  private def frequent(value: Any) = Seq(FrequentValue(Literal(value).value, 0.25))

  private val relation = PortableRelation(
    "sales.orders",
    "orc",
    Some("s3a://lake/orders"),
    schema,
    Seq("day"),
    123456,
    Some(3),
    of(1000, Origin.Sampled),
    None,
    Map(
      "id" -> PortableColumn(
        of(0, Origin.Exact),
        of(1, Origin.Exact),
        of(1e15 + 1, Origin.Exact),
        of(1000, Origin.Derived)
      ),
      "name" -> PortableColumn(
        of(0.1234567890123, Origin.Measured),
        averageBytes = of(7.5, Origin.Sampled),
        frequent = frequent("it's \"ä\"\n")
      ),
      "day" -> PortableColumn(frequent = frequent(java.time.LocalDate.of(2000, 2, 29))),
      "at" -> PortableColumn(frequent =
        frequent(java.time.Instant.parse("1999-12-31T23:59:59.1Z"))
      ),
      "price" -> PortableColumn(frequent =
        Seq(FrequentValue(Decimal(BigDecimal("-1.50"), 9, 2), 0.5))
      ),
      "share" -> PortableColumn(
        min = of(Double.NegativeInfinity, Origin.Exact),
        max = of(Double.PositiveInfinity, Origin.Exact),
        quantiles = Quantiles.fromPoints(
          Seq(
            (Double.NegativeInfinity, 0.0, 0.1),
            (-0.5, 0.25, 0.25),
            (3e20, 0.5, 0.75),
            (Double.PositiveInfinity, 0.9, 1.0)
          )
        ),
        frequent = Seq(FrequentValue(Double.NaN, 0.5), FrequentValue(0.1, 0.1))
      ),
      "flag" -> PortableColumn(distinct = of(2, Origin.Default), frequent = frequent(true))
    )
  )

  private def render(relations: PortableRelation*) =
    StatisticsFile.render(relations, Seq("selinger" -> "test"))

  test("what is written is read again, whatever the types") {
    val bare = PortableRelation("bare", "csv", None, schema, Nil, 0, None, None, None, Map.empty)
    // NaN is not equal to itself.
    def text(relations: Seq[PortableRelation]) = relations.map(_.toString)
    assert(text(StatisticsFile.parse(render(relation, bare))) == text(Seq(relation, bare)))
    assert(StatisticsFile.parse(render()).isEmpty)
  }

  private val mapper = new ObjectMapper()

  /** The file of `relation` after a change to its JSON. */
  private def changed(change: ObjectNode => Any): String = {
    val root = mapper.readTree(render(relation)).asInstanceOf[ObjectNode]
    val _ = change(root)
    root.toString
  }

  private def first(root: JsonNode): ObjectNode =
    root.get("relations").get(0).asInstanceOf[ObjectNode]

  private def column(root: JsonNode, name: String): ObjectNode =
    first(root).get("columns").get(name).asInstanceOf[ObjectNode]

  test("fields that are not known are passed over, and so are columns of no schema") {
    val text = changed { root =>
      root.put("later", 1)
      first(root).put("later", "x")
      column(root, "id").putObject("later").put("value", 3)
      val _ = first(root).withObject("/columns").putObject("gone").put("min", "x")
    }
    assert(StatisticsFile.parse(text).map(_.toString) == Seq(relation.toString))
  }

  test("what is missing is not known") {
    val text = changed { root =>
      Seq(
        "columns",
        "rows",
        "files",
        "path",
        "partitionColumns",
        "source"
      ).foreach(first(root).remove)
    }
    val found = StatisticsFile.parse(text).head
    assert(found.columns.isEmpty && found.rows.isEmpty && found.statistics.isEmpty)
    assert(found.format == "parquet" && found.files.isEmpty)
  }

  test("an origin that is not known yet is worth no more than a guess") {
    val text = changed(root => first(root).withObject("/rows").put("origin", "divined"))
    assert(StatisticsFile.parse(text).head.rows.contains(Quantity(1000, Origin.Default)))
  }

  private def refused(text: String): String =
    intercept[IllegalArgumentException](StatisticsFile.parse(text)).getMessage

  Seq[(String, ObjectNode => Any, String)](
    ("a newer version", _.put("version", 2), "version is 2"),
    ("no version", _.remove("version"), "version"),
    ("a version of nothing", _.put("version", "one"), "version"),
    ("a foreign file", _.put("format", "other"), "format"),
    ("no relations", _.remove("relations"), "relations"),
    ("no name", first(_).remove("name"), "name"),
    ("no bytes", first(_).remove("bytes"), "bytes"),
    ("negative rows", first(_).withObject("/rows").put("value", -1), "rows"),
    ("rows without a value", first(_).withObject("/rows").remove("value"), "rows"),
    ("rows that are no number", first(_).withObject("/rows").put("value", "many"), "rows"),
    ("NaN", first(_).withObject("/rows").put("value", "NaN"), "rows"),
    ("a bound below the rows", first(_).put("bound", 10), "bound"),
    ("no schema", first(_).remove("schema"), "schema"),
    ("another schema", first(_).put("schema", "nonsense"), "schema"),
    ("an unknown partition column", first(_).withArray("/partitionColumns").add("x"), "partition"),
    ("columns as a list", first(_).putArray("columns"), "columns"),
    ("a share above one", column(_, "name").withObject("/nullFraction").put("value", 2), "nullF"),
    ("a range upside down", column(_, "id").withObject("/min").put("value", 1e17), "smallest"),
    (
      "a relation twice",
      root => root.withArray("/relations").add(first(root).deepCopy().put("name", "SALES.orders")),
      "more than once"
    )
  ).foreach { case (what, change, named) =>
    test(s"refuses $what") {
      assert(refused(changed { root =>
        val _ = change(root)
      }).contains(named))
    }
  }

  test("refuses what is not JSON, is cut off, or is something else") {
    Seq("", "nonsense", "{", "[]", "1", "{}", render(relation).dropRight(40)).foreach { text =>
      assert(refused(text).startsWith("The statistics file cannot be used"))
    }
  }

  test("without frequent values no value of a text column is left") {
    val text = render(relation.withoutValues)
    assert(!text.contains("frequent") && !text.contains("it's") && !text.contains("quantiles"))
    assert(StatisticsFile.parse(text).head.columns("name").averageBytes.isDefined)
  }

  test("refuses quantiles that fall, and says which") {
    val text = render(relation)
    val falling = text.replace("\"below\":0.9", "\"below\":0.2")
    assert(falling != text && refused(falling).contains("share do not rise"))
  }

  // ---- the page that defines it -------------------------------------------------------------

  private lazy val page: String =
    Files.readString(Paths.get(System.getProperty("selinger.root"), "docs", "statistics-file.md"))

  test("the page's example can be read") {
    val example = page.split("```json\n")(1).split("```").head
    val found = StatisticsFile.parse(example)
    assert(found.nonEmpty && found.exists(_.columns.values.exists(_.frequent.nonEmpty)))
    // As it would be written: no field of it is one that nobody reads.
    val names = fieldsOf(mapper.readTree(example))
    assert(names == fieldsOf(mapper.readTree(StatisticsFile.render(
      found,
      Seq("selinger" -> "", "spark" -> "")
    ))))
  }

  test("the page describes every field") {
    val fields = fieldsOf(mapper.readTree(StatisticsFile.render(
      Seq(relation.copy(bound = Some(1000))),
      Seq("selinger" -> "", "spark" -> "")
    )))
    fields.foreach(field => assert(page.contains(s"| `$field` |"), field))
    Origin.all.foreach(origin => assert(page.contains(s"`${origin.label}`")))
  }

  /** Names of fields, without those of Spark's schema and of columns. */
  private def fieldsOf(node: JsonNode): Set[String] =
    if (node.isArray) node.elements.asScala.flatMap(fieldsOf(_)).toSet
    else
      node.properties.asScala.flatMap { entry =>
        val below = entry.getKey match {
          case "schema" => Set.empty[String]
          case "columns" => entry.getValue.elements.asScala.flatMap(fieldsOf(_)).toSet
          case _ => fieldsOf(entry.getValue)
        }
        below + entry.getKey
      }.toSet
}
