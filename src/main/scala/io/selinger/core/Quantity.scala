package io.selinger.core

/**
 * How a number came to be known, best first. A decision that can lose asks for evidence that
 * matches its stake, so no number travels without its origin.
 */
sealed abstract class Origin(val label: String, private val rank: Int) {

  /** The weaker of two origins: what a number is worth that was computed from both. */
  final def worse(other: Origin): Origin = if (rank >= other.rank) this else other
}

object Origin {

  /** Counted: file footers, local rows, ranges. */
  case object Exact extends Origin("exact", 0)

  /** Observed while this query ran: a finished query stage, a loaded cache. */
  case object Measured extends Origin("measured", 1)

  /** Counted on a part and extrapolated. */
  case object Sampled extends Origin("sampled", 2)

  /** Computed from other numbers under the usual assumptions (uniformity, containment). */
  case object Derived extends Origin("derived", 3)

  /** Assumed, because nothing is known. */
  case object Default extends Origin("default", 4)

  /** Every origin, best first. */
  val all: Seq[Origin] = Seq(Exact, Measured, Sampled, Derived, Default)

  def worst(origins: Iterable[Origin]): Origin = origins.foldLeft[Origin](Exact)(_ worse _)
}

/** A number of some unit with its origin. */
final case class Quantity(value: Double, origin: Origin)

/** A quantity as a decision shows it: `right rows = 102000 rows (exact)`. */
final case class Evidence(name: String, value: Double, unit: String, origin: Origin)
