package io.selinger.estimate.joins

import io.selinger.core.{Origin, Quantity}
import io.selinger.estimate.{Domain, PlanEstimate, SemiJoinReduction}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.{ColumnStatistics, FrequentValue}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._

/** Rows out of joins. */
object JoinEstimator {

  /**
   * The pairs that a join's condition accepts.
   *
   * @param rows as an inner join returns them
   * @param left share of the left rows that are in some pair
   * @param right the same of the right rows
   */
  private final case class Matches(
      rows: Double,
      left: Double,
      right: Double,
      origin: Origin,
      keys: Option[JoinKeys]
  ) {
    def pairs: Seq[JoinKeys.Pair] = keys.toSeq.flatMap(_.pairs)
    def leftKeys: Seq[Expression] = pairs.map(_.left)
    def rightKeys: Seq[Expression] = pairs.map(_.right)
  }

  // An anti join keeps a small difference of two guesses; a tenth at least is assumed.
  private val leastUnmatched = 0.1

  def estimate(join: EquiJoin, left: PlanEstimate, right: PlanEstimate): PlanEstimate = {
    val matches = matched(join, left, right)
    join.joinType match {
      case LeftOuter | LeftSingle => outer(join, matches, left, right, keepLeft = true)
      case RightOuter => outer(join, matches, left, right, keepRight = true)
      case FullOuter => outer(join, matches, left, right, keepLeft = true, keepRight = true)
      case LeftSemi => withReduction(join, semiJoined(left, matches, matches.left), matches, right)
      case LeftAnti => semiJoined(left, matches, math.max(1.0 - matches.left, leastUnmatched))
      case ExistenceJoin(exists) => withExistenceColumn(left, exists, matches.left)
      case _ => withReductionsOfBoth(matches, inner(join, matches, left, right))
    }
  }

  /** All rows of `left`, with a column that says which of them find a partner. */
  private def withExistenceColumn(
      left: PlanEstimate,
      exists: Attribute,
      share: Double
  ): PlanEstimate = {
    val found = Selectivity.clamp(share)
    val values = Seq(FrequentValue(true, found), FrequentValue(false, 1.0 - found))
    val flag = ColumnStatistics(Some(0.0), Some(0.0), Some(1.0), Some(2.0), frequent = values)
    left.copy(measuredRowBytes = None, columns = left.columns.updated(exists.exprId, flag))
  }

  /** Pairs of rows with equal keys. */
  def pairs(keys: Seq[JoinKeys.Pair], left: PlanEstimate, right: PlanEstimate): Double =
    JoinKeys(keys, left, right).rows

  private def matched(join: EquiJoin, left: PlanEstimate, right: PlanEstimate): Matches = {
    val inputs = left.rows.origin.worse(right.rows.origin)
    val all =
      if (join.keys.nonEmpty) {
        val keys = JoinKeys(join.keys, left, right)
        val origin = inputs.worse(if (keys.known) Origin.Derived else Origin.Default)
        // Of a side that is proven to have each key once, a row finds one partner at most.
        val rows = Seq(
          Some(math.max(keys.rows, rowsOfExtremes(join.keys, left, right))),
          Option.when(join.rightUnique)(keys.leftRows),
          Option.when(join.leftUnique)(keys.rightRows)
        ).flatten.min
        def matched(share: Double, side: PlanEstimate) =
          if (rows <= keys.rows) share
          else math.max(share, math.min(1.0, rows / math.max(1.0, side.rows.value)))
        Matches(
          rows,
          matched(keys.leftMatched, left),
          matched(keys.rightMatched, right),
          origin,
          Some(keys)
        )
      } else {
        val rows = math.min(PlanEstimate.most, left.rows.value * right.rows.value)
        Matches(rows, 1.0, 1.0, inputs.worse(Origin.Default), None)
      }
    join.other.fold(all)(withCondition(join, all, _, left, right))
  }

