package io.selinger.core

/**
 * Stands around the work of rules that are asked on demand. Spark has no hook for these, at which a test
 * could put a broken rule in the place of a good one, or see what the good one gives: this is the place.
 * Outside of tests there is none.
 */
private[selinger] abstract class OnDemandProbe {
  def around[A](rule: RuleDescription)(work: => A): A
}

private[selinger] object OnDemandProbe {

  // Set by tests only, which run one after the other; other threads plan for them too.
  @volatile private var current = Option.empty[OnDemandProbe]

  private[core] def around[A](rule: RuleDescription)(work: => A): A = current match {
    case None => work
    case Some(probe) => probe.around(rule)(work)
  }

  /** Runs `body` with this probe in place. */
  def using[A](probe: OnDemandProbe)(body: => A): A = {
    current = Some(probe)
    try body
    finally current = None
  }
}
