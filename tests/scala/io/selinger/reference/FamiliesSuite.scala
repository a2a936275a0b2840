package io.selinger.reference

import io.selinger.conf.SelingerConf
import io.selinger.core.{BuildInfo, Outcome, RuleDescription, RuleKind}
import io.selinger.testing.{Answer, ExampleTables, Plans, ReasonQuery, SharedSession, Tables}
import java.nio.file.{Files, Path, Paths}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._
import scala.util.Try

/**
 * What the table in `docs/rules.md` says about the families of Spark's rules is true: the plan of stock
 * Spark is as expected, each rule of the family has changed some plan, Selinger decides what it claims
 * and leaves alone the rest, and the answers are the same.
 */
class FamiliesSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val folder = Paths.get(System.getProperty("selinger.root"), "tests", "sql", "families")

  private val off = SelingerConf.MODE.key -> "off"

  Families.all.foreach { family =>
    test(s"${family.name}: plans are as expected, and answers are the same") {
      val changing = family.queries.flatMap(check).toSet
      // Other lines of Spark have other rules.
      if (BuildInfo.sparkLine == "4.3") {
        val idle = family.rules.filterNot(changing)
        assert(idle.isEmpty, s"of ${changing.toSeq.sorted.mkString(", ")}")
        val unknown = family.parts.filterNot(isClass)
        assert(unknown.isEmpty)
      }
    }
  }

  test("each file belongs to a family, and each sentence says what its row claims") {
    val listed = Families.all.flatMap(_.queries.map(_.file))
    assert(listed.distinct == listed && listed.sorted == files)
    assert(Families.all.map(_.name).distinct.size == Families.all.size)
    Families.all.foreach { family =>
      assert(family.added.isEmpty == (family.selinger == Family.Nothing), family.name)
      assert(family.lacking.isEmpty || family.lacking.startsWith("Not added yet: "), family.name)
      Seq(family.spark, family.selinger, family.lacking).filter(_.nonEmpty).foreach { text =>
        assert(text.endsWith(".") && !text.contains("  ") && !text.contains("|"), text)
      }
    }
    files.foreach { file =>
      val first = Files.readString(folder.resolve(s"$file.sql")).linesIterator.next()
      assert(first.matches("-- [A-Z`].*[.:]"), s"$file does not begin with what it shows")
    }
  }

  private def files: Seq[String] = {
    val paths = Files.list(folder)
    try paths.iterator.asScala.map(_.getFileName.toString.stripSuffix(".sql")).toSeq.sorted
    finally paths.close()
  }

  /** Checks one query, and returns the rules of Spark that changed its plan. */
  private def check(query: FamilyQuery): Set[String] = prepared { tmp =>
    val file = folder.resolve(s"${query.file}.sql")
    val text = new ReasonQuery(Files.readString(file)).prepare(spark, tmp)
    val (expected, changing, stock) = withConf(off) {
      val df = spark.sql(text)
      // What a plan contains is looked at before it runs: adaptive execution changes it.
      val holds = query.shows.holds(df)
      assert(holds, s"${query.file}: ${query.shows.text}, on stock Spark\n${shown(df)}")
      val stock = shape(df)
      (Answer.of(df), rulesThatChanged(df), stock)
    }
    val df = spark.sql(text)
    if (query.added.isEmpty) {
      val holds = query.shows.holds(df)
      assert(holds, s"${query.file}: ${query.shows.text}, with Selinger\n${shown(df)}")
      assert(shape(df) == stock, s"${query.file}: Selinger has changed it\n${shown(df)}")
    }
    Answer.difference(expected, Answer.of(df)).foreach(text => fail(s"${query.file}: $text"))
    query.added.foreach { rule =>
      assert(decides(rule, df), s"${query.file}: $rule decides nothing\n${told(rule, df)}")
      withConf(rule.switch -> "false") {
        val without = spark.sql(text)
        assert(Answer.difference(expected, Answer.of(without)).isEmpty, query.file)
        assert(!decides(rule, without), s"${query.file}: $rule decides though it is off")
        if (rule.kind == RuleKind.Logical) {
          assert(shape(without) != shape(df), s"${query.file}: $rule makes no other plan")
        }
      }
    }
    changing
  }

  /** Runs `body` with the tables, after which settings and views of the session are as before. */
  private def prepared[A](body: Path => A): A = SharedSession.withViews(spark) {
    Tables.register(spark)
    ExampleTables.register(spark)
    val before = spark.conf.getAll
    try withFolder(body)
    finally {
      spark.conf.getAll.keySet.diff(before.keySet).foreach(spark.conf.unset)
      before.foreach { case (key, value) =>
        if (spark.conf.isModifiable(key)) spark.conf.set(key, value)
      }
    }
  }

  private def decides(rule: RuleDescription, df: DataFrame): Boolean =
    Plans.decisions(df, rule.id).map(_.outcome).exists(Set(Outcome.Changed, Outcome.Informed))

  private def told(rule: RuleDescription, df: DataFrame): String =
    s"${Plans.decisions(df, rule.id).map(d => s"${d.outcome} ${d.reason}")}\n${shown(df)}"

  /** The optimized plan without ids, unless it cannot be made. */
  private def shape(df: DataFrame): Option[LogicalPlan] =
    Try(Plans.execution(df).optimizedPlan.canonicalized).toOption

  private def shown(df: DataFrame): String =
    Try(Plans.execution(df).optimizedPlan.treeString + Plans.execution(df).executedPlan.treeString)
      .getOrElse("(it cannot be planned)")

  private def rulesThatChanged(df: DataFrame): Set[String] =
    Plans.execution(df).tracker.rules.collect {
      case (rule, work) if work.numEffectiveInvocations > 0 => rule.split("[.$]").last
    }.toSet

  private val packages = Seq(
    "org.apache.spark.sql.catalyst.optimizer.",
    "org.apache.spark.sql.execution.SparkStrategies$",
    "org.apache.spark.sql.catalyst.plans.logical.statsEstimation.",
    "org.apache.spark.sql.catalyst.plans.logical."
  )

  private def isClass(name: String): Boolean = {
    val loader = getClass.getClassLoader
    packages.flatMap(p => Seq(s"$p$name$$", s"$p$name")).exists(c =>
      Try(Class.forName(c, false, loader)).isSuccess
    )
  }
}
