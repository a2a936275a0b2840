import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Seconds of the slowest suites, so that both JVMs end together: times in target/*/test-reports.
  private val seconds = Map(
    "SqlEquivalenceSuite" -> 247,
    "RuleContractSuite" -> 244,
    "MechanismSuite" -> 164,
    "ReduceJoinInputSuite" -> 137,
    "HeapHashAggregateSuite" -> 130,
    "HardTablesSuite" -> 118,
    "ReorderJoinsSuite" -> 104,
    "AwaitBuildSideSuite" -> 73,
    "ComputeInLongsSuite" -> 72,
    "PushAggregateBelowJoinSuite" -> 71,
    "ShareSimilarAggregatesSuite" -> 70,
    "SizeShufflesSuite" -> 64,
    "FilterRanksBeforeSortSuite" -> 53,
    "ReuseFinerGroupsSuite" -> 52,
    "AnalyzeSuite" -> 49,
    "ComputeAggregateAsWindowSuite" -> 45,
    "DeduplicateSemiJoinsSuite" -> 40,
    "SamplePredicatesSuite" -> 40,
    "SelectAggregateOperatorSuite" -> 39,
    "MergeSubplansByCostSuite" -> 37,
    "ReduceGroupedInputSuite" -> 36,
    "PushJoinKeysIntoScanSuite" -> 33,
    "RandomQuerySuite" -> 32,
    "CascadeGroupingSetsSuite" -> 31,
    "ParquetSamplesSuite" -> 30,
    "GroupingSetCascadeSuite" -> 29,
    "ShareEstimatesSuite" -> 22,
    "AntiJoinsSuite" -> 21,
    "RemoveImpliedLookupsSuite" -> 18,
    "ShuffleByCommonKeysSuite" -> 18,
    "ComputeDecimalsInLongsSuite" -> 17,
    "FileRelationSuite" -> 15,
    "ParquetDictionariesSuite" -> 15,
    "BoundSuite" -> 15,
    "StopPartialAggregationSuite" -> 14,
    "TransferSuite" -> 13,
    "SelectJoinOperatorSuite" -> 12,
    "JoinEnumeratorSuite" -> 12
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
