package io.selinger.ordering.tree

import io.selinger.ordering.graph.JoinKind

/**
 * What a join costs by rows alone, all of one width and with one key: a line for each operator.
 *
 * @param broadcast a hash join of a broadcast side
 * @param hashed a shuffled hash join
 * @param sorted a sort-merge join
 * @param ofPair seconds of each pair of rows beyond one for each row of the larger side
 * @param ofRow seconds of each row returned
 * @param mostBroadcast rows of a side that may be broadcast
 * @param mostFeared the same of the rows that are feared
 * @param mostHashed rows of a side that may be hashed after a shuffle
 */
final case class RoughCost(
    broadcast: RoughCost.Line,
    hashed: RoughCost.Line,
    sorted: RoughCost.Line,
    ofPair: Double,
    ofRow: Double,
    mostBroadcast: Double,
    mostFeared: Double,
    mostHashed: Double
) {

  /** Seconds, without what the inputs take; `highs` are feared rows. */
  def seconds(
      kind: JoinKind,
      left: Double,
      leftHigh: Double,
      right: Double,
      rightHigh: Double,
      pairs: Double,
      rows: Double
  ): Double = {
    var best = sorted(left, right)
    if (left <= mostHashed && kind.mayHashLeft) best = math.min(best, hashed(left, right))
    if (right <= mostHashed) best = math.min(best, hashed(right, left))
    if (left <= mostBroadcast && leftHigh <= mostFeared && kind.mayBroadcastLeft) {
      best = math.min(best, broadcast(left, right))
    }
    if (right <= mostBroadcast && rightHigh <= mostFeared && kind.mayBroadcastRight) {
      best = math.min(best, broadcast(right, left))
    }
    best + math.max(0.0, pairs - math.max(left, right)) * ofPair + rows * ofRow
  }
}

object RoughCost {

  /** Seconds of an operator: at least, and of each row that it builds from and of each other one. */
  final case class Line(least: Double, ofBuilt: Double, ofStreamed: Double) {
    def apply(built: Double, streamed: Double): Double =
      least + built * ofBuilt + streamed * ofStreamed
  }

  object Line {

    /** Through what an operator costs without rows, and with so many on one side. */
    def through(rows: Double)(seconds: (Double, Double) => Double): Line = {
      val least = seconds(0.0, 0.0)
      Line(least, (seconds(rows, 0.0) - least) / rows, (seconds(0.0, rows) - least) / rows)
    }
  }
}
