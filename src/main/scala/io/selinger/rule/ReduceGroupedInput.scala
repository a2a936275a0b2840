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
  Quantity,
  RaisedErrors,
  Reason,
  Remedy,
  RuleDescription,
  RuleKind
}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.{ExactSums, RelationNames, UnknownRows}
import org.apache.spark.sql.catalyst.expressions.Expression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.classic.SparkSession

/**
 * Filters the input of an aggregation, or of window functions, by the keys of a join above it, if that
 * join needs only few of the groups. The other groups are then neither computed nor shuffled.
 *
 * Fires when (each line is a Precondition below, in this order):
 *   1. the plan is not a stream                              else STREAMING_PLAN
 *   2. it gives the same values whenever it runs             else RANDOM_VALUES
 *   3. nothing that would be computed for fewer rows can
 *      raise errors                                          else ERRORS_DEPEND_ON_PLAN
 *   4. each place of the query that uses these groups needs
 *      only some of them, by the same keys                   else GROUPS_SHARED
 *   5. the keys are known to be few enough for a broadcast   else TOO_MANY_KEYS_TO_BROADCAST
 *   6. the rows can be estimated                             else NO_STATISTICS
 *   7. it saves enough rows, and a large enough share of
 *      the cost                                              else FEW_GROUPS_DROPPED
 * 5 to 7 do not matter where aggregate.reduceInputMinGain is 0. Without a decision, an aggregation is passed
 * over if the other side of the join does not reduce the keys enough, or cannot be computed a second time.
 *
 * {{{
 *   SELECT * FROM items JOIN (SELECT item, avg(amount) AS a FROM sales GROUP BY item) ON id = item
 *   WHERE brand = 'b'
 *   Before:  Join Inner (id = item)            After:  Join Inner (id = item)
 *            :- Filter (brand = b)                     :- Filter (brand = b)
 *            |  +- items                               |  +- items
 *            +- Aggregate [item], [avg(amount)]        +- Aggregate [item], [avg(amount)]
 *               +- sales                                  +- Join LeftSemi (item = key)
 *                                                            :- sales
 *                                                            +- Project [id AS key]
 *                                                               +- Filter (brand = b)
 *                                                                  +- items
 * }}}
 *
 * Correct because: the join drops the rows of this side that have no matching row, and all rows of a group
 * or partition have the same key. So a group is left out as a whole, and only if nothing matches it. The
 * keys come from a part of the other side: operators above that part may drop or repeat rows, but never
 * add a key, except null, which matches nothing. Types whose equal values can have other bits
 * (floating-point numbers, collated texts) are no keys. The plan of the keys runs twice and must give the
 * same rows (see KeySource). Errors that Spark raises for a row must be raised, so nothing that could raise
 * is computed for fewer rows.
 * Where several parts of a query share equal aggregations, all of them are filtered by the keys of all
 * parts, and stay equal. Sides of a join that are equal, or that prune the partitions of the other, stay.
 * Not done: a second reduction of the same groups; full outer joins; keys that an aggregation computes.
 * Cost: planning O(joins × depth) steps, and estimates for at most four plans of keys each. May lose when more
 * rows match than estimated: then each row is looked up, and few are dropped.
 * Runs in experimental.extraOptimizations: joins have their order, so that it is known what stands beside
 * each aggregation, and no rule of Spark would move the semi join any more. After the rules that merge
 * similar aggregations, which filters would make different. A second run finds the semi join by its tag.
 * Conf: spark.selinger.reduceGroupedInput.enabled.  References: Mumick, Finkelstein, Pirahesh, Ramakrishnan,
 * Magic is Relevant, SIGMOD 1990; Seshadri et al., Cost-Based Optimization for Magic, SIGMOD 1996.
 */