  /**
   * Rows that have the least or the largest value of their group: one a group at least, where the rest
   * of the keys says which group is meant. 0 where no key compares a column with its own extreme.
   */
  private def rowsOfExtremes(
      keys: Seq[JoinKeys.Pair],
      left: PlanEstimate,
      right: PlanEstimate
  ): Double =
    if (left.extremes.isEmpty && right.extremes.isEmpty) 0.0
    else {
      def isExtremeOf(extreme: Expression, side: PlanEstimate, value: Expression) =
        PlanEstimate.columnOf(extreme).flatMap(column => side.extremes.get(column.exprId)) match {
          case Some(name) => PlanEstimate.columnOf(value).exists(_.name.equalsIgnoreCase(name))
          case None => false
        }
      val (extremes, group) = keys.partition(pair =>
        isExtremeOf(pair.left, left, pair.right) || isExtremeOf(pair.right, right, pair.left)
      )
      if (extremes.isEmpty || group.isEmpty) 0.0
      else {
        val found = JoinKeys(group, left, right)
        math.min(found.common, found.rows)
      }
    }

  /** What a condition beside the keys leaves: pairs, and rows that are still in one of them. */
  private def withCondition(
      join: EquiJoin,
      all: Matches,
      condition: Expression,
      left: PlanEstimate,
      right: PlanEstimate
  ): Matches = {
    val pairs = PlanEstimate(
      Quantity(math.max(1.0, all.rows), all.origin),
      PlanEstimate.most,
      None,
      left.columns ++ right.columns,
      domains = left.domains ++ right.domains,
      nullSupplied = left.nullSupplied ++ right.nullSupplied
    )
    val (alternatives, others) =
      Selectivity.conjuncts(condition).partition(_.isInstanceOf[Or])
    val kept = Selectivity.and(
      Selectivity.all(others, pairs) +: alternatives.map(notYetApplied(_, join, pairs))
    )
    def stillMatched(share: Double, rows: Double): Double = {
      val partners = if (share * rows > 0) math.max(1.0, all.rows / (share * rows)) else 1.0
      share * -math.expm1(partners * math.log1p(-math.min(kept.expected, 1.0 - 1e-12)))
    }
    all.copy(
      rows = all.rows * kept.expected,
      left = stillMatched(all.left, left.rows.value),
      right = stillMatched(all.right, right.rows.value),
      origin = all.origin.worse(kept.origin)
    )
  }

  /**
   * Alternatives that each ask something of a side: Spark has pushed that into the side, where it
   * has taken its share already.
   */
  private def notYetApplied(or: Expression, join: EquiJoin, pairs: PlanEstimate): Selectivity = {
    val alternatives = Selectivity.disjuncts(or).map(Selectivity.conjuncts)
    def pushed(side: AttributeSet): Double = {
      val parts = alternatives.map(
        _.filter(part => part.references.nonEmpty && part.references.subsetOf(side))
      )
      if (parts.exists(_.isEmpty)) 1.0
      else Selectivity.estimate(parts.map(_.reduce(And(_, _))).reduce(Or(_, _)), pairs).expected
    }
    val whole = Selectivity.estimate(or, pairs)
    val before = pushed(join.leftColumns) * pushed(join.rightColumns)
    if (before <= 0) whole
    else whole.copy(expected = Selectivity.clamp(whole.expected / before), upperBound = 1.0)
  }

  private def inner(
      join: EquiJoin,
      matches: Matches,
      left: PlanEstimate,
      right: PlanEstimate
  ): PlanEstimate = {
    val degrees = new KeyDegrees(matches.pairs, left, right)
    val upperBound = Seq(
      Some(math.min(PlanEstimate.most, left.upperBound * right.upperBound)),
      degrees.upperBound,
      Option.when(join.rightUnique)(left.upperBound),
      Option.when(join.leftUnique)(right.upperBound)
    ).flatten.min
    val keptLeft =
      withFewerRows(left, math.min(left.rows.value * matches.left, matches.rows), matches.leftKeys)
    val keptRight =
      withFewerRows(
        right,
        math.min(right.rows.value * matches.right, matches.rows),
        matches.rightKeys
      )
    PlanEstimate(
      Quantity(0, Origin.Exact),
      0,
      None,
      joinedKeys(keptLeft.columns ++ keptRight.columns, matches),
      domains = joinedDomains(matches, left, right),
      sourceRows = keptLeft.sourceRows ++ keptRight.sourceRows,
      nullSupplied = left.nullSupplied ++ right.nullSupplied,
      determinants = left.determinants ++ right.determinants ++
        matches.keys.fold(Map.empty[Long, Seq[Attribute]])(k =>
          k.leftDeterminants ++ k.rightDeterminants
        ),
      fanOut = degrees.fanOut,
      extremes = left.extremes ++ right.extremes
    ).withRows(
      Quantity(matches.rows, matches.origin),
      upperBound,
      boundOf(join, left, right)
    )
  }

