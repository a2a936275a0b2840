package io.selinger.cost

import io.selinger.conf.SelingerConf
import io.selinger.core.{Phase, Reason}

/**
 * Which operators a join may run by, and what each costs: the one answer that both join ordering and
 * the choice of the operator ask for. Equal inputs have equal answers, whoever asks.
 *
 * @param operators usually all [[JoinOperators]]
 */
final class JoinOperatorModel(
    operators: Seq[JoinOperator],
    val cost: JoinCost,
    val limits: JoinLimits
) {
  import JoinOperatorModel._

  // By label, so that of operators that cost the same the first one is the cheapest.
  private val byLabel: Array[JoinOperator] = operators.sortBy(_.label).toArray

  /** The operators, those that are never chosen included. */
  def all: Seq[JoinOperator] = byLabel.toSeq

  def isFeasible(operator: JoinOperator, join: JoinFacts): Boolean =
    operator.isFeasible(join, limits)

  def seconds(operator: JoinOperator, join: JoinFacts): Double = operator.seconds(join, cost)

  /**
   * The cheapest operator that this join may run by; none where no operator is feasible. Join ordering
   * asks that hundreds of thousands of times in a query.
   */
  def cheapest(join: JoinFacts): Option[Priced] = {
    var best: Option[JoinOperator] = None
    var least = Double.PositiveInfinity
    var i = 0
    while (i < byLabel.length) {
      val operator = byLabel(i)
      if (operator.isFeasible(join, limits)) {
        val seconds = operator.seconds(join, cost)
        if (seconds < least) {
          best = Some(operator)
          least = seconds
        }
      }
      i += 1
    }
    best.map(o => Priced(o, least, o.memoryBytes(join)))
  }

  /** All operators that may be chosen for this join, the cheapest first. */
  def candidates(join: JoinFacts): Seq[Candidate] = {
    val feasible = byLabel.toSeq.filter(o => o.isChosen && o.isFeasible(join, limits))
    feasible
      .map { operator =>
        val reason = if (feasible.size == 1) operator.reasonIfAlone else operator.reason
        Candidate(operator, operator.seconds(join, cost), reason)
      }
      .sortBy(_.seconds)
  }

  /** The same operators at the same costs under other limits. */
  def under(others: JoinLimits): JoinOperatorModel = new JoinOperatorModel(operators, cost, others)
}

object JoinOperatorModel {

  /** All operators, as the session's settings price and limit them. */
  def ofSession(phase: Phase, cluster: Cluster): JoinOperatorModel =
    new JoinOperatorModel(
      JoinOperators.all,
      new JoinCost(cluster, SelingerConf.CBO_WEIGHT.value),
      JoinLimits.ofSession(phase, cluster)
    )

  /** An operator with what it costs, and the memory that it cannot spill. */
  final case class Priced(operator: JoinOperator, seconds: Double, memoryBytes: Double)

  /** An operator that may be chosen, with its cost and the reason if it is the cheapest. */
  final case class Candidate(operator: JoinOperator, seconds: Double, reason: Reason)
}
