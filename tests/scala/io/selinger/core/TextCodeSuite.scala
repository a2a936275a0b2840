package io.selinger.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen.GenerateUnsafeProjection
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types.{ArrayType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite

/** Codes of texts, interpreted and in generated code. */
class TextCodeSuite extends AnyFunSuite {

  private val texts =
    Seq("", " ", "A", "a", "a ", "aa", "z", "ä", "\uD83D\uDE00").map(UTF8String.fromString)
  private val dictionary =
    Literal.create(
      new GenericArrayData(texts.toArray[Any]),
      ArrayType(StringType, containsNull = false)
    )
  private val text = BoundReference(0, StringType, nullable = true)
  private val code = TextCode(dictionary, text)
  private val both = CodedText(dictionary, code)

  private def values(row: InternalRow): Seq[(Any, Any)] = {
    val generated = GenerateUnsafeProjection.generate(Seq(code, both))(row)
    Seq(
      (code.eval(row), both.eval(row)),
      if (generated.isNullAt(0))
        (null, if (generated.isNullAt(1)) null else generated.getUTF8String(1))
      else (generated.getInt(0), generated.getUTF8String(1))
    )
  }

  test("each text has its place as its code, and comes back") {
    for ((one, place) <- texts.zipWithIndex)
      assert(values(InternalRow(one)) == Seq.fill(2)((place, one)))
  }

  test("null has the code null") {
    assert(values(InternalRow(null)) == Seq.fill(2)((null, null)))
    assert(code.nullable && !TextCode(dictionary, text.copy(nullable = false)).nullable)
  }

  test("codes compare as their texts do") {
    for (one <- texts; other <- texts) {
      val codes = Seq(one, other).map(each => code.eval(InternalRow(each)).asInstanceOf[Int])
      assert(math.signum(codes.head.compareTo(codes.last)) == math.signum(one.compareTo(other)))
    }
  }

  test("a text that is not in the dictionary is an error that says what to do") {
    for (unknown <- Seq("!", "b", "zz")) {
      val error =
        intercept[IllegalStateException](code.eval(InternalRow(UTF8String.fromString(unknown))))
      assert(error.getMessage.contains(s"'$unknown'"))
      assert(error.getMessage.contains("Run the query again"))
    }
  }

  test("a dictionary may be empty") {
    val none = Literal.create(new GenericArrayData(Array.empty[Any]), dictionary.dataType)
    assert(TextCode(none, text).eval(InternalRow(null)) == null)
    intercept[IllegalStateException](TextCode(none, text).eval(InternalRow(texts.head)))
  }
}
