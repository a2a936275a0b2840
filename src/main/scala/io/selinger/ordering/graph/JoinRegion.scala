package io.selinger.ordering.graph

import io.selinger.core.{RaisedErrors, Reason}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.ordering.ablation.Mechanism
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import scala.collection.mutable

/**
 * Joins that may change places: a join, and all those that it reaches through joins, filters and
 * projections that can be moved.
 *
 * @param relations what they join, in the order written
 * @param written the order written
 * @param results what the region returns, of the columns of its relations
 * @param barriers why joins further below do not belong to it
 */
final case class JoinRegion(
    root: LogicalPlan,
    relations: Seq[LogicalPlan],
    written: JoinRegion.Shape,
    results: Seq[NamedExpression],
    barriers: Seq[Reason]
) {

  /** Columns of the relations that the results need. */
  def needed: Seq[Attribute] = results.flatMap(_.references).distinct
}

object JoinRegion {

  /** The form of the tree as written; relations by their position. */
  sealed trait Shape {
    def relations: RelationSet

    def joins: Seq[Pair] = this match {
      case _: Leaf => Nil
      case pair: Pair => pair.left.joins ++ pair.right.joins :+ pair
    }
  }

  /** @param filters conditions on this relation alone */
  final case class Leaf(index: Int, filters: Seq[Expression] = Nil) extends Shape {
    val relations: RelationSet = RelationSet.single(index)
  }

  /**
   * @param joinType left where the query says right, with the sides exchanged
   * @param conditions conjuncts of the join's condition, and of filters that belong to it
   */
  final case class Pair(
      left: Shape,
      right: Shape,
      joinType: JoinType,
      conditions: Seq[Expression]
  ) extends Shape {
    val relations: RelationSet = left.relations | right.relations
  }

  /**
   * The region whose topmost join or filter is `plan`; none where that is neither.
   *
   * @param shared sub-plans that must stay as they are; see [[SharedPlans]]
   */
  def at(plan: LogicalPlan, shared: SharedPlans = SharedPlans.none): Option[JoinRegion] =
    plan match {
      case _: Join | _: Filter | Project(Columns(), _) =>
        val barriers = new Barriers
        Option.when(barriers.at(plan, isKept = true).isEmpty) {
          new Flattening(plan, barriers, shared).region
        }
      case _ => None
    }

  private object Columns {
    def unapply(list: Seq[NamedExpression]): Boolean = list.forall(_.isInstanceOf[Attribute])
  }

  /** Projected columns, as expressions of what is below the projections. */
  private type Sources = Map[ExprId, Expression]

  private def resolved(expression: Expression, sources: Sources): Expression =
    if (sources.isEmpty) expression
    else expression.transform { case a: Attribute => sources.getOrElse(a.exprId, a) }

  private final class Flattening(root: LogicalPlan, found: Barriers, shared: SharedPlans) {
    private val relations = Seq.newBuilder[LogicalPlan]
    private val barriers = Seq.newBuilder[Reason]
    private val owner = mutable.HashMap.empty[ExprId, Int]
    private var count = 0

    def region: JoinRegion = {
      val (shape, sources) = flatten(root, isKept = true)
      val results = root.output.map { column =>
        sources.get(column.exprId) match {
          case Some(source) => Alias(source, column.name)(
              column.exprId,
              column.qualifier,
              Some(column.metadata)
            )
          case None => column
        }
      }
      JoinRegion(root, relations.result(), shape, results, barriers.result().distinct)
    }

    private def flatten(node: LogicalPlan, isKept: Boolean): (Shape, Sources) =
      found.at(node, isKept) match {
        case None => opened(node, isKept)
        case Some(boundary) => closed(node, boundary.reason)
      }

    private def closed(node: LogicalPlan, reason: Option[Reason]): (Shape, Sources) = {
      if (reason.isDefined) barriers += reason.get
      relations += node
      node.output.foreach(column => owner.update(column.exprId, count))
      count += 1
      (Leaf(count - 1), Map.empty)
    }

