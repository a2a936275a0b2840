package io.selinger.stats.sketches

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.selinger.stats.FileSet
import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import org.apache.spark.sql.types.DataType
import scala.jdk.CollectionConverters._

/**
 * A key that somebody has declared, and a job has found to be one in certain files: no two rows have the
 * same values of its columns, rows with a null left aside.
 *
 * @param columns by lower-case name, as they were read
 * @param files that the job has read; of others nothing is known
 * @param nulls rows with a null in one of the columns
 * @param consecutive for one column of whole numbers: the smallest and the largest, if none between is missing
 * @param checked when, in milliseconds since 1970
 */
private[stats] final case class DeclaredKey(
    columns: Map[String, DataType],
    files: FileSet,
    rows: Long,
    nulls: Long,
    consecutive: Option[(Long, Long)],
    checked: Long
) {

  def hasNulls: Boolean = nulls > 0

  /** As the store keeps it. */
  def toBytes: Array[Byte] = {
    val mapper = new ObjectMapper()
    val json = mapper.createObjectNode()
    json.put("format", DeclaredKey.format).put("checked", checked)
    val named = json.putArray("columns")
    columns.toSeq.sortBy(_._1).foreach { case (name, kind) =>
      named.addObject().put("name", name).put("type", kind.json)
    }
    json.put("files", files.count).put("bytes", files.bytes).put("digest", files.digest)
    json.put("rows", rows).put("nulls", nulls)
    consecutive.foreach { case (least, most) => json.putArray("consecutive").add(least).add(most) }
    mapper.writeValueAsBytes(json)
  }
}

private[stats] object DeclaredKey {

  private val format = 1

  /** @throws java.io.IOException where it is none, or of a later version */
  def fromBytes(bytes: Array[Byte]): DeclaredKey = {
    val json = Option(new ObjectMapper().readTree(new String(bytes, UTF_8)))
      .getOrElse(throw new IOException("the file is empty"))
    def field(name: String): JsonNode =
      Option(json.get(name)).getOrElse(throw new IOException(s"there is no $name in it"))
    val found = field("format").asInt()
    if (found != format) {
      throw new IOException(s"its format is $found, and this version of Selinger reads $format")
    }
    DeclaredKey(
      field("columns").asScala.map { column =>
        column.get("name").asText() -> DataType.fromJson(column.get("type").asText())
      }.toMap,
      FileSet(field("files").asInt(), field("bytes").asLong(), field("digest").asText()),
      field("rows").asLong(),
      field("nulls").asLong(),
      Option(json.get("consecutive")).map(ends => (ends.get(0).asLong(), ends.get(1).asLong())),
      field("checked").asLong()
    )
  }
}
