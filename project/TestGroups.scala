import sbt._
import sbt.Tests.{Group, SubProcess}

/** Which suites share a test JVM. Two JVMs run at a time; each has a Spark of its own. */
object TestGroups {

  // Seconds that the slowest suites take (two JVMs on two cores), so that both JVMs end together.
  private val seconds = Map(
    "SqlEquivalenceSuite" -> 120,
    "ReorderJoinsSuite" -> 80,
    "RuleContractSuite" -> 60,
    "HardTablesSuite" -> 50,
    "AnalyzeSuite" -> 40,
    "RandomQuerySuite" -> 35,
    "SamplePredicatesSuite" -> 35,
    "AwaitBuildSideSuite" -> 25,
    "AntiJoinsSuite" -> 20,
    "BoundSuite" -> 25,
    "ParquetSamplesSuite" -> 20,
    "LargeListingSuite" -> 10,
    "TransferSuite" -> 20,
    "ConflictDetectorSuite" -> 12,
    "SelectJoinOperatorSuite" -> 10,
    "ShareEstimatesSuite" -> 10
  )
  private val others = 2

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
