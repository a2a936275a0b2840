package io.selinger.exec.sorting

import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.codegen._
import org.apache.spark.sql.catalyst.expressions.codegen.Block._
import org.apache.spark.sql.types._

/**
 * The first keys of an order as one number: a row comes before another one where its number is smaller. Rows
 * have the same number if they are equal by these keys, or if the last of them differs only in what its part
 * leaves out. A row has no number, but `Beyond`, if a key is larger than its part expects.
 *
 * @param children the keys, each with a part
 */
final case class PackedSortKey(children: Seq[Expression], parts: Seq[PackedPart])
    extends Expression {

  override def dataType: DataType = LongType
  override def nullable: Boolean = false
  override def prettyName: String = "packed"
  override def toString: String = children.mkString(s"$prettyName(", ", ", ")")

  override def eval(row: InternalRow): Any = {
    val codes = children.zip(parts).map { case (key, part) => part.code(key.eval(row)) -> part }
    if (codes.exists(_._1 == PackedSortKey.Beyond)) PackedSortKey.Beyond
    else codes.foldLeft(0L) { case (packed, (code, part)) => packed * part.codes.toLong + code }
  }

  override protected def doGenCode(ctx: CodegenContext, ev: ExprCode): ExprCode = {
    val beyond = s"${PackedSortKey.Beyond}L"
    val steps = children.zip(parts).map { case (key, part) =>
      val value = key.genCode(ctx)
      val number = ctx.freshName("number")
      code"""
        if (${ev.value} != $beyond) {
          ${value.code}
          if (${value.isNull}) {
            ${ev.value} = ${ev.value} * ${part.codes.toString}L + ${part.nullCode.toString}L;
          } else {
            final long $number = ${PackedPart.numberOf(value.value.toString, key.dataType)};
            ${ev.value} = ${part.isWithin(number)}
              ? ${ev.value} * ${part.codes.toString}L + ${part.codeOf(number)} : $beyond;
          }
        }"""
    }
    ev.copy(
      code = code"""
        long ${ev.value} = 0L;
        ${steps.reduceOption((one, next) => code"$one\n$next").getOrElse(code"")}""",
      isNull = FalseLiteral
    )
  }

  override protected def withNewChildrenInternal(
      newChildren: IndexedSeq[Expression]
  ): PackedSortKey = copy(children = newChildren)
}

object PackedSortKey {

  /** In the place of the number of a row that has none; all others are not negative. */
  val Beyond: Long = -1L
}

/**
 * How one key becomes a number from 0 to `codes` - 1.
 *
 * @param most which absolute values have a number: those up to it. At most [[PackedPart.MaxMost]].
 * @param shift bits of the number that are left out
 */
final case class PackedPart(most: Long, ascending: Boolean, nullsFirst: Boolean, shift: Int) {

  /** How many numbers there are, with one for null. */
  def codes: BigInt = ((BigInt(most) * 2) >> shift) + 2

  def nullCode: Long = if (nullsFirst) 0L else (codes - 1).toLong

  private def firstCode: Long = if (nullsFirst) 1L else 0L

  def code(value: Any): Long = value match {
    case null => nullCode
    case flag: Boolean => of(if (flag) 1L else 0L)
    case decimal: Decimal => of(decimal.toUnscaledLong)
    case number: Number => of(number.longValue)
    case other => throw new IllegalStateException(s"no number: $other")
  }

  private def of(value: Long): Long =
    if (value < -most || value > most) PackedSortKey.Beyond
    else firstCode + ((if (ascending) most + value else most - value) >>> shift)

  /** Java that says whether there is a code for a number. */
  def isWithin(number: String): String = s"($number >= -${most}L && $number <= ${most}L)"

  /** Java for the code of a number for which there is one. */
  def codeOf(number: String): String =
    s"(${firstCode}L + ((${most}L ${if (ascending) "+" else "-"} $number) >>> $shift))"
}

object PackedPart {

  /** Twice as much fits into a long. */
  val MaxMost: Long = (1L << 62) - 1

  /** Java for a value, which is not null, as a number. */
  def numberOf(value: String, dataType: DataType): String = dataType match {
    case BooleanType => s"$value ? 1L : 0L"
    case _: DecimalType => s"$value.toUnscaledLong()"
    case _ => s"(long) $value"
  }

  /** Whether values of this type can be packed. */
  def accepts(dataType: DataType): Boolean = dataType match {
    case BooleanType | ByteType | ShortType | IntegerType | LongType => true
    case DateType | TimestampType | TimestampNTZType => true
    case decimal: DecimalType => decimal.precision <= Decimal.MAX_LONG_DIGITS
    case _ => false
  }
}

/**
 * An order whose first keys are packed.
 *
 * @param key the packed keys
 * @param rest keys that decide where packed ones are equal; none if all of all keys is in the packed one
 */
final case class PackedOrder(key: PackedSortKey, rest: Seq[SortOrder])

object PackedOrder {

  private val room = BigInt(Long.MaxValue)

  /** A key cut to fewer numbers would rarely decide. */
  private val leastCodes = 256

  /**
   * Packs as many keys as there is room for; none if those are fewer than two, since Spark compares the
   * first key as a number itself.
   *
   * @param most what the unscaled absolute values of a key are expected not to exceed; none for a key that
   *   may not be packed
   */
  def of(order: Seq[SortOrder], most: Expression => Option[BigInt]): Option[PackedOrder] = {
    val (parts, rest) = packed(order, most, room)
    Option.when(parts.size > 1) {
      PackedOrder(PackedSortKey(order.take(parts.size).map(_.child), parts), rest)
    }
  }

  private def packed(
      order: Seq[SortOrder],
      most: Expression => Option[BigInt],
      left: BigInt
  ): (Seq[PackedPart], Seq[SortOrder]) = order match {
    case next +: others if PackedPart.accepts(next.child.dataType) =>
      most(next.child).fold((Seq.empty[PackedPart], order)) { largest =>
        val whole = partOf(next, largest.min(PackedPart.MaxMost), 0)
        if (largest <= PackedPart.MaxMost && whole.codes <= left) {
          val (parts, rest) = packed(others, most, left / whole.codes)
          (whole +: parts, rest)
        } else {
          val cut = (1 to java.lang.Long.SIZE).map(shift => whole.copy(shift = shift))
            .find(_.codes <= left).filter(_.codes >= leastCodes)
          (cut.toSeq, order)
        }
      }
    case _ => (Nil, order)
  }

  private def partOf(key: SortOrder, most: BigInt, shift: Int) =
    PackedPart(most.toLong, key.direction == Ascending, key.nullOrdering == NullsFirst, shift)
}
