package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  ExpectedWork,
  GuardedRule,
  Hook,
  NodeText,
  Origin,
  Outcome,
  Precondition,
  Reason,
  Remedy,
  RootDecisions,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{RelationNames, UnknownRows}
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreePattern.{GENERATE, JOIN, LIMIT, SORT}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.internal.SQLConf
import scala.collection.mutable.ArrayBuffer

/**
 * Takes the first rows of an input of joins before it is joined, where a query sorts the result by columns
 * of that input and returns the first rows (ORDER BY with LIMIT). Only these rows are joined then.
 *
 * Looks at ORDER BY with LIMIT above outer joins, above inner joins with all rows of a table, and above
 * LATERAL VIEW OUTER explode; also in branches of UNION ALL. Fires when (each line is a Precondition below, in
 * this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. nothing that would be computed for fewer rows can
 *      raise an error                                        else ERRORS_DEPEND_ON_PLAN
 *   3. no other part of the query computes such a join       else SHARED_SUBPLAN
 *   4. the rows can be estimated                             else NO_STATISTICS
 *   5. it saves at least sort.earlyTopNMinGain               else EARLY_TOP_N_SAVES_LITTLE
 *   6. of inner joins: each row is proven to have a match    else TOP_N_MATCH_NOT_PROVEN
 * A sort by columns of several inputs is passed over.
 *
 * {{{
 *   SELECT s.*, c.name FROM sales s LEFT JOIN customers c ON s.customer = c.id ORDER BY s.amount DESC LIMIT 10
 *   Before:  Limit 10                                  After:  Limit 10
 *            +- Sort [amount DESC]                             +- Sort [amount DESC]
 *               +- Join LeftOuter (customer = id)                 +- Join LeftOuter (customer = id)
 *                  :- sales                                          :- Limit 10
 *                  +- customers                                      |  +- Sort [amount DESC]
 *                                                                    |     +- sales
 *                                                                    +- customers
 * }}}
 *
 * Correct because: each row of the input is in the joins' result at least once, with the same values of
 * what is sorted by. So n rows of the input stand for n rows of the result or more, and a row that comes
 * after these n in the order is not needed. An outer join keeps the rows of its preserved side; an inner join
 * keeps each row whose key is among all keys of the table (Lookup, ProvenKeys) and not null. Of rows that are
 * equal in all that is sorted by, SQL leaves open which are returned, and Spark's choice depends on how they
 * are spread; this rule's may be others. Conditions, projections and arrays are evaluated for fewer rows: they must
 * not raise errors, nor be random.
 * Not done: LIMIT without ORDER BY, which Spark pushes below outer joins itself; semi joins; full outer
 * joins; sorts above aggregations and window functions; inner joins with filtered tables; sessions in which
 * spark.sql.optimizer.dynamicPartitionPruning.reuseBroadcastOnly is false.
 * Cost: planning O(n) for n operators below such a sort, and the columns that Lookup has read. May lose where
 * the input has few rows, or where the joins that follow in one task take long: 5.
 * Runs in injectPreCBORule after EliminateJoins, which leaves out joins that need no early rows, and before
 * orders of joins are chosen: those of the input and those above it are chosen apart. A second run finds
 * an input of few rows and passes by.
 * Conf: spark.selinger.pushTopNBelowJoin.enabled, spark.selinger.sort.earlyTopNMinGain.
 * References: Carey, Kossmann, On Saying "Enough Already!" in SQL, SIGMOD 1997 (non-reductive joins).
 */
