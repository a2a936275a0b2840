package io.selinger.core

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.CollectSet
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types.{DataType, IntegerType, StringType}
import org.apache.spark.unsafe.types.UTF8String
import scala.annotation.tailrec

/** An expression that has as many values as another one: equal where that is equal, null where it is null. */
trait OneToOne extends Expression {
  def value: Expression
}

/** Looks a value up in a dictionary: an array of all texts, sorted by their bytes, without nulls. */
sealed abstract class DictionaryLookup extends BinaryExpression with OneToOne {

  def dictionary: Expression

  /** Generated code for a value that is not null. */
  protected def found(texts: ExprValue, value: ExprValue): String

  override def left: Expression = dictionary
  override def right: Expression = value
  // The dictionary is no null.
  override def nullable: Boolean = value.nullable

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val texts = dictionary.genCode(ctx)
    val known = value.genCode(ctx)
    val kind = CodeGenerator.javaType(dataType)
    ev.copy(code = code"""
      ${known.code}
      boolean ${ev.isNull} = ${known.isNull};
      $kind ${ev.value} = ${CodeGenerator.defaultValue(dataType)};
      if (!${ev.isNull}) {
        ${texts.code}
        ${ev.value} = ${found(texts.value, known.value)};
      }""")
  }
}

/**
 * The place of a text in a dictionary. So codes compare as their texts do. Raises an error for a text that is
 * not in it.
 */
final case class TextCode(dictionary: Expression, value: Expression) extends DictionaryLookup {

  override def dataType: DataType = IntegerType
  override def prettyName: String = "text_code"

  override def eval(row: InternalRow): Any = value.eval(row) match {
    case text: UTF8String =>
      TextDictionary.placeOf(text, dictionary.eval(row).asInstanceOf[ArrayData])
    case _ => null
  }

  override protected def found(texts: ExprValue, value: ExprValue): String =
    s"io.selinger.core.TextDictionary.placeOf($value, $texts)"

  override protected def withNewChildrenInternal(left: Expression, right: Expression): TextCode =
    copy(dictionary = left, value = right)
}

/** The text that has a code in a dictionary: see [[TextCode]]. */
final case class CodedText(dictionary: Expression, value: Expression) extends DictionaryLookup {

  override def dataType: DataType = StringType
  override def prettyName: String = "coded_text"

  override def eval(row: InternalRow): Any = value.eval(row) match {
    case code: Int => dictionary.eval(row).asInstanceOf[ArrayData].getUTF8String(code)
    case _ => null
  }

  override protected def found(texts: ExprValue, value: ExprValue): String =
    s"$texts.getUTF8String($value)"

  override protected def withNewChildrenInternal(left: Expression, right: Expression): CodedText =
    copy(dictionary = left, value = right)
}

/** Dictionaries of texts: see [[TextCode]]. */
object TextDictionary {

  /** The texts of all rows. */
  def of(text: Expression): Expression =
    SortArray(CollectSet(text).toAggregateExpression(), Literal.TrueLiteral)

  /** The place of a text in a dictionary. Called from generated code. */
  def placeOf(text: UTF8String, dictionary: ArrayData): Int = {
    @tailrec
    def between(from: Int, to: Int): Int =
      if (from > to) throw new IllegalStateException(unknown(text))
      else {
        val middle = (from + to) >>> 1
        val order = dictionary.getUTF8String(middle).binaryCompare(text)
        if (order == 0) middle
        else if (order < 0) between(middle + 1, to)
        else between(from, middle - 1)
      }
    between(0, dictionary.numElements() - 1)
  }

  private def unknown(text: UTF8String): String =
    s"The text '$text' was not there when its table was read for the first time in this query, so the files " +
      "of the table have been changed since. Run the query again. To have such tables read only once, set " +
      "spark.selinger.codeGroupedTexts.enabled to false."
}
