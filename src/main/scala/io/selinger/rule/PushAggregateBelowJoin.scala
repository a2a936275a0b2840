package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Hook,
  Mode,
  NodeText,
  Origin,
  Outcome,
  Precondition,
  RaisedErrors,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.UnknownRows
import io.selinger.exec.AggregatePerTask
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession
import scala.collection.mutable

/**
 * Aggregates the input of a join before it is joined, where Spark joins every row first: partial
 * results of each group below the join, merged by the aggregate above. Joins and shuffles then see
 * groups instead of rows.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. all functions can be computed in two steps            else AGGREGATE_NOT_DIVISIBLE
 *   3. no join on the way has a hint                         else HINT_OBEYED
 *   4. the groups have keys that hashing can compare         else PARTIAL_KEYS_UNSUITABLE
 *   5. nothing that would be computed for more rows can
 *      raise errors                                          else ERRORS_DEPEND_ON_PLAN
 *   6. no other part of the query computes the same join
 *      for something else, and no partitions are pruned by
 *      what a join reads                                     else SHARED_SUBPLAN
 *   7. the rows can be estimated                             else NO_STATISTICS
 *   8. the number of groups is more than assumed             else GROUPS_UNKNOWN
 *   9. it saves enough rows, and a large enough share        else TOO_FEW_ROWS_SAVED
 * Of several inputs, the one where most rows are saved. 7 to 9 do not matter where
 * aggregate.eager.minGain is 0. An aggregate over no join is passed over. One without functions is
 * DISTINCT, which INTERSECT and EXCEPT have as well: below the join, duplicates are removed.
 *
 * {{{
 *   SELECT city, sum(amount) FROM sales JOIN customers ON customer = id GROUP BY city
 *   Before:  Aggregate [city], [sum(amount)]     After:  Aggregate [city], [sum(s)]
 *            +- Join (customer = id)                     +- Join (customer = id)
 *               :- sales                                    :- Aggregate [customer], [sum(amount) AS s]
 *               +- customers                                :  +- sales
 *                                                           +- customers
 * }}}
 *
 * Correct because: the keys of the partial aggregate are all columns of the input that anything above
 * reads, other than the functions divided. So all rows of a group meet the same partners, pass the same
 * filters and end in the same group above. Repeated partners repeat a partial result as they would
 * have repeated its rows. Functions of other columns count a row as often as the number of rows that
 * it stands for. On the null-supplied side of an outer join a made-up row has null parts, which add
 * nothing; a function that would read something else than null there is not divided, and such a row
 * stands for one. Keys are compared bit by bit, so groups of floating-point numbers and of collated
 * strings are left alone. There is always a key, so that no group is made from no rows. Types and
 * overflow: see PartialAggregate.
 *
 * The partial aggregate runs in each task by itself, without a shuffle (see AggregatePerTask). So its
 * keys are not unique, although it looks as if they were to Spark. No rule of Spark that relies on it
 * runs later. Plans of subqueries are optimized before these rules run on what they become part of;
 * so they are left alone until the whole query is at hand.
 *
 * Not done: partial aggregates on both sides of one join; functions with state of another kind than
 * sums, counts, least and largest values; least and largest texts and floating-point numbers; under ANSI,
 * sums of bigint values that are not known to fit into an int: they could overflow for rows that find no
 * partner.
 * Cost: planning O(joins²) estimates. May lose when there are more groups than estimated: then each
 * row is hashed once more, in memory that can spill.
 * Runs in experimental.extraOptimizations, since Spark has by then made joins of IN and EXISTS, and
 * whole numbers of short decimals, and no rule runs later that takes groups for unique. After
 * ShareSimilarAggregates: what that shares is equal in all places, and decided alike. A second run finds
 * the partial aggregate below and passes by.
 * Conf: spark.selinger.pushAggregateBelowJoin.enabled.  References: Yan, Larson, Eager Aggregation and
 * Lazy Aggregation, VLDB 1995; Larson, Data Reduction by Partial Preaggregation, ICDE 2002.
 */
