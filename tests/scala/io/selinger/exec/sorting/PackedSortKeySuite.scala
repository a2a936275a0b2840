package io.selinger.exec.sorting

import io.selinger.testing.Grid
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** Orders by packed keys against Spark's orders, on random keys. */
class PackedSortKeySuite extends AnyFunSuite {

  private val seed = Grid.seed
  private val orders = if (Grid.isWhole) 2000 else 500

  private val types = Seq[DataType](
    BooleanType,
    ByteType,
    ShortType,
    IntegerType,
    LongType,
    DateType,
    TimestampType,
    TimestampNTZType,
    DecimalType(9, 2),
    DecimalType(18, 4)
  )

  private def typeLimit(dataType: DataType): BigInt = dataType match {
    case BooleanType => BigInt(1)
    case decimal: DecimalType => BigInt(10).pow(decimal.precision) - 1
    case other => BigInt(1) << (8 * other.defaultSize - 1)
  }

  private def value(number: BigInt, dataType: DataType): Any = dataType match {
    case BooleanType => number > 0
    case ByteType => number.toByte
    case ShortType => number.toShort
    case IntegerType | DateType => number.toInt
    case decimal: DecimalType => Decimal(number.toLong, decimal.precision, decimal.scale)
    case _ => number.toLong
  }

  private def sortOrder(key: Expression, random: Random) = SortOrder(
    key,
    if (random.nextBoolean()) Ascending else Descending,
    if (random.nextBoolean()) NullsFirst else NullsLast,
    Nil
  )

  /** Keys with what their values do not exceed. */
  private class Keys(val columns: Seq[AttributeReference], most: Map[ExprId, BigInt]) {
    def limit(key: Expression): BigInt = key match {
      case column: Attribute => most(column.exprId)
      case other => fail(s"no column: $other")
    }
  }

  private def keys(random: Random): Keys = {
    val columns = Seq.tabulate(2 + random.nextInt(3)) { i =>
      AttributeReference(s"c$i", types(random.nextInt(types.size)))()
    }
    new Keys(
      columns,
      columns.map { column =>
        val limit = typeLimit(column.dataType)
        column.exprId ->
          (if (random.nextBoolean()) limit
           else BigInt(1 + random.nextInt(limit.bitLength), random).min(limit).max(1))
      }.toMap
    )
  }

  private def row(keys: Keys, random: Random): InternalRow =
    new GenericInternalRow(keys.columns.map { column =>
      val most = keys.limit(column)
      val largest = if (most == typeLimit(column.dataType)) most - 1 else most
      val size = random.nextInt(4) match {
        case 0 => largest
        case 1 => BigInt(random.nextInt(2)).min(largest)
        case _ => BigInt(most.bitLength, random).min(largest)
      }
      if (random.nextInt(6) == 0) null
      else value(if (random.nextBoolean()) size else -size, column.dataType)
    }.toArray[Any])

  private def sign(order: Seq[SortOrder], columns: Seq[Attribute])(a: InternalRow, b: InternalRow) =
    math.signum(RowOrdering.create(order, columns).compare(a, b))

  test("packed keys order rows as the keys do, ascending and descending, nulls first and last") {
    val random = new Random(seed)
    var whole, inPart = 0
    (1 to orders).foreach { _ =>
      val made = keys(random)
      val order = made.columns.map(sortOrder(_, random))
      PackedOrder.of(order, made.limit).foreach { packed =>
        if (packed.rest.isEmpty) whole += 1 else inPart += 1
        val rows = Seq.fill(12)(row(made, random))
        for (a <- rows; b <- rows) {
          val where = s"$order of $a and $b: $packed, seed $seed"
          val expected = sign(order, made.columns)(a, b)
          assert(sign(packed.order, made.columns)(a, b) == expected, where)
          if (packed.rest.isEmpty)
            assert(sign(Seq(packed.order.head), made.columns)(a, b) == expected, where)
        }
      }
    }
    info(s"$whole orders are one number, $inPart in part")
    assert(whole > orders / 10 && inPart > orders / 10)
  }

  test("generated code packs as interpreted code does, and no number is negative") {
    val random = new Random(seed)
    (1 to orders / 10).foreach { _ =>
      val made = keys(random)
      val order = made.columns.map(sortOrder(_, random))
      PackedOrder.of(order, made.limit).foreach { packed =>
        val bound = BindReferences.bindReference[Expression](packed.key, made.columns)
        val generated = GenerateUnsafe.number(packed.key, made.columns)
        (1 to 20).foreach { _ =>
          val values = row(made, random)
          val number = generated(values)
          assert(bound.eval(values) == number && number >= 0, s"$packed of $values, seed $seed")
        }
      }
    }
  }

  private object GenerateUnsafe {
    def number(key: Expression, columns: Seq[Attribute]): InternalRow => Long = {
      val projection = UnsafeProjection.create(Seq(key), columns)
      projection(_).getLong(0)
    }
  }

  test("rows whose last key is cut, or is larger than known, are still ordered right") {
    val columns = Seq(AttributeReference("a", IntegerType)(), AttributeReference("b", LongType)())
    val order = columns.map(SortOrder(_, Ascending))
    val known = Map(columns.head.exprId -> BigInt(1 << 30), columns(1).exprId -> (BigInt(1) << 40))
    def most(key: Expression) = key match {
      case column: Attribute => known(column.exprId)
      case other => fail(s"no column: $other")
    }
    val packed = PackedOrder.of(order, most).getOrElse(fail("not packed"))
    assert(packed.rest == order.drop(1))
    val values = Seq(Long.MinValue, -(1L << 50), -3L, -2L, 0L, 5L, 6L, 1L << 41, Long.MaxValue)
    for (a <- values; b <- values) {
      val (x, y) = (InternalRow(7, a), InternalRow(7, b))
      assert(sign(packed.order, columns)(x, y) == math.signum(a.compare(b)), s"$a and $b")
    }
  }

  test("one key, a text, a double, or a first key without a limit are not packed") {
    def of(types: DataType*): Option[PackedOrder] = PackedOrder.of(
      types.map(kind => SortOrder(AttributeReference("c", kind)(), Ascending)),
      key => typeLimit(key.dataType)
    )
    assert(of(IntegerType).isEmpty)
    assert(of(StringType, IntegerType).isEmpty)
    assert(of(IntegerType, StringType).isEmpty)
    assert(of(IntegerType, DoubleType).isEmpty)
    assert(of(LongType, IntegerType).isEmpty)
    assert(of(DecimalType(20, 2), IntegerType).isEmpty)
    assert(of(IntegerType, ShortType, StringType).exists(_.rest.size == 1))
    // A null has a number of its own, so two integers take a little more than 64 bits.
    assert(of(IntegerType, IntegerType).exists(_.rest.size == 1))
    assert(of(IntegerType, ShortType, ByteType).exists(_.rest.isEmpty))
    assert(of(IntegerType, IntegerType, IntegerType).exists(_.rest.size == 2))
  }
}
