package io.selinger.exec.aggregates

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.NoOp
import org.apache.spark.sql.catalyst.util.GenericArrayData
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** [[UpdateProjection]] stores what Spark's projection stores, and copies only what is another value. */
class UpdateProjectionSuite extends AnyFunSuite {

  private val types: Seq[DataType] = Seq[DataType](
    StringType,
    IntegerType,
    ArrayType(StringType),
    StructType(Seq(StructField("x", LongType), StructField("y", StringType))),
    DecimalType(30, 4),
    BinaryType,
    DoubleType,
    BooleanType
  )
  private val held = types.zipWithIndex.map { case (of, i) => AttributeReference(s"h$i", of)() }
  private val read = types.zipWithIndex.map { case (of, i) => AttributeReference(s"r$i", of)() }
  private val random = new Random(20261125)

  private def text(): UTF8String = UTF8String.fromString(random.nextString(random.nextInt(4)))

  private def value(of: DataType): Any = if (random.nextInt(4) == 0) null
  else
    of match {
      case StringType => text()
      case IntegerType => random.nextInt()
      case _: ArrayType => new GenericArrayData(Array[Any](text(), null, text()))
      case _: StructType => InternalRow(random.nextLong(), text())
      case _: DecimalType => Decimal(BigDecimal(random.nextLong()), 30, 4)
      case BinaryType => text().getBytes
      case DoubleType => random.nextDouble()
      case _ => random.nextBoolean()
    }

  // Sometimes what is held, sometimes what is read.
  private val kept = held.zip(read).zip(types).map { case ((old, other), _) =>
    If(GreaterThan(Rand(Literal(random.nextLong())), Literal(0.5)), old, other): Expression
  }

  test("the same values as Spark's projection, null or not") {
    val ours = UpdateProjection.create(kept, held ++ read)
    val spark = MutableProjection.create(kept, held ++ read)
    Seq(ours, spark).foreach(_.initialize(3))
    val (mine, stock) = (new SpecificInternalRow(types), new SpecificInternalRow(types))
    val comparable = UnsafeProjection.create(types.toArray)
    val joined = new JoinedRow
    (1 to 2000).foreach { _ =>
      val row = InternalRow.fromSeq(types.map(value))
      ours.target(mine)(joined(mine, row))
      spark.target(stock)(joined(stock, row))
      val expected = comparable(stock).copy()
      assert(comparable(mine) == expected)
    }
  }

  test("a text that stays is not copied, one that comes is") {
    val greater = Greatest(Seq(held.head, read.head))
    val projection = UpdateProjection.create(Seq(greater), Seq(held.head, read.head))
    val target = new SpecificInternalRow(Seq(StringType))
    def add(text: UTF8String): UTF8String = {
      projection.target(target)(new JoinedRow(target, InternalRow(text)))
      target.getUTF8String(0)
    }
    val first = UTF8String.fromString("m")
    val stored = add(first)
    assert(stored == first && !(stored eq first))
    assert(add(UTF8String.fromString("a")) eq stored)
    assert(add(null) eq stored)
    assert(add(UTF8String.fromString("z")).toString == "z")
  }

  test("fields without an expression are left alone") {
    val projection = UpdateProjection.create(Seq(NoOp, read.head), held.take(1) ++ read.take(1))
    val target = new SpecificInternalRow(Seq(StringType, StringType))
    target.update(0, UTF8String.fromString("here"))
    projection.target(target)(InternalRow(null, UTF8String.fromString("new")))
    assert(target.getUTF8String(0).toString == "here")
    assert(target.getUTF8String(1).toString == "new")
  }
}
