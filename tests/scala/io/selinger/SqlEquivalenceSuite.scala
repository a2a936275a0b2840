package io.selinger

import io.selinger.conf.SelingerConf
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import java.nio.file.{Files, Path, Paths}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.jdk.CollectionConverters._

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
  private val base = Seq("spark.sql.sources.fileCompressionFactor" -> "1000000")

  private val variants: Map[String, Seq[(String, String)]] = Map(
    "broadcasts" -> Seq(SelingerConf.BROADCAST_MAX_BYTES.key -> "1g"),
    "hashes" -> Seq(SelingerConf.BROADCAST_MAX_BYTES.key -> "1", SelingerConf.HASH_MEMORY_SHARE.key -> "1.0"))

  // Every mode of Spark, with at least one variant each.
  private val modes: Seq[(Boolean, Boolean, Seq[String])] = Seq(
    (true, true, Seq("broadcasts", "hashes")),
    (false, false, Seq("broadcasts", "hashes")),
    (true, false, Seq("broadcasts")),
    (false, true, Seq("hashes")))

  private val changed = mutable.Map.empty[Path, Int].withDefaultValue(0)
  private val vacuous = mutable.Map.empty[Path, Int].withDefaultValue(0)

  private def run(text: String): (Answer, Seq[String]) = {
    val df = spark.sql(text)
    val planned = Plans.joins(df)
    val answer = Answer.of(df)
    (answer, planned ++ Plans.joins(df))
  }

  files.foreach { file =>
    test(s"${file.getFileName}: the same answer as stock Spark") {
      Tables.register(spark)
      val text = Files.readString(file)
      for ((adaptive, ansi, names) <- modes) {
        val mode = base ++ Seq(
          "spark.sql.adaptive.enabled" -> adaptive.toString,
          "spark.sql.ansi.enabled" -> ansi.toString)
        val (expected, stockJoins) = withConf(mode :+ (SelingerConf.MODE.key -> "off"): _*)(run(text))
        names.foreach { name =>
          val (found, joins) = withConf(mode ++ variants(name): _*)(run(text))
          val where = s"$name, adaptive $adaptive, ANSI $ansi"
          Answer.difference(expected, found).foreach(difference => fail(s"$where: $difference"))
          if (joins == stockJoins) vacuous(file) += 1 else changed(file) += 1
        }
      }
    }
  }

  test("most files made another plan at least once") {
    val never = files.filter(changed(_) == 0).map(_.getFileName)
    info(s"${changed.values.sum} pairs with another plan, ${vacuous.values.sum} vacuous")
    info(s"${never.size} of ${files.size} files never made another plan: ${never.mkString(", ")}")
    assert(never.size <= files.size / 5)
  }
}
