package io.selinger.estimate.plans

import io.selinger.core.{Origin, PlanningPass}
import io.selinger.estimate.{Domain, PlanEstimate}
import io.selinger.exec.AggregatePerTask
import io.selinger.stats.ColumnStatistics
import io.selinger.testing.Estimates
import io.selinger.testing.Estimates.{counted, evenly, unknown, Relation}
import org.apache.spark.sql.catalyst.dsl.expressions._
import org.apache.spark.sql.catalyst.dsl.plans._
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.internal.SQLConf
import org.apache.spark.sql.types._
import org.scalacheck.Gen
import org.scalatest.funsuite.AnyFunSuite
import org.scalatestplus.scalacheck.ScalaCheckPropertyChecks

/** Rows of each operator, from hand-made relations. */
class CardinalitySuite extends AnyFunSuite with ScalaCheckPropertyChecks {

  // A fact table of 10,000 rows over a dimension of 100.
  private val fact = counted(10000, a = evenly(0, 99), b = evenly(0, 9999))
  private val dim = counted(100, a = evenly(0, 99), b = ColumnStatistics(nullFraction = Some(0)))
  private val blind = unknown()

  private def estimate(plan: LogicalPlan): PlanEstimate =
    Estimates.estimate(plan, fact, dim, blind).getOrElse(fail(s"nothing known of\n$plan"))

  private def rows(plan: LogicalPlan): Double = estimate(plan).rows.value

  private def joined(kind: JoinType, left: Relation = fact, right: Relation = dim): Join =
    Join(left.plan, right.plan, kind, Some(left.a === right.a), JoinHint.NONE)

  // ---- joins --------------------------------------------------------------------------------

  test("an inner join on a key keeps the rows of the fact table") {
    val result = estimate(joined(Inner))
    assert(result.rows.value == 10000 && result.rows.origin == Origin.Derived)
    assert(result.upperBound >= result.rows.value)
    assert(result.bound.contains(1e6))
  }

  test("a join on keys without counts takes one side as the other's dimension") {
    val key = fact.s === dim.s
    val result = estimate(Join(fact.plan, dim.plan, Inner, Some(key), JoinHint.NONE))
    assert(result.rows.value == 10000 && result.rows.origin == Origin.Default)
  }

  test("nulls find no partner") {
    val half = counted(10000, a = evenly(0, 99, nulls = 0.5))
    val result = Estimates.estimate(joined(Inner, half), half, dim).get
    assert(result.rows.value == 5000)
  }

  test("a key that is proven unique bounds a join by the other side") {
    val unique = dim.plan.groupBy(dim.a)(dim.a)
    val key = Some(fact.a === unique.output.head)
    assert(estimate(Join(fact.plan, unique, Inner, key, JoinHint.NONE)).bound.contains(10000.0))
    assert(estimate(Join(unique, fact.plan, Inner, key, JoinHint.NONE)).bound.contains(10000.0))
  }

  test("a column that merely looks like a key lowers no upper bound") {
    val result = estimate(joined(Inner))
    assert(result.upperBound == 1e6 && result.bound.contains(1e6))
  }

  test("a key that is unique only together with another bounds nothing") {
    val pairs = dim.plan.groupBy(dim.a, dim.b)(dim.a, dim.b)
    val key = Some(fact.a === pairs.output.head)
    assert(estimate(Join(fact.plan, pairs, Inner, key, JoinHint.NONE)).bound.contains(1e6))
  }

  test("a null-safe key is not taken for a proven one") {
    val unique = dim.plan.groupBy(dim.a)(dim.a)
    val key = Some(fact.a <=> unique.output.head)
    assert(estimate(Join(fact.plan, unique, Inner, key, JoinHint.NONE)).bound.forall(_ >= 10000))
  }

  test("a product of all rows without a condition") {
    val product = estimate(Join(fact.plan, dim.plan, Cross, None, JoinHint.NONE))
    assert(product.rows.value == 1e6 && product.bound.contains(1e6))
  }

  test("a condition beside the keys keeps a part; its upper bound is that it keeps all") {
    val both = And(fact.a === dim.a, fact.b < dim.b)
    val result = estimate(Join(fact.plan, dim.plan, Inner, Some(both), JoinHint.NONE))
    assert(result.rows.value < rows(joined(Inner)))
    assert(result.upperBound >= rows(joined(Inner)))
  }

  test("outer joins return the preserved rows at least") {
    val few = counted(100, a = evenly(1000, 1099))
    def outer(kind: JoinType) = Estimates.estimate(joined(kind, fact, few), fact, few).get
    assert(outer(LeftOuter).rows.value >= 10000)
    assert(outer(RightOuter).rows.value >= 100)
    assert(outer(FullOuter).rows.value >= 10000)
    assert(outer(FullOuter).bound.contains(1e6 + 10000 + 100))
    assert(outer(LeftSingle).bound.exists(_ >= 10000))
  }

