package io.selinger.estimate.joins

import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions.{
  Attribute,
  AttributeSet,
  Expression,
  ExpressionSet
}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Join, LeafNode, LogicalPlan}
import org.apache.spark.sql.execution.adaptive.LogicalQueryStage

/**
 * A join as estimates see it: what it compares, whatever plan stands for its sides.
 *
 * @param keys equalities of the two sides
 * @param other the rest of the condition
 * @param leftUnique whether each row of the right side is proven to find one left row at most
 * @param rightUnique the same of a left row
 */
final class EquiJoin(
    val joinType: JoinType,
    val keys: Seq[JoinKeys.Pair],
    val other: Option[Expression],
    val leftUnique: Boolean,
    val rightUnique: Boolean,
    leftOutput: => AttributeSet,
    rightOutput: => AttributeSet
) {
  lazy val leftColumns: AttributeSet = leftOutput
  lazy val rightColumns: AttributeSet = rightOutput
}

object EquiJoin {

  /** With the keys that Spark makes of the join's condition. */
  def of(join: Join): EquiJoin = {
    val (keys, other) = join match {
      case ExtractEquiJoinKeys(_, left, right, rest, _, _, _, _) =>
        (JoinKeys.pairs(left, right), rest)
      case _ => (Nil, join.condition)
    }
    new EquiJoin(
      join.joinType,
      keys,
      other,
      leftUnique = areUnique(uniqueKeys(join.left), keys.map(_.left)),
      rightUnique = areUnique(uniqueKeys(join.right), keys.map(_.right)),
      join.left.outputSet,
      join.right.outputSet
    )
  }

  /**
   * Sets of columns of which Spark knows that no two rows have the same values. Its knowledge ends at query
   * stages, which have the rows of the plans that they run.
   */
  def uniqueKeys(plan: LogicalPlan): Set[ExpressionSet] = {
    val written = if (QueryStages.begun(plan)) {
      plan.transform { case stage: LogicalQueryStage => stage.logicalPlan }
    } else plan
    val known =
      if (!written.exists(isHinted)) written
      else written.transformUp { case rows if isHinted(rows) => RowsOfAnyKeys(rows.output) }
    known.distinctKeys
  }

  /** An aggregate with a hint may group in each task by itself: Spark does not know that. */
  private def isHinted(plan: LogicalPlan): Boolean = plan match {
    case aggregate: Aggregate => aggregate.hint.nonEmpty
    case _ => false
  }

  /** Stands for a plan of which no keys are known. */
  private final case class RowsOfAnyKeys(output: Seq[Attribute]) extends LeafNode

  /** Whether no two rows have the same values of `columns`, given sets of which that is known. */
  def areUnique(known: Set[ExpressionSet], columns: => Seq[Expression]): Boolean =
    known.nonEmpty && {
      val all = ExpressionSet(columns)
      known.exists(key => key.nonEmpty && key.subsetOf(all))
    }

  /** Sets of columns of which no two rows of the result have the same values. */
  def uniqueAfter(
      join: EquiJoin,
      left: Set[ExpressionSet],
      right: Set[ExpressionSet]
  ): Set[ExpressionSet] = {
    def ofLeft = if (join.rightUnique) left else Set.empty[ExpressionSet]
    join.joinType match {
      case LeftSemi | LeftAnti | ExistenceJoin(_) => left
      case _: InnerLike => ofLeft ++ (if (join.leftUnique) right else Set.empty)
      case LeftOuter => ofLeft
      case _ => Set.empty
    }
  }
}
