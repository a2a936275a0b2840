package io.selinger.core

import org.apache.spark.sql.catalyst.plans.{
  ExistenceJoin,
  FullOuter,
  JoinType,
  LeftAnti,
  LeftOuter,
  LeftSemi,
  RightOuter
}

/** How texts write joins: `sales ⋈ customers`. A right outer join is a left one, sides exchanged. */
object JoinSymbol {
  val Inner = "⋈"
  val Outer = "⟕"
  val Full = "⟗"
  val Semi = "⋉"
  val Anti = "▷"
  val Existence = "∃"

  def of(joinType: JoinType): String = joinType match {
    case LeftOuter | RightOuter => Outer
    case FullOuter => Full
    case LeftSemi => Semi
    case LeftAnti => Anti
    case _: ExistenceJoin => Existence
    case _ => Inner
  }

  /** A join of two sides that have names. */
  def joined(left: String, joinType: JoinType, right: String): String = joinType match {
    case RightOuter => s"$right ${of(joinType)} $left"
    case _ => s"$left ${of(joinType)} $right"
  }
}
