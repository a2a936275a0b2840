package io.selinger.strategy

import io.selinger.exec.decimals.{CompareInLongs, ComputeInLongs, InLongs, SumInInt128}
import io.selinger.testing.{Answer, Grid, SharedSession}
import org.apache.spark.sql.Row
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.{Average, DeclarativeAggregate, Sum}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** Expressions that compute decimals in machine integers, against Spark's own, on random values. */
class ComputeInLongsSuite extends AnyFunSuite with SharedSession {

  private val seed = Grid.seed

  // Expressions of arithmetic, and of sums: code is generated for each of them.
  private val (trees, sums) = if (Grid.isWhole) (400, 200) else (150, 70)

  private def inMode[A](ansi: Boolean, interpreted: Boolean = false)(body: => A): A = {
    val conf = new SQLConf
    conf.setConf(SQLConf.ANSI_ENABLED, ansi)
    if (interpreted) conf.setConfString("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    SQLConf.withExistingConf(conf)(body)
  }

  private def decimalType(random: Random): DecimalType = {
    val precision = random.nextInt(4) match {
      case 0 => 1 + random.nextInt(8)
      case 1 => 17 + random.nextInt(4)
      case 2 => 36 + random.nextInt(3)
      case _ => 1 + random.nextInt(38)
    }
    DecimalType(precision, random.nextInt(precision + 1).min(if (random.nextBoolean()) 2 else 38))
  }

  private def inputType(random: Random): DataType = random.nextInt(8) match {
    case 0 => IntegerType
    case 1 => LongType
    case 2 => ByteType
    case _ => decimalType(random)
  }

  /** Values at the limits of types and of longs are as frequent as others. */
  private def value(dataType: DataType, random: Random): Any = {
    def one(limit: BigInt): BigInt = {
      val size = random.nextInt(5) match {
        case 0 => BigInt(random.nextInt(3))
        case 1 => limit - random.nextInt(2)
        case 2 => limit / 2 + random.nextInt(3) - 1
        case 3 => BigInt(limit.bitLength, random).min(limit)
        case _ => BigInt(1 + random.nextInt(limit.bitLength.max(1)), random).min(limit)
      }
      if (random.nextBoolean()) size else -size
    }
    if (random.nextInt(12) == 0) null
    else
      dataType match {
        case ByteType => one(Byte.MaxValue).toByte
        case IntegerType => if (random.nextInt(9) == 0) Int.MinValue else one(Int.MaxValue).toInt
        case LongType => if (random.nextInt(9) == 0) Long.MinValue else one(Long.MaxValue).toLong
        case decimal: DecimalType =>
          val unscaled = one(BigInt(10).pow(decimal.precision) - 1)
          Decimal(BigDecimal(unscaled, decimal.scale), decimal.precision, decimal.scale)
        case other => fail(s"no values of $other")
      }
  }

  private def asDecimal(expression: Expression, random: Random): Expression =
    expression.dataType match {
      case _: DecimalType =>
        if (random.nextInt(6) == 0) Cast(expression, decimalType(random)) else expression
      case ByteType => Cast(expression, DecimalType(3, 0))
      case IntegerType => Cast(expression, DecimalType(10, 0))
      case LongType => Cast(expression, DecimalType(20, 0))
      case other => fail(s"no decimal of $other")
    }

  private def tree(inputs: Seq[Expression], depth: Int, random: Random): Expression =
    if (depth == 0 || random.nextInt(6) == 0) {
      if (random.nextInt(5) == 0) {
        val small = Decimal(BigDecimal(1 + random.nextInt(200), random.nextInt(3)))
        Literal(small, DecimalType(small.precision.max(small.scale), small.scale))
      } else asDecimal(inputs(random.nextInt(inputs.size)), random)
    } else {
      val (left, right) = (tree(inputs, depth - 1, random), tree(inputs, depth - 1, random))
      random.nextInt(9) match {
        case 0 | 1 => Add(left, right)
        case 2 | 3 => Subtract(left, right)
        case 4 | 5 | 6 => Multiply(left, right)
        case 7 => Divide(left, right)
        case _ => UnaryMinus(left)
      }
    }

  /** Both sides have one type, as the analyzer has made them. */
  private def comparison(inputs: Seq[Expression], random: Random): Expression = {
    val (l, r) = (tree(inputs, random.nextInt(3), random), tree(inputs, random.nextInt(3), random))
    val common =
      if (random.nextInt(3) == 0) decimalType(random) else widest(Seq(l.dataType, r.dataType))
    def side(value: Expression) = if (value.dataType == common) value else Cast(value, common)
    val (left, right) = (side(l), side(r))
    random.nextInt(6) match {
      case 0 => EqualTo(left, right)
      case 1 => LessThan(left, right)
      case 2 => LessThanOrEqual(left, right)
      case 3 => GreaterThan(left, right)
      case 4 => GreaterThanOrEqual(left, right)
      case _ => Not(EqualTo(left, right))
    }
  }

  private def widest(types: Seq[DataType]): DecimalType = {
    val decimals = types.collect { case decimal: DecimalType => decimal }
    val scale = decimals.map(_.scale).max
    DecimalType((decimals.map(d => d.precision - d.scale).max + scale).min(38).max(1), scale)
  }

  /** A value as it is read, or the error that it raised. */
  private def result(value: => Any): Answer = Answer.ofRows(Array(Row(String.valueOf(value))))

  private def rowOf(types: Seq[DataType], random: Random): InternalRow =
    UnsafeProjection
      .create(types.toArray)
      .apply(new GenericInternalRow(types.map(value(_, random)).toArray[Any]))
      .copy()

  private def columnsOf(types: Seq[DataType]): Seq[AttributeReference] =
    types.zipWithIndex.map { case (dataType, i) => AttributeReference(s"c$i", dataType)() }

  private val kinds = Seq[(String, Random => Seq[Expression] => Expression, Class[_ <: InLongs])](
    (
      "arithmetic gives",
      random => tree(_, 1 + random.nextInt(3), random),
      classOf[ComputeInLongs]
    ),
    ("comparisons give", random => comparison(_, random), classOf[CompareInLongs])
  )

  for (ansi <- Seq(true, false); (kind, made, inLongs) <- kinds)
    test(s"$kind what Spark's give, row by row, ANSI $ansi") {
      val random = new Random(seed)
      var computed = 0
      (1 to trees).foreach { _ =>
        val types = Seq.fill(3)(inputType(random))
        inMode(ansi) {
          val columns = columnsOf(types)
          val original = made(random)(columns)
          val changed = ComputeDecimalsInLongs.inLongs(original)
          if (changed.exists(inLongs.isInstance)) computed += 1
          val generated = MutableProjection.create(Seq(changed), columns)
          val spark = BindReferences.bindReference(original, columns)
          val ours = BindReferences.bindReference(changed, columns)
          (1 to 25).foreach { _ =>
            val row = rowOf(types, random)
            val expected = result(spark.eval(row))
            def where = s"$spark of ${row.toSeq(types)}, seed $seed"
            assert(result(generated(row).get(0, spark.dataType)) == expected, where)
            assert(result(ours.eval(row)) == expected, s"interpreted: $where")
          }
        }
      }
      info(s"$computed of $trees expressions are computed in longs")
      assert(computed > trees / 3, s"seed $seed")
    }

  private def aggregated(
      function: DeclarativeAggregate,
      parts: Seq[Seq[InternalRow]],
      columns: Seq[AttributeReference]
  ): Answer = {
    val buffer = function.aggBufferAttributes
    def row = UnsafeProjection.create(buffer.map(_.dataType).toArray)
    def updated(part: Seq[InternalRow]) = {
      val update = MutableProjection.create(function.updateExpressions, buffer ++ columns)
      part.foldLeft(initial(function)) { (state, input) =>
        row(update(new JoinedRow(state, input))).copy()
      }
    }
    val merge = MutableProjection.create(
      function.mergeExpressions,
      buffer ++ function.inputAggBufferAttributes
    )
    result {
      val merged = parts.map(updated).reduceLeft[InternalRow] { (left, right) =>
        row(merge(new JoinedRow(left, right))).copy()
      }
      MutableProjection
        .create(Seq(function.evaluateExpression), buffer)(merged)
        .get(0, function.dataType)
    }
  }

  private def initial(sum: DeclarativeAggregate): InternalRow =
    UnsafeProjection
      .create(sum.aggBufferAttributes.map(_.dataType).toArray)
      .apply(InternalRow.fromSeq(sum.initialValues.map(_.eval())))
      .copy()

  for (ansi <- Seq(true, false); interpreted <- Seq(true, false))
    test(s"sums and averages give what Spark's give, ANSI $ansi, interpreted $interpreted") {
      val random = new Random(seed)
      (1 to sums).foreach { _ =>
        val types = Seq.fill(2)(inputType(random))
        inMode(ansi, interpreted) {
          val columns = columnsOf(types)
          val computed = tree(columns, random.nextInt(2), random)
          val spark = if (random.nextInt(3) == 0) new Average(computed) else new Sum(computed)
          if (ComputeDecimalsInLongs.accepts(spark.toAggregateExpression(), LocalRelation())) {
            val ours = SumInInt128(
              SumInInt128.declarative(
                spark.withNewChildren(Seq(ComputeDecimalsInLongs.inLongs(computed)))
              )
            )
            val parts = Seq.fill(1 + random.nextInt(3)) {
              Seq.fill(random.nextInt(6))(rowOf(types, random))
            }
            val expected = aggregated(spark, parts, columns)
            val where = s"$spark of ${parts.map(_.map(_.toSeq(types)))}, seed $seed"
            assert(aggregated(ours, parts, columns) == expected, where)
          }
        }
      }
    }
}
