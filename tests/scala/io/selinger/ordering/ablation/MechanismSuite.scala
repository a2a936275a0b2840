package io.selinger.ordering.ablation

import io.selinger.bench.JoinShapes
import io.selinger.conf.SelingerConf
import io.selinger.ordering.ReorderJoins
import io.selinger.testing.{Answer, ExampleTables, Grid, Plans, SharedSession, Tables}
import java.nio.file.{Files, Paths}
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.jdk.CollectionConverters._

/** Whatever mechanism is left out: every order is a valid one, with the same answers. */
class MechanismSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val folder = Paths.get(System.getProperty("selinger.root"), "tests", "sql")

  private def register(): Unit = {
    Tables.register(spark)
    ExampleTables.register(spark)
  }

  private def joinsOf(plan: LogicalPlan): Int = plan.collect { case join: Join => join }.size

  // Exact search decides small queries; with hardly any pairs allowed, the heuristics do.
  private val variants = Seq(Seq.empty, Seq(SelingerConf.ORDER_MAX_PAIRS.key -> "1")).map {
    _ ++ Seq(
      SelingerConf.ORDER_MIN_GAIN.key -> "0",
      "spark.sql.sources.fileCompressionFactor" -> "1000000",
      "spark.sql.shuffle.partitions" -> "2"
    )
  }

  private def optimized(text: String): LogicalPlan =
    Plans.execution(spark.sql(text)).optimizedPlan

  /** The optimised plan without ids and the names that Spark numbers: new ones each time. */
  private def textOf(plan: LogicalPlan): String =
    plan.toString.replaceAll("#\\d+L?", "#").replaceAll("propagatedFilter_\\d+", "_")

  /** What two plans share only if they are the same: the files they read, and ids in their order. */
  private def identityOf(plan: LogicalPlan): String = {
    val files = plan.collectLeaves().collect { case leaf: LogicalRelation =>
      leaf.relation
    }.collect {
      case relation: HadoopFsRelation => relation.location.rootPaths
    }
    val ids = mutable.LinkedHashMap.empty[String, Int]
    val text = "#\\d+".r.replaceAllIn(
      plan.toString,
      id => s"#${ids.getOrElseUpdate(id.matched, ids.size)}"
    )
    files.mkString(text, "; ", "")
  }

  // Queries that have joins to order.
  private lazy val queries: Seq[(String, String)] = {
    val paths = Files.list(folder)
    val all =
      try paths.iterator.asScala.filter(_.toString.endsWith(".sql")).toSeq.sortBy(_.toString)
      finally paths.close()
    (all.map(path => path.toString -> Files.readString(path)) ++ more)
      .filter { case (_, text) => joinsOf(optimized(text)) > 1 }
  }

  // What few queries have.
  private val more = Seq(
    "an anti join among others" ->
      """SELECT f.id, f.d, u.id AS u_id FROM facts f LEFT JOIN dims d ON f.k = d.k AND f.id > d.id
        |JOIN dupes u ON f.k = u.k WHERE d.k IS NULL AND u.id < 20""".stripMargin,
    "joins that two places share" -> Seq(7, 9)
      .map(ticket =>
        s"""SELECT ticket, year FROM inventory i JOIN dates ON quantity = day JOIN sales s ON i.item = s.item
           |WHERE ticket = $ticket""".stripMargin
      )
      .mkString(" UNION ALL ")
  )

  // With everything, by variant.
  private val plans = mutable.HashMap.empty[(String, Seq[(String, String)]), String]
  private val answers = mutable.HashMap.empty[String, Answer]

  // Many mechanisms change a query to the same plan: it is run once.
  private val same = mutable.HashSet.empty[(String, String)]

  private def planned(variant: Seq[(String, String)], without: Mechanism)(text: String) =
    withConf(variant :+ (Mechanism.setting -> without.name): _*)(optimized(text))

  private def assertSame(
      path: String,
      text: String,
      variant: Seq[(String, String)],
      without: Mechanism
  ): Unit = {
    val expected = answers.getOrElseUpdate(
      path,
      stockAnswer()(spark.sql(text))
    )
    val found =
      withConf(variant :+ (Mechanism.setting -> without.name): _*)(Answer.of(spark.sql(text)))
    Answer.difference(expected, found).foreach(difference => fail(s"$path: $difference"))
  }

  // Mechanisms without which something was another.
  private val changing = mutable.Set.empty[Mechanism]

  private val unchanging: Map[Mechanism, String] = Map(
    Mechanism.CostBounding -> "It leaves out only what cannot be the cheapest.",
    Mechanism.ComparedKeys -> "It leaves out keys that hardly count: cliques keep their order.",
    Mechanism.SharedSubplans -> "None of these queries gains by it; TPC-DS q14 does (ADR 33).",
    Mechanism.Postponement -> "None of these queries gains by it; TPC-DS q64 does (ADR 33)."
  )

  private lazy val generated: Seq[LogicalPlan] = for {
    (shape, size) <-
      Seq(
        "chain" -> 9,
        "clique" -> 13,
        "clique" -> 24,
        "snowflake" -> 26,
        "shared" -> 11,
        "shared" -> 20
      )
    mixed <- Seq(false, true)
    seed <- Seq(1, 2)
  } yield JoinShapes(shape, size, mixed, seed).plan

  private def ordered(plan: LogicalPlan, without: Option[Mechanism]): LogicalPlan =
    withConf(Mechanism.setting -> without.fold("")(_.name)) {
      new ReorderJoins(spark).apply(plan.clone())
    }

  private lazy val orders: Seq[LogicalPlan] = generated.map(ordered(_, None))

  test("names are unique, and one that is unknown is refused") {
    assert(Mechanism.all.map(_.name).distinct.size == Mechanism.all.size)
    Tables.register(spark)
    val error = withConf(Mechanism.setting -> "luck") {
      intercept[IllegalArgumentException](Mechanism.Idp2.isOn)
    }
    assert(error.getMessage.contains("luck"))
    withConf(Mechanism.setting -> "idp2, linDp") {
      assert(Mechanism.all.filterNot(_.isOn) == Seq(Mechanism.LinDp, Mechanism.Idp2))
    }
  }

  test("each mechanism is asked for where the ordering is, by its switch") {
    val ordering = Paths.get(
      System.getProperty("selinger.root"),
      Seq("src", "main", "scala", "io", "selinger", "ordering"): _*
    )
    val paths = Files.walk(ordering)
    val sources =
      try
        paths.iterator.asScala
          .filter(path => path.toString.endsWith(".scala") && !path.toString.contains("ablation"))
          .map(Files.readString(_))
          .toSeq
      finally paths.close()
    val unread = Mechanism.all.filterNot { mechanism =>
      val name = s"Mechanism.${mechanism.toString}.isOn"
      sources.exists(_.contains(name))
    }
    assert(sources.size > 20 && unread.isEmpty)
  }

  /** How many of the queries have another plan without a mechanism, all of which give the same answers. */
  private def plansChanged(mechanism: Mechanism, queries: Seq[(String, String)]): Int = {
    val changed = for {
      (path, text) <- queries
      variant <- variants
      full = plans.getOrElseUpdate((path, variant), withConf(variant: _*)(textOf(optimized(text))))
      other = planned(variant, mechanism)(text)
      if textOf(other) != full
    } yield if (same.add((path, identityOf(other)))) assertSame(path, text, variant, mechanism)
    if (changed.nonEmpty) changing += mechanism
    changed.size
  }

  /** How many of the generated joins have another order without a mechanism, each with every join once. */
  private def ordersChanged(
      mechanism: Mechanism,
      generated: Seq[(LogicalPlan, LogicalPlan)]
  ): Int = {
    val changed = generated.count { case (plan, full) =>
      val found = ordered(plan, Some(mechanism))
      val joins = joinsOf(plan)
      assert(found.resolved && found.outputSet == plan.outputSet && joinsOf(found) == joins)
      assert(found.collectLeaves().toSet == plan.collectLeaves().toSet)
      !found.fastEquals(full)
    }
    if (changed > 0) changing += mechanism
    changed
  }

  // Of the queries and generated joins, for each mechanism others, and one that is known to change.
  private val share = 0.05

  // Generated joins and queries that have another order or plan without a mechanism: the last test names
  // others where these do not any more.
  private val knownOrders: Map[Mechanism, Int] = Map(
    Mechanism.CoarseToFine -> 18,
    Mechanism.DoubtMargin -> 11,
    Mechanism.Ikkbz -> 5,
    Mechanism.LinDp -> 4,
    Mechanism.LongerImprovement -> 4,
    Mechanism.OuterJoins -> 2,
    Mechanism.Partitionings -> 21,
    Mechanism.RobustGain -> 10,
    Mechanism.RoughTrees -> 8,
    Mechanism.RowsBelowOne -> 10,
    Mechanism.SpanningNeighbours -> 9,
    Mechanism.SubtreeMoves -> 4,
    Mechanism.Surcharge -> 1
  )
  private val knownPlans: Map[Mechanism, String] = Map(
    Mechanism.AntiJoins -> "an anti join among others",
    Mechanism.ExactSearch -> "join_order_mark.sql",
    Mechanism.SemiJoins -> "join_order_exists.sql",
    Mechanism.SharedOrders -> "joins that two places share"
  )

  Mechanism.all.foreach { mechanism =>
    test(s"without ${mechanism.name}: the same answers where the plan is another one") {
      register()
      assert(queries.size > 10)
      withClue(Grid.clue) {
        val known = queries.filter { case (path, _) =>
          knownPlans.get(mechanism).exists(path.endsWith)
        }
        val some = (known ++ Grid.part(queries, share, mechanism.name)).distinct
        info(s"${plansChanged(mechanism, some)} plans of ${some.size} queries changed")
      }
    }

    test(s"without ${mechanism.name}: orders of generated joins have every join once") {
      withClue(Grid.clue) {
        val all = generated.indices
        val known = knownOrders.get(mechanism).toSeq
        val some = (known ++ Grid.part(all, share, mechanism.name)).distinct
          .map(i => (generated(i), orders(i)))
        info(s"${ordersChanged(mechanism, some)} orders of ${some.size} changed")
      }
    }
  }

  // After all others, which fill in what it looks at.
  test("each mechanism changes some plan or order, but those that say why not") {
    register()
    // By chance, it may have changed none of those that it was tried with.
    (Mechanism.all.toSet -- changing -- unchanging.keySet).foreach { mechanism =>
      val order =
        generated.indices.find(i => ordersChanged(mechanism, Seq((generated(i), orders(i)))) > 0)
      def query = queries.find(query => plansChanged(mechanism, Seq(query)) > 0).map(_._1)
      info(s"${mechanism.name} changes ${order.map(i => s"order $i").orElse(query)}")
    }
    val rest = Mechanism.all.toSet -- changing
    assert(rest.subsetOf(unchanging.keySet), s"unchanged: ${rest.mkString(", ")}")
  }
}