    private def opened(node: LogicalPlan, isKept: Boolean): (Shape, Sources) = node match {
      case Join(left, right, kind, condition, _) =>
        val (l, leftSources) = flatten(left, isKept && keepsLeft(kind))
        val (r, rightSources) =
          if (shared(right)) closed(right, Some(Reason.SharedSubplan))
          else flatten(right, isKept && keepsRight(kind))
        val sources = leftSources ++ rightSources
        val conditions = conditionsOf(condition).map(resolved(_, sources))
        kind match {
          case _: InnerLike => (placed(Pair(l, r, Inner, Nil), conditions), sources)
          case RightOuter => (Pair(r, l, LeftOuter, conditions), sources)
          case _ => (Pair(l, r, kind, conditions), sources)
        }
      case Filter(condition, child) =>
        val (shape, sources) = flatten(child, isKept)
        (placed(shape, Selectivity.conjuncts(condition).map(resolved(_, sources))), sources)
      case Project(list, child) =>
        val (shape, sources) = flatten(child, isKept)
        val computed = list.collect { case Alias(source, _) =>
          source
        }.map(resolved(_, sources))
        val ids = list.collect { case alias: Alias => alias.exprId }
        (shape, sources ++ ids.zip(computed))
      case other => throw new IllegalStateException(s"nothing to flatten: ${other.nodeName}")
    }

    /** A condition is evaluated as low as its columns allow. */
    private def placed(shape: Shape, conditions: Seq[Expression]): Shape =
      conditions.foldLeft(shape) { (tree, condition) =>
        val owners = condition.references.toSeq.map(a => owner.get(a.exprId))
        val needed =
          if (owners.contains(None)) RelationSet.empty else RelationSet.of(owners.flatten)
        place(tree, condition, needed)
      }
  }

  private def place(shape: Shape, condition: Expression, needed: RelationSet): Shape = {
    def isOf(part: Shape) = needed.nonEmpty && needed.within(part.relations)
    def into(part: Shape): Shape = part match {
      case leaf: Leaf => leaf.copy(filters = leaf.filters :+ condition)
      case pair: Pair if isOf(pair.left) => pair.copy(left = into(pair.left))
      case pair: Pair if pair.joinType == Inner && isOf(pair.right) =>
        pair.copy(right = into(pair.right))
      case pair: Pair => pair.copy(conditions = pair.conditions :+ condition)
    }
    into(shape)
  }

  /** Whether rows of the left side return with their columns as they are. */
  private def keepsLeft(kind: JoinType): Boolean = kind match {
    case RightOuter | FullOuter => false
    case _ => true
  }

  private def keepsRight(kind: JoinType): Boolean = kind match {
    case _: InnerLike | RightOuter => true
    case _ => false
  }

  // Of nodes of an expression that stands in for a column: a chain of projections that use columns
  // several times each would double at every step, and be evaluated as often for each row. Beyond, the
  // projection stays, and is a relation of the region. A limit of work, set by hand.
  private val mostNodes = 40

  /**
   * A node that does not belong to the region above it.
   *
   * @param reason none where nobody would expect otherwise: of what joins nothing
   */
  private final case class Boundary(reason: Option[Reason])

  /** What bounds a region. Each node is asked once: conditions above ask for all that is below. */
  private final class Barriers {

    private val known =
      new java.util.IdentityHashMap[LogicalPlan, Map[Boolean, Option[Boundary]]]()
    private val sizes = mutable.HashMap.empty[ExprId, Int]

    /**
     * Where a node must stay where it is; none if it may move.
     *
     * A hint is about the inputs that its writer saw. A condition may move only if it gives the same
     * rows wherever it is evaluated: no error that a row raises which another join would have removed
     * first, no subquery, whose place Spark relies on.
     *
     * @param isKept whether no outer join above puts nulls into what the node returns
     */
    def at(node: LogicalPlan, isKept: Boolean): Option[Boundary] = {
      val before = Option(known.get(node)).getOrElse(Map.empty[Boolean, Option[Boundary]])
      before.getOrElse(
        isKept, {
          val found = barrier(node, isKept)
          known.put(node, before.updated(isKept, found))
          found
        }
      )
    }

    private def barrier(node: LogicalPlan, isKept: Boolean): Option[Boundary] = node match {
      case join: Join =>
        val conditions = conditionsOf(join.condition)
        if (join.hint != JoinHint.NONE) Some(Boundary(Some(Reason.HintObeyed)))
        else if (isNullAware(join)) Some(Boundary(Some(Reason.NullAwareAntiJoin)))
        else if (!conditions.forall(RaisedErrors.isSafe)) Some(Boundary(Some(Reason.MayRaise)))
        else {
          val fits = join.joinType match {
            case _: InnerLike => conditions.forall(belongsTo(_, join, isKept))
            case LeftOuter | RightOuter | FullOuter | LeftSemi | LeftAnti | _: ExistenceJoin =>
              Mechanism.OuterJoins.isOn
            case _ => false
          }
          Option.unless(fits && !usesMarks(join, conditions))(Boundary(Some(Reason.JoinFixed)))
        }
      case Filter(condition, child) =>
        below(child, isKept).orElse {
          if (!Selectivity.conjuncts(condition).forall(RaisedErrors.isSafe))
            Some(Boundary(Some(Reason.MayRaise)))
          else
            Option.unless(Selectivity.conjuncts(condition).forall(belongsBelow(_, child, isKept)))(
              Boundary(Some(Reason.JoinFixed))
            )
        }
      case Project(list, child) =>
        below(child, isKept).orElse {
          val computed = list.collect { case Alias(source, _) => source }
          if (!computed.forall(RaisedErrors.isSafe)) Some(Boundary(Some(Reason.MayRaise)))
          else {
            // Where an outer join puts nulls, a value that is computed above it need not be null.
            val moves = computed.forall(_.isInstanceOf[Attribute]) ||
              isKept && computed.forall(_.references.nonEmpty)
            Option.unless(moves && areSmall(list))(Boundary(Some(Reason.JoinFixed)))
          }
        }
      case _ => Some(Boundary(None))
    }

