package io.selinger.ordering

import org.apache.spark.sql.catalyst.expressions.{
  And,
  Attribute,
  AttributeSet,
  EqualNullSafe,
  EqualTo,
  Expression
}
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LogicalPlan}

/**
 * Expressions that the query demands to be equal, at most one of each relation.
 *
 * @param members relation and expression
 * @param written the equalities of the query among them
 * @param kept relations whose member the query goes on to use. A join by such a member leaves its rows
 *   partitioned and sorted by what is still there, so that the next operator may need no shuffle
 */
final case class KeyClass(
    members: Seq[(Int, Expression)],
    written: Seq[EqualTo],
    kept: Long = 0L
) {

  val relations: Long = members.foldLeft(0L) { case (set, (i, _)) => set | RelationSet.single(i) }

  /** One equality between both sets: of members that are kept, else one that the query names. */
  def between(left: Long, right: Long): Option[EqualTo] =
    (member(left & kept), member(right & kept)) match {
      case (None, None) => named(left, right).orElse(any(member(left), member(right)))
      case (Some((i, _)), None) =>
        named(RelationSet.single(i), right).orElse(any(member(left & kept), member(right)))
      case (None, Some((j, _))) =>
        named(left, RelationSet.single(j)).orElse(any(member(left), member(right & kept)))
      case (l, r) => any(l, r)
    }

  private def named(left: Long, right: Long): Option[EqualTo] =
    written
      .find(equality => crosses(equality, left, right))
      .map(equality => oriented(equality, left))

  private def any(
      left: Option[(Int, Expression)],
      right: Option[(Int, Expression)]
  ): Option[EqualTo] =
    for ((_, l) <- left; (_, r) <- right) yield EqualTo(l, r)

  private def member(set: Long): Option[(Int, Expression)] =
    members.find { case (i, _) => RelationSet.contains(set, i) }

  private def relationOf(expression: Expression): Option[Int] =
    members.collectFirst { case (i, member) if member.semanticEquals(expression) => i }

  private def crosses(equality: EqualTo, left: Long, right: Long): Boolean =
    (relationOf(equality.left), relationOf(equality.right)) match {
      case (Some(a), Some(b)) =>
        RelationSet.contains(left, a) && RelationSet.contains(right, b) ||
        RelationSet.contains(left, b) && RelationSet.contains(right, a)
      case _ => false
    }

  private def oriented(equality: EqualTo, left: Long): EqualTo =
    if (relationOf(equality.left).exists(RelationSet.contains(left, _))) equality
    else EqualTo(equality.right, equality.left)
}

/** A condition on two relations or more that is not one of the equalities of a [[KeyClass]]. */
final case class JoinPredicate(condition: Expression, relations: Long) {

  /** Evaluated where its last relation comes in. */
  def joins(left: Long, right: Long): Boolean =
    RelationSet.within(relations, left | right) &&
      !RelationSet.within(relations, left) && !RelationSet.within(relations, right)
}

/**
 * The inner joins of one region of a query, without their order.
 *
 * @param relations what is joined, each under those conditions that concern it alone
 * @param output columns that the region must return
 */
final case class JoinGraph(
    relations: IndexedSeq[LogicalPlan],
    keys: Seq[KeyClass],
    predicates: Seq[JoinPredicate],
    output: Seq[Attribute]
) {

  val all: Long = RelationSet.first(relations.size)

  private val neighbours: IndexedSeq[Long] = relations.indices.map { i =>
    val reached = keys.map(_.relations) ++ predicates.filter(isEquality).map(_.relations)
    RelationSet.without(
      reached.filter(RelationSet.contains(_, i)).foldLeft(0L)(_ | _),
      RelationSet.single(i)
    )
  }

  /** Relations outside of `set` that an equality joins with one inside. */
  def neighboursOf(set: Long): Long =
    RelationSet.without(RelationSet.members(set).foldLeft(0L)((n, i) => n | neighbours(i)), set)

  def isConnected: Boolean = {
    var reached = RelationSet.single(0)
    var next = neighboursOf(reached)
    while (next != 0L) {
      reached |= next
      next = neighboursOf(reached)
    }
    reached == all
  }

  /** The left side of each belongs to `left`. */
  def equalitiesBetween(left: Long, right: Long): Seq[EqualTo] =
    keys.flatMap(_.between(left, right))

  /** The condition of a join of two sets: each equivalence class gives it one equality. */
  def conditionBetween(left: Long, right: Long): Option[Expression] =
    (equalitiesBetween(
      left,
      right
    ) ++ predicates.filter(_.joins(left, right)).map(_.condition)).reduceOption(And(_, _))

  /** Columns of `set` that something outside of it still needs. */
  def requiredOf(set: Long): Seq[Attribute] = {
    val pendingKeys =
      keys.filterNot(k => RelationSet.within(k.relations, set)).flatMap(_.members.map(_._2))
    val pending = predicates.filterNot(p => RelationSet.within(p.relations, set)).map(_.condition)
    val needed = AttributeSet((pendingKeys ++ pending).flatMap(_.references)) ++ outputSet
    RelationSet.members(set).flatMap(i => relations(i).output.filter(needed.contains))
  }

  private val outputSet: AttributeSet = AttributeSet(output)

  /** One by which a join can look up its partners: each side is of one relation. */
  private def isEquality(predicate: JoinPredicate): Boolean = predicate.condition match {
    case EqualNullSafe(left, right) =>
      Seq(left, right).forall { side =>
        relations.count(_.outputSet.intersect(side.references).nonEmpty) == 1
      }
    case _ => false
  }
}

