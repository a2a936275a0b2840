package io.selinger.ordering.graph

import io.selinger.ordering.ablation.Mechanism
import io.selinger.ordering.graph.JoinRegion.{Leaf, Pair, Shape}
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}
import scala.annotation.tailrec
import scala.collection.immutable.ArraySeq
import scala.collection.mutable

/**
 * A condition that is not one of the equalities of a [[EquivalenceClass]].
 *
 * @param edge of the join, or the conjunct of an inner join, that it belongs to
 * @param sides relations of its two sides, where it is an equality
 */
final case class JoinPredicate(
    condition: Expression,
    edge: JoinEdge,
    sides: Option[(RelationSet, RelationSet)]
) {

  /** Evaluated where its last relation comes in. */
  def joins(left: RelationSet, right: RelationSet): Boolean =
    edge.crosses(left, right, left | right)

  /** Whether a join of these sets can look it up: as a key. */
  def isKey(left: RelationSet, right: RelationSet): Boolean = sides.exists { case (a, b) =>
    a.within(left) && b.within(right) || a.within(right) && b.within(left)
  }
}

/**
 * The joins of one region of a query, without their order.
 *
 * @param relations what is joined, each under those conditions that concern it alone
 * @param predicates conditions beside the keys
 * @param kinds of the joins of [[Hypergraph.edges]], by index
 * @param output columns that the region must return
 */
final case class JoinGraph(
    relations: IndexedSeq[LogicalPlan],
    keys: IndexedSeq[EquivalenceClass],
    predicates: IndexedSeq[JoinPredicate],
    shape: Hypergraph,
    kinds: IndexedSeq[JoinType],
    output: Seq[Attribute]
) {
  import JoinGraph.Column

  val all: RelationSet = RelationSet.first(relations.size)

  def isConnected: Boolean = shape.isConnected

  private val keysAt: IndexedSeq[Seq[Int]] = {
    val at = Array.fill(relations.size)(List.newBuilder[Int])
    keys.indices.foreach(k => keys(k).relations.members.foreach(i => at(i) += k))
    at.toIndexedSeq.map(_.result())
  }

  /** Numbers of the classes that give a join of these sets a key. */
  def keyNumbersBetween(left: RelationSet, right: RelationSet): Seq[Int] = {
    val few = if (left.size <= right.size) left else right
    val found =
      if (few.size == 1) keysAt(few.lowest)
      else few.members.flatMap(keysAt).distinct.sorted
    found.filter(keys(_).joins(left, right))
  }

  /** The left side of each belongs to `left`. */
  def equalitiesBetween(left: RelationSet, right: RelationSet): Seq[EqualTo] =
    keyNumbersBetween(left, right).flatMap(keys(_).between(left, right))

  // Numbers of the predicates of each of the hypergraph's edges, and of those that belong to none of them.
  private val (numbersOf: IndexedSeq[Seq[Int]], ofSimpleJoins: Seq[Int]) = {
    // By identity: with a hundred rules each, to compare edges takes longer than all the rest.
    val byEdge = new java.util.IdentityHashMap[JoinEdge, mutable.ListBuffer[Int]]()
    predicates.indices.foreach { p =>
      byEdge.computeIfAbsent(predicates(p).edge, _ => mutable.ListBuffer.empty) += p
    }
    val ofEdges =
      shape.edges.map(edge => Option(byEdge.remove(edge)).fold(List.empty[Int])(_.toList))
    (ofEdges, predicates.indices.filter(p => byEdge.containsKey(predicates(p).edge)))
  }

  /** Conditions beside the keys that a join of these sets evaluates. */
  def predicatesBetween(
      left: RelationSet,
      right: RelationSet,
      how: Connection
  ): Seq[JoinPredicate] = how.edge match {
    case Some(index) => predicatesOf(index)
    case None if predicates.isEmpty => Nil
    case None =>
      val found = mutable.ArrayBuffer.from(ofSimpleJoins.filter(predicates(_).joins(left, right)))
      shape.foreachCrossing(left, right)(found ++= numbersOf(_))
      found.sorted.map(predicates).toSeq
  }

  /** Those that belong to one of [[Hypergraph.edges]]. */
  def predicatesOf(edge: Int): Seq[JoinPredicate] = numbersOf(edge).map(predicates)

  /** The condition of a join of two sets: each equivalence class gives it one equality. */
  def conditionBetween(
      left: RelationSet,
      right: RelationSet,
      how: Connection = Connection.inner
  ): Option[Expression] = {
    val equalities = if (how.edge.isEmpty) equalitiesBetween(left, right) else Nil
    (equalities ++ predicatesBetween(left, right, how).map(_.condition)).reduceOption(And(_, _))
  }

  def joinType(how: Connection): JoinType = how.edge.fold[JoinType](Inner)(kinds)

  /** What a join adds to the columns of its relations. */
  val marks: Seq[Attribute] = kinds.collect { case ExistenceJoin(exists) => exists }

  // By column, relations of all joins that compare it.
  private val uses: mutable.HashMap[ExprId, RelationSet] = {
    val found = mutable.HashMap.empty[ExprId, RelationSet]
    def add(expression: Expression, relations: RelationSet): Unit =
      JoinGraph.columnsOf(expression).foreach { column =>
        found.update(column.exprId, found.getOrElse(column.exprId, RelationSet.empty) | relations)
      }
    for (key <- keys; (_, member) <- key.members) add(member, key.relations)
    predicates.foreach(p => add(p.condition, p.edge.tes))
    found
  }

  /** Columns of each relation. */
  val columns: IndexedSeq[Array[Column]] = {
    val wanted = AttributeSet(output)
    relations.map(_.output.map { a =>
      Column(a, wanted.contains(a), uses.getOrElse(a.exprId, RelationSet.empty))
    }.toArray)
  }

  /** Columns of `set` that something outside of it still needs. */
  def requiredOf(set: RelationSet): Seq[Attribute] =
    set.members.flatMap(i => columns(i).collect { case c if c.isRequired(set) => c.attribute })

  /** Whether joins of `set` with others compare the column. */
  def isCompared(column: ExprId, set: RelationSet): Boolean =
    uses.get(column).exists(!_.within(set))
}

