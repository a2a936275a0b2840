package io.selinger.estimate.joins

import io.selinger.core.Origin
import io.selinger.estimate.{Domain, PlanEstimate}
import io.selinger.estimate.predicates.{FrequentValues, Selectivity}
import org.apache.spark.sql.catalyst.expressions._

/**
 * How many rows of two sides of a join have equal keys.
 *
 * Each side draws its keys from a domain: what its relation held before any row was left out. The
 * smaller domain is taken to lie within the larger one (containment), and what filters have left
 * of either side to be independent of the other, so a key of one side finds its partner as often
 * as the other side still has its share of the larger domain. Keys whose value ranges overlap in
 * part are equal in the overlap only.
 *
 * Where neither side's keys identify the rows of its relation, as the weeks of two years' sales,
 * both sides tend to be chosen alike: between independence and containment of what is left, the
 * geometric mean is taken.
 *
 * @param pairs of the keys, as they stand on both sides
 * @param sampled a factor by which samples of both sides differ from all that: see [[SampledJoin]]
 */
final case class JoinKeys private (
    pairs: Seq[JoinKeys.Pair],
    left: PlanEstimate,
    right: PlanEstimate,
    sampled: Option[Double]
) {
  import JoinKeys._

  private val overlaps = pairs.map(pair => Overlap.estimate(pair, left, right))

  /** Whether distinct values of every key are known on both sides. */
  val known: Boolean = pairs.forall { pair =>
    left.distinct(pair.left).isDefined && right.distinct(pair.right).isDefined
  }

  private val leftDomain = combinations(_.left, _.right, left, right, overlaps.map(_.left))
  private val rightDomain = combinations(_.right, _.left, right, left, overlaps.map(_.right))

  private val leftKeys = values(pairs.map(_.left), left)
  private val rightKeys = values(pairs.map(_.right), right)

  /** Combinations of keys that a row of either side may have. */
  val domainSize: Double = {
    val independent = math.max(1.0, math.max(leftDomain, rightDomain))
    val contained = math.max(leftKeys, rightKeys)
    if (areUnique(_.left, left) || areUnique(_.right, right) || contained >= independent)
      independent
    else math.sqrt(independent * contained)
  }

  /** Whether a row of the keys' relation is the only one with its keys, as far as counts tell. */
  private def areUnique(key: Pair => Expression, side: PlanEstimate): Boolean = {
    val domains = pairs.map(pair => side.domain(key(pair)))
    domains.exists(_.forall(domain => domain.values.isEmpty || domain.isKey)) ||
    domains.flatten.groupBy(_.relation).values.exists { keys =>
      keys.size > 1 && keys.flatMap(_.values).product >= Domain.keyShare * keys.head.rows
    }
  }

  /**
   * Relations of each side of which a row of the other side finds at most one row: see
   * [[PlanEstimate.determinants]].
   */
  def leftDeterminants: Map[Long, Seq[Attribute]] = determinantsOf(_.left, left, _.right)
  def rightDeterminants: Map[Long, Seq[Attribute]] = determinantsOf(_.right, right, _.left)

  private def determinantsOf(
      ownKey: Pair => Expression,
      side: PlanEstimate,
      otherKey: Pair => Expression
  ): Map[Long, Seq[Attribute]] = {
    val found = for {
      pair <- pairs
      domain <- side.domain(ownKey(pair)) if domain.isKey
      compared <- PlanEstimate.columnOf(otherKey(pair))
    } yield domain.relation -> Seq(compared)
    found.toMap
  }

  private val leftShare = shareInOverlap(_.left, left, overlaps.map(_.left))
  private val rightShare = shareInOverlap(_.right, right, overlaps.map(_.right))

  private def notNull(key: Pair => Expression, side: PlanEstimate): Double =
    pairs
      .filterNot(_.nullSafe)
      .map(pair => 1.0 - side.column(key(pair)).flatMap(_.nullFraction).getOrElse(0.0))
      .product

  /** Shares of each side's rows that have no null among the keys. */
  val leftPresent: Double = notNull(_.left, left)
  val rightPresent: Double = notNull(_.right, right)

  /** Rows of each side that have a key in the overlap. */
  val leftRows: Double = left.rows.value * leftShare * leftPresent
  val rightRows: Double = right.rows.value * rightShare * rightPresent

  /** What is known of single values on both sides. */
  private val correction: Double = sampled.orElse(frequent).getOrElse(1.0)

  private def frequent: Option[Double] = pairs match {
    case Seq(pair) =>
      for {
        l <- left.column(pair.left)
        r <- right.column(pair.right)
        share <- FrequentValues.equalShare(l, r, domainSize)
      } yield share * domainSize
    case _ => None
  }

  /** Rows that the equalities keep of the product. */
  val rows: Double = math.min(PlanEstimate.most, leftRows * (rightRows / domainSize) * correction)

  /** Share of each side's rows that find a partner. */
  val leftMatched: Double = matched(leftRows, left, rightKeys * rightShare)
  val rightMatched: Double = matched(rightRows, right, leftKeys * leftShare)

  private def matched(inside: Double, side: PlanEstimate, otherKeys: Double): Double =
    if (side.rows.value <= 0) 0.0
    else
      Selectivity.clamp(inside / side.rows.value) *
        Selectivity.clamp(math.min(otherKeys, domainSize) / domainSize)

  /** Keys that both sides have. */
  val common: Double =
    math.max(1.0, Seq(leftKeys, rightKeys, leftKeys * (rightKeys / domainSize)).min)

  /** Combinations of a side's keys in the relations that they come from. */
  private def combinations(
      ownKey: Pair => Expression,
      otherKey: Pair => Expression,
      side: PlanEstimate,
      other: PlanEstimate,
      shares: Seq[Double]
  ): Double = {
    val counted = pairs.zip(shares).map { case (pair, share) =>
      val (key, partner) = (ownKey(pair), otherKey(pair))
      val (own, others) = (side.domain(key), other.domain(partner))
      CountedKey(
        (own.map(_.relation), others.map(_.relation)),
        own.map(_.rows),
        valuesOf(key, side)
          .map(_ * share)
          .orElse(valuesOf(partner, other))
          // Nothing is known of either: the smaller relation is taken as the other's dimension.
          .getOrElse(math.min(relationRows(key, side), relationRows(partner, other))),
        (for (a <- own; b <- others) yield a.commonReduction(b)).getOrElse(1.0)
      )
    }
    // Together the keys have at most as many combinations as their relation has rows; but keys of
    // several other relations have no reason to be those of one row of it.
    val groups = counted.groupBy(_.relations).values.map { keys =>
      val most = keys.flatMap(_.rows).minOption.getOrElse(math.max(1.0, side.rows.value))
      math.max(1.0, math.min(product(keys.map(_.values)), most) * product(keys.map(_.reduced)))
    }
    product(groups.toSeq)
  }

  /** In an order that does not depend on ids, as the last bits of a product do. */
  private def product(factors: Seq[Double]): Double =
    factors.sorted.foldLeft(1.0)((a, b) => math.min(a * b, PlanEstimate.most))

  private def relationRows(key: Expression, side: PlanEstimate): Double =
    side.domain(key).map(_.rows).getOrElse(math.max(1.0, side.rows.value))

  /** Combinations of keys that are left of a side. */
  private def values(keys: Seq[Expression], side: PlanEstimate): Double = {
    val rows = math.max(1.0, side.rows.value)
    val counts = keys.map(key => side.distinct(key).getOrElse(rows))
    math.max(1.0, math.min(rows, counts.foldLeft(1.0)((a, b) => math.min(a * b, rows))))
  }

  /**
   * Share of a side's rows whose keys lie in the overlap, key by key. As many of the values that
   * filters have left are taken to lie there as would fit, for queries ask for what exists: of the
   * days of two centuries in a calendar, those of the sales' five years. Where a sample shows their
   * range, that is known; where how many are left is only assumed, the assumption is as good for those
   * in the overlap.
   */
  private def shareInOverlap(
      keyOf: Pair => Expression,
      side: PlanEstimate,
      shares: Seq[Double]
  ): Double = {
    val rows = math.max(1.0, side.rows.value)
    val assumed = side.rows.origin == Origin.Default
    pairs.zip(shares).map { case (pair, share) =>
      val key = keyOf(pair)
      val seen = side.column(key).exists(_.rangeSeen)
      val domain = valuesOf(key, side).getOrElse(relationRows(key, side)) * share
      if (share >= 1.0 || seen || assumed || domain <= 1.0) share
      else math.max(share, math.min(1.0, domain / side.distinct(key).getOrElse(rows)))
    }.product
  }
}

