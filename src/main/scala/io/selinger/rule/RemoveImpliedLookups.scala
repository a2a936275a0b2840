package io.selinger.rule

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  Evidence,
  GuardedRule,
  Hook,
  NodeText,
  Origin,
  Outcome,
  Phase,
  Precondition,
  Quantity,
  RaisedErrors,
  Reason,
  RootDecisions,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.{Cluster, JoinLimits, JoinSide}
import io.selinger.estimate.plans.{LeafStatistics, RelationNames, UnknownRows}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.rule.ImpliedLookups.{Implied, Lookup}
import org.apache.spark.sql.catalyst.expressions.And
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession

/**
 * Leaves out a filter with IN that another one makes superfluous: of two tables that are joined by equal
 * keys, one needs to be looked up in a subquery. Spark writes such pairs itself, since it infers each
 * filter on one column of an equality for the other.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. none of the joins has a hint                          else HINT_OBEYED
 *   3. nothing that is computed in between can raise         else ERRORS_DEPEND_ON_PLAN
 *   4. no other part of the query has the filtered joins     else SHARED_SUBPLAN
 *   5. rows of the side that stays can be estimated          else NO_STATISTICS
 *   6. the other side is first joined with it, and it is
 *      expected to be small enough for a broadcast, so
 *      that it reduces the other as well                     else KEPT_SIDE_LARGE
 * 5 and 6 do not matter where both lookups are in one filter.
 *
 * {{{
 *   SELECT * FROM sales s JOIN items i ON s.item = i.id WHERE s.item IN (SELECT item FROM chosen)
 *   Before:  Join Inner (item = id)                    After:  Join Inner (item = id)
 *            :- Filter (item IN chosen)                        :- sales
 *            :  +- sales                                       +- Filter (id IN chosen)
 *            +- Filter (id IN chosen)                             +- items
 *               +- items
 * }}}
 *
 * Correct because: inner joins and filters all are filters of one product, in any order. In each row that
 * passes them all the compared columns are equal, so it passes one lookup just when it passes the other.
 * Nulls pass neither. The rows that a lookup would have kept away from conditions in between now reach
 * them: these must not raise errors.
 * Not done: outer joins between the two; NOT IN, EXISTS and correlated subqueries, for which Spark writes
 * no second one; columns of different types, floating-point and collated values, whose equal values may
 * look different.
 * Cost: planning O(n × lookups) for n operators. May lose when the side that stays is larger than
 * estimated: then the other one is joined in full.
 * Runs in injectPreCBORule, after Spark has inferred filters and before orders of joins are chosen: two
 * lookups in the same rows have columns of the same ids, for which no order is chosen. A second run finds
 * one lookup and passes by.
 * Conf: spark.selinger.removeImpliedLookups.enabled.
 */
final class RemoveImpliedLookups(session: SparkSession)
    extends GuardedRule(RemoveImpliedLookups, SelingerConf.switches) {
  import RemoveImpliedLookups._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ =>
      val query = new WholeQuery(plan)
      val decided = ImpliedLookups.in(plan).flatMap(found =>
        Option.unless(isLate)(decide(found, query))
      )
      val removed = decided.collect {
        case (found, made) if made.outcome == Outcome.Changed =>
          found.removed
      }
      // Filters with IN become joins later.
      RootDecisions.on(without(plan, removed), decided.map(_._2))
  }

  private def decide(found: Implied, query: WholeQuery): (Implied, Decision) = {
    val kept = LeafStatistics.estimator
      .estimate(found.kept.input)
      .filter(_.rows.origin != Origin.Default)
    val limits = JoinLimits.ofSession(Phase.Static, Cluster.of(session))
    val fits = kept.map { estimate =>
      limits.mayBroadcast(JoinSide.of(estimate, found.columns), stockAgrees = false)
    }
    val declined = Precondition.firstUnmet(preconditions(query), Subject(found, fits))
    (found, decision(found, declined, kept.map(_.rows)))
  }

  private def decision(
      found: Implied,
      declined: Option[Reason],
      rows: Option[Quantity]
  ): Decision = {
    val acts = declined.isEmpty
    Decision(
      rule = info.id,
      node = NodeText.of(found.removed.filter),
      key = s"${NodeText.key(found.removed.filter)} ${found.removed.condition}",
      outcome = Outcome.of(declined, SelingerConf.switches.mode),
      reason = declined.getOrElse(Removed),
      chosen = Option.when(acts)(s"looked up for ${nameOf(found.kept)} alone"),
      stock = Option.when(acts)("for both"),
      detail = declined.flatMap(UnknownRows.detail(_, found.kept.input)),
      evidence =
        rows.toSeq.map(known => Evidence(nameOf(found.kept), known.value, "rows", known.origin)),
      setting = Option.when(acts)(info.switch),
      settingTo = Option.when(acts)("false"),
      title = Some(
        s"IN of ${Seq(found.removed, found.kept).map(nameOf).distinct.mkString(" and ")}"
      )
    )
  }
}

