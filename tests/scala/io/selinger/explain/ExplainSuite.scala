package io.selinger.explain

import com.fasterxml.jackson.databind.{JsonNode, ObjectMapper}
import io.selinger.conf.SelingerConf
import io.selinger.core.{BuildInfo, Origin}
import io.selinger.rule.EliminateJoins
import io.selinger.testing.{Plans, SharedSession, Tables}
import java.io.ByteArrayOutputStream
import java.nio.file.{Files, Path, Paths}
import java.util.concurrent.ConcurrentLinkedQueue
import org.apache.spark.rdd.RDD
import org.apache.spark.scheduler.{SparkListener, SparkListenerEvent}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.Attribute
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.{SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.ui.{
  SparkListenerSQLAdaptiveExecutionUpdate,
  SparkListenerSQLExecutionStart
}
import org.apache.spark.sql.internal.SQLConf
import org.scalatest.Assertion
import org.scalatest.concurrent.Eventually
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}
import scala.jdk.CollectionConverters._

/** The section that users see. */
class ExplainSuite extends AnyFunSuite with SharedSession with Eventually {

  // Many of these joins are there to be decided about only.
  override protected def ofSuite: Seq[(String, String)] =
    Seq(SelingerConf.switchOf(EliminateJoins).key -> "false")

  implicit override val patienceConfig: PatienceConfig = PatienceConfig(Span(20, Seconds))

  private val root = Paths.get(System.getProperty("selinger.root"))
  private val title = "== Extended Information (Selinger) =="
  private val largeFiles = "spark.sql.sources.fileCompressionFactor" -> "1000000"
  private val json = SelingerConf.EXPLAIN_FORMAT.key -> "json"

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  private val joins =
    "SELECT f.id, d.id FROM facts f JOIN dims d ON f.k = d.k LEFT JOIN dupes b ON b.id = f.id"
  private val unknown =
    """SELECT f.id FROM facts f JOIN
      |(SELECT k, tag FROM nested LATERAL VIEW explode(tags) t AS tag) e ON f.k = e.k""".stripMargin

  private val golden: Seq[(String, Seq[(String, String)], String)] = Seq(
    ("joins", Seq(largeFiles), joins),
    ("all", Seq(largeFiles, SelingerConf.EXPLAIN_ALL.key -> "true"), joins),
    ("hint", Seq(largeFiles), joins.replace("SELECT", "SELECT /*+ MERGE(d) */")),
    (
      "advise",
      Seq(largeFiles, SelingerConf.MODE.key -> "advise"),
      "SELECT * FROM facts f JOIN spans s ON f.k < s.low"
    ),
    ("off", Seq(SelingerConf.MODE.key -> "off"), joins)
  )

  private def section(df: DataFrame): String =
    new SelingerExplain().generateExtendedInfo(Plans.execution(df).executedPlan)

  // Times, costs and limits follow the machine.
  private val varying = Seq(
    "[0-9][0-9.,]* s\\b" -> "… s",
    "((?:time to read|broadcast limit(?: of counted rows)?) )[0-9][0-9.,]* ?[a-zA-Z]*" -> "$1…",
    // Too small to be said on some machines.
    "; expected work of these parts [0-9.,]+ × less" -> "",
    "(\"(?:stock|chosen)\" : )[0-9.Ee-]+" -> "$10",
    "minGain = [0-9.]+" -> "minGain = …",
    "(\"name\" : \"(?:cost of [^\"]+|time to read|broadcast limit)\",\\s+\"value\" : )[0-9.Ee-]+" -> "$10",
    "(\"setting_to\" : )\"0\\.[0-9]+\"" -> "$1\"…\""
  )

  private def normalised(text: String): String = {
    val fixed = varying.foldLeft(text) { case (t, (found, put)) => t.replaceAll(found, put) }
    fixed.replace(BuildInfo.version, "VERSION") + "\n"
  }

  test("a session with the explain provider and without the extension is told so") {
    SharedSession.onStock(spark) { stock =>
      val text = section(stock.sql("SELECT a.id FROM range(9) a JOIN range(9) b ON a.id = b.id"))
      assert(text.startsWith("Selinger is not loaded in this session: spark.sql.extensions must"))
      // Programs ask selinger_status() then.
      stock.conf.set(json._1, json._2)
      try assert(section(stock.range(3).toDF()).isEmpty)
      finally stock.conf.unset(json._1)
    }
  }