object JoinKeys {

  def apply(pairs: Seq[Pair], left: PlanEstimate, right: PlanEstimate): JoinKeys =
    new JoinKeys(pairs, left, right, SampledJoin.correction(pairs, left, right))

  /** By formulas alone. */
  private[estimate] def unsampled(
      pairs: Seq[Pair],
      left: PlanEstimate,
      right: PlanEstimate
  ): JoinKeys = new JoinKeys(pairs, left, right, Some(1.0))

  /** A key of both sides; `nullSafe` where a null finds nulls. */
  final case class Pair(left: Expression, right: Expression, nullSafe: Boolean)

  /** The keys that Spark extracts; it takes `a <=> b` apart into two equalities without nulls. */
  def pairs(leftKeys: Seq[Expression], rightKeys: Seq[Expression]): Seq[Pair] =
    leftKeys.zip(rightKeys).collect {
      case (Coalesce(Seq(left, _: Literal)), Coalesce(Seq(right, _: Literal))) =>
        Pair(left, right, nullSafe = true)
      case (left, right) if !(left.isInstanceOf[IsNull] && right.isInstanceOf[IsNull]) =>
        Pair(left, right, nullSafe = false)
    }

  /**
   * A key of one side.
   *
   * @param relations that the keys of both sides come from
   * @param rows of this side's relation
   * @param values of the key in it
   * @param reduced share of the values that semi joins on both sides have left
   */
  private final case class CountedKey(
      relations: (Option[Long], Option[Long]),
      rows: Option[Double],
      values: Double,
      reduced: Double
  )

