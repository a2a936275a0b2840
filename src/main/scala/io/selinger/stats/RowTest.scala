package io.selinger.stats

import java.util.function.IntPredicate
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types.StringType
import org.apache.spark.unsafe.types.UTF8String

/**
 * Whether a predicate is true of rows. Most predicates compare columns with constants: where a column
 * is one of [[OrderedNumbers]] that is done with machine integers. All others are left to Catalyst's
 * interpreter, which makes an object of each value.
 *
 * Unlike there, the right side of AND is not computed where the left one is null, and so cannot raise.
 *
 * @param predicate bound to columns by [[BoundReference]]s
 */
private[stats] final class RowTest(predicate: Expression) {
  import RowTest._

  private val root = testOf(predicate, wanted = true)

  /**
   * A test of the row at a place.
   *
   * @param columns their values; asked only for those that the predicate refers to
   */
  def on(columns: Columns): IntPredicate = root(columns)
}

private object RowTest {

  type Columns = Int => IndexedSeq[Any]

  /** Whether the predicate is true, or whether it is false, which it is not where it is null. */
  private def testOf(predicate: Expression, wanted: Boolean): Columns => IntPredicate = {
    def both(left: Expression, right: Expression): Columns => IntPredicate = {
      val (one, other) = (testOf(left, wanted), testOf(right, wanted))
      columns => one(columns).and(other(columns))
    }
    def either(left: Expression, right: Expression): Columns => IntPredicate = {
      val (one, other) = (testOf(left, wanted), testOf(right, wanted))
      columns => one(columns).or(other(columns))
    }
    predicate match {
      case And(left, right) => if (wanted) both(left, right) else either(left, right)
      case Or(left, right) => if (wanted) either(left, right) else both(left, right)
      case Not(child) => testOf(child, !wanted)
      case IsNull(column: BoundReference) => columns => ofNulls(columns(column.ordinal), wanted)
      case IsNotNull(column: BoundReference) => columns => ofNulls(columns(column.ordinal), !wanted)
      case _ =>
        val comparison = comparisonOf(predicate)
        columns =>
          comparison.flatMap(_.test(columns, wanted))
            .getOrElse(interpreted(predicate, wanted, columns))
    }
  }

  /** A column compared with constants. Prepared once, and tested on the values of each row group. */
  private sealed abstract class Comparison(column: BoundReference) {
    protected def ofNumbers(numbers: OrderedNumbers, wanted: Boolean): Option[IntPredicate]
    protected def ofTexts(texts: IndexedSeq[Any], wanted: Boolean): Option[IntPredicate]

    /** None where the values are of neither kind. */
    final def test(columns: Columns, wanted: Boolean): Option[IntPredicate] =
      columns(column.ordinal) match {
        case numbers: OrderedNumbers => ofNumbers(numbers, wanted)
        case texts if column.dataType == StringType => ofTexts(texts, wanted)
        case _ => None
      }
  }

  private final class OneOf(column: BoundReference, values: Seq[Any]) extends Comparison(column) {

    private lazy val texts = {
      val found = new java.util.HashSet[Any]()
      values.foreach(found.add)
      Option.when(values.forall(_.isInstanceOf[UTF8String]))(found)
    }

    // A value is the same number in all row groups that have one for it.
    private var known = Option.empty[Array[Long]]

    private def numbersOf(numbers: OrderedNumbers): Option[Array[Long]] = {
      if (known.isEmpty && values.forall(numbers.numberOf(_).isDefined))
        known = Some(values.flatMap(numbers.numberOf).toArray.sorted)
      known.filter(_ => values.headOption.exists(numbers.numberOf(_).isDefined))
    }

    override protected def ofNumbers(numbers: OrderedNumbers, wanted: Boolean) =
      numbersOf(numbers).map { found => i =>
        !numbers.isNull(i) &&
        (java.util.Arrays.binarySearch(found, numbers.number(i)) >= 0) == wanted
      }

    override protected def ofTexts(column: IndexedSeq[Any], wanted: Boolean) =
      texts.map(found => i => column(i) != null && found.contains(column(i)) == wanted)
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
  ) extends Comparison(column) {

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

  private def comparisonOf(predicate: Expression): Option[Comparison] = predicate match {
    case EqualTo(column: BoundReference, Literal(value, _)) => Some(new OneOf(column, Seq(value)))
    case EqualTo(value: Literal, column: BoundReference) => comparisonOf(EqualTo(column, value))
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
    case LessThan(value: Literal, column: BoundReference) =>
      comparisonOf(GreaterThan(column, value))
    case LessThanOrEqual(value: Literal, column: BoundReference) =>
      comparisonOf(GreaterThanOrEqual(column, value))
    case GreaterThan(value: Literal, column: BoundReference) =>
      comparisonOf(LessThan(column, value))
    case GreaterThanOrEqual(value: Literal, column: BoundReference) =>
      comparisonOf(LessThanOrEqual(column, value))
    case _ => None
  }

  private def ofNulls(values: IndexedSeq[Any], wanted: Boolean): IntPredicate = values match {
    case numbers: OrderedNumbers => i => numbers.isNull(i) == wanted
    case _ => i => (values(i) == null) == wanted
  }

  private def interpreted(
      predicate: Expression,
      wanted: Boolean,
      columns: Columns
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