final class ReduceGroupedInput(session: SparkSession)
    extends GuardedRule(ReduceGroupedInput, SelingerConf.switches) {
  import ReduceGroupedInput._

  override protected def rewrite(plan: LogicalPlan): LogicalPlan = plan match {
    // Its aggregations may be needed by the query around it.
    case _: Subquery => plan
    // Spark takes their conditions apart once more, to find the rows that are written.
    case _: RowLevelWrite => plan
    case _ =>
      val candidates = joinsOf(plan).iterator
        .filterNot(_ => isLate)
        .flatMap(GroupCandidate.at)
        .flatMap(withFewKeys)
        .toSeq
      if (candidates.isEmpty) plan else reduced(plan, candidates)
  }

  private def reduced(plan: LogicalPlan, candidates: Seq[GroupCandidate]): LogicalPlan = {
    val query = new WholeQuery(plan)
    val outcome = Outcome.acting(SelingerConf.switches.mode)
    val replacements = new Replacements
    // The largest first: what is below it may be reduced with it.
    candidates
      .map(_.node)
      .distinctBy(_.canonicalized)
      .sortBy(-_.collect { case node => node }.size)
      .iterator
      .map(query.equalTo)
      .filterNot(nodes => isLate || nodes.exists(replacements.isGone))
      .foreach { nodes =>
        val places = GroupPlace.all(nodes, candidates)
        val subject = new Subject(places, reductionOf(places, query))
        Precondition.firstUnmet(preconditions(query), subject) match {
          case None =>
            for (found <- subject.reduction; place <- places) {
              val plan = made(found, place, query, _.columnsOfCopy)
              val changed = if (outcome == Outcome.Changed) plan else place.node
              Decision.record(changed, decision(place, outcome, Reduced, subject))
              replacements.put(place.node, plan)
            }
          case Some(reason) =>
            places.foreach { place =>
              Decision.record(place.node, decision(place, Outcome.Declined, reason, subject))
            }
        }
      }
    if (outcome == Outcome.Changed) replacements.in(plan) else plan
  }

  /** Those that may need few groups; what has been put in to have keys is left alone. */
  private def joinsOf(plan: LogicalPlan): Seq[Join] = {
    val joins = plan.collectWithSubqueries { case join: Join => join }
    val ofKeys = joins.filter(GroupedInput.isReducer).flatMap(_.right.collect { case join: Join =>
      join
    })
    joins.filterNot(join => ofKeys.exists(_ eq join))
  }

  private val cost = new GroupedInputCost(Cluster.of(session))

  /** With plans that have few enough of the keys to save something. */
  private def withFewKeys(candidate: GroupCandidate): Option[GroupCandidate] = {
    val most = 1.0 - SelingerConf.REDUCE_GROUPED_MIN_GAIN.value
    val few =
      if (always) candidate.sources
      else candidate.sources.filter(cost.shareOf(candidate.node, _, identity).forall(_ <= most))
    Option.when(few.nonEmpty)(candidate.copy(sources = few))
  }

  /** The one that costs least; by keys that all places have. */
  private def reductionOf(places: Seq[GroupPlace], query: WholeQuery): Option[Reduction] = {
    val inAll = places.map(_.sources.keySet).reduce(_ intersect _)
    val found = inAll.toSeq.sortBy(_.toString).map { keys =>
      val sources = places
        .map(place => cheapest(place, place.sources(keys)))
        .distinctBy(_.columns.canonicalized)
      priced(Reduction(keys, sources, sources.forall(cost.isSmall)), places.head, query)
    }
    val small = found.filter(_.isSmall)
    (if (small.isEmpty) found else small).minByOption(_.saving.fold(Double.MaxValue)(_.chosen))
  }

  /** Roughly, since these are compared before anything is built with them. */
  private def cheapest(place: GroupPlace, sources: Seq[KeySource]): KeySource = {
    lazy val all = cost.plain(place.node)
    sources
      .sortBy(cost.sideOf(_).fold(Double.MaxValue)(_.rows))
      .take(mostSources)
      .minBy { source =>
        val left = for (seconds <- all; share <- cost.shareOf(place.node, source, place.over))
          yield seconds * share
        cost.plain(source.plan).fold(Double.MaxValue)(_ + left.getOrElse(0.0))
      }
  }

  /**
   * Equal groups in one of their places, reduced.
   *
   * @param columns of a source, as the semi join is to have them
   */
  private def made(
      reduction: Reduction,
      place: GroupPlace,
      query: WholeQuery,
      columns: KeySource => LogicalPlan
  ): LogicalPlan =
    new InputReducer(
      () =>
        reduction.sources.map(columns) match {
          case Seq(one) => one
          case several => Union(several)
        },
      query.isSharedBeyond(_, place.node),
      cost.rowsOf(_).map(_.value)
    ).reduced(place.node, reduction.keys.map(place.over))

  private def priced(
      reduction: Reduction,
      place: GroupPlace,
      query: WholeQuery
  ): Reduction = {
    // For the costs it does not matter that the plans of the keys are no copies.
    lazy val plan = made(reduction, place, query, _.columns)
    val saving = for {
      sides <- ExpressionSets.all(reduction.sources.map(cost.sideOf))
      if reduction.isSmall
      stock <- cost.of(place.node)
      chosen <- cost.of(plan)
      rows <- cost.rowsOf(place.node.children.head)
      kept <- cost.rowsOf(plan.children.head)
    } yield Saving(
      rows,
      kept,
      sides.map(_.rows).sum,
      stock,
      chosen + sides.map(cost.broadcast).sum
    )
    reduction.copy(saving = saving)
  }

  private def decision(
      place: GroupPlace,
      outcome: Outcome,
      reason: Reason,
      subject: Subject
  ): Decision = {
    val reduction = if (isPossible(reason)) subject.reduction else None
    val saving = reduction.flatMap(_.saving)
    val remedy = remedyOf(reason, saving)
    val acts = reason == Reduced
    def relations(plans: Seq[LogicalPlan]) =
      plans.flatMap(_.collectLeaves()).map(RelationNames.ofLeaf).distinct.mkString(", ")
    val what = place.node match {
      case _: Window => "Window functions"
      case _ => "Aggregation"
    }
    Decision(
      rule = info.id,
      node = NodeText.shorten(s"$what over ${relations(Seq(place.node))}"),
      key = NodeText.key(place.node),
      outcome = outcome,
      reason = reason,
      chosen = reduction
        .filter(_ => acts)
        .map(found => s"rows whose key is in ${relations(found.sources.map(_.plan))}"),
      stock = Option.when(acts)("all rows"),
      detail = UnknownRows.detail(reason, place.node),
      evidence = saving.toSeq.flatMap(_.evidence),
      setting = remedy.map(_.key),
      settingTo = remedy.flatMap(_.value),
      work = saving.filter(_ => acts).map(known => ExpectedWork(known.stock, known.chosen))
    )
  }

  private def remedyOf(reason: Reason, saving: Option[Saving]): Option[Remedy] = {
    val (share, rows) = (SelingerConf.REDUCE_GROUPED_MIN_GAIN, SelingerConf.EAGER_MIN_ROWS)
    (reason, saving) match {
      case (Reduced, known) =>
        Some(known.flatMap(saving => Remedy.above(saving.gain)) match {
          case Some(gain) => Remedy(share.key, Some(gain))
          case None => Remedy(info.switch, Some("false"))
        })
      case (FewDropped, Some(known)) if known.gain < share.value =>
        Some(Remedy(share.key, Remedy.below(known.gain)))
      case (FewDropped, Some(known)) =>
        Some(Remedy(rows.key, Some(known.saved.toLong.toString)))
      case (TooManyKeys, _) => Some(Remedy(SelingerConf.BROADCAST_MAX_BYTES.key, None))
      case _ => None
    }
  }
}

