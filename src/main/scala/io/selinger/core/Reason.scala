package io.selinger.core

/**
 * Why a decision came out as it did. Users and tests match on the code, so a code is never renamed
 * once released; the sentences may be improved at any time. A rule defines the reasons that are its
 * own beside its code; those here are shared.
 *
 * @param sentence complete, and understood without the documentation
 * @param advice what the user can do about it, complete too
 */
final case class Reason(code: String, sentence: String, advice: String) {
  override def toString: String = code
}

object Reason {

  val BroadcastCheapest: Reason = Reason(
    "BROADCAST_CHEAPEST",
    "Broadcasting the build side costs least, and the hash table of its expected rows is small " +
      "enough to be broadcast.",
    "Set spark.selinger.join.broadcastMaxBytes below the broadcast limit shown here if the " +
      "driver or the executors run short of memory."
  )

  val HashBuildCheapest: Reason = Reason(
    "HASH_BUILD_CHEAPEST",
    "A shuffled hash join costs less than sorting both sides, and the hash table of the build " +
      "side fits the memory of one task.",
    "Set spark.selinger.join.hashMemoryShare lower if tasks run out of memory."
  )

  val SortMergeCheapest: Reason = Reason(
    "SORT_MERGE_CHEAPEST",
    "Sorting both sides costs less than building a hash table.",
    "Nothing to do."
  )

  val StockCheapEnough: Reason = Reason(
    "STOCK_CHEAP_ENOUGH",
    "Another operator would cost a little less, but the difference is smaller than the error of " +
      "the estimates, so Spark's choice stays.",
    "Set spark.selinger.join.minGain lower to change more plans, or run selinger.analyze for " +
      "better estimates."
  )

  val NothingFits: Reason = Reason(
    "NO_SAFE_HASH_TABLE",
    "No side is known to be small enough for a hash table in memory, so the join must be able to " +
      "spill to disk: sort-merge.",
    "Give executors more memory, or run selinger.analyze so that a small side is known to be " +
      "small."
  )

  val NestedLoopFits: Reason = Reason(
    "NESTED_LOOP_BROADCAST_FITS",
    "The join has no equality between its sides, and one side is small enough to be broadcast.",
    "Nothing to do; an equality in the condition would make the join much cheaper."
  )

  val NestedLoopTooLarge: Reason = Reason(
    "NESTED_LOOP_TOO_LARGE",
    "The join has no equality between its sides, and no side is known to be small enough to be " +
      "broadcast, so it is left to Spark.",
    "Add an equality to the condition, or set spark.selinger.join.broadcastMaxBytes above the " +
      "broadcast limit shown here."
  )

  val HintObeyed: Reason = Reason(
    "HINT_OBEYED",
    "The query has a join hint here, and hints are obeyed.",
    "Remove the hint to let Selinger decide."
  )

  val UserThreshold: Reason = Reason(
    "USER_THRESHOLD_OBEYED",
    "spark.sql.autoBroadcastJoinThreshold is set, and Spark broadcasts this side because of it.",
    "Unset spark.sql.autoBroadcastJoinThreshold to let Selinger decide."
  )

  val BroadcastStage: Reason = Reason(
    "BROADCAST_STAGE_RUNNING",
    "One side has already been broadcast while the query runs, so the operator stays.",
    "Nothing to do."
  )

  val BuildSideAwaited: Reason = Reason(
    "BUILD_SIDE_AWAITED",
    "One side may turn out small enough to be broadcast. It is shuffled first, and the other " +
      "side is shuffled only if it is still needed.",
    "Switch spark.selinger.awaitBuildSide.enabled off if waiting costs more than it saves."
  )

  val NoSmallSide: Reason = Reason(
    "NO_SMALL_SIDE",
    "Neither side is expected to be small enough to be broadcast, so both sides are shuffled at " +
      "once.",
    "Set spark.selinger.join.broadcastMaxBytes above the broadcast limit shown here if there is " +
      "memory for larger broadcasts."
  )

  val StreamingPlan: Reason = Reason(
    "STREAMING_PLAN",
    "This is a streaming query, and streaming queries are left to Spark.",
    "Nothing to do."
  )

