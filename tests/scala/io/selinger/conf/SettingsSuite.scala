package io.selinger.conf

import io.selinger.Registry
import io.selinger.core.Mode
import io.selinger.rule.ShareEstimates
import io.selinger.testing.{LoggedWarnings, SharedSession}
import org.scalatest.funsuite.AnyFunSuite

class SettingsSuite extends AnyFunSuite with SharedSession {
  import SelingerConf.{all => _, _}

  private val rules = Registry.all.rules
  private val all = Registry.all.settings

  private val units = Set("bytes", "ms", "share", "factor", "count", "flag", "path", "choice")

  test("a mistyped key is logged once, with the setting that was probably meant") {
    val unknown = new UnknownSettings(all.map(_.key))
    assert(unknown.nearest("spark.selinger.mod").contains(MODE.key))
    assert(unknown.nearest("spark.selinger.failonerror").contains(FAIL_ON_ERROR.key))
    assert(unknown.nearest("spark.selinger.qqqqqqqqqqqq").isEmpty)
    assert(unknown.described.isEmpty)
    val logged = LoggedWarnings.during {
      withConf("spark.selinger.mdoe" -> "off") {
        spark.range(1).collect()
        spark.range(1).collect()
      }
      spark.sql("SET spark.selinger.modes = off").collect()
      spark.conf.unset("spark.selinger.modes")
      spark.sql("SET spark.selinger.mode").collect()
    }
    assert(
      logged.filter(_.contains("has no setting")) == Seq("mdoe", "modes").map(name =>
        s"Selinger has no setting spark.selinger.$name (did you mean ${MODE.key}?). " +
          "It does nothing."
      )
    )
  }

  test("defaults: on, silent about its own errors, explained for people, rules switched on") {
    assert(MODE.default == "on")
    assert(FAIL_ON_ERROR.default == "false")
    assert(EXPLAIN_FORMAT.default == "text")
    rules.foreach { rule =>
      val expected = rule.onByDefault.toString
      assert(all.find(_.key == rule.switch).exists(_.default == expected))
    }
    assert(rules.filterNot(_.onByDefault) == Seq(ShareEstimates))
  }

  test("every default is a value that the setting accepts") {
    all.foreach { setting =>
      withConf(setting.key -> setting.default)(assert(setting.text == setting.default))
    }
  }

  test("every setting of the object is in `all`, once") {
    val declared = SelingerConf.getClass.getMethods
      .filter(method =>
        method.getReturnType == classOf[Setting[_]] && method.getParameterCount == 0
      )
      .map(_.invoke(SelingerConf).asInstanceOf[Setting[_]].key)
    assert((declared ++ rules.map(_.switch)).toSet == all.map(_.key).toSet)
    assert(all.map(_.key).distinct.size == all.size)
  }

  test("keys are spark.selinger.<area>.<camelCase>; each has a unit, a category and a sentence") {
    all.foreach { setting =>
      assert(setting.key.matches("spark\\.selinger(\\.[a-z][a-zA-Z0-9]*){1,3}"), setting.key)
      assert(units.contains(setting.unit), setting.key)
      assert(setting.category.nonEmpty, setting.key)
      assert(setting.doc.endsWith("."), setting.key)
    }
  }

  test("the unit is in the name of bytes, times and shares") {
    all.filter(_.unit == "bytes").foreach(setting => assert(setting.key.endsWith("Bytes")))
    all.filter(_.unit == "ms").foreach(setting => assert(setting.key.endsWith("Ms")))
  }

  test("a rule's id is its class name in lowerCamel, and its switch follows from it") {
    rules.foreach { rule =>
      assert(rule.id.matches("[a-z][a-zA-Z]*"))
      assert(rule.switch == s"spark.selinger.${rule.id}.enabled")
    }
  }

