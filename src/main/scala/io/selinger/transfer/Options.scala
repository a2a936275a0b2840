package io.selinger.transfer

import com.fasterxml.jackson.core.JsonProcessingException
import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.{NumericType, StringType}
import scala.jdk.CollectionConverters._

/**
 * Options of a table function: a JSON object of the names that it knows.
 *
 * @param function for messages
 */
final class Options(function: String, json: JsonNode) {

  def flag(name: String, default: Boolean): Boolean = json.path(name) match {
    case absent if isAbsent(absent) => default
    case value if value.isBoolean => value.asBoolean
    case other => wrong(s"$name must be true or false, and is $other")
  }

  def text(name: String): Option[String] = json.path(name) match {
    case absent if isAbsent(absent) => None
    case value if value.isTextual => Some(value.asText)
    case other => wrong(s"$name must be a text, and is $other")
  }

  def texts(name: String): Option[Seq[String]] = json.path(name) match {
    case absent if isAbsent(absent) => None
    case list if list.isArray && list.elements.asScala.forall(_.isTextual) =>
      Some(list.elements.asScala.map(_.asText).toSeq)
    case other => wrong(s"$name must be a list of texts, and is $other")
  }

  /** A number, or one for each name. */
  def factors(name: String): Either[Double, Map[String, Double]] = json.path(name) match {
    case absent if isAbsent(absent) => Left(1.0)
    case each if each.isObject =>
      Right(each.properties.asScala.map(e => e.getKey -> number(name, e.getValue)).toMap)
    case one => Left(number(name, one))
  }

  private def number(name: String, value: JsonNode): Double =
    if (value.isNumber) value.asDouble
    else wrong(s"$name must be a positive number, and is ${value.asText(value.toString)}")

  private def isAbsent(value: JsonNode) = value.isMissingNode || value.isNull

  private def wrong(what: String): Nothing =
    throw new IllegalArgumentException(s"$function: $what.")
}

object Options {

  /** @throws java.lang.IllegalArgumentException where it is no object, or has another field */
  def parse(function: String, text: String, known: Seq[String]): Options = {
    def wrong(what: String) = throw new IllegalArgumentException(
      s"$function: the options $what; they are a JSON object with ${known.mkString(", ")}."
    )
    val json =
      try new ObjectMapper().readTree(text)
      catch { case _: JsonProcessingException => wrong("cannot be read") }
    if (!json.isObject) wrong("are no object")
    json.fieldNames.asScala.find(!known.contains(_)).foreach(name => wrong(s"have no \"$name\""))
    new Options(function, json)
  }

  /** The arguments of a table function, which are constants, as texts. */
  def arguments(function: String, expressions: Seq[Expression]): Seq[String] =
    expressions.map { argument =>
      argument.dataType match {
        case _: StringType | _: NumericType if argument.foldable =>
          Option(argument.eval()).map(_.toString).getOrElse(
            throw new IllegalArgumentException(s"$function does not take NULL.")
          )
        case _ =>
          throw new IllegalArgumentException(s"$function takes constant texts only.")
      }
    }
}
