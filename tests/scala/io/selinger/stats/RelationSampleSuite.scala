package io.selinger.stats

import io.selinger.testing.SharedSession
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.immutable.ArraySeq

/** Predicates on samples, and what samples say of columns. */
class RelationSampleSuite extends AnyFunSuite with SharedSession {

  private val (k, s) =
    (
      BoundReference(0, IntegerType, nullable = true),
      BoundReference(1, StringType, nullable = true)
    )

  private def column(groups: Seq[Any]*): ColumnSample = ColumnSample(groups.map(ArraySeq.from(_)))

  /** Two row groups of a hundred rows: `k` 0 to 199 with every tenth null, `s` its text. */
  private val sample: RelationSample = {
    def value(i: Int): Any = if (i % 10 == 0) null else i
    def text(i: Int): Any = if (i % 10 == 0) null else UTF8String.fromString(s"x$i")
    RelationSample(
      IndexedSeq(
        column((0 until 100).map(value), (100 until 200).map(value)),
        column((0 until 100).map(text), (100 until 200).map(text))
      ),
      Seq(100, 100),
      covered = 2000
    )
  }

  private def evaluate(predicates: Expression*): Evaluation =
    sample.evaluate(predicates, Long.MaxValue)

  test("counts matches in each row group; null does not match") {
    val found = evaluate(LessThan(k, Literal(150)))
    assert(found.groups == Seq(SampledGroup(90, 100), SampledGroup(45, 100)))
    assert(found.applied == Seq(0))
  }

  test("several predicates count together, so that correlation shows") {
    val found = evaluate(LessThan(k, Literal(50)), StartsWith(s, Literal("x1")))
    // x1, x11 to x19: all below 50.
    assert(found.groups.map(_.matched) == Seq(10, 0))
    val left = sample.placesOf(found.left).map(sample.columns(0)(_)).toSeq
    assert(left == 1 +: 11.to(19))
    val second = evaluate(GreaterThanOrEqual(k, Literal(197)))
    assert(sample.placesOf(second.left).map(sample.columns(0)(_)).toSeq == Seq(197, 198, 199))
  }

  test("a predicate that raises for a row is left out, whatever it raises") {
    val divided =
      EqualTo(Divide(Literal(1.0), Cast(Subtract(k, k), DoubleType), EvalMode.ANSI), Literal(1.0))
    val cast = EqualTo(Cast(s, IntegerType, None, EvalMode.ANSI), Literal(1))
    val missing = GreaterThan(BoundReference(7, IntegerType, nullable = true), Literal(1))
    val found = evaluate(divided, LessThan(k, Literal(10)), cast, missing)
    assert(found.applied == Seq(1))
    assert(found.groups.map(_.matched).sum == 9)
  }

  test("a predicate is not evaluated on rows that the former ones have removed") {
    val inverse = Divide(Literal(1.0), Cast(Subtract(k, Literal(5)), DoubleType), EvalMode.ANSI)
    val found = evaluate(Not(EqualTo(k, Literal(5))), GreaterThan(inverse, Literal(0.0)))
    assert(found.applied == Seq(0, 1))
  }

  test("after the deadline nothing is evaluated") {
    val found = sample.evaluate(Seq(LessThan(k, Literal(10))), System.nanoTime() - 1)
    assert(found.applied.isEmpty && found.groups.map(_.matched) == Seq(100, 100))
  }

  test("likeness: high for values in order, low for values at random") {
    assert(sample.columns(0).alike > 0.5)
    val random = new scala.util.Random(1)
    val mixed = Seq.fill(8)(Seq.fill(500)(random.nextInt(100): Any))
    assert(column(mixed: _*).alike < 0.05)
    assert(column(Seq.fill(10)(null), Seq.fill(10)(null)).alike == 0.0)
  }

  test("values are found by their place in the whole sample, though row groups are empty") {
    val found = column(Nil, Seq(1, 2), Nil, Nil, Seq(null), Seq(3), Nil)
    assert((0 until 4).map(found(_)) == Seq[Any](1, 2, null, 3))
  }

  test("a summary counts nulls, values, repetitions, widths") {
    val texts =
      Seq("a", "bb", "bb", null, "ccc").map(t => if (t == null) null else UTF8String.fromString(t))
    val found = ColumnSummary.summarize(texts.iterator)
    assert(found.rows == 5 && found.nulls == 1 && found.distinct == 3 && found.once == 2)
    assert(found.averageBytes.contains(2.0) && found.nullFraction == 0.2)
    val bytes = ColumnSummary.summarize(Iterator(Array[Byte](1, 2), Array[Byte](1, 2)))
    assert(bytes.distinct == 1 && bytes.averageBytes.contains(2.0))
    assert(ColumnSummary.summarize(Iterator(1, 2, 3)).averageBytes.isEmpty)
    assert(ColumnSummary.summarize(Iterator.empty).distinctOf(100) == 0.0)
    assert(ColumnSummary.summarize(texts.iterator).range(10).isEmpty)
  }

  test("the range of values reaches as far beyond those sampled as they are apart") {
    val found = ColumnSummary.summarize(Iterator(null, 10L, 30L, 20L, 20L, null))
    assert(found.low.contains(10.0) && found.high.contains(30.0))
    assert(found.range(draws = 100).exists { case (l, h) => l < 4 && l > 3 && h > 36 && h < 37 })
    assert(found.range(draws = 1).contains((-10.0, 50.0)))
    assert(ColumnSummary.summarize(Iterator(null, null)).range(5).isEmpty)
    val odd = Iterator[Any](Double.NaN, 1.0, Double.PositiveInfinity)
    assert(ColumnSummary.summarize(odd).range(5).isEmpty)
    assert(ColumnSummary.summarize(Iterator(Double.NaN, 1.0)).range(5).contains((1.0, 1.0)))
  }

  test("frequent values are those far above the average, most frequent first") {
    val values = Seq.fill(500)("top") ++ Seq.fill(100)("second") ++ (1 to 400).map(_.toString)
    val found = ColumnSummary.summarize(values.iterator).frequent
    assert(found == Seq(FrequentValue("top", 0.5), FrequentValue("second", 0.1)))
    assert(ColumnSummary.summarize((0 until 1000).map(_ % 10).iterator).frequent.isEmpty)
  }

  test("NaN is one value") {
    val found = ColumnSummary.summarize(Iterator.fill(20)(Double.NaN) ++ Iterator(1.0, 2.0))
    assert(found.distinct == 3)
  }
}
