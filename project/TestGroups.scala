import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Seconds of the slowest suites, so that both JVMs end together: times in target/*/test-reports.
  private val seconds = Map(
    "RuleContractSuite" -> 89,
    "SqlEquivalenceSuite" -> 52,
    "CodeGroupedTextsSuite" -> 40,
    "ReduceJoinInputSuite" -> 39,
    "HardTablesSuite" -> 37,
    "UnwrapFunctionsInFiltersSuite" -> 32,
    "SizeShufflesSuite" -> 29,
    "ReorderJoinsSuite" -> 28,
    "FamiliesSuite" -> 26,
    "ShareSimilarAggregatesSuite" -> 26,
    "FilterRanksBeforeSortSuite" -> 25,
    "MechanismSuite" -> 25,
    "SplitDistinctAggregatesSuite" -> 25,
    "ComputeAggregateAsWindowSuite" -> 23,
    "JoinAfterGroupingSuite" -> 23,
    "ReduceGroupedInputSuite" -> 23,
    "PushTopNBelowJoinSuite" -> 25,
    "DeclaredKeySuite" -> 22,
    "PushAggregateBelowJoinSuite" -> 22,
    "EliminateJoinsSuite" -> 21,
    "HeapHashAggregateSuite" -> 21,
    "ParquetSamplesSuite" -> 21,
    "ReuseFinerGroupsSuite" -> 21,
    "MergeSubplansByCostSuite" -> 19,
    "AnalyzeSuite" -> 16,
    "EliminateGroupingSuite" -> 14,
    "PushJoinKeysIntoScanSuite" -> 14,
    "GroupSelfJoinsSuite" -> 14,
    "GroupingSetCascadeSuite" -> 13,
    "CascadeGroupingSetsSuite" -> 12,
    "AwaitBuildSideSuite" -> 26,
    "ShuffleByCommonKeysSuite" -> 10,
    "AntiJoinsSuite" -> 9,
    "ComputeDecimalsInLongsSuite" -> 9,
    "ComputeInLongsSuite" -> 9,
    "RandomQuerySuite" -> 9,
    "RemoveImpliedLookupsSuite" -> 9,
    "SamplePredicatesSuite" -> 9,
    "PackSortKeysSuite" -> 15,
    "SelectAggregateOperatorSuite" -> 8,
    "BoundSuite" -> 7,
    "DeduplicateSemiJoinsSuite" -> 6,
    "SelectJoinOperatorSuite" -> 6,
    "ShareEstimatesSuite" -> 6,
    "TransferSuite" -> 6,
    "ConflictDetectorSuite" -> 5,
    "JoinEnumeratorSuite" -> 5,
    "ParquetDictionariesSuite" -> 5,
    "StopPartialAggregationSuite" -> 5,
    "FileRelationSuite" -> 4,
    "FooterStoreSuite" -> 3,
    "SmallTablesSuite" -> 3
  )
  private val others = 1

  /** The heaviest suites first, each to the JVM that has less to do. */
  def split(tests: Seq[TestDefinition], options: ForkOptions, jvms: Int): Seq[Group] = {
    def weight(test: TestDefinition) = seconds.getOrElse(test.name.split('.').last, others)
    val empty = Vector.fill(jvms)(Vector.empty[TestDefinition])
    val groups =
      tests.sortBy(test => (-weight(test), test.name)).foldLeft(empty) { (groups, test) =>
        val lightest = groups.indices.minBy(i => groups(i).map(weight).sum)
        groups.updated(lightest, groups(lightest) :+ test)
      }
    groups.zipWithIndex.collect {
      case (suites, i) if suites.nonEmpty => Group(s"jvm ${i + 1}", suites, SubProcess(options))
    }
  }
}
