import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Seconds of the slowest suites, so that both JVMs end together: times in target/*/test-reports.
  private val seconds = Map(
    "SqlEquivalenceSuite" -> 130,
    "HeapHashAggregateSuite" -> 86,
    "RuleContractSuite" -> 78,
    "EliminateJoinsSuite" -> 45,
    "JoinAfterGroupingSuite" -> 20,
    "HardTablesSuite" -> 72,
    "ReduceJoinInputSuite" -> 49,
    "ReorderJoinsSuite" -> 45,
    "PushAggregateBelowJoinSuite" -> 44,
    "ComputeAggregateAsWindowSuite" -> 42,
    "UnwrapFunctionsInFiltersSuite" -> 40,
    "FamiliesSuite" -> 40,
    "ShareSimilarAggregatesSuite" -> 40,
    "AnalyzeSuite" -> 39,
    "MechanismSuite" -> 37,
    "ReduceGroupedInputSuite" -> 32,
    "FilterRanksBeforeSortSuite" -> 30,
    "MergeSubplansByCostSuite" -> 27,
    "SizeShufflesSuite" -> 27,
    "PushJoinKeysIntoScanSuite" -> 26,
    "CascadeGroupingSetsSuite" -> 23,
    "AwaitBuildSideSuite" -> 20,
    "SamplePredicatesSuite" -> 18,
    "ComputeInLongsSuite" -> 16,
    "ReuseFinerGroupsSuite" -> 16,
    "ShuffleByCommonKeysSuite" -> 16,
    "ComputeDecimalsInLongsSuite" -> 15,
    "GroupingSetCascadeSuite" -> 13,
    "RemoveImpliedLookupsSuite" -> 13,
    "ParquetSamplesSuite" -> 12,
    "AntiJoinsSuite" -> 10,
    "BoundSuite" -> 10,
    "SampleRuleSuite" -> 10,
    "RandomQuerySuite" -> 9,
    "SelectAggregateOperatorSuite" -> 9,
    "ShareEstimatesSuite" -> 8,
    "SplitDistinctAggregatesSuite" -> 35,
    "DeduplicateSemiJoinsSuite" -> 7,
    "StopPartialAggregationSuite" -> 7,
    "TransferSuite" -> 7,
    "ConflictDetectorSuite" -> 6,
    "SelectJoinOperatorSuite" -> 6
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
