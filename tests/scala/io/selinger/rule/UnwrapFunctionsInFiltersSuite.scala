package io.selinger.rule

import io.selinger.core.{Decision, Outcome, Reason}
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import java.nio.file.Files
import java.time.{Instant, LocalDate, LocalDateTime, ZoneId, ZoneOffset}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import org.apache.spark.sql.execution.FileSourceScanExec
import org.apache.spark.sql.types._
import org.apache.spark.unsafe.types.UTF8String
import org.scalatest.Assertion
import org.scalatest.funsuite.AnyFunSuite
import scala.jdk.CollectionConverters._
import scala.util.Random

/** Ranges instead of functions: where, and that they keep the same rows. */
class UnwrapFunctionsInFiltersSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = UnwrapFunctionsInFilters
  private val ansi = "spark.sql.ansi.enabled" -> "true"
  private val legacy = "spark.sql.ansi.enabled" -> "false"
  private val noFooters = ReadFooterStatistics.switch -> "false"
  private val micros = "spark.sql.parquet.outputTimestampType" -> "TIMESTAMP_MICROS"

  private val firstDay = LocalDate.of(1583, 1, 1).toEpochDay.toInt
  private val lastDay = LocalDate.of(9999, 12, 31).toEpochDay.toInt

  override protected def beforeEach(): Unit = {
    super.beforeEach()
    Tables.register(spark)
  }

  // Footers prove that values are between those of its two rows.
  private lazy val relation: LogicalPlan = withConf(micros) {
    val folder = Files.createTempDirectory("selinger-ranges").resolve("c").toString
    SharedSession.stock.conf.set(micros._1, micros._2)
    SharedSession.stock
      .sql(
        """SELECT date'1583-01-01' AS d, timestamp'1900-01-05 00:00:00' AS t,
          |timestamp_ntz'1900-01-05 00:00:00' AS n, -1000 AS i, -1000L AS l, -1000S AS h, -100Y AS b, 'a' AS s
          |UNION ALL SELECT date'9999-12-31', timestamp'9999-12-30 00:00:00',
          |timestamp_ntz'9999-12-30 00:00:00', 1000, 1000L, 1000S, 100Y, 'b'""".stripMargin
      )
      .write
      .parquet(folder)
    Plans.execution(spark.read.parquet(folder)).analyzed
  }

  private def column(name: String): Attribute = relation.output.find(_.name == name).get

  private def unwrapped(condition: Expression): Expression =
    new UnwrapFunctionsInFilters().apply(Filter(condition, relation)) match {
      case Filter(after, _) => after
      case other => fail(other.toString)
    }

  /** Whether a predicate was changed; fails if it means something else then. */
  private def isUnwrapped(condition: Expression, values: Seq[Any]): Boolean = {
    val after = unwrapped(condition)
    val columns = condition.references.toSeq
    val (bound, boundAfter) =
      (
        BindReferences.bindReference(condition, columns),
        BindReferences.bindReference(after, columns)
      )
    values.foreach { value =>
      val row = InternalRow(value)
      val (expected, found) = (bound.eval(row), boundAfter.eval(row))
      if (expected != found) {
        fail(s"$condition is $expected for $value, and $after is $found; ${Grid.clue}")
      }
    }
    after ne condition
  }

  /** All comparisons of a value with a literal, and their negations. */
  private def comparisons(value: Expression, literal: Expression): Seq[Expression] = {
    val plain = Seq(
      EqualTo(value, literal),
      EqualTo(literal, value),
      LessThan(value, literal),
      LessThan(literal, value),
      LessThanOrEqual(value, literal),
      LessThanOrEqual(literal, value),
      GreaterThan(value, literal),
      GreaterThan(literal, value),
      GreaterThanOrEqual(value, literal),
      GreaterThanOrEqual(literal, value),
      In(value, Seq(literal))
    )
    (plain ++ plain.map(Not(_))) :+ EqualNullSafe(value, literal)
  }

  /** Days at the boundaries of years and months, random ones, the ends of the type, and null. */
  private def days(random: Random): Seq[Any] = {
    val firsts = for {
      year <- Seq(-5000, -1, 0, 1, 1582, 1583, 1584, 1899, 1900, 1999, 2000, 2001, 2024, 2025, 9998,
        9999, 10000)
      month <- Seq(1, 2, 3, 4, 6, 7, 10, 12)
      near <- Seq(-1, 0, 1)
    } yield LocalDate.of(year, month, 1).toEpochDay.toInt + near
    (firsts ++ Seq.fill(200)(random.nextInt(60000) - 20000)).distinct
  }

  private val ends: Seq[Any] =
    Seq(null, Int.MinValue, Int.MinValue + 1, Int.MaxValue, Int.MaxValue - 1)

  private def dateTime(day: LocalDate, zone: ZoneId): Long =
    day.atStartOfDay(zone).toEpochSecond * 1000000L

  test("years of dates: the same for all days, by every comparison") {
    val random = new Random(Grid.seed)
    val values = days(random) ++ ends
    val years = Seq(1583, 1900, 1999, 2000, 2024, 9998)
    val changed = for {
      year <- years
      comparison <- comparisons(Year(column("d")), Literal(year))
    } yield isUnwrapped(comparison, values)
    assert(changed.forall(identity))
    // Boundaries that cannot be written.
    for {
      year <- Seq(Int.MinValue, -1, 0, 1, 1582, 9999, 10000, 300000, 5881580, Int.MaxValue)
      comparison <- comparisons(Year(column("d")), Literal(year))
    } isUnwrapped(comparison, values)
  }

  test("parts of a known year and month: the same for all days") {
    val random = new Random(Grid.seed)
    val values = days(random) ++ ends
    val d = column("d")
    def parts(of: Expression => Expression, numbers: Seq[Int]) =
      numbers.flatMap(number => comparisons(of(d), Literal(number))) :+
        In(of(d), numbers.map(Literal(_)))
    val year = EqualTo(Year(d), Literal(2024))
    val month = EqualTo(Month(d), Literal(2))
    val ofYear = parts(Month(_), Seq(-1, 0, 1, 2, 7, 12, 13, Int.MaxValue)) ++
      parts(Quarter(_), Seq(0, 1, 2, 4, 5))
    val changed = ofYear.map(part => isUnwrapped(And(part, year), values)) ++
      ofYear.map(part => isUnwrapped(Not(And(year, Or(part, month))), values)) ++
      parts(DayOfMonth(_), Seq(0, 1, 28, 29, 30, 31, 32)).map(part =>
        isUnwrapped(And(And(year, month), part), values)
      )
    assert(changed.count(identity) > changed.size / 2)
    assert(unwrapped(And(year, month)).toString.matches(
      "\\(\\(d#\\d+ >= 2024-02-01\\) AND \\(d#\\d+ < 2024-03-01\\)\\)"
    ))
    // A month alone is no range.
    assert(!isUnwrapped(month, values))
  }

  test("trunc, date_add, date_sub and datediff: the same for all days that footers allow") {
    val random = new Random(Grid.seed)
    val values = days(random).filter {
      case day: Int => day >= firstDay && day <= lastDay
      case _ => false
    } :+ null
    val d = column("d")
    def date(text: String) = Literal(LocalDate.parse(text).toEpochDay.toInt, DateType)
    val dates = Seq("1999-12-31", "2000-01-01", "2000-01-03", "2024-02-29", "2024-04-01").map(date)
    val functions =
      Seq("year", "QUARTER", "month", "mm", "week").map(unit => TruncDate(d, Literal(unit))) ++
        Seq(-400, -1, 0, 30).flatMap(n => Seq(DateAdd(d, Literal(n)), DateSub(d, Literal(n))))
    val changed = for {
      function <- functions
      literal <- dates
      comparison <- comparisons(function, literal)
    } yield isUnwrapped(comparison, values)
    assert(changed.count(identity) > changed.size / 2)
    val differences = for {
      function <- Seq(DateDiff(d, date("2024-02-29")), DateDiff(date("2024-02-29"), d))
      n <- Seq(-1000, 0, 7)
      comparison <- comparisons(function, Literal(n))
    } yield isUnwrapped(comparison, values)
    assert(differences.forall(identity))
    assert(!isUnwrapped(EqualTo(TruncDate(d, Literal("day")), dates.head), values))
    // Without footers, sums wrap around.
    withConf(noFooters) {
      val all = days(random) ++ ends
      val around = for {
        function <- Seq(DateAdd(d, Literal(30)), DateSub(d, Literal(30)), DateDiff(d, dates(1)))
        literal <-
          if (function.dataType == DateType) dates else Seq(Literal(7), Literal(Int.MaxValue))
        comparison <- comparisons(function, literal)
      } yield isUnwrapped(comparison, all)
      assert(around.contains(true))
    }
  }

  test("whole numbers: the same for all numbers, also where sums wrap around") {
    for {
      mode <- Seq(ansi, legacy)
      footers <- Seq(true, false)
    } withConf(Seq(mode) ++ (if (footers) Nil else Seq(noFooters)): _*) {
      val random = new Random(Grid.seed)
      val changed = for {
        (name, kind) <- Seq("i" -> IntegerType, "l" -> LongType, "h" -> ShortType, "b" -> ByteType)
        all = CountedType.domain(kind).get
        number = (value: BigInt) => Cast(Literal(Decimal(value.bigInteger)), kind).eval()
        near = (Seq.fill(10)(BigInt(random.nextInt(201) - 100)) ++ (-5 to 5).map(BigInt(_)))
          .filter(value => all.contains(ValueRange(value, value)))
        // Under ANSI mode these may raise errors.
        far = if (footers || mode == ansi) Nil
        else (0 to 12).flatMap(n => Seq(all.low + n, all.high - n))
        values = (near ++ far).map(number) :+ null
        n <- Seq(BigInt(-7), BigInt(0), BigInt(3), all.high, all.low + 1)
        literal = Literal(number(n), kind)
        function <- Seq(
          Add(column(name), literal),
          Add(literal, column(name)),
          Subtract(column(name), literal),
          Subtract(literal, column(name)),
          Multiply(column(name), literal)
        ) ++ (if (kind == LongType || kind == IntegerType) Nil
              else Seq(Add(Cast(column(name), IntegerType), Literal(5))))
        compared <-
          Seq(BigInt(-9), BigInt(0), BigInt(12), all.low, all.low + 2, all.high, all.high - 2)
        comparison <- comparisons(
          function,
          if (function.dataType == kind) Literal(number(compared), kind)
          else Literal(compared.toInt.max(-99999).min(99999))
        )
        if Grid.isWhole || random.nextInt(4) == 0
        // What raises an error for these values is not changed.
        safe = values.filter(value =>
          scala.util.Try(BindReferences.bindReference(
            function: Expression,
            function.references.toSeq
          ).eval(InternalRow(value))).isSuccess
        )
      } yield isUnwrapped(comparison, safe)
      info(s"$mode, footers $footers: ${changed.count(identity)} of ${changed.size} are unwrapped")
      assert(changed.contains(true))
    }
  }

  private val zones = Seq(
    "UTC",
    "Europe/Berlin",
    "America/Sao_Paulo",
    "America/Havana",
    "America/St_Johns",
    "Asia/Beirut",
    "Asia/Kathmandu",
    "Asia/Tehran",
    "Pacific/Apia",
    "Pacific/Kwajalein",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "Antarctica/Troll",
    "America/New_York",
    "+05:30"
  )

  /** Instants at which the clock of a zone changes, from 1901 to 2037. */
  private def changesOf(zone: ZoneId): Seq[Instant] = {
    val from = LocalDateTime.of(1901, 1, 1, 0, 0).toInstant(ZoneOffset.UTC)
    Iterator
      .iterate(Option(zone.getRules.nextTransition(from)))(
        _.flatMap(last => Option(zone.getRules.nextTransition(last.getInstant)))
      )
      .takeWhile(_.exists(_.getInstant.isBefore(Instant.parse("2038-01-01T00:00:00Z"))))
      .flatten
      .map(_.getInstant)
      .toSeq
  }

  test("times: the same for instants around all changes of the clock") {
    val random = new Random(Grid.seed)
    val t = column("t")
    val hour = 3600000000L
    zones.foreach { id =>
      val zone = ZoneId.of(id)
      val day = Cast(t, DateType, Some(id))
      val changes = changesOf(zone)
      val chosen = Grid.part(changes, math.min(1.0, 5.0 / (changes.size + 1)), id) :+
        Instant.parse("2019-12-31T23:00:00Z")
      val changed = chosen.flatMap { change =>
        val at = change.getEpochSecond * 1000000L
        val date = LocalDate.ofInstant(change, zone)
        val around = Seq(date.minusDays(1), date, date.plusDays(1))
        val midnights =
          around.map(dateTime(_, zone)) :+ dateTime(LocalDate.of(date.getYear, 1, 1), zone)
        val values: Seq[Any] = null +: (midnights :+ at).flatMap { base =>
          Seq(0L, 1L, -1L, hour, -hour, 1800000000L, -1800000000L, 60000000L, -60000000L, 24 * hour)
            .map(base + _) ++ Seq.fill(12)(
            base + (random.nextDouble() * 60 * hour).toLong - 30 * hour
          )
        }
        val dates = around.map(each => Literal(each.toEpochDay.toInt, DateType))
        val truncated = for {
          unit <- Seq("hour", "DAY", "week", "month", "quarter", "year")
          function = TruncTimestamp(Literal(unit), t, Some(id))
          value = BindReferences.bindReference(function: Expression, Seq(t)).eval(
            InternalRow(at + random.nextInt(7) * hour - 3 * hour)
          )
          literal <- Seq(Literal(value, TimestampType), Literal(at, TimestampType))
          comparison <- comparisons(function, literal)
        } yield comparison
        val tests = comparisons(Year(day), Literal(date.getYear)) ++
          dates.map(each => In(day, Seq(each, dates.head))) ++
          dates.flatMap(comparisons(day, _)) ++ truncated :+
          And(
            EqualTo(Year(day), Literal(date.getYear)),
            EqualTo(Month(day), Literal(date.getMonthValue))
          )
        tests.map(isUnwrapped(_, values))
      }
      info(s"$id: ${changed.count(identity)} of ${changed.size} are unwrapped")
      assert(changed.count(identity) > changed.size / 3, id)
    }
  }

  test("local times as instants: for each zone there is, and all changes of its clock") {
    val ids = Grid.part(ZoneId.getAvailableZoneIds.asScala.toSeq.sorted, share = 0.04, "zones")
    var ranges = 0
    for {
      zone <- ids.map(ZoneId.of)
      change <- changesOf(zone)
      day <- Seq(-1L, 0L, 1L).map(LocalDate.ofInstant(change, zone).plusDays(_))
    } {
      val local = day.atStartOfDay
      def isFrom(second: Long) =
        !LocalDateTime.ofInstant(Instant.ofEpochSecond(second), zone).isBefore(local)
      // Every five minutes, and every second beside it.
      val base = local.toEpochSecond(ZoneOffset.UTC)
      val around = (base - 180000L to base + 180000L by 300L) ++
        (-2L to 2L).map(change.getEpochSecond + _)
      LocalTimes.firstFrom(local, zone) match {
        case Some(first) =>
          ranges += 1
          val second = (first / 1000000).toLong
          (around ++ Seq(second - 1, second, second + 1)).foreach { each =>
            assert(isFrom(each) == each >= second, s"$zone, $local, $each")
          }
        case None =>
          val sorted = around.sorted.map(isFrom)
          assert(
            sorted.sliding(2).count(pair => pair(0) != pair(1)) > 1,
            s"$zone, $local is one range"
          )
      }
    }
    assert(ranges > 1000)
  }

  test("dates as timestamps, and times without a zone: the same for all days") {
    val random = new Random(Grid.seed)
    val (d, n) = (column("d"), column("n"))
    val values = days(random).filter {
      case day: Int => day >= firstDay && day <= lastDay
      case _ => false
    } :+ null
    val changed = for {
      id <- zones
      unit <- Seq("month", "week", "year")
      date <- Seq("2000-01-01", "2011-12-30", "2011-12-31", "2024-02-12")
      literal = Literal(dateTime(LocalDate.parse(date), ZoneId.of(id)), TimestampType)
      function = TruncTimestamp(Literal(unit), Cast(d, TimestampType, Some(id)), Some(id))
      comparison <- comparisons(function, literal)
    } yield isUnwrapped(comparison, values)
    assert(changed.count(identity) > changed.size / 3)
    val times = values.map {
      case day: Int => day * 86400000000L + random.nextInt(3) - 1
      case other => other
    }
    val years = for {
      year <- Seq(1901, 2000, 9998)
      comparison <- comparisons(Year(Cast(n, DateType, Some("America/Havana"))), Literal(year))
    } yield isUnwrapped(comparison, times ++ Seq(Long.MaxValue, Long.MinValue))
    assert(years.forall(identity))
  }

  test("prefixes: the same for all texts, valid or not") {
    val random = new Random(Grid.seed)
    val s = column("s")
    val letters = Seq("a", "b", "ä", "é", "日", "😀", "", "%", "\u0000")
    val texts =
      Seq.fill(300)(Seq.fill(random.nextInt(5))(letters(random.nextInt(letters.size))).mkString)
        .map(UTF8String.fromString)
    val broken = Seq.fill(300)(UTF8String.fromBytes(
      Array.fill(random.nextInt(5))((Seq(
        0xe4, 0x61, 0x80, 0xf0, 0xff, 0xc3, 0xa4, 0x62
      )(random.nextInt(8))).toByte)
    ))
    val values: Seq[Any] = null +: (texts ++ broken)
    val changed = for {
      n <- 1 to 3
      text <- Seq("", "a", "ä", "ab", "日b", "aäb", "😀😀", "abab") ++ texts.take(20).map(_.toString)
      comparison <- comparisons(Substring(s, Literal(1), Literal(n)), Literal(text))
    } yield isUnwrapped(comparison, values)
    assert(changed.count(identity) > changed.size / 2)
    Seq((0, 2), (-2, 2), (2, 1), (1, 0), (1, -1)).foreach { case (from, n) =>
      val value = Substring(s, Literal(from), Literal(n))
      assert(!isUnwrapped(EqualTo(value, Literal("a")), values))
    }
    val invalid = Literal(UTF8String.fromBytes(Array(0xe4.toByte)), StringType)
    assert(!isUnwrapped(EqualTo(Substring(s, Literal(1), Literal(1)), invalid), values))
  }

  private def decisions(df: DataFrame): Seq[Decision] = Plans.decisions(df, rule.id)

  private def condition(df: DataFrame): String =
    Plans.execution(df).optimizedPlan.collect { case Filter(condition, _) =>
      condition.toString.replaceAll("#\\d+L?", "")
    }.mkString("; ")

  private def assertFires(text: String, parts: String*): Unit =
    for ((adaptive, mode) <- Seq("true" -> ansi, "false" -> legacy)) {
      val modes = Seq("spark.sql.adaptive.enabled" -> adaptive, mode)
      val expected = stockAnswer(modes: _*)(spark.sql(text))
      withConf(modes: _*) {
        val df = spark.sql(text)
        parts.foreach(part => assert(condition(df).contains(part)))
        assert(decisions(df).map(_.reason).contains(rule.FunctionUnwrapped))
        Answer.difference(expected, Answer.of(df)).foreach(found => fail(s"$text: $found"))
      }
    }

  private def assertDeclines(text: String, reason: Reason, settings: (String, String)*): Assertion =
    withConf(settings: _*) {
      val df = spark.sql(text)
      val stock = withConf("spark.selinger.mode" -> "off")(condition(spark.sql(text)))
      assert(condition(df) == stock)
      assert(decisions(df).map(_.reason) == Seq(reason))
    }

  private def assertSilent(text: String): Assertion = {
    val df = spark.sql(text)
    assert(condition(df) == withConf("spark.selinger.mode" -> "off")(condition(spark.sql(text))))
    assert(decisions(df).isEmpty)
  }

  test("fires on conditions that are written apart, below OR and NOT, and in subqueries") {
    assertFires(
      "SELECT id FROM (SELECT * FROM facts WHERE year(day) = 2000) WHERE month(day) = 1",
      "(day >= 2000-01-01) AND (day < 2000-02-01)"
    )
    assertFires("SELECT id FROM facts WHERE flag OR NOT (year(at) = 1971)", "at < 1971-01-01")
    assertFires("SELECT id FROM dims WHERE k IN (SELECT k FROM facts WHERE year(day) = 2000)")
    // The projection at the root goes where IN becomes a join.
    assertFires("SELECT id FROM facts WHERE k IN (SELECT k FROM dims) AND year(day) = 2000")
    assertFires("SELECT (SELECT max(k) FROM facts WHERE year(day) = 2000), id FROM dims")
    assertFires(
      "WITH c AS (SELECT * FROM facts WHERE left(s, 1) = 'b') SELECT a.id FROM c a JOIN c b ON a.id = b.id"
    )
    assertFires("SELECT a.id FROM facts a JOIN dims b ON a.k = b.k AND year(b.day) = 2000")
    assertFires("SELECT id FROM facts WHERE year(day) IN (1999, 2000) AND day > date'1999-12-24'")
  }

  test("fires on whole numbers of which footers prove that no sum exceeds the type") {
    assertFires("SELECT id FROM facts WHERE k + 1 > 100", "(k >= 100)")
    assertFires("SELECT id FROM facts WHERE big * 2 - 7 = 5 OR 3 - k < 0")
  }

  test("fires on cached tables") {
    spark.sql("SELECT id, day FROM facts").createOrReplaceTempView("kept")
    spark.sql("CACHE TABLE kept")
    try assertFires("SELECT id FROM kept WHERE year(day) = 2000", "day >= 2000-01-01")
    finally { val _ = spark.sql("UNCACHE TABLE kept") }
  }

  test(
    "only before conditions that can raise, never moving one over another (ERRORS_DEPEND_ON_PLAN)"
  ) {
    assertDeclines(
      "SELECT id FROM facts WHERE 100 / (id + 1) > 2 AND year(day) = 2000",
      Reason.MayRaise,
      ansi
    )
    // A value that is looked up in a subquery can raise as well.
    assertDeclines(
      "SELECT sum(id) FROM facts WHERE 100 / (id + 1) IN (SELECT k FROM dims) AND year(day) = 2000",
      Reason.MayRaise,
      ansi
    )
    withConf(ansi) {
      val df = spark.sql(
        "SELECT id FROM facts WHERE year(day) = 2000 AND 100 / (id + 1) > 2 AND month(day) = 1"
      )
      assert(condition(df).contains("(day < 2001-01-01)") && condition(df).contains("month(day)"))
      assert(decisions(df).map(_.reason) == Seq(rule.FunctionUnwrapped))
    }
  }

  test("does not fire where sums may exceed the type (ARITHMETIC_MAY_OVERFLOW)") {
    assertDeclines("SELECT id FROM facts WHERE k + 1 > 20", rule.MayOverflow, ansi, noFooters)
    assertDeclines("SELECT id FROM facts WHERE k + 2147483600 > 20", rule.MayOverflow, ansi)
    assertDeclines("SELECT id FROM facts WHERE k * 2 = 20", rule.MayOverflow, legacy, noFooters)
  }

  test("does not fire where the clock changes at the boundary (CLOCK_CHANGE_AT_BOUNDARY)") {
    val zone = "spark.sql.session.timeZone" -> "America/St_Johns"
    withConf(zone) {
      val day = Cast(column("t"), DateType, Some("America/St_Johns"))
      val date = Literal(LocalDate.parse("2010-11-07").toEpochDay.toInt, DateType)
      val plan = Filter(In(day, Seq(date)), relation)
      assert(new UnwrapFunctionsInFilters().apply(plan) eq plan)
      assert(Decision.recordedAt(plan).map(_.reason) == Seq(rule.ClockChange))
    }
  }

  test("leaves files of texts alone, whose malformed lines must still be found") {
    withFolder { folder =>
      Files.writeString(folder.resolve("t.csv"), "1999-01-01,abc\n2024-01-01,1\n")
      val read = spark.read.schema("day DATE, k INT").option("mode", "FAILFAST")
      read.csv(folder.toString).createOrReplaceTempView("lines")
      val text = "SELECT k FROM lines WHERE year(day) = 2024"
      assertSilent(text)
      assert(Answer.of(spark.sql(text)) == stockAnswer()(spark.sql(text)))
      assert(Answer.of(spark.sql(text)).toString.contains("FAILED_READ_FILE"))
    }
  }

  test("leaves Parquet files alone where old days in them are to be an error") {
    withConf("spark.sql.parquet.datetimeRebaseModeInRead" -> "EXCEPTION") {
      assertSilent("SELECT id FROM facts WHERE year(day) = 2000")
    }
  }

  test("leaves alone what it does not understand") {
    assertSilent("SELECT id FROM facts WHERE month(day) = 3")
    assertSilent("SELECT id FROM facts WHERE year(day) = k")
    assertSilent("SELECT id FROM facts WHERE year(day) IN (1999, NULL)")
    assertSilent("SELECT id FROM facts WHERE year(day) = 300000 OR year(day) > 2147483646")
    assertSilent("SELECT id FROM facts WHERE left(s COLLATE UTF8_LCASE, 1) = 'a'")
    assertSilent("SELECT id FROM facts WHERE d + 1 > 3")
    assertSilent("SELECT k, max(day) FROM facts GROUP BY k HAVING year(max(day)) = 2000")
    assertSilent("SELECT id FROM range(10) WHERE id + 1 > 3")
  }

  test("explain shows literals, a bug report does not; advise changes nothing") {
    val text = "SELECT id FROM facts WHERE year(day) = 2000"
    val df = spark.sql(text)
    val shown = Plans.execution(df).executedPlan.toString +
      decisions(df).flatMap(_.detail).mkString
    assert(shown.contains("(day >= 2000-01-01)"))
    assert(decisions(df).forall(made =>
      (made.title ++ made.chosen ++ made.stock).forall(!_.contains("2000"))
    ))
    withConf("spark.selinger.mode" -> "advise") {
      val advised = spark.sql(text)
      assert(condition(advised).contains("year(day)"))
      assert(decisions(advised).map(_.outcome) == Seq(Outcome.Advised))
    }
  }

  test("row groups are skipped, by the range that Spark pushes") {
    withFolder { folder =>
      val path = folder.resolve("t").toString
      withConf(micros) {
        SharedSession.onStock(spark)(_.range(0, 200000, 1, 1)
          .selectExpr("timestamp_seconds(1500000000 + id * 1000) AS t", "id")
          .write
          .option("parquet.block.size", 100000)
          .option("parquet.page.row.count.limit", 1000)
          .parquet(path))
      }
      def scanned(mode: String) =
        withConf("spark.selinger.mode" -> mode, "spark.sql.session.timeZone" -> "Europe/Berlin") {
          val df = spark.read.parquet(path).where("year(t) = 2020 AND month(t) = 3")
          val rows = df.collect().length
          val scan = Plans.physical(df).collectFirst { case scan: FileSourceScanExec => scan }.get
          (rows, scan.metrics("numOutputRows").value, scan.metadata("PushedFilters"))
        }
      val (rows, read, pushed) = scanned("on")
      val (stockRows, stockRead, _) = scanned("off")
      assert(rows == stockRows && rows > 2000)
      assert(stockRead == 200000 && read < 20000, read)
      assert(pushed.contains("GreaterThanOrEqual(t,") && pushed.contains("LessThan(t,"))
    }
  }
}