final class PushTopNBelowJoin(session: SparkSession)
    extends GuardedRule(PushTopNBelowJoin, SelingerConf.switches) {
  import PushTopNBelowJoin._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    // Spark still looks for the limit at its root.
    case Subquery(_, true) => plan
    case _ if !plan.containsAllPatterns(LIMIT, SORT) => plan
    case _ if !plan.containsAnyPattern(JOIN, GENERATE) => plan
    // Which rows it takes depends on how these are spread.
    case _ if plan.exists(_.isInstanceOf[Sample]) => plan
    case _ if readsTwice => plan
    case _ =>
      val pushes = new Pushes(new WholeQuery(plan), new GroupedInputCost(Cluster.of(session)))
      RootDecisions.on(pushes.below(plan), pushes.made)
  }

  /**
   * Whether Spark may compute a side of a join once more, to prune partitions of the other. Of rows that are
   * equal in what is sorted by, it may then take others.
   */
  private def readsTwice: Boolean = {
    val conf = SQLConf.get
    conf.dynamicPartitionPruningEnabled && !conf.dynamicPartitionPruningReuseBroadcastOnly
  }

  private final class Pushes(query: WholeQuery, cost: GroupedInputCost) {
    private val decided = ArrayBuffer.empty[Decision]

    def made: Seq[Decision] = decided.toSeq

    def below(plan: LogicalPlan): LogicalPlan =
      if (isLate || !plan.containsAllPatterns(LIMIT, SORT)) plan
      else {
        val inner = plan.mapChildren(below)
        val branches = TopN.of(inner).fold(0)(EarlyTopN.of(_).size)
        lazy val uses = query.times(plan)
        (0 until branches).foldLeft(inner) { (changed, branch) =>
          val pushed = for {
            top <- TopN.of(changed)
            place <- chosen(EarlyTopN.of(top)(branch).map(new Subject(top, uses, _, query, cost)))
          } yield place
          pushed.getOrElse(changed)
        }
      }

    /** The best of the ways for one branch; none where it stays. */
    private def chosen(ways: Seq[Subject]): Option[LogicalPlan] = ways.lastOption.flatMap { last =>
      val judged = ways.to(LazyList).map(way => way -> Precondition.firstUnmet(preconditions, way))
      val (best, declined) = judged.find(_._2.isEmpty).getOrElse(last -> judged.last._2)
      val outcome = Outcome.of(declined, SelingerConf.switches.mode)
      decided += decision(best, outcome, declined)
      Option.when(outcome == Outcome.Changed)(best.result)
    }
  }

  private def decision(
      subject: Subject,
      outcome: Outcome,
      declined: Option[Reason]
  ): Decision = {
    val acts = declined.isEmpty
    val name = RelationNames.of(subject.place.input)
    val remedy = declined match {
      case None => Some(subject.gain.flatMap(Remedy.above) match {
          case Some(gain) => Remedy(SelingerConf.EARLY_TOP_N_MIN_GAIN.key, Some(gain))
          case None => Remedy(info.switch, Some("false"))
        })
      case Some(SavesLittle) =>
        Some(Remedy(SelingerConf.EARLY_TOP_N_MIN_GAIN.key, subject.gain.flatMap(Remedy.below)))
      case _ => None
    }
    Decision(
      rule = info.id,
      node = NodeText.of(subject.place.joins.last),
      key = NodeText.key(subject.place.joins.last),
      outcome = outcome,
      reason = declined.getOrElse(Pushed),
      chosen =
        Option.when(acts)(s"first ${subject.top.most} rows of $name taken before it is joined"),
      stock = Option.when(acts)("after all rows are joined"),
      detail = declined.flatMap(UnknownRows.detail(_, subject.place.joins.last)),
      evidence = if (declined.forall(_ == SavesLittle)) subject.evidence else Nil,
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      title = Some(subject.place.joins.last).collect { case join: Join =>
        RelationNames.titleOf(join)
      },
      work = subject.costs.filter(_ => acts).map { case (stock, chosen) =>
        ExpectedWork(stock, chosen)
      }
    )
  }
}

