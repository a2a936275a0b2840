package io.selinger.ordering.tree

import io.selinger.estimate.plans.RelationNames
import io.selinger.ordering.graph.{JoinGraph, JoinRegion}
import org.apache.spark.sql.catalyst.expressions.{Left => _, Right => _, _}
import org.apache.spark.sql.catalyst.plans.logical._
import scala.collection.mutable

/** From the joins of a region to their tree, and from a tree to joins that return what the region does. */
private[ordering] object JoinTreePlan {

  /** The order written. None where the graph refuses it, which only a cross product makes it do. */
  def treeOf(
      shape: JoinRegion.Shape,
      graph: JoinGraph,
      trees: JoinTrees
  ): Option[JoinTree] = shape match {
    case JoinRegion.Leaf(index, _) => Some(trees.relation(index))
    case pair: JoinRegion.Pair =>
      for {
        left <- treeOf(pair.left, graph, trees)
        right <- treeOf(pair.right, graph, trees)
        joined <- Joining.join(left, right, graph.shape, trees)
      } yield joined
  }

  /** The tree as a plan that returns what the region does. */
  def planOf(
      tree: JoinTree,
      graph: JoinGraph,
      region: JoinRegion
  ): LogicalPlan = {
    val joined = build(tree, graph)
    if (joined.output.map(_.exprId) == region.results.map(_.exprId)) joined
    else Project(region.results, joined)
  }

  /** The larger side streams, so it comes first where the sides may be exchanged. */
  private def build(tree: JoinTree, graph: JoinGraph): LogicalPlan = tree match {
    case relation: JoinTree.Relation => graph.relations(relation.index)
    case joined: JoinTree.Joined =>
      val (first, second) =
        if (!joined.how.kind.commutes || bytes(joined.left) >= bytes(joined.right)) {
          (joined.left, joined.right)
        } else (joined.right, joined.left)
      val (left, right) = (pruned(first, graph), pruned(second, graph))
      val condition = graph.conditionBetween(first.set, second.set, joined.how)
      Join(
        left,
        right,
        graph.joinType(joined.how),
        condition.map(renewed(_, left.output ++ right.output)),
        JoinHint.NONE
      )
  }

  /** The same columns, nullable as they are here: outer joins below may have changed that. */
  private def renewed(condition: Expression, inputs: Seq[Attribute]): Expression = {
    val needed = condition.references
    val byId = AttributeMap(inputs.collect { case a if needed.contains(a) => a -> a })
    condition.transform { case attribute: Attribute => byId.getOrElse(attribute, attribute) }
  }

  private def bytes(tree: JoinTree): Double = tree.estimate.rows.value * tree.rowBytes

  private def pruned(tree: JoinTree, graph: JoinGraph): LogicalPlan = {
    val plan = build(tree, graph)
    val required = AttributeSet(graph.requiredOf(tree.set) ++ graph.marks)
    if (plan.output.forall(required.contains)) plan
    else Project(plan.output.filter(required.contains), plan)
  }

  /** Of the first table of each, for people; a second use of a table is numbered. */
  def namesOf(plans: IndexedSeq[LogicalPlan]): IndexedSeq[String] = {
    val names = plans.map(nameOf)
    val uses = mutable.HashMap.empty[String, Int].withDefaultValue(0)
    names.map { name =>
      uses(name) += 1
      if (uses(name) == 1) name else s"$name#${uses(name)}"
    }
  }

  private def nameOf(plan: LogicalPlan): String = {
    val leaves = plan.collectLeaves()
    val first = leaves.headOption.map(RelationNames.ofLeaf)
    first.getOrElse(plan.nodeName) + (if (leaves.size > 1) "…" else "")
  }
}
