package io.selinger.estimate

import io.selinger.stats.SampledShare
import org.apache.spark.sql.catalyst.expressions.Expression

/**
 * How many rows a join would be surprising to exceed, from how often keys occur in samples: an upper
 * end of the degrees of keys, as pessimistic estimators use [1], with a confidence in the place of a
 * proof. Without it, what is feared of a join is the product of its sides.
 *
 * A set of keys has hardly more rows than those that are most frequent in the sample. Where no key
 * occurs twice in the sample of a whole relation, its rows have hardly any others of their key.
 *
 * References: [1] Cai, Balazinska, Suciu, Pessimistic Cardinality Estimation, SIGMOD 2019.
 */
private[estimate] object KeyDegrees {

  // Fewer sampled rows say nothing of the others.
  private val leastRows = 30

  // Pairs of equal keys that may exist where none was found: once in ten thousand times (Poisson).
  private val unseenPairs = 9.0

  /**
   * Rows that an inner join would be surprising to exceed; `None` where no sample tells.
   *
   * @param pairs keys of the join
   */
  def feared(
      pairs: Seq[JoinKeys.Pair],
      left: PlanEstimate,
      right: PlanEstimate
  ): Option[Double] = {
    val compared = pairs.filterNot(_.nullSafe)
    if (compared.isEmpty) None
    else {
      val (lefts, rights) = (compared.map(_.left), compared.map(_.right))
      val (perLeft, perRight) = (aRow(rights, right), aRow(lefts, left))
      Seq(
        perLeft.map(_ * left.high),
        perRight.map(_ * right.high),
        // The rows of as many keys of one side as the other has rows, each met by all rows of its key.
        for (partners <- perRight; rows <- among(rights, right, left.high)) yield rows * partners,
        for (partners <- perLeft; rows <- among(lefts, left, right.high)) yield rows * partners
      ).flatten.minOption.map(math.min(_, PlanEstimate.most))
    }
  }

  /** How often a row of each relation may be repeated in the result of a join. */
  def repeats(
      pairs: Seq[JoinKeys.Pair],
      left: PlanEstimate,
      right: PlanEstimate
  ): Map[Long, Double] = {
    val compared = pairs.filterNot(_.nullSafe)
    def times(side: PlanEstimate, partners: Option[Double]): Map[Long, Double] =
      partners.fold(Map.empty[Long, Double]) { most =>
        side.repeats.map { case (relation, often) =>
          relation -> math.min(PlanEstimate.most, often * math.max(1.0, most))
        }
      }
    if (compared.isEmpty) Map.empty
    else
      times(left, aRow(compared.map(_.right), right)) ++
        times(right, aRow(compared.map(_.left), left))
  }

  /** Rows of a side that have the key of one row of the other. */
  private def aRow(keys: Seq[Expression], side: PlanEstimate): Option[Double] =
    Seq(among(keys, side, 1.0), beside(keys, side)).flatten.minOption

  /** Rows of a side with some so many keys. */
  private def among(keys: Seq[Expression], side: PlanEstimate, count: Double): Option[Double] =
    of(keys, side) { (columns, often) =>
      val rows = columns.head.key.rows
      val relation = columns.head.relation.high
      val most = rows.counts(columns.map(_.key.column)).ofMostFrequent(count)
      if (rows.complete) Some(often * most)
      else
        Option.when(rows.rows >= leastRows) {
          often * relation * SampledShare.upper(most / rows.rows, rows.rows)
        }
    }

  /** Rows with the key of an average row, where the whole relation's sample has each key once. */
  private def beside(keys: Seq[Expression], side: PlanEstimate): Option[Double] =
    of(keys, side) { (columns, often) =>
      val whole = columns.head.key.rows.whole
      val (values, _) = whole.counts(columns.map(_.key.column)).distinct
      val all = keys.flatMap(side.domain).map(_.rows).max
      Option.when(values == whole.rows && values >= leastRows) {
        val others = if (whole.complete) 0.0 else unseenPairs * 2.0 * all / values / values
        often * (1.0 + others)
      }
    }

  /**
   * The least over all of the keys in one sample together, and over each alone. Rows of a sample that
   * has them in some order say nothing of those between.
   */
  private def of(keys: Seq[Expression], side: PlanEstimate)(
      rows: (Seq[KeySample], Double) => Option[Double]
  ): Option[Double] = {
    val known = keys.flatMap { key =>
      for {
        domain <- side.domain(key)
        sample <- domain.sample
        often <- side.repeats.get(domain.relation)
        if sample.key.canMeet
      } yield (sample, often)
    }
    val together = known
      .groupBy { case (sample, _) => sample.key.rows }
      .valuesIterator
      .filter(_.size > 1)
      .map(columns => rows(columns.map(_._1), columns.head._2))
    val alone = known.iterator.map { case (sample, often) => rows(Seq(sample), often) }
    (together ++ alone).flatten.minOption
  }
}
