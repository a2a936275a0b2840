package org.apache.spark.sql.selinger

import org.apache.spark.sql.catalyst.util.CharVarcharUtils

/** Access to Spark's keys in the metadata of columns. */
object ColumnMetadata {

  /** Under which a text column keeps that it is a CHAR or VARCHAR, and of what length. */
  val textLength: String = CharVarcharUtils.CHAR_VARCHAR_TYPE_STRING_METADATA_KEY
}