  /**
   * `side` with the values and source rows that `rows` of its rows still have. What determines the
   * keys, as an order does its customer, finds a partner with all of its rows or with none.
   */
  private def withFewerRows(side: PlanEstimate, rows: Double, keys: Seq[Expression]): PlanEstimate =
    Selectivity.withFewerRows(
      side,
      side.columns,
      math.max(1.0, rows),
      SampledJoin.determining(keys, side)
    )

  /** Joined keys have the values that both sides have, and no nulls. */
  private def joinedKeys(
      columns: Map[ExprId, ColumnStatistics],
      matches: Matches
  ): Map[ExprId, ColumnStatistics] =
    matches.keys.fold(columns) { keys =>
      keys.pairs.foldLeft(columns) { (known, pair) =>
        val sides = Seq(pair.left, pair.right).flatMap(PlanEstimate.columnOf)
        val both = sides.flatMap(side => known.get(side.exprId))
        val (low, high) = (both.flatMap(_.min).maxOption, both.flatMap(_.max).minOption)
        val apart = (for (l <- low; h <- high) yield l > h).getOrElse(false)
        val fewest = both.flatMap(_.distinct).minOption.map(least =>
          if (keys.pairs.size == 1) math.min(least, keys.common) else least
        )
        sides.foldLeft(known) { (all, side) =>
          val before = all.getOrElse(side.exprId, ColumnStatistics())
          all.updated(
            side.exprId,
            before.copy(
              nullFraction = if (pair.nullSafe) before.nullFraction else Some(0.0),
              min = if (apart || before.min.isEmpty) before.min else low,
              max = if (apart || before.max.isEmpty) before.max else high,
              distinct = fewest.orElse(before.distinct)
            )
          )
        }
      }
    }

  /** A joined key is as frequent as on the side that has it more often. */
  private def joinedDomains(
      matches: Matches,
      left: PlanEstimate,
      right: PlanEstimate
  ): Map[ExprId, Domain] =
    matches.pairs.foldLeft(left.domains ++ right.domains) { (all, pair) =>
      (PlanEstimate.columnOf(pair.left), PlanEstimate.columnOf(pair.right)) match {
        case (Some(l), Some(r)) =>
          val rowsPerValue = Seq(left -> l, right -> r).map { case (side, column) =>
            side.distinct(column).map(side.rows.value / _)
          }
          val more =
            if (rowsPerValue.head.getOrElse(1.0) >= rowsPerValue.last.getOrElse(1.0)) l else r
          val sample = all.get(more.exprId).flatMap(_.sample)
          all ++ Seq(l, r).flatMap(column =>
            all.get(column.exprId).map(domain => column.exprId -> domain.copy(sample = sample))
          )
        case _ => all
      }
    }

  /** A join returns no more rows than one side where the other side's keys are proven unique. */
  private def boundOf(
      join: EquiJoin,
      left: PlanEstimate,
      right: PlanEstimate
  ): Option[Double] = {
    val product = for (l <- left.bound; r <- right.bound) yield l * r
    val proven = (if (join.rightUnique) left.bound else None).toSeq ++
      (if (join.leftUnique) right.bound else None)
    (proven ++ product).minOption
  }

