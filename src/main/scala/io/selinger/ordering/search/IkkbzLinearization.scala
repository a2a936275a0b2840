package io.selinger.ordering.search

import scala.annotation.tailrec

/**
 * An order of relations in which cheap left-deep trees lie, for [[LinDp]]: the best one for a
 * spanning tree of the query's joins, by IKKBZ [1]. It takes rows of joins as its cost, and joins of
 * every kind for what they multiply rows by: what is not allowed is for the search to leave out.
 *
 * References: [1] Krishnamurthy, Boral, Zaniolo, Optimization of Nonrecursive Queries, VLDB 1986.
 */
object IkkbzLinearization {

  /**
   * A join of two relations.
   *
   * @param forward what rows of `one` are multiplied by when `other` is joined to them
   * @param backward the other way round
   */
  final case class Link(one: Int, other: Int, forward: Double, backward: Double) {
    def weight: Double = math.min(forward, backward)
  }

  /**
   * The `most` best orders of relations `0` to `size - 1`, each with another relation in front. What
   * `links` do not connect comes last.
   */
  def linearOrders(
      size: Int,
      rows: Int => Double,
      links: Seq[Link],
      most: Int
  ): Seq[IndexedSeq[Int]] = {
    val near = neighbours(size, spanning(size, links))
    (0 until size)
      .map { root =>
        val sequence = follow(root, rows(root), None, near)
        (sequence.map(_.cost).sum, sequence.flatMap(_.relations))
      }
      .sortBy(_._1)
      .take(most)
      .map { case (_, order) => order.toIndexedSeq ++ (0 until size).filterNot(order.toSet) }
  }

  /** The most selective links that connect all (Kruskal). */
  def spanning(size: Int, links: Seq[Link]): Seq[Link] = {
    val leader = Array.range(0, size)
    @tailrec def find(i: Int): Int = if (leader(i) == i) i else find(leader(i))
    links.sortBy(_.weight).filter { link =>
      val (one, other) = (find(link.one), find(link.other))
      leader(one) = other
      one != other
    }
  }

  private def neighbours(size: Int, links: Seq[Link]): IndexedSeq[Seq[(Int, Double)]] = {
    val near = Array.fill(size)(List.empty[(Int, Double)])
    links.foreach { link =>
      near(link.one) ::= ((link.other, link.forward))
      near(link.other) ::= ((link.one, link.backward))
    }
    near.toIndexedSeq
  }

  /** Relations that stay together, with what they multiply rows by and what they cost. */
  private final case class Module(relations: Vector[Int], factor: Double, cost: Double) {
    val rank: Double = (factor - 1.0) / cost

    def before(next: Module): Module = Module(
      relations ++ next.relations,
      clamped(factor * next.factor),
      clamped(cost + factor * next.cost)
    )
  }

  private def clamped(value: Double): Double = math.min(math.max(value, 1e-100), 1e100)

  private def follow(
      relation: Int,
      factor: Double,
      parent: Option[Int],
      near: IndexedSeq[Seq[(Int, Double)]]
  ): List[Module] = {
    val below = near(relation)
      .filterNot { case (i, _) => parent.contains(i) }
      .map { case (i, factor) => follow(i, factor, Some(relation), near) }
      .foldLeft(List.empty[Module])(merged)
    val own = Module(Vector(relation), clamped(factor), clamped(factor))
    if (parent.isEmpty) own :: below else normalized(own, below)
  }

  private def merged(one: List[Module], other: List[Module]): List[Module] = {
    @tailrec def step(a: List[Module], b: List[Module], done: List[Module]): List[Module] =
      (a, b) match {
        case (Nil, rest) => done reverse_::: rest
        case (rest, Nil) => done reverse_::: rest
        case (x :: xs, y :: ys) =>
          if (x.rank <= y.rank) step(xs, b, x :: done) else step(a, ys, y :: done)
      }
    step(one, other, Nil)
  }

  /** A relation comes before those that it leads to, even if these should come first. */
  @tailrec private def normalized(first: Module, rest: List[Module]): List[Module] = rest match {
    case next :: others if first.rank > next.rank => normalized(first.before(next), others)
    case _ => first :: rest
  }
}