object JoinGraph {

  /**
   * @param always whether the region returns it
   * @param uses relations of all joins that compare it
   */
  final case class Column(attribute: Attribute, always: Boolean, uses: RelationSet) {

    /** Whether something outside of `set` needs it. */
    def isRequired(set: RelationSet): Boolean = always || !uses.within(set)
  }

  /**
   * Inner joins only, of which the conditions are those of all together.
   *
   * @return none where a condition concerns no relation or a column of none of them
   */
  def of(
      relations: Seq[LogicalPlan],
      conditions: Seq[Expression],
      output: Seq[Attribute]
  ): Option[JoinGraph] = {
    val known = AttributeSet(relations.flatMap(_.output))
    if (!conditions.forall(c => c.references.nonEmpty && c.references.subsetOf(known))) None
    else {
      val (local, joining) =
        conditions.partition(c => relations.exists(r => c.references.subsetOf(r.outputSet)))
      val leaves = relations.indices.map { i =>
        Leaf(i, local.filter(_.references.subsetOf(relations(i).outputSet)))
      }
      val shape = leaves.tail.foldLeft[(Shape, AttributeSet, Seq[Expression])](
        (leaves.head, relations.head.outputSet, joining)
      ) { case ((left, columns, rest), leaf) =>
        val more = columns ++ relations(leaf.index).outputSet
        val (here, later) = rest.partition(_.references.subsetOf(more))
        (Pair(left, leaf, Inner, here), more, later)
      }
      of(relations, shape._1, output)
    }
  }

  /** @return none where a condition has a column that is of none of the relations */
  def of(
      relations: Seq[LogicalPlan],
      written: Shape,
      output: Seq[Attribute]
  ): Option[JoinGraph] = new Builder(relations.toIndexedSeq, written, output).graph

  /**
   * An equivalence class and what it implies.
   *
   * @param local equalities within single relations
   * @param edges joins of relations of which the query does not compare the members
   */
  private final case class Closure(
      key: EquivalenceClass,
      local: Seq[Expression],
      edges: Seq[JoinEdge]
  ) {

    /** Whether each two of its relations may be joined by it. */
    def isTransitive: Boolean =
      key.members.size <= 2 || Mechanism.TransitiveKeys.isOn &&
        edges.forall(edge => edge.kind == JoinKind.Inner && edge.tes.size == 2)
  }

