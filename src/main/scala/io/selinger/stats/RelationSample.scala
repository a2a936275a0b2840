package io.selinger.stats

import io.selinger.stats.SampledShare.Moments
import java.util.function.IntPredicate
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.types.Decimal
import scala.util.control.{NoStackTrace, NonFatal}

/**
 * One column of a sample.
 *
 * @param chunks the values in each row group
 * @param neighbours values of rows next to each other, in pairs one after the other; the same rows in
 *   all columns
 */
final case class ColumnSample(
    chunks: Seq[IndexedSeq[Any]],
    neighbours: IndexedSeq[Any] = IndexedSeq.empty
) {

  // Samples of many files come as lists.
  private[stats] lazy val byGroup: IndexedSeq[IndexedSeq[Any]] = chunks.toIndexedSeq

  /** The first place of each row group in the whole sample. */
  private[stats] lazy val starts: Array[Int] = byGroup.scanLeft(0)(_ + _.length).toArray

  /** The row group of a place in the whole sample: the last one that begins there or before. */
  private[stats] def groupOf(place: Int): Int = {
    var (low, high) = (0, byGroup.length - 1)
    while (low < high) {
      val middle = (low + high + 1) / 2
      if (starts(middle) <= place) low = middle else high = middle - 1
    }
    low
  }

  /** The value at a place in the whole sample. */
  def apply(place: Int): Any = {
    val group = groupOf(place)
    byGroup(group)(place - starts(group))
  }

  def summary: ColumnSummary = ColumnSummary.summarize(chunks.iterator.flatten)

  /** How much the values of a row group are alike, by their ranks among distinct ones: 0 to 1. */
  lazy val alike: Double = SampledShare.intraclass(ColumnSample.ranks(chunks).map(moments))

  private def moments(values: Array[Double]): Moments = {
    val count = math.max(1, values.length)
    var (sum, squares) = (0.0, 0.0)
    values.foreach(sum += _)
    val mean = sum / count
    values.foreach(value => squares += (value - mean) * (value - mean))
    Moments(values.length, mean, squares / count)
  }
}

object ColumnSample {

  // All values of a column have one type, which the compiler cannot know.
  private val anyOrder: Ordering[Comparable[_]] = (left, right) =>
    left.asInstanceOf[Comparable[Any]].compareTo(right)

  /**
   * Of each row group the ranks of its values among the distinct ones of all; -1 for what has none: nulls,
   * and types without an order.
   */
  private def ranks(chunks: Seq[IndexedSeq[Any]]): Seq[Array[Double]] = {
    val numbers = chunks.collect { case values: OrderedNumbers => values }
    chunks.iterator.flatten.find(_ != null) match {
      // Not decimals: with different scales, their numbers cannot be compared.
      case Some(_: Int | _: Long) if numbers.size == chunks.size => ranksOf(numbers)
      case example =>
        val rank = rankOf(chunks, example)
        chunks.map(_.iterator.map(rank).toArray)
    }
  }

  /** The same without an object for each value. Here, numbers too large for a double keep their own rank. */
  private def ranksOf(chunks: Seq[OrderedNumbers]): Seq[Array[Double]] = {
    val sorted = new Array[Long](chunks.map(_.length).sum)
    var present = 0
    chunks.foreach { values =>
      var i = 0
      while (i < values.length) {
        if (!values.isNull(i)) {
          sorted(present) = values.number(i)
          present += 1
        }
        i += 1
      }
    }
    java.util.Arrays.sort(sorted, 0, present)
    var (distinct, i) = (0, 0)
    while (i < present) {
      if (i == 0 || sorted(i) != sorted(distinct - 1)) {
        sorted(distinct) = sorted(i)
        distinct += 1
      }
      i += 1
    }
    chunks.map(values =>
      Array.tabulate(values.length) { i =>
        if (values.isNull(i)) -1.0
        else java.util.Arrays.binarySearch(sorted, 0, distinct, values.number(i)).toDouble
      }
    )
  }

