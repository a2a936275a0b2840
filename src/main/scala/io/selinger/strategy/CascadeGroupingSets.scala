package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedStrategy,
  Hook,
  Mode,
  NodeText,
  Outcome,
  Phase,
  PlanningPass,
  Precondition,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{ExactSums, UnknownRows}
import io.selinger.exec.GroupingSetCascadeExec
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.relations.QueryStages
import org.apache.spark.SparkEnv
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate._
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.util.UnsafeRowUtils
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.SparkPlan
import org.apache.spark.sql.execution.aggregate.{AggUtils, HashAggregateExec}
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.selinger.FloatingKeys

/**
 * Computes each grouping set of ROLLUP, CUBE and GROUPING SETS from a finer one, where Spark copies
 * every row once for each grouping set before it aggregates anything.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                             else STREAMING_PLAN
 *   2. grouping sets have different keys                    else ONE_GROUPING_SET
 *   3. there are not too many                              else TOO_MANY_GROUPING_SETS
 *   4. keys are columns that are compared by their bytes    else KEYS_NOT_BINARY
 *   5. no aggregate is DISTINCT                             else DISTINCT_AGGREGATE
 *   6. partial results of all aggregates can be merged in
 *      any order                                            else AGGREGATE_NOT_MERGEABLE
 *   7. no sum can exceed its type on the way                else SUM_MAY_OVERFLOW
 *   8. the shuffle above needs no memory of the task        else SHUFFLE_NEEDS_MEMORY
 * and then, needing more than the aggregation itself,
 *   9. Spark aggregates by hash tables, in two steps        else NO_HASH_AGGREGATE
 *  10. rows and groups can be estimated                     else NO_STATISTICS
 *  11. the cascade reads enough fewer rows                  else CASCADE_SAVES_LITTLE
 *
 * {{{
 *   SELECT a, b, sum(v) FROM t GROUP BY ROLLUP (a, b)
 *   Before:  HashAggregate final               After:  HashAggregate final
 *            +- Exchange                               +- Exchange
 *               +- HashAggregate partial                  +- GroupingSetCascade (a, b) ─> (a) ─> ()
 *                  +- Expand, 3 rows each                    +- HashAggregate partial, by a, b
 *                     +- t                                      +- t
 * }}}
 *
 * Correct because: a group of a coarser set is made of whole groups of a finer one, and the functions
 * taken merge partial results to the same value in any order. NULL as a key is a group of its own in
 * the finer set; in the coarser one its column is replaced as in Spark's copies, and the grouping id
 * tells the two apart. NaN and -0.0 are normalized below, before the first grouping. Without rows there
 * are no groups, not even for the empty set, as in Spark. Inputs of aggregates and their filters are
 * evaluated for the same rows, once instead of once for each set, so they raise the same errors. Sums
 * under ANSI mode, and decimals, fail or become null by their partial sums: taken only with room for
 * any. Floating-point sums may differ in the last bits, as they do with the order of rows.
 * Not done: DISTINCT, which needs the values; under ANSI mode, sums of bigint values that are not known
 * to fit into an int (ExactSums); min and max of float and double, since -0.0 and 0.0 are equal; standard deviations, whose merge loses digits; aggregates that
 * read the grouping columns after they are replaced.
 * Cost: planning O(sets²) estimates of groups. May lose when the finest groups are about as many as
 * rows and so are all others: stopped by the estimate of rows read. When memory runs out, rows go on
 * unmerged (GroupingSetCascadeExec).
 * Runs as a planner strategy, before Spark's Aggregation, which would take the copies apart again; at
 * each adaptive re-plan too, until the shuffle has begun. A second run decides the same.
 * Conf: spark.selinger.cascadeGroupingSets.enabled.  References: Gray et al., Data Cube, ICDE 1996;
 * Agarwal et al., On the Computation of Multidimensional Aggregates, VLDB 1996 (smallest parent).
 */
