package io.selinger.rule

import io.selinger.exec.AggregatePerTask
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import scala.util.Try

/**
 * The operators from an aggregate down to one input of a join below it. Each of them treats every
 * row by itself: rows of that input that agree in all columns that they read can be replaced by one
 * row, which then stands for all of them.
 *
 * @param steps from above; the last one is the join
 * @param input what may be aggregated
 */
private[rule] final case class AggregatePath(
    steps: List[AggregatePath.Step],
    input: LogicalPlan
) {
  import AggregatePath._

  /** From above. */
  def joins: Seq[Join] = steps.map(_.operator).collect { case join: Join => join }

  /** Whether a row may arrive above that stands for no row of the input. */
  def fillsWithNulls: Boolean = steps.exists(_.fillsWithNulls)

  /**
   * A function with inputs in terms of the columns of `input`, where it reads just these; none where
   * it reads others, or where an outer join makes rows up for which it would not read nulls.
   */
  def traced(function: AggregateExpression): Option[AggregateExpression] = {
    val below = steps.foldLeft(Option(function)) { (known, step) =>
      known.filter(step.skipsMadeUpRows).map(step.below)
    }
    below.filter { function =>
      function.references.nonEmpty && function.references.subsetOf(input.outputSet)
    }
  }

  /** The columns of `input` that must be known above of each row, where `needed` are read. */
  def keys(needed: AttributeSet): Seq[Attribute] = {
    val below = steps.foldLeft(needed)((columns, step) => step.needed(columns))
    keysIn(below)
  }

  private def keysIn(needed: AttributeSet): Seq[Attribute] =
    input.output.filter(needed.contains).distinctBy(_.exprId)

  /** These operators over the input grouped by `keys`, which return `needed` and the parts. */
  def over(needed: AttributeSet, parts: Seq[Alias]): LogicalPlan =
    rebuilt(steps, needed, parts)

  private def rebuilt(steps: List[Step], needed: AttributeSet, parts: Seq[Alias]): LogicalPlan =
    steps match {
      case step :: rest => step.over(rebuilt(rest, step.needed(needed), parts), needed, parts)
      case Nil =>
        val keys = keysIn(needed)
        Aggregate(keys, keys ++ parts, input, Some(AggregatePerTask))
    }
}

