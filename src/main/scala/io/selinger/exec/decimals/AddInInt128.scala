package io.selinger.exec.decimals

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types._

/** The lower half of a sum of 128 bits after one more value; nulls are passed over. */
final case class AddLow(low: Expression, value: Expression) extends BinaryExpression {
  override def left: Expression = low
  override def right: Expression = value
  override def dataType: DataType = LongType
  override def nullable: Boolean = false

  override def eval(row: InternalRow): Any = (low.eval(row), value.eval(row)) match {
    case (sum: Long, added: Int128) => sum + added.low
    case (sum, _) => sum
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (sum, added) = (low.genCode(ctx), value.genCode(ctx))
    val result = s"${added.isNull} ? ${sum.value} : ${sum.value} + ${added.value}.low()"
    ev.copy(
      code = code"""
      ${sum.code}
      ${added.code}
      final long ${ev.value} = $result;""",
      isNull = FalseLiteral
    )
  }

  override protected def withNewChildrenInternal(
      newLeft: Expression,
      newRight: Expression
  ): AddLow = copy(low = newLeft, value = newRight)
}

/**
 * The upper half of a sum of 128 bits after one more value; nulls are passed over. With `checks`, it
 * is null once the sum has more than 38 digits, and stays so.
 */
final case class AddHigh(high: Expression, low: Expression, value: Expression, checks: Boolean)
    extends TernaryExpression {
  override def first: Expression = high
  override def second: Expression = low
  override def third: Expression = value
  override def dataType: DataType = LongType
  override def nullable: Boolean = checks

  override def eval(row: InternalRow): Any =
    (high.eval(row), low.eval(row), value.eval(row)) match {
      case (sumHigh: Long, sumLow: Long, added: Int128) =>
        val result = Int128.addHigh(sumHigh, sumLow, added.high, added.low)
        if (checks && Int128.exceeds(sumHigh, added.high, result, sumLow + added.low)) null
        else result
      case (sumHigh, _, _) => sumHigh
    }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (h, l, added) = (high.genCode(ctx), low.genCode(ctx), value.genCode(ctx))
    AddHigh.code(
      ev,
      code"${h.code}\n${l.code}\n${added.code}",
      h,
      s"!${added.isNull}",
      (h.value.toString, l.value.toString),
      (s"${added.value}.high()", s"${added.value}.low()"),
      checks
    )
  }

  override protected def withNewChildrenInternal(
      newFirst: Expression,
      newSecond: Expression,
      newThird: Expression
  ): AddHigh = copy(high = newFirst, low = newSecond, value = newThird)
}

object AddHigh {

  /** Code that adds where `adds` holds and the sum is not null already. */
  private[decimals] def code(
      ev: ExprCode,
      inputs: Block,
      high: ExprCode,
      adds: String,
      sum: (String, String),
      added: (String, String),
      checks: Boolean
  ): ExprCode = {
    val int128 = LongCode.int128
    val (addedHigh, addedLow) = added
    val addition = s"$int128.addHigh(${sum._1}, ${sum._2}, $addedHigh, $addedLow)"
    if (!checks) {
      ev.copy(
        code = code"""
          $inputs
          final long ${ev.value} = $adds ? $addition : ${sum._1};""",
        isNull = FalseLiteral
      )
    } else {
      val low = s"${sum._2} + $addedLow"
      ev.copy(code = code"""
        $inputs
        boolean ${ev.isNull} = ${high.isNull};
        long ${ev.value} = ${sum._1};
        if (!${ev.isNull} && $adds) {
          ${ev.value} = $addition;
          ${ev.isNull} = $int128.exceeds(${sum._1}, $addedHigh, ${ev.value}, $low);
        }""")
    }
  }
}

/** The upper half of the sum of two sums of 128 bits; `checks` as in [[AddHigh]]. */
final case class MergeHigh(
    high: Expression,
    low: Expression,
    otherHigh: Expression,
    otherLow: Expression,
    checks: Boolean
) extends QuaternaryExpression {
  override def first: Expression = high
  override def second: Expression = low
  override def third: Expression = otherHigh
  override def fourth: Expression = otherLow
  override def dataType: DataType = LongType
  override def nullable: Boolean = checks

  override def eval(row: InternalRow): Any = children.map(_.eval(row)) match {
    case Seq(h: Long, l: Long, oh: Long, ol: Long) =>
      val result = Int128.addHigh(h, l, oh, ol)
      if (checks && Int128.exceeds(h, oh, result, l + ol)) null else result
    case _ => null
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (h, l) = (high.genCode(ctx), low.genCode(ctx))
    val (oh, ol) = (otherHigh.genCode(ctx), otherLow.genCode(ctx))
    val other = h.copy(isNull = JavaCode.isNullExpression(s"(${h.isNull} || ${oh.isNull})"))
    AddHigh.code(
      ev,
      code"${h.code}\n${l.code}\n${oh.code}\n${ol.code}",
      other,
      "true",
      (h.value.toString, l.value.toString),
      (oh.value.toString, ol.value.toString),
      checks
    )
  }

  override protected def withNewChildrenInternal(
      newFirst: Expression,
      newSecond: Expression,
      newThird: Expression,
      newFourth: Expression
  ): MergeHigh =
    copy(high = newFirst, low = newSecond, otherHigh = newThird, otherLow = newFourth)
}

/** The lower half of the sum of two sums of 128 bits. */
final case class MergeLow(low: Expression, otherLow: Expression) extends BinaryExpression {
  override def left: Expression = low
  override def right: Expression = otherLow
  override def dataType: DataType = LongType
  override def nullable: Boolean = false

  override protected def nullSafeEval(one: Any, other: Any): Any = (one, other) match {
    case (a: Long, b: Long) => a + b
    case _ => throw new IllegalStateException(s"not two longs: $one, $other")
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    defineCodeGen(ctx, ev, (one, other) => s"$one + $other")

  override protected def withNewChildrenInternal(
      newLeft: Expression,
      newRight: Expression
  ): MergeLow = copy(low = newLeft, otherLow = newRight)
}
