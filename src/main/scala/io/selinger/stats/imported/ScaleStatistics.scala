package io.selinger.stats.imported

import io.selinger.core.Quantity
import io.selinger.stats.files.FooterReader
import java.time.LocalDate
import org.apache.spark.sql.types._
import scala.util.Try

/**
 * Statistics of data that does not exist: the same tables with more rows. Pure functions.
 *
 *   - Rows, their bound, bytes and files grow by the relation's factor.
 *   - A key grows with its relation: a whole-numbered or text column with a value of its own in
 *     nearly every row. Its distinct values grow, and the range of a whole-numbered one is
 *     stretched from its smallest value on.
 *   - A whole-numbered column that refers to such a key grows by the factor of the key's relation,
 *     so that joins keep their fan-out: it lies in the key's range and fills nearly all of it.
 *     Ranges of small relations (months and the twelve stores, say) agree by chance and prove
 *     nothing, nor do they matter: a join finds as many rows either way.
 *   - A whole-numbered column with few rows for each value (the number of an order with a dozen
 *     items) grows with its relation, for the same reason.
 *   - A calendar stays as it is, unless it is named: a relation with a row for each day, or for each
 *     hour, minute or second of a day. More sales do not make more days.
 *   - All others keep their values: there are no more days, states or prices. So do shares: of
 *     nulls, of frequent values, and widths.
 */
object ScaleStatistics {

  // A column with so many values a row is a key, as estimates of joins have it.
  private val unique = 0.9
  // A reference fills so much of the range of the key that it refers to.
  private val coverage = 0.9
  // With fewer values, a key is not recognized as what other columns refer to.
  private val leastReferred = 100.0
  // A calendar has a row for nearly every day between its ends, in a year at least.
  private val leastDays = 365.0
  private val microsOfDay = 86400e6
  private val partsOfDay = Set(24.0, 1440.0, 86400.0)
  // As few rows for each value are one thing of several rows, in as many rows at least.
  private val fewRows = 20.0
  private val leastRows = 1000.0

  /** Why a column grows, if it does. */
  sealed trait Growth { def factor: Double }
  object Growth {
    final case class Key(factor: Double) extends Growth
    final case class Reference(relation: String, column: String, factor: Double) extends Growth
    final case class FewRows(factor: Double) extends Growth
  }

  private final case class KeyRange(
      relation: String,
      column: String,
      low: Double,
      high: Double,
      factor: Double
  ) {
    private def width = high - low

    /** How much of this range another one fills that lies in it. */
    def filled(from: Double, to: Double): Option[Double] =
      Option.when(from >= low && to <= high && width > 0)((to - from) / width)
  }

  /**
   * @param factorOf by the relation's name; 1 leaves it as it is
   * @throws java.lang.IllegalArgumentException where a factor is no positive number
   */
  def scaled(
      relations: Seq[PortableRelation],
      factorOf: String => Double
  ): Seq[PortableRelation] = {
    relations.foreach { relation =>
      val factor = factorOf(relation.name)
      require(
        factor > 0 && !factor.isInfinite,
        s"scale must be a positive number, and is $factor for ${relation.name}"
      )
    }
    val growing = growth(relations, factorOf)
    relations.map(relation =>
      scaled(relation, factorOf(relation.name), growing.getOrElse(relation.name, Map.empty))
    )
  }

  /** What grows, by the names of relation and column. */
  def growth(
      relations: Seq[PortableRelation],
      factorOf: String => Double
  ): Map[String, Map[String, Growth]] = {
    val keys = relations.flatMap(relation => keysOf(relation, factorOf(relation.name)))
    relations.map { relation =>
      relation.name -> relation.columns.flatMap { case (name, column) =>
        growthOf(relation, name, column, factorOf(relation.name), keys).map(name -> _)
      }
    }.toMap
  }

  /** Whether a relation has one row for each day, or for each hour, minute or second of a day. */
  def isCalendar(relation: PortableRelation): Boolean =
    relation.rows.exists { rows =>
      relation.columns.exists { case (name, column) =>
        isUnique(relation, column) && kindOf(relation, name).exists { kind =>
          val days = for {
            low <- column.min
            high <- column.max
            days <- daysBetween(kind, low.value, high.value)
          } yield days
          days.exists(days => days >= leastDays && rows.value >= unique * days) ||
          isWhole(kind) && partsOfDay(rows.value) && column.min.exists(_.value == 0.0) &&
          column.max.exists(_.value == rows.value - 1)
        }
      }
    }

  /** Days from one value to another, both included, if values of such a column are days. */
  private def daysBetween(kind: DataType, low: Double, high: Double): Option[Double] = kind match {
    case DateType => Some(high - low + 1)
    case TimestampType | TimestampNTZType => Some((high - low) / microsOfDay + 1)
    case _ if isWhole(kind) => for (from <- dayOf(low); to <- dayOf(high)) yield to - from + 1
    case _ => None
  }

  /** The day that a number such as 20240131 means. */
  private def dayOf(number: Double): Option[Double] = {
    val digits = number.toLong
    Option.when(digits >= 15000101L && digits <= 29991231L)(digits).flatMap { day =>
      Try(
        LocalDate.of((day / 10000).toInt, (day / 100 % 100).toInt, (day % 100).toInt)
      ).toOption.map(_.toEpochDay.toDouble)
    }
  }

