package io.selinger.ordering.graph

import org.apache.spark.sql.catalyst.expressions.{EqualTo, Expression}
import org.apache.spark.sql.types.DataType

/**
 * Expressions that the query demands to be equal, at most one of each relation.
 *
 * @param members relation and expression, by relation
 * @param written the equalities of the query among them
 */
final case class EquivalenceClass(members: Seq[(Int, Expression)], written: Seq[EqualTo]) {

  val relations: RelationSet = RelationSet.of(members.map(_._1))

  val dataType: DataType = members.head._2.dataType

  private lazy val memberOf: Map[Int, Expression] = members.toMap

  private lazy val named: Seq[(Int, Int, EqualTo)] = written.flatMap { equality =>
    for (l <- relationOf(equality.left); r <- relationOf(equality.right)) yield (l, r, equality)
  }

  /** Whether a join of these sets has a key of this class. */
  def joins(left: RelationSet, right: RelationSet): Boolean =
    relations.meets(left) && relations.meets(right)

  /** One equality between both sets, one that the query names if there is any. */
  def between(left: RelationSet, right: RelationSet): Option[EqualTo] =
    namedBetween(left, right).orElse {
      for ((_, l) <- member(left); (_, r) <- member(right)) yield EqualTo(l, r)
    }

  private def namedBetween(left: RelationSet, right: RelationSet): Option[EqualTo] =
    named.collectFirst {
      case (l, r, equality) if left.contains(l) && right.contains(r) => equality
      case (l, r, equality) if left.contains(r) && right.contains(l) =>
        EqualTo(equality.right, equality.left)
    }

  private def member(set: RelationSet): Option[(Int, Expression)] = {
    val here = set & relations
    if (here.isEmpty) None else Some(here.lowest -> memberOf(here.lowest))
  }

  private def relationOf(expression: Expression): Option[Int] =
    members.collectFirst {
      case (i, member) if (member eq expression) || member.semanticEquals(expression) => i
    }
}
