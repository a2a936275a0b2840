package io.selinger.rule

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._

/** A condition that a column is in given ranges: null just where the column is null. */
private[rule] object ColumnPredicate {

  // Spark compares more values by a set, and a condition must be read by people.
  private val mostRanges = 16

  /** None where all values or no value are wanted, where boundaries cannot be written, or for many ranges. */
  def of(known: ColumnRanges): Option[Expression] = {
    val (column, ranges) = (known.column, known.ranges.ranges)
    val parts = ranges.map(of(column, _))
    Option.when(ranges.nonEmpty && ranges.size <= mostRanges && parts.forall(_.isDefined))(
      parts.flatten.reduceLeft(Or(_, _))
    )
  }

  private def of(column: Attribute, range: ValueRange): Option[Expression] = {
    val kind = column.dataType
    CountedType.domain(kind).flatMap { all =>
      // Of days and times, people write the first that is not wanted.
      val isTime = kind match {
        case DateType | TimestampType | TimestampNTZType => true
        case _ => false
      }
      if (range.low == range.high) {
        CountedType.literal(range.low, kind).map(EqualTo(column, _))
      } else {
        val low = Option.when(range.low > all.low)(
          CountedType.literal(range.low, kind).map(GreaterThanOrEqual(column, _))
        )
        val high = Option.when(range.high < all.high)(
          if (isTime) CountedType.literal(range.high + 1, kind).map(LessThan(column, _))
          else CountedType.literal(range.high, kind).map(LessThanOrEqual(column, _))
        )
        val ends = low.toSeq ++ high
        Option.when(
          ends.nonEmpty && ends.forall(_.isDefined)
        )(ends.flatten.reduceLeft[Expression](And(_, _)))
      }
    }
  }
}