  test("an outer join makes nulls: filtering on them may keep every preserved row") {
    val missing = joined(LeftOuter).where(dim.a.isNull)
    assert(estimate(missing).upperBound >= 10000)
    assert(rows(missing) > 0)
    val missingLeft = joined(RightOuter, dim, fact).where(dim.a.isNull)
    assert(estimate(missingLeft).upperBound >= 10000)
  }

  test("semi and anti joins return no more than their left side") {
    Seq(LeftSemi, LeftAnti).foreach { kind =>
      val result = estimate(joined(kind))
      assert(result.rows.value > 0 && result.rows.value <= 10000)
      assert(result.upperBound == 10000 && result.bound.contains(10000.0))
    }
  }

  test("an existence join returns just its left side") {
    val exists = AttributeReference("exists", BooleanType)()
    assert(rows(joined(ExistenceJoin(exists))) == 10000)
  }

  test("its flag is as often true as rows find partners") {
    val exists = AttributeReference("exists", BooleanType)()
    val flagged = joinedWith(colours, fact.plan, ExistenceJoin(exists))(colours.b === 3.0)
    def kept(condition: Expression) =
      Estimates.estimate(flagged.where(condition), fact, colours).get.rows.value
    assert(math.abs(kept(exists) - 1000) < 10)
    assert(math.abs(kept(Not(exists)) - 9000) < 10)
    assert(math.abs(kept(exists === true) - 1000) < 10)
  }

  // ---- keys of joins ------------------------------------------------------------------------

  private val colours = counted(100, a = evenly(0, 99), b = evenly(0, 9))

  private def joinedWith(right: Relation, left: LogicalPlan, kind: JoinType = Inner)(
      filter: Expression
  ): LogicalPlan = {
    val key = left.output.head === right.a
    Join(left, right.plan.where(filter), kind, Some(key), JoinHint.NONE)
  }

  test("a tenth of a dimension keeps a tenth of the facts, however few of these are left") {
    val few = fact.plan.where(fact.b < 100.0)
    val plan = joinedWith(colours, few)(colours.b === 3.0)
    assert(math.abs(Estimates.estimate(plan, fact, colours).get.rows.value - 10) < 0.5)
  }

  test("keys meet where their ranges overlap") {
    val far = counted(100, a = evenly(90, 189))
    val result = Estimates.estimate(joined(Inner, fact, far), fact, far).get
    // A tenth of the facts, each with the one partner that its key has.
    assert(math.abs(result.rows.value - 1000) < 1)
    val key = result.columns(far.a.exprId)
    assert(key.min.contains(90.0) && key.max.contains(99.0) && key.distinct.exists(_ < 11))
  }

  test("ranges that do not meet leave a row, not nothing") {
    val apart = counted(100, a = evenly(500, 599))
    val result = Estimates.estimate(joined(Inner, fact, apart), fact, apart).get
    assert(result.rows.value >= 1 && result.rows.value < 10)
    assert(Estimates.problem(result).isEmpty)
  }

  test("a filter on a dimension is taken to choose what the facts have") {
    // A calendar of 10,000 days, and sales of 1,000 of them.
    val calendar = counted(10000, a = evenly(0, 9999), b = evenly(0, 99))
    val sales = counted(100000, a = evenly(5000, 5999))
    val year = joinedWith(calendar, sales.plan)(calendar.b === 50.0)
    assert(math.abs(Estimates.estimate(year, calendar, sales).get.rows.value - 10000) < 100)
    val all = joinedWith(calendar, sales.plan)(calendar.b >= 0.0)
    assert(math.abs(Estimates.estimate(all, calendar, sales).get.rows.value - 100000) < 1000)
    // Of 2,000 days that are left, as many as fit are taken to be among those of the sales.
    val some = joinedWith(calendar, sales.plan)(calendar.b < 20.0)
    assert(math.abs(Estimates.estimate(some, calendar, sales).get.rows.value - 100000) < 5000)
  }

  test("where a sample has shown the days that are left, these are the ones that meet") {
    def days(from: Double, to: Double): Relation = {
      val all = counted(2000, a = evenly(from, to).copy(distinct = Some(2000), rangeSeen = true))
      val domain = Domain(Some(to - from + 1), 10000, all.a.exprId.id)
      all.copy(estimate = all.estimate.map(_.copy(domains = Map(all.a.exprId -> domain))))
    }
    val sales = counted(100000, a = evenly(5000, 5999))
    def rows(calendar: Relation): Double =
      Estimates.estimate(joined(Inner, sales, calendar), sales, calendar).get.rows.value
    // Every fifth day of the whole calendar, and all of two thousand.
    assert(math.abs(rows(days(0, 9999)) - 20000) < 1000)
    assert(math.abs(rows(days(5000, 6999)) - 100000) < 1000)
    assert(rows(days(7000, 8999)) < 10)
  }

