package io.selinger.transfer

import io.selinger.SelingerExtension
import io.selinger.conf.SelingerConf
import io.selinger.core.{Origin, PlanningPass, Reason}
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.rule.EliminateJoins
import io.selinger.stats.imported.{NoDataException, StatisticsFile, UseImportedStatistics}
import io.selinger.stats.relations.KeyColumns
import io.selinger.stats.samples.SamplePredicates
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import java.nio.file.{Files, Path}
import org.apache.spark.sql.{AnalysisException, DataFrame}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.apache.spark.sql.functions.{col, struct}
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

/** Statistics leave one session and another plans by them. */
class TransferSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val noSamples = SamplePredicates.switch -> "false"

  /** A session on the same Spark that has no tables. */
  private def elsewhere[A](body: SparkSession => A): A = withSession(new SelingerExtension) {
    session =>
      session.conf.set(noSamples._1, noSamples._2)
      PlanningPass.start()
      body(session)
  }

  private def literal(text: String) = s"'${text.replace("\\", "\\\\").replace("'", "\\'")}'"

  private def call(session: SparkSession, function: String, arguments: String*): DataFrame =
    session.sql(s"SELECT * FROM $function(${arguments.map(literal).mkString(", ")})")

  private def exported(arguments: String*): String =
    call(spark, "selinger_export_stats", arguments: _*).head().getString(0)

  private def imports(session: SparkSession, text: String, options: String = "{}"): Seq[String] =
    call(session, "selinger_import_stats", text, options).collect().toSeq.map(_.getString(0))

  private def refused(body: => Any): String =
    intercept[IllegalArgumentException](body).getMessage

  /** As if a query joined or grouped by every column: an export tells what is known of each. */
  private def estimate(df: DataFrame): Option[PlanEstimate] = {
    val plan = Plans.execution(df).optimizedPlan
    PlanningPass.start()
    KeyColumns.ask(plan.collect { case node => node.output.map(_.exprId) }.flatten.toSet)
    LeafStatistics.estimator.estimate(plan)
  }

  /** What is believed of a query, without ids that differ from session to session. */
  private def believed(df: DataFrame): Any = {
    val found = estimate(df)
    val output = Plans.execution(df).optimizedPlan.output
    (
      found.map(e => (e.rows, e.upperBound, e.bound, e.nullsCounted, e.rowBytes(output))),
      // How files store a column is not exported: only proofs ask for it, and they need the files.
      output.map(c =>
        c.name -> found.flatMap(_.columns.get(c.exprId)).map(_.copy(isWhole = false).toString)
      )
    )
  }

  private val all = Tables.names.filterNot(_ == "nested")

  private lazy val file: String = {
    Tables.register(spark)
    withConf(noSamples)(exported(all :+ "nested": _*))
  }

  // ---- the round trip -----------------------------------------------------------------------

  test("estimates of every table are those that the data gives") {
    val here = withConf(noSamples)((all :+ "nested").map { t =>
      Tables.register(spark)
      t -> believed(spark.table(t))
    })
    elsewhere { session =>
      assert(imports(session, file).toSet == Tables.names.toSet)
      here.foreach { case (t, expected) => assert(believed(session.table(t)) == expected, t) }
    }
  }

  private val queries = Seq(
    "SELECT count(*) FROM facts JOIN dims ON facts.k = dims.k",
    "SELECT * FROM facts f LEFT JOIN dims d ON f.big = d.big AND d.flag WHERE f.day > '1999-12-25'",
    "SELECT f.k, count(*) FROM facts f, dims d, dupes u WHERE f.k = d.k AND d.k = u.k GROUP BY f.k",
    "SELECT * FROM facts WHERE k IN (SELECT k FROM dims WHERE s = 'ä') AND amount > 5",
    "SELECT * FROM facts f JOIN spans s ON f.k BETWEEN s.low AND s.high",
    "SELECT * FROM facts a JOIN facts b ON a.id = b.id JOIN nothing n ON a.k = n.k"
  )

  private def planned(session: SparkSession): Seq[Any] = queries.map { query =>
    val df = session.sql(query)
    val decisions = Plans.decisions(df).filterNot(_.outcome.label == "informed")
    (
      query,
      Plans.joins(df),
      decisions.map(d => (d.rule, d.node, d.outcome, d.reason, d.chosen, d.stock))
    )
  }

  Seq("on", "advise", "off").foreach { mode =>
    test(s"plans and decisions are those that the data gives, mode $mode") {
      Tables.register(spark)
      // Without the data no key is proven.
      val unproven = SelingerConf.switchOf(EliminateJoins).key -> "false"
      val here = withConf(noSamples, unproven, SelingerConf.MODE.key -> mode)(planned(spark))
      elsewhere { session =>
        session.conf.set(SelingerConf.MODE.key, mode)
        session.conf.set(unproven._1, unproven._2)
        val _ = imports(session, file)
        planned(session).zip(here).foreach { case (found, expected) => assert(found == expected) }
      }
    }
  }

  test("a sample tells frequent values, widths and distinct values; without values none is told") {
    Tables.register(spark)
    val found = StatisticsFile.parse(exported("facts")).head
    assert(found.columns("s").averageBytes.isDefined)
    assert(found.columns.values.exists(_.frequent.nonEmpty))
    assert(found.columns.values.forall(_.distinct.isDefined))
    assert(found.columns("s").averageBytes.exists(_.origin == Origin.Sampled))
    assert(found.rows.exists(_.origin == Origin.Exact))
    val bare = StatisticsFile.parse(exported("facts", """{"values": false}""")).head
    assert(bare.columns.values.forall(_.frequent.isEmpty))
    assert(bare == found.withoutValues)
  }

  test("metadata of columns, where libraries keep values, is not exported; lengths of texts are") {
    withFolder { folder =>
      val secret = new MetadataBuilder().putString("labels", "SECRET").build()
      val nested = StructType(Seq(StructField("x", LongType, nullable = true, secret)))
      spark.range(3)
        .select(
          col("id").as("id", secret),
          struct(col("id").as("x", secret)).cast(nested).as("s")
        )
        .write
        .parquet(s"$folder/t")
      val text = exported(s"$folder/t")
      assert(!text.contains("SECRET") && StatisticsFile.parse(text).head.schema.size == 2)
    }
  }

  test("an imported relation is exported as it came") {
    elsewhere { session =>
      val _ = imports(session, file)
      val again = call(session, "selinger_export_stats", Tables.names: _*).head().getString(0)
      val before = StatisticsFile.parse(file).map(r => r.name -> r).toMap
      StatisticsFile.parse(again).foreach(r => assert(r.toString == before(r.name).toString))
    }
  }

  test("partitioned tables, ORC, and names for paths") {
    withFolder { folder =>
      val path = folder.resolve("by_day").toString
      spark
        .range(0, 900, 1, 2)
        .selectExpr("id", "cast(id % 3 as int) AS part", "string(id % 7) AS text")
        .write
        .partitionBy("part")
        .orc(path)
      val text = withConf(noSamples)(exported(path, """{"names": ["lake.days"]}"""))
      val found = StatisticsFile.parse(text).head
      assert(found.name == "lake.days" && found.format == "orc")
      assert(found.partitionColumns == Seq("part") && found.files.exists(_ >= 3))
      assert(found.columns("part").distinct.map(_.value).contains(3.0))
      val here = withConf(noSamples)(believed(spark.read.orc(path)))
      elsewhere { session =>
        assert(imports(session, text) == Seq("lake.days"))
        assert(believed(session.table("lake.days")) == here)
        val plan = Plans.execution(session.sql("SELECT * FROM lake.days WHERE part = 1"))
        assert(plan.executedPlan.toString.contains("PartitionFilters: [isnotnull(part"))
      }
    }
  }

  test("Spark's own size is that of the file, times the scale") {
    elsewhere { session =>
      val bytes = StatisticsFile.parse(file).map(r => r.name -> r.bytes).toMap
      def size(table: String) =
        Plans.execution(session.table(table)).optimizedPlan.stats.sizeInBytes.toDouble
      val _ = imports(session, file)
      Tables.names.foreach(t => assert(size(t) == bytes(t)))
      val again = imports(session, file, """{"scale": 1000}""")
      again.foreach(t => assert(size(t) == bytes(t) * 1000))
      val found = estimate(session.table("facts")).get
      assert(found.rows.value == 3e6 && found.rows.origin == Origin.Derived)
    }
  }

  test("a calendar keeps its days at any scale, unless it is named") {
    withFolder { folder =>
      val days = folder.resolve("days").toString
      spark.range(1000).selectExpr("id AS k", "date_add(DATE'2020-01-01', int(id)) AS day")
        .write.parquet(days)
      val text = spark.sql(s"SELECT * FROM selinger_export_stats('$days')").head().getString(0)
      elsewhere { session =>
        def rows(scale: String) = {
          val _ = imports(session, text, s"""{"scale": $scale}""")
          estimate(session.table("days")).get.rows.value
        }
        assert(rows("100") == 1000)
        assert(rows("""{"days": 100}""") == 100000)
      }
    }
  }

  // ---- running ------------------------------------------------------------------------------

  Seq("true", "false").foreach { adaptive =>
    test(s"running a query without data is an error that says so, adaptive execution $adaptive") {
      elsewhere { session =>
        session.conf.set("spark.sql.adaptive.enabled", adaptive)
        val _ = imports(session, file)
        val queriesOf = queries :+ "SELECT * FROM facts" :+ "SELECT count(*) FROM nothing"
        queriesOf.foreach { query =>
          assert(
            Answer.of(session.sql(query)) == Answer.Error(NoDataException.condition),
            query
          )
        }
        Seq("simple", "extended", "formatted", "cost").foreach { mode =>
          Console.withOut(new java.io.ByteArrayOutputStream) {
            session.sql(queries.head).explain(mode)
          }
        }
      }
    }
  }

  test("rows cannot be written into what has no data, whatever its name") {
    elsewhere { session =>
      val renamed = file.replace("\"dims\"", "\"`../dims`\"")
      val _ = imports(session, file) ++ imports(session, renamed, """{"tables": ["`../dims`"]}""")
      Seq("INSERT INTO dims", "INSERT OVERWRITE dims", "INSERT INTO `../dims`").foreach { command =>
        val error = intercept[Exception](session.sql(s"$command SELECT * FROM nothing"))
        assert(error.getMessage.contains(NoDataException.condition), command)
      }
      val paths = Plans.execution(session.table("`../dims`")).analyzed.collect {
        case LogicalRelation(fs: HadoopFsRelation, _, _, _, _) => fs.location.rootPaths
      }.flatten
      assert(paths.map(_.getParent.toString) == Seq("/imported-statistics"))
    }
  }

  test("explaining an import, or a view of one, imports nothing") {
    elsewhere { session =>
      val text = literal(file)
      session.sql(s"EXPLAIN SELECT * FROM selinger_import_stats($text)").collect()
      assert(call(session, "selinger_imported_stats").isEmpty)
    }
  }

  test("decisions name the relation and where its numbers come from") {
    elsewhere { session =>
      val _ = imports(session, file)
      val decisions = Plans.decisions(session.sql(queries(2)))
      val imported = decisions.filter(_.reason == Reason.StatisticsImported)
      assert(imported.map(_.node).toSet == Set("Scan facts", "Scan dims", "Scan dupes"))
      assert(decisions.find(_.rule == "reorderJoins").flatMap(_.stock).exists(_.contains("facts")))
    }
  }

  test("the rule's switch and mode off leave imported numbers out") {
    elsewhere { session =>
      val _ = imports(session, file)
      def known = estimate(session.table("facts")).isDefined
      assert(known)
      session.conf.set(UseImportedStatistics.switch, "false")
      assert(!known)
      session.conf.unset(UseImportedStatistics.switch)
      session.conf.set(SelingerConf.MODE.key, "off")
      assert(!known)
    }
  }

  // ---- sessions -----------------------------------------------------------------------------

  test("sessions do not see each other's imports, and forgetting leaves nothing") {
    val text = withConf(noSamples) {
      Tables.register(spark)
      exported("facts", "dims", """{"names": ["facts", "lake.dims"]}""")
    }
    elsewhere { session =>
      val other = session.newSession()
      assert(imports(session, text) == Seq("facts", "lake.dims"))
      assert(!other.catalog.tableExists("facts"))
      assert(intercept[AnalysisException](other.table("lake.dims")).getMessage.contains("lake"))
      assert(call(other, "selinger_imported_stats").isEmpty)
      def listed = call(session, "selinger_imported_stats").collect().map(_.getString(0)).toSeq
      assert(listed == Seq("facts", "lake.dims"))
      val one = call(session, "selinger_forget_imported", "LAKE.dims").collect()
      assert(one.map(_.getString(0)).toSeq == Seq("lake.dims") && listed == Seq("facts"))
      assert(call(session, "selinger_forget_imported").count() == 1)
      assert(listed.isEmpty && !session.catalog.tableExists("facts"))
      assert(UseImportedStatistics.forSession(session) == UseImportedStatistics.forSession(other))
    }
  }

  test("a relation that a query reads twice is the same relation") {
    val text = withConf(noSamples) {
      Tables.register(spark)
      exported("facts", "dims", """{"names": ["lake.facts", "dims"]}""")
    }
    elsewhere { session =>
      val _ = imports(session, text)
      Seq("lake.facts", "dims").foreach { name =>
        val union = session.sql(
          s"SELECT k, count(*) FROM $name GROUP BY k UNION ALL SELECT k, count(*) FROM $name GROUP BY k"
        )
        val parts = Plans.execution(union).optimizedPlan.children
        assert(parts.size == 2 && parts.head.sameResult(parts.last), name)
      }
    }
  }

  test("names of several parts: qualified columns, subqueries, and common table expressions") {
    val text = withConf(noSamples) {
      Tables.register(spark)
      exported("facts", "dims", """{"names": ["prod.lake.facts", "lake.dims"]}""")
    }
    elsewhere { session =>
      val _ = imports(session, text)
      val df = session.sql(
        """WITH dims AS (SELECT 1 AS one)
          |SELECT facts.id, lake.dims.k, (SELECT max(one) FROM dims)
          |FROM prod.lake.facts JOIN lake.dims ON facts.k = dims.k
          |WHERE facts.k IN (SELECT k FROM Lake.Dims)""".stripMargin
      )
      assert(df.columns.length == 3)
      assert(Plans.decisions(df).count(_.reason == Reason.StatisticsImported) >= 2)
      assert(intercept[AnalysisException](session.table("lake.other")).getMessage.nonEmpty)
    }
  }

  // ---- tables with data ---------------------------------------------------------------------

  private def inFolder(session: SparkSession, folder: Path): Unit = {
    val path = folder.resolve("numbers").toString
    session.range(0, 500, 1, 2).selectExpr("id", "id % 5 AS k").write.parquet(path)
    session.read.parquet(path).createOrReplaceTempView("numbers")
  }

  test("a table with data is an error, and nothing else is registered") {
    withFolder { folder =>
      inFolder(spark, folder)
      val text = exported("numbers", "numbers", """{"names": ["numbers", "others"]}""")
      val message = refused(imports(spark, text))
      assert(message.contains("numbers") && message.contains("override"))
      assert(!spark.catalog.tableExists("others"))
      assert(imports(spark, text, """{"tables": ["others"]}""") == Seq("others"))
      spark.sql("SELECT * FROM selinger_forget_imported()").collect()
      val _ = spark.catalog.dropTempView("numbers")
    }
  }

  test("override plans a table by the file's numbers, and still reads its rows") {
    withFolder { folder =>
      elsewhere { session =>
        inFolder(session, folder)
        val text = call(session, "selinger_export_stats", "numbers").head().getString(0)
        val size = Plans.execution(session.table("numbers")).optimizedPlan.stats.sizeInBytes
        val df =
          call(session, "selinger_import_stats", text, """{"scale": 100, "override": true}""")
        assert(df.head().getString(3) == "override")
        def rows = estimate(session.table("numbers")).map(_.rows.value)
        assert(rows.contains(50000.0))
        // By its path as well.
        val path = folder.resolve("numbers").toString
        assert(estimate(session.read.parquet(path)).map(_.rows.value).contains(50000.0))
        assert(session.table("numbers").count() == 500)
        assert(Plans.execution(session.table("numbers")).optimizedPlan.stats.sizeInBytes == size)
        session.conf.set(SelingerConf.MODE.key, "off")
        assert(estimate(session.table("numbers")).isEmpty)
        session.conf.unset(SelingerConf.MODE.key)
        assert(call(session, "selinger_forget_imported", "numbers").count() == 1)
        assert(rows.contains(500.0) && session.table("numbers").count() == 500)
      }
    }
  }

  test("override of a managed table, also after partitions were pruned") {
    elsewhere { session =>
      session.sql("CREATE TABLE sold (id BIGINT, part INT) USING parquet PARTITIONED BY (part)")
      try {
        session.sql("INSERT INTO sold SELECT id, id % 4 FROM range(400)")
        val text = call(session, "selinger_export_stats", "default.sold").head().getString(0)
        val relation = StatisticsFile.parse(text).head
        assert(relation.name == "default.sold" && relation.rows.map(_.value).contains(400.0))
        assert(relation.columns("part").distinct.map(_.value).contains(4.0))
        assert(relation.bytes < 1e6 && relation.files.exists(_ >= 4))
        val _ = call(session, "selinger_import_stats", text, """{"scale": 10, "override": true}""")
          .collect()
        val found = estimate(session.sql("SELECT * FROM sold WHERE part = 1")).get
        assert(math.abs(found.rows.value - 1000) < 1)
        assert(session.sql("SELECT * FROM sold WHERE part = 1").count() == 100)
      } finally { val _ = session.sql("DROP TABLE sold") }
    }
  }

  test("override refuses another table of the same name, and what is no table of files") {
    withFolder { folder =>
      elsewhere { session =>
        inFolder(session, folder)
        val text = call(session, "selinger_export_stats", "numbers").head().getString(0)
        val options = """{"override": true}"""
        session.range(3).selectExpr("id", "string(id) AS k").createOrReplaceTempView("numbers")
        assert(refused(imports(session, text, options)).contains("view of a query"))
        Seq(
          "id, string(k) AS k" -> "k STRING here",
          "id" -> "no column k"
        ).foreach { case (columns, what) =>
          val path = folder.resolve(s"as-${what.hashCode}").toString
          val source = session.read.parquet(folder.resolve("numbers").toString)
          source.selectExpr(columns.split(", ").toSeq: _*).write.parquet(path)
          session.read.parquet(path).createOrReplaceTempView("numbers")
          assert(refused(imports(session, text, options)).contains(what))
        }
        session.range(3).createOrReplaceTempView("numbers")
        assert(refused(imports(session, text, options)).contains("numbers"))
        assert(call(session, "selinger_imported_stats").isEmpty)
      }
    }
  }

  // ---- what is wrong ------------------------------------------------------------------------

  test("a damaged file, or wrong options, register nothing") {
    elsewhere { session =>
      Seq(
        () => imports(session, file.dropRight(100)),
        () => imports(session, """{"format": "selinger-statistics", "version": 99}"""),
        () => imports(session, "{}"),
        () => imports(session, "/no/such/file.json"),
        () => imports(session, file, """{"scale": 0}"""),
        () => imports(session, file, """{"scale": -2}"""),
        () => imports(session, file, """{"scale": "NaN"}"""),
        () => imports(session, file, """{"scale": {"nowhere": 2}}"""),
        () => imports(session, file, """{"scale": {"facts": 0}}"""),
        () => imports(session, file, """{"tables": ["nowhere"]}"""),
        () => imports(session, file, """{"tables": "facts"}"""),
        () => imports(session, file, """{"speed": 1}"""),
        () => imports(session, file, """{"""),
        () => call(session, "selinger_import_stats").collect(),
        () => call(session, "selinger_export_stats").collect(),
        () => call(session, "selinger_export_stats", "no_such_table").collect(),
        () => session.sql("SELECT * FROM selinger_import_stats(1, array(2))").collect()
      ).foreach { attempt =>
        assert(refused(attempt()).nonEmpty)
        assert(call(session, "selinger_imported_stats").isEmpty)
        assert(!session.catalog.tableExists("facts"))
      }
    }
  }

  test("a view of a query has no statistics of its own") {
    Tables.register(spark)
    spark.sql("SELECT k FROM facts WHERE id > 3").createOrReplaceTempView("some_facts")
    try assert(refused(exported("some_facts")).contains("name its tables"))
    finally { val _ = spark.catalog.dropTempView("some_facts") }
  }

  test("the file is written by Spark where one is named, and replaced whole") {
    Tables.register(spark)
    withFolder { folder =>
      val target = folder.resolve("stats.json")
      Files.writeString(target, "before")
      val text = exported("dims", s"""{"file": "${target.toUri}"}""")
      assert(Files.readString(target) == text)
      assert(intercept[Exception](exported("dims", s"""{"file": "$target/x/y.json"}""")) != null)
      assert(Files.readString(target) == text)
      val left = folder.toFile.list().filterNot(_.endsWith(".crc"))
      assert(left.toSeq == Seq("stats.json"))
      elsewhere(session => assert(imports(session, target.toUri.toString) == Seq("dims")))
    }
  }

  test("tables of which only a size is known") {
    withFolder { folder =>
      val path = folder.resolve("plain").toString
      spark.range(10).write.csv(path)
      spark.read.csv(path).createOrReplaceTempView("plain")
      val text = exported("plain")
      val found = StatisticsFile.parse(text).head
      assert(found.rows.isEmpty && found.format == "csv" && found.bytes > 0)
      val _ = spark.catalog.dropTempView("plain")
      elsewhere { session =>
        assert(imports(session, text) == Seq("plain"))
        assert(estimate(session.table("plain")).isEmpty)
      }
    }
  }

  test("sampling that is switched off by its budget stays off; mode off exports all the same") {
    withFolder { folder =>
      val path = folder.resolve("skewed").toString
      spark.range(9000).selectExpr("if(id % 3 = 0, id, -1) AS k").write.parquet(path)
      withConf(SelingerConf.SAMPLING_BUDGET_MS.key -> "0", SelingerConf.MODE.key -> "off") {
        val found = StatisticsFile.parse(exported(path)).head
        assert(found.rows.map(_.value).contains(9000.0))
        assert(found.columns("k").frequent.isEmpty)
      }
      val sampled = StatisticsFile.parse(exported(path)).head.columns("k").frequent
      assert(sampled.map(_.value) == Seq(-1L) && math.abs(sampled.head.share - 2.0 / 3) < 0.05)
    }
  }

  test("a plan of an imported relation keeps no session alive in what is registered") {
    elsewhere { session =>
      val _ = imports(session, file)
      val leaf = Plans.execution(session.table("facts")).optimizedPlan.collectFirst {
        case relation: LogicalRelation => relation
      }
      assert(leaf.flatMap(UseImportedStatistics.unapply).exists(_.inputFiles.isEmpty))
      val fields =
        classOf[io.selinger.stats.imported.ImportedFileIndex].getDeclaredFields.map(_.getType)
      assert(!fields.exists(classOf[org.apache.spark.sql.SparkSession].isAssignableFrom))
    }
  }
}
