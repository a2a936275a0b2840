package io.selinger.rule

import io.selinger.core.RaisedErrors
import java.util.IdentityHashMap
import org.apache.spark.sql.catalyst.expressions.{Attribute, BoundReference, Expression}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans.logical.{Join, LogicalPlan}

/**
 * Groups on one side of a join, and the plans that supply the keys of those that the join needs.
 *
 * @param side of the join: all that would be computed for fewer rows
 * @param node that groups rows
 */
private[rule] final case class GroupCandidate(
    side: LogicalPlan,
    node: LogicalPlan,
    sources: Seq[KeySource]
)

private[rule] object GroupCandidate {

  def at(join: Join): Seq[GroupCandidate] = join match {
    case ExtractEquiJoinKeys(_, leftKeys, rightKeys, _, _, _, _, _)
        if !KeyOrigins.repeatsColumns(join) && !GroupedInput.isReducer(join) =>
      for {
        left <- GroupedInput.sidesThatNeedMatches(join)
        pairs = if (left) leftKeys.zip(rightKeys) else rightKeys.zip(leftKeys)
        // The join evaluates all of them for each row of that side.
        if pairs.forall { case (own, _) => RaisedErrors.isSafe(own) }
        (side, other) = if (left) (join.left, join.right) else (join.right, join.left)
        grouped <- GroupedInput.in(side, pairs.filter(isUsable))
        // The rows have been filtered by these keys already, where the same plan is in the input.
        known = keysIn(grouped)
        sources = KeySource.in(other, grouped.keys).filterNot(source => known(identified(source)))
        if sources.nonEmpty
      } yield GroupCandidate(side, grouped.node, sources)
    case _ => Nil
  }

  private def isUsable(pair: (Expression, Expression)): Boolean = {
    val (own, other) = pair
    own.dataType == other.dataType && AggregatePush.isComparable(own) && RaisedErrors.isSafe(other)
  }

  private def keysIn(grouped: GroupedInput): Set[(Seq[Expression], LogicalPlan)] =
    KeySource
      .in(grouped.node, grouped.keys.map { case (own, _) => own -> own })
      .map(identified)
      .toSet

  private def identified(source: KeySource) =
    (source.keys.map(_._1.canonicalized), source.columns.canonicalized)
}

/**
 * One of several places of equal groups.
 *
 * @param sides of the joins that need only some of the groups
 * @param sources of keys, by the keys that they supply. Keys name output columns by their position, so
 *   that they are alike in all places
 */
private[rule] final case class GroupPlace(
    node: LogicalPlan,
    sides: Seq[LogicalPlan],
    sources: Map[Seq[Expression], Seq[KeySource]]
) {

  /** A key over the columns of this place. */
  def over(key: Expression): Expression = key.transform {
    case BoundReference(number, _, _) => node.output(number)
  }
}

private[rule] object GroupPlace {

  /** @param nodes that are equal, one for each place */
  def all(nodes: Seq[LogicalPlan], candidates: Seq[GroupCandidate]): Seq[GroupPlace] = {
    val known = new IdentityHashMap[LogicalPlan, Seq[GroupCandidate]]
    candidates.foreach(one => known.merge(one.node, Seq(one), _ ++ _))
    nodes.map { node =>
      val own = Option(known.get(node)).getOrElse(Nil)
      val sources = own.flatMap(_.sources).map { source =>
        val keys = source.keys
          .map { case (key, value) => numbered(node, key) -> value }
          .distinctBy(_._1)
          .sortBy(_._1.toString)
        keys.map(_._1) -> source.copy(keys = keys)
      }
      GroupPlace(node, own.map(_.side), sources.groupMap(_._1)(_._2))
    }
  }

  private def numbered(node: LogicalPlan, key: Expression): Expression = key.transform {
    case column: Attribute =>
      val number = node.output.indexWhere(_.exprId == column.exprId)
      BoundReference(number, column.dataType, nullable = true)
  }
}
