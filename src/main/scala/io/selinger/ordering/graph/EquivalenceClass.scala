package io.selinger.ordering.graph

import org.apache.spark.sql.catalyst.expressions.{EqualTo, Expression}
import org.apache.spark.sql.types.DataType

/**
 * Expressions that the query demands to be equal, at most one of each relation.
 *
 * @param members relation and expression, by relation
 * @param written the equalities of the query among them
 * @param kept relations whose member the query goes on to use. A join by such a member leaves its rows
 *   partitioned and sorted by what is still there, so that the next operator may need no shuffle
 */
final case class EquivalenceClass(
    members: Seq[(Int, Expression)],
    written: Seq[EqualTo],
    kept: RelationSet = RelationSet.empty
) {

  val relations: RelationSet = RelationSet.of(members.map(_._1))

  val dataType: DataType = members.head._2.dataType

  private lazy val memberOf: Map[Int, Expression] = members.toMap

  private lazy val named: Seq[(Int, Int, EqualTo)] = written.flatMap { equality =>
    for (l <- relationOf(equality.left); r <- relationOf(equality.right)) yield (l, r, equality)
  }

  /** Whether a join of these sets has a key of this class. */
  def joins(left: RelationSet, right: RelationSet): Boolean =
    relations.meets(left) && relations.meets(right)

  /** One equality between both sets: of members that are kept, else one that the query names. */
  def between(left: RelationSet, right: RelationSet): Option[EqualTo] =
    (member(left & kept), member(right & kept)) match {
      case (None, None) => namedBetween(left, right).orElse(any(member(left), member(right)))
      case (Some((i, _)), None) =>
        namedBetween(RelationSet.single(i), right)
          .orElse(any(member(left & kept), member(right)))
      case (None, Some((j, _))) =>
        namedBetween(left, RelationSet.single(j))
          .orElse(any(member(left), member(right & kept)))
      case (l, r) => any(l, r)
    }

  private def namedBetween(left: RelationSet, right: RelationSet): Option[EqualTo] =
    named.collectFirst {
      case (l, r, equality) if left.contains(l) && right.contains(r) => equality
      case (l, r, equality) if left.contains(r) && right.contains(l) =>
        EqualTo(equality.right, equality.left)
    }

  private def any(
      left: Option[(Int, Expression)],
      right: Option[(Int, Expression)]
  ): Option[EqualTo] =
    for ((_, l) <- left; (_, r) <- right) yield EqualTo(l, r)

  private def member(set: RelationSet): Option[(Int, Expression)] = {
    val here = set & relations
    if (here.isEmpty) None else Some(here.lowest -> memberOf(here.lowest))
  }

  private def relationOf(expression: Expression): Option[Int] =
    members.collectFirst {
      case (i, member) if (member eq expression) || member.semanticEquals(expression) => i
    }
}