  test("several keys have at most as many combinations as their relation has rows") {
    val sold = counted(10000, a = evenly(0, 999), b = evenly(0, 999))
    val returned = counted(500, a = evenly(0, 999), b = evenly(0, 999))
    val keys = And(sold.a === returned.a, sold.b === returned.b)
    val plan = Join(sold.plan, returned.plan, Inner, Some(keys), JoinHint.NONE)
    assert(math.abs(Estimates.estimate(plan, sold, returned).get.rows.value - 500) < 1)
  }

  test("keys of two relations are not those of one row of a third") {
    // Customers' addresses and shops' cities: the address finds its row, the city is left to chance.
    val customers = counted(10000, a = evenly(0, 999), b = evenly(0, 99))
    val shops = counted(10, a = evenly(0, 9), b = evenly(0, 99))
    val addresses = counted(1000, a = evenly(0, 999), b = evenly(0, 99))
    val sides = Join(customers.plan, shops.plan, Cross, None, JoinHint.NONE)
    def rows(city: Attribute) = {
      val keys = And(customers.a === addresses.a, city === addresses.b)
      val plan = Join(sides, addresses.plan, Inner, Some(keys), JoinHint.NONE)
      Estimates.estimate(plan, customers, shops, addresses).get.rows.value
    }
    assert(math.abs(rows(shops.b) - 1000) < 10)
    assert(math.abs(rows(customers.b) - 10000) < 100)
  }

  test("semi and anti joins keep rows by the keys that the other side still has") {
    def reduced(kind: JoinType) =
      Estimates.estimate(joinedWith(colours, fact.plan, kind)(colours.b === 3.0), fact, colours)
    assert(math.abs(reduced(LeftSemi).get.rows.value - 1000) < 10)
    assert(math.abs(reduced(LeftAnti).get.rows.value - 9000) < 10)
    assert(reduced(LeftAnti).get.upperBound == 10000)
  }

  test("two sides that a subquery has reduced to the same keys have the rest of them in common") {
    // As Spark repeats `key IN (…)` for every column that is equal to the key.
    val orders = counted(10000, a = evenly(0, 9999), b = evenly(0, 99))
    val lines = counted(50000, a = evenly(0, 9999), b = evenly(0, 99))
    val (large, others) = (counted(50, a = evenly(0, 9999)), counted(50, a = evenly(0, 9999)))
    def semi(side: Estimates.Relation, wanted: LogicalPlan) =
      Join(side.plan, wanted, LeftSemi, Some(side.a === wanted.output.head), JoinHint.NONE)
    def rows(ofOrders: LogicalPlan, ofLines: LogicalPlan) = {
      val sides = (semi(orders, ofOrders), semi(lines, ofLines))
      val plan = Join(sides._1, sides._2, Inner, Some(orders.a === lines.a), JoinHint.NONE)
      Estimates.estimate(plan, orders, lines, large, others).get.rows.value
    }
    assert(math.abs(rows(large.plan, large.plan) - 250) < 10)
    assert(rows(large.plan, others.plan) < 5)
    // The same column under another predicate is another subquery.
    assert(rows(large.plan, large.plan.where(large.a < 2000.0)) < 5)
  }

  test("rows that an outer join keeps are not reduced to what the other side was") {
    val (a, b, c) = (
      counted(10000, a = evenly(0, 9999), b = evenly(0, 99)),
      counted(10000, a = evenly(0, 9999), b = evenly(0, 99)),
      counted(10000, a = evenly(0, 9999), b = evenly(0, 99))
    )
    val wanted = counted(50, a = evenly(0, 9999))
    def semi(side: Estimates.Relation) =
      Join(side.plan, wanted.plan, LeftSemi, Some(side.a === wanted.a), JoinHint.NONE)
    def rows(kind: JoinType) = {
      val pairs = Join(a.plan, semi(b), kind, Some(a.a === b.a), JoinHint.NONE)
      val plan = Join(pairs, semi(c), Inner, Some(a.a === c.a), JoinHint.NONE)
      Estimates.estimate(plan, a, b, c, wanted).get.rows.value
    }
    // Fifty of ten thousand keys are in c; in a all, or just the same fifty.
    assert(math.abs(rows(LeftOuter) - 50) < 5)
    assert(math.abs(rows(Inner) - 50) < 5)
  }