  private final class Builder(
      relations: IndexedSeq[LogicalPlan],
      written: Shape,
      output: Seq[Attribute]
  ) {
    private val owner =
      relations.zipWithIndex.flatMap { case (r, i) => r.output.map(_.exprId -> i) }.toMap

    private val pairs = written.joins

    // By join, in the order of `pairs`.
    private val conditionsOf: Seq[Seq[Expression]] = pairs.map(pair => distinct(pair.conditions))

    private val conditions: IndexedSeq[Expression] = conditionsOf.flatten.toIndexedSeq

    def graph: Option[JoinGraph] =
      if (conditions.forall(columnsOf(_).forall(a => owner.contains(a.exprId)))) Some(built)
      else None

    private val singles = relations.indices.map(RelationSet.single)

    private def relationOf(column: Attribute): RelationSet = singles(owner(column.exprId))

    private def relationsOf(expression: Expression): RelationSet = expression match {
      case column: Attribute => relationOf(column)
      case other => RelationSet.union(columnsOf(other).iterator.map(relationOf))
    }

    // Of each condition, the relations that it names.
    private lazy val named: IndexedSeq[RelationSet] = conditions.map(relationsOf)

    private def tree: OperatorTree = {
      var next = 0
      val own = conditionsOf.iterator
      def convert(shape: Shape): OperatorTree = shape match {
        case Leaf(index, _) => OperatorTree.Relation(index)
        case Pair(left, right, kind, _) =>
          val (l, r) = (convert(left), convert(right))
          val predicates = own.next().map { condition =>
            next += 1
            val ses = named(next - 1)
            OperatorTree.Predicate(next - 1, ses, rejecting(condition, ses))
          }
          OperatorTree.Operator(kindOf(kind), predicates, l, r)
      }
      convert(written)
    }

    /** Those of its relations that make a condition false or null when all their columns are null. */
    private def rejecting(condition: Expression, named: RelationSet): RelationSet =
      condition match {
        case EqualTo(_: Attribute, _: Attribute) => named
        case _ =>
          RelationSet.of(named.members.filter { i =>
            NullRejection.rejects(condition, relations(i).outputSet)
          })
      }

    private def built: JoinGraph = {
      val detector = new ConflictDetector(tree)
      val edges = detector.edges
      val edgeOf = new Array[JoinEdge](conditions.size)
      for (edge <- edges; condition <- edge.predicates) edgeOf(condition) = edge
      val equalities = conditions.indices.flatMap { i =>
        conditions(i) match {
          case e @ EqualTo(l, r) if isFree(edgeOf(i), named(i)) && apart(l, r) => Some((i, e))
          case _ => None
        }
      }
      val closures = equivalent(equalities.map(_._2)).map(closure(_, detector))
      val (transitive, rest) = closures.partition(_.isTransitive)
      val keys = transitive.map(_.key) ++
        rest.flatMap(_.key.written).map(e => keyClass(Seq(e))).filter(_._2.isEmpty).map(_._1)
      val inKeys = new java.util.IdentityHashMap[Expression, Unit]()
      for (key <- keys; equality <- key.written) inKeys.put(equality, ())
      val beside = conditions.indices.filterNot(i => inKeys.containsKey(conditions(i))).map { i =>
        JoinPredicate(conditions(i), edgeOf(i), sidesOf(conditions(i)))
      }
      val allEdges = edges ++ transitive.flatMap(_.edges)
      val shape = Hypergraph.of(relations.size, allEdges, keys.map(_.relations))
      JoinGraph(
        filtered(transitive.flatMap(_.local)),
        ArraySeq.from(keys),
        beside,
        shape,
        shape.edges.map(kindOf(_, edges)),
        output
      )
    }

    /** What follows from equalities, which may be subject to rules of its own. */
    private def closure(equalities: Seq[EqualTo], detector: ConflictDetector): Closure = {
      val (key, local) = keyClass(equalities)
      val edges =
        if (key.members.size <= 2) Nil
        else {
          val written = key.written.map(relationsOf)
          for {
            (one, n) <- key.members.map(_._1).zipWithIndex
            (other, _) <- key.members.drop(n + 1)
            if !written.contains(singles(one) | singles(other))
          } yield
            if (allInner) simple(one, other) else detector.between(one, other)
        }
      Closure(key, local, edges)
    }

    private lazy val allInner: Boolean = pairs.forall(_.joinType == Inner)

    private def simple(one: Int, other: Int): JoinEdge =
      JoinEdge(JoinKind.Inner, RelationSet.single(one), RelationSet.single(other), Nil, Nil)

    /** An equality of two relations, which nothing else must come before. */
    private def isFree(edge: JoinEdge, ses: RelationSet): Boolean =
      edge.kind == JoinKind.Inner && edge.tes == ses

    private def apart(left: Expression, right: Expression): Boolean = {
      val (one, other) = (relationsOf(left), relationsOf(right))
      one.size == 1 && other.size == 1 && one != other
    }

    private def sidesOf(condition: Expression): Option[(RelationSet, RelationSet)] =
      condition match {
        case Equality(l, r) if l.references.nonEmpty && r.references.nonEmpty =>
          Some((relationsOf(l), relationsOf(r)))
        case _ => None
      }

    private def kindOf(edge: JoinEdge, edges: Seq[JoinEdge]): JoinType =
      if (edge.kind == JoinKind.Inner) Inner
      else {
        // Edges of joins other than inner ones are in the order of the joins.
        val others = edges.filter(_.kind != JoinKind.Inner)
        pairs.filter(_.joinType != Inner)(others.indexWhere(_ eq edge)).joinType
      }

    private def kindOf(kind: JoinType): JoinKind = kind match {
      case LeftOuter => JoinKind.LeftOuter
      case FullOuter => JoinKind.FullOuter
      case LeftSemi => JoinKind.Semi
      case LeftAnti => JoinKind.Anti
      case ExistenceJoin(_) => JoinKind.Existence
      case Inner => JoinKind.Inner
      case other => throw new IllegalArgumentException(s"no join to reorder: $other")
    }

    /** Relations under the conditions that concern them alone. */
    private def filtered(implied: Seq[Expression]): IndexedSeq[LogicalPlan] = {
      def filters(shape: Shape): Seq[(Int, Expression)] = shape match {
        case Leaf(index, own) => own.map(index -> _)
        case pair: Pair => filters(pair.left) ++ filters(pair.right)
      }
      val all =
        (filters(written) ++ implied.map(c => relationsOf(c).lowest -> c)).groupMap(_._1)(_._2)
      relations.zipWithIndex.map { case (relation, i) =>
        missing(relation, distinct(all.getOrElse(i, Nil)))
          .reduceOption(And(_, _))
          .fold(relation)(Filter(_, relation))
      }
    }

    /** The class of these equalities, and what it implies within single relations. */
    private def keyClass(equalities: Seq[EqualTo]): (EquivalenceClass, Seq[Expression]) = {
      val (members, implied) = equalities match {
        // Nearly all classes, and of cliques there are thousands.
        case Seq(EqualTo(left: Attribute, right: Attribute)) =>
          val (one, other) = (owner(left.exprId) -> left, owner(right.exprId) -> right)
          (if (one._1 < other._1) List(one, other) else List(other, one), Nil)
        case _ =>
          val byRelation = distinct(equalities.flatMap(_.children))
            .groupBy(e => relationsOf(e).lowest)
            .toSeq
            .sortBy(_._1)
          val within = byRelation.flatMap { case (_, expressions) =>
            expressions.tail.map(EqualTo(expressions.head, _))
          }
          (byRelation.map { case (i, expressions) => i -> expressions.head }, within)
      }
      (EquivalenceClass(members, equalities), implied)
    }
  }

