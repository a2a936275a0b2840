package io.selinger.exec.decimals

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, DecimalType}

/** Arithmetic of decimals. */
final case class ComputeInLongs(inputs: Seq[Expression], tree: Expression, raises: Boolean)
    extends InLongs {

  @transient lazy val formula: Formula = Formula
    .of(tree)
    .getOrElse(throw new IllegalStateException(s"no arithmetic that fits longs: $tree"))

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (precision, scale) = ComputeInLongs.digits(dataType)
    val create = if (precision <= 18) "createUnsafe" else "apply"
    val code = longCode(ctx, ev.isNull, decimal => s"${ev.value} = $decimal;") { code =>
      val value = code.emit(formula)
      code.add(s"${ev.value} = Decimal.$create($value, $precision, $scale);")
    }
    ev.copy(code = code"""
      boolean ${ev.isNull} = true;
      Decimal ${ev.value} = null;
      $code""")
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): ComputeInLongs = copy(inputs = newChildren)
}

object ComputeInLongs {

  private[decimals] def digits(dataType: DataType): (Int, Int) = dataType match {
    case decimal: DecimalType => (decimal.precision, decimal.scale)
    case other => throw new IllegalStateException(s"not a decimal: ${other.sql}")
  }
}

/** A comparison of decimals. */
final case class CompareInLongs(inputs: Seq[Expression], tree: Expression, raises: Boolean)
    extends InLongs
    with Predicate {

  @transient private lazy val comparison: Comparison = Comparison
    .of(tree)
    .getOrElse(throw new IllegalStateException(s"no comparison that fits longs: $tree"))

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val code = longCode(ctx, ev.isNull, result => s"${ev.value} = $result;") { code =>
      code.add(s"${ev.value} = ${code.emit(comparison)};")
    }
    ev.copy(code = code"""
      boolean ${ev.isNull} = true;
      boolean ${ev.value} = false;
      $code""")
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): CompareInLongs = copy(inputs = newChildren)
}
