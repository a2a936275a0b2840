package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.exec.{GroupingSetCascadeExec, PartitionedByEitherKeyExec, RankFilterExec}
import io.selinger.exec.aggregates.HeapHashAggregateExec
import io.selinger.rule.{ShareEstimates, UnwrapFunctionsInFilters}
import io.selinger.strategy.SelectJoinOperator
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import java.nio.file.{Files, Path, Paths}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * Law 1: the same rows as stock Spark, or the same error. Each file of `tests/sql` runs with mode off
 * and with settings that make the plan another one. A pair whose plan did not change proves nothing;
 * it is counted apart, as vacuous.
 */
class SqlEquivalenceSuite extends AnyFunSuite with SharedSession {

  private val folder = Paths.get(System.getProperty("selinger.root"), "tests", "sql")

  private val files: Seq[Path] = {
    val paths = Files.list(folder)
    try paths.iterator.asScala.filter(_.toString.endsWith(".sql")).toSeq.sortBy(_.toString)
    finally paths.close()
  }

  // Spark takes the files for large, and sorts.
  private val base = Seq(
    "spark.sql.sources.fileCompressionFactor" -> "1000000",
    "spark.sql.shuffle.partitions" -> "2"
  )

  private val variants: Seq[(String, Seq[(String, String)])] = Seq(
    "broadcasts" -> Seq(SelingerConf.BROADCAST_MAX_BYTES.key -> "1g"),
    "hashes" -> Seq(
      SelingerConf.BROADCAST_MAX_BYTES.key -> "1",
      SelingerConf.HASH_MEMORY_SHARE.key -> "1.0",
      SelingerConf.ORDER_MIN_GAIN.key -> "0",
      SelingerConf.MERGE_MIN_GAIN.key -> "0",
      SelingerConf.EAGER_MIN_GAIN.key -> "0",
      SelingerConf.REDUCE_GROUPED_MIN_GAIN.key -> "0",
      SelingerConf.CASCADE_MIN_GAIN.key -> "0",
      SelingerConf.RANK_FILTER_MIN_GAIN.key -> "0"
    ),
    // Spark decides, with our sizes.
    "shared" -> Seq(
      ShareEstimates.switch -> "true",
      SelectJoinOperator.switch -> "false",
      "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold" -> "0"
    )
  )

  // Files that ran with the variant that changes most.
  private val hashing = mutable.Set.empty[Path]
  private val changed = mutable.Map.empty[Path, Int].withDefaultValue(0)
  private val vacuous = mutable.Map.empty[Path, Int].withDefaultValue(0)

  /** The answer, and joins, aggregations and filters of ours as they were planned and as they ran. */
  private def run(text: String): (Answer, Seq[String]) = {
    val df = spark.sql(text)
    def joins = Try(Plans.joins(df) ++ Plans.physical(df).collect {
      case cascade: GroupingSetCascadeExec => cascade.nodeName
      case claim: PartitionedByEitherKeyExec => claim.nodeName
      case ranks: RankFilterExec => ranks.nodeName
      case hashed: HeapHashAggregateExec => hashed.nodeName
    } ++ Plans.decisions(df, UnwrapFunctionsInFilters.id).flatMap(_.chosen)).getOrElse(Nil)
    val planned = joins
    val answer = Answer.of(df)
    (answer, planned ++ joins)
  }

  // Adaptive, and with ANSI. The first is what users have.
  private val modes = for (a <- Seq(true, false); b <- Seq(true, false)) yield (a, b)

  /** Runs a file in one mode of Spark with some of the variants. */
  private def compare(
      file: Path,
      mode: (Boolean, Boolean),
      variants: Seq[String],
      code: Seq[(String, String)] = Nil
  ): Unit = {
    val (adaptive, ansi) = mode
    val text = Files.readString(file)
    val settings = base ++ code ++ Seq(
      "spark.sql.adaptive.enabled" -> adaptive.toString,
      "spark.sql.ansi.enabled" -> ansi.toString
    )
    val stock = settings ++ SharedSession.interpreted :+ (SelingerConf.MODE.key -> "off")
    val (expected, stockJoins) = withConf(stock: _*)(run(text))
    this.variants.filter { case (name, _) => variants.contains(name) }.foreach {
      case (name, more) =>
        val (found, joins) = withConf(settings ++ more: _*)(run(text))
        val where = s"${Grid.clue}$name, adaptive $adaptive, ANSI $ansi"
        Answer.difference(expected, found).foreach(difference => fail(s"$where: $difference"))
        if (name == "hashes") hashing += file
        if (joins == stockJoins) vacuous(file) += 1 else changed(file) += 1
    }
  }

  // In a short run, another half each time.
  private val chosen = Grid.part(files, share = 0.5, "files")

  chosen.foreach { file =>
    test(s"${file.getFileName}: the same answer as stock Spark") {
      Tables.register(spark)
      val names = variants.map(_._1)
      if (Grid.isWhole) modes.foreach(compare(file, _, names))
      else {
        // The mode of users with any variant, or another one with the variant that changes most.
        val name = file.getFileName.toString
        if (Grid.one(Seq(true, false), ("users", name))) {
          compare(file, modes.head, Seq(Grid.one(names, name)))
        } else {
          val code = Grid.one(Seq(Nil, SharedSession.interpreted), name)
          compare(file, Grid.one(modes.tail, name), Seq("hashes"), code)
        }
      }
    }
  }

  test("most files made another plan at least once") {
    val asked = chosen.filter(hashing)
    val never = asked.filter(changed(_) == 0).map(_.getFileName)
    info(s"${changed.values.sum} pairs with another plan, ${vacuous.values.sum} vacuous")
    info(s"${never.size} of ${asked.size} files never made another plan: ${never.mkString(", ")}")
    if (Grid.isWhole) assert(asked == files && never.size <= files.size / 5)
    // Of a sample, chance alone may choose more of them.
    else assert(asked.size >= chosen.size / 4 && never.size <= asked.size / 3, Grid.clue)
  }
}
