package io.selinger.estimate.joins

import io.selinger.estimate.Domain

/** How many values two columns share, from sketches of all their values. */
private[estimate] object KeyOverlap {

  /**
   * Shares of the values of two domains that both have, as far as that is less than their ranges
   * say already: the keys of two tables may lie in one range and still be others.
   */
  def beyondRanges(left: Option[Domain], right: Option[Domain]): (Double, Double) =
    (for {
      l <- left.flatMap(_.keys)
      r <- right.flatMap(_.keys)
      (sharedLeft, sharedRight) <- l.shared(r)
    } yield {
      def beyond(shared: Double, low: Option[Double], high: Option[Double]) =
        if (low.isEmpty || high.isEmpty) shared
        else {
          val (from, to) = (Seq(l.low, r.low).flatten.max, Seq(l.high, r.high).flatten.min)
          val width = high.get - low.get
          val part = if (width > 0) (to - from) / width else 1.0
          if (part.isNaN) shared
          else math.min(1.0, shared / math.max(shared, math.max(1e-6, math.min(1.0, part))))
        }
      (
        math.max(least, beyond(sharedLeft, l.low, l.high)),
        math.max(least, beyond(sharedRight, r.low, r.high))
      )
    }).getOrElse((1.0, 1.0))

  // Sketches of a table that is written to while queries run prove nothing.
  private val least = 1e-6
}