  test("an outer join expects nulls where a row has no partner, and is certain of none") {
    val outer = joinedWith(colours, fact.plan, LeftOuter)(colours.b === 3.0)
    def left(condition: Expression) =
      Estimates.estimate(outer.where(condition), fact, colours).get
    assert(math.abs(left(colours.a.isNull).rows.value - 9000) < 100)
    assert(math.abs(left(colours.a.isNotNull).rows.value - 1000) < 100)
    assert(
      left(colours.a.isNull).upperBound >= 10000 && left(colours.a.isNotNull).upperBound >= 10000
    )
  }

  test("nulls find each other by a null-safe key only") {
    val half = counted(1000, a = evenly(0, 9, nulls = 0.5))
    val safe = Some(half.a <=> dim.a)
    val plan = Join(half.plan, dim.plan, Inner, safe, JoinHint.NONE)
    val equal = Estimates.estimate(joined(Inner, half), half, dim).get.rows.value
    assert(Estimates.estimate(plan, half, dim).get.rows.value > equal)
  }

  test("columns lose the values that no joined row has") {
    val plan = joinedWith(colours, fact.plan)(colours.b === 3.0)
    val result = Estimates.estimate(plan, fact, colours).get
    assert(result.columns(fact.a.exprId).distinct.exists(d => d > 9 && d < 11))
    assert(result.columns(fact.b.exprId).distinct.exists(_ <= 1000.5))
    assert(result.columns(colours.b.exprId).distinct.contains(1.0))
  }

  test("a condition beside the keys is estimated on the columns of both sides") {
    val low = And(fact.a === colours.a, fact.b < 1000.0)
    val plan = Join(fact.plan, colours.plan, Inner, Some(low), JoinHint.NONE)
    assert(math.abs(Estimates.estimate(plan, fact, colours).get.rows.value - 1000) < 10)
  }

  test("alternatives that were pushed into both sides take their share once") {
    val cases = Seq((1, 2.0), (3, 4.0)).map { case (x, y) =>
      And(fact.b < x * 100.0, colours.b === y)
    }
    val left = fact.plan.where(Or(fact.b < 100.0, fact.b < 300.0))
    val right = colours.plan.where(Or(colours.b === 2.0, colours.b === 4.0))
    val condition = And(fact.a === colours.a, Or(cases.head, cases.last))
    val without = Join(left, right, Inner, Some(fact.a === colours.a), JoinHint.NONE)
    val plan = Join(left, right, Inner, Some(condition), JoinHint.NONE)
    val (all, some) = (
      Estimates.estimate(without, fact, colours).get.rows.value,
      Estimates.estimate(plan, fact, colours).get.rows.value
    )
    assert(some < all && some > all / 4)
  }

  test("keys that identify no row: between independence and containment") {
    val weeks = counted(10000, a = evenly(0, 999), b = evenly(0, 99))
    val others = counted(10000, a = evenly(0, 999), b = evenly(0, 99))
    val plan = Join(
      weeks.plan.where(weeks.b === 7.0).groupBy(weeks.a)(weeks.a),
      others.plan.where(others.b === 7.0).groupBy(others.a)(others.a),
      Inner,
      Some(weeks.a === others.a),
      JoinHint.NONE
    )
    val rows = Estimates.estimate(plan, weeks, others).get.rows.value
    // A hundred of a thousand weeks on both sides: ten of them meet, or all.
    assert(rows > 15 && rows < 80)
  }

  // ---- groups -------------------------------------------------------------------------------

  test("columns of a dimension have at most as many combinations as it has rows") {
    val wide = joinedWith(colours, fact.plan)(colours.b >= 0.0)
    val groups = wide.groupBy(colours.a, colours.b, colours.s)(colours.a)
    assert(Estimates.estimate(groups, fact, colours).get.rows.value <= 100)
  }

  test("columns of a relation that was joined by its key depend on what that was compared with") {
    val lines = counted(100000, a = evenly(0, 999), b = evenly(0, 49))
    val orders = counted(1000, a = evenly(0, 999), b = evenly(0, 99))
    val customers = counted(100, a = evenly(0, 99), b = evenly(0, 19))
    def on(left: LogicalPlan, right: LogicalPlan, l: Attribute, r: Attribute) =
      Join(left, right, Inner, Some(l === r), JoinHint.NONE)
    val joined = on(
      on(lines.plan, orders.plan, lines.a, orders.a),
      customers.plan,
      orders.b,
      customers.a
    )
    def groups(keys: Attribute*): Double =
      Estimates.estimate(joined.groupBy(keys: _*)(), lines, orders, customers).get.rows.value
    // An order has one customer, and that one country.
    assert(groups(lines.a, orders.b, customers.b) == 1000)
    assert(groups(orders.a, customers.b) == 1000)
    assert(groups(orders.b, customers.b) == 100)
    // Products have nothing to do with either.
    assert(groups(lines.b, customers.b) > 900)
  }