  val NullAwareAntiJoin: Reason = Reason(
    "NULL_AWARE_ANTI_JOIN",
    "NOT IN over a column that may be null needs Spark's own null-aware operator.",
    "Use NOT EXISTS, or filter out nulls on both sides."
  )

  val NoStatistics: Reason = Reason(
    "NO_STATISTICS",
    "The number of rows of one relation is unknown, so nothing is decided here.",
    "Use Parquet or ORC files, and keep spark.selinger.readFooterStatistics.enabled on. Filter " +
      "partitioned tables by their partition columns. For tables of any format, ANALYZE TABLE helps."
  )

  val UnsupportedByOperator: Reason = Reason(
    "OPERATOR_UNSUPPORTED",
    "Spark has no operator of the chosen kind for this type of join, so its own choice stays.",
    "Nothing to do."
  )

  val BudgetExceeded: Reason = Reason(
    "PLANNING_BUDGET_EXCEEDED",
    "The time for planning this query is used up, so the rest of the plan is left to Spark.",
    "Raise spark.selinger.planning.budgetMs."
  )

  val SmallTables: Reason = Reason(
    "SMALL_TABLES",
    "Every table of this query is small, so it is left to Spark: planning would take longer than it " +
      "could save.",
    "Set spark.selinger.planning.smallTableMaxBytes to 0 to plan such queries, too."
  )

  val RuleFailed: Reason = Reason(
    "RULE_FAILED",
    "The rule failed with an error, and the query goes on without it.",
    "Please report it with the error; until then switch the rule off."
  )

  val InvalidResult: Reason = Reason(
    "INVALID_RESULT",
    "The rule returned a plan that is not valid. It was dropped, and the query goes on with the " +
      "plan before.",
    "Please report it; until then switch the rule off."
  )

  val FootersRead: Reason = Reason(
    "FOOTERS_READ",
    "The footers of all files were read.",
    "Nothing to do."
  )

  val FootersSampled: Reason = Reason(
    "FOOTERS_SAMPLED",
    "Only some footers were read, because a limit (files or time) was reached. The rest is " +
      "extrapolated by file size.",
    "Raise spark.selinger.stats.footerMaxFiles or spark.selinger.stats.footerBudgetMs."
  )

  val FootersUnavailable: Reason = Reason(
    "FOOTERS_UNAVAILABLE",
    "No footer could be read within the time limit.",
    "Raise spark.selinger.stats.footerBudgetMs, or check that the driver can read the files."
  )

  val OrderCheaper: Reason = Reason(
    "ORDER_CHEAPER",
    "Another order costs less, and saves more than the error of the estimates.",
    "Set spark.selinger.ordering.minGain higher to change fewer orders, or switch " +
      "spark.selinger.reorderJoins.enabled off to keep every order written."
  )

  val OrderCheapEnough: Reason = Reason(
    "ORDER_CHEAP_ENOUGH",
    "No other order saves enough to be sure of it, given the error of the estimates, so the " +
      "order written stays.",
    "Set spark.selinger.ordering.minGain lower to change more orders, or run selinger.analyze " +
      "for better estimates."
  )

  val OrderShared: Reason = Reason(
    "ORDER_SHARED",
    "Several parts of the query share the same joins. In this order they are computed once, " +
      "which saves more than the best order of each part alone.",
    "Switch spark.selinger.reorderJoins.enabled off to keep the order written."
  )

  val SparkReorders: Reason = Reason(
    "SPARK_REORDERS",
    "Spark's own join reordering is switched on, so the order is left to it.",
    "Set spark.sql.cbo.joinReorder.enabled to false."
  )

  val CrossProduct: Reason = Reason(
    "CROSS_PRODUCT",
    "No condition connects all relations, and cross products stay where the query has them.",
    "Add the missing join condition, if there is one."
  )

  val RepeatedColumns: Reason = Reason(
    "REPEATED_COLUMNS",
    "Spark computes a subquery twice here, and a join condition cannot tell its two results apart, " +
      "so the order of the joins stays.",
    "Write the subquery as a join."
  )

  val JoinFixed: Reason = Reason(
    "JOIN_FIXED",
    "If the joins here were reordered, the query could return different rows, so they stay.",
    "Nothing to do."
  )

