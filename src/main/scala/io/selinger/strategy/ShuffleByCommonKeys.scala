package io.selinger.strategy

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedPhysicalRule,
  Hook,
  Mode,
  NodeText,
  Outcome,
  Phase,
  Precondition,
  RaisedErrors,
  Reason,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{ExactSums, UnknownRows}
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.plans.FullOuter
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, LogicalPlan}
import org.apache.spark.sql.catalyst.plans.physical.HashPartitioning
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{SortExec, SparkPlan}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import org.apache.spark.sql.execution.exchange.{Exchange, ShuffleExchangeExec}
import org.apache.spark.sql.execution.joins.ShuffledJoin

/**
 * Shuffles rows once where Spark shuffles them twice: first by the keys of one operator, then by some of
 * the same keys for the next. A shuffle by these fewer keys is enough for both operators.
 *
 * Fires on a shuffle whose keys are all among those of an earlier shuffle of the same rows, when (each
 * line is a Precondition below, in this order):
 *   1. none of the shuffles serves another part of the
 *      query                                              else SHARED_SUBPLAN
 *   2. operators between them, which would move into
 *      the stage above, cannot raise errors               else ERRORS_DEPEND_ON_PLAN
 *   3. the values of the common keys can be estimated     else NO_STATISTICS
 *   4. these values spread the rows evenly over the
 *      partitions, or the rows are few                    else COMMON_KEYS_UNEVEN
 *
 * {{{
 *   SELECT item, day, sum(sum(price)) OVER (PARTITION BY item ORDER BY day)
 *   FROM sales GROUP BY item, day
 *   Before:  Window                            After:  Window
 *            +- Sort                                   +- Sort
 *               +- Exchange hash(item)                    +- HashAggregate final
 *                  +- HashAggregate final                    +- Exchange hash(item)
 *                     +- Exchange hash(item, day)               +- HashAggregate partial
 *                        +- HashAggregate partial                  +- sales
 *                           +- sales
 * }}}
 *
 * Between the two shuffles there may be projections, filters, sorts, windows, aggregations, broadcast
 * joins, and joins of two shuffled sides. Both sides of such a join are then shuffled by the common keys,
 * or not at all where their own operators have partitioned them so. The rows of a full outer join are
 * partitioned by whichever of two equal keys they have (PartitionedByEitherKeyExec): what comes above is
 * not shuffled if it is by coalesce(left key, right key), as USING has it.
 *
 * Correct because: rows with the same values of all keys have the same values of the common ones, so they
 * still meet in one partition, which is all that these operators require. Spark's own
 * ValidateRequirements checks that, and the rows are partitioned as the removed shuffle would have
 * partitioned them. For full outer joins it relies on what PartitionedByEitherKeyExec claims; both sides
 * are checked here to lie by columns that are their own join keys.
 * Not done: a second shuffle for a join, since what it measures decides whether that side is broadcast
 * (full outer joins have no such side; below another shuffle that goes, those of any join can go too);
 * shuffles that the query asks for (REPARTITION); unions; subqueries, since their plans do not tell what
 * they share with the query; both sides of a join in which one waits (awaitBuildSide); through the limits
 * that Spark adds for rank().
 * Cost: planning O(n) for n operators, once more for each change, and an estimate of the values. May lose
 * if one value is far more frequent than expected: Spark does not split the partitions of aggregations and
 * windows, nor those of a join on whose partitions another operator relies.
 * Runs in injectQueryStagePrepRule, after Spark has added shuffles, and after the rules that set their
 * number of partitions or hold them back; at each re-plan too, when what was decided first holds for
 * operators that are planned again. A second run finds no two such shuffles.
 * Conf: spark.selinger.shuffleByCommonKeys.enabled.  References: Zhou, Larson, Chaiken, Incorporating
 * Partitioning and Parallel Plans into the SCOPE Optimizer, ICDE 2010.
 */