  test("rows without a partner are not determined by its key, nor are lines by a part of theirs") {
    val customers = counted(10000, a = evenly(0, 9999), b = evenly(0, 4999))
    val orders = counted(100, a = evenly(0, 99), b = evenly(0, 99))
    def groups(kind: JoinType): Double = {
      val key = Some(customers.a === orders.a)
      val joined = Join(customers.plan, orders.plan, kind, key, JoinHint.NONE)
      val grouped = joined.groupBy(customers.b, orders.a)()
      Estimates.estimate(grouped, customers, orders).get.rows.value
    }
    assert(groups(LeftOuter) >= 4000 && groups(FullOuter) >= 4000)
    assert(groups(Inner) <= 100)
    // Ten thousand pairs of columns with a hundred values each need not be all different.
    val lines = counted(10000, a = evenly(0, 99), b = evenly(0, 99))
    val other = counted(10000, a = evenly(0, 99), b = evenly(0, 99))
    val both = Some(lines.a === other.a && lines.b === other.b)
    val pairs = Join(lines.plan, other.plan, Inner, both, JoinHint.NONE)
    assert(Estimates.estimate(pairs, lines, other).get.determinants.isEmpty)
  }

  test("counts, sums and averages of groups lie about their means") {
    val (count, total, mean) = (count1().as("n"), sum(fact.b).as("t"), avg(fact.b).as("m"))
    val groups = fact.plan.groupBy(fact.a)(fact.a, count, total, mean)
    // A hundred groups of a hundred rows; sums about 500,000 ± 58,000, averages 5,000 ± 289.
    val (n, t, m) = (groups.output(1), groups.output(2), groups.output(3))
    def kept(condition: Expression): Double = rows(groups.where(condition))
    assert(math.abs(kept(n > 100L) - 50) < 5 && kept(n > 200L) <= 1.0 && kept(n > 50L) > 98)
    assert(math.abs(kept(t.cast(DoubleType) > 500000.0) - 50) < 15)
    assert(kept(t > 1000000.0) <= 1.0 && kept(t < 1000000.0) > 98)
    assert(math.abs(kept(m > 5000.0) - 50) < 5 && kept(m > 6000.0) < 1.1)
    val share = fact.plan.groupBy(fact.a)(fact.a, (sum(fact.b) * 0.5).as("half"))
    def half(condition: Expression): Double = rows(share.where(condition))
    assert(math.abs(half(share.output(1) > 250000.0) - 50) < 15)
    assert(half(share.output(1) > 500000.0) <= 1.0)
  }

  test("nulls are not added up, and of a few rows nothing is said") {
    def kept(nulls: Double, groups: Double)(total: Attribute => Expression): Double = {
      val lines = counted(
        10000,
        a = evenly(1, groups),
        b = evenly(0, 100).copy(nullFraction = Some(nulls))
      )
      val counts =
        lines.plan.groupBy(lines.a)(lines.a, count(lines.b).as("n"), sum(lines.b).as("t"))
      Estimates.estimate(counts.where(total(counts.output(1))), lines).get.rows.value
    }
    // Groups of a hundred rows, of which half or a quarter have a value.
    assert(math.abs(kept(0.5, 100)(_ > 50L) - 50) < 5)
    assert(math.abs(kept(0.75, 100)(_ > 25L) - 50) < 5)
    assert(kept(0.75, 100)(_ > 60L) <= 1.0)
    assert(kept(0.0, 100)(_ > 60L) > 98)
    // Two rows a group are not spread as the normal distribution is: the assumed third.
    assert(kept(0.0, 5000)(_ > 2L) > 500)
  }

  test("every group has a row with its least value") {
    val other = fact.plan.newInstance()
    val least = min(other.output(1)).as("least")
    val first = min(other.output.head).as("first")
    val groups = other.groupBy(other.output.head)(other.output.head, first, least)
    def matching(condition: Expression): Double = {
      val copy = Relation(other, fact.estimate.map(renamed(_, fact.plan.output, other.output)))
      val join = Join(fact.plan, groups, Inner, Some(condition), JoinHint.NONE)
      Estimates.estimate(join, fact, copy).get.rows.value
    }
    val sameGroup = fact.a === groups.output.head
    assert(matching(sameGroup && fact.b === groups.output.last) >= 100)
    assert(matching(sameGroup && fact.b === groups.output.last) < 200)
    // Nothing says which group's.
    assert(matching(fact.b === groups.output.last) < 200)
    // The least of one column has nothing to do with another.
    assert(matching(sameGroup && fact.b === groups.output(1).cast(DoubleType)) < 50)
  }