  test("the settings of the plan's session count, whichever session is active") {
    val other = spark.newSession()
    val df = spark.sql("SELECT a.id FROM range(9) a JOIN range(8) b ON a.id = b.id")
    withConf(json) {
      assert(df.count() == 8)
      SparkSession.setActiveSession(other)
      assert(section(df).startsWith("{"))
      val others = other.sql("SELECT id FROM range(3)")
      SparkSession.setActiveSession(spark)
      assert(section(others) == "Nothing to decide: the query has no join and no aggregation.")
    }
  }

  private def compare(file: String, text: String): Unit = {
    val expected = root.resolve("tests").resolve("golden").resolve(file)
    val actual = root.resolve("target").resolve("golden").resolve(file)
    if (!Files.exists(expected) || Files.readString(expected) != text) {
      Files.createDirectories(actual.getParent)
      Files.writeString(actual, text)
      fail(s"if $actual is right, copy it over tests/golden/$file:\n$text")
    }
  }

  private def parsed(df: DataFrame): JsonNode = new ObjectMapper().readTree(section(df))

  golden.foreach { case (name, settings, query) =>
    test(s"golden: $name, for people") {
      withConf(settings: _*)(compare(s"$name.txt", normalised(section(spark.sql(query)))))
    }

  }

  test("golden: joins, for programs") {
    withConf(largeFiles, json) {
      val text = section(spark.sql(joins))
      assert(!text.contains("\n"))
      compare("joins.json", normalised(new ObjectMapper().readTree(text).toPrettyString))
    }
  }

  private def treeOf(df: DataFrame): Seq[JsonNode] = parsed(df).get("tree").asScala.toSeq

  test("the tree for programs has expected rows before the run, and counted rows after it") {
    withConf(largeFiles, json) {
      val df = spark.sql(joins)
      val before = treeOf(df)
      assert(before.map(_.path("symbol").asText("")).filter(_.nonEmpty) == Seq("⟕", "⋈"))
      // Nested as deep as plans are, JSON could not be read.
      assert(before.forall(_.elements.asScala.forall(!_.isContainerNode)))
      assert(before.count(_.has("estimated")) == 4 && before.forall(!_.has("rows")))
      assert(before.map(_.path("table").asText("")).filter(_.nonEmpty).toSet ==
        Set("facts", "dims", "dupes"))
      val rows = df.collect().length
      val after = treeOf(df)
      assert(rows > 0 && after.find(_.has("symbol")).exists(_.get("rows").asInt == rows))
      assert(after.count(_.has("estimated")) == 4)
      // Inputs of the join at the top: what its own inputs returned.
      assert(after.exists(n => n.path("table").asText == "dims" && n.get("rows").asLong > 0))
    }
  }

  test("run again, a plan does not claim that its finished stages returned no rows") {
    withConf(largeFiles, json, "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      val df = spark.sql(joins)
      val rows = df.collect().length
      def none(tree: Seq[JsonNode]) = tree.filter(n => n.has("rows") && n.get("rows").asLong == 0)
      assert(rows > 0 && none(treeOf(df)).isEmpty && df.collect().length == rows)
      val again = treeOf(df)
      assert(again.exists(_.has("rows")) && none(again).isEmpty)
    }
  }

  test("the tree has the preserved side of an outer join first, as its symbol says") {
    withConf(largeFiles, json) {
      Seq("facts f LEFT JOIN dims d", "dims d RIGHT JOIN facts f").foreach { from =>
        val tables = treeOf(spark.sql(s"SELECT f.id, d.id FROM $from ON f.k = d.k"))
          .map(_.path("table").asText("")).filter(_.nonEmpty)
        assert(tables == Seq("facts", "dims"), from)
      }
    }
  }

  test("a plan is drawn in mode off, too") {
    withConf(json, SelingerConf.MODE.key -> "off") {
      assert(treeOf(spark.sql(joins)).count(_.has("symbol")) == 2)
    }
  }

  test("the section is in df.explain, in every mode that shows the physical plan") {
    val df = spark.sql(joins)
    Seq("simple", "extended", "formatted").foreach { mode =>
      val out = new ByteArrayOutputStream()
      Console.withOut(out)(df.explain(mode))
      assert(out.toString("UTF-8").contains(title), mode)
    }
  }

