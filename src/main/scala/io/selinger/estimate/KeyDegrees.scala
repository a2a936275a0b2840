package io.selinger.estimate

import io.selinger.stats.SampledShare
import io.selinger.stats.samples.SampledKeys
import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * The upper bound of a join's rows, from how often keys occur in samples: the maximum degree of keys, as
 * pessimistic estimators use [1], but with a confidence (99.9 %) in the place of a proof. Without it, the
 * upper bound of a join is the product of its sides.
 *
 * A set of keys has hardly more rows than those that are most frequent in the sample. Where no key
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

  /** Partners of a row of each side. */
  private val (ofLeft, ofRight) = (aRow(rights, right), aRow(lefts, left))

  /** The upper bound of an inner join's rows; `None` where no sample tells. */
  def upperBound: Option[Double] =
    Seq(
      ofLeft.map(_ * left.upperBound),
      ofRight.map(_ * right.upperBound),
      // The rows of as many keys of one side as the other has rows, each met by all rows of its key.
      for (partners <- ofRight; rows <- among(rights, right, left.upperBound))
        yield rows * partners,
      for (partners <- ofLeft; rows <- among(lefts, left, right.upperBound)) yield rows * partners
    ).flatten.minOption.map(math.min(_, PlanEstimate.most))

  /** How often a row of each relation may be repeated in the result. */
  def repeats: Map[Long, Double] = times(left, ofLeft) ++ times(right, ofRight)

  private def times(side: PlanEstimate, partners: Option[Double]): Map[Long, Double] =
    partners.fold(Map.empty[Long, Double]) { most =>
      side.repeats.map { case (relation, often) =>
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

  /** Rows of a side that have the key of one row of the other. */
  private def aRow(keys: Seq[Expression], side: PlanEstimate): Option[Double] =
    Seq(among(keys, side, 1.0), beside(keys, side)).flatten.minOption

  /** Rows of a side with some so many keys. */
  private def among(keys: Seq[Expression], side: PlanEstimate, count: Double): Option[Double] =
    of(keys, side) { (columns, often) =>
      val rows = columns.head.key.rows
      val most = rows.counts(columns.map(_.key.column)).ofMostFrequent(count)
      if (rows.complete) Some(often * most)
      else
        for (all <- relationRows(columns.head) if rows.rows >= leastRows && isSpread(rows, all))
          yield {
            val found = most / rows.rows
            val ordered = !columns.forall(_.key.canMeet)
            val groups = if (ordered) rows.filled else rows.groups
            val share = SampledShare.upper(found, rows.rows, groups, rows.covered / all, ordered)
            often * columns.head.relation.upperBound * share
          }
    }

  /**
   * Rows with the key of an average row, where the whole relation's sample has each key once. Sampled
   * rows lie apart, so that rows of one key that lie side by side show in the neighbours only.
   */
  private def beside(keys: Seq[Expression], side: PlanEstimate): Option[Double] =
    of(keys, side) { (columns, often) =>
      val whole = columns.head.key.rows.whole
      val places = columns.map(_.key.column)
      val (values, _) = whole.counts(places).distinct
      if (values != whole.rows || values < leastRows || !columns.forall(_.key.canMeet)) None
      else if (whole.complete) Some(often)
      else
        for {
          all <- relationRows(columns.head) if isSpread(whole, all)
          changing <- places.flatMap(whole.changing).maxOption
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

  /**
   * The least over all of the keys in one sample together, and over each alone.
   */
  private def of(keys: Seq[Expression], side: PlanEstimate)(
      rows: (Seq[KeySample], Double) => Option[Double]
  ): Option[Double] = {
    val known = keys.flatMap { key =>
      for {
        sample <- side.domain(key).flatMap(_.sample)
        // A joined key has the sample of the side that has it more often, which counts as often.
        often <- sample.origin.flatMap(side.repeats.get)
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
