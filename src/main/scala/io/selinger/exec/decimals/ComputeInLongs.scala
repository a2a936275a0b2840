package io.selinger.exec.decimals

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.{DataType, DecimalType}

/**
 * Arithmetic of decimals that is computed in longs for each row whose values fit, and by Spark's own
 * code for all others: too large values, overflow, division by zero. So results, nulls and errors are
 * Spark's.
 *
 * Only the inputs are children. Spark must not see the operators between them: it would compute those
 * that occur twice in advance, as objects.
 *
 * @param inputs what the arithmetic reads; each must give no error, since all are evaluated first
 * @param tree the arithmetic, whose inputs are bound by number
 */
final case class ComputeInLongs(inputs: Seq[Expression], tree: Expression) extends Expression {

  override def children: Seq[Expression] = inputs
  override def dataType: DataType = tree.dataType
  override def nullable: Boolean = tree.nullable || inputs.exists(_.nullable)
  override def sql: String = unbound.sql
  override def toString: String = unbound.toString

  @transient lazy val formula: Formula = Formula
    .of(tree)
    .getOrElse(throw new IllegalStateException(s"no arithmetic that fits longs: $tree"))

  /** The arithmetic as it was before. */
  private def unbound: Expression = tree.transform { case input: BoundReference =>
    inputs(input.ordinal)
  }

  override def eval(row: InternalRow): Any = {
    val values = new Array[Any](inputs.length)
    val isComplete = inputs.indices.forall { i =>
      values(i) = inputs(i).eval(row)
      values(i) != null
    }
    if (isComplete) tree.eval(new GenericInternalRow(values)) else null
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val (precision, scale) = ComputeInLongs.digits(dataType)
    val create = if (precision <= 18) "createUnsafe" else "apply"
    val code = rowCode(ctx, ev.isNull)(
      formula,
      value => s"${ev.value} = Decimal.$create($value, $precision, $scale);",
      decimal => s"${ev.value} = $decimal;"
    )
    ev.copy(code = code"""
      boolean ${ev.isNull} = true;
      Decimal ${ev.value} = null;
      $code""")
  }

  /**
   * Code for one row. It sets `isNull` to false where there is a result, and hands this to one of two
   * pieces of code.
   *
   * @param compute what is computed in longs: the formula, or the part of it that must fit
   * @param fits code that uses the result as a long
   * @param other code that uses the result as a decimal
   */
  private def rowCode(ctx: CodegenContext, isNull: ExprValue)(
      compute: Formula,
      fits: String => String,
      other: String => String
  ): Block = longCode(ctx, isNull, other) { code => code.add(fits(code.emit(compute))) }

  /** As above, where the code of a fitting row is written by `body`. */
  private[decimals] def longCode(ctx: CodegenContext, isNull: ExprValue, other: String => String)(
      body: LongCode => Unit
  ): Block = {
    val evaluated = inputs.map(_.genCode(ctx))
    val left = ctx.freshName("left")
    val result = ctx.freshName("bySpark")
    val code = new LongCode(ctx, evaluated.map(_.value.toString), s"$left = true; break;")
    body(code)
    val spark = sparkCode(ctx)
    val arguments = evaluated.map(_.value.toString).mkString(", ")
    val computed = code"""
      boolean $left = false;
      do {
        ${code.text}
        $isNull = false;
      } while (false);
      if ($left) {
        final Decimal $result = $spark($arguments);
        if ($result != null) {
          ${other(result)}
          $isNull = false;
        }
      }"""
    evaluated.zip(inputs).foldRight(computed: Block) { case ((input, expression), inner) =>
      if (expression.nullable) code"""
        ${input.code}
        if (!${input.isNull}) {
          $inner
        }"""
      else code"""
        ${input.code}
        $inner"""
    }
  }

  /** A function with Spark's own code for the same arithmetic; its name. */
  private def sparkCode(ctx: CodegenContext): String = {
    val parameters = inputs.map(input =>
      JavaCode.variable(ctx.freshName("input"), CodeGenerator.javaClass(input.dataType))
    )
    val parameterized = tree.transform { case input: BoundReference =>
      EvaluatedInput(parameters(input.ordinal), input.dataType)
    }
    // Else long code would be moved to functions that know the row but not these parameters.
    val row = ctx.INPUT_ROW
    ctx.INPUT_ROW = null
    val generated =
      try parameterized.genCode(ctx)
      finally ctx.INPUT_ROW = row
    val name = ctx.freshName("decimalBySpark")
    val declared = parameters
      .zip(inputs)
      .map { case (parameter, input) => s"${CodeGenerator.javaType(input.dataType)} $parameter" }
      .mkString(", ")
    ctx.addNewFunction(
      name,
      s"""
         |private Decimal $name($declared) {
         |  ${generated.code}
         |  return ${generated.isNull} ? null : ${generated.value};
         |}
       """.stripMargin
    )
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

/** An input whose value a Java variable holds already, and which is not null. */
private[decimals] final case class EvaluatedInput(variable: ExprValue, dataType: DataType)
    extends LeafExpression {
  override def nullable: Boolean = false
  override def eval(row: InternalRow): Any = throw new UnsupportedOperationException(
    "an evaluated input exists in generated code only"
  )
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode =
    ExprCode(EmptyBlock, FalseLiteral, variable)
}
