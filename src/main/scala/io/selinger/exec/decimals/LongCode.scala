package io.selinger.exec.decimals

import io.selinger.exec.decimals.Formula._
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext
import org.apache.spark.sql.types.DecimalType
import scala.collection.mutable

/**
 * Java code that computes formulas in longs. It checks only what their bounds do not rule out, and runs
 * `leave` for a row whose values do not fit.
 *
 * @param inputs Java expressions of the inputs, by number; none of them is null where the code runs
 */
final class LongCode(ctx: CodegenContext, inputs: Seq[String], leave: String) {
  private val lines = mutable.ArrayBuffer.empty[String]

  /** All code added so far. */
  def text: String = lines.mkString("\n")

  def add(line: String): Unit = lines += line

  private def define(what: String): String = {
    val name = ctx.freshName("unscaled")
    add(s"final long $name = $what;")
    name
  }

  private def leaveIf(condition: String): Unit = add(s"if ($condition) { $leave }")

  /** Adds the code of a formula; the Java expression of its unscaled value. */
  def emit(formula: Formula): String = formula match {
    case input: Input => emitInput(input)
    case Constant(unscaled, _, _) => literal(BigInt(unscaled))
    case Negated(value) =>
      val child = emit(value)
      if (value.bound > MaxLong) leaveIf(s"$child == Long.MIN_VALUE")
      define(s"-$child")
    case rescaled: Rescaled => emitRescaled(rescaled)
    case sum: Sum => emitSum(sum)
    case Product(left, right) =>
      val (l, r) = (emit(left), emit(right))
      val product = define(s"$l * $r")
      if (left.bound * right.bound > MaxLong) {
        leaveIf(s"Math.multiplyHigh($l, $r) != $product >> 63")
      }
      product
    case quotient: Quotient => emitQuotient(quotient)
  }

  /** Adds the code of both sides of a comparison; the Java expression of its result. */
  def emit(comparison: Comparison): String = {
    val (l, r) = (emit(comparison.left), emit(comparison.right))
    s"$l ${comparison.operator} $r"
  }

  private def emitInput(input: Input): String = {
    val value = inputs(input.number)
    input.dataType match {
      case _: DecimalType if input.precision <= 18 =>
        leaveIf(s"$value.scale() != ${input.scale}")
        define(s"$value.toUnscaledLong()")
      case _: DecimalType =>
        val long = define(s"${LongCode.int128}.unscaledLong($value, ${input.scale})")
        leaveIf(s"$long == ${LongCode.int128}.DOES_NOT_FIT")
        long
      case _ => define(s"(long) $value")
    }
  }

  private def emitRescaled(rescaled: Rescaled): String = {
    val value = rescaled.value
    val child = emit(value)
    val up = rescaled.scale - value.scale
    val result =
      if (up == 0) child
      else if (up > 0) {
        if (value.bound * power(up) > MaxLong) {
          val limit = literal(MaxLong / power(up))
          leaveIf(s"$child > $limit || $child < -$limit")
        }
        define(s"$child * ${literal(power(up))}")
      } else emitRounded(child, literal(power(-up)), s"$child < 0L")
    if (rescaled.precision <= 18 && rescaled.bound >= power(rescaled.precision)) {
      val limit = literal(power(rescaled.precision))
      leaveIf(s"$result >= $limit || $result <= -$limit")
    }
    result
  }

  private def emitSum(sum: Sum): String = {
    val (l, r) = (emit(sum.left), emit(sum.right))
    val result = define(if (sum.subtracts) s"$l - $r" else s"$l + $r")
    if (sum.left.bound + sum.right.bound > MaxLong) {
      // As in Math.addExact and subtractExact, without their exceptions.
      leaveIf(
        if (sum.subtracts) s"(($l ^ $r) & ($l ^ $result)) < 0L"
        else s"(($l ^ $result) & ($r ^ $result)) < 0L"
      )
    }
    result
  }

  private def emitQuotient(quotient: Quotient): String = {
    val (dividend, divisor) = (emit(quotient.dividend), emit(quotient.divisor))
    quotient.divisor match {
      case _: Constant => ()
      case other =>
        leaveIf(s"$divisor == 0L")
        if (other.bound > MaxLong) leaveIf(s"$divisor == Long.MIN_VALUE")
    }
    if (quotient.dividend.bound > MaxLong) leaveIf(s"$dividend == Long.MIN_VALUE")
    emitRounded(dividend, divisor, s"($dividend ^ $divisor) < 0L")
  }

  /** A quotient rounded half up, away from zero: it grows by one where the rest is half or more. */
  private def emitRounded(dividend: String, divisor: String, isNegative: String): String = {
    val rest = define(s"Math.abs($dividend % $divisor)")
    define(
      s"$dividend / $divisor + " +
        s"($rest >= Math.abs($divisor) - $rest ? ($isNegative ? -1L : 1L) : 0L)"
    )
  }

  private def literal(value: BigInt): String = if (value < 0) s"(${value}L)" else s"${value}L"
}

object LongCode {
  val int128: String = classOf[Int128].getName
}