  test("the section is in the SQL page of the UI, before the query runs and after each re-plan") {
    val descriptions = new ConcurrentLinkedQueue[String]()
    val listener = new SparkListener {
      override def onOtherEvent(event: SparkListenerEvent): Unit = {
        val description = event match {
          case start: SparkListenerSQLExecutionStart => Some(start.physicalPlanDescription)
          case update: SparkListenerSQLAdaptiveExecutionUpdate =>
            Some(update.physicalPlanDescription)
          case _ => None
        }
        description.foreach(descriptions.add)
      }
    }
    spark.sparkContext.addSparkListener(listener)
    try {
      withConf(largeFiles)(spark.sql(joins).collect())
      // Views of the tables are made before, and the listener may still hear of it.
      def ofQuery = descriptions.asScala.filterNot(_.contains("CreateViewCommand")).toSeq
      eventually(assert(ofQuery.size >= 2))
      ofQuery.foreach(text =>
        assert(text.contains(title) && text.contains("BROADCAST_CHEAPEST"))
      )
    } finally spark.sparkContext.removeSparkListener(listener)
  }

  test(
    "the same decisions in the same order, however often they are asked for, before and after the run"
  ) {
    withConf(largeFiles, SelingerConf.BROADCAST_MAX_BYTES.key -> "1") {
      Seq(joins, unknown).foreach { query =>
        val df = spark.sql(query)
        def keys = Plans.decisions(df).map(decision => (decision.rule, decision.node))
        val before = keys
        assert(keys == before)
        df.collect()
        val text = section(df)
        assert(section(df) == text)
        assert(keys == before)
        df.collect()
        assert(keys == before)
      }
    }
  }

  test("a re-plan that chose otherwise shows what had been chosen before") {
    withConf(largeFiles, json, SelingerConf.BROADCAST_MAX_BYTES.key -> "1") {
      val df = spark.sql(unknown)
      def decision =
        parsed(df).get("decisions").asScala.find(_.get("rule").asText == "selectJoinOperator").get
      val first = decision
      assert(first.get("phase").asText == "static" && first.get("first").isNull)
      df.collect()
      val second = decision
      assert(second.get("phase").asText == "adaptive")
      if (second.get("chosen") != first.get("chosen"))
        assert(second.get("first") == first.get("chosen"))
    }
  }

  test("the JSON of a decision has every field of the contract") {
    withConf(largeFiles, json) {
      val root = parsed(spark.sql(joins))
      assert(root.get("selinger").asText == BuildInfo.version && root.get("mode").asText == "on")
      root.get("decisions").asScala.foreach { decision =>
        Seq("rule", "node", "outcome", "reason", "why", "phase").foreach { field =>
          assert(decision.get(field).asText.nonEmpty, field)
        }
        Seq("chosen", "stock", "setting", "setting_value").foreach(field =>
          assert(decision.has(field))
        )
        decision.get("numbers").asScala.foreach { number =>
          assert(number.get("name").isTextual && number.get("value").isNumber)
          assert(number.get("unit").isTextual && number.get("origin").isTextual)
        }
      }
    }
  }

  test("where nothing was decided, one line says why") {
    val plain = spark.sql("SELECT id FROM facts WHERE id > 3")
    assert(section(plain) == "Nothing to decide: the query has no join and no aggregation.")
    assert(
      section(spark.sql("SELECT count(*) FROM facts")) ==
        "Nothing to decide: the query has no join, and no rule makes its aggregation cheaper."
    )
    val ours = "spark.selinger.selectJoinOperator.enabled"
    withConf(ours -> "false", "spark.selinger.reorderJoins.enabled" -> "false") {
      val left = spark.sql("SELECT f.id FROM facts f JOIN dims d ON f.k = d.k")
      assert(section(left) == s"Nothing was decided: $ours is false, so joins are left to Spark.")
    }
    withConf(SelingerConf.MODE.key -> "off") {
      assert(section(plain).startsWith("Selinger is off (spark.selinger.mode = off)"))
    }
  }

  test("nothing is said of commands and of queries that only look up a schema") {
    Seq("SHOW TABLES", "SET spark.selinger.mode", "DESCRIBE facts").foreach { command =>
      assert(section(spark.sql(command)) == "", command)
    }
    assert(section(spark.sql("SELECT * FROM facts").limit(0)) == "")
    withTempFolder { folder =>
      val file = Files.writeString(folder.resolve("a.csv"), "a,b\n1,2\n")
      assert(section(spark.read.text(file.toString).limit(1)) == "")
    }
  }

  private def withTempFolder[A](body: Path => A): A = {
    val folder = Files.createTempDirectory("selinger-explain")
    try body(folder)
    finally {
      val all = Files.walk(folder)
      try all.iterator.asScala.toSeq.reverse.foreach(Files.delete)
      finally all.close()
    }
  }