  private def count1(): Expression = count(Literal(1))

  private def renamed(
      estimate: PlanEstimate,
      from: Seq[Attribute],
      to: Seq[Attribute]
  ): PlanEstimate = {
    val ids = from.map(_.exprId).zip(to.map(_.exprId)).toMap
    estimate.copy(columns = estimate.columns.map { case (id, column) => ids(id) -> column })
  }

  test("few rows leave combinations of independent columns empty") {
    val few = joinedWith(colours, fact.plan)(colours.b === 3.0)
    val groups = few.groupBy(fact.b, colours.a)(fact.b)
    assert(Estimates.estimate(groups, fact, colours).get.rows.value <= 1000.5)
  }

  test("each grouping set has groups of its own") {
    val (a, b) = (AttributeReference("a", IntegerType)(), AttributeReference("b", DoubleType)())
    val gid = AttributeReference("spark_grouping_id", LongType)()
    val blank = (kind: DataType) => Literal(null, kind)
    val copies = Expand(
      Seq(
        Seq(colours.a, colours.b, Literal(0L)),
        Seq(colours.a, blank(DoubleType), Literal(1L)),
        Seq(blank(IntegerType), blank(DoubleType), Literal(3L))
      ),
      Seq(a, b, gid),
      colours.plan
    )
    val groups = copies.groupBy(a, b, gid)(a)
    // 100 rows have 100 combinations at most, 100 values of a, and the total.
    assert(math.abs(Estimates.estimate(groups, colours).get.rows.value - 201) < 1)
    val column = Estimates.estimate(copies, colours).get.columns(a.exprId)
    assert(column.distinct.contains(100.0) && column.nullFraction.isEmpty)
  }

  test("the first rows of each group are as many as there are groups, times that") {
    val number = WindowExpression(
      RowNumber(),
      WindowSpecDefinition(
        Seq(fact.a),
        Seq(fact.b.asc),
        SpecifiedWindowFrame(RowFrame, UnboundedPreceding, CurrentRow)
      )
    ).as("n")
    val ranks = Window(Seq(number), Seq(fact.a), Seq(fact.b.asc), fact.plan)
    assert(math.abs(rows(ranks.where(number.toAttribute <= 3)) - 300) < 5)
    val limited = WindowGroupLimit(Seq(fact.a), Seq(fact.b.asc), RowNumber(), 3, fact.plan)
    assert(rows(limited) == 300 && estimate(limited).bound.contains(10000.0))
  }

  // ---- other operators ----------------------------------------------------------------------

  test("a projection carries columns through aliases and widening casts") {
    val renamed = fact.plan.select(fact.a.as("x"), fact.a.cast(LongType).as("wide"))
    val columns = renamed.output.map(column => estimate(renamed).columns.get(column.exprId))
    assert(columns.forall(_.flatMap(_.distinct).contains(100.0)))
    assert(columns.forall(_.flatMap(_.max).contains(99.0)))
  }

  test("a function of a column has as many values at most, and no range unless it keeps one") {
    val computed = fact.plan.select(
      fact.a.cast(ByteType).as("narrow"),
      (fact.a + 1).as("moved"),
      Rand(Literal(1L)).as("random")
    )
    val columns = computed.output.map(column => estimate(computed).columns.get(column.exprId))
    assert(columns.take(2).forall(_.flatMap(_.distinct).contains(100.0)))
    assert(columns.head.flatMap(_.max).isEmpty && columns(1).flatMap(_.max).contains(100.0))
    assert(columns(2).isEmpty)
  }

  test("an aggregate returns a row a group, and one without keys just one") {
    val groups = estimate(fact.plan.groupBy(fact.a)(fact.a, count(Literal(1)).as("n")))
    assert(groups.rows.value == 100 && groups.bound.contains(10000.0) && groups.upperBound == 10000)
    assert(estimate(fact.plan.groupBy()(count(Literal(1)).as("n"))).bound.contains(1.0))
    assert(rows(fact.plan.groupBy(fact.a, fact.b)(fact.a)) == 10000)
  }

  test("an aggregate of each task returns the groups of all tasks") {
    val groups = Aggregate(Seq(fact.a), Seq(fact.a), fact.plan, Some(AggregatePerTask))
    def inTasksOf(bytes: Long): Double = {
      val conf = new SQLConf
      conf.setConf(SQLConf.FILES_MAX_PARTITION_BYTES, bytes)
      SQLConf.withExistingConf(conf)(rows(groups))
    }
    val bytes = (estimate(fact.plan).rowBytes(fact.plan.output) * 10000).toLong
    assert(inTasksOf(bytes) == 100)
    assert(math.abs(inTasksOf(bytes / 10) - 1000) < 10)
    // Each task has fewer rows than there are groups.
    assert(inTasksOf(bytes / 1000) > 9000 && inTasksOf(1) > 9999)
  }

