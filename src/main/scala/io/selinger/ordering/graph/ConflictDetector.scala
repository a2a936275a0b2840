package io.selinger.ordering.graph

import io.selinger.ordering.graph.OperatorTree.Operator

/** Joins in the order written, as far as their reordering goes: no plans, no expressions. */
sealed trait OperatorTree {

  /** Relations below. */
  def relations: RelationSet

  /** All joins, those below first. */
  def operators: Vector[Operator]
}

object OperatorTree {

  final case class Relation(index: Int) extends OperatorTree {
    val relations: RelationSet = RelationSet.single(index)
    val operators: Vector[Operator] = Vector.empty
  }

  /** @param predicates conjuncts of the join's condition */
  final case class Operator(
      kind: JoinKind,
      predicates: Seq[Predicate],
      left: OperatorTree,
      right: OperatorTree
  ) extends OperatorTree {
    val relations: RelationSet = left.relations | right.relations
    val operators: Vector[Operator] = left.operators ++ right.operators :+ this
    val allInner: Boolean = operators.forall(_.kind == JoinKind.Inner)

    /** Syntactic eligibility set (SES): relations whose columns the condition uses. */
    val ses: RelationSet = RelationSet.union(predicates.map(_.references))

    val rejects: RelationSet = RelationSet.union(predicates.map(_.rejects))
  }

  /**
   * @param id of the conjunct, for the caller
   * @param references relations whose columns it uses
   * @param rejects those of them which make it false or null when all their columns are null
   */
  final case class Predicate(id: Int, references: RelationSet, rejects: RelationSet)
}

/** If a plan has one of `any`, it must have all of `all`. */
final case class ConflictRule(any: RelationSet, all: RelationSet) {
  def holds(set: RelationSet): Boolean = !any.meets(set) || all.within(set)
}

/**
 * A join of the query, or one conjunct of an inner join, that may take place wherever its relations
 * are there: the total eligibility set (TES), in two halves, and rules on what else must be there.
 *
 * @param predicates conjuncts that it evaluates, by id
 * @param anySplit whether its relations may be split between the inputs in any way: it is a conjunct
 *   of inner joins only
 * @param optional whether a plan may do without it: a cross product, which connects but asks nothing
 */
final case class JoinEdge(
    kind: JoinKind,
    left: RelationSet,
    right: RelationSet,
    rules: Seq[ConflictRule],
    predicates: Seq[Int],
    anySplit: Boolean = false,
    optional: Boolean = false
) {

  /** Total eligibility set: relations that must be there, whatever the order. */
  val tes: RelationSet = left | right

  def isSimple: Boolean =
    kind == JoinKind.Inner && rules.isEmpty && !optional && left.size == 1 && right.size == 1

  /** Whether a join of just these inputs, or of these exchanged, brings its halves together. */
  def splits(one: RelationSet, other: RelationSet): Boolean =
    left.within(one) && right.within(other)

  /** Whether its relations come together in a join of these inputs. */
  def crosses(one: RelationSet, other: RelationSet, both: RelationSet): Boolean =
    tes.within(both) && !tes.within(one) && !tes.within(other)

  def rulesHold(both: RelationSet): Boolean = rules.forall(_.holds(both))
}

/**
 * Finds for each join of a query where it may take place: conflict detector CD-C [1], which accepts
 * every order that the three properties of [[JoinProperties]] allow, and no other.
 *
 * A join starts with the relations that its condition names. Each join below it with which it may not
 * change places adds a rule: a plan that has relations of one side of that join must have those of
 * the other side which its condition names. Conjuncts of inner joins stand for themselves.
 *
 * References: [1] Moerkotte, Fender, Eich, On the Correct and Complete Enumeration of the Core Search
 * Space, SIGMOD 2013, section 5.4.
 */
final class ConflictDetector(root: OperatorTree) {

  /** One for each join, or for each conjunct of an inner join. */
  def edges: Seq[JoinEdge] = root.operators.flatMap(edgesOf)

