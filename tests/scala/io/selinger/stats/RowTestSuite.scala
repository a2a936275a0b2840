package io.selinger.stats

import io.selinger.stats.files.SampledValues
import io.selinger.testing.{Grid, SharedSession}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

/** Predicates are true of the same rows as Catalyst's interpreter says. */
class RowTestSuite extends AnyFunSuite with SharedSession {

  private def text(value: String): UTF8String = UTF8String.fromString(value)

  private def decimal(unscaled: Long): Decimal = Decimal(unscaled, 7, 2)

  /** Values of each type, a few of which lie outside of what columns have. */
  private val kinds: Seq[(DataType, Seq[Any])] = Seq(
    IntegerType -> Seq(Int.MinValue, -3, 0, 3, 4, Int.MaxValue),
    LongType -> Seq(Long.MinValue, -3L, 0L, 3L, 4L, Long.MaxValue),
    DateType -> Seq(-1, 0, 19000, 19001),
    DecimalType(
      7,
      2
    ) -> Seq(decimal(-150), decimal(0), decimal(150), Decimal("1.50"), decimal(151)),
    DoubleType -> Seq(Double.NegativeInfinity, -0.0, 0.0, 1.5, Double.NaN),
    StringType -> Seq("", "a", "ab", "b", "ö").map(text),
    StringType("UTF8_LCASE") -> Seq("a", "A", "b").map(text),
    BooleanType -> Seq(true, false, true)
  )

  private val rows = 200

  private def columns(random: Random): IndexedSeq[SampledValues] =
    kinds.toIndexedSeq.map { case (_, values) =>
      val some = values.init.filter {
        // In a column all have one precision; a constant may have another.
        case decimal: Decimal => decimal.precision == 7
        case _ => true
      } :+ null
      SampledValues.compact(Array.fill[Any](rows)(some(random.nextInt(some.size))))
    }

  private def predicate(random: Random, depth: Int): Expression = {
    def inner = predicate(random, depth - 1)
    random.nextInt(if (depth == 0) 7 else 10) match {
      case 7 => And(inner, inner)
      case 8 => Or(inner, inner)
      case 9 => Not(inner)
      case shape =>
        val place = random.nextInt(kinds.size)
        val (kind, values) = kinds(place)
        val column = BoundReference(place, kind, nullable = true)
        def constant =
          Literal(if (random.nextInt(15) == 0) null else values(random.nextInt(values.size)), kind)
        def compared(left: Expression, right: Expression): Expression = random.nextInt(6) match {
          case 0 => EqualTo(left, right)
          case 1 => LessThan(left, right)
          case 2 => LessThanOrEqual(left, right)
          case 3 => GreaterThan(left, right)
          case 4 => GreaterThanOrEqual(left, right)
          case _ => EqualNullSafe(left, right)
        }
        shape match {
          case 0 => IsNull(column)
          case 1 => IsNotNull(column)
          case 2 => In(column, Seq.fill(1 + random.nextInt(3))(constant))
          case 3 => InSet(column, Seq.fill(2)(constant.value).toSet)
          case 4 => compared(constant, column)
          case 5 => compared(column, column)
          case _ => compared(column, constant)
        }
    }
  }

  test("the same rows as the interpreter: columns with constants, together with anything else") {
    val random = new Random(Grid.seed)
    val values = columns(random)
    (1 to 3000).foreach { _ =>
      val asked = predicate(random, depth = 3)
      val interpreted = Predicate.createInterpreted(asked)
      def expected(i: Int) = interpreted.eval(new GenericInternalRow(values.map(_(i)).toArray))
      val test = new RowTest(asked).on(values(_))
      val wrong = (0 until rows).filter(i => test.test(i) != expected(i))
      assert(wrong.isEmpty, s"${Grid.clue}$asked, ${wrong.take(3).map(i => values.map(_(i)))}")
    }
  }

  test("numbers are compared without objects, whatever their type") {
    val ordered = columns(new Random(1)).map(_.isInstanceOf[OrderedNumbers])
    assert(kinds.map(_._1).zip(ordered).collect { case (kind, true) => kind } ==
      Seq(IntegerType, LongType, DateType, DecimalType(7, 2)))
  }
}
