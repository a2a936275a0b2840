package io.selinger.exec.decimals

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types.DataType

/**
 * What a query computes from decimals, in longs for each row whose values fit, and by Spark's own code
 * for all others: too large values, overflow, division by zero. So results, nulls and errors are Spark's.
 *
 * Only the inputs are children. Spark must not see the operators between them: it would compute those
 * that occur twice in advance, as objects.
 */
trait InLongs extends Expression {

  /** What is read. It must raise no errors, since all of it is evaluated first. */
  def inputs: Seq[Expression]

  /** What is computed, as Spark does, whose inputs are bound by number. */
  def tree: Expression

  /**
   * Whether computing it can raise an error. If not, a null input makes the result null; if it can, Spark
   * decides which of the two comes first.
   */
  def raises: Boolean

  override def children: Seq[Expression] = inputs
  override def dataType: DataType = tree.dataType
  override def nullable: Boolean = unbound.nullable
  override def sql: String = unbound.sql
  override def toString: String = unbound.toString

  /** The tree as it was before. */
  private def unbound: Expression = over(inputs(_))

  /** The tree over other inputs. Upwards, since these may have numbers of their own. */
  private def over(input: Int => Expression): Expression =
    tree.transformUp { case bound: BoundReference => input(bound.ordinal) }

  override def eval(row: InternalRow): Any =
    tree.eval(new GenericInternalRow(inputs.map(_.eval(row)).toArray[Any]))

  /**
   * Code for one row, which sets `isNull` to false where there is a result.
   *
   * @param other code that uses a result of Spark's, given as a Java variable
   * @param fits adds the code for a row whose values fit
   */
  private[decimals] def longCode(ctx: CodegenContext, isNull: ExprValue, other: String => String)(
      fits: LongCode => Unit
  ): Block = {
    val evaluated = inputs.map(_.genCode(ctx))
    val bySpark = ctx.freshName("bySpark")
    val result = ctx.freshName("result")
    val code = new LongCode(ctx, evaluated.map(_.value.toString), s"$bySpark = true; break;")
    fits(code)
    val missing = evaluated.zip(inputs).collect {
      case (value, input) if input.nullable =>
        value.isNull.toString
    }
    val isComplete = if (missing.isEmpty) "true" else missing.mkString("!(", " || ", ")")
    val boxed = CodeGenerator.boxedType(dataType)
    val spark = sparkCode(ctx, boxed)
    val arguments = evaluated.flatMap(input => Seq(input.value, input.isNull)).mkString(", ")
    code"""
      ${evaluated.map(_.code).foldLeft(code"")((before, next) => code"$before\n$next")}
      boolean $bySpark = ${if (raises) s"!($isComplete)" else "false"};
      if ($isComplete) {
        do {
          ${code.text}
          $isNull = false;
        } while (false);
      }
      if ($bySpark) {
        final $boxed $result = $spark($arguments);
        if ($result != null) {
          ${other(result)}
          $isNull = false;
        }
      }"""
  }

  /** A function with Spark's own code for the same tree, whose result is null or an object of type `boxed`; its name. */
  private def sparkCode(ctx: CodegenContext, boxed: String): String = {
    val parameters = inputs.map(input =>
      ExprCode(
        JavaCode.isNullVariable(ctx.freshName("isNull")),
        JavaCode.variable(ctx.freshName("input"), CodeGenerator.javaClass(input.dataType))
      )
    )
    val parameterized =
      over(i => EvaluatedInput(parameters(i), inputs(i).dataType, inputs(i).nullable))
    // Else long code would be moved to functions that know the row but not these parameters.
    val row = ctx.INPUT_ROW
    ctx.INPUT_ROW = null
    val generated =
      try parameterized.genCode(ctx)
      finally ctx.INPUT_ROW = row
    val declared = parameters.zip(inputs).map { case (parameter, input) =>
      s"${CodeGenerator.javaType(input.dataType)} ${parameter.value}, boolean ${parameter.isNull}"
    }
    val name = ctx.freshName("decimalBySpark")
    ctx.addNewFunction(
      name,
      s"""
         |private $boxed $name(${declared.mkString(", ")}) {
         |  ${generated.code}
         |  return ${generated.isNull} ? null : ${generated.value};
         |}
       """.stripMargin
    )
  }
}

/** An input whose value Java variables hold already. */
private[decimals] final case class EvaluatedInput(
    variables: ExprCode,
    dataType: DataType,
    nullable: Boolean
) extends LeafExpression {
  override def eval(row: InternalRow): Any = throw new UnsupportedOperationException(
    "an evaluated input exists in generated code only"
  )
  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = variables
}