  /** An equality of two relations that follows from others, as an inner join of both implies it. */
  def between(one: Int, other: Int): JoinEdge = {
    val both = RelationSet.single(one) | RelationSet.single(other)
    val meeting = root.operators
      .filter(operator => both.within(operator.relations))
      .minBy(_.relations.size)
    edge(meeting, both, Nil, rulesOf(meeting))
  }

  private def edgesOf(operator: Operator): Seq[JoinEdge] = operator.kind match {
    case JoinKind.Inner if operator.predicates.isEmpty =>
      Seq(edge(operator, operator.relations, Nil, rulesOf(operator)).copy(optional = true))
    case JoinKind.Inner =>
      val rules = rulesOf(operator)
      operator.predicates.map(p => edge(operator, p.references, Seq(p.id), rules))
    case _ =>
      val ids = operator.predicates.map(_.id)
      Seq(edge(operator, operator.ses, ids, rulesOf(operator)))
  }

  private def edge(
      operator: Operator,
      ses: RelationSet,
      predicates: Seq[Int],
      all: Seq[ConflictRule]
  ): JoinEdge = {
    def half(side: OperatorTree) =
      if (ses.meets(side.relations)) ses & side.relations else side.relations
    val own = half(operator.left) | half(operator.right)
    val (eligible, rules) = absorbed(own, all)
    JoinEdge(
      operator.kind,
      eligible & operator.left.relations,
      eligible & operator.right.relations,
      rules,
      predicates,
      anySplit = operator.allInner
    )
  }

  /** Rules that always apply become part of the set, and those that it fulfils are dropped. */
  private def absorbed(
      set: RelationSet,
      rules: Seq[ConflictRule]
  ): (RelationSet, Seq[ConflictRule]) = {
    val grown = RelationSet.union(rules.filter(_.any.meets(set)).map(_.all)) | set
    if (grown == set) (set, rules.filterNot(_.all.within(set))) else absorbed(grown, rules)
  }

  private def rulesOf(b: Operator): Seq[ConflictRule] = if (b.allInner) Nil
  else {
    val below = b.left.operators.flatMap { a =>
      def upper(side: OperatorTree) = rejects(b, side, b.left)
      Seq(
        Option.unless(
          JoinProperties.associative(a.kind, b.kind, rejects(a, a.right, a.right), upper(a.right))
        )(rule(a, from = a.right, to = a.left)),
        Option.unless(
          JoinProperties.leftAsscom(a.kind, b.kind, rejects(a, a.left, a.left), upper(a.left))
        )(rule(a, from = a.left, to = a.right))
      ).flatten
    }
    val beside = b.right.operators.flatMap { a =>
      def upper(side: OperatorTree) = rejects(b, side, b.right)
      Seq(
        Option.unless(
          JoinProperties.associative(b.kind, a.kind, upper(a.left), rejects(a, a.left, a.left))
        )(rule(a, from = a.left, to = a.right)),
        Option.unless(
          JoinProperties.rightAsscom(b.kind, a.kind, upper(a.right), rejects(a, a.right, a.right))
        )(rule(a, from = a.right, to = a.left))
      ).flatten
    }
    (below ++ beside).distinct
  }

  /**
   * Whether a join's condition is never true when all of `part`, a part of its input `side`, is null.
   * Of a part that it does not name, this is asked of whatever else comes there with it.
   */
  private def rejects(join: Operator, part: OperatorTree, side: OperatorTree): Boolean =
    join.rejects.meets(part.relations) || !join.ses.meets(part.relations) && {
      val named = join.ses & side.relations
      named.nonEmpty && named.within(join.rejects)
    }

  private def rule(a: Operator, from: OperatorTree, to: OperatorTree): ConflictRule = {
    val named = a.ses & to.relations
    ConflictRule(from.relations, if (named.isEmpty) to.relations else named)
  }
}
