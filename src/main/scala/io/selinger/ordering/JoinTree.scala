package io.selinger.ordering

import io.selinger.estimate.PlanEstimate

/** One order of a region's joins, with what it is believed to cost. */
sealed trait JoinTree {

  /** Relations below. */
  def set: Long

  /** Rows that it returns: the same for every order of one set. */
  def estimate: PlanEstimate

  /** Width of a row, of the columns that are still needed above. */
  def rowBytes: Double

  /** Seconds that all joins below take; see [[io.selinger.cost.JoinCost]]. */
  def seconds: Double
}

object JoinTree {

  final case class Relation(index: Int, estimate: PlanEstimate, rowBytes: Double) extends JoinTree {
    val set: Long = RelationSet.single(index)
    val seconds: Double = 0.0
  }

  final case class Joined(
      left: JoinTree,
      right: JoinTree,
      estimate: PlanEstimate,
      rowBytes: Double,
      seconds: Double
  ) extends JoinTree {
    val set: Long = left.set | right.set
  }

  /** Readable: `((store_sales ⋈ date_dim) ⋈ item)`. */
  def text(tree: JoinTree, name: Int => String): String = tree match {
    case relation: Relation => name(relation.index)
    case joined: Joined => s"(${text(joined.left, name)} ⋈ ${text(joined.right, name)})"
  }
}
