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
  private class Keys(val columns: Seq[AttributeReference], val most: Map[ExprId, BigInt]) {
    def limit(key: Expression): Option[BigInt] = key match {
      case column: Attribute => most.get(column.exprId)
      case _ => None
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
      val most = keys.most(column.exprId)
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

  /** The order of two rows by a packed key, and by what decides where it is equal. */
  private def packedSign(packed: PackedOrder, columns: Seq[Attribute])(
      a: InternalRow,
      b: InternalRow
  ): Int = {
    val key = BindReferences.bindReference[Expression](packed.key, columns)
    def number(row: InternalRow) = key.eval(row) match {
      case value: Long if value >= 0 => value
      case other => fail(s"$other of $row")
    }
    val byNumber = math.signum(number(a).compare(number(b)))
    if (byNumber != 0) byNumber else sign(packed.rest, columns)(a, b)
  }

  test("packed keys order rows as the keys do, ascending and descending, nulls first and last") {
    val random = new Random(seed)
    var whole, inPart = 0
    (1 to orders).foreach { _ =>
      val made = keys(random)
      val order = made.columns.map(sortOrder(_, random))
      PackedOrder.of(order, made.limit).foreach { packed =>
        if (packed.rest.isEmpty) whole += 1 else inPart += 1
        val rows = Seq.fill(12)(row(made, random)).filter(isWithin(packed, made.columns))
        for (a <- rows; b <- rows) {
          val where = s"$order of $a and $b: $packed, seed $seed"
          val expected = sign(order, made.columns)(a, b)
          assert(packedSign(packed, made.columns)(a, b) == expected, where)
        }
      }
    }
    info(s"$whole orders are one number, $inPart in part")
    assert(whole > orders / 10 && inPart > orders / 10)
  }

  /** Keys whose type allows more than a part has codes for. */
  private def isWithin(packed: PackedOrder, columns: Seq[Attribute])(row: InternalRow): Boolean =
    BindReferences.bindReference[Expression](packed.key, columns).eval(row) != PackedSortKey.Beyond

  test("generated code packs as interpreted code does, and rows beyond a bound have no number") {
    val random = new Random(seed)
    var within, beyond = 0
    (1 to orders / 10).foreach { _ =>
      val made = keys(random)
      val order = made.columns.map(sortOrder(_, random))
      // Half of what the values may be.
      PackedOrder.of(order, made.limit(_).map(most => (most / 2).max(1))).foreach { packed =>
        val bound = BindReferences.bindReference[Expression](packed.key, made.columns)
        val projection = UnsafeProjection.create(Seq(packed.key), made.columns)
        (1 to 20).foreach { _ =>
          val values = row(made, random)
          val number = projection(values).getLong(0)
          if (number == PackedSortKey.Beyond) beyond += 1 else within += 1
          assert(bound.eval(values) == number && number >= -1, s"$packed of $values, seed $seed")
        }
      }
    }
    assert(within > 0 && beyond > 0)
  }

  test("a last key that has no room is cut, and decides where the rest of it is equal") {
    val columns = Seq(AttributeReference("a", IntegerType)(), AttributeReference("b", LongType)())
    val order = columns.map(SortOrder(_, Ascending))
    val packed =
      PackedOrder.of(order, key => Some(BigInt(1) << (if (key == columns.head) 30 else 40)))
        .getOrElse(fail("not packed"))
    assert(packed.rest == order.drop(1))
    val values = Seq(-(1L << 40), -3L, -2L, 0L, 5L, 6L, 1L << 39, 1L << 40)
    for (a <- values; b <- values) {
      val (x, y) = (InternalRow(7, a), InternalRow(7, b))
      assert(packedSign(packed, columns)(x, y) == math.signum(a.compare(b)), s"$a and $b")
    }
    assert(!isWithin(packed, columns)(InternalRow(7, (1L << 40) + 1)))
    assert(!isWithin(packed, columns)(InternalRow(7, Long.MinValue)))
  }

  test("one key, a text, a double, or a first key without a limit are not packed") {
    def of(types: DataType*): Option[PackedOrder] = PackedOrder.of(
      types.map(kind => SortOrder(AttributeReference("c", kind)(), Ascending)),
      key => Some(typeLimit(key.dataType))
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