  val SharedSubplan: Reason = Reason(
    "SHARED_SUBPLAN",
    "Several parts of the query need the same rows. Spark computes them once only while these " +
      "parts are identical, so they stay as they are.",
    "Nothing to do."
  )

  val MayRaise: Reason = Reason(
    "ERRORS_DEPEND_ON_PLAN",
    "An expression here, such as a division, a cast or a user-defined function, can raise an " +
      "error, and another plan could evaluate it for other rows.",
    "Use expressions that return null instead (try_divide, try_cast), if that is acceptable."
  )

  val NotMergeable: Reason = Reason(
    "AGGREGATE_NOT_MERGEABLE",
    "An aggregate here cannot be merged from partial results: they would have to come in a certain " +
      "order, or it reads a grouping column. These can be merged: count, sum, avg, bit_and, bit_or, " +
      "bit_xor, and min and max of types other than float and double.",
    "Nothing to do."
  )

  val SumMayOverflow: Reason = Reason(
    "SUM_MAY_OVERFLOW",
    "A sum or average here may overflow, perhaps only in some orders of its rows.",
    "Cast the values to a smaller type if they fit, such as int instead of bigint. It is also enough if " +
      "the footers of Parquet or ORC files prove it."
  )

  val PredicatesSampled: Reason = Reason(
    "PREDICATES_SAMPLED",
    "The filters were evaluated on a sample of the rows, read from several row groups.",
    "Nothing to do."
  )

  val ColumnsSampled: Reason = Reason(
    "COLUMNS_SAMPLED",
    "Values of join and grouping keys were sampled; there was no filter to evaluate on them.",
    "Nothing to do."
  )

  val SampleUnavailable: Reason = Reason(
    "SAMPLE_UNAVAILABLE",
    "No filter could be evaluated on a sample within the time limit, so formulas estimate how " +
      "many rows the filters keep.",
    "Raise spark.selinger.stats.sampling.budgetMs, or run selinger.analyze."
  )

  val StatisticsImported: Reason = Reason(
    "STATISTICS_IMPORTED",
    "The numbers come from an imported statistics file, not from the data.",
    "Nothing to do."
  )

  val CollectedUsed: Reason = Reason(
    "COLLECTED_STATISTICS_USED",
    "Statistics that selinger.analyze has collected for all these files are used.",
    "Nothing to do."
  )

  val CollectedPartly: Reason = Reason(
    "COLLECTED_STATISTICS_PARTIAL",
    "Only some of these files have statistics from selinger.analyze. The rest is extrapolated.",
    "Run selinger.analyze again; it reads only what is new."
  )

  val CollectedStale: Reason = Reason(
    "COLLECTED_STATISTICS_STALE",
    "All these files are new or have changed since selinger.analyze ran, so its statistics are " +
      "not used.",
    "Run selinger.analyze again."
  )

  val CollectedNone: Reason = Reason(
    "COLLECTED_STATISTICS_NONE",
    "No statistics have been collected for the columns that this query needs.",
    "Run selinger.analyze on this table."
  )

  val CollectedUnreadable: Reason = Reason(
    "COLLECTED_STATISTICS_UNREADABLE",
    "The folder of collected statistics could not be read.",
    "Check spark.selinger.stats.location and the rights to read it."
  )

  val EstimateShared: Reason = Reason(
    "ESTIMATE_SHARED",
    "Spark's own rules now see the estimated size of this relation after its filters.",
    "Switch spark.selinger.shareEstimates.enabled off to let Spark use its own sizes."
  )

  val EstimateUncertain: Reason = Reason(
    "ESTIMATE_UNCERTAIN",
    "The rows were neither counted nor sampled, or their width is unknown, so Spark keeps its " +
      "own size.",
    "Run selinger.analyze on this table."
  )

  val SparkEstimates: Reason = Reason(
    "SPARK_ESTIMATES",
    "Spark's own cost-based optimizer is switched on, so sizes are left to it.",
    "Set spark.sql.cbo.enabled to false."
  )

  /** What the guard says of any rule. */
  val ofGuard: Seq[Reason] = Seq(BudgetExceeded, SmallTables, RuleFailed, InvalidResult)
}
