package io.selinger.stats.files

import org.apache.spark.sql.types.Decimal
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

/** Sampled values in little memory are still the values that were sampled. */
class SampledValuesSuite extends AnyFunSuite {

  private def text(value: String): UTF8String = UTF8String.fromString(value)

  private val columns: Seq[(String, Array[Any])] = Seq(
    "none" -> Array(),
    "nulls" -> Array(null, null),
    "long" -> Array(1L, null, Long.MinValue, Long.MaxValue, 1L),
    "int" -> Array(null, 7, Int.MinValue, 7),
    "double" -> Array(0.0, -0.0, Double.NaN, null, Double.NegativeInfinity),
    "float" -> Array(0.0f, -0.0f, Float.NaN, null),
    "boolean" -> Array(true, null, false),
    "text" -> Array(text("a"), null, text(""), text("a")),
    "binary" -> Array(Array[Byte](1), Array[Byte](1), null),
    "decimal" -> Array(Decimal("1.50"), null, Decimal("-0.25")),
    "decimals of several scales" -> Array(Decimal("1.50"), Decimal("1.5"), null, Decimal("1.505")),
    "wide decimal" -> Array(Decimal("12345678901234567890.5"), null, Decimal("1.5"))
  )

  // As Catalyst tells values apart: zeros by their sign, decimals by their digits.
  private def identity(value: Any): Any = value match {
    case decimal: Decimal => (decimal.toString, decimal.precision, decimal.scale)
    case bytes: Array[Byte] => bytes.toSeq
    case number: Double => java.lang.Double.doubleToRawLongBits(number)
    case number: Float => java.lang.Float.floatToRawIntBits(number)
    case other => other
  }

  columns.foreach { case (kind, values) =>
    test(s"the same values come out: $kind") {
      val kept = SampledValues.compact(values.clone())
      assert(kept.length == values.length)
      assert(kept.map(identity) == values.toSeq.map(identity))
      assert(kept.map(v => Option(v).map(_.getClass)) ==
        values.toSeq.map(v => Option(v).map(_.getClass)))
    }
  }

  test("numbers take little more than eight bytes, repeated texts a pointer") {
    assert(SampledValues.compact(Array.tabulate(1000)(_.toLong)).bytes < 9000)
    assert(SampledValues.compact(Array.tabulate(1000)(i =>
      text(s"category ${i % 10}")
    )).bytes < 9000)
    assert(SampledValues.compact(Array.tabulate(1000)(i => text(s"name $i"))).bytes > 60000)
  }

  test("a column of a few long texts is not short") {
    def chunk(length: Int) =
      SampledChunk.of(Array.fill[Any](100)(text("x" * length)), Array(), 100)
    assert(chunk(400).isShort && !chunk(4000).isShort)
    assert(chunk(4000).bytes < 6000)
  }
}
