package io.selinger.ordering.graph

import io.selinger.conf.SelingerConf
import io.selinger.ordering.ReorderJoins
import io.selinger.testing.{Answer, Grid, Plans, SharedSession, Tables}
import org.apache.spark.sql.DataFrame
import org.apache.spark.sql.catalyst.analysis.EliminateSubqueryAliases
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}
import org.scalatest.funsuite.AnyFunSuite

/** Outer joins that only find rows without a partner. */
class AntiJoinsSuite extends AnyFunSuite with SharedSession {

  override protected def ofSuite: Seq[(String, String)] = SharedSession.interpreted

  private def kinds(plan: LogicalPlan): Seq[JoinType] =
    plan.collect { case join: Join => join.joinType }

  private def stock(query: String): DataFrame =
    withConf(SelingerConf.MODE.key -> "off") {
      val df = spark.sql(query)
      Plans.execution(df).optimizedPlan
      df
    }

  /** Joins of the optimised plan once [[AntiJoins]] has seen it. */
  private def rewritten(query: String): Seq[JoinType] =
    kinds(AntiJoins.rewritten(Plans.execution(stock(query)).optimizedPlan))

  private def withTables[A](body: => A): A = {
    Tables.register(spark)
    body
  }

  private def outer(kind: String, condition: String, where: String): String =
    s"SELECT ${if (kind == "RIGHT") "d" else "f"}.amount FROM facts f $kind JOIN dims d ON $condition " +
      s"WHERE $where"

  test("a key that is null says that there is no partner") {
    withTables {
      assert(rewritten(outer("LEFT", "f.k = d.k", "d.k IS NULL")) == Seq(LeftAnti))
      assert(rewritten(outer("LEFT", "f.k = d.k AND d.id < f.id", "d.id IS NULL")) == Seq(LeftAnti))
      assert(rewritten(outer("RIGHT", "f.k = d.k", "f.k IS NULL")) == Seq(LeftAnti))
      assert(rewritten(outer("LEFT", "f.k = d.k", "d.k IS NULL AND f.id > 7")) == Seq(LeftAnti))
    }
  }

  test("what may be null of a partner says nothing; hints, errors and columns that are used stay") {
    withTables {
      Seq(
        outer("LEFT", "f.k = d.k", "d.s IS NULL"),
        outer("LEFT", "f.k <=> d.k", "d.k IS NULL"),
        outer("LEFT", "f.k = d.k OR f.s = d.s", "d.k IS NULL"),
        outer("LEFT", "f.k = d.k", "d.k IS NULL OR f.id > 10"),
        outer("LEFT", "f.k = d.k", "d.k IS NULL AND d.s IS NULL"),
        outer("LEFT", "f.k = d.k", "d.k IS NULL").replace("f.amount", "f.amount, d.amount"),
        outer("LEFT", "f.k = d.k", "d.k IS NULL AND monotonically_increasing_id() % 2 = 0"),
        outer("LEFT", "f.k = d.k AND 10 / (f.id - d.id) > 1", "d.k IS NULL"),
        outer("LEFT", "f.k = d.k", "d.k IS NULL").replace("SELECT", "SELECT /*+ MERGE(d) */")
      ).foreach(query => assert(rewritten(query) == Seq(LeftOuter), query))
      assert(rewritten(outer("LEFT", "f.k = d.k", "f.k IS NULL")).forall(_ == LeftOuter))
      assert(rewritten(outer("FULL", "f.k = d.k", "d.k IS NULL")).forall(_ != LeftAnti))
      val plain = Plans.execution(stock("SELECT f.id FROM facts f LEFT JOIN dims d ON f.k = d.k"))
      assert(AntiJoins.rewritten(plain.optimizedPlan) eq plain.optimizedPlan)
    }
  }

