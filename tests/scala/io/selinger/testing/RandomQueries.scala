package io.selinger.testing

import scala.util.Random

/** Random joins over [[Tables]], the same for the same seed. Results stay small. */
final class RandomQueries(seed: Long) {
  private val random = new Random(seed)

  private def oneOf[A](choices: A*): A = choices(random.nextInt(choices.size))
  private def chance(share: Double): Boolean = random.nextDouble() < share

  private val sources =
    Seq(
      "facts WHERE id < 250",
      "dims",
      "dupes WHERE id < 40",
      "nothing",
      "nulls",
      // Any number of rows is possible, so it is measured before it is broadcast.
      "facts LATERAL VIEW explode(array_repeat(1, cast(id % 3 as int))) AS times WHERE id < 120"
    )
  private val keys = Seq("k", "big", "s", "d", "amount", "day", "at", "flag")

  private def table(i: Int): String =
    s"(SELECT * FROM ${oneOf(sources ++ sources.take(2): _*)}) t$i"

  private def equality(left: Int, right: Int, key: String): String =
    s"t$left.$key ${if (chance(0.15)) "<=>" else "="} t$right.$key"

  private def residual(left: Int, right: Int): String = oneOf(
    s"t$left.id < t$right.id",
    s"t$left.d > t$right.d",
    s"t$left.s <> t$right.s",
    s"t$left.k + t$right.k > 50",
    s"t$left.day >= t$right.day"
  )

  // Flags match half of all pairs, so never alone.
  private def condition(left: Int, right: Int): String = {
    val selective = equality(left, right, oneOf(keys.filter(k => k != "flag" && k != "s"): _*))
    val more = Seq(
      if (chance(0.3)) Some(equality(left, right, oneOf(keys: _*))) else None,
      if (chance(0.4)) Some(residual(left, right)) else None
    ).flatten
    (selective +: more).mkString(" AND ")
  }

  private def filters(visible: Seq[Int]): Seq[String] = visible.flatMap { i =>
    if (!chance(0.3)) None
    else
      Some(
        oneOf(
          s"t$i.k < ${random.nextInt(140)}",
          s"t$i.d IS NULL",
          s"t$i.d > ${random.nextInt(12)}",
          s"t$i.s IN ('a', 'b')",
          s"t$i.day BETWEEN date'1999-12-25' AND date'2000-01-10'",
          s"NOT t$i.flag",
          s"t$i.amount > 1",
          s"coalesce(t$i.k, -1) < 60"
        )
      )
  }

  private val kinds =
    Seq(
      "JOIN",
      "JOIN",
      "JOIN",
      "LEFT JOIN",
      "RIGHT JOIN",
      "FULL JOIN",
      "LEFT SEMI JOIN",
      "LEFT ANTI JOIN"
    )

  /** A subquery that keeps rows of `t$i`, one that drops them, or one that is a choice among both. */
  private def subquery(i: Int): String = {
    val key = oneOf("k", "big", "day", "id")
    val source = oneOf("dims", "dupes", "nulls", "nothing")
    oneOf(
      s"EXISTS (SELECT 1 FROM $source e WHERE e.$key = t$i.$key AND e.id < 60)",
      s"NOT EXISTS (SELECT 1 FROM $source e WHERE e.$key = t$i.$key AND e.id <> t$i.id)",
      s"t$i.$key IN (SELECT $key FROM $source WHERE id < 90)",
      s"t$i.$key NOT IN (SELECT $key FROM $source WHERE $key IS NOT NULL)",
      s"(t$i.id < 20 OR t$i.$key IN (SELECT $key FROM $source))"
    )
  }

  /** The next query; its columns are those of the tables that stay visible. */
  def next(): String = {
    // Some are chains in which few joins are inner ones.
    val chain = chance(0.3)
    val tables = if (chain) 4 + random.nextInt(3) else 2 + random.nextInt(4)
    // At most one join without an equality, and early, where it multiplies little.
    val unkeyed = if (chance(0.2)) 1 else -1
    val start = (Seq(0), table(0))
    val (visible, from) = (1 until tables).foldLeft(start) { case ((visible, text), i) =>
      val other = oneOf(visible: _*)
      val kind = oneOf((if (chain) kinds.drop(2) else kinds): _*)
      val on =
        if (i == unkeyed) oneOf(
          s"t$other.k BETWEEN t$i.k AND t$i.k + 3",
          s"t$other.k = t$i.k OR t$other.big = t$i.big"
        )
        else condition(other, i)
      val stays =
        if (kind.endsWith("SEMI JOIN") || kind.endsWith("ANTI JOIN")) visible else visible :+ i
      (stays, s"$text\n  $kind ${table(i)} ON $on")
    }
    val where = filters(visible) ++ (if (chance(0.25)) Seq(subquery(oneOf(visible: _*))) else Nil)
    val restricted = if (where.isEmpty) from else s"$from\n  WHERE ${where.mkString(" AND ")}"
    val columns = visible.flatMap(i => Seq("id", "k", "s", "d", "amount").map(c => s"t$i.$c"))
    val one = oneOf(visible: _*)
    random.nextInt(6) match {
      case 0 =>
        s"SELECT t$one.s, count(*) AS n, min(t$one.id) AS least FROM $restricted\n  GROUP BY t$one.s"
      case 1 => s"SELECT DISTINCT t$one.k, t$one.d FROM $restricted"
      case 2 =>
        val named = visible.map(i => s"t$i.id AS id$i").mkString(", ")
        s"SELECT * FROM (SELECT $named FROM $restricted) j JOIN dupes x ON j.id$one = x.id"
      case _ => s"SELECT ${columns.mkString(", ")} FROM $restricted"
    }
  }
}