final class ShuffleByCommonKeys(session: SparkSession)
    extends GuardedPhysicalRule(ShuffleByCommonKeys, SelingerConf.switches) {
  import ShuffleByCommonKeys._

  override protected def prepare(plan: SparkPlan, mode: Mode): SparkPlan =
    prepared(plan, new SharedShuffles(plan), mode, decidesJoin = false)

  /** @param decidesJoin whether `plan` is a side of a join that may be broadcast if it is small */
  private def prepared(
      plan: SparkPlan,
      shared: SharedShuffles,
      mode: Mode,
      decidesJoin: Boolean
  ): SparkPlan = {
    val deciding = plan match {
      case join: ShuffledJoin => join.joinType != FullOuter
      case _: SortExec => decidesJoin
      case _ => false
    }
    // First what is below: where a shuffle goes, more columns may turn out to have partitioned the rows.
    plan.mapChildren(prepared(_, shared, mode, deciding)) match {
      case Repeated(outer, changed) if !decidesJoin =>
        decided(new Subject(outer, changed, shared), shared, mode)
      case other => other
    }
  }

  private def decided(subject: Subject, shared: SharedShuffles, mode: Mode): SparkPlan =
    subject.logical match {
      case Some(logical) if !Subqueries.contain(logical) =>
        val unmet = Precondition.firstUnmet(preconditions, subject)
        Decision.record(logical, decision(logical, subject, unmet, mode))
        if (unmet.isDefined || mode != Mode.On) subject.outer
        else {
          val decided = logical.getTagValue(onceTag).getOrElse(Set.empty)
          logical.setTagValue(onceTag, decided + subject.keys)
          // A shuffle that is by fewer keys now may make one further down unnecessary.
          prepared(subject.changed.plan, shared, mode, decidesJoin = false)
        }
      case _ => subject.outer
    }

  /** A shuffle, and what it reads if that is partitioned in the same way. */
  private final class Subject(
      val outer: ShuffleExchangeExec,
      val changed: Repartitioned,
      shared: SharedShuffles
  ) {

    val logical: Option[LogicalPlan] = logicalOf(outer.child)

    val keys: String = outer.outputPartitioning match {
      case hash: HashPartitioning => hash.expressions.map(NodeText.readable).mkString(", ")
      case _ => ""
    }

    /** Whether this was done before: Spark refuses a re-plan that shuffles more often. */
    def isDecided: Boolean = logical.flatMap(_.getTagValue(onceTag)).exists(_.contains(keys))

    /** Operators between the shuffles, which will run in the stage above. */
    def mayRaise: Boolean = between(changed.plan).flatMap(_.logicalLink).distinct
      .exists(RaisedErrors.operatorMayRaise(_, ExactSums.fits))

    private def between(plan: SparkPlan): Seq[SparkPlan] = plan match {
      case _: Exchange | _: QueryStageExec => Nil
      case operator => operator +: operator.children.flatMap(between)
    }

    def isShared: Boolean = (outer +: (changed.shuffles ++ changed.leftOut).map(_.exchange))
      .exists(shared.places(_) > 1)

    /** How the rows of each earlier shuffle fall on partitions; none if unknown. */
    lazy val spreads: Seq[Option[KeySpread]] = {
      val cluster = Cluster.of(session)
      (changed.shuffles ++ changed.leftOut).map(spreadOf(_, cluster))
    }

    /** That decides: one that is uneven, if there is one. */
    def deciding: Option[KeySpread] = spreads.flatten.sortBy(_.isEven).headOption
  }

  private val preconditions: Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.SharedSubplan)(!_.isShared),
    // What was decided holds: of an operator that has run it is not known any more whether it may raise.
    Precondition(Reason.MayRaise)(subject => subject.isDecided || !subject.mayRaise),
    Precondition(Reason.NoStatistics)(subject =>
      subject.isDecided || subject.spreads.forall(_.isDefined)
    ),
    Precondition(Uneven)(subject =>
      subject.isDecided || subject.spreads.flatten.forall(_.isEven)
    )
  )

  private def decision(
      logical: LogicalPlan,
      subject: Subject,
      unmet: Option[Reason],
      mode: Mode
  ): Decision = {
    val fewer = subject.changed.shuffles.size
    Decision(
      rule = info.id,
      node = NodeText.shorten(s"Shuffle by ${subject.keys}"),
      key = s"shuffle by ${subject.keys} of ${NodeText.key(logical)}",
      outcome = Outcome.of(unmet, mode),
      reason = unmet.getOrElse(Once),
      phase = if (QueryStages.begun(logical)) Phase.Adaptive else Phase.Static,
      chosen = Option.when(unmet.isEmpty)(counted(fewer)),
      stock = Option.when(unmet.isEmpty)(counted(1 + fewer + subject.changed.leftOut.size)),
      detail = unmet.flatMap(UnknownRows.detail(_, logical)),
      evidence = unmet match {
        case None | Some(Uneven) => subject.deciding.toSeq.flatMap(_.evidence)
        case _ => Nil
      },
      setting = Option.when(unmet.isEmpty)(info.switch),
      settingTo = Option.when(unmet.isEmpty)("false")
    )
  }

  private def counted(shuffles: Int): String =
    if (shuffles == 0) "no shuffle" else if (shuffles == 1) "1 shuffle" else s"$shuffles shuffles"
}

