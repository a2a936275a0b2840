package io.selinger.estimate.joins

import io.selinger.estimate.{KeySample, PlanEstimate}
import io.selinger.stats.SampledShare
import io.selinger.stats.samples.SampledKeys
import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * The upper bound of a join's rows, from how often keys occur in samples: the maximum degree of keys, as
 * pessimistic estimators use [1], but with a confidence (99.9 %) in the place of a proof. Without it,
 * the upper bound of a join is the product of its sides.
 *
 * A set of keys has hardly more rows than the most frequent keys of the sample. Where no key
 * occurs twice in the sample of a whole relation, its rows have hardly any others of their key. Where a
 * relation has its keys in some order, a sample says nothing of rows between the sampled ones, and its
 * row groups are all that counts.
 *
 * References: [1] Cai, Balazinska, Suciu, Pessimistic Cardinality Estimation, SIGMOD 2019.
 *
 * @param pairs keys of the join
 */
private[estimate] final class KeyDegrees(
    pairs: Seq[JoinKeys.Pair],
    left: PlanEstimate,
    right: PlanEstimate
) {
  import KeyDegrees._

  private val compared = pairs.filterNot(_.nullSafe)
  private val (lefts, rights) = (compared.map(_.left), compared.map(_.right))

  /** Upper bounds of how many partners a row of each side finds. */
  private val (partnersOfLeft, partnersOfRight) =
    (rowsOfOneKey(rights, right), rowsOfOneKey(lefts, left))

  /** The upper bound of an inner join's rows; `None` where no sample tells. */
  def upperBound: Option[Double] =
    Seq(
      partnersOfLeft.map(_ * left.upperBound),
      partnersOfRight.map(_ * right.upperBound),
      // As many keys of one side as the other has rows, each joined with all rows of its key.
      for (partners <- partnersOfRight; rows <- rowsOfKeys(rights, right, left.upperBound))
        yield rows * partners,
      for (partners <- partnersOfLeft; rows <- rowsOfKeys(lefts, left, right.upperBound))
        yield rows * partners
    ).flatten.minOption.map(math.min(_, PlanEstimate.most))

  /** The upper bound of how often a row of each relation occurs in the result. */
  def fanOut: Map[Long, Double] = fanOutOf(left, partnersOfLeft) ++ fanOutOf(right, partnersOfRight)

  private def fanOutOf(side: PlanEstimate, partners: Option[Double]): Map[Long, Double] =
    partners.fold(Map.empty[Long, Double]) { most =>
      side.fanOut.map { case (relation, often) =>
        relation -> math.min(PlanEstimate.most, often * math.max(1.0, most))
      }
    }
}

private[estimate] object KeyDegrees {

  // Fewer sampled rows say nothing of the others.
  private val leastRows = 30

  // Pairs of equal keys that may exist where none was found: of rows at random, once in ten thousand
  // times (Poisson).
  private val unseenPairs = 9.0

  /** The upper bound of a side's rows that have one key. */
  private def rowsOfOneKey(keys: Seq[Expression], side: PlanEstimate): Option[Double] =
    Seq(rowsOfKeys(keys, side, 1.0), rowsOfUniqueKey(keys, side)).flatten.minOption

  /** The upper bound of a side's rows that have one of `count` keys. */
  private def rowsOfKeys(keys: Seq[Expression], side: PlanEstimate, count: Double): Option[Double] =
    least(keys, side) { (columns, often) =>
      val rows = columns.head.key.rows
      val most = rows.counts(columns.map(_.key.column)).ofMostFrequent(count)
      if (rows.complete) Some(often * most)
      else
        for (all <- relationRows(columns.head) if rows.rows >= leastRows && isSpread(rows, all))
          yield {
            val found = most / rows.rows
            val ordered = !columns.forall(_.key.canJoin)
            val groups = if (ordered) rows.filled else rows.groups
            val share =
              SampledShare.upperBound(found, rows.rows, groups, rows.covered / all, ordered)
            often * columns.head.relation.upperBound * share
          }
    }

  /**
   * Rows that have the key of an average row, where the sample of the whole relation has each key
   * once. Sampled rows lie apart, so that only their neighbours tell whether rows of one key lie side
   * by side.
   */
  private def rowsOfUniqueKey(keys: Seq[Expression], side: PlanEstimate): Option[Double] =
    least(keys, side) { (columns, often) =>
      val whole = columns.head.key.rows.whole
      val places = columns.map(_.key.column)
      val (values, _) = whole.counts(places).distinct
      if (values != whole.rows || values < leastRows || !columns.forall(_.key.canJoin)) None
      else if (whole.complete) Some(often)
      else
        for {
          all <- relationRows(columns.head) if isSpread(whole, all)
          changing <- places.flatMap(place => whole.runShare(Seq(place))).maxOption
        } yield {
          val unseen = unseenPairs * 2.0 * all / values / values
          often * math.max(1.0 + unseen, 1.0 / changing)
        }
    }

  private def relationRows(sample: KeySample): Option[Double] =
    sample.relation.domains.get(sample.column.exprId).map(domain => math.max(1.0, domain.rows))

  /** Whether the sample is from so many places that other places are like them. */
  private def isSpread(rows: SampledKeys, all: Double): Boolean =
    rows.groups >= SampledShare.leastGroups || rows.covered >= 0.5 * all

  /** The least upper bound: of the keys in one sample together, and of each alone. */
  private def least(keys: Seq[Expression], side: PlanEstimate)(
      rows: (Seq[KeySample], Double) => Option[Double]
  ): Option[Double] = {
    val known = keys.flatMap { key =>
      for {
        sample <- side.domain(key).flatMap(_.sample)
        // A joined key has the sample of the side that has it more often, which counts as often.
        often <- sample.origin.flatMap(side.fanOut.get)
      } yield (sample, often)
    }
    val together = known
      .groupBy { case (sample, _) => (sample.origin, sample.key.rows) }
      .valuesIterator
      .filter(_.size > 1)
      .map(columns => rows(columns.map(_._1), columns.head._2))
    val alone = known.iterator.map { case (sample, often) => rows(Seq(sample), often) }
    (together ++ alone).flatten.minOption
  }
}