object PushTopNBelowJoin
    extends RuleDescription(
      "pushTopNBelowJoin",
      RuleKind.Logical,
      "Where a query returns the first rows of a sorted join (ORDER BY with LIMIT), takes the first rows of " +
        "the input that it sorts by before they are joined."
    ) {

  val Pushed: Reason = Reason(
    "TOP_N_BEFORE_JOIN",
    "The query sorts by columns of one input of the joins and returns the first rows. No join removes a row " +
      "of that input, so its first rows are taken before they are joined.",
    "Set spark.selinger.sort.earlyTopNMinGain higher to do so less often."
  )

  val SavesLittle: Reason = Reason(
    "EARLY_TOP_N_SAVES_LITTLE",
    "The query sorts by columns of one input of the joins and returns the first rows. They could be taken " +
      "before they are joined, but that would not save enough: the input has few rows, or the joins take " +
      "little time.",
    "Set spark.selinger.sort.earlyTopNMinGain lower to do so more often."
  )

  val MatchNotProven: Reason = Reason(
    "TOP_N_MATCH_NOT_PROVEN",
    "The query sorts by columns of one input of the joins and returns the first rows. They could be taken " +
      "before they are joined, if no inner join removed any of them. But it is not proven that each row has a " +
      "match. It is proven only for keys of integers, if the table that is joined has all numbers from its " +
      "smallest to its largest key, and if the footers of the input show that its values lie between these.",
    "Use LEFT JOIN if rows without a match shall stay. If the table has all these numbers, and more rows than " +
      "spark.selinger.keys.maxRows, run selinger.declare_key."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Spark has pushed filters and limits by then, and Selinger has not yet chosen orders of joins, which " +
        "depend on how many rows an input has."
    )(new PushTopNBelowJoin(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.MayRaise,
    Reason.SharedSubplan,
    Reason.NoStatistics,
    SavesLittle,
    MatchNotProven,
    Pushed
  )

  override def example: String =
    "SELECT s.amount, i.name FROM sales s LEFT JOIN items i ON s.item = i.id " +
      "ORDER BY s.amount DESC, s.ticket, s.item LIMIT 10"

  /** @param uses how often the query has it as it was written */
  private final class Subject(
      val top: TopN,
      uses: Int,
      val place: EarlyTopN,
      query: WholeQuery,
      cost: GroupedInputCost
  ) {
    lazy val result: LogicalPlan = place.cut(top.most)

    /** Seconds as written, and with the first rows taken early, in a stage of its own. */
    lazy val costs: Option[(Double, Double)] =
      for (stock <- cost.computed(top.plan); early <- cost.computed(result))
        yield (stock, early + cost.stage)

    def gain: Option[Double] = costs.map { case (stock, early) => 1 - early / stock }

    def isStreaming: Boolean = query.isStreaming

    def isShared: Boolean = place.joins.exists(query.times(_) > uses)

    def savesEnough: Boolean = gain.exists(_ >= SelingerConf.EARLY_TOP_N_MIN_GAIN.value) && isFew

    /** Whether one task, which has the first rows, joins no more of them than each had to join before. */
    private def isFew: Boolean =
      cost.assumedRows(place.input).exists(_ >= top.most.toDouble * cost.slots)

    def evidence: Seq[Evidence] =
      cost.rowsOf(place.input).toSeq.map { rows =>
        Evidence(RelationNames.of(place.input), rows.value, "rows", rows.origin)
      } ++ costs.toSeq.flatMap { case (stock, early) =>
        Seq(
          Evidence("cost as written", stock, "s", Origin.Derived),
          Evidence("cost with early first rows", early, "s", Origin.Derived)
        )
      }
  }

  private def always: Boolean = SelingerConf.EARLY_TOP_N_MIN_GAIN.value == 0.0

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.isStreaming),
    Precondition(Reason.MayRaise)(_.place.isSafe),
    Precondition(Reason.SharedSubplan)(!_.isShared),
    Precondition(Reason.NoStatistics)(always || _.costs.isDefined),
    Precondition(SavesLittle)(always || _.savesEnough),
    Precondition(MatchNotProven)(_.place.findsAll)
  )
}
