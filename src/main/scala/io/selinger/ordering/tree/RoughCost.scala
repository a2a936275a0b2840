package io.selinger.ordering.tree

import io.selinger.cost.{JoinFacts, JoinOperator, JoinOperatorModel, JoinSide}
import io.selinger.estimate.{PlanEstimate, RowSize}
import io.selinger.ordering.graph.JoinKind
import org.apache.spark.sql.types.LongType

/**
 * What a join costs by rows alone, all of one width and with one key: a straight line for each operator,
 * and the number of rows up to which it is feasible.
 *
 * @param linesOf the operators of a kind of join
 * @param ofRow seconds of each row returned
 */
final class RoughCost(linesOf: JoinKind => Seq[RoughCost.Line], ofRow: Double) {
  import RoughCost.Line

  private lazy val inner: Array[Line] = linesOf(JoinKind.Inner).toArray
  private lazy val leftOuter: Array[Line] = linesOf(JoinKind.LeftOuter).toArray
  private lazy val fullOuter: Array[Line] = linesOf(JoinKind.FullOuter).toArray
  private lazy val semi: Array[Line] = linesOf(JoinKind.Semi).toArray
  private lazy val anti: Array[Line] = linesOf(JoinKind.Anti).toArray
  private lazy val existence: Array[Line] = linesOf(JoinKind.Existence).toArray

  private def linesFor(kind: JoinKind): Array[Line] = kind match {
    case JoinKind.Inner => inner
    case JoinKind.LeftOuter => leftOuter
    case JoinKind.FullOuter => fullOuter
    case JoinKind.Semi => semi
    case JoinKind.Anti => anti
    case JoinKind.Existence => existence
  }

  /** The operators of a kind of join, for tests. */
  private[ordering] def lines(kind: JoinKind): Seq[Line] = linesFor(kind).toSeq

  /**
   * Seconds, without what the inputs take: the rows returned count as the pairs that match. Searches
   * ask this hundreds of thousands of times.
   */
  def seconds(
      kind: JoinKind,
      left: Double,
      leftUpperBound: Double,
      leftIsCounted: Boolean,
      right: Double,
      rightUpperBound: Double,
      rightIsCounted: Boolean,
      rows: Double
  ): Double = {
    val lines = linesFor(kind)
    val morePairs = math.max(0.0, rows - math.max(left, right))
    var best = Double.PositiveInfinity
    var i = 0
    while (i < lines.length) {
      val line = lines(i)
      if (
        line.left.allows(left, leftUpperBound, leftIsCounted) &&
        line.right.allows(right, rightUpperBound, rightIsCounted)
      ) {
        best = math.min(best, line.seconds(left, right, morePairs))
      }
      i += 1
    }
    best + rows * ofRow
  }
}

object RoughCost {

  /**
   * What an operator costs: at least, for each row of either side, and for each pair of rows beyond one
   * for each row of the larger side; and at which rows of each side it is feasible.
   */
  final class Line(
      val operator: Option[JoinOperator],
      least: Double,
      ofLeft: Double,
      ofRight: Double,
      ofPair: Double,
      val left: Limit,
      val right: Limit
  ) {

    def seconds(left: Double, right: Double, morePairs: Double): Double =
      least + left * ofLeft + right * ofRight + morePairs * ofPair
  }

  /** The most rows of one side, also where they were counted, and the largest upper bound of them. */
  final class Limit(mostRows: Double, mostCountedRows: Double, mostUpperBound: Double) {

    def allows(rows: Double, upperBound: Double, isCounted: Boolean): Boolean =
      rows <= (if (isCounted) mostCountedRows else mostRows) && upperBound <= mostUpperBound
  }

  /** Of rows of that width: through what the operators of the model cost at a few numbers of rows. */
  def approximating(model: JoinOperatorModel, rowBytes: Double): RoughCost = {
    val sampled = new Sampled(model, rowBytes)
    new RoughCost(sampled.lines, model.cost.output(manyRows, rowBytes) / manyRows)
  }

  /**
   * At so many rows operators are compared: with none, with these on one side, with so many pairs. Any number
   * will do at which rows cost far more than a stage does, since costs are straight lines there.
   */
  private[ordering] val manyRows = 1e6

  /** A join of rows of that width by one whole number. */
  private[ordering] final class Sampled(model: JoinOperatorModel, rowBytes: Double) {

    private val keyBytes = RowSize.bytesOfTypes(Seq(LongType))

    def side(rows: Double, upperBound: Double, isCounted: Boolean): JoinSide = UnplannedJoin.side(
      rows,
      upperBound,
      isCounted,
      rowBytes,
      keyBytes,
      isNumber = true,
      isPartitioned = false,
      otherBroadcastBytes = 0.0,
      model.cost.slots
    )

    def join(kind: JoinKind, left: JoinSide, right: JoinSide, pairs: Double): JoinFacts =
      new JoinFacts(
        left,
        right,
        UnplannedJoin.builds(kind, hasKeys = true),
        hasKeys = true,
        pairs
      )

    private val empty = side(0.0, 0.0, isCounted = false)

    /** Of all operators that this kind of join may run by. */
    def lines(kind: JoinKind): Seq[Line] =
      model.all.filter(isFeasible(_, kind, empty, empty)).map { operator =>
        def seconds(left: Double, right: Double, pairs: Double) = {
          def sure(rows: Double) = side(rows, rows, isCounted = false)
          model.seconds(operator, join(kind, sure(left), sure(right), pairs))
        }
        val least = seconds(0.0, 0.0, 0.0)
        def slope(more: Double) = (more - least) / manyRows
        new Line(
          Some(operator),
          least,
          slope(seconds(manyRows, 0.0, 0.0)),
          slope(seconds(0.0, manyRows, 0.0)),
          slope(seconds(0.0, 0.0, manyRows)),
          limit(isFeasible(operator, kind, _, empty)),
          limit(isFeasible(operator, kind, empty, _))
        )
      }

    private def limit(isFeasible: JoinSide => Boolean): Limit = new Limit(
      most(rows => isFeasible(side(rows, 0.0, isCounted = false))),
      most(rows => isFeasible(side(rows, 0.0, isCounted = true))),
      most(upperBound => isFeasible(side(0.0, upperBound, isCounted = false)))
    )

    private def isFeasible(
        operator: JoinOperator,
        kind: JoinKind,
        left: JoinSide,
        right: JoinSide
    ): Boolean = model.isFeasible(operator, join(kind, left, right, 0.0))
  }

  /**
   * The largest number for which this holds, of those up to the most rows there can be; it holds for
   * zero, and for each that is smaller than one for which it holds. Doubles that are not negative are
   * in the order of their bits, so the answer is exact.
   */
  private def most(holds: Double => Boolean): Double =
    if (holds(PlanEstimate.most)) Double.PositiveInfinity
    else {
      var yes = java.lang.Double.doubleToLongBits(0.0)
      var no = java.lang.Double.doubleToLongBits(PlanEstimate.most)
      while (no - yes > 1) {
        val middle = yes + (no - yes) / 2
        if (holds(java.lang.Double.longBitsToDouble(middle))) yes = middle else no = middle
      }
      java.lang.Double.longBitsToDouble(yes)
    }
}
