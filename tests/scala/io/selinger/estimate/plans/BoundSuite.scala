package io.selinger.estimate.plans

import io.selinger.core.PlanningPass
import io.selinger.testing.{Estimates, Plans, RandomQueries, SharedSession, Tables}
import org.scalatest.funsuite.AnyFunSuite

/** Law 4 on real data: what is said not to be exceeded is not exceeded. */
class BoundSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private val seed = sys.env.get("SELINGER_SEED").map(_.toLong).getOrElse(77L)

  private val handwritten = Seq(
    "SELECT DISTINCT a.k FROM facts a JOIN dupes b ON a.k = b.k",
    "SELECT * FROM dupes a JOIN dupes b ON a.k <=> b.k",
    "SELECT * FROM dims a LEFT JOIN (SELECT k, count(*) AS n FROM facts GROUP BY k) b ON a.k = b.k",
    "SELECT * FROM dims a FULL JOIN (SELECT k, s FROM facts GROUP BY k, s) b ON a.k = b.k AND a.s = b.s",
    "SELECT * FROM dims a RIGHT JOIN nothing b ON a.k = b.k",
    "SELECT * FROM facts WHERE k IN (SELECT k FROM dims) AND d IS NULL",
    "SELECT * FROM facts WHERE d > 5 OR d IS NULL OR k NOT IN (SELECT k FROM dupes WHERE k > 3)",
    "SELECT k, s, count(*) FROM facts GROUP BY GROUPING SETS ((k), (s), (k, s), ())",
    "SELECT k FROM facts UNION ALL SELECT k FROM dims UNION SELECT cast(id AS int) FROM spans",
    "SELECT * FROM facts TABLESAMPLE (30 PERCENT)",
    "(SELECT id FROM facts LIMIT 7) UNION ALL (SELECT id FROM dims LIMIT 3 OFFSET 2)",
    "SELECT a.id FROM dims a LEFT JOIN dupes b ON a.id = b.id LIMIT 40",
    "SELECT count(*) FROM facts WHERE false",
    "SELECT max(id) FROM nothing",
    "SELECT id, tag FROM dims JOIN (SELECT k, tag FROM nested LATERAL VIEW OUTER explode(tags) t AS tag) USING (k)",
    "SELECT f.id FROM facts f JOIN spans s ON f.k BETWEEN s.low AND s.high",
    "SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM dupes",
    "SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM dupes) WHERE n < 3",
    "SELECT * FROM VALUES (1), (2), (2) AS v(k) JOIN dupes USING (k)",
    "SELECT a.id FROM range(50) a JOIN range(20, 90) b ON a.id = b.id",
    "SELECT k, (SELECT max(d.id) FROM dims d WHERE d.k = dupes.k) FROM dupes",
    "SELECT k FROM dims INTERSECT SELECT k FROM dupes",
    "SELECT k FROM dims EXCEPT ALL SELECT k FROM dupes"
  )

  private def check(text: String): Unit = {
    PlanningPass.start()
    val df = spark.sql(text)
    val plan = Plans.execution(df).optimizedPlan
    LeafStatistics.estimator.estimate(plan).foreach { estimate =>
      Estimates.problem(estimate).foreach(problem => fail(s"$problem\n$text\n$plan"))
      val rows = df.collect().length
      assert(estimate.bound.forall(rows <= _), s"$rows rows, bound ${estimate.bound}\n$text\n$plan")
    }
  }

  handwritten.foreach { text =>
    test(s"the bound holds: $text") {
      Tables.register(spark)
      check(text)
    }
  }

  test(s"the bound holds for random queries (seed $seed)") {
    Tables.register(spark)
    val queries = new RandomQueries(seed)
    (1 to 25).foreach(_ => check(queries.next()))
  }
}