  test("it returns the rows of the outer join: nulls, NaN, zeros of both signs, decimals, no rows") {
    withTables {
      val others = Seq("dims" -> "", "dupes" -> " AND f.id > d.id", "nothing" -> "", "nulls" -> "")
      val keys = Seq("k", "big", "s", "d", "amount", "day", "at", "flag")
      val grid = for {
        (kind, i) <- Seq("LEFT", "RIGHT").zipWithIndex
        ((other, residual), j) <- others.zipWithIndex
        (key, k) <- keys.zipWithIndex
      } yield (kind, other, residual, key, i + j + k)
      // Every key from the left, and every table from both sides.
      val chosen =
        Grid.of(grid, more = 4)(c => (c._1 == "LEFT" && c._2 == "dims") || c._5 % 4 == 0)
      for ((kind, other, residual, key, _) <- chosen) withClue(Grid.clue) {
        val sides =
          if (kind == "LEFT") s"facts f LEFT JOIN $other d" else s"$other d RIGHT JOIN facts f"
        val query =
          s"SELECT f.id, f.$key FROM $sides ON f.$key = d.$key$residual WHERE d.$key IS NULL"
        withConf(SelingerConf.MODE.key -> "off") {
          val df = spark.sql(query)
          val rows = df.collect()
          // Once it is optimised, nothing is left of a join with an empty table.
          val anti = AntiJoins.rewritten(EliminateSubqueryAliases(Plans.execution(df).analyzed))
          assert(kinds(anti) == Seq(LeftAnti), query)
          val found = Answer.ofRows(
            spark.sessionState.executePlan(anti).executedPlan.executeCollectPublic()
          )
          assert(Answer.difference(Answer.ofRows(rows), found).isEmpty, query)
        }
      }
    }
  }

  private val third = "JOIN dupes u ON f.k = u.k"

  test("among other joins it changes places, and the rows stay the same") {
    withTables {
      for {
        kind <- Seq("LEFT", "RIGHT")
        other <- Seq("dims", "dupes", "nothing", "nulls")
        more <- Seq("", " AND f.id > 7", " AND f.k IS NULL")
      } {
        val (first, second) =
          if (kind == "LEFT") ("facts f", s"$other d") else (s"$other d", "facts f")
        val query =
          s"""SELECT f.id, f.d, u.id AS u_id FROM $first $kind JOIN $second
             |ON f.k = d.k AND f.id > d.id $third WHERE d.k IS NULL$more AND u.id < 20""".stripMargin
        val expected = stockAnswer()(spark.sql(query))
        withConf(SelingerConf.ORDER_MIN_GAIN.key -> "0") {
          val df = spark.sql(query)
          assert(Answer.difference(expected, Answer.of(df)).isEmpty, query)
          val order = Plans.decisions(df, ReorderJoins.id)
          assert(other == "nothing" || order.flatMap(_.chosen).exists(_.contains("▷")), query)
        }
      }
    }
  }

  test("the decision tells of the anti join") {
    withTables {
      val df = spark.sql(
        s"SELECT count(*) FROM facts f LEFT JOIN dims d ON f.k = d.k $third WHERE d.k IS NULL"
      )
      val made = Plans.decisions(df, ReorderJoins.id)
      assert(made.flatMap(_.chosen).exists(_.contains("▷")), made)
    }
  }

  test("an anti join that keeps its place is an outer join again") {
    withTables {
      for (kind <- Seq("LEFT", "RIGHT")) {
        val where = if (kind == "LEFT") "d.k IS NULL" else "f.k IS NULL"
        val plan = Plans.execution(stock(outer(kind, "f.k = d.k", s"$where"))).optimizedPlan
        val back = AntiJoins.restored(AntiJoins.rewritten(plan))
        assert(back.canonicalized == plan.canonicalized, back)
      }
      withConf(SelingerConf.ORDER_MIN_GAIN.key -> "0.99") {
        val query =
          s"SELECT count(*) FROM facts f LEFT JOIN dims d ON f.k = d.k $third WHERE d.k IS NULL"
        assert(kinds(Plans.execution(spark.sql(query)).optimizedPlan).contains(LeftOuter))
      }
    }
  }

  test("advice changes nothing") {
    withTables {
      val query =
        s"SELECT count(*) FROM facts f LEFT JOIN dims d ON f.k = d.k $third WHERE d.k IS NULL"
      withConf(SelingerConf.MODE.key -> "advise") {
        assert(kinds(Plans.execution(spark.sql(query)).optimizedPlan).contains(LeftOuter))
      }
    }
  }
}