final class CascadeGroupingSets(session: SparkSession)
    extends GuardedStrategy(CascadeGroupingSets, SelingerConf.switches) {
  import CascadeGroupingSets._

  override protected def concerns(plan: LogicalPlan): Boolean =
    GroupingSetAggregate.isOverExpand(plan)

  override protected def choose(plan: LogicalPlan, mode: Mode): Seq[SparkPlan] = plan match {
    case GroupingSetAggregate(sets) =>
      Precondition.firstUnmet(preconditions, sets) match {
        case Some(reason) => decline(sets, reason)
        case None =>
          aggregated(sets) match {
            case Some(steps) => decide(sets, steps, mode)
            case None => decline(sets, NoHashAggregate)
          }
      }
    case _ => Nil
  }

  private def decide(sets: GroupingSetAggregate, steps: Steps, mode: Mode): Seq[SparkPlan] = {
    val work = CascadeWork.of(sets, Cluster.of(session))
    val evidence = work.evidence
    // Asked for even if nothing is known.
    val always = SelingerConf.CASCADE_MIN_GAIN.value == 0.0
    if (!work.known && !always) decline(sets, Reason.NoStatistics, evidence)
    else if (work.gain < SelingerConf.CASCADE_MIN_GAIN.value) {
      decline(sets, SavesLittle, evidence, work.gain)
    } else {
      val plan = steps.last.withNewChildren(Seq(cascade(sets, steps, work)))
      val outcome = Outcome.acting(mode)
      val undo = Remedy.above(work.gain).fold(Remedy(info.switch, Some("false"))) { gain =>
        Remedy(SelingerConf.CASCADE_MIN_GAIN.key, Some(gain))
      }
      val made = decision(sets, outcome, ReadsFewerRows, evidence, Some(undo)).copy(
        chosen = Some(s"cascade of ${sets.projections.size} grouping sets"),
        stock = Some(s"${sets.projections.size} copies of each row")
      )
      (made +: informed(sets)).foreach { each =>
        Decision.record(sets.aggregate, each)
        Decision.record(plan, each)
      }
      Seq(plan)
    }
  }

  /** The two steps of Spark's aggregation: the first by all keys below the cascade, the last above. */
  private def aggregated(sets: GroupingSetAggregate): Option[Steps] =
    sets.functions.map(ComputeDecimalsInLongs.withSums(_, sets.source)).flatMap { functions =>
      val keys = sets.keys.map(normalized)
      def planned(grouping: Seq[NamedExpression], results: Seq[NamedExpression]) =
        AggUtils.planAggregateWithoutDistinct(grouping, functions, results, planLater(sets.source))
      (planned(keys, keys.map(_.toAttribute)), planned(sets.grouping, sets.results)) match {
        case (Seq(HashSteps(first, _)), Seq(HashSteps(_, last))) =>
          val steps = Steps(first, last, buffersOf(functions))
          Option.when(
            first.output.map(_.exprId) == (sets.keys ++ steps.buffers).map(_.exprId)
          )(steps)
        case _ => None
      }
    }

  private def cascade(sets: GroupingSetAggregate, steps: Steps, work: CascadeWork): SparkPlan = {
    val functions = steps.last.aggregateExpressions.map(_.aggregateFunction).collect {
      case function: DeclarativeAggregate => function
    }
    GroupingSetCascadeExec(
      sets.grouping.map(_.toAttribute),
      sets.projections,
      work.sources,
      steps.buffers,
      functions.flatMap(_.initialValues),
      BindReferences.bindReferences(
        functions.flatMap(_.mergeExpressions),
        functions.flatMap(_.aggBufferAttributes) ++ steps.buffers
      ),
      work.rows.fold[SparkPlan](steps.first)(rows =>
        StopPartialAggregation.firstPhase(sets.aggregate, steps.first, rows, work.finest)
      )
    )
  }

  private def decline(
      sets: GroupingSetAggregate,
      reason: Reason,
      evidence: Seq[Evidence] = Nil,
      gain: Double = 0.0
  ): Seq[SparkPlan] = {
    val remedy = remedyOf(reason, gain, sets.projections.size)
    val made = decision(sets, Outcome.Declined, reason, evidence, remedy)
    (made +: informed(sets)).foreach(Decision.record(sets.aggregate, _))
    Nil
  }

  private def decision(
      sets: GroupingSetAggregate,
      outcome: Outcome,
      reason: Reason,
      evidence: Seq[Evidence],
      remedy: Option[Remedy]
  ): Decision = Decision(
    rule = info.id,
    node = NodeText.shorten(
      s"Grouping sets of ${sets.keys.map(_.name).mkString("(", ", ", ")")}"
    ),
    key = NodeText.key(sets.aggregate),
    outcome = outcome,
    reason = reason,
    phase = if (QueryStages.begun(sets.aggregate)) Phase.Adaptive else Phase.Static,
    detail = UnknownRows.detail(reason, sets.source),
    evidence = evidence,
    setting = remedy.map(_.key),
    settingTo = remedy.flatMap(_.value)
  )

  /** What was read about the leaves below. */
  private def informed(sets: GroupingSetAggregate): Seq[Decision] =
    sets.source.collectLeaves().flatMap(PlanningPass.current.informed)
}

