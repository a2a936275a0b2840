import sbt._
import sjsonnew.support.scalajson.unsafe.Parser
import sjsonnew.shaded.scalajson.ast.unsafe._

/** One supported Spark line, as `conf/spark-lines.json` describes it. */
final case class SparkLine(name: String, spark: String, scala: String, shims: Seq[String])

/**
 * The table of Spark lines, and where the classes of a line come from: the `jars/` folder of the
 * PySpark that `make setup` installs, or of `SPARK_HOME`. So what is compiled against is, bit for
 * bit, what runs.
 */
object SparkLines {

  /** The line to build, chosen by the environment variable `SPARK` (`make … SPARK=4.2`). */
  def chosen(base: File): SparkLine = {
    val table = fields(Parser.parseUnsafe(IO.read(base / "conf" / "spark-lines.json")))
    val lines = fields(table("lines"))
    val name = sys.env.getOrElse("SPARK", text(table("default")))
    val line = fields(lines.getOrElse(
      name,
      throw new MessageOnlyException(
        s"SPARK=$name is not a supported Spark line; choose one of ${lines.keys.mkString(", ")}"
      )
    ))
    SparkLine(name, text(line("spark")), text(line("scala")), items(line("shims")).map(text))
  }

  private def fields(value: JValue): Map[String, JValue] = value match {
    case JObject(entries) => entries.map(entry => entry.field -> entry.value).toMap
    case other => sys.error(s"conf/spark-lines.json: expected an object, found $other")
  }

  private def items(value: JValue): Seq[JValue] = value match {
    case JArray(elements) => elements.toSeq
    case other => sys.error(s"conf/spark-lines.json: expected an array, found $other")
  }

  private def text(value: JValue): String = value match {
    case JString(string) => string
    case other => sys.error(s"conf/spark-lines.json: expected a string, found $other")
  }

  /** Spark's own jars for the line; an empty class path would give a thousand errors, so fail in one line. */
  def jars(base: File, line: SparkLine): Seq[File] = {
    val folders = sys.env.get("SPARK_HOME").map(home => file(home) / "jars").toSeq ++
      ((base / ".venv" / line.name / "lib") ** "pyspark" / "jars").get
    val found = folders.flatMap(folder => (folder * "*.jar").get)
    if (found.isEmpty) {
      throw new MessageOnlyException(
        s"No Spark ${line.spark} to compile against: run `make setup SPARK=${line.name}` first, or set SPARK_HOME."
      )
    }
    found
  }
}
