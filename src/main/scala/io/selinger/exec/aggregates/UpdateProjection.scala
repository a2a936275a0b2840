package io.selinger.exec.aggregates

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.NoOp
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import scala.util.control.NonFatal

/**
 * A projection into a row of objects that copies text, arrays, maps and structs only where they change:
 * the maximum of a group is seldom another after a row. Spark's own copies each of them each time.
 *
 * What the target holds are copies, so a value that is the same object is the same value. Where Spark
 * evaluates without generated code, or code cannot be made, it is Spark's own projection.
 */
private[aggregates] object UpdateProjection {

  def create(expressions: Seq[Expression], input: Seq[Attribute]): MutableProjection = {
    val bound = BindReferences.bindReferences(expressions, AttributeSeq(input))
    val interpreted = SQLConf.get.getConf(SQLConf.CODEGEN_FACTORY_MODE).toString ==
      CodegenObjectFactoryMode.NO_CODEGEN.toString
    if (interpreted || !bound.exists(isCopied)) MutableProjection.create(bound)
    else {
      try generated(bound)
      catch { case NonFatal(_) => MutableProjection.create(bound) }
    }
  }

  private def isCopied(expression: Expression): Boolean = expression != NoOp &&
    (expression.dataType match {
      case _: StringType | _: ArrayType | _: MapType | _: StructType => true
      case _ => false
    })

  private def generated(expressions: Seq[Expression]): MutableProjection = {
    val context = new CodegenContext
    val fields = expressions.zipWithIndex.filterNot(_._1 == NoOp)
    val values = context.generateExpressions(
      fields.map(_._1),
      SQLConf.get.subexpressionEliminationEnabled
    )
    val common = context.subexprFunctionsCode
    // All values are computed before the first is stored: they read what the target holds.
    val (evaluations, stores) = fields
      .zip(values)
      .map { case ((expression, field), value) => evaluated(context, expression, field, value) }
      .unzip
    val body = CodeFormatter.stripOverlappingComments(
      new CodeAndComment(
        s"""
           |public java.lang.Object generate(Object[] references) {
           |  return new SpecificUpdate(references);
           |}
           |
           |class SpecificUpdate extends ${classOf[BaseMutableProjection].getName} {
           |  private Object[] references;
           |  private InternalRow $target;
           |  ${context.declareMutableStates()}
           |
           |  public SpecificUpdate(Object[] references) {
           |    this.references = references;
           |    ${context.initMutableStates()}
           |  }
           |
           |  public void initialize(int partitionIndex) {
           |    ${context.initPartition()}
           |  }
           |
           |  public ${classOf[BaseMutableProjection].getName} target(InternalRow row) {
           |    $target = row;
           |    return this;
           |  }
           |
           |  public InternalRow currentValue() {
           |    return $target;
           |  }
           |
           |  public java.lang.Object apply(java.lang.Object read) {
           |    InternalRow ${context.INPUT_ROW} = (InternalRow) read;
           |    $common
           |    ${context.splitExpressionsWithCurrentInputs(evaluations)}
           |    ${context.splitExpressionsWithCurrentInputs(stores)}
           |    return $target;
           |  }
           |
           |  ${context.declareAddedFunctions()}
           |}
           |""".stripMargin,
        context.getPlaceHolderToComments()
      )
    )
    val (made, _) = CodeGenerator.compile(body)
    made.generate(context.references.toArray) match {
      case projection: MutableProjection => projection
      case other => throw new IllegalStateException(s"generated: $other")
    }
  }

  private val target = "target"

  /** The code that computes a value, and the code that stores it. */
  private def evaluated(
      context: CodegenContext,
      expression: Expression,
      field: Int,
      code: ExprCode
  ): (String, String) = {
    val dataType = expression.dataType
    val value = context.addMutableState(CodeGenerator.javaType(dataType), "value")
    val isNull = context.addMutableState(CodeGenerator.JAVA_BOOLEAN, "isNull")
    val stored =
      if (isCopied(expression)) {
        val before = CodeGenerator.getValue(target, dataType, field.toString)
        s"""
           |if ($isNull) {
           |  $target.setNullAt($field);
           |} else if ($target.isNullAt($field) || $value != $before) {
           |  $target.update($field, $value.copy());
           |}
           |""".stripMargin
      } else {
        CodeGenerator.updateColumn(
          target,
          dataType,
          field,
          ExprCode(
            JavaCode.isNullGlobal(isNull),
            JavaCode.global(value, dataType)
          ),
          nullable = true
        )
      }
    (
      s"""
         |${code.code}
         |$isNull = ${code.isNull};
         |$value = ${code.value};
         |""".stripMargin,
      stored
    )
  }
}