object RemoveImpliedLookups
    extends RuleDescription(
      "removeImpliedLookups",
      RuleKind.Logical,
      "Where Spark applies the same IN to two joined tables, applies it to the smaller one only."
    ) {

  val Removed: Reason = Reason(
    "LOOKUP_IMPLIED",
    "Spark would look up the keys of both tables in the subquery of IN. The tables are joined by these " +
      "keys, so it is enough to look up those of the smaller table: the join removes the same rows of " +
      "the other.",
    "Nothing to do."
  )

  val KeptLarge: Reason = Reason(
    "KEPT_SIDE_LARGE",
    "Spark looks up the keys of two joined tables in the subquery of IN. One lookup would be enough if " +
      "the smaller table were broadcast, and joined with the other before any third table. One of " +
      "these is not expected, so both lookups stay: each reduces the rows that are shuffled.",
    "Set spark.selinger.join.broadcastMaxBytes higher if there is memory for larger broadcasts."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.PreCbo(
      "Spark has inferred its filters by then, but Selinger has not yet chosen orders of joins."
    )(new RemoveImpliedLookups(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    Reason.HintObeyed,
    Reason.MayRaise,
    Reason.SharedSubplan,
    Reason.NoStatistics,
    KeptLarge,
    Removed
  )

  override def example: String =
    "SELECT * FROM sales s JOIN items i ON s.item = i.id WHERE s.item IN (SELECT item FROM sales WHERE amount > 1)"

  /** @param mayBroadcast whether the side that stays is small enough; none where its rows are not known */
  private final case class Subject(found: Implied, mayBroadcast: Option[Boolean])

  private def preconditions(query: WholeQuery): Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(_ => !query.isStreaming),
    Precondition(Reason.HintObeyed)(_.found.hints.forall(_ == JoinHint.NONE)),
    Precondition(Reason.MayRaise)(_.found.between.forall(RaisedErrors.isSafe)),
    Precondition(Reason.SharedSubplan)(subject =>
      !query.isSharedWithin(subject.found.removed.filter, subject.found.region)
    ),
    // Of two lookups in one filter, either does the work of both.
    Precondition(Reason.NoStatistics)(subject =>
      subject.found.isOneFilter || subject.mayBroadcast.isDefined
    ),
    Precondition(KeptLarge)(subject =>
      subject.found.isOneFilter ||
        subject.found.meetsKeptFirst && subject.mayBroadcast.forall(identity)
    )
  )

  private def nameOf(lookup: Lookup): String = RelationNames.of(lookup.filter)

  private def without(plan: LogicalPlan, removed: Seq[Lookup]): LogicalPlan = {
    def stripped(operator: LogicalPlan): LogicalPlan = operator match {
      case filter: Filter =>
        val conditions = removed.filter(_.filter eq filter).map(_.condition)
        val left = Selectivity
          .conjuncts(filter.condition)
          .filterNot(conjunct => conditions.exists(_ eq conjunct))
        if (conditions.isEmpty) filter
        else left.reduceOption(And).fold(stripped(filter.child))(Filter(_, filter.child))
      case other => other
    }
    if (removed.isEmpty) plan else plan.transformDown { case filter: Filter => stripped(filter) }
  }
}