object ReduceGroupedInput
    extends RuleDescription(
      "reduceGroupedInput",
      RuleKind.Logical,
      "Where a join uses few groups of a GROUP BY, or few partitions of window functions, drops the rows of " +
        "the others before they are grouped."
    ) {

  val Reduced: Reason = Reason(
    "GROUPED_INPUT_REDUCED",
    "A join uses only few of these groups. Rows of the other groups are dropped before they are grouped.",
    "Set spark.selinger.aggregate.reduceInputMinGain higher to do so less often."
  )

  val TooManyKeys: Reason = Reason(
    "TOO_MANY_KEYS_TO_BROADCAST",
    "A join uses only some of these groups, but their keys are too many to be broadcast, or their number is " +
      "not known. So all groups are computed.",
    "Set spark.selinger.join.broadcastMaxBytes higher if there is memory for larger broadcasts, or run " +
      "selinger.analyze on the table of the keys."
  )

  val FewDropped: Reason = Reason(
    "FEW_GROUPS_DROPPED",
    "A join uses only some of these groups. Dropping the rows of the others first would save too few rows, " +
      "or too small a share of the cost, in which finding the keys is counted.",
    "Set spark.selinger.aggregate.reduceInputMinGain or spark.selinger.aggregate.eager.minRows lower to " +
      "do so more often."
  )

  val GroupsShared: Reason = Reason(
    "GROUPS_SHARED",
    "Several places of the query use the same groups, and cannot all be filtered by the same keys. With " +
      "another filter in each place, Spark would compute the groups several times, so nothing is filtered.",
    "Nothing to do."
  )

  override def hooks: Seq[Hook] = Seq(
    Hook.LateBatch(
      "Joins have their order by then, and no rule of Spark moves semi joins any more."
    )(new ReduceGroupedInput(_))
  )

  override def reasons: Seq[Reason] = Seq(
    Reason.StreamingPlan,
    MergeSubplansByCost.RandomValues,
    Reason.MayRaise,
    GroupsShared,
    TooManyKeys,
    Reason.NoStatistics,
    FewDropped,
    Reduced
  )

  override def example: String =
    "SELECT i.name, s.a FROM items i " +
      "JOIN (SELECT item, avg(amount) AS a FROM sales GROUP BY item) s ON i.id = s.item " +
      "WHERE i.name = 'b'"

  // Of the plans that have the keys, so many of the smallest are compared. Set by hand, a limit of
  // planning time: there is one for each operator between a relation and the join.
  private val mostSources = 4

  /** Whether it is a matter of rows and costs only. */
  private def isPossible(reason: Reason): Boolean =
    Seq(Reason.NoStatistics, TooManyKeys, FewDropped, Reduced).contains(reason)

  private def always: Boolean = SelingerConf.REDUCE_GROUPED_MIN_GAIN.value == 0.0

  /**
   * @param rows of the input
   * @param kept of them with a key
   * @param keyRows of the plans that have the keys
   * @param stock seconds that it takes to group all rows
   * @param chosen the same for those with a key, and to find them
   */
  private final case class Saving(
      rows: Quantity,
      kept: Quantity,
      keyRows: Double,
      stock: Double,
      chosen: Double
  ) {
    def gain: Double = if (stock > 0.0) math.max(0.0, 1.0 - chosen / stock) else 0.0

    def saved: Double = math.max(0.0, rows.value - kept.value)

    def isEnough: Boolean =
      gain >= SelingerConf.REDUCE_GROUPED_MIN_GAIN.value &&
        saved >= SelingerConf.EAGER_MIN_ROWS.value.toDouble

    def evidence: Seq[Evidence] = Seq(
      Evidence("rows to group as written", rows.value, "rows", rows.origin),
      Evidence("rows to group with these keys", kept.value, "rows", kept.origin.worse(rows.origin)),
      Evidence("keys", keyRows, "rows", Origin.Derived),
      Evidence("cost as written", stock, "s", Origin.Derived),
      Evidence("cost with these keys", chosen, "s", Origin.Derived)
    )
  }

  /**
   * Equal groups in all their places, reduced to some keys.
   *
   * @param keys of the groups, as [[GroupPlace]] has them
   * @param sources that have them, one for each place at most
   * @param isSmall whether all of them can be broadcast
   */
  private final case class Reduction(
      keys: Seq[Expression],
      sources: Seq[KeySource],
      isSmall: Boolean,
      saving: Option[Saving] = None
  )

  private final class Subject(val places: Seq[GroupPlace], reductionOf: => Option[Reduction]) {
    lazy val reduction: Option[Reduction] = reductionOf
    def saving: Option[Saving] = reduction.flatMap(_.saving)
    def sides: Seq[LogicalPlan] = places.flatMap(_.sides)

    /** Whether all places need some keys only. Which ones is not known where one plan stands in two places. */
    def isEachPlaceKnown: Boolean =
      places.forall(_.sources.nonEmpty) &&
        places.combinations(2).forall {
          case Seq(one, other) => one.node ne other.node
          case _ => true
        }
  }

  private def preconditions(query: WholeQuery): Seq[Precondition[Subject]] = Seq(
    Precondition(Reason.StreamingPlan)(_ => !query.isStreaming),
    Precondition(MergeSubplansByCost.RandomValues)(_.sides.forall(_.deterministic)),
    Precondition(Reason.MayRaise)(
      !_.sides.exists(RaisedErrors.mayRaise(_, ExactSums.fits))
    ),
    Precondition(GroupsShared)(subject =>
      subject.isEachPlaceKnown && subject.reduction.isDefined
    ),
    Precondition(TooManyKeys)(always || _.reduction.forall(_.isSmall)),
    Precondition(Reason.NoStatistics)(always || _.saving.isDefined),
    Precondition(FewDropped)(always || _.saving.forall(_.isEnough))
  )
}
