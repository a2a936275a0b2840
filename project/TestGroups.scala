import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Seconds of the slowest suites, so that both JVMs end together: times in target/*/test-reports.
  private val seconds = Map(
    "SqlEquivalenceSuite" -> 80,
    "RuleContractSuite" -> 80,
    "MechanismSuite" -> 50,
    "ReduceJoinInputSuite" -> 60,
    "HeapHashAggregateSuite" -> 55,
    "HardTablesSuite" -> 60,
    "ReorderJoinsSuite" -> 60,
    "AwaitBuildSideSuite" -> 30,
    "ComputeInLongsSuite" -> 17,
    "PushAggregateBelowJoinSuite" -> 35,
    "ShareSimilarAggregatesSuite" -> 50,
    "SizeShufflesSuite" -> 50,
    "FilterRanksBeforeSortSuite" -> 40,
    "ReuseFinerGroupsSuite" -> 35,
    "AnalyzeSuite" -> 35,
    "DeduplicateSemiJoinsSuite" -> 15,
    "SamplePredicatesSuite" -> 25,
    "SelectAggregateOperatorSuite" -> 12,
    "MergeSubplansByCostSuite" -> 20,
    "ReduceGroupedInputSuite" -> 38,
    "PushJoinKeysIntoScanSuite" -> 24,
    "RandomQuerySuite" -> 14,
    "CascadeGroupingSetsSuite" -> 24,
    "ParquetSamplesSuite" -> 15,
    "GroupingSetCascadeSuite" -> 13,
    "ShareEstimatesSuite" -> 15,
    "AntiJoinsSuite" -> 10,
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
