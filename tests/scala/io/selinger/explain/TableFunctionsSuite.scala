package io.selinger.explain

import io.selinger.{Registry, SelingerExtension}
import io.selinger.conf.SelingerConf
import io.selinger.core.{BuildInfo, BuiltFor}
import io.selinger.strategy.SelectJoinOperator
import io.selinger.testing.SharedSession
import org.apache.spark.SPARK_VERSION
import org.apache.spark.sql.{AnalysisException, SparkSessionExtensions}
import org.apache.spark.sql.classic.SparkSession
import org.apache.spark.sql.types._
import org.scalatest.funsuite.AnyFunSuite

/** What Selinger says of itself in SQL, and the extension that makes it say so. */
class TableFunctionsSuite extends AnyFunSuite with SharedSession {

  private def status(session: SparkSession = spark): Map[String, String] =
    session.sql("SELECT * FROM selinger_status()").collect().map(row =>
      row.getString(0) -> row.getString(1)
    ).toMap

  private def schema(function: String): Seq[(String, DataType)] =
    spark.sql(s"SELECT * FROM $function()").schema.map(field => field.name -> field.dataType)

  test("selinger_status: what this is and that it works") {
    assert(schema("selinger_status") == Seq("key" -> StringType, "value" -> StringType))
    assert(
      status() == Map(
        "version" -> BuildInfo.version,
        "spark_version" -> SPARK_VERSION,
        "built_for" -> BuildInfo.sparkLine,
        "active" -> "true",
        "reason" -> "",
        "mode" -> "on",
        "explain_provider" -> "true",
        "unknown_settings" -> ""
      )
    )
  }

  test("selinger_status: mistyped settings, each with the one that was probably meant") {
    withConf("spark.selinger.join.broadcastMaxByte" -> "1m", "spark.selinger.xyz" -> "1") {
      assert(
        status()("unknown_settings") ==
          "spark.selinger.join.broadcastMaxByte (did you mean " +
          "spark.selinger.join.broadcastMaxBytes?), spark.selinger.xyz"
      )
    }
  }

  test("selinger_status: follows the mode and the explain provider") {
    withConf(SelingerConf.MODE.key -> "advise") {
      assert(status()("mode") == "advise" && status()("active") == "true")
    }
    withConf(SelingerConf.MODE.key -> "off") {
      assert(status()("active") == "false" && status()("reason").contains(SelingerConf.MODE.key))
    }
    withConf("spark.sql.extendedExplainProviders" -> "") {
      assert(status()("explain_provider") == "false")
    }
  }

  test("selinger_rules: every rule with its switch") {
    assert(
      schema("selinger_rules") == Seq(
        "rule" -> StringType,
        "kind" -> StringType,
        "hook" -> StringType,
        "enabled" -> BooleanType,
        "setting" -> StringType,
        "description" -> StringType,
        "calls" -> LongType,
        "fired" -> LongType,
        "ms" -> DoubleType
      )
    )
    def enabled = spark.sql("SELECT rule, enabled FROM selinger_rules()").collect().map(r =>
      r.getString(0) -> r.getBoolean(1)
    ).toMap
    assert(enabled == Registry.all.rules.map(rule =>
      rule.id -> rule.onByDefault
    ).toMap)
    withConf(SelectJoinOperator.switch -> "false") {
      assert(!enabled("selectJoinOperator") && enabled("readFooterStatistics"))
    }
  }

  test("selinger_rules: how often each was called and fired in this session, and its time") {
    def activity(session: SparkSession): Map[String, (Long, Long, Double)] =
      session
        .sql("SELECT rule, calls, fired, ms FROM selinger_rules()")
        .collect()
        .map(row => row.getString(0) -> ((row.getLong(1), row.getLong(2), row.getDouble(3))))
        .toMap
    withSession(new SelingerExtension) { session =>
      assert(activity(session).values.forall(_ == ((0L, 0L, 0.0))))
      session.sql("SELECT * FROM range(9) a JOIN range(9) b ON a.id = b.id").collect()
      val (calls, _, ms) = activity(session)("selectJoinOperator")
      assert(calls > 0 && ms > 0)
      session.conf.set(SelectJoinOperator.switch, "false")
      session.sql("SELECT * FROM range(9) a JOIN range(8) b ON a.id = b.id").collect()
      assert(activity(session)("selectJoinOperator")._1 == calls)
    }
    withSession(new SelingerExtension)(other =>
      assert(activity(other)("selectJoinOperator")._1 == 0)
    )
  }

  test("selinger_settings: every setting with this session's value") {
    assert(
      schema("selinger_settings") ==
        Seq("key", "value", "default", "category", "unit", "description").map(_ -> StringType)
    )
    assert(spark.sql(
      "SELECT key FROM selinger_settings()"
    ).collect().map(_.getString(0)).toSeq == Registry.all.settings.map(_.key))
    withConf(SelingerConf.CBO_WEIGHT.key -> "0.25") {
      val row = spark.sql(
        s"SELECT value, default FROM selinger_settings() WHERE key = '${SelingerConf.CBO_WEIGHT.key}'"
      ).head()
      assert(row.getString(0) == "0.25" && row.getString(1) == SelingerConf.CBO_WEIGHT.default)
    }
  }

  test("they are tables like others: joined, filtered, aggregated") {
    val found = spark.sql(
      "SELECT count(*) FROM selinger_rules() r JOIN selinger_settings() s ON r.setting = s.key WHERE r.enabled"
    )
    assert(
      found.head().getLong(0) == Registry.all.rules.count(_.onByDefault)
    )
  }

  Seq("selinger_status", "selinger_rules", "selinger_settings").foreach { function =>
    test(s"$function refuses arguments and says how to call it") {
      val error = intercept[Exception](spark.sql(s"SELECT * FROM $function(1)"))
      assert(error.getMessage.contains(s"SELECT * FROM $function()"))
    }
  }

  // ---- the extension ------------------------------------------------------------------------

  test("Spark can make the extension and the explain provider from their names") {
    Seq(classOf[SelingerExtension], classOf[SelingerExplain]).foreach { known =>
      assert(Class.forName(known.getName).getConstructor().newInstance() != null)
    }
  }

  test("a jar works on its own Spark line, whatever the patch version") {
    val line = BuildInfo.sparkLine
    Seq(s"$line.0", s"$line.17", s"$line.0-SNAPSHOT", s"$line.1.vendor.3").foreach { version =>
      assert(BuiltFor.unsupported(version).isEmpty, version)
    }
  }

  test("a jar does not work on another line, and says which jar to take") {
    Seq("3.5.9", "4.0.5", s"${BuildInfo.sparkLine}0.1", "5.0.0").foreach { version =>
      val reason = BuiltFor.unsupported(version)
      assert(reason.exists(_.contains(version)), version)
      assert(
        reason.exists(_.contains(s"selinger-spark-${version.split('.').take(2).mkString(".")}.jar"))
      )
    }
  }

  test("where the extension is not active only selinger_status exists, and queries run") {
    val inactive: SparkSessionExtensions => Unit =
      _.injectTableFunction(TableFunctions.status(Some("the reason"), Nil).description)
    withSession(inactive) { session =>
      val found = status(session)
      assert(
        found("active") == "false" && found("reason") == "the reason" && found("mode") == "off"
      )
      intercept[AnalysisException](session.sql("SELECT * FROM selinger_rules()").collect())
      assert(session.sql("SELECT 1 FROM range(3) a JOIN range(2) b ON a.id = b.id").count() == 2)
    }
  }
}
