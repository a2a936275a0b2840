import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Seconds of the slowest suites, so that both JVMs end together: times in target/*/test-reports.
  private val seconds = Map(
    "RuleContractSuite" -> 347,
    "SqlEquivalenceSuite" -> 247,
    "ReduceJoinInputSuite" -> 115,
    "MechanismSuite" -> 113,
    "SizeShufflesSuite" -> 113,
    "HardTablesSuite" -> 107,
    "ReorderJoinsSuite" -> 106,
    "HeapHashAggregateSuite" -> 96,
    "AwaitBuildSideSuite" -> 93,
    "PushAggregateBelowJoinSuite" -> 82,
    "ShareSimilarAggregatesSuite" -> 77,
    "FilterRanksBeforeSortSuite" -> 72,
    "MergeSubplansByCostSuite" -> 62,
    "ReduceGroupedInputSuite" -> 58,
    "ReuseFinerGroupsSuite" -> 56,
    "AnalyzeSuite" -> 54,
    "SamplePredicatesSuite" -> 51,
    "ComputeInLongsSuite" -> 50,
    "CascadeGroupingSetsSuite" -> 48,
    "PushJoinKeysIntoScanSuite" -> 44,
    "RandomQuerySuite" -> 44,
    "TransferSuite" -> 41,
    "DeduplicateSemiJoinsSuite" -> 38,
    "ParquetSamplesSuite" -> 35,
    "SelectAggregateOperatorSuite" -> 29,
    "RemoveImpliedLookupsSuite" -> 27,
    "AntiJoinsSuite" -> 26,
    "GroupingSetCascadeSuite" -> 23,
    "BoundSuite" -> 22,
    "ShareEstimatesSuite" -> 22,
    "ShuffleByCommonKeysSuite" -> 22,
    "FileRelationSuite" -> 21,
    "StopPartialAggregationSuite" -> 19,
    "SelectJoinOperatorSuite" -> 17,
    "ComputeDecimalsInLongsSuite" -> 15,
    "ParquetDictionariesSuite" -> 14
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