  test("keys that are computed from other keys make no more groups") {
    def by(keys: NamedExpression*): Double = {
      val input = fact.plan.select((fact.a +: keys): _*)
      rows(input.groupBy(input.output: _*)(input.output: _*))
    }
    val hash = new Murmur3Hash(Seq(fact.a)).as("hash")
    assert(by(hash) == 100)
    assert(by(fact.a.as("same"), hash) == 100)
    // Of another column, of no column, and different for each row.
    assert(by(new Murmur3Hash(Seq(fact.b)).as("other")) > 100)
    assert(by(Rand(Literal(1L)).as("random")) > 100)
    assert(rows(fact.plan.groupBy(fact.a, new Murmur3Hash(Seq(fact.a)))(fact.a)) == 100)
    // The other column alone is not a key.
    val alone = fact.plan.select(hash)
    assert(rows(alone.groupBy(alone.output: _*)(alone.output: _*)) > 1)
  }

  test("groups of unknown keys are a guess, at most every row") {
    val groups = estimate(fact.plan.groupBy(fact.s)(fact.s))
    assert(
      groups.rows.origin == Origin.Default && groups.rows.value <= 10000 && groups.rows.value > 0
    )
  }

  test("DISTINCT is an aggregate by all columns") {
    assert(rows(Distinct(fact.plan.select(fact.a))) == 100)
  }

  test("a union adds up, and is unknown where one input is") {
    assert(rows(Union(fact.plan, dim.plan)) == 10100)
    assert(estimate(Union(fact.plan, dim.plan)).bound.contains(10100.0))
    assert(Estimates.estimate(Union(fact.plan, blind.plan), fact, blind).isEmpty)
  }

  test("columns of a union span both inputs") {
    val far = counted(100, a = evenly(500, 599))
    val both = Union(fact.plan, far.plan)
    val column = Estimates.estimate(both, fact, far).get.columns(both.output.head.exprId)
    assert(column.min.contains(0.0) && column.max.contains(599.0))
  }

  test("a limit bounds anything, known or not") {
    assert(estimate(fact.plan.limit(7)).bound.contains(7.0))
    assert(estimate(blind.plan.limit(7)).bound.contains(7.0))
    assert(rows(dim.plan.limit(1000)) == 100)
  }

  test("a local limit holds for each partition, so it bounds nothing by itself") {
    val result = estimate(LocalLimit(Literal(7), fact.plan))
    assert(result.bound.forall(_ >= 10000))
  }

  test("an offset takes rows away, down to the one that is never ruled out") {
    assert(rows(Offset(Literal(40), dim.plan)) == 60)
    assert(rows(Offset(Literal(4000), dim.plan)) == 1)
    assert(estimate(Offset(Literal(40), dim.plan)).bound.contains(100.0))
  }

  test("a sample keeps its share; with replacement nothing is certain") {
    def sample(replace: Boolean) = estimate(Sample(0, 0.1, replace, 1L, fact.plan))
    assert(math.abs(sample(replace = false).rows.value - 1000) < 1e-6)
    assert(sample(replace = false).bound.contains(10000.0))
    assert(sample(replace = true).bound.isEmpty)
  }

  test("grouping sets copy their input") {
    val copies = Expand(Seq(Seq(fact.a), Seq(Literal(null, IntegerType))), Seq(fact.a), fact.plan)
    assert(rows(copies) == 20000 && estimate(copies).bound.contains(20000.0))
  }

  test("lists are of unknown length") {
    val list = AttributeReference("x", IntegerType)()
    val exploded = Generate(
      Explode(CreateArray(Seq(fact.a, fact.a))),
      Nil,
      outer = false,
      None,
      Seq(list),
      fact.plan
    )
    assert(estimate(exploded).bound.isEmpty)
    assert(estimate(exploded).rows.origin == Origin.Default)
  }

  test("operators that only move rows change nothing") {
    Seq[LogicalPlan](
      fact.plan.orderBy(fact.a.asc),
      fact.plan.repartition(7),
      fact.plan.subquery("f"),
      RebalancePartitions(Nil, fact.plan),
      ReturnAnswer(fact.plan)
    ).foreach { plan =>
      assert(estimate(plan).rows == estimate(fact.plan).rows)
      assert(estimate(plan).bound.contains(10000.0))
    }
  }

