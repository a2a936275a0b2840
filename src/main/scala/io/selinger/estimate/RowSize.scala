package io.selinger.estimate

import io.selinger.stats.ColumnStatistics
import org.apache.spark.sql.catalyst.expressions.{Attribute, ExprId, UnsafeRow}
import org.apache.spark.sql.types._

/** Sizes in Spark's binary row format (`UnsafeRow`), which shuffles and hash tables hold. */
object RowSize {

  /** A bit a column for nulls, in whole words; a word a column; variable parts in whole words. */
  def bytes(output: Seq[Attribute], columns: Map[ExprId, ColumnStatistics]): Double =
    nullWords(output.size) + output.map(column => ofColumn(column, columns)).sum

  /** What one column adds. */
  def ofColumn(column: Attribute, columns: Map[ExprId, ColumnStatistics]): Double =
    8.0 + variable(column.dataType, columns.get(column.exprId))

  /** Whether the width of every column of variable width is known, rather than Spark's default. */
  def isKnown(output: Seq[Attribute], columns: Map[ExprId, ColumnStatistics]): Boolean =
    output.forall(column => ValueWidth.bytes(column, columns).isDefined)

  /** Bytes of a key of these types, as a hash table stores it. */
  def bytesOfTypes(types: Seq[DataType]): Double =
    nullWords(types.size) + 8.0 * types.size + types.map(variable(_, None)).sum

  /** What a row of so many columns has before the first of them. */
  def nullWords(columns: Int): Double = 8.0 * ((columns + 63) / 64)

  private def variable(kind: DataType, statistics: Option[ColumnStatistics]): Double =
    if (UnsafeRow.isFixedLength(kind)) 0.0
    else {
      val bytes = statistics.flatMap(_.averageBytes).getOrElse(kind.defaultSize.toDouble)
      val present = 1.0 - statistics.flatMap(_.nullFraction).getOrElse(0.0)
      math.ceil(bytes / 8.0) * 8.0 * present
    }
}