object JoinGraph {

  /**
   * @param conditions conjuncts of all joins and of the filters between them
   * @return none where a condition concerns no relation or a column of none of them
   */
  def of(
      relations: Seq[LogicalPlan],
      conditions: Seq[Expression],
      output: Seq[Attribute]
  ): Option[JoinGraph] = {
    val owner = relations.zipWithIndex.flatMap { case (r, i) => r.output.map(_.exprId -> i) }.toMap
    def relationsOf(expression: Expression): Long =
      expression.references.foldLeft(0L)((set, a) => set | RelationSet.single(owner(a.exprId)))

    val known = conditions.forall { condition =>
      condition.references.nonEmpty && condition.references.forall(a => owner.contains(a.exprId))
    }
    if (!known) None
    else {
      val (local, joining) = distinct(conditions).partition(c => isSingle(relationsOf(c)))
      val (equalities, others) = joining.partitionMap {
        case e @ EqualTo(l, r) if isSingle(relationsOf(l)) && isSingle(relationsOf(r)) => Left(e)
        case other => Right(JoinPredicate(other, relationsOf(other)))
      }
      val classes = equivalent(equalities)
      val (keys, implied) = classes
        .map(keyClass(_, e => RelationSet.lowest(relationsOf(e)), AttributeSet(output)))
        .unzip
      val filters = (local ++ implied.flatten).groupBy(c => RelationSet.lowest(relationsOf(c)))
      val filtered = relations.zipWithIndex.map { case (relation, i) =>
        missing(relation, filters.getOrElse(i, Nil)).reduceOption(And(_, _))
          .fold(relation)(Filter(_, relation))
      }
      Some(JoinGraph(filtered.toIndexedSeq, keys, others, output))
    }
  }

  private def isSingle(set: Long): Boolean = java.lang.Long.bitCount(set) == 1

  private def distinct(conditions: Seq[Expression]): Seq[Expression] =
    conditions.foldLeft(Seq.empty[Expression]) { (kept, condition) =>
      if (kept.exists(_.semanticEquals(condition))) kept else kept :+ condition
    }

  private def missing(relation: LogicalPlan, conditions: Seq[Expression]): Seq[Expression] =
    conditions.filterNot(relation.constraints.contains)

  /** Equalities whose sides are equal by transitivity, together. */
  private def equivalent(equalities: Seq[EqualTo]): Seq[Seq[EqualTo]] =
    equalities.foldLeft(Seq.empty[Seq[EqualTo]]) { (classes, equality) =>
      val (touched, apart) = classes.partition(_.exists(sharesSide(_, equality)))
      apart :+ (touched.flatten :+ equality)
    }

  private def sharesSide(a: EqualTo, b: EqualTo): Boolean =
    a.children.exists(l => b.children.exists(r => l.semanticEquals(r)))

  /** The class of these equalities, and what it implies within single relations. */
  private def keyClass(
      equalities: Seq[EqualTo],
      relationOf: Expression => Int,
      output: AttributeSet
  ): (KeyClass, Seq[Expression]) = {
    val byRelation = distinct(equalities.flatMap(_.children)).groupBy(relationOf).toSeq.sortBy(_._1)
    val members = byRelation.map { case (i, expressions) => i -> expressions.head }
    val implied = byRelation.flatMap { case (_, expressions) =>
      expressions.tail.map(EqualTo(expressions.head, _))
    }
    val kept = members.collect {
      case (i, member: Attribute) if output.contains(member) => RelationSet.single(i)
    }
    (KeyClass(members, equalities, kept.foldLeft(0L)(_ | _)), implied)
  }
}

/** Sets of up to 63 relations, as bits. */
object RelationSet {

  val most: Int = 63

  def single(relation: Int): Long = 1L << relation
  def first(count: Int): Long = (1L << count) - 1
  def contains(set: Long, relation: Int): Boolean = (set & (1L << relation)) != 0L
  def within(inner: Long, outer: Long): Boolean = (inner & ~outer) == 0L
  def without(set: Long, removed: Long): Long = set & ~removed
  def lowest(set: Long): Int = java.lang.Long.numberOfTrailingZeros(set)

  def members(set: Long): Seq[Int] = {
    val found = Seq.newBuilder[Int]
    var rest = set
    while (rest != 0L) {
      found += lowest(rest)
      rest &= rest - 1
    }
    found.result()
  }
}