object ShuffleByCommonKeys
    extends RuleDescription(
      "shuffleByCommonKeys",
      RuleKind.Adaptive,
      "Shuffles rows once instead of twice where the keys of the second shuffle are among those of the first."
    ) {

  override def hooks: Seq[Hook] = Seq(
    Hook.EachPlan(
      "Which operators belong to a subquery can be seen only from the root of the plan.",
      this,
      SelingerConf.switches
    )(Subqueries.mark),
    Hook.StagePreparation(
      "All shuffles of the plan are there by then, and none of those that change has begun."
    )(new ShuffleByCommonKeys(_))
  )

  val Uneven: Reason = Reason(
    "COMMON_KEYS_UNEVEN",
    "All keys of this shuffle are also keys of an earlier shuffle of the same rows. But they have too few " +
      "distinct values, or one value that is in too many rows. A shuffle by these keys alone would make " +
      "partitions of unequal size, so all of Spark's shuffles stay.",
    "Nothing to do."
  )

  val Once: Reason = Reason(
    "SHUFFLED_BY_COMMON_KEYS",
    "All keys of this shuffle are also keys of an earlier shuffle of the same rows. One shuffle by these " +
      "keys brings the rows that each operator needs into one task, so the others are left out.",
    "Set spark.selinger.shuffleByCommonKeys.enabled to false if a few tasks after this shuffle take much " +
      "longer than the others."
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.SharedSubplan,
    Reason.MayRaise,
    Reason.NoStatistics,
    Uneven,
    Once
  )

  override def example: String =
    "SELECT item, sold, sum(count(*)) OVER (PARTITION BY item ORDER BY sold) FROM sales GROUP BY item, sold"

  // On logical operators: the keys of each shuffle that was left out above them.
  private val onceTag = TreeNodeTag[Set[String]]("selinger.shuffledByCommonKeys")

  /** A shuffle for which an earlier one of the same rows can be by the same keys, and the rows then. */
  private object Repeated {
    def unapply(plan: SparkPlan): Option[(ShuffleExchangeExec, Repartitioned)] = plan match {
      case SparkShuffle(outer) =>
        outer.outputPartitioning match {
          case wanted: HashPartitioning =>
            Repartitioned.by(outer.child, wanted).map(outer -> _)
          case _ => None
        }
      case _ => None
    }
  }

  private def logicalOf(plan: SparkPlan): Option[LogicalPlan] =
    plan.collectFirst(Function.unlift((node: SparkPlan) => node.logicalLink))

  /** How the rows of a shuffle would fall on partitions; its groups are taken to be spread as its rows are. */
  private def spreadOf(shuffle: CoarserShuffle, cluster: Cluster): Option[KeySpread] =
    logicalOf(shuffle.exchange.child).flatMap { logical =>
      val grouped = logical match {
        case aggregate: Aggregate => aggregate.child
        case other => other
      }
      KeySpread.of(
        shuffle.keys,
        grouped,
        shuffle.exchange.outputPartitioning.numPartitions,
        ShuffleSize.of(shuffle.exchange, cluster)
      )
    }
}
