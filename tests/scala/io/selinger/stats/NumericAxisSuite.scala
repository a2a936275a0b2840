package io.selinger.stats

import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

class NumericAxisSuite extends AnyFunSuite {

  test("numbers, days, microseconds and flags have a place") {
    Seq[(Any, DataType, Double)](
      (5.toByte, ByteType, 5),
      (5.toShort, ShortType, 5),
      (5, IntegerType, 5),
      (5, DateType, 5),
      (5L, LongType, 5),
      (5L, TimestampType, 5),
      (5L, TimestampNTZType, 5),
      (2.5f, FloatType, 2.5),
      (2.5, DoubleType, 2.5),
      (Decimal("2.5"), DecimalType(3, 1), 2.5),
      (true, BooleanType, 1),
      (false, BooleanType, 0)
    ).foreach { case (value, kind, place) =>
      assert(NumericAxis.place(value, kind).contains(place), kind)
    }
  }

  test("null, NaN and text have none") {
    assert(NumericAxis.place(null, IntegerType).isEmpty)
    assert(NumericAxis.place(Double.NaN, DoubleType).isEmpty)
    assert(NumericAxis.place(Float.NaN, FloatType).isEmpty)
    assert(NumericAxis.place(UTF8String.fromString("5"), StringType).isEmpty)
  }

  test("discrete types have as many values as steps, others any number") {
    assert(NumericAxis.domain(1, 10, IntegerType).contains(10.0))
    assert(NumericAxis.domain(0, 1, BooleanType).contains(2.0))
    assert(NumericAxis.domain(0, 1, DecimalType(5, 2)).contains(101.0))
    assert(NumericAxis.domain(1, 10, DoubleType).isEmpty)
    assert(NumericAxis.domain(1, 10, TimestampType).isEmpty)
    assert(NumericAxis.domain(10, 1, IntegerType).isEmpty)
  }
}
