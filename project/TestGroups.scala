import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Seconds of the slowest suites, so that both JVMs end together: times in target/*/test-reports.
  private val seconds = Map(
    "RuleContractSuite" -> 105,
    "SqlEquivalenceSuite" -> 63,
    "ReduceJoinInputSuite" -> 51,
    "HardTablesSuite" -> 46,
    "SizeShufflesSuite" -> 42,
    "UnwrapFunctionsInFiltersSuite" -> 41,
    "ReorderJoinsSuite" -> 40,
    "JoinAfterGroupingSuite" -> 38,
    "HeapHashAggregateSuite" -> 37,
    "ComputeAggregateAsWindowSuite" -> 37,
    "MergeSubplansByCostSuite" -> 35,
    "FamiliesSuite" -> 35,
    "FilterRanksBeforeSortSuite" -> 34,
    "MechanismSuite" -> 33,
    "ShareSimilarAggregatesSuite" -> 33,
    "SplitDistinctAggregatesSuite" -> 31,
    "ReuseFinerGroupsSuite" -> 31,
    "PushAggregateBelowJoinSuite" -> 31,
    "ReduceGroupedInputSuite" -> 29,
    "ParquetSamplesSuite" -> 27,
    "EliminateJoinsSuite" -> 27,
    "PushJoinKeysIntoScanSuite" -> 22,
    "AnalyzeSuite" -> 19,
    "CascadeGroupingSetsSuite" -> 19,
    "GroupingSetCascadeSuite" -> 17,
    "AntiJoinsSuite" -> 16,
    "ShuffleByCommonKeysSuite" -> 14,
    "AwaitBuildSideSuite" -> 14,
    "ComputeInLongsSuite" -> 13,
    "RandomQuerySuite" -> 12,
    "BoundSuite" -> 11,
    "ComputeDecimalsInLongsSuite" -> 11,
    "RemoveImpliedLookupsSuite" -> 11,
    "SelectAggregateOperatorSuite" -> 10,
    "SamplePredicatesSuite" -> 10,
    "JoinProblemSuite" -> 7,
    "SelectJoinOperatorSuite" -> 9,
    "ParquetDictionariesSuite" -> 8,
    "DeduplicateSemiJoinsSuite" -> 8,
    "ShareEstimatesSuite" -> 8,
    "ConflictDetectorSuite" -> 7,
    "StopPartialAggregationSuite" -> 7,
    "TransferSuite" -> 6
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
