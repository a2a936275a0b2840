package io.selinger.ordering

import io.selinger.conf.SelingerConf
import io.selinger.core._
import io.selinger.cost.{Cluster, JoinCost}
import io.selinger.estimate.PlanEstimate
import io.selinger.testing.{Answer, Plans, SharedSession, Tables}
import java.nio.file.Path
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.internal.SQLConf

import org.scalatest.funsuite.AnyFunSuite
import scala.util.Random

class ReorderJoinsSuite extends AnyFunSuite with SharedSession {

  private val rule = SelingerConf.REORDER_JOINS.id

  /** `sales` and `stock` multiply over `item`; `day` keeps one of a hundred days of `sales`. */
  private def withTables[A](body: Path => A): A = withFolder { folder =>
    def write(name: String, rows: Long, columns: String*): Unit = {
      val path = folder.resolve(name).toString
      spark.range(rows).selectExpr(columns: _*).write.parquet(path)
      spark.read.parquet(path).createOrReplaceTempView(name)
    }
    write("sales", 5000, "id % 50 as item", "id % 100 as day", "id as sale")
    write("stock", 4000, "id % 50 as s_item", "id as amount")
    write("days", 100, "id as d_day", "id as d_number")
    body(folder)
  }

  private val text =
    """SELECT count(*), sum(sale), sum(amount) FROM sales JOIN stock ON item = s_item
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin

  private def decision(df: DataFrame): Decision = Plans.decisions(df, rule) match {
    case Seq(one) => one
    case other => fail(s"not one decision: $other")
  }

  private def optimized(df: DataFrame): LogicalPlan = Plans.execution(df).optimizedPlan

  private def joins(df: DataFrame): Int = optimized(df).collect { case join: Join => join }.size

  test("fires on a join that multiplies before one that selects") {
    withTables { _ =>
      val df = spark.sql(text)
      val made = decision(df)
      assert(made.outcome == Outcome.Changed && made.reason == Reason.OrderCheaper)
      assert(made.chosen.contains("((sales ⋈ days) ⋈ stock)"), made.chosen)
      assert(made.stock.contains("((sales ⋈ stock) ⋈ days)"))
      assert(made.setting.contains(SelingerConf.ORDER_MIN_GAIN.key))
      val stock = withConf(SelingerConf.MODE.key -> "off")(Answer.of(spark.sql(text)))
      assert(Answer.difference(stock, Answer.of(df)).isEmpty)
    }
  }

  test("an order that is good already is kept") {
    withTables { _ =>
      val df = spark.sql(
        "SELECT count(*) FROM sales JOIN days ON day = d_day JOIN stock ON item = s_item WHERE d_number = 7"
      )
      assert(decision(df).outcome == Outcome.Same)
      assert(decision(df).reason == Reason.OrderCheapEnough)
    }
  }

  test("a gain below the margin is left alone") {
    withTables { _ =>
      withConf(SelingerConf.ORDER_MIN_GAIN.key -> "0.99") {
        assert(decision(spark.sql(text)).reason == Reason.OrderCheapEnough)
      }
    }
  }

  private def declines(name: String, reason: Reason, conf: (String, String)*)(query: String): Unit =
    test(s"does not fire $name") {
      withTables { _ =>
        withConf(conf: _*) {
          val made = decision(spark.sql(query))
          assert(made.outcome == Outcome.Declined && made.reason == reason)
        }
      }
    }

  // Spark's own reordering makes other joins, which carry no decision any more.
  test("does not fire where Spark's own reordering is switched on") {
    withTables { _ =>
      val plan = withConf(SelingerConf.MODE.key -> "off")(optimized(spark.sql(text)))
      withConf(SQLConf.CBO_ENABLED.key -> "true", SQLConf.JOIN_REORDER_ENABLED.key -> "true") {
        assert(new ReorderJoins(spark).apply(plan) eq plan)
        val made = plan.collect { case join: Join => Decision.of(join) }.flatten
        assert(made.map(_.reason) == Seq(Reason.SparkReorders))
      }
    }
  }

  declines(
    "without statistics",
    Reason.NoStatistics,
    SelingerConf.READ_FOOTER_STATISTICS.switch -> "false"
  )(text)
  declines("across a cross product", Reason.CrossProduct)(
    "SELECT count(*) FROM sales JOIN stock ON item < s_item JOIN days ON day = d_day"
  )

  private def bounded(name: String)(query: String): Unit =
    test(s"$name bounds a region") {
      withTables { _ =>
        val df = spark.sql(query)
        assert(Plans.decisions(df, rule).isEmpty)
        val stock = withConf(SelingerConf.MODE.key -> "off")(Answer.of(spark.sql(query)))
        assert(Answer.difference(stock, Answer.of(df)).isEmpty)
      }
    }

  bounded("a join hint")(
    """SELECT /*+ MERGE(stock) */ count(*) FROM sales JOIN stock ON item = s_item
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )
  bounded("an outer join")(
    """SELECT count(*) FROM sales LEFT JOIN stock ON item = s_item
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )
  bounded("a condition that can raise an error")(
    """SELECT count(*) FROM sales JOIN stock ON item = s_item AND 100 / (sale + amount + 1) >= 0
      |JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )
  declines("where a relation has a column whose errors depend on the order", Reason.MayRaise)(
    """SELECT count(*), sum(v) FROM (SELECT item, day, 10 DIV (sale + 1) AS v FROM sales)
      |JOIN stock ON item = s_item JOIN days ON day = d_day WHERE d_number = 7""".stripMargin
  )

  test("off returns the very same plan") {
    withTables { _ =>
      val plan = withConf(SelingerConf.MODE.key -> "off")(optimized(spark.sql(text)))
      Seq(SelingerConf.MODE.key -> "off", SelingerConf.REORDER_JOINS.switch -> "false").foreach {
        setting => withConf(setting)(assert(new ReorderJoins(spark).apply(plan) eq plan))
      }
    }
  }

  test("advise says what would be done and leaves the plan") {
    withTables { _ =>
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
    withTables { _ =>
      val plan = optimized(spark.sql(text))
      assert(new ReorderJoins(spark).apply(plan) eq plan)
    }
  }

  test("a failing rule leaves the query working, and says so") {
    withTables { _ =>
      withConf(SelingerConf.FAIL_ON_ERROR.key -> "false") {
        val plan = withConf(SelingerConf.MODE.key -> "off")(optimized(spark.sql(text)))
        val broken = new GuardedRule(SelingerConf.REORDER_JOINS, SelingerConf.switches) {
          override protected def rewrite(plan: LogicalPlan): LogicalPlan =
            throw new NoSuchMethodError("gone")
        }
        assert(broken.apply(plan) eq plan)
        assert(Decision.of(plan).exists(_.reason == Reason.RuleFailed))
      }
    }
  }

  test("regions below aggregates, unions and in subqueries are ordered too") {
    withTables { _ =>
      val inner =
        "SELECT sale FROM sales JOIN stock ON item = s_item JOIN days ON day = d_day WHERE d_number = 7"
      val query =
        s"SELECT count(*) FROM ($inner UNION ALL $inner LIMIT 100000) WHERE sale IN ($inner)"
      val df = spark.sql(query)
      assert(Plans.decisions(df, rule).count(_.outcome == Outcome.Changed) == 3)
      val stock = withConf(SelingerConf.MODE.key -> "off")(Answer.of(spark.sql(query)))
      assert(Answer.difference(stock, Answer.of(df)).isEmpty)
    }
  }

  test("no more joins than before, and columns in the same places") {
    withTables { _ =>
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

  private def randomQuery(random: Random): String = {
    val size = 3 + random.nextInt(3)
    val tables = Seq.fill(size)(sources(random.nextInt(sources.size)))
    val from = tables.zipWithIndex.map { case (table, i) =>
      if (i == 0) s"(SELECT * FROM $table LIMIT 40) t0"
      else {
        val other = random.nextInt(i)
        val key = keys(random.nextInt(keys.size))
        val equal = s"t$i.$key = t$other.$key"
        val more = random.nextInt(4) match {
          case 0 => s" AND t$i.id < t$other.id"
          case 1 => s" AND t$i.k = t$other.k"
          case 2 => s" AND (t$i.s LIKE 'a%' OR t$other.flag)"
          case _ => ""
        }
        s"JOIN (SELECT * FROM $table LIMIT 30) t$i ON $equal$more"
      }
    }
    s"SELECT ${(0 until size).map(i => s"t$i.id, t$i.s").mkString(", ")} FROM ${from.mkString(" ")}"
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
      val splits = set.subsets
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
    val random = new Random(20261121)
    val orders = (1 to 25).flatMap { _ =>
      val query = randomQuery(random)
      withConf(SelingerConf.MODE.key -> "off", "spark.sql.shuffle.partitions" -> "2") {
        val df = spark.sql(query)
        val expected = Answer.of(df)
        val plan = optimized(df)
        val regions = plan.collectFirst(Function.unlift(JoinRegion.at)).toSeq
        for {
          region <- regions
          graph <- JoinGraph.of(region.relations, region.written, region.root.output).toSeq
          _ <- 1 to 4
          tree <- randomTree(graph.all, graph, random, ReorderJoinsSuite.costs(graph))
        } yield {
          val other = ReorderJoins.planOf(tree, graph, region.root)
          val whole = plan.transformDown { case node if node eq region.root => other }
          val found = Answer.ofRows {
            spark.sessionState.executePlan(whole).executedPlan.executeCollectPublic()
          }
          Answer.difference(expected, found).foreach(d => fail(s"$d\n$query\n$whole"))
          JoinTree.text(tree, _.toString)
        }
      }
    }
    assert(orders.size >= 60, "regions were found")
    assert(orders.distinct.size >= 20)
  }
}

object ReorderJoinsSuite {

  /** Costs where nothing is known but that all relations have ten rows. */
  private def costs(graph: JoinGraph): JoinTreeCost = {
    val cluster = Cluster(2, 1, 1e9, 1e9, 1e8)
    val ten = graph.relations.map(_ => PlanEstimate.exactly(10, Origin.Default))
    new JoinTreeCost(graph, ten, cluster, new JoinCost(cluster, 0.7), OperatorLimits(None, 1e8))
  }
}