  private def distinct(expressions: Seq[Expression]): Seq[Expression] =
    if (expressions.size < 2) expressions else expressions.distinctBy(identity)

  /** The same for expressions that are equal; quick for columns, which nearly all are. */
  private def identity(expression: Expression): Any = expression match {
    case column: Attribute => column.exprId
    case EqualTo(left: Attribute, right: Attribute) => Set(left.exprId, right.exprId)
    case computed => computed.canonicalized
  }

  private def missing(relation: LogicalPlan, conditions: Seq[Expression]): Seq[Expression] =
    conditions.filterNot(relation.constraints.contains)

  /** Equalities whose sides are equal by transitivity, together. */
  private def equivalent(equalities: Seq[EqualTo]): Seq[Seq[EqualTo]] = {
    val leaders = mutable.HashMap.empty[Any, Any]
    @tailrec def leader(side: Any): Any = leaders.get(side) match {
      case Some(next) => leader(next)
      case None => side
    }
    equalities.foreach { equality =>
      val (one, other) = (leader(identity(equality.left)), leader(identity(equality.right)))
      if (one != other) leaders.update(other, one)
    }
    val classes = mutable.LinkedHashMap.empty[Any, mutable.ListBuffer[EqualTo]]
    equalities.foreach { equality =>
      classes.getOrElseUpdate(leader(identity(equality.left)), mutable.ListBuffer.empty) += equality
    }
    classes.valuesIterator.map(_.toList).toIndexedSeq
  }

  /** Columns that an expression names. Making sets of them is slow, and most are equalities. */
  private def columnsOf(expression: Expression): Seq[Attribute] = expression match {
    case column: Attribute => Seq(column)
    case EqualTo(left: Attribute, right: Attribute) => Seq(left, right)
    case other => other.references.toSeq
  }
}
