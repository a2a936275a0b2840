import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Processor seconds of the slowest suites, so that both JVMs end together: times in
  // target/*/test-reports, less by what else the machine did.
  private val seconds = Map(
    "SqlEquivalenceSuite" -> 153,
    "RuleContractSuite" -> 151,
    "ReorderJoinsSuite" -> 88,
    "ReduceJoinInputSuite" -> 73,
    "HardTablesSuite" -> 67,
    "MechanismSuite" -> 60,
    "HeapHashAggregateSuite" -> 55,
    "CascadeGroupingSetsSuite" -> 40,
    "PushAggregateBelowJoinSuite" -> 40,
    "RandomQuerySuite" -> 32,
    "SelectAggregateOperatorSuite" -> 32,
    "PushJoinKeysIntoScanSuite" -> 25,
    "FilterRanksBeforeSortSuite" -> 23,
    "ParquetSamplesSuite" -> 23,
    "AnalyzeSuite" -> 22,
    "MergeSubplansByCostSuite" -> 21,
    "AwaitBuildSideSuite" -> 20,
    "ComputeInLongsSuite" -> 20,
    "AntiJoinsSuite" -> 18,
    "StopPartialAggregationSuite" -> 18,
    "GroupingSetCascadeSuite" -> 17,
    "SamplePredicatesSuite" -> 16,
    "ConflictDetectorSuite" -> 14,
    "ParquetDictionariesSuite" -> 12,
    "ComputeDecimalsInLongsSuite" -> 12,
    "BoundSuite" -> 11,
    "OrcFootersSuite" -> 10
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