  private val refused = Seq(
    "mode" -> "maybe" -> "must be one of on, advise, off",
    "explain.format" -> "xml" -> "must be one of text, json",
    "failOnError" -> "perhaps" -> "boolean",
    "planning.budgetMs" -> "0" -> "must be greater than 0",
    "planning.budgetMs" -> "soon" -> "long",
    "stats.footerMaxFiles" -> "-5" -> "must be greater than 0",
    "stats.footerCacheMaxBytes" -> "-1" -> "must be 0 or greater",
    "join.broadcastMaxBytes" -> "-1" -> "must be 0 or greater",
    "join.broadcastMaxBytes" -> "much" -> "much",
    "join.broadcastTotalShare" -> "0" -> "must be greater than 0 and at most 1",
    "join.hashMemoryShare" -> "1.5" -> "must be greater than 0 and at most 1",
    "join.hashMemoryShare" -> "NaN" -> "must be greater than 0 and at most 1",
    "join.hashMemoryMargin" -> "0.5" -> "must be at least 1",
    "cbo.weight" -> "1.1" -> "must be between 0 and 1",
    "selectJoinOperator.enabled" -> "no!" -> "boolean"
  )

  refused.foreach { case ((name, value), message) =>
    test(s"SET spark.selinger.$name=$value raises and changes nothing") {
      val key = s"spark.selinger.$name"
      val before = spark.conf.getOption(key)
      val error = intercept[IllegalArgumentException](spark.sql(s"SET $key=$value"))
      assert(error.getMessage.contains(key))
      assert(error.getMessage.contains(message))
      intercept[IllegalArgumentException](spark.conf.set(key, value))
      assert(spark.conf.getOption(key) == before)
    }
  }

  test("a refused value leaves the session working") {
    intercept[IllegalArgumentException](spark.sql("SET spark.selinger.mode=maybe"))
    assert(spark.range(3).count() == 3)
  }

  test("values are read at every call") {
    val default = CBO_WEIGHT.value
    withConf(CBO_WEIGHT.key -> "0.2") {
      assert(CBO_WEIGHT.value == 0.2)
      spark.sql(s"SET ${CBO_WEIGHT.key}=0.3")
      assert(CBO_WEIGHT.value == 0.3)
      assert(CBO_WEIGHT.text == "0.3")
    }
    assert(CBO_WEIGHT.value == default)
  }

  test("bytes may be written with a suffix") {
    withConf(BROADCAST_MAX_BYTES.key -> "16m") {
      assert(BROADCAST_MAX_BYTES.value == (16L << 20))
      assert(BROADCAST_MAX_BYTES.text == "16m")
    }
  }

  test("a conf of Spark that is not set has no text, whatever its type") {
    val key = "spark.sql.adaptive.autoBroadcastJoinThreshold"
    assert(textOf(key).isEmpty)
    withConf(key -> "7")(assert(textOf(key).contains("7")))
    assert(textOf("spark.sql.shuffle.partitions").isDefined)
    assert(textOf("spark.sql.noSuchConf").isEmpty)
    assert(textOf(CBO_WEIGHT.key).contains(CBO_WEIGHT.default))
  }

  test("sessions have their own values") {
    withSession(new io.selinger.SelingerExtension) { other =>
      other.conf.set(MODE.key, "off")
      assert(switches.mode == Mode.Off)
    }
    assert(switches.mode == Mode.On)
  }

  test("switches follow mode, rule switches, failOnError and the budget") {
    assert(switches.mode == Mode.On)
    assert(switches.failOnError)
    withConf(MODE.key -> "advise")(assert(switches.mode == Mode.Advise))
    withConf(FAIL_ON_ERROR.key -> "false")(assert(!switches.failOnError))
    withConf(PLANNING_BUDGET_MS.key -> "7")(assert(switches.budgetMs == 7))
    rules.foreach { rule =>
      assert(switches.enabled(rule) == rule.onByDefault)
      withConf(rule.switch -> (!rule.onByDefault).toString) {
        assert(switches.enabled(rule) != rule.onByDefault)
        rules
          .filterNot(_ == rule)
          .foreach(other => assert(switches.enabled(other) == other.onByDefault))
      }
    }
  }
}
