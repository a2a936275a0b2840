package io.selinger.stats

import org.apache.spark.sql.types._

/** Where values lie on the axis of [[ColumnStatistics]]. */
object NumericAxis {

  /** The place of a Catalyst value of type `kind`; none for nulls and for types without an axis. */
  def place(value: Any, kind: DataType): Option[Double] = kind match {
    case ByteType | ShortType | IntegerType | DateType | LongType | TimestampType |
        TimestampNTZType | FloatType | DoubleType | BooleanType | _: DecimalType =>
      place(value)
    case _ => None
  }

  /** Whether values are whole numbers. */
  def isWhole(kind: DataType): Boolean = kind match {
    case ByteType | ShortType | IntegerType | LongType => true
    case _ => false
  }

  /** The place of a Catalyst value whose column is known to have an axis. */
  def place(value: Any): Option[Double] = value match {
    case number: Byte => Some(number.toDouble)
    case number: Short => Some(number.toDouble)
    case number: Int => Some(number.toDouble)
    case number: Long => Some(number.toDouble)
    case number: Float => Some(number.toDouble).filterNot(_.isNaN)
    case number: Double => Some(number).filterNot(_.isNaN)
    case number: Decimal => Some(number.toDouble)
    case flag: Boolean => Some(if (flag) 1.0 else 0.0)
    case _ => None
  }

  /**
   * Most distinct values that a column of this type can have between `min` and `max`: whole steps
   * for discrete types, unknown for continuous ones.
   */
  def domain(min: Double, max: Double, kind: DataType): Option[Double] = {
    val steps = kind match {
      case ByteType | ShortType | IntegerType | LongType | DateType | BooleanType => Some(max - min)
      case decimal: DecimalType => Some((max - min) * math.pow(10, decimal.scale.toDouble))
      case _ => None
    }
    steps.map(_ + 1.0).filter(_ >= 1.0)
  }
}
