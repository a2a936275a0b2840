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

/** The upper half of a sum of 128 bits after one more value; nulls are passed over. */
final case class AddHigh(high: Expression, low: Expression, value: Expression)
    extends TernaryExpression {
  override def first: Expression = high
  override def second: Expression = low
  override def third: Expression = value
  override def dataType: DataType = LongType
  override def nullable: Boolean = false

  override def eval(row: InternalRow): Any =
    (high.eval(row), low.eval(row), value.eval(row)) match {
      case (h: Long, l: Long, added: Int128) => Int128.addHigh(h, l, added.high, added.low)
      case (h, _, _) => h
    }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (h, l, added) = (high.genCode(ctx), low.genCode(ctx), value.genCode(ctx))
    val sum = s"${LongCode.int128}.addHigh(${h.value}, ${l.value}, " +
      s"${added.value}.high(), ${added.value}.low())"
    ev.copy(
      code = code"""
      ${h.code}
      ${l.code}
      ${added.code}
      final long ${ev.value} = ${added.isNull} ? ${h.value} : $sum;""",
      isNull = FalseLiteral
    )
  }

  override protected def withNewChildrenInternal(
      newFirst: Expression,
      newSecond: Expression,
      newThird: Expression
  ): AddHigh = copy(high = newFirst, low = newSecond, value = newThird)
}

/** The upper half of the sum of two sums of 128 bits. */
final case class MergeHigh(
    high: Expression,
    low: Expression,
    otherHigh: Expression,
    otherLow: Expression
) extends QuaternaryExpression {
  override def first: Expression = high
  override def second: Expression = low
  override def third: Expression = otherHigh
  override def fourth: Expression = otherLow
  override def dataType: DataType = LongType
  override def nullable: Boolean = false

  override protected def nullSafeEval(h: Any, l: Any, otherH: Any, otherL: Any): Any =
    (h, l, otherH, otherL) match {
      case (a: Long, b: Long, c: Long, d: Long) => Int128.addHigh(a, b, c, d)
      case other => throw new IllegalStateException(s"not four longs: $other")
    }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    defineCodeGen(
      ctx,
      ev,
      (h, l, otherH, otherL) =>
        s"${LongCode.int128}.addHigh($h, $l, $otherH, $otherL)"
    )

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
