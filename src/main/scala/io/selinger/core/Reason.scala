package io.selinger.core

/**
 * Why a decision came out as it did. The code is what users and tests match on, so a code is never
 * renamed once released; the sentence may be improved at any time.
 */
sealed abstract class Reason(val code: String, val sentence: String)

object Reason {

  case object BroadcastCheapest
      extends Reason(
        "BROADCAST_CHEAPEST",
        "the build side fits the broadcast limit, with room for an estimate that is too low, and broadcasting it costs least"
      )
  case object HashBuildCheapest
      extends Reason(
        "HASH_BUILD_CHEAPEST",
        "the build side's hash table fits each task's memory share, and hashing costs less than sorting both sides"
      )
  case object SortMergeCheapest
      extends Reason(
        "SORT_MERGE_CHEAPEST",
        "sorting both sides costs less than building a hash table"
      )
  case object StockCheapEnough
      extends Reason(
        "STOCK_CHEAP_ENOUGH",
        "another operator would cost less, but by less than the estimates are worth"
      )
  case object NothingFits
      extends Reason(
        "NO_SAFE_HASH_TABLE",
        "neither side is known to fit the broadcast limit or a task's memory share, so the join must be able to spill"
      )
  case object NestedLoopFits
      extends Reason(
        "NESTED_LOOP_BROADCAST_FITS",
        "there is no equality to hash on and one side fits the broadcast limit"
      )
  case object NestedLoopTooLarge
      extends Reason(
        "NESTED_LOOP_TOO_LARGE",
        "there is no equality to hash on and no side is known to fit the broadcast limit"
      )
  case object HintObeyed
      extends Reason("HINT_OBEYED", "the query carries a join hint, and Spark obeys it")
  case object UserThreshold
      extends Reason(
        "USER_THRESHOLD_OBEYED",
        "spark.sql.autoBroadcastJoinThreshold is set, and by it Spark broadcasts this side"
      )
  case object BroadcastStage
      extends Reason(
        "BROADCAST_STAGE_RUNNING",
        "one side has already been broadcast, so Spark keeps the join"
      )
  case object BuildSideAwaited
      extends Reason(
        "BUILD_SIDE_AWAITED",
        "one side may turn out small enough to be broadcast, so the other is not shuffled before that is known"
      )
  case object NoSmallSide
      extends Reason(
        "NO_SMALL_SIDE",
        "with the rows that are expected, broadcasting a side would not be safe or not be cheapest, so both are shuffled at once"
      )
  case object StreamingPlan extends Reason("STREAMING_PLAN", "streaming plans are left to Spark")
  case object NullAwareAntiJoin
      extends Reason("NULL_AWARE_ANTI_JOIN", "NOT IN needs Spark's null-aware operator")
  case object NoStatistics
      extends Reason("NO_STATISTICS", "nothing is known about the size of one side")
  case object UnsupportedByOperator
      extends Reason(
        "OPERATOR_UNSUPPORTED",
        "Spark has no operator of the chosen kind for this join, so its own choice stands"
      )
  case object BudgetExceeded
      extends Reason("PLANNING_BUDGET_EXCEEDED", "the planning budget of this query is used up")
  case object RuleFailed
      extends Reason("RULE_FAILED", "the rule raised an error and the plan went on without it")
  case object InvalidResult
      extends Reason(
        "INVALID_RESULT",
        "the rule returned a plan that failed the check, and it was dropped"
      )
  case object FootersRead extends Reason("FOOTERS_READ", "the footers of all files were read")
  case object FootersSampled
      extends Reason(
        "FOOTERS_SAMPLED",
        "the footers of some files were read within the limits, and the rest is extrapolated by bytes"
      )
  case object FootersUnavailable
      extends Reason("FOOTERS_UNAVAILABLE", "no footer could be read within the limits")