  private def growthOf(
      relation: PortableRelation,
      name: String,
      column: PortableColumn,
      factor: Double,
      keys: Seq[KeyRange]
  ): Option[Growth] = {
    val kind = kindOf(relation, name)
    if (isUnique(relation, column) && kind.exists(k => isWhole(k) || isText(k))) {
      Some(Growth.Key(factor))
    } else if (kind.exists(isWhole)) {
      reference(relation, column, keys)
        .orElse(Option.when(hasFewRows(relation, column))(Growth.FewRows(factor)))
    } else None
  }

  /** The key of another relation whose range is the closest. */
  private def reference(
      relation: PortableRelation,
      column: PortableColumn,
      keys: Seq[KeyRange]
  ): Option[Growth] = {
    val matches = for {
      key <- keys if key.relation != relation.name
      low <- column.min.toSeq
      high <- column.max
      filled <- key.filled(low.value, high.value) if filled >= coverage
    } yield (key, filled)
    matches
      .sortBy { case (key, filled) => (-filled, key.relation, key.column) }
      .headOption
      .map { case (key, _) => Growth.Reference(key.relation, key.column, key.factor) }
  }

  private def keysOf(relation: PortableRelation, factor: Double): Seq[KeyRange] =
    relation.columns.toSeq.flatMap { case (name, column) =>
      for {
        low <- column.min
        high <- column.max
        values <- column.distinct
        if values.value >= leastReferred && isUnique(relation, column) &&
          kindOf(relation, name).exists(isWhole)
      } yield KeyRange(relation.name, name, low.value, high.value, factor)
    }

  private def present(relation: PortableRelation, column: PortableColumn): Option[Double] =
    relation.rows.map(_.value * (1.0 - column.nullFraction.fold(0.0)(_.value)))

  private def isUnique(relation: PortableRelation, column: PortableColumn): Boolean =
    present(relation, column).exists(rows =>
      rows > 0 && column.distinct.exists(_.value >= unique * rows)
    )

  private def hasFewRows(relation: PortableRelation, column: PortableColumn): Boolean =
    present(relation, column).exists(rows =>
      rows >= leastRows && column.distinct.exists(_.value * fewRows >= rows)
    )

  private def kindOf(relation: PortableRelation, column: String): Option[DataType] =
    relation.schema.fields
      .find(field => FooterReader.columnName(field.name) == column)
      .map(_.dataType)

  private def isWhole(kind: DataType): Boolean = kind match {
    case ByteType | ShortType | IntegerType | LongType => true
    case decimal: DecimalType => decimal.scale == 0
    case _ => false
  }

  private def isText(kind: DataType): Boolean = kind match {
    case _: StringType | BinaryType => true
    case _ => false
  }

  private def scaled(
      relation: PortableRelation,
      factor: Double,
      growing: Map[String, Growth]
  ): PortableRelation = {
    val rows = relation.rows.map(atMost(_, factor))
    relation.copy(
      bytes = math.min(most, relation.bytes * factor),
      files = relation.files.map(files => math.max(math.min(1.0, files), files * factor)),
      rows = rows,
      bound = relation.bound.map(bound => math.min(most, bound * factor)),
      columns = relation.columns.map { case (name, column) =>
        val grown = growing.get(name).fold(column)(growth => stretched(column, growth.factor))
        // Values are at most one a row, which matters where rows become fewer.
        val distinct = for (values <- grown.distinct) yield rows.fold(values)(count =>
          if (values.value <= count.value) values else values.copy(value = count.value)
        )
        name -> (if (factor == 1.0 && !growing.get(name).exists(_.factor != 1.0)) column
                 else derived(grown.copy(distinct = distinct)))
      }
    )
  }

  private def atMost(number: Quantity, factor: Double) =
    if (factor == 1.0) number
    else {
      val grown = PortableRelation.derived(number, factor)
      grown.copy(value = math.min(most, grown.value))
    }

  // As PlanEstimate.most: products stay finite.
  private val most = 1e18

  private def stretched(column: PortableColumn, factor: Double): PortableColumn =
    column.copy(
      distinct = column.distinct.map(number => number.copy(value = number.value * factor)),
      max = for (low <- column.min; high <- column.max) yield high.copy(value =
        math.max(low.value, low.value + (high.value - low.value + 1) * factor - 1)
      ),
      frequent = if (factor > 1.0) Nil else column.frequent,
      quantiles = for (
        low <- column.min; spread <- column.quantiles;
        wider <- spread.moved(place =>
          low.value + (place - low.value) * factor
        )
      ) yield wider
    )

  /** The shares and values stay, but of rows that nobody has seen. */
  private def derived(column: PortableColumn): PortableColumn = {
    def asDerived(number: Option[Quantity]) =
      number.map(PortableRelation.derived(_, 1.0))
    column.copy(
      nullFraction = asDerived(column.nullFraction),
      min = asDerived(column.min),
      max = asDerived(column.max),
      distinct = asDerived(column.distinct),
      averageBytes = asDerived(column.averageBytes)
    )
  }
}
