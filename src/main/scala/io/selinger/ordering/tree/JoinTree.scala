package io.selinger.ordering.tree

import io.selinger.core.{Quantity, RowTree}
import io.selinger.estimate.PlanEstimate
import io.selinger.ordering.graph.{Connection, RelationSet}

/** One order of a region's joins, with what it is believed to cost. */
sealed trait JoinTree {

  /** Relations below. */
  def set: RelationSet

  /** Rows that it returns: the same for every order of one set. */
  def estimate: PlanEstimate

  /** Width of a row, of the columns that are still needed above. */
  def rowBytes: Double

  /** Keys by which its rows come partitioned: each set of them, as [[Partitionings]] numbers them. */
  def partitionings: Seq[JoinTree.Partitioning]

  /** Seconds that all joins below take; see [[io.selinger.cost.JoinCost]]. */
  def seconds: Double

  /** Memory of all that joins below broadcast. */
  def broadcastBytes: Double

  /** Relations from left to right. */
  def leaves: Seq[Int] = this match {
    case relation: JoinTree.Relation => Seq(relation.index)
    case joined: JoinTree.Joined => joined.left.leaves ++ joined.right.leaves
  }

  /** All joins, those below first. */
  def joins: Seq[JoinTree.Joined] = this match {
    case _: JoinTree.Relation => Nil
    case joined: JoinTree.Joined => joined.left.joins ++ joined.right.joins :+ joined
  }
}

object JoinTree {

  /** Numbers of keys, ascending. */
  type Partitioning = Seq[Int]

  final case class Relation(
      index: Int,
      estimate: PlanEstimate,
      rowBytes: Double,
      partitionings: Seq[Partitioning] = Nil
  ) extends JoinTree {
    val set: RelationSet = RelationSet.single(index)
    val seconds: Double = 0.0
    val broadcastBytes: Double = 0.0
  }

  /** @param left the side that is kept, where the join is not symmetric */
  final case class Joined(
      left: JoinTree,
      right: JoinTree,
      how: Connection,
      estimate: PlanEstimate,
      rowBytes: Double,
      seconds: Double,
      partitionings: Seq[Partitioning] = Nil,
      broadcastBytes: Double = 0.0
  ) extends JoinTree {
    val set: RelationSet = left.set | right.set

    /** What this join alone takes. */
    def ownSeconds: Double = seconds - left.seconds - right.seconds
  }

  /** Readable: `((store_sales ⋈ date_dim) ⟕ item)`. */
  def text(tree: JoinTree, name: Int => String): String = tree match {
    case relation: Relation => name(relation.index)
    case joined: Joined =>
      s"(${text(joined.left, name)} ${joined.how.kind.symbol} ${text(joined.right, name)})"
  }

  /** The same with the rows of each part. */
  def rows(tree: JoinTree, name: Int => String): RowTree = {
    val estimated = Some(Quantity(tree.estimate.rows.value, tree.estimate.rows.origin))
    tree match {
      case relation: Relation => RowTree(name(relation.index), estimated = estimated)
      case joined: Joined =>
        val symbol = joined.how.kind.symbol
        RowTree(
          symbol,
          symbol = Some(symbol),
          estimated = estimated,
          inputs = Seq(rows(joined.left, name), rows(joined.right, name))
        )
    }
  }
}

/** Builds trees and says what they cost. */
trait JoinTrees {

  def relation(index: Int): JoinTree

  /** @param left the side that is kept, where the join is not symmetric */
  def join(left: JoinTree, right: JoinTree, how: Connection): JoinTree

  /** Roughly, the share of all pairs that an inner join of two relations returns; must be cheap. */
  def selectivity(one: Int, other: Int): Double

  /** The same of the predicates of one of [[Hypergraph.edges]], beside those by keys. */
  def selectivityOfEdge(edge: Int): Double

  /** Keys that more than two relations share. A join of any of them has each of these once. */
  def sharedKeys: Seq[SharedKey]

  /** Whether several joins may compare the same column, so that what they leave is not independent. */
  def haveCommonKeys: Boolean = sharedKeys.nonEmpty

  /** Roughly, what joins cost. */
  def rough: RoughCost
}

/**
 * A key of several relations.
 *
 * @param share of all pairs of rows of two of them that have equal keys
 */
final case class SharedKey(relations: RelationSet, share: (Int, Int) => Double)