object CascadeGroupingSets
    extends RuleDescription(
      "cascadeGroupingSets",
      RuleKind.Strategy,
      "Computes each grouping set of ROLLUP, CUBE and GROUPING SETS from a finer one, instead of " +
        "from copies of all rows."
    ) {

  val ReadsFewerRows: Reason = Reason(
    "CASCADE_READS_FEWER_ROWS",
    "Each grouping set is computed from a finer one, which has fewer rows than a copy of the input.",
    "Set spark.selinger.aggregate.cascadeMinGain higher to change fewer plans."
  )
  val SavesLittle: Reason = Reason(
    "CASCADE_SAVES_LITTLE",
    "The groups of the grouping sets are about as many as the rows, so computing one from another " +
      "saves little.",
    "Set spark.selinger.aggregate.cascadeMinGain lower, or run selinger.analyze for better estimates."
  )
  val OneSet: Reason = Reason(
    "ONE_GROUPING_SET",
    "All grouping sets here have the same keys, so none can be computed from a finer one.",
    "Nothing to do."
  )
  val TooManySets: Reason = Reason(
    "TOO_MANY_GROUPING_SETS",
    "There are more grouping sets than may have a hash table of their own in each task.",
    "Set spark.selinger.aggregate.cascadeMaxSets higher if tasks have the memory."
  )
  val KeysNotBinary: Reason = Reason(
    "KEYS_NOT_BINARY",
    "A grouping key has a collation, or is computed after rows are copied, so equal keys can have " +
      "different bytes.",
    "Group by a column of the default collation, if that is acceptable."
  )
  val DistinctAggregate: Reason = Reason(
    "DISTINCT_AGGREGATE",
    "A DISTINCT aggregate needs all values of a group, and cannot be merged from partial results.",
    "Use approx_count_distinct without DISTINCT aggregates beside it, if that is acceptable."
  )
  val ShuffleNeedsMemory: Reason = Reason(
    "SHUFFLE_NEEDS_MEMORY",
    "A shuffle of this many partitions sorts its rows in memory, which the hash tables of grouping " +
      "sets could take from it.",
    "Set spark.sql.shuffle.partitions to at most spark.shuffle.sort.bypassMergeThreshold (200 by " +
      "default)."
  )
  val NoHashAggregate: Reason = Reason(
    "NO_HASH_AGGREGATE",
    "Spark does not use a partial and a final hash aggregation here, for example because of min or " +
      "max of strings.",
    "Nothing to do."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PlannerStrategy(
      "Strategies are asked before Spark's own aggregation, and can place operators between its steps."
    )(new CascadeGroupingSets(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    OneSet,
    TooManySets,
    KeysNotBinary,
    DistinctAggregate,
    Reason.NotMergeable,
    Reason.SumMayOverflow,
    ShuffleNeedsMemory,
    NoHashAggregate,
    Reason.NoStatistics,
    SavesLittle,
    ReadsFewerRows
  )

  override def example: String =
    "SELECT item, customer, sum(cast(amount AS int)) FROM sales GROUP BY ROLLUP (item, customer)"

  private val preconditions: Seq[Precondition[GroupingSetAggregate]] = Seq(
    Precondition(Reason.StreamingPlan)(!_.aggregate.isStreaming),
    Precondition(OneSet)(_.differ),
    Precondition(TooManySets)(_.projections.size <= SelingerConf.CASCADE_MAX_SETS.value),
    Precondition(KeysNotBinary)(sets =>
      sets.hasPlainKeys && sets.keys.forall(key => UnsafeRowUtils.isBinaryStable(key.dataType))
    ),
    Precondition(DistinctAggregate)(!_.functions.exists(_.exists(_.isDistinct))),
    Precondition(Reason.NotMergeable)(_.functions.exists(_.forall(HashSteps.isMergeable))),
    Precondition(Reason.SumMayOverflow)(sets =>
      sets.functions.exists(_.forall { function =>
        ExactSums.isExact(function.aggregateFunction, sets.source)
      })
    ),
    Precondition(ShuffleNeedsMemory)(_ => shuffleNeedsNoMemory)
  )

  /** Up to this many partitions each has a file of its own, and rows are not kept. */
  private def mostFiles: Option[Int] =
    Option(SparkEnv.get).map(_.conf.getInt("spark.shuffle.sort.bypassMergeThreshold", 200))

  private def shuffleNeedsNoMemory: Boolean =
    mostFiles.forall(SQLConf.get.numShufflePartitions <= _)

  /** @param buffers columns of partial results that `first` returns and `last` reads */
  private final case class Steps(
      first: HashAggregateExec,
      last: HashAggregateExec,
      buffers: Seq[Attribute]
  )

  private def buffersOf(functions: Seq[AggregateExpression]): Seq[Attribute] =
    functions.flatMap(_.aggregateFunction.inputAggBufferAttributes)

  /** As Spark's own strategy groups: equal keys have the same bytes. */
  private def normalized(key: Attribute): NamedExpression = FloatingKeys.normalized(key) match {
    case same: NamedExpression => same
    case other => Alias(other, key.name)(exprId = key.exprId)
  }

  /**
   * @param gain of the cascade
   * @param sets how many grouping sets there are
   */
  private def remedyOf(reason: Reason, gain: Double, sets: Int): Option[Remedy] = reason match {
    case TooManySets => Some(Remedy(SelingerConf.CASCADE_MAX_SETS.key, Some(sets.toString)))
    case SavesLittle => Some(Remedy(SelingerConf.CASCADE_MIN_GAIN.key, Remedy.below(gain)))
    case ShuffleNeedsMemory =>
      Some(Remedy(SQLConf.SHUFFLE_PARTITIONS.key, mostFiles.map(_.toString)))
    case Reason.NoStatistics =>
      val footers = ReadFooterStatistics
      Option.unless(SelingerConf.switches.enabled(footers))(Remedy(footers.switch, Some("true")))
    case _ => None
  }
}