  /** Values of a key's domain, where known. */
  private def valuesOf(key: Expression, side: PlanEstimate): Option[Double] =
    side.domain(key).flatMap(_.values).orElse(side.distinct(key)).map(math.max(1.0, _))

  /** Shares of the domains of two keys that lie where both have values. */
  final case class Overlap(left: Double, right: Double)

  object Overlap {

    private val all = Overlap(1.0, 1.0)

    def estimate(pair: Pair, left: PlanEstimate, right: PlanEstimate): Overlap = {
      val ranges = ofRanges(pair, left, right)
      val (l, r) = KeyOverlap.beyondRanges(left.domain(pair.left), right.domain(pair.right))
      Overlap(ranges.left * l, ranges.right * r)
    }

    private def ofRanges(pair: Pair, left: PlanEstimate, right: PlanEstimate): Overlap =
      (left.column(pair.left), right.column(pair.right)) match {
        case (Some(l), Some(r)) =>
          (l.min, l.max, r.min, r.max) match {
            case (Some(lowL), Some(highL), Some(lowR), Some(highR)) =>
              val (low, high) = (math.max(lowL, lowR), math.min(highL, highR))
              Overlap(
                share(valuesOf(pair.left, left), lowL, highL, low, high),
                share(valuesOf(pair.right, right), lowR, highR, low, high)
              )
            case _ => all
          }
        case _ => all
      }

    private def share(
        values: Option[Double],
        min: Double,
        max: Double,
        low: Double,
        high: Double
    ): Double = {
      val step = values.filter(_ > 1).fold(0.0)(d => (max - min) / (d - 1))
      val width = max - min + step
      val part = if (width > 0) (high - low + step) / width else 1.0
      // An axis that ends at infinity says nothing; ranges of a part of the files prove nothing.
      if (part.isNaN) 1.0 else math.max(1e-6, math.min(1.0, part))
    }
  }
}