  test("a threshold for adaptive broadcasts alone is no obstacle, and is the one that is named") {
    withConf(largeFiles, "spark.sql.adaptive.autoBroadcastJoinThreshold" -> "10m") {
      val df = spark.sql(joins)
      assert(!section(df).contains("failed"))
      df.collect()
      assert(!section(df).contains("failed") && !section(df).contains("INVALID_CONF_VALUE"))
      Seq("json", "report").foreach { form =>
        withConf(SelingerConf.EXPLAIN_FORMAT.key -> form)(assert(section(df).startsWith("{")))
      }
    }
    // A decision that names the other one, which is not set, must not fail either.
    val named = PlanDecisions.shown(Plans.execution(spark.sql(joins)).executedPlan).map { shown =>
      val key = SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key
      shown.copy(decision = shown.decision.copy(setting = Some(key), settingTo = Some("")))
    }
    withConf("spark.sql.adaptive.autoBroadcastJoinThreshold" -> "10m") {
      val text = ExplainText.render(Explained("on", named, Nil, None), all = true)
      assert(text.contains("RESET spark.sql.autoBroadcastJoinThreshold (now 10"))
    }
  }

  test("only what changed is shown, unless all is asked for") {
    withConf(largeFiles) {
      val df = spark.sql(joins)
      val brief = section(df)
      val all = withConf(SelingerConf.EXPLAIN_ALL.key -> "true")(section(df))
      assert(brief.linesIterator.next() == all.linesIterator.next())
      assert(brief.linesIterator.count(_.startsWith("* ")) == 2)
      assert(all.linesIterator.count(_.startsWith("* ")) == 9)
      assert(brief.contains(SelingerConf.EXPLAIN_ALL.key) && !all.contains("Not shown"))
      assert(!brief.contains("Order of 3 tables") && all.contains("Order of 3 tables"))
    }
  }

  test("joins and their sides are named by tables") {
    withConf(largeFiles, SelingerConf.EXPLAIN_ALL.key -> "true") {
      val text = section(spark.sql(joins))
      assert(text.contains("* facts ⋈ dims: broadcast dims (BroadcastHashJoin)"))
      assert(text.contains("* (facts ⋈ dims) ⟕ dupes: broadcast dupes"))
      assert("\\b(left|right)\\b".r.findFirstIn(text.replace("left to Spark", "")).isEmpty, text)
    }
  }

  test("what is to be set would change the choice") {
    withConf(largeFiles) {
      val query = "SELECT f.id FROM facts f JOIN dims d ON f.k = d.k"
      val made = Plans.decisions(spark.sql(query), "selectJoinOperator").head
      assert(made.chosen.contains("BroadcastHashJoin(right)"))
      withConf(made.setting.get -> made.settingTo.get) {
        assert(!Plans.joins(spark.sql(query)).contains("BroadcastHashJoin(right)"))
      }
    }
  }

  test("after the run, rows estimated and rows that came; before it, none") {
    withConf(largeFiles, "spark.sql.autoBroadcastJoinThreshold" -> "-1") {
      // The same condition in three forms: formulas take them for independent.
      val df = spark.sql(
        """SELECT f.id FROM facts f JOIN dims d ON f.k = d.k
          |WHERE f.id % 10 = 0 AND f.id % 20 = 0 AND f.id % 30 = 0""".stripMargin
      )
      val true_ = spark.sql("SELECT id FROM facts WHERE id % 60 = 0 AND k IS NOT NULL").count()
      assert(CountedInput.of(Plans.execution(df).executedPlan).isEmpty)
      df.collect()
      val inputs = CountedInput.of(Plans.execution(df).executedPlan)
      assert(inputs.find(_.name == "facts").map(_.actual).contains(true_.toDouble), inputs)
      assert(inputs.map(_.name).toSet == Set("facts", "dims"))
      assert(section(df).contains("stimate"))
    }
  }

  test("a limit may stop a join early, so its inputs are not counted") {
    withConf(largeFiles) {
      val df = spark.sql("SELECT f.id FROM facts f JOIN dims d ON f.k = d.k LIMIT 1")
      df.collect()
      assert(CountedInput.of(Plans.execution(df).executedPlan).isEmpty)
    }
  }