  private def rankOf(chunks: Seq[IndexedSeq[Any]], example: Option[Any]): Any => Double =
    example match {
      case Some(_: Number | _: Decimal | _: Boolean) =>
        // Numbers, of which many may differ, by their places on the axis, which sort quickly.
        def at(value: Any) = NumericAxis.place(value).getOrElse(Double.NaN)
        val sorted = chunks.iterator.flatten.filter(_ != null).map(at).toArray
        java.util.Arrays.sort(sorted)
        val distinct = sorted.indices.collect {
          case i if i == 0 || java.lang.Double.compare(sorted(i), sorted(i - 1)) != 0 => sorted(i)
        }.toArray
        value =>
          if (value == null) -1.0 else java.util.Arrays.binarySearch(distinct, at(value)).toDouble
      case _ =>
        val distinct = chunks.iterator.flatten.collect { case value: Comparable[_] => value }.toSet
        val ranks = distinct.toArray.sorted(anyOrder).iterator.zipWithIndex.toMap[Any, Int]
        value => ranks.getOrElse(value, -1).toDouble
    }
}

/**
 * Some rows of a relation, by row group. The same row of all columns belongs together.
 *
 * @param columns of the sample, in any order
 * @param covered rows that these were spread over, in all row groups together
 */
final case class RelationSample(columns: IndexedSeq[ColumnSample], sizes: Seq[Int], covered: Long) {

  val rows: Int = sizes.sum

  /** Places in the whole sample of rows that are given by row group, ascending. */
  def placesOf(left: Seq[Array[Int]]): Array[Int] =
    left.zip(sizes.scanLeft(0)(_ + _)).flatMap { case (rows, start) => rows.map(_ + start) }.toArray

  /**
   * Evaluates `predicates`, bound to the columns by [[BoundReference]]s, one on the rows that the
   * former ones left, just as a scan does. A predicate that raises for any row is left out: whether
   * the query raises as well is up to Spark.
   *
   * @param deadline on the clock of `System.nanoTime`; what is not evaluated by then is left out
   */
  def evaluate(predicates: Seq[Expression], deadline: Long): Evaluation = {
    val all: Seq[Array[Int]] = sizes.map(Array.range(0, _))
    val (left, applied) = predicates.zipWithIndex.foldLeft((all, Vector.empty[Int])) {
      case ((survivors, done), (predicate, i)) =>
        matching(predicate, survivors, deadline) match {
          case Some(fewer) => (fewer, done :+ i)
          case None => (survivors, done)
        }
    }
    Evaluation(
      applied,
      left,
      left.zip(sizes).map { case (rows, size) => SampledGroup(rows.length, size) }
    )
  }

  private def matching(
      predicate: Expression,
      among: Seq[Array[Int]],
      deadline: Long
  ): Option[Seq[Array[Int]]] =
    try {
      val ofGroup = new RowTest(predicate)
      Some(among.zipWithIndex.map {
        case (none, _) if none.isEmpty => none
        case (rows, group) =>
          val inTime: IntPredicate = i => {
            if ((i & 255) == 0 && System.nanoTime() > deadline) throw RelationSample.OutOfTime
            true
          }
          val test = ofGroup.on(columns(_).byGroup(group))
          java.util.Arrays.stream(rows).filter(inTime.and(test)).toArray
      })
    } catch {
      // A pattern may also recurse too deeply on a long text.
      case NonFatal(_) | _: LinkageError | _: StackOverflowError => None
    }
}

object RelationSample {
  private object OutOfTime extends RuntimeException("no time left") with NoStackTrace
}

/**
 * What the predicates left of a sample.
 *
 * @param applied the places of those predicates that could be evaluated
 * @param left places of the rows that are left, by row group
 * @param groups how many these are, by row group
 */
final case class Evaluation(
    applied: Seq[Int],
    left: Seq[Array[Int]],
    groups: Seq[SampledGroup]
)
