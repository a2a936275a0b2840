package io.selinger.rule

import io.selinger.rule.ExpressionSets.all
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.Inner
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * Inner joins of the same relations in different orders, built anew in one order. A condition on one of the
 * tables lets the cost model choose another order, for the same joins otherwise.
 */
private[rule] object CommonJoinOrder {

  /**
   * The plans in the join order of the first. None where they have one order already, or join other
   * relations or by other columns, or compute columns on the way: relations are the same where they return
   * the same rows, and joins are where their equalities imply those of the others.
   */
  def of(plans: Seq[LogicalPlan]): Option[Seq[LogicalPlan]] = {
    val regions = plans.map(InnerRegion.of)
    if (!regions.forall(canBeOrdered)) None
    else
      for {
        places <- all(regions.map(placesIn(regions.head, _)))
        orders = plans.zip(places).map { case (plan, relations) => orderOf(plan, relations) }
        if orders.distinct.size > 1
        inOneOrder <- all(regions.zip(places).map { case (region, relations) =>
          likeFirst(region, relations, regions.head).map(built(orders.head, relations, region, _))
        })
      } yield inOneOrder
  }

  private def canBeOrdered(region: InnerRegion): Boolean =
    region.relations.size > 1 && region.hasOwnColumns &&
      region.columns.forall(_._2.isInstanceOf[Attribute]) &&
      region.hints.forall(_ == JoinHint.NONE) && {
        val columns = AttributeSet(region.relations.flatMap(_.output))
        region.conditions.map(_.references).forall(on => on.nonEmpty && on.subsetOf(columns))
      }

  /** Of which relations, by their places in the first plan, a join is made. */
  private sealed trait Order
  private final case class Single(place: Int) extends Order
  private final case class Joined(left: Order, right: Order)(val join: Join) extends Order

  private def orderOf(plan: LogicalPlan, relations: Seq[LogicalPlan]): Order =
    (relations.indexWhere(_ eq plan), plan) match {
      case (-1, join: Join) =>
        Joined(orderOf(join.left, relations), orderOf(join.right, relations))(join)
      case (-1, _) => orderOf(plan.children.head, relations)
      case (place, _) => Single(place)
    }

  /** The relations of a region, in the order of those of the first one that they are. */
  private def placesIn(first: InnerRegion, region: InnerRegion): Option[Seq[LogicalPlan]] =
    if (first.relations.size != region.relations.size) None
    else {
      // A relation that is there several times is told by the columns with which it is joined.
      all(first.relations.map { relation =>
        region.relations.filter(isSameRelation(relation, _)) match {
          case Seq(one) => Some(one)
          case several =>
            val joins = joinsOf(first, relation)
            several.find(joinsOf(region, _) == joins)
        }
      }).filter(_.map(_.output).distinct.size == region.relations.size)
    }

  private def isSameRelation(one: LogicalPlan, other: LogicalPlan): Boolean = (one, other) match {
    case (_: LeafNode, _) | (_, _: LeafNode) => SameRows.areIn(one, other)
    case _ => one.sameResult(other)
  }

  /** Which of its columns are equal to which columns of which other relations, by place and relation. */
  private def joinsOf(region: InnerRegion, relation: LogicalPlan): Set[(Int, LogicalPlan, Int)] = {
    val equalities = region.conditions.filter(isEquality)
    val equal = EqualColumns.by(equalities)
    val joined = AttributeSet(equalities)
    def columnsOf(one: LogicalPlan) =
      one.output.zipWithIndex.filter { case (column, _) => joined.contains(column) }
    val found = for {
      other <- region.relations.filterNot(_ eq relation)
      (mine, i) <- columnsOf(relation)
      (theirs, j) <- columnsOf(other)
      if equal.areEqual(mine, theirs)
    } yield (i, other.canonicalized, j)
    found.toSet
  }

  /**
   * The conditions of a region with the equalities of the first one for its own, none where these do not
   * mean the same: of `a = b AND b = c AND a = c`, each two imply the third. What is equal is not null.
   */
  private def likeFirst(
      region: InnerRegion,
      relations: Seq[LogicalPlan],
      first: InnerRegion
  ): Option[Seq[Expression]] = {
    val columns = AttributeMap(first.relations.zip(relations).flatMap { case (one, other) =>
      one.output.zip(other.output)
    })
    val wanted = first.conditions.filter(isEquality).map(_.transform {
      case column: Attribute => columns.getOrElse(column, column)
    })
    val (equalities, others) = region.conditions.partition(isEquality)
    val joined = AttributeSet(wanted)
    val implied = joined.toSeq.map(IsNotNull(_))
    val rest = others.filter {
      case IsNotNull(column: Attribute) => !joined.contains(column)
      case _ => true
    }
    Option.when(implies(equalities, wanted) && implies(wanted, equalities))(
      implied ++ wanted ++ rest
    )
  }

  /** Of columns whose equal values are the same bits, so that one may stand for the other. */
  private def isEquality(condition: Expression): Boolean = condition match {
    case EqualTo(a: Attribute, b: Attribute) =>
      a.exprId != b.exprId && a.dataType == b.dataType && AggregatePush.isComparable(a)
    case _ => false
  }

  private def implies(some: Seq[Expression], others: Seq[Expression]): Boolean = {
    val equal = EqualColumns.by(some)
    others.forall {
      case EqualTo(a: Attribute, b: Attribute) => equal.areEqual(a, b)
      case _ => false
    }
  }

  /** Each condition as low as its columns are, and above each relation and join the columns needed. */
  private def built(
      order: Order,
      relations: Seq[LogicalPlan],
      region: InnerRegion,
      conditions: Seq[Expression]
  ): LogicalPlan = {
    def joined(part: Order): (LogicalPlan, Seq[Expression]) = part match {
      case Single(place) =>
        val relation = relations(place)
        val (tested, left) = conditions.partition(_.references.subsetOf(relation.outputSet))
        (tested.reduceOption(And(_, _)).fold(relation)(Filter(_, relation)), left)
      case two: Joined =>
        val (left, leftOwed) = joined(two.left)
        val (right, rightOwed) = joined(two.right)
        val owed = leftOwed.filter(condition => rightOwed.exists(_ eq condition))
        val (l, r) = (narrow(left, owed), narrow(right, owed))
        val (tested, above) = owed.partition(_.references.subsetOf(l.outputSet ++ r.outputSet))
        val join = Join(l, r, Inner, tested.reduceOption(And(_, _)), JoinHint.NONE)
        // What explain says of it.
        join.copyTagsFrom(two.join)
        (join, above)
    }
    def narrow(plan: LogicalPlan, owed: Seq[Expression]): LogicalPlan = {
      val needed = AttributeSet(owed ++ region.columns.map(_._2))
      Project(plan.output.filter(needed.contains), plan)
    }
    Project(
      region.columns.map {
        case (column, value: Attribute) if value.exprId == column.exprId => value
        case (column, value) =>
          Alias(value, column.name)(column.exprId, explicitMetadata = Some(column.metadata))
      },
      joined(order)._1
    )
  }
}
