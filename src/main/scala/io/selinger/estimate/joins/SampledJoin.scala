package io.selinger.estimate.joins

import io.selinger.core.{PassKey, PlanningPass}
import io.selinger.estimate.{KeySample, PlanEstimate}
import io.selinger.stats.samples.{EqualPairs, SampledKey}
import java.util.concurrent.ConcurrentHashMap
import org.apache.spark.sql.catalyst.expressions.{ExprId, Expression}

/**
 * How many more pairs of equal keys two sides have than formulas say, or how many fewer, from joining
 * samples of the two relations that they come from: values that are frequent on both sides, customers
 * who buy just what they return, or years that only one side has.
 *
 * The share of pairs of sampled rows whose keys are equal is an unbiased estimate of the same share
 * among all rows. It corrects the formulas only by as much as it differs from them beyond one
 * standard deviation: of two large domains hardly a pair is sampled, and nothing follows from that.
 */
private[estimate] object SampledJoin {

  /**
   * A factor for the rows that [[JoinKeys]] expects, 1 where there is no evidence against them;
   * `None` where no key is in samples of both sides.
   */
  def correction(
      pairs: Seq[JoinKeys.Pair],
      left: PlanEstimate,
      right: PlanEstimate
  ): Option[Double] =
    pairs
      .flatMap { pair =>
        for {
          l <- sampled(pair.left, left)
          r <- sampled(pair.right, right)
          if !pair.nullSafe && l.key.kind == r.key.kind
          if l.key.canJoin && r.key.canJoin
        } yield (l, r)
      }
      // Columns of two samples are compared together, those of others count as independent.
      .groupBy { case (l, r) => (l.key.rows, r.key.rows) }
      .valuesIterator
      .map(_.sortBy { case (l, r) => (l.key.column, r.key.column) }.unzip)
      .map { case (l, r) =>
        memoized(l.map(_.key), r.map(_.key))(compared(l, r))
      }
      .toSeq
      // The last bits of a product depend on its order, and a map's order on ids.
      .sorted
      .reduceOption(_ * _)

  /** The sampled columns that the expressions show, if all are of the same sample. */
  def ofOneSample(keys: Seq[Expression], side: PlanEstimate): Option[Seq[KeySample]] = {
    val samples = keys.map(sampled(_, side))
    Option.when(keys.nonEmpty && samples.forall(_.isDefined))(samples.flatten)
      .filter(found => found.forall(_.isOfSameRows(found.head)))
  }

  /** Columns of which all rows with one value have one value of each of `keys`. */
  def determining(keys: Seq[Expression], side: PlanEstimate): Set[ExprId] =
    determinesAll(keys, side).fold(Set.empty[ExprId]) { determines =>
      side.domains.iterator.collect {
        case (id, domain) if domain.sample.exists(determines) => id
      }.toSet
    }

  /** Whether `column` is one of those that [[determining]] finds. */
  def determines(column: Expression, keys: Seq[Expression], side: PlanEstimate): Boolean =
    PlanEstimate.columnOf(column).flatMap(sampled(_, side)).exists { sample =>
      determinesAll(keys, side).exists(_(sample))
    }

  private def determinesAll(
      keys: Seq[Expression],
      side: PlanEstimate
  ): Option[KeySample => Boolean] =
    ofOneSample(keys, side).map { found => sample =>
      sample.isOfSameRows(found.head) && found.forall(other =>
        other.key.column != sample.key.column &&
          sample.key.rows.determines(sample.key.column, other.key.column)
      )
    }

  private def sampled(key: Expression, side: PlanEstimate): Option[KeySample] =
    side.domain(key).flatMap(_.sample)

  private def compared(left: Seq[KeySample], right: Seq[KeySample]): Double = {
    val (leftRelation, rightRelation) = (left.head.relation, right.head.relation)
    val columns = left.zip(right).map { case (l, r) =>
      JoinKeys.Pair(l.column, r.column, nullSafe = false)
    }
    val found = left.head.key.rows
      .equalPairs(left.map(_.key.column), right.head.key.rows, right.map(_.key.column))
    def share(of: Seq[JoinKeys.Pair]): Double = {
      val keys = JoinKeys.unsampled(of, leftRelation, rightRelation)
      val present = keys.leftPresent * leftRelation.rows.value *
        (keys.rightPresent * rightRelation.rows.value)
      if (present > 0) keys.rows / present else 0.0
    }
    val expected = found.possible * share(columns)
    val correction = factor(found, expected)
    val enough = if (left.head.isSpread && right.head.isSpread) leastOfRows else leastOfPlaces
    if (columns.size == 1 || correction * enough > 1.0) correction
    else {
      val independent = found.possible * columns.map(column => share(Seq(column))).product
      if (agrees(found, independent)) math.min(correction, independent / expected) else correction
    }
  }

  // So many times fewer pairs than expected are not due to sampling: if five pairs are expected of
  // rows from all over their relations, none is found in one sample of a hundred. Neighbouring rows are
  // in a sample together or not at all, so samples from parts of a relation must differ twice as much.
  private val leastOfRows = 5.0
  private val leastOfPlaces = 10.0

  /**
   * Whether that is about as many pairs as were found. Formulas take combinations of keys for
   * contained in each other, as those of lines are in those of orders; where fewer meet, and as few as
   * if each column had nothing to do with the others, that is the better explanation.
   */
  private def agrees(found: EqualPairs, expected: Double): Boolean =
    math.abs(found.pairs - expected) <= math.sqrt(found.variance + 1.0)

  /** The nearest to 1 that lies within one standard deviation of what was found. */
  private[estimate] def factor(found: EqualPairs, expected: Double): Double =
    if (expected <= 0 || found.possible <= 0) 1.0
    else {
      // That none was found says that there are not many more than one in as many pairs of rows.
      val deviation = math.sqrt(found.variance + 1.0)
      val (least, most) =
        (math.max(0.0, found.pairs - deviation) / expected, (found.pairs + deviation) / expected)
      math.max(least, math.min(1.0, most))
    }

  private val corrections = new PassKey[Corrections]("corrections of sampled joins")

  private final class Corrections {
    val factors = new ConcurrentHashMap[(Seq[SampledKey], Seq[SampledKey]), Double]()
  }

  private def memoized(left: Seq[SampledKey], right: Seq[SampledKey])(compute: => Double): Double =
    PlanningPass.current
      .memo(corrections, left.head.rows)(new Corrections)
      .factors
      .computeIfAbsent((left, right), _ => compute)
}
