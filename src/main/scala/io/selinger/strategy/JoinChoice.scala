package io.selinger.strategy

import io.selinger.core.Reason
import io.selinger.cost.{JoinFacts, JoinOperatorModel}
import io.selinger.cost.JoinOperatorModel.Candidate

/**
 * The choice among the join operators that the model allows. The cheapest wins, by expected rows, but
 * for Spark's own operator where that costs little more.
 *
 * @param minGain share of the cost of Spark's operator that another one must save
 */
final class JoinChoice(model: JoinOperatorModel, minGain: Double) {
  import JoinChoice._

  def choose(join: JoinFacts): Choice = {
    val candidates = model.candidates(join)
    Choice(worthwhile(candidates, join), candidates)
  }

  /**
   * The cheapest, or Spark's own choice where that costs little more than estimates are worth. Without
   * keys Spark's choice says nothing.
   */
  private def worthwhile(candidates: Seq[Candidate], join: JoinFacts): Option[Candidate] =
    candidates.headOption.map { cheapest =>
      candidates
        .find(c => join.hasKeys && join.isStock(c.operator))
        .filter(_.seconds * (1.0 - minGain) <= cheapest.seconds)
        .map(_.copy(reason = Reason.StockCheapEnough))
        .filter(_.operator != cheapest.operator)
        .getOrElse(cheapest)
    }
}

object JoinChoice {

  /** @param best none where no operator is both possible and safe */
  final case class Choice(best: Option[Candidate], candidates: Seq[Candidate])
}
