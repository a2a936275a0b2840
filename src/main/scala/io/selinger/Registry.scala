package io.selinger

import io.selinger.conf.{SelingerConf, Setting}
import io.selinger.core.{Reason, RuleDescription}
import io.selinger.ordering.ReorderJoins
import io.selinger.rule.{
  CodeGroupedTexts,
  ComputeAggregateAsWindow,
  DeduplicateSemiJoins,
  EliminateGrouping,
  EliminateJoins,
  GroupSelfJoins,
  JoinAfterGrouping,
  MergeSubplansByCost,
  PushAggregateBelowJoin,
  PushTopNBelowJoin,
  ReduceGroupedInput,
  RemoveImpliedLookups,
  ReuseFinerGroups,
  ShareEstimates,
  ShareSimilarAggregates,
  SplitDistinctAggregates,
  UnwrapFunctionsInFilters
}
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.stats.imported.UseImportedStatistics
import io.selinger.stats.samples.SamplePredicates
import io.selinger.stats.sketches.UseCollectedStatistics
import io.selinger.strategy.{
  AwaitBuildSide,
  CascadeGroupingSets,
  ComputeDecimalsInLongs,
  FilterRanksBeforeSort,
  PackSortKeys,
  PushJoinKeysIntoScan,
  ReduceJoinInput,
  SearchLikePatterns,
  SelectAggregateOperator,
  SelectJoinOperator,
  ShuffleByCommonKeys,
  SizeShuffles,
  StopPartialAggregation
}

/**
 * Rules in the order in which they run where they share a hook. Injection, settings,
 * `selinger_rules()`, documentation, explain and the contract tests are made from this list.
 *
 * @param rules each described beside its own code
 */
final case class Registry(rules: Seq[RuleDescription]) {

  /** Every setting, in the order of the documentation. */
  def settings: Seq[Setting[_]] = SelingerConf.all ++ rules.map(SelingerConf.switchOf)

  /** Every reason that explain may give, each once. */
  def reasons: Seq[Reason] = (rules.flatMap(_.reasons) ++ Reason.ofGuard).distinct
}

object Registry {

  /** Every rule of Selinger. To add a rule is to add it here. */
  val all: Registry = Registry(
    Seq(
      ReadFooterStatistics,
      UseCollectedStatistics,
      SamplePredicates,
      UseImportedStatistics,
      // Before all that estimates how many rows a filter keeps.
      UnwrapFunctionsInFilters,
      // What it joins to groups may turn out to be unneeded.
      JoinAfterGrouping,
      // Before all that compares subplans, or joins what is left.
      EliminateJoins,
      // A join below may have been left out.
      EliminateGrouping,
      // What no join is left of needs no early rows; orders of joins depend on how many rows there are.
      PushTopNBelowJoin,
      // Before orders of joins are chosen, which may differ where subplans differ only in filters.
      MergeSubplansByCost,
      // Before an order of joins is chosen with the second reading, which it leaves out.
      ComputeAggregateAsWindow,
      // Before one of the two readings is joined with something else.
      GroupSelfJoins,
      // Two lookups in the same rows have columns of the same ids, for which no order is chosen.
      RemoveImpliedLookups,
      ReorderJoins,
      // Late, too: it compares what all rules before have made.
      ShareSimilarAggregates,
      ReuseFinerGroups,
      // Before sharing, they might act on some of several similar aggregations only, and keep the others apart.
      PushAggregateBelowJoin,
      DeduplicateSemiJoins,
      // Filtered, they would have nothing in common any more.
      ReduceGroupedInput,
      // Fewer rows are better copied.
      SplitDistinctAggregates,
      // What is grouped by codes looks like nothing else in the query.
      CodeGroupedTexts,
      SelectJoinOperator,
      // Before rules that look for equal shuffles.
      SizeShuffles,
      AwaitBuildSide,
      ReduceJoinInput,
      // It leaves alone what waits.
      ShuffleByCommonKeys,
      PushJoinKeysIntoScan,
      CascadeGroupingSets,
      ComputeDecimalsInLongs,
      // Aggregations that the two before have planned ask it themselves.
      SelectAggregateOperator,
      StopPartialAggregation,
      FilterRanksBeforeSort,
      PackSortKeys,
      SearchLikePatterns,
      // Its sizes are those of the order found.
      ShareEstimates
    )
  )
}