  test("the worst estimate is named with its cause and what helps") {
    def input(name: String, estimated: Double, actual: Double, origin: Origin) =
      CountedInput(name, estimated, origin, actual, isReduced = false)
    val good = input("dims", 100, 110, Origin.Sampled)
    val bad = input("customer_address", 1.2e6, 30000, Origin.Derived)
    val text = CountedInput.summary(Seq(good, bad)).get
    assert(text.startsWith(
      "Worst estimate: customer_address: 1.2 M rows estimated, 30,000 came, 40 × off."
    ))
    assert(text.contains("Formulas computed") && text.contains("Run selinger.analyze"))
    val few = input("small", 900, 3, Origin.Default)
    assert(CountedInput.summary(Seq(few, bad)).contains(text))
    assert(CountedInput.summary(Seq(few)).exists(_.startsWith("Estimates: right")))
    assert(CountedInput.summary(Seq(good)).exists(_.contains("right within a factor of 2")))
    assert(CountedInput.summary(Seq(bad.copy(isReduced = true))).isEmpty)
    assert(CountedInput.summary(Nil).isEmpty)
  }

  test("a bug report has the plan, and no literal of the query") {
    withConf(largeFiles, SelingerConf.EXPLAIN_FORMAT.key -> "report") {
      val df = spark.sql(
        """SELECT d.id, 'Sesam' AS a, concat(d.id, 'Oeffne') FROM facts f
          |JOIN (SELECT *, 'Dich' FROM dims WHERE id <> 7654321) d ON f.k = d.k + 1234567
          |WHERE f.id NOT IN (91, 92, 93, 94, 95, 96, 97, 98, 99, 987654, 987653, 987652)
          |GROUP BY ALL""".stripMargin
      )
      def check(text: String): Assertion = {
        Seq("Sesam", "Oeffne", "Dich", "7654321", "1234567", "987654").foreach { secret =>
          assert(!text.contains(secret), secret)
        }
        assert(!text.contains(root.toString))
      }
      val before = section(df)
      check(before)
      val plan = new ObjectMapper().readTree(before).get("plan").asScala.map(_.asText)
      assert(plan.exists(_.contains("FileSourceScan ParquetFileFormat facts")), plan)
      assert(plan.exists(_.contains("?:long")), plan)
      df.collect()
      check(section(df))
    }
    assert(BugReport.withoutValues("Scan country=DE (grouped)") == "Scan country=?")
    assert(BugReport.withoutValues("(country=Congo (Kinshasa) ⋈ sales)") == "(country=?")
    assert(BugReport.withoutValues("sales ⋈ customers") == "sales ⋈ customers")
  }

  test("decisions in subqueries and in commands are found") {
    withConf(largeFiles) {
      val subquery =
        spark.sql(s"SELECT * FROM dims WHERE id < (SELECT count(b) FROM ($joins) t(a, b))")
      assert(Plans.decisions(subquery, "selectJoinOperator").size == 2)
      spark.sql("CREATE TABLE explain_test (id BIGINT, other BIGINT) USING parquet")
      try {
        val command = spark.sql(s"INSERT INTO explain_test $joins")
        assert(Plans.decisions(command, "selectJoinOperator").size == 2)
      } finally { val _ = spark.sql("DROP TABLE explain_test") }
    }
  }

  test("a reused exchange shows its decisions once") {
    withConf(largeFiles) {
      val df = spark.sql(
        """WITH j AS (SELECT /*+ REPARTITION(3) */ f.id FROM facts f JOIN dims d ON f.k = d.k)
          |SELECT * FROM j UNION ALL SELECT * FROM j""".stripMargin
      )
      df.collect()
      val decisions = Plans.decisions(df, "selectJoinOperator")
      assert(decisions.map(_.key).distinct.size == decisions.size)
    }
  }

  test("never throws, even at a plan that cannot be walked") {
    assert(new SelingerExplain().generateExtendedInfo(ExplainSuite.Broken).contains("failed"))
    assert(new SelingerExplain().title == "Selinger")
  }
}

object ExplainSuite {

  /** A plan that raises what a plan of another version of Spark would. */
  private object Broken extends UnaryExecNode {
    override def child: SparkPlan = throw new NoSuchMethodError("boom")
    override def output: Seq[Attribute] = Nil
    override protected def doExecute(): RDD[InternalRow] = throw new UnsupportedOperationException
    override protected def withNewChildInternal(child: SparkPlan): SparkPlan = this
    override def productArity: Int = 0
    override def productElement(n: Int): Any = throw new IndexOutOfBoundsException
    override def canEqual(that: Any): Boolean = that.isInstanceOf[SparkPlan]
  }
}