  test("operators that run user code make everything uncertain") {
    val script = ScriptTransformation("cat", fact.plan.output, fact.plan, null)
    val result = estimate(script)
    assert(result.rows.origin == Origin.Default && result.bound.isEmpty)
    assert(result.upperBound == PlanEstimate.most)
  }

  test("an unknown leaf makes unknown whatever is above it") {
    Seq[LogicalPlan](
      blind.plan,
      blind.plan.where(blind.a === 1),
      blind.plan.groupBy(blind.a)(blind.a),
      joined(Inner, fact, blind),
      joined(LeftSemi, fact, blind),
      Distinct(blind.plan)
    ).foreach { plan =>
      assert(Estimates.estimate(plan, fact, blind).isEmpty)
    }
  }

  test("a leaf hears the predicates above it, and what it has applied counts once") {
    val filter = fact.plan.where(And(fact.a === 5, fact.b < 10.0))
    val heard = Iterator.from(1)
    val estimator = new CardinalityEstimator({ (_, predicates) =>
      heard.next()
      assert(predicates.map(_.sql).toSet == Set("(a = 5)", "(b < 10.0D)"))
      Some((PlanEstimate.exactly(100, Origin.Exact), predicates.filter(_.sql == "(a = 5)")))
    })
    assert(estimator.estimate(filter).map(_.rows.value).exists(rows => rows > 10 && rows < 100))
    assert(heard.next() == 2)
  }

  test("a node is estimated once in a planning pass, and anew in the next") {
    val calls = Iterator.from(0)
    val estimator = new CardinalityEstimator({ (_, _) =>
      calls.next()
      Some((PlanEstimate.exactly(1, Origin.Exact), Nil))
    })
    PlanningPass.start()
    (1 to 5).foreach(_ => estimator.estimate(fact.plan))
    assert(calls.next() == 1)
    PlanningPass.start()
    estimator.estimate(fact.plan)
    assert(calls.next() == 3)
  }

  // ---- random plans -------------------------------------------------------------------------

  implicit override val generatorDrivenConfig: PropertyCheckConfiguration =
    PropertyCheckConfiguration(minSuccessful = 300, sizeRange = 5)

  private val joinTypes =
    Seq(Inner, Cross, LeftOuter, RightOuter, FullOuter, LeftSemi, LeftAnti, LeftSingle)

  /** A plan with columns a, b, s over some of these relations. */
  private def plans(relations: Seq[Relation], depth: Int): Gen[LogicalPlan] = {
    val leaf = Gen.oneOf(relations).map(_.plan)
    if (depth == 0) leaf
    else {
      val inner = plans(relations, depth - 1)
      def filtered = for (plan <- inner; condition <- Estimates.predicate(plan.output.take(3), 1))
        yield plan.where(condition)
      def join = for {
        left <- inner
        // An instance of its own, as a self join has it.
        right <- inner.map(plan => plan.select(plan.output.take(3).map(c => c.as(c.name)): _*))
        kind <- Gen.oneOf(joinTypes)
        keyed <- Gen.oneOf(true, true, false)
        residual <- Gen.oneOf(true, false)
      } yield {
        val keys = if (keyed) Seq(left.output.head === right.output.head) else Nil
        val others = if (residual) Seq(left.output(1) < right.output(1)) else Nil
        val plan = Join(left, right, kind, (keys ++ others).reduceOption(And(_, _)), JoinHint.NONE)
        plan.select(plan.output.take(3): _*)
      }
      def others =
        for (plan <- inner; other <- inner; n <- Gen.choose(0, 100); i <- Gen.choose(0, 6)) yield {
          val columns = plan.output.take(3)
          i match {
            case 0 => plan.limit(n)
            case 1 => Distinct(plan)
            case 2 => plan.groupBy(columns: _*)(columns: _*)
            case 3 => Union(plan.select(columns: _*), other.select(other.output.take(3): _*))
            case 4 => Offset(Literal(n), plan)
            case 5 => Sample(0, n / 100.0, withReplacement = false, 1L, plan)
            case _ => plan.orderBy(columns.head.asc)
          }
        }
      Gen.frequency(3 -> filtered, 4 -> join, 2 -> others, 1 -> leaf)
    }
  }

  test("whatever the plan: rows ≤ upper bound ≤ bound, and all of them finite numbers") {
    val cases = for {
      relations <- Gen.listOfN(3, Estimates.relation)
      plan <- plans(relations, 4)
    } yield (relations, plan)
    forAll(cases) { case (relations, plan) =>
      Estimates.estimate(plan, relations: _*).flatMap(Estimates.problem).foreach(p =>
        fail(s"$p\n$plan")
      )
    }
  }
}