final class PushAggregateBelowJoin(session: SparkSession)
    extends GuardedRule(PushAggregateBelowJoin, SelingerConf.switches) {
  import PushAggregateBelowJoin._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // It may still become part of another plan, and then meet rules that take groups for unique.
    case _: Subquery => plan
    case _ =>
      val query = new WholeQuery(plan)
      // What is shared stays equal, and so computed once, also where time runs out between two places.
      val decided = mutable.HashSet.empty[LogicalPlan]
      plan.transformDownWithSubqueries {
        case Pushable(aggregate, paths) if !isLate || decided(aggregate.canonicalized) =>
          decided += aggregate.canonicalized
          decide(aggregate, paths, query)
      }
  }

  private def decide(
      aggregate: Aggregate,
      paths: Seq[AggregatePath],
      query: WholeQuery
  ): LogicalPlan =
    choose(aggregate, paths, query) match {
      case Left(Declined(reason, saving)) =>
        record(aggregate, aggregate, Outcome.Declined, reason, saving)
        aggregate
      case Right((push, saving)) =>
        val acts = SelingerConf.switches.mode == Mode.On
        val result = push.result
        record(
          aggregate,
          if (acts) result else aggregate,
          if (acts) Outcome.Changed else Outcome.Advised,
          Pushed,
          saving
        )
        if (acts) result else aggregate
    }

  private def choose(
      aggregate: Aggregate,
      paths: Seq[AggregatePath],
      query: WholeQuery
  ): Either[Declined, (AggregatePush, Option[EagerSaving])] =
    if (query.isStreaming) Left(Declined(Reason.StreamingPlan, None))
    else bestOf(aggregate, paths, query)

  private def bestOf(
      aggregate: Aggregate,
      paths: Seq[AggregatePath],
      query: WholeQuery
  ): Either[Declined, (AggregatePush, Option[EagerSaving])] = {
    val least = SelingerConf.EAGER_MIN_GAIN.value
    val tasks = Cluster.of(session).slots
    val (declined, possible) = paths
      .map(path => AggregatePush.of(aggregate, path).toRight(NotDivisible).flatMap(checked(query)))
      .partitionMap(identity)
    val known = possible.flatMap(push => EagerSaving.of(aggregate, push, tasks).map(push -> _))
    val trusted = known.filter(_._2.groups.origin != Origin.Default)
    def best(among: Seq[(AggregatePush, EagerSaving)]) = among.maxByOption(_._2.gain)
    (possible, best(known), best(trusted)) match {
      case (Nil, _, _) =>
        Left(Declined(order.find(declined.contains).getOrElse(NotDivisible), None))
      case (first +: _, any, _) if least == 0.0 =>
        Right(any.fold((first, Option.empty[EagerSaving]))(made => (made._1, Some(made._2))))
      case (_, None, _) => Left(Declined(Reason.NoStatistics, None))
      case (_, Some((_, saving)), None) => Left(Declined(GroupsUnknown, Some(saving)))
      case (_, _, Some((push, saving))) =>
        if (saving.gain >= least && saving.saved >= SelingerConf.EAGER_MIN_ROWS.value.toDouble)
          Right((push, Some(saving)))
        else Left(Declined(TooFewSaved, Some(saving)))
    }
  }

  private def checked(query: WholeQuery)(push: AggregatePush): Either[Reason, AggregatePush] =
    Precondition.firstUnmet(preconditions(query), push).toLeft(push)

  private def record(
      aggregate: Aggregate,
      node: LogicalPlan,
      outcome: Outcome,
      reason: Reason,
      saving: Option[EagerSaving]
  ): Unit = {
    val remedy = remedyOf(reason, saving)
    Decision.record(
      node,
      Decision(
        rule = info.id,
        node = NodeText.of(aggregate),
        key = NodeText.key(aggregate),
        outcome = outcome,
        reason = reason,
        detail = UnknownRows.detail(reason, aggregate.child),
        evidence = saving.toSeq.flatMap(_.evidence),
        setting = remedy.map(_.key),
        settingTo = remedy.flatMap(_.value)
      )
    )
  }

  private def remedyOf(reason: Reason, saving: Option[EagerSaving]): Option[Remedy] = {
    val (share, rows) = (SelingerConf.EAGER_MIN_GAIN, SelingerConf.EAGER_MIN_ROWS)
    (reason, saving) match {
      case (Pushed, Some(known)) =>
        Some(Remedy.above(known.gain).fold(Remedy(info.switch, Some("false"))) { gain =>
          Remedy(share.key, Some(gain))
        })
      case (Pushed, None) => Some(Remedy(info.switch, Some("false")))
      case (TooFewSaved, Some(known)) if known.gain < share.value =>
        Some(Remedy(share.key, Remedy.below(known.gain)))
      case (TooFewSaved, Some(known)) =>
        Some(Remedy(rows.key, Some(math.max(0L, known.saved.toLong).toString)))
      // Nothing but another query, or better statistics, would change it.
      case _ => None
    }
  }
}

