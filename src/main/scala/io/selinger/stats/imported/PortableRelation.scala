package io.selinger.stats.imported

import io.selinger.core.{Origin, Quantity}
import io.selinger.stats.{ColumnStatistics, FrequentValue, Quantiles, RelationStatistics}
import org.apache.spark.sql.types.StructType

/** What a statistics file says of one column; each field as in [[ColumnStatistics]]. */
final case class PortableColumn(
    nullFraction: Option[Quantity] = None,
    min: Option[Quantity] = None,
    max: Option[Quantity] = None,
    distinct: Option[Quantity] = None,
    averageBytes: Option[Quantity] = None,
    frequent: Seq[FrequentValue] = Nil,
    quantiles: Option[Quantiles] = None
) {

  def statistics: ColumnStatistics = ColumnStatistics(
    nullFraction.map(_.value),
    min.map(_.value),
    max.map(_.value),
    distinct.map(_.value),
    averageBytes.map(_.value),
    frequent,
    quantiles = quantiles
  )
}

/**
 * What a statistics file says of one relation: enough to plan queries on it without its data.
 *
 * @param name as queries name it, parts joined by dots, quoted where need be
 * @param format of its files, where it has any: `parquet`, `orc`, or another source's name
 * @param path where its files were; a note for people
 * @param schema of all columns, partition columns included
 * @param partitionColumns names of columns that no file holds
 * @param bytes as Spark sees its size
 * @param files how many it has, where known
 * @param rows of the whole relation, where known
 * @param bound rows that it cannot exceed; only where every row was counted
 * @param columns by lower-case name
 */
final case class PortableRelation(
    name: String,
    format: String,
    path: Option[String],
    schema: StructType,
    partitionColumns: Seq[String],
    bytes: Double,
    files: Option[Double],
    rows: Option[Quantity],
    bound: Option[Double],
    columns: Map[String, PortableColumn]
) {

  /** What the estimator takes; nothing where not even rows are known. */
  def statistics: Option[RelationStatistics] = rows.map { count =>
    RelationStatistics(
      count,
      bound,
      columns.map { case (column, known) =>
        column -> known.statistics
      }
    )
  }

  /** Without values of the data, but for the smallest and the largest. */
  def withoutValues: PortableRelation =
    copy(columns = columns.map { case (column, known) =>
      column -> known.copy(frequent = Nil, quantiles = None)
    })
}

object PortableRelation {

  /** The same numbers as computed from others: what scaling makes of any. */
  def derived(number: Quantity, factor: Double): Quantity =
    Quantity(number.value * factor, number.origin.worse(Origin.Derived))
}
