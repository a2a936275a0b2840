package io.selinger.stats.sketches

import org.apache.spark.sql.catalyst.FunctionIdentifier
import org.apache.spark.sql.catalyst.analysis.TableFunctionRegistry.TableFunctionBuilder
import org.apache.spark.sql.catalyst.expressions.{
  Expression,
  ExpressionInfo,
  NamedArgumentExpression
}
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.ArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String

/** The SQL table functions that collect, show and forget statistics and keys. */
object SketchFunctions {

  type Description = (FunctionIdentifier, ExpressionInfo, TableFunctionBuilder)

  val all: Seq[Description] = Seq(
    describe(
      "selinger_analyze",
      "Collects statistics of a table, a view or a path of Parquet or ORC files.",
      Seq("target", "columns", "sample", "max_bytes")
    ) { arguments =>
      val sample = arguments.number("sample").getOrElse(1.0)
      if (!(sample > 0.0 && sample <= 1.0)) {
        arguments.refuse(s"sample must be greater than 0 and at most 1, and is $sample")
      }
      val bytes = arguments.number("max_bytes").map(_.toLong)
      if (bytes.exists(_ < 1)) arguments.refuse("max_bytes must be at least 1")
      AnalyzeCommand.of(
        AnalyzeRequest(arguments.target, arguments.names("columns"), sample, bytes)
      )
    },
    describe(
      "selinger_stats",
      "What selinger_analyze has collected of a table, a view or a path.",
      Seq("target")
    )(arguments => StatsCommand.of(arguments.target)),
    describe(
      "selinger_declare_key",
      "Checks in a job that columns are a key of a table, a view or a path, so that plans may rely on it.",
      Seq("target", "columns")
    ) { arguments =>
      val columns = arguments.names("columns")
      DeclareKeyCommand.of(
        arguments.target,
        columns.getOrElse(arguments.refuse("columns is missing: those of the key"))
      )
    },
    describe(
      "selinger_keys",
      "The keys that selinger_declare_key has found in a table, a view or a path.",
      Seq("target")
    )(arguments => KeysCommand.of(arguments.target)),
    describe(
      "selinger_forget",
      "Deletes what selinger_analyze and selinger_declare_key have found of a table, a view or a path.",
      Seq("target", "columns")
    )(arguments => ForgetCommand.of(arguments.target, arguments.names("columns")))
  )

  private def describe(name: String, usage: String, parameters: Seq[String])(
      build: Arguments => LogicalPlan
  ): Description = (
    FunctionIdentifier(name),
    new ExpressionInfo(
      getClass.getName,
      null,
      name,
      usage,
      "",
      "",
      "",
      "",
      "0.1.0",
      "",
      "scala_udf"
    ),
    (passed: Seq[Expression]) => build(new Arguments(name, parameters, passed))
  )

  /** Arguments by place or by name, each a literal. */
  private final class Arguments(
      function: String,
      parameters: Seq[String],
      passed: Seq[Expression]
  ) {

    private val values: Map[String, Expression] = {
      val positional = passed.takeWhile(!_.isInstanceOf[NamedArgumentExpression])
      val named = passed.drop(positional.size).map {
        case NamedArgumentExpression(name, value) if parameters.contains(name.toLowerCase) =>
          name.toLowerCase -> value
        case NamedArgumentExpression(name, _) => refuse(s"there is no argument $name")
        case _ => refuse("arguments without a name come first")
      }
      if (positional.size > parameters.size) refuse(s"it takes ${parameters.size} at most")
      val pairs = parameters.zip(positional) ++ named
      pairs.groupBy(_._1).find(_._2.size > 1).foreach { case (name, _) =>
        refuse(s"$name is given twice")
      }
      pairs.toMap
    }

    def refuse(why: String): Nothing = {
      val form = parameters.head + parameters.drop(1).map(name => s"[, $name => …]").mkString
      throw new IllegalArgumentException(s"$function: $why. Write $function($form)")
    }

    private def value(name: String): Option[(Any, DataType)] =
      values.get(name).flatMap { argument =>
        if (!argument.foldable) refuse(s"$name must be a literal")
        Option(argument.eval()).map(_ -> argument.dataType)
      }

    def target: String = value("target") match {
      case Some((text: UTF8String, _)) if text.numBytes > 0 => text.toString
      case Some(_) => refuse("target must be a text: a path, or the name of a table or view")
      case None => refuse("target is missing: a path, or the name of a table or view")
    }

    /** `array('a', 'b')` or `'a, b'`. */
    def names(name: String): Option[Seq[String]] = value(name).map {
      case (list: ArrayData, ArrayType(_: StringType, _)) =>
        list.toSeq[UTF8String](StringType).map(item =>
          if (item == null) refuse(s"$name must not contain NULL") else item.toString
        )
      case (list: ArrayData, _) if list.numElements() == 0 => Nil
      case (text: UTF8String, _) => text.toString.split(',').toSeq.map(_.trim).filter(_.nonEmpty)
      case _ => refuse(s"$name must be an array of texts, or names with commas between them")
    }

    def number(name: String): Option[Double] = value(name).map {
      case (number: Byte, _) => number.toDouble
      case (number: Short, _) => number.toDouble
      case (number: Int, _) => number.toDouble
      case (number: Long, _) => number.toDouble
      case (number: Float, _) => number.toDouble
      case (number: Double, _) => number
      case (number: Decimal, _) => number.toDouble
      case _ => refuse(s"$name must be a number")
    }
  }
}