private[rule] object AggregatePath {

  /** One for each input of each join that can be reached from an aggregate's child. */
  def all(child: LogicalPlan): Seq[AggregatePath] = below(child, Nil)

  // The steps above come in reverse order.
  private def below(plan: LogicalPlan, above: List[Step]): Seq[AggregatePath] = plan match {
    case project: Project if project.projectList.forall(_.deterministic) =>
      below(project.child, OfProject(project) :: above)
    case filter: Filter if filter.condition.deterministic =>
      below(filter.child, OfFilter(filter) :: above)
    case expand: Expand if expand.projections.flatten.forall(_.deterministic) =>
      below(expand.child, OfExpand(expand) :: above)
    case join: Join
        if join.condition.forall(_.deterministic) && !KeyOrigins.repeatsColumns(join) =>
      sides(join.joinType).flatMap { left =>
        val side = if (left) join.left else join.right
        val steps = OfJoin(join, left) :: above
        AggregatePath(steps.reverse, side) +: below(side, steps)
      }
    case _ => Nil
  }

  /** The sides whose columns a join returns: whether it is the left one. */
  private def sides(joinType: JoinType): Seq[Boolean] = joinType match {
    case _: InnerLike | LeftOuter | RightOuter | FullOuter => Seq(true, false)
    case LeftSemi | LeftAnti | _: ExistenceJoin => Seq(true)
    case _ => Nil
  }

  /** One operator, and the child of it that the path goes on with. */
  sealed abstract class Step {
    def operator: LogicalPlan

    /** Whether it makes up rows with nulls in place of the columns below. */
    def fillsWithNulls: Boolean = false

    /** Whether a function that reads what is below reads nothing of rows that are made up. */
    def skipsMadeUpRows(function: AggregateExpression): Boolean = true

    /** A function in terms of the columns below. */
    def below(function: AggregateExpression): AggregateExpression = function

    /** What is read of the columns below, where `columns` are read above. */
    def needed(columns: AttributeSet): AttributeSet

    /** This operator over another child, which also returns parts. */
    def over(child: LogicalPlan, columns: AttributeSet, parts: Seq[Alias]): LogicalPlan

    final protected def partsOf(child: LogicalPlan, parts: Seq[Alias]): Seq[Attribute] =
      child.output.filter(column => parts.exists(_.exprId == column.exprId))

    final protected def inPlaceOf[A <: LogicalPlan](before: LogicalPlan)(after: A): A = {
      after.copyTagsFrom(before)
      after
    }
  }

  private def replaced(function: AggregateExpression)(
      change: PartialFunction[Expression, Expression]
  ): AggregateExpression = function.transform(change) match {
    case same: AggregateExpression => same
    case other => throw new IllegalStateException(s"no aggregate any more: $other")
  }

  private final case class OfProject(operator: Project) extends Step {
    private val values = operator.projectList.collect { case alias: Alias =>
      alias.exprId -> alias.child
    }.toMap

    private def kept(columns: AttributeSet) = operator.projectList.filter(columns.contains)

    override def below(function: AggregateExpression): AggregateExpression =
      replaced(function) { case column: Attribute => values.getOrElse(column.exprId, column) }

    override def needed(columns: AttributeSet): AttributeSet =
      AttributeSet(kept(columns).flatMap(_.references))

    override def over(child: LogicalPlan, columns: AttributeSet, parts: Seq[Alias]): LogicalPlan =
      inPlaceOf(operator)(Project(kept(columns) ++ partsOf(child, parts), child))
  }

  private final case class OfFilter(operator: Filter) extends Step {

    override def needed(columns: AttributeSet): AttributeSet =
      columns ++ operator.condition.references

    override def over(child: LogicalPlan, columns: AttributeSet, parts: Seq[Alias]): LogicalPlan =
      inPlaceOf(operator)(Filter(operator.condition, child))
  }

  /** Copies of each row, for grouping sets: a column may be passed on in all of them. */
  private final case class OfExpand(operator: Expand) extends Step {
    private val columns = operator.output.zipWithIndex.map { case (column, i) =>
      column -> operator.projections.map(_(i))
    }

    private val passedOn = columns.collect {
      case (column, (value: Attribute) +: others) if others.forall(_.semanticEquals(value)) =>
        column.exprId -> value
    }.toMap

    override def below(function: AggregateExpression): AggregateExpression = {
      // What is not passed on is another column above than below, whatever its id is.
      val changed = columns.map(_._1).filterNot(column => passedOn.contains(column.exprId))
      if (function.references.exists(AttributeSet(changed).contains)) {
        replaced(function) { case column: Attribute => column.newInstance() }
      } else
        replaced(function) { case column: Attribute => passedOn.getOrElse(column.exprId, column) }
    }

    private def kept(needed: AttributeSet) =
      columns.zipWithIndex.collect { case ((column, _), i) if needed.contains(column) => i }

    override def needed(above: AttributeSet): AttributeSet =
      AttributeSet(kept(above).flatMap(i => columns(i)._2).flatMap(_.references))

    override def over(child: LogicalPlan, above: AttributeSet, parts: Seq[Alias]): LogicalPlan = {
      val added = partsOf(child, parts)
      val places = kept(above)
      inPlaceOf(operator)(
        Expand(
          operator.projections.map(projection => places.map(projection(_)) ++ added),
          places.map(operator.output(_)) ++ added,
          child
        )
      )
    }
  }

  private final case class OfJoin(operator: Join, left: Boolean) extends Step {
    private val side = if (left) operator.left else operator.right

    override def fillsWithNulls: Boolean = operator.joinType match {
      case FullOuter => true
      case LeftOuter => !left
      case RightOuter => left
      case _ => false
    }

    override def skipsMadeUpRows(function: AggregateExpression): Boolean =
      !fillsWithNulls || !function.references.subsetOf(side.outputSet) ||
        function.aggregateFunction.children.exists(isNullOfNulls)

    private def isNullOfNulls(input: Expression): Boolean = {
      val ofNulls = input.transform { case column: Attribute => Literal(null, column.dataType) }
      ofNulls.foldable && Try(ofNulls.eval()).toOption.exists(_ == null)
    }

    override def needed(columns: AttributeSet): AttributeSet =
      columns ++ AttributeSet(operator.condition.toSeq.flatMap(_.references))

    override def over(child: LogicalPlan, columns: AttributeSet, parts: Seq[Alias]): LogicalPlan =
      operator.withNewChildren(
        if (left) Seq(child, operator.right) else Seq(operator.left, child)
      )
  }
}
