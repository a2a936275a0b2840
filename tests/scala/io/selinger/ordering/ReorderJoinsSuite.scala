package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core.{
  Decision,
  GuardedRule,
  Orders,
  Origin,
  Outcome,
  PlanningPass,
  Reason,
  RowTree
}
import io.selinger.cost.{Cluster, JoinCost, JoinOperatorModel, JoinOperators}
import io.selinger.estimate.PlanEstimate
import io.selinger.explain.{Explained, PlanDecisions}
import io.selinger.ordering.graph.{JoinGraph, JoinRegion, RelationSet}
import io.selinger.ordering.tree.{JoinTree, JoinTreeCost, JoinTreePlan, Joining}
import io.selinger.stats.footers.ReadFooterStatistics
import io.selinger.testing.{
  Answer,
  Grid,
  JoinSides,
  ParquetTables,
  Plans,
  SharedSession,
  Subsets,
  Tables
}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.LeftSemi
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.internal.SQLConf

import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

class ReorderJoinsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val rule = ReorderJoins.id

  /** `sales` and `stock` multiply over `item`; `day` keeps one of a hundred days of `sales`. */
  private def withTables[A](body: => A): A = {
    ReorderJoinsSuite.register(spark)
    body
  }

  private val text =
    """SELECT count(*), sum(sale), sum(amount) FROM sales JOIN stock ON item = s_item
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin

  private def decision(df: DataFrame): Decision = Plans.decisions(df, rule) match {
    case Seq(one) => one
    case other => fail(s"not one decision: $other")
  }

  private def optimized(df: DataFrame): LogicalPlan = Plans.execution(df).optimizedPlan

  /** Every join has exchanges, and any gain will do. */
  private val shuffled = Seq(
    SQLConf.AUTO_BROADCASTJOIN_THRESHOLD.key -> "-1",
    SelingerConf.ORDER_MIN_GAIN.key -> "0"
  )

  private def joins(df: DataFrame): Int = optimized(df).collect { case join: Join => join }.size

  test("fires on a join that multiplies before one that selects") {
    withTables {
      val df = spark.sql(text)
      val made = decision(df)
      assert(made.outcome == Outcome.Changed && made.reason == Reason.OrderCheaper)
      assert(made.chosen.contains("((sales ⋈ days) ⋈ stock)"), made.chosen)
      assert(made.stock.contains("((sales ⋈ stock) ⋈ days)"))
      assert(made.setting.contains(ReorderJoins.switch) && made.settingTo.contains("false"))
      val Orders(written, chosen) = made.orders.getOrElse(fail("no orders to draw"))
      assert(written.inputs.map(_.inputs.map(_.name)) == Seq(Seq("sales", "stock"), Nil))
      assert(chosen.inputs.map(_.inputs.map(_.name)) == Seq(Seq("sales", "days"), Nil))
      def estimated(tree: RowTree) = tree.estimated.map(_.value)
      assert(estimated(chosen) == estimated(written), "all orders return the same rows")
      assert(estimated(chosen.inputs.head).get < estimated(written.inputs.head).get)
      assert(made.tables.contains(3) && made.work.exists(w => w.chosen < w.stock))
      val shown = PlanDecisions.shown(Plans.execution(df).executedPlan)
      assert(shown.filter(_.isOrdered).map(_.decision.rule).distinct == Seq("selectJoinOperator"))
      assert(Explained.of(Plans.execution(df).executedPlan).verdict.contains("× less"))
      val stock = stockAnswer()(spark.sql(text))
      assert(Answer.difference(stock, Answer.of(df)).isEmpty)
    }
  }

  test("an order that is good already is kept") {
    withTables {
      val df = spark.sql(
        "SELECT count(*) FROM sales JOIN days ON day = d_day JOIN stock ON item = s_item WHERE d_number = 7"
      )
      assert(decision(df).outcome == Outcome.Same && decision(df).orders.isEmpty)
      assert(decision(df).reason == Reason.OrderCheapEnough)
    }
  }

  test("a gain below the margin is left alone") {
    withTables {
      // What the first two joins return is little beside what the third one does.
      val last = """SELECT count(*), sum(sale), sum(amount) FROM sales
                   |JOIN days AS most ON day = most.d_day JOIN days AS few ON item = few.d_day
                   |JOIN stock ON item = s_item
                   |WHERE most.d_number < 99 AND few.d_number < 10""".stripMargin
      def reason(minGain: String) =
        withConf(SelingerConf.ORDER_MIN_GAIN.key -> minGain)(decision(spark.sql(last)).reason)
      assert(reason("0") == Reason.OrderCheaper)
      assert(reason("0.99") == Reason.OrderCheapEnough)
    }
  }

  private def declines(name: String, reason: Reason, conf: (String, String)*)(query: String): Unit =
    test(s"does not fire $name") {
      withTables {
        withConf(conf: _*) {
          val made = decision(spark.sql(query))
          assert(made.outcome == Outcome.Declined && made.reason == reason)
        }
      }
    }

  // Spark's own reordering makes other joins, which carry no decision any more.
  test("products are Spark's to refuse, where the user wants that") {
    withTables {
      withConf(
        SQLConf.CROSS_JOINS_ENABLED.key -> "false",
        SelingerConf.ORDER_MIN_GAIN.key -> "0"
      ) {
        val asked = text.replace("JOIN days ON day = d_day", "CROSS JOIN days ON day = d_day")
        Seq(asked, text.replace("JOIN stock ON item = s_item", "CROSS JOIN stock")).foreach {
          query =>
            val stock = stockAnswer()(spark.sql(query))
            assert(Answer.difference(stock, Answer.of(spark.sql(query))).isEmpty, query)
        }
        val product = spark.sql(text.replace("JOIN stock ON item = s_item", "CROSS JOIN stock"))
        assert(decision(product).reason == Reason.CrossProduct)
        assert(decision(spark.sql(text)).outcome == Outcome.Changed)
      }
    }
  }

  test("does not fire where Spark's own reordering is switched on") {
    withTables {
      val plan = withConf(SelingerConf.MODE.key -> "off")(optimized(spark.sql(text)))
      withConf(SQLConf.CBO_ENABLED.key -> "true", SQLConf.JOIN_REORDER_ENABLED.key -> "true") {
        assert(new ReorderJoins(spark).apply(plan) eq plan)
        val made = plan.collect { case join: Join => Decision.recordedAt(join) }.flatten
        assert(made.map(_.reason) == Seq(Reason.SparkReorders))
      }
    }
  }

  test("does not fire without statistics, and says of which table") {
    withTables {
      withConf(ReadFooterStatistics.switch -> "false") {
        val made = decision(spark.sql(text))
        assert(made.outcome == Outcome.Declined && made.reason == Reason.NoStatistics)
        assert(made.detail.exists(_.matches("It is unknown for (sales|stock|days)")), made.detail)
      }
    }
  }

  test("a comparison joins where no equality does, as late as it pays") {
    withTables {
      val query =
        "SELECT count(*) FROM sales JOIN stock ON item < s_item JOIN days ON day = d_day " +
          "WHERE d_number = 7"
      val df = spark.sql(query)
      assert(decision(df).chosen.contains("((sales ⋈ days) ⋈ stock)"), decision(df))
      val stock = stockAnswer()(spark.sql(query))
      assert(Answer.difference(stock, Answer.of(df)).isEmpty)
    }
  }

  private def bounded(name: String, reason: Reason)(query: String): Unit =
    test(s"$name bounds a region, and the decision says so") {
      withTables {
        val df = spark.sql(query)
        assert(decision(df).outcome == Outcome.Declined && decision(df).reason == reason)
        val stock = stockAnswer()(spark.sql(query))
        assert(Answer.difference(stock, Answer.of(df)).isEmpty)
      }
    }

  bounded("a join hint", Reason.HintObeyed)(
    """SELECT /*+ MERGE(stock) */ count(*) FROM sales JOIN stock ON item = s_item
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )
  bounded("a condition that can raise an error", Reason.MayRaise)(
    """SELECT count(*) FROM sales JOIN stock ON item = s_item AND 100 / (sale + amount + 1) >= 0
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )
  bounded("a filter of what an outer join returns", Reason.JoinFixed)(
    """SELECT count(*) FROM (SELECT * FROM sales LEFT JOIN stock ON item = s_item AND amount < 5
      |WHERE coalesce(amount, sale) > 3) JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )

  test("what IN asks for twice is ordered by itself, alike in both places") {
    withTables {
      val asked = "SELECT s_item FROM stock JOIN days ON amount = d_number WHERE d_day < 50"
      def sold(day: Int) =
        s"SELECT sale FROM sales JOIN days ON day = d_day WHERE d_number = $day AND item IN ($asked)"
      val (twice, once) = (s"${sold(7)} UNION ALL ${sold(9)}", sold(7))
      def details(query: String) =
        Plans.decisions(spark.sql(query), rule).flatMap(_.detail).mkString("; ")
      assert(details(twice).contains(Reason.SharedSubplan.code), details(twice))
      assert(!details(once).contains(Reason.SharedSubplan.code))
      val asks = optimized(spark.sql(twice)).collect { case Join(_, right, LeftSemi, _, _) =>
        right
      }
      assert(asks.size == 2 && asks.head.sameResult(asks.last))
      val stock = stockAnswer()(spark.sql(twice))
      assert(Answer.difference(stock, Answer.of(spark.sql(twice))).isEmpty)
    }
  }

  test("what several places join alike stays alike, so that Spark computes it once") {
    withTables {
      def sold(sale: Int, more: String = "") =
        s"""SELECT sale, d_number FROM stock JOIN days ON amount = d_day
           |JOIN sales ON item = s_item WHERE sale = $sale $more""".stripMargin
      val (alike, other) =
        (s"${sold(7)} UNION ALL ${sold(9)}", s"${sold(7)} UNION ALL ${sold(9, "AND amount < 50")}")
      def planned(query: String, more: (String, String)*) = withConf(shuffled ++ more: _*) {
        val df = spark.sql(query)
        (Plans.decisions(df, rule), Answer.of(df), Plans.execution(df).executedPlan.toString)
      }
      val (decisions, answer, plan) = planned(alike)
      assert(decisions.map(_.reason).contains(Reason.OrderShared), decisions)
      assert(plan.contains("ReusedExchange"), plan)
      val stock = stockAnswer()(spark.sql(alike))
      assert(Answer.difference(stock, answer).isEmpty)
      def isShared(query: String, more: (String, String)*) =
        planned(query, more: _*)._1.exists(_.reason == Reason.OrderShared)
      assert(!isShared(alike, SQLConf.EXCHANGE_REUSE_ENABLED.key -> "false"))
      assert(!isShared(alike, SelingerConf.MODE.key -> "advise"))
      assert(!isShared(other) && !isShared(sold(7)))
    }
  }

  Seq("JOIN", "LEFT JOIN").foreach { how =>
    test(s"what several places ask for differently comes after what they $how alike") {
      withTables {
        def sold(day: Int) =
          s"""SELECT sale, amount, d_number FROM sales JOIN days ON day = d_day
             |$how stock ON sale = amount AND s_item < 45 WHERE d_number > $day""".stripMargin
        // Each place by itself joins the days first, which leave it half of the rows.
        val twice = s"${sold(50)} UNION ALL ${sold(51)}"
        withConf(shuffled: _*) {
          val df = spark.sql(twice)
          val answer = Answer.of(df)
          val stock = stockAnswer()(spark.sql(twice))
          assert(Answer.difference(stock, answer).isEmpty)
          val decisions = Plans.decisions(df, rule)
          val shared = decisions.filter(_.reason == Reason.OrderShared)
          assert(shared.nonEmpty, decisions)
          shared.foreach { made =>
            def cost(name: String) =
              made.evidence.find(_.name == s"cost of all places $name").map(_.value)
            assert(cost("as chosen").exists(_ < cost("at their own best").get), made.evidence)
          }
          val plan = Plans.execution(df).executedPlan.toString.split("Initial Plan").head
          assert("FileScan parquet \\[s_item".r.findAllIn(plan).size == 1, plan)
        }
      }
    }
  }

  test("an order that several places share says what bounds it, and numbers what is used twice") {
    withTables {
      def sold(sale: Int) =
        s"""SELECT sale, days.d_number, other.d_number FROM stock JOIN days ON amount = d_day
           |JOIN sales ON item = s_item JOIN days other ON day = other.d_day
           |JOIN (SELECT /*+ MERGE(stock) */ sales.sale AS hinted FROM sales
           |  JOIN stock ON sale = amount) ON sale = hinted
           |WHERE sale = $sale""".stripMargin
      withConf(shuffled: _*) {
        val df = spark.sql(s"${sold(7)} UNION ALL ${sold(9)}")
        val shared = Plans.decisions(df, rule).filter(_.reason == Reason.OrderShared)
        assert(shared.nonEmpty, Plans.decisions(df, rule))
        shared.foreach { made =>
          assert(made.detail.exists(_.contains(Reason.HintObeyed.code)), made)
          val names = Seq(made.chosen, made.stock).flatten
          assert(names.forall(text => text.contains("days") && text.contains("days#2")), names)
        }
      }
    }
  }

  test("orders of several places that were compared in part only say so") {
    withTables {
      val query = Seq(7, 9)
        .map(sale => s"""SELECT sale FROM stock JOIN days ON amount = d_day
                        |JOIN sales ON item = s_item WHERE sale = $sale""".stripMargin)
        .mkString(" UNION ALL ")
      // The first look at files takes longer than the budget below.
      optimized(spark.sql(query))
      def details(sharingMs: Double) = withConf(shuffled: _*) {
        val plan =
          withConf(ReorderJoins.switch -> "false")(optimized(spark.sql(query)))
        withConf(SelingerConf.PLANNING_BUDGET_MS.key -> "1") {
          PlanningPass.start()
          new ReorderJoins(spark, sharingMs).apply(plan).collect { case join: Join =>
            Decision.recordedAt(join).filter(_.chosen.isDefined).flatMap(_.detail)
          }.flatten
        }
      }
      val partly = details(sharingMs = 1e-6)
      assert(partly.size == 2 && partly.forall(_.contains("compared in part")), partly)
      assert(!details(sharingMs = 60000).exists(_.contains("compared in part")))
    }
  }

  test(
    "what is postponed may be joined in any way, and have nulls, duplicates, NaN or nothing at all"
  ) {
    withFolder { folder =>
      def write(name: String, rows: Long, columns: String*): Unit = {
        val path = folder.resolve(name).toString
        spark.range(rows).selectExpr(columns: _*).write.parquet(path)
        spark.read.parquet(path).createOrReplaceTempView(name)
      }
      write(
        "facts",
        3000,
        "if(id % 7 = 0, null, id % 90) AS day",
        "CASE WHEN id % 11 = 0 THEN null WHEN id % 13 = 0 THEN double('NaN') ELSE double(id % 500) END AS x",
        "CAST(id % 300 AS decimal(9, 2)) AS amount"
      )
      write(
        "prices",
        600,
        "CASE WHEN id % 17 = 0 THEN null WHEN id = 5 THEN double('NaN') ELSE double(id % 550) END AS p_x",
        "CAST(id AS decimal(12, 4)) AS price"
      )
      write("days", 100, "if(id % 19 = 0, null, id) AS d_day", "id AS d_number")
      val alike = Seq(
        "JOIN prices ON x = p_x",
        "JOIN prices ON amount = price",
        "LEFT JOIN prices ON x <=> p_x",
        "LEFT SEMI JOIN prices ON amount = price",
        "LEFT ANTI JOIN prices ON x = p_x",
        "FULL JOIN prices ON x = p_x"
      )
      val differing = Seq("JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN")
      val grid = for {
        (same, i) <- alike.zipWithIndex
        (how, j) <- differing.zipWithIndex
        (days, k) <- Seq(Seq(50, 51), Seq(60, 1000)).zipWithIndex
      } yield (same, how, days, i + j + k)
      // Every two of the three with each other, except that half of the joins meet.
      val shared = for {
        (same, how, days, _) <- Grid.of(grid, more = 3)(_._4 % 4 == 0)
      } yield withClue(Grid.clue) {
        val query = days
          .map(day => s"""SELECT x, amount FROM facts
                         |$how (SELECT * FROM days WHERE d_number > $day) ON day = d_day
                         |$same""".stripMargin)
          .mkString(" UNION ALL ")
        withConf(shuffled: _*) {
          val df = spark.sql(query)
          val stock = stockAnswer()(spark.sql(query))
          assert(Answer.difference(stock, Answer.of(df)).isEmpty, query)
          Plans.decisions(df, rule).exists(_.reason == Reason.OrderShared)
        }
      }
      val share = s"${shared.count(identity)} of ${shared.size} queries share"
      info(share)
      assert(shared.count(identity) > shared.size / 4, share)
    }
  }

  private def fires(name: String)(query: String, order: String): Unit =
    test(s"fires through $name") {
      withTables {
        val df = withConf(SelingerConf.ORDER_MIN_GAIN.key -> "0") {
          val planned = spark.sql(query)
          assert(decision(planned).outcome == Outcome.Changed, decision(planned))
          planned
        }
        assert(decision(df).chosen.contains(order), decision(df).chosen)
        val (stock, schema) = withConf(SelingerConf.MODE.key -> "off") {
          val plain = spark.sql(query)
          (Answer.of(plain), plain.schema)
        }
        assert(Answer.difference(stock, Answer.of(df)).isEmpty)
        assert(df.schema == schema)
      }
    }

  fires("an outer join")(
    """SELECT sale, amount FROM sales LEFT JOIN stock ON item = s_item
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin,
    "((sales ⋈ days) ⟕ stock)"
  )
  fires("an outer join written with its sides exchanged")(
    """SELECT sale, amount FROM stock RIGHT JOIN sales ON item = s_item
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin,
    "((sales ⋈ days) ⟕ stock)"
  )
  // Spark itself moves these down as far as it can.
  fires("a semi join")(
    """SELECT sale FROM sales LEFT SEMI JOIN stock ON item = s_item AND sale < amount
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin,
    "((sales ⋈ days) ⋉ stock)"
  )
  fires("an anti join")(
    """SELECT sale FROM sales LEFT ANTI JOIN stock ON item = s_item AND sale < amount
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin,
    "((sales ⋈ days) ▷ stock)"
  )
  fires("a projection that renames and computes")(
    """SELECT id, twice, left_over FROM (SELECT sale AS id, sale > 3 AS twice, day AS theirs,
      |amount IS NULL AS left_over FROM sales JOIN stock ON item = s_item)
      |JOIN days ON theirs = d_day WHERE d_number = 7""".stripMargin,
    "((sales ⋈ days) ⋈ stock)"
  )

  test("fires through EXISTS, which takes part as a semi join") {
    withTables {
      val query =
        """SELECT sale, amount FROM sales JOIN stock ON item = s_item JOIN days ON day = d_day
          |WHERE d_number = 7
          |AND EXISTS (SELECT 1 FROM days x WHERE x.d_day = sale AND x.d_number < sale)""".stripMargin
      val df = withConf(SelingerConf.ORDER_MIN_GAIN.key -> "0") {
        val planned = spark.sql(query)
        assert(decision(planned).outcome == Outcome.Changed, decision(planned))
        planned
      }
      assert(decision(df).chosen.exists(_.contains("⋉")), decision(df))
      val stock = stockAnswer()(spark.sql(query))
      assert(Answer.difference(stock, Answer.of(df)).isEmpty)
    }
  }

  test(
    "a lookup that finds nothing stays one where its join would be dropped with errors beside it"
  ) {
    withTables {
      val none = Seq(
        "day IN (SELECT d_day FROM days WHERE d_day = CAST(NULL AS INT))",
        "day = 4 AND EXISTS (SELECT 1 FROM days WHERE day = 5)",
        "day = 4 AND NOT EXISTS (SELECT 1 FROM days WHERE day = 5 AND 100 / (d_day - 3) <> 7)"
      )
      val conditions = Seq("item > 0" -> false, "100 / (item - 3) <> 7" -> true)
      for (lookup <- none; (condition, raises) <- conditions) {
        val text =
          s"""SELECT count(*) FROM sales JOIN days ON day = d_day JOIN stock ON item = s_item
                      |WHERE $condition AND $lookup""".stripMargin
        val modes =
          Seq("spark.sql.adaptive.enabled" -> "false", "spark.sql.ansi.enabled" -> "true")
        val expected = stockAnswer(modes: _*)(spark.sql(text))
        withConf(modes: _*)(assert(Answer.of(spark.sql(text)) == expected, text))
        if (lookup == none.head) {
          assert(expected.isInstanceOf[Answer.Error] == raises)
          withConf(modes: _*)(assert((joins(spark.sql(text)) == 0) != raises, text))
        }
      }
    }
  }

  test("a projection that computes below the side that an outer join fills with nulls stays") {
    withTables {
      val query =
        """SELECT sale, filled FROM sales LEFT JOIN
          |(SELECT s_item, coalesce(amount, 0) AS filled FROM stock JOIN days ON amount = d_day)
          |ON sale = s_item""".stripMargin
      val df = spark.sql(query)
      val stock = stockAnswer()(spark.sql(query))
      assert(Answer.difference(stock, Answer.of(df)).isEmpty)
      assert(Plans.decisions(df, rule).map(_.reason) == Seq(Reason.JoinFixed))
    }
  }

  test("columns that are computed from each other again and again do not grow") {
    withTables {
      def staged(steps: Int): String =
        (1 to steps).foldLeft("SELECT sale AS a, day AS b FROM sales") {
          (below, i) =>
            s"""SELECT CASE WHEN q$i.a > d$i.d_number THEN q$i.a ELSE coalesce(q$i.a, d$i.d_number, 1) END
             |AS a, q$i.b FROM ($below) q$i LEFT JOIN days d$i ON q$i.b = d$i.d_day""".stripMargin
        }
      def size(plan: LogicalPlan): Int =
        plan.collect { case node => node.expressions.map(_.collect { case e => e }.size).sum }.sum
      withConf(SelingerConf.ORDER_MIN_GAIN.key -> "0") {
        val df = spark.sql(staged(12))
        val stock = withConf(SelingerConf.MODE.key -> "off")(spark.sql(staged(12)))
        assert(size(optimized(df)) < 4 * size(optimized(stock)))
        assert(Answer.difference(Answer.of(stock), Answer.of(df)).isEmpty)
      }
    }
  }

  test("NOT IN is left where it is") {
    withTables {
      val plan = withConf(SelingerConf.MODE.key -> "off") {
        spark.sql(
          """SELECT sale FROM sales JOIN stock ON item = s_item LEFT ANTI JOIN
            |days ON day = d_day OR (day = d_day) IS NULL""".stripMargin
        )
      }
      assert(optimized(plan).exists(node => JoinRegion.at(node).exists(_.relations.size == 2)))
      assert(!optimized(plan).exists(node => JoinRegion.at(node).exists(_.relations.size > 2)))
    }
  }

  test("the margin grows with doubt about the relations and with the number of joins") {
    def margin(origin: Origin, joins: Int) =
      OrderProblem.marginOf(0.2, Seq(Origin.Exact, origin), joins)
    assert(margin(Origin.Exact, 2) == 0.2)
    val origins =
      Seq(Origin.Exact, Origin.Sampled, Origin.Derived, Origin.Default).map(margin(_, 5))
    assert(origins == origins.sorted.distinct)
    assert(margin(Origin.Derived, 20) > margin(Origin.Derived, 5))
    assert(OrderProblem.marginOf(0.2, Seq(Origin.Default), 1000) < 1.0)
  }

  test("the relations named are those on whose rows the choice depends most") {
    withTables {
      val named = decision(spark.sql(text)).evidence.map(_.name).filter(_.endsWith(" rows"))
      assert(named.size == 3 && named.toSet == Set("sales rows", "stock rows", "days rows"))
    }
  }

  declines("where a relation has a column whose errors depend on the order", Reason.MayRaise)(
    """SELECT count(*), sum(v) FROM (SELECT item, day, 10 DIV (sale + 1) AS v FROM sales)
      |JOIN stock ON item = s_item JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )

  declines(
    "where an empty relation may hide the errors of another, without adaptive execution",
    Reason.MayRaise,
    SQLConf.ADAPTIVE_EXECUTION_ENABLED.key -> "false"
  )(
    """SELECT count(*) FROM (SELECT item, day FROM sales WHERE 10 DIV sale > 1)
      |JOIN stock ON item = s_item JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )

  test("off returns the very same plan") {
    withTables {
      val plan = withConf(SelingerConf.MODE.key -> "off")(optimized(spark.sql(text)))
      Seq(SelingerConf.MODE.key -> "off", ReorderJoins.switch -> "false").foreach {
        setting => withConf(setting)(assert(new ReorderJoins(spark).apply(plan) eq plan))
      }
    }
  }

  test("advise says what would be done and leaves the plan") {
    withTables {
      withConf(SelingerConf.MODE.key -> "advise") {
        val df = spark.sql(text)
        assert(decision(df).outcome == Outcome.Advised)
        assert(decision(df).chosen.contains("((sales ⋈ days) ⋈ stock)"))
        val plan = optimized(df)
        assert(new ReorderJoins(spark).apply(plan) eq plan)
      }
    }
  }

  test("a second run changes nothing") {
    withTables {
      val plan = optimized(spark.sql(text))
      assert(new ReorderJoins(spark).apply(plan) eq plan)
    }
  }

  test("a failing rule leaves the query working, and says so") {
    withTables {
      withConf(SelingerConf.FAIL_ON_ERROR.key -> "false") {
        val plan = withConf(SelingerConf.MODE.key -> "off")(optimized(spark.sql(text)))
        val broken = new GuardedRule(ReorderJoins, SelingerConf.switches) {
          override protected def rewrite(plan: LogicalPlan): LogicalPlan =
            throw new NoSuchMethodError("gone")
        }
        assert(broken.apply(plan) eq plan)
        assert(Decision.recordedAt(plan).exists(_.reason == Reason.RuleFailed))
      }
    }
  }

  test("regions below aggregates, unions and in subqueries are ordered too") {
    withTables {
      val inner =
        "SELECT sale FROM sales JOIN stock ON item = s_item JOIN days ON day = d_day WHERE d_number = 7"
      val query =
        s"SELECT count(*) FROM ($inner UNION ALL $inner LIMIT 100000) WHERE sale IN ($inner)"
      val df = spark.sql(query)
      assert(Plans.decisions(df, rule).count(_.outcome == Outcome.Changed) == 3)
      val stock = stockAnswer()(spark.sql(query))
      assert(Answer.difference(stock, Answer.of(df)).isEmpty)
    }
  }

  test("no more joins than before, and columns in the same places") {
    withTables {
      val query = text.replace("count(*), sum(sale), sum(amount)", "*")
      val df = spark.sql(query)
      val stock = withConf(SelingerConf.MODE.key -> "off") {
        val plain = spark.sql(query)
        (joins(plain), plain.schema)
      }
      assert((joins(df), df.schema) == stock)
      assert(decision(df).outcome == Outcome.Changed)
    }
  }

  // ---- every order gives the same rows --------------------------------------------------------

  // Keys of one type: with nulls and duplicates, on tables of which some have no rows.
  private val keys = Seq("k", "big", "s", "d", "amount", "day", "at", "flag")
  private val sources = Seq("dims", "dims", "dupes", "dupes", "nulls", "nothing")

  private val kinds = Seq(
    "JOIN",
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "LEFT SEMI JOIN",
    "LEFT ANTI JOIN"
  )

  private def randomQuery(random: Random): String = {
    val size = 3 + random.nextInt(3)
    def oneOf[A](choices: Seq[A]): A = choices(random.nextInt(choices.size))
    val tables = Seq.fill(size)(oneOf(sources))
    val start = (Seq(0), s"(SELECT * FROM ${tables.head} LIMIT 40) t0")
    val (visible, from) = (1 until size).foldLeft(start) { case ((visible, text), i) =>
      val other = oneOf(visible)
      val key = oneOf(keys)
      val equal = s"t$i.$key ${if (random.nextInt(5) == 0) "<=>" else "="} t$other.$key"
      val more = random.nextInt(6) match {
        case 0 => s" AND t$i.id < t$other.id"
        case 1 => s" AND t$i.k = t$other.k"
        case 2 => s" AND (t$i.s LIKE 'a%' OR t$other.flag)"
        case _ => ""
      }
      val kind = oneOf(kinds)
      val stays = if (kind.contains("SEMI") || kind.contains("ANTI")) visible else visible :+ i
      (stays, s"$text $kind (SELECT * FROM ${tables(i)} LIMIT 30) t$i ON $equal$more")
    }
    s"SELECT ${visible.map(i => s"t$i.id, t$i.s").mkString(", ")} FROM $from"
  }

  /** Some tree of the graph, each as likely as its splits; none where they lead nowhere. */
  private def randomTree(
      set: RelationSet,
      graph: JoinGraph,
      random: Random,
      cost: JoinTreeCost
  ): Option[JoinTree] =
    if (set.size == 1) Some(cost.relation(set.lowest))
    else {
      val splits = Subsets.of(set)
        .filter(half => half != set && graph.shape.connection(half, set.without(half)).isDefined)
        .toSeq
      random.shuffle(splits).iterator.flatMap { half =>
        for {
          one <- randomTree(half, graph, random, cost)
          other <- randomTree(set.without(half), graph, random, cost)
          tree <- Joining.join(one, other, graph.shape, cost)
        } yield tree
      }.nextOption()
    }

  test("every order that the search may choose gives the same rows") {
    Tables.register(spark)
    val known = new Random(20261121)
    val fresh = new Random(Grid.seed)
    val queries = Seq.fill(if (Grid.isWhole) 40 else 4)(randomQuery(known) -> known) ++
      Seq.fill(3)(randomQuery(fresh) -> fresh)
    val orders = queries.flatMap { case (query, random) =>
      withConf(SelingerConf.MODE.key -> "off", "spark.sql.shuffle.partitions" -> "2") {
        val df = spark.sql(query)
        val expected = Answer.of(df)
        val plan = optimized(df)
        val regions =
          plan.collectFirst(Function.unlift((node: LogicalPlan) => JoinRegion.at(node))).toSeq
        for {
          region <- regions
          graph <- JoinGraph.of(region.relations, region.written, region.needed).toSeq
          trees = Seq.fill(4)(
            randomTree(graph.all, graph, random, ReorderJoinsSuite.costs(graph))
          ).flatten
          tree <- trees.distinctBy(JoinTree.text(_, _.toString))
        } yield {
          val other = JoinTreePlan.planOf(tree, graph, region)
          val whole = plan.transformDown { case node if node eq region.root => other }
          val found = Answer.ofRows {
            spark.sessionState.executePlan(whole).executedPlan.executeCollectPublic()
          }
          Answer.difference(expected, found).foreach(d => fail(s"${Grid.clue}$d\n$query\n$whole"))
          JoinTree.text(tree, _.toString)
        }
      }
    }
    info(s"${orders.size} orders of ${queries.size} queries, ${orders.distinct.size} different")
    assert(orders.size >= 1.5 * queries.size, "regions were found")
    assert(orders.distinct.size >= queries.size)
    Seq("⋈", "⟕", "⟗", "⋉", "▷").foreach { symbol =>
      assert(orders.exists(_.contains(symbol)), symbol)
    }
  }
}

object ReorderJoinsSuite
    extends ParquetTables(
      Map(
        "sales" -> (5000L, Seq("id % 50 as item", "id % 100 as day", "id as sale")),
        "stock" -> (4000L, Seq("id % 50 as s_item", "id as amount")),
        "days" -> (100L, Seq("id as d_day", "id as d_number"))
      )
    ) {

  /** Costs where nothing is known but that all relations have ten rows. */
  private def costs(graph: JoinGraph): JoinTreeCost = {
    val cluster = Cluster(2, 1, 1e9, 1e9, 1e8)
    val ten = graph.relations.map(_ => PlanEstimate.exactly(10, Origin.Default))
    val limits = JoinSides.limits.copy(broadcastBytes = None, taskHashBytes = 1e8)
    val model = new JoinOperatorModel(JoinOperators.all, new JoinCost(cluster, 0.7), limits)
    new JoinTreeCost(graph, ten, model)
  }
}
