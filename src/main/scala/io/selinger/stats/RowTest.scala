package io.selinger.stats

import java.util.function.IntPredicate
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Whether a predicate is true of rows. Most predicates compare columns with constants: that is done with
 * machine integers, many times as fast as Catalyst's interpreter, to which all others are left.
 */
private[stats] object RowTest {

  /**
   * A test of the row at a place.
   *
   * @param predicate bound to columns by [[BoundReference]]s
   * @param columns their values; asked only for those that the predicate refers to
   */
  def of(predicate: Expression, columns: Int => IndexedSeq[Any]): IntPredicate =
    test(predicate, wanted = true, columns)

  /** Whether the predicate is true, or whether it is false, which it is not where it is null. */
  private def test(
      predicate: Expression,
      wanted: Boolean,
      columns: Int => IndexedSeq[Any]
  ): IntPredicate = {
    def part(of: Expression) = test(of, wanted, columns)
    predicate match {
      case And(left, right) if wanted => part(left).and(part(right))
      case And(left, right) => part(left).or(part(right))
      case Or(left, right) if wanted => part(left).or(part(right))
      case Or(left, right) => part(left).and(part(right))
      case Not(child) => test(child, !wanted, columns)
      case IsNull(column: BoundReference) => ofNulls(columns(column.ordinal), wanted)
      case IsNotNull(column: BoundReference) => ofNulls(columns(column.ordinal), !wanted)
      case _ =>
        constants(predicate).flatMap(_.test(columns, wanted))
          .getOrElse(interpreted(predicate, wanted, columns))
    }
  }

  /** A column whose value lies in ranges: between two numbers, or equal to a constant. */
  private sealed abstract class Constants(column: BoundReference) {
    protected def ofNumbers(numbers: OrderedNumbers, wanted: Boolean): Option[IntPredicate]
    protected def ofTexts(texts: IndexedSeq[Any], wanted: Boolean): Option[IntPredicate]

    final def test(columns: Int => IndexedSeq[Any], wanted: Boolean): Option[IntPredicate] =
      columns(column.ordinal) match {
        case numbers: OrderedNumbers => ofNumbers(numbers, wanted)
        case texts if column.dataType == StringType => ofTexts(texts, wanted)
        case _ => None
      }
  }

  private final class OneOf(column: BoundReference, values: Seq[Any]) extends Constants(column) {

    override protected def ofNumbers(numbers: OrderedNumbers, wanted: Boolean) = {
      val found = values.flatMap(numbers.numberOf).distinct.sorted.toArray
      Option.when(values.forall(numbers.numberOf(_).isDefined)) { i =>
        !numbers.isNull(i) &&
        (java.util.Arrays.binarySearch(found, numbers.number(i)) >= 0) == wanted
      }
    }

    override protected def ofTexts(texts: IndexedSeq[Any], wanted: Boolean) = {
      val found = new java.util.HashSet[Any]()
      values.foreach(found.add)
      Option.when(values.forall(_.isInstanceOf[UTF8String])) { i =>
        texts(i) != null && found.contains(texts(i)) == wanted
      }
    }
  }

  /**
   * @param value that divides the axis
   * @param below whether smaller values are meant, or larger ones
   * @param closed whether the value itself is meant, too
   */
  private final class OneSideOf(
      column: BoundReference,
      value: Any,
      below: Boolean,
      closed: Boolean
  ) extends Constants(column) {

    override protected def ofNumbers(numbers: OrderedNumbers, wanted: Boolean) =
      numbers.numberOf(value).map { end => i =>
        !numbers.isNull(i) && isMeant(java.lang.Long.compare(numbers.number(i), end)) == wanted
      }

    override protected def ofTexts(texts: IndexedSeq[Any], wanted: Boolean) = value match {
      case end: UTF8String =>
        Some { i =>
          texts(i) match {
            case text: UTF8String => isMeant(text.compareTo(end)) == wanted
            case _ => false
          }
        }
      case _ => None
    }

    private def isMeant(compared: Int): Boolean =
      if (compared == 0) closed else (compared < 0) == below
  }

  private def constants(predicate: Expression): Option[Constants] = predicate match {
    case EqualTo(column: BoundReference, Literal(value, _)) => Some(new OneOf(column, Seq(value)))
    case EqualTo(value: Literal, column: BoundReference) => constants(EqualTo(column, value))
    case In(column: BoundReference, list) if list.forall(_.isInstanceOf[Literal]) =>
      Some(new OneOf(column, list.collect { case Literal(value, _) => value }))
    case InSet(column: BoundReference, values) => Some(new OneOf(column, values.toSeq))
    case LessThan(column: BoundReference, Literal(value, _)) =>
      Some(new OneSideOf(column, value, below = true, closed = false))
    case LessThanOrEqual(column: BoundReference, Literal(value, _)) =>
      Some(new OneSideOf(column, value, below = true, closed = true))
    case GreaterThan(column: BoundReference, Literal(value, _)) =>
      Some(new OneSideOf(column, value, below = false, closed = false))
    case GreaterThanOrEqual(column: BoundReference, Literal(value, _)) =>
      Some(new OneSideOf(column, value, below = false, closed = true))
    case LessThan(value: Literal, column: BoundReference) => constants(GreaterThan(column, value))
    case LessThanOrEqual(value: Literal, column: BoundReference) =>
      constants(GreaterThanOrEqual(column, value))
    case GreaterThan(value: Literal, column: BoundReference) => constants(LessThan(column, value))
    case GreaterThanOrEqual(value: Literal, column: BoundReference) =>
      constants(LessThanOrEqual(column, value))
    case _ => None
  }

  private def ofNulls(values: IndexedSeq[Any], wanted: Boolean): IntPredicate = values match {
    case numbers: OrderedNumbers => i => numbers.isNull(i) == wanted
    case _ => i => (values(i) == null) == wanted
  }

  private def interpreted(
      predicate: Expression,
      wanted: Boolean,
      columns: Int => IndexedSeq[Any]
  ): IntPredicate = {
    val used = predicate.collect { case bound: BoundReference => bound.ordinal }.distinct.toArray
    val values = used.map(columns)
    val row = new Array[Any](used.maxOption.fold(0)(_ + 1))
    val input = new GenericInternalRow(row)
    i => {
      var column = 0
      while (column < used.length) {
        row(used(column)) = values(column)(i)
        column += 1
      }
      predicate.eval(input) == wanted
    }
  }
}
