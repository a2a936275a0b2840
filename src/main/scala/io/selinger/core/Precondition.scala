package io.selinger.core

/**
 * A condition that must hold before a rule acts, and the reason that is given when it does not: one
 * expression, so that "why not" cannot drift from the code.
 */
final case class Precondition[-A](reason: Reason)(val holds: A => Boolean)

object Precondition {

  /** The reason of the first condition that does not hold, in the order given. */
  def firstUnmet[A](conditions: Seq[Precondition[A]], subject: A): Option[Reason] =
    conditions.find(condition => !condition.holds(subject)).map(_.reason)
}