    private def below(child: LogicalPlan, isKept: Boolean): Option[Boundary] = child match {
      case _: Join | _: Filter | _: Project => at(child, isKept)
      case _ => Some(Boundary(None))
    }

    /** Whether a filter's condition belongs to an inner join below, or to a relation. */
    private def belongsBelow(condition: Expression, plan: LogicalPlan, isKept: Boolean): Boolean =
      condition.references.nonEmpty && {
        def isOf(side: LogicalPlan) = condition.references.subsetOf(side.outputSet)
        plan match {
          case join: Join if at(join, isKept).isEmpty =>
            join.joinType match {
              case _: InnerLike =>
                belongsTo(condition, join, isKept) && !usesMarks(join, Seq(condition))
              case RightOuter => isOf(join.right) && belongsBelow(condition, join.right, isKept)
              case FullOuter => false
              case _ => isOf(join.left) && belongsBelow(condition, join.left, isKept)
            }
          case Filter(_, child) if at(plan, isKept).isEmpty =>
            belongsBelow(condition, child, isKept)
          case Project(list, child) if at(plan, isKept).isEmpty =>
            val sources = list.collect { case alias: Alias => alias.exprId -> alias.child }
            belongsBelow(resolved(condition, sources.toMap), child, isKept)
          case _ => true
        }
      }

    private def belongsTo(condition: Expression, inner: Join, isKept: Boolean): Boolean = {
      val needed = condition.references
      // What joins return is put together anew at every call: the side without joins is asked first.
      val (one, other) =
        if (inner.right.isInstanceOf[Join]) (inner.left, inner.right) else (inner.right, inner.left)
      val ofOne = needed.count(one.outputSet.contains)
      if (needed.isEmpty) false
      else if (ofOne == needed.size) belongsBelow(condition, one, isKept)
      else if (ofOne == 0) belongsBelow(condition, other, isKept)
      else true
    }

    /** Whether what is projected stays small where it takes the place of its columns. */
    private def areSmall(list: Seq[NamedExpression]): Boolean = {
      def sizeOf(expression: Expression): Int = expression match {
        case column: Attribute => sizes.getOrElse(column.exprId, 1)
        case other =>
          other.children.map(sizeOf).foldLeft(1)((a, b) => math.min(a + b, mostNodes + 1))
      }
      list.forall {
        case alias: Alias =>
          val size = sizeOf(alias.child)
          sizes.update(alias.exprId, size)
          size <= mostNodes
        case _ => true
      }
    }
  }

  /** NOT IN keeps a row only if no comparison is unknown; Spark has an operator of its own for it. */
  private def isNullAware(join: Join): Boolean = join.joinType == LeftAnti &&
    join.condition.exists(_.exists {
      case Or(_, IsNull(_)) | Or(IsNull(_), _) => true
      case _ => false
    })

  /** Whether a condition asks for what an existence join below has found out. */
  private def usesMarks(plan: LogicalPlan, conditions: Seq[Expression]): Boolean = {
    def marks(node: LogicalPlan): AttributeSet = node match {
      case Join(left, right, kind, _, _) =>
        val own = kind match {
          case ExistenceJoin(exists) => AttributeSet(exists)
          case _ => AttributeSet.empty
        }
        own ++ marks(left) ++ marks(right)
      case Filter(_, child) => marks(child)
      case Project(list, child) =>
        val below = marks(child)
        val derived = list.filter(_.references.intersect(below).nonEmpty).map(_.toAttribute)
        below ++ AttributeSet(derived)
      case _ => AttributeSet.empty
    }
    val needed = AttributeSet(conditions.flatMap(_.references))
    needed.nonEmpty && plan.children.map(marks).exists(_.intersect(needed).nonEmpty)
  }

  private def conditionsOf(condition: Option[Expression]): Seq[Expression] =
    condition.toSeq.flatMap(Selectivity.conjuncts)

}
