package io.selinger.exec.decimals

import io.selinger.exec.decimals.Formula.Product
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types._

/**
 * The unscaled value of a decimal as an [[Int128]], for expressions of generated code only: it is never
 * a column. Each piece of generated code has an object of its own, which serves all rows.
 */
final case class ToInt128(child: Expression) extends UnaryExpression {
  private def digits: (Int, Int) = ComputeInLongs.digits(child.dataType)

  override def dataType: DataType = ObjectType(classOf[Int128])
  override def nullable: Boolean = child.nullable

  override protected def nullSafeEval(value: Any): Any = value match {
    case decimal: Decimal =>
      val result = new Int128
      result.set(decimal, digits._2)
      result
    case other => throw new IllegalStateException(s"not a decimal: $other")
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val holder =
      ctx.addMutableState(LongCode.int128, "int128", name => s"$name = new ${LongCode.int128}();")
    val scale = digits._2
    def setDecimal(decimal: String) = s"$holder.set($decimal, $scale);"
    val code = child match {
      case computed: ComputeInLongs =>
        computed.longCode(ctx, ev.isNull, setDecimal) { code =>
          computed.formula match {
            case Product(left, right) =>
              code.add(s"$holder.setProduct(${code.emit(left)}, ${code.emit(right)});")
            case formula => code.add(s"$holder.set(${code.emit(formula)});")
          }
        }
      case other => ofValue(other.genCode(ctx), holder, ev.isNull)
    }
    ev.copy(code = code"""
      boolean ${ev.isNull} = true;
      final ${LongCode.int128} ${ev.value} = $holder;
      $code""")
  }

  private def ofValue(input: ExprCode, holder: String, isNull: ExprValue): Block = {
    val (precision, scale) = digits
    val set =
      if (precision > 18) s"$holder.set(${input.value}, $scale);"
      else
        s"""if (${input.value}.scale() == $scale) $holder.set(${input.value}.toUnscaledLong());
           |else $holder.set(${input.value}, $scale);""".stripMargin
    code"""
      ${input.code}
      if (!${input.isNull}) {
        $set
        $isNull = false;
      }"""
  }

  override protected def withNewChildInternal(newChild: Expression): ToInt128 =
    copy(child = newChild)
}

/** The decimal of an unscaled value of 128 bits; null where it has too many digits for its type. */
final case class FromInt128(high: Expression, low: Expression, dataType: DecimalType)
    extends BinaryExpression {
  override def left: Expression = high
  override def right: Expression = low
  override def nullable: Boolean = true

  override protected def nullSafeEval(h: Any, l: Any): Any = (h, l) match {
    case (upper: Long, lower: Long) =>
      Int128.toDecimal(upper, lower, dataType.precision, dataType.scale)
    case other => throw new IllegalStateException(s"not two longs: $other")
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    nullSafeCodeGen(
      ctx,
      ev,
      (h, l) =>
        s"""
        ${ev.value} = ${LongCode.int128}.toDecimal($h, $l, ${dataType.precision}, ${dataType.scale});
        ${ev.isNull} = ${ev.value} == null;"""
    )

  override protected def withNewChildrenInternal(
      newLeft: Expression,
      newRight: Expression
  ): FromInt128 = copy(high = newLeft, low = newRight)
}
