package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{Amounts, Phase, Reason, Remedy}
import io.selinger.cost.{JoinLimits, JoinOperator, JoinOperators, JoinSettings, JoinSide}
import io.selinger.cost.JoinOperatorModel.Candidate
import io.selinger.stats.footers.ReadFooterStatistics
import org.apache.spark.sql.catalyst.optimizer.BuildLeft
import org.apache.spark.sql.internal.SQLConf

/** Which setting, set to what, would change the choice of a join's operator. */
private[strategy] final class JoinRemedy(problem: JoinProblem, phase: Phase) {
  import JoinRemedy._

  /** Of an operator that was chosen. */
  def of(best: Candidate, candidates: Seq[Candidate], stock: Option[JoinOperator]): Option[Remedy] =
    best.operator.broadcastSide match {
      case _ if best.reason == Reason.StockCheapEnough =>
        candidates.headOption.map { cheapest =>
          val gain = 1.0 - cheapest.seconds / best.seconds
          Remedy(SelingerConf.JOIN_MIN_GAIN.key, Remedy.below(gain))
        }
      case Some(build) =>
        val side = if (build == BuildLeft) problem.left.side else problem.right.side
        // Where Spark would broadcast as well, only an estimate far above the limit speaks against it.
        val margin = if (stock.contains(best.operator)) JoinLimits.stockMargin else 1.0
        val limit = below(side.tableBytes(side.rows) / margin)
        Some(Remedy(JoinSettings.broadcastKey(phase), Some(limit)))
      case None if stock.contains(best.operator) =>
        JoinOperators.settingOf(best.reason).map(Remedy(_, None))
      case None =>
        val spark = stock.flatMap(operator => candidates.find(_.operator == operator))
        val share = spark.flatMap(s => Remedy.above(1.0 - best.seconds / s.seconds))
        Some(
          share.fold(Remedy(SelectJoinOperator.switch, Some("false"))) { gain =>
            Remedy(SelingerConf.JOIN_MIN_GAIN.key, Some(gain))
          }
        )
    }

  /** Where no side was small enough: the limit at which the smaller one would be. */
  def ifTooLarge: Option[Remedy] = {
    val needed = Seq(problem.left.side, problem.right.side).map(neededToBroadcast).min
    val value = Option.when(needed < mostBroadcastBytes)(
      s"${math.ceil(needed / bytesOfMiB).toLong}m"
    )
    Some(Remedy(JoinSettings.broadcastKey(phase), value))
  }

  private def neededToBroadcast(side: JoinSide): Double =
    math.max(
      side.tableBytes(side.rows),
      side.tableBytes(side.upperBound) / JoinSettings.surpriseFactor
    )
}

private[strategy] object JoinRemedy {

  private val bytesOfMiB = 1048576.0

  // Spark refuses to broadcast more.
  private val mostBroadcastBytes = 8.0 * 1024 * bytesOfMiB

  /** Just below a size, as a conf takes it. */
  private def below(bytes: Double): String = Amounts.confBytes(math.max(1.0, bytes * 0.99))

  /** Where another setting than a limit is the reason; none where only other data would change it. */
  def ifDeclined(reason: Reason, phase: Phase): Option[Remedy] = reason match {
    case Reason.NoStatistics =>
      val footers = ReadFooterStatistics
      Option.unless(SelingerConf.switches.enabled(footers))(Remedy(footers.switch, Some("true")))
    case Reason.UserThreshold => Some(Remedy(thresholdKey(phase), Some("")))
    // None for hints, streams and the like: Selinger has not decided there, so no switch changes it.
    case other => JoinOperators.settingOf(other).map(Remedy(_, None))
  }

  private def thresholdKey(phase: Phase): String = {
    val key = JoinSettings.broadcastKey(phase)
    if (key == SelingerConf.BROADCAST_MAX_BYTES.key) SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key
    else key
  }
}