  /**
   * Rows of a preserved side without a partner return once, with nulls on the other side. How many
   * is no more than expected, so nothing counts as known of nulls there.
   */
  private def outer(
      join: EquiJoin,
      matches: Matches,
      left: PlanEstimate,
      right: PlanEstimate,
      keepLeft: Boolean = false,
      keepRight: Boolean = false
  ): PlanEstimate = {
    val pairs = inner(join, matches, left, right)
    val unmatchedLeft = if (keepLeft) left.rows.value * (1.0 - matches.left) else 0.0
    val unmatchedRight = if (keepRight) right.rows.value * (1.0 - matches.right) else 0.0
    val rows = Seq(
      pairs.rows.value + unmatchedLeft + unmatchedRight,
      if (keepLeft) left.rows.value else 0.0,
      if (keepRight) right.rows.value else 0.0
    ).max
    val preserved =
      (if (keepLeft) Seq(left) else Nil) ++ (if (keepRight) Seq(right) else Nil)
    val bounds = pairs.bound +: preserved.map(_.bound)
    def nulls(side: PlanEstimate, unmatched: Double): Map[ExprId, Double] =
      if (rows <= 0) Map.empty
      else
        (side.columns.keySet ++ side.domains.keySet)
          .map(id => id -> (side.nullSupplied.getOrElse(id, 0.0) + unmatched / rows).min(1.0))
          .toMap
    val nullSupplied =
      (if (keepLeft) nulls(right, unmatchedLeft) else Map.empty[ExprId, Double]) ++
        (if (keepRight) nulls(left, unmatchedRight) else Map.empty[ExprId, Double])
    val whole = preserved.flatMap(_.columns)
    val columns = (pairs.columns ++ whole).map { case (id, column) =>
      id -> (if (nullSupplied.contains(id)) column.copy(nullFraction = None) else column)
    }
    pairs
      .copy(
        columns = columns,
        sourceRows = pairs.sourceRows ++ preserved.flatMap(_.sourceRows),
        // What returns without a partner is not determined by the partner's key, which is null.
        determinants = left.determinants ++ right.determinants ++ matches.keys
          .filterNot(_ => keepLeft && keepRight)
          .fold(Map.empty[Long, Seq[Attribute]])(k =>
            if (keepLeft) k.rightDeterminants else k.leftDeterminants
          ),
        nullSupplied = pairs.nullSupplied ++ nullSupplied
      )
      .withRows(
        Quantity(
          math.min(rows, PlanEstimate.most),
          Origin.worst(matches.origin +: preserved.map(_.rows.origin))
        ),
        pairs.upperBound + preserved.map(_.upperBound).sum,
        if (bounds.forall(_.isDefined)) Some(bounds.flatten.sum) else None
      )
  }

  /** Remembers what a semi join has reduced the values of its key to. */
  private def withReduction(
      join: EquiJoin,
      left: PlanEstimate,
      matches: Matches,
      right: PlanEstimate
  ): PlanEstimate = {
    val reduced = for {
      pair <- Option.when(join.keys.size == 1 && join.other.isEmpty)(join.keys.head)
      key <- PlanEstimate.columnOf(pair.left)
      values <- PlanEstimate.columnOf(pair.right)
      domain <- left.domains.get(key.exprId)
      reduction = SemiJoinReduction(values.exprId, right.rows.value, right.distinct(values))
    } yield {
      val all = domain.reductions.updated(reduction, Selectivity.clamp(matches.left))
      key.exprId -> domain.copy(reductions = all)
    }
    left.copy(domains = left.domains ++ reduced)
  }

  /** Joined keys have gone through the semi joins of either side. */
  private def withReductionsOfBoth(matches: Matches, joined: PlanEstimate): PlanEstimate = {
    def domain(key: Expression) =
      PlanEstimate.columnOf(key).flatMap(c => joined.domains.get(c.exprId).map(c.exprId -> _))
    val reduced = for {
      pair <- matches.pairs
      (leftKey, left) <- domain(pair.left).toSeq
      (rightKey, right) <- domain(pair.right).toSeq
      if left.reductions.nonEmpty || right.reductions.nonEmpty
      both <- Seq(
        leftKey -> left.withReductionsOf(right),
        rightKey -> right.withReductionsOf(left)
      )
    } yield both
    if (reduced.isEmpty) joined else joined.copy(domains = joined.domains ++ reduced)
  }

  private def semiJoined(left: PlanEstimate, matches: Matches, share: Double): PlanEstimate = {
    val kept = left.rows.value * Selectivity.clamp(share)
    withFewerRows(left, kept, matches.leftKeys).withRows(
      Quantity(kept, left.rows.origin.worse(matches.origin)),
      left.upperBound,
      left.bound
    )
  }
}