object PushAggregateBelowJoin
    extends RuleDescription(
      "pushAggregateBelowJoin",
      RuleKind.Logical,
      "Aggregates the input of a join before it is joined, where that leaves few rows."
    ) {

  val Pushed: Reason = Reason(
    "AGGREGATE_PUSHED",
    "The input of a join is grouped before it is joined, and the aggregate above merges the groups.",
    "Set spark.selinger.aggregate.eager.minGain higher to do so less often."
  )

  val TooFewSaved: Reason = Reason(
    "TOO_FEW_ROWS_SAVED",
    "Grouping the input of a join first would save too few rows for the work that it adds.",
    "Set spark.selinger.aggregate.eager.minGain or spark.selinger.aggregate.eager.minRows lower " +
      "to do so more often."
  )

  val NotDivisible: Reason = Reason(
    "AGGREGATE_NOT_DIVISIBLE",
    "An aggregate function here cannot be computed in parts below a join and merged above it with " +
      "the same result.",
    "Nothing to do."
  )

  val KeysUnsuitable: Reason = Reason(
    "PARTIAL_KEYS_UNSUITABLE",
    "Below the join, rows would be grouped by no column at all, or by one that is not compared bit " +
      "by bit, such as a floating-point number or a collated string.",
    "Nothing to do."
  )

  val GroupsUnknown: Reason = Reason(
    "GROUPS_UNKNOWN",
    "Nothing is known of the values of a column that the join's input would be grouped by.",
    "Run selinger.analyze on this table."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.LateBatch(
      "No rule of Spark runs later that would take the keys of a partial aggregate for unique."
    )(new PushAggregateBelowJoin(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    NotDivisible,
    Reason.HintObeyed,
    KeysUnsuitable,
    Reason.MayRaise,
    Reason.SharedSubplan,
    Reason.NoStatistics,
    GroupsUnknown,
    TooFewSaved,
    Pushed
  )

  override def example: String =
    "SELECT city, avg(amount) AS average FROM sales JOIN customers ON customer = id GROUP BY city"

  private final case class Declined(reason: Reason, saving: Option[EagerSaving])

  // The reason that is told where no input will do: the one of the input that came closest.
  private val order: Seq[Reason] = Seq(
    Reason.SharedSubplan,
    Reason.MayRaise,
    KeysUnsuitable,
    Reason.HintObeyed,
    NotDivisible
  )

  private def preconditions(query: WholeQuery): Seq[Precondition[AggregatePush]] = Seq(
    Precondition(Reason.HintObeyed)(!_.path.joins.exists(_.hint != JoinHint.NONE)),
    Precondition(KeysUnsuitable)(push =>
      push.keys.nonEmpty && push.keys.forall(AggregatePush.isComparable)
    ),
    Precondition(Reason.MayRaise) { push =>
      push.divided.forall(PartialAggregate.isSafe) &&
      !RaisedErrors.computesUnsafeColumns(push.path.input)
    },
    Precondition(Reason.SharedSubplan)(!query.isShared(_))
  )

  /** An aggregate over joins, and the ways to their inputs. */
  private object Pushable {
    def unapply(plan: LogicalPlan): Option[(Aggregate, Seq[AggregatePath])] = plan match {
      case aggregate @ Aggregate(keys, _, child, None)
          if keys.nonEmpty || AggregatePush.functionsOf(aggregate).nonEmpty =>
        val paths = AggregatePath.all(child)
        Option.when(paths.nonEmpty && !paths.exists(path => isPartial(path.input)))(
          (aggregate, paths)
        )
      case _ => None
    }

    private def isPartial(plan: LogicalPlan): Boolean = plan match {
      case Aggregate(_, _, _, hint) => hint.contains(AggregatePerTask)
      case _ => false
    }
  }
}