  case object OrderCheaper
      extends Reason(
        "ORDER_CHEAPER",
        "joining in another order costs less, by more than the estimates are worth"
      )
  case object OrderCheapEnough
      extends Reason(
        "ORDER_CHEAP_ENOUGH",
        "no other order costs less by more than the estimates are worth"
      )
  case object SparkReorders
      extends Reason(
        "SPARK_REORDERS",
        "Spark's own join reordering is switched on, so the order is left to it"
      )
  case object CrossProduct
      extends Reason(
        "CROSS_PRODUCT",
        "no condition connects all relations, and products stay where they were written"
      )
  case object JoinFixed
      extends Reason(
        "JOIN_FIXED",
        "a join, or a filter or projection above it, gives other rows if the order changes"
      )
  case object OrderShared
      extends Reason(
        "ORDER_SHARED",
        "joined alike in several places of the query, it is computed once, which saves more than another order"
      )
  case object SharedSubplan
      extends Reason(
        "SHARED_SUBPLAN",
        "the query asks for the same rows in several places, and Spark computes them once as long as they stay alike"
      )
  case object MayRaise
      extends Reason(
        "ERRORS_DEPEND_ON_PLAN",
        "a column or condition can raise an error, and another plan could evaluate it for other rows"
      )
  case object PredicatesSampled
      extends Reason(
        "PREDICATES_SAMPLED",
        "the predicates were evaluated on a sample of the rows, read from several row groups"
      )
  case object ColumnsSampled
      extends Reason(
        "COLUMNS_SAMPLED",
        "values of join and grouping keys were sampled; there was no predicate to evaluate on them"
      )
  case object SampleUnavailable
      extends Reason(
        "SAMPLE_UNAVAILABLE",
        "no predicate could be evaluated on a sample within the limits, so formulas estimate them"
      )
  case object StatisticsImported
      extends Reason(
        "STATISTICS_IMPORTED",
        "the numbers come from an imported file of statistics, and not from the data"
      )

  case object CollectedUsed
      extends Reason(
        "COLLECTED_STATISTICS_USED",
        "selinger_analyze has collected statistics of all files that are read"
      )
  case object CollectedPartly
      extends Reason(
        "COLLECTED_STATISTICS_PARTIAL",
        "selinger_analyze has seen a part of the files that are read, and the rest is extrapolated"
      )
  case object CollectedStale
      extends Reason(
        "COLLECTED_STATISTICS_STALE",
        "all files that are read have changed or come since selinger_analyze, so its statistics are ignored"
      )
  case object CollectedNone
      extends Reason(
        "COLLECTED_STATISTICS_NONE",
        "nothing was collected of these columns; selinger_analyze does that"
      )
  case object CollectedUnreadable
      extends Reason(
        "COLLECTED_STATISTICS_UNREADABLE",
        "the place where collected statistics are kept could not be read"
      )
  case object EstimateShared
      extends Reason(
        "ESTIMATE_SHARED",
        "Spark's own rules see the size of what is left of this relation, which was counted or sampled"
      )
  case object EstimateUncertain
      extends Reason(
        "ESTIMATE_UNCERTAIN",
        "the rows were neither counted nor sampled, or widths are unknown, so Spark's own size stays"
      )
  case object SparkEstimates
      extends Reason(
        "SPARK_ESTIMATES",
        "Spark's own cost-based optimizer is switched on, so sizes are left to it"
      )

  /** Every reason, for the generated documentation; a test compares it with the sealed family. */
  val all: Seq[Reason] = Seq(
    BroadcastCheapest,
    HashBuildCheapest,
    SortMergeCheapest,
    StockCheapEnough,
    NothingFits,
    NestedLoopFits,
    NestedLoopTooLarge,
    HintObeyed,
    UserThreshold,
    BroadcastStage,
    BuildSideAwaited,
    NoSmallSide,
    StreamingPlan,
    NullAwareAntiJoin,
    NoStatistics,
    UnsupportedByOperator,
    BudgetExceeded,
    RuleFailed,
    InvalidResult,
    FootersRead,
    FootersSampled,
    FootersUnavailable,
    OrderCheaper,
    OrderCheapEnough,
    OrderShared,
    SparkReorders,
    CrossProduct,
    JoinFixed,
    SharedSubplan,
    MayRaise,
    PredicatesSampled,
    ColumnsSampled,
    SampleUnavailable,
    CollectedUsed,
    CollectedPartly,
    CollectedStale,
    CollectedNone,
    CollectedUnreadable,
    EstimateShared,
    EstimateUncertain,
    SparkEstimates,
    StatisticsImported
  )
}

/**
 * A condition that must hold before a rule acts, and the reason that is given when it does not: one
 * expression, so that "why not" cannot drift from the code.
 */
final case class Precondition[-A](reason: Reason)(val holds: A => Boolean)

object Precondition {

  /** The reason of the first condition that does not hold, in the order given. */
  def firstUnmet[A](conditions: Seq[Precondition[A]], subject: A): Option[Reason] =
    conditions.find(condition => !condition.holds(subject)).map(_.reason)
}
