package io.selinger.stats

import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.catalyst.util.{ResolveDefaultColumnsUtils, UnsafeRowUtils}
import org.apache.spark.sql.types._

/** Types of which keys can be proven. */
object KeyTypes {

  /**
   * Whether equal values of a type are equal objects, and the other way. What a timestamp with time zone
   * is depends on settings of the session as well.
   */
  def areProvable(kind: DataType): Boolean = kind match {
    case ByteType | ShortType | IntegerType | LongType | DateType | TimestampNTZType |
        _: DecimalType =>
      true
    case text: StringType => UnsafeRowUtils.isBinaryStable(text)
    case _ => false
  }

  /** Whether rows of files that lack the column have a value for it that the catalog says. */
  def hasDefault(column: Attribute): Boolean = hasDefault(column.metadata)

  def hasDefault(metadata: Metadata): Boolean =
    metadata.contains(ResolveDefaultColumnsUtils.EXISTS_DEFAULT_COLUMN_METADATA_KEY)

  /** In days: settings of the session say which days those before are; several may become one. */
  val firstCertainDay: Int = -141427 // 15 October 1582, the first of the Gregorian calendar
}
