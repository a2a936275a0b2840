package io.selinger.ordering.graph

import io.selinger.ordering.search.CsgCmpPairs
import io.selinger.testing.Grid
import org.scalatest.funsuite.AnyFunSuite
import scala.collection.mutable
import scala.util.Random

/**
 * The conflict detector and the enumeration against two judges that know nothing of them: all
 * transformations that the paper's tables allow, applied until nothing new comes up, and the rows that
 * each order gives on tiny tables with nulls and duplicates.
 */
class ConflictDetectorSuite extends AnyFunSuite {
  import ConflictDetectorSuite._

  private def check(seed: Int, complete: Boolean, makes: RandomJoins => Query): Int = {
    val random = new RandomJoins(seed)
    val query = makes(random)
    val found = accepted(query)
    val expected = query.rows(query.tree)
    assert(
      found.contains(canonical(query.renumbered, query.joins)),
      s"seed $seed refuses what is written: $query"
    )
    found.foreach { tree =>
      assert(query.rows(tree) == expected, s"seed $seed: ${query.text(tree)} for $query")
    }
    if (complete) {
      val allowed = closure(query)
      val missing = (allowed -- found).take(3).map(query.text)
      val more = (found -- allowed).take(3).map(query.text)
      assert(
        found.size == allowed.size && missing.isEmpty && more.isEmpty,
        s"seed $seed: missing $missing, more $more for $query"
      )
    }
    found.size
  }

  test("just the orders that the transformations reach are accepted, and they give the same rows") {
    // A failure names its seed.
    val orders = Grid
      .seeds(whole = 4000, short = 700, more = 100)
      .map(seed => check(seed, complete = true, _.query(2 + seed % 6, 1)))
    info(s"${orders.sum} orders of ${orders.size} queries, at most ${orders.max}")
    assert(orders.count(_ > 1) > orders.size / 2)
  }

  test("inner joins of several conjuncts give the same rows in every order") {
    val orders = Grid
      .seeds(whole = 1500, short = 500, more = 100)
      .map(seed => check(seed, complete = false, _.query(3 + seed % 4, 3)))
    info(s"${orders.sum} orders of ${orders.size} queries, at most ${orders.max}")
    assert(orders.count(_ > 1) > orders.size / 2)
  }

  test("cross products give the same rows in every order") {
    Grid
      .seeds(whole = 800, short = 300, more = 100)
      .foreach(seed => check(seed, complete = false, _.query(2 + seed % 5, 2, least = 0)))
  }

  test("the judge of rows knows a wrong order when it sees one") {
    // An inner join may not move below the side of an outer join that is not kept.
    val wrong = (1 to 200).count { seed =>
      val random = new RandomJoins(seed)
      val (outer, inner) =
        (random.join(JoinKind.LeftOuter, 0, 1), random.join(JoinKind.Inner, 1, 2))
      val query = random.over(3, Vector(outer, inner), Node(1, Node(0, Leaf(0), Leaf(1)), Leaf(2)))
      query.rows(Node(0, Leaf(0), Node(1, Leaf(1), Leaf(2)))) != query.rows(query.tree)
    }
    assert(wrong > 20)
  }
}

object ConflictDetectorSuite {

  sealed trait Tree
  final case class Leaf(relation: Int) extends Tree
  final case class Node(join: Int, left: Tree, right: Tree) extends Tree

  private def relations(tree: Tree): Set[Int] = tree match {
    case Leaf(i) => Set(i)
    case Node(_, left, right) => relations(left) ++ relations(right)
  }

  /** @param rejecting relations of which it is never true when their columns are null */
  final case class Condition(kind: Int, columns: Seq[(Int, Int)]) {
    def ses: Set[Int] = columns.map(_._1).toSet

    // Of kind 0: all equal; 1: equal or both null; 2: the first one, or else the second one, equals
    // the last.
    def rejecting: Set[Int] = kind match {
      case 0 => ses
      case 1 => Set.empty
      case _ => if (columns.init.exists(_._1 == columns.last._1)) Set.empty
        else Set(columns.last._1)
    }

    def holds(row: Map[Int, Seq[Option[Int]]]): Boolean = {
      val values = columns.map { case (relation, column) => row(relation)(column) }
      kind match {
        case 0 => values.forall(_.isDefined) && values.distinct.size == 1
        case 1 => values.distinct.size == 1
        case _ => values.init.flatten.headOption.exists(v => values.last.contains(v))
      }
    }
  }

  final case class Join(kind: JoinKind, conditions: Seq[Condition]) {
    def ses: Set[Int] = conditions.flatMap(_.ses).toSet
    def rejecting: Set[Int] = conditions.flatMap(_.rejecting).toSet
  }

  /** Columns of a row, by relation; those of an existence join's answer by a number of its own. */
  type Row = Map[Int, Seq[Option[Int]]]

  final case class Query(tables: Vector[Seq[Row]], joins: Vector[Join], tree: Tree) {

    private val known = mutable.HashMap.empty[Tree, Map[Row, Int]]
    private val combined = mutable.ArrayBuffer.from(joins)

    /** The order written; of inner joins with the same condition, each has the number of the first. */
    def renumbered: Tree = {
      def convert(tree: Tree): Tree = tree match {
        case leaf: Leaf => leaf
        case Node(j, left, right) =>
          val same = if (joins(j).kind == JoinKind.Inner) joins.indexOf(joins(j)) else j
          Node(same, convert(left), convert(right))
      }
      convert(tree)
    }

    /** The joins, and those that evaluate other conjuncts together. */
    def allJoins: collection.IndexedSeq[Join] = combined

    /** The number of a join that evaluates these conjuncts, by `10 × join + position`. */
    def numbered(kind: JoinKind, predicates: Set[Int]): Int = {
      val conditions = predicates.toSeq.sorted.map(p => joins(p / 10).conditions(p % 10))
      val join = Join(kind, conditions)
      combined.indexOf(join) match {
        case -1 =>
          combined += join
          combined.size - 1
        case number => number
      }
    }

    private def nulls(side: Tree): Row = padding(side).map { case (k, n) => k -> Seq.fill(n)(None) }

    private def padding(side: Tree): Map[Int, Int] = side match {
      case Leaf(i) => Map(i -> 2)
      case Node(j, left, right) =>
        allJoins(j).kind match {
          case JoinKind.Semi | JoinKind.Anti => padding(left)
          case JoinKind.Existence => padding(left) + (100 + j -> 1)
          case _ => padding(left) ++ padding(right)
        }
    }

    def rows(tree: Tree): Map[Row, Int] = known.getOrElseUpdate(
      tree,
      tree match {
        case Leaf(i) => tables(i).groupBy(identity).map { case (r, all) => r -> all.size }
        case Node(j, left, right) => joined(j, left, right)
      }
    )

    private def joined(j: Int, left: Tree, right: Tree): Map[Row, Int] = {
      val (ls, rs) = (rows(left).toSeq, rows(right).toSeq)
      def meets(l: Row, r: Row) = allJoins(j).conditions.forall(_.holds(l ++ r))
      val pairs = for ((l, m) <- ls; (r, n) <- rs if meets(l, r)) yield (l, r, m * n)
      val (some, others) = (pairs.map(_._1).toSet, pairs.map(_._2).toSet)
      val matched = pairs.map { case (l, r, n) => (l ++ r, n) }
      val lonely = ls.filterNot(l => some(l._1))
      def marked(row: Row, value: Int) = row + (100 + j -> Seq(Some(value)))
      val all = allJoins(j).kind match {
        case JoinKind.Inner => matched
        case JoinKind.LeftOuter => matched ++ lonely.map(l => (l._1 ++ nulls(right), l._2))
        case JoinKind.FullOuter =>
          matched ++ lonely.map(l => (l._1 ++ nulls(right), l._2)) ++
            rs.filterNot(r => others(r._1)).map(r => (nulls(left) ++ r._1, r._2))
        case JoinKind.Semi => ls.filter(l => some(l._1))
        case JoinKind.Anti => lonely
        case JoinKind.Existence =>
          ls.map(l => (marked(l._1, if (some(l._1)) 1 else 0), l._2))
      }
      all.groupMapReduce(_._1)(_._2)(_ + _)
    }

    def text(tree: Tree): String = tree match {
      case Leaf(i) => i.toString
      case Node(j, left, right) =>
        s"(${text(left)} ${allJoins(j).kind.symbol}$j ${text(right)})"
    }

    override def toString: String =
      s"${text(tree)} on ${joins.map(_.conditions.map(c => (c.kind, c.columns)).mkString(" and "))}"
  }

  /** Sides of symmetric joins in the order of their first relations. */
  private def canonical(tree: Tree, joins: collection.IndexedSeq[Join]): Tree = tree match {
    case leaf: Leaf => leaf
    case Node(j, left, right) =>
      val (l, r) = (canonical(left, joins), canonical(right, joins))
      if (joins(j).kind.commutes && relations(r).min < relations(l).min) Node(j, r, l)
      else Node(j, l, r)
  }

  /** Queries and tables, the same for the same seed. */
  final class RandomJoins(seed: Int) {
    private val random = new Random(seed)

    private def oneOf[A](choices: Seq[A]): A = choices(random.nextInt(choices.size))

    private def tables(count: Int): Vector[Seq[Row]] = Vector.tabulate(count) { i =>
      Seq.fill(random.nextInt(4)) {
        Map(i -> Seq.fill(2)(Option.when(random.nextInt(4) > 0)(random.nextInt(2))))
      }
    }

    def over(count: Int, joins: Vector[Join], tree: Tree): Query = Query(tables(count), joins, tree)

    def join(kind: JoinKind, one: Int, other: Int): Join =
      Join(kind, Seq(Condition(0, Seq(one -> random.nextInt(2), other -> random.nextInt(2)))))

    /** @param least conjuncts of a join: with none, some have none, or one that is of one side */
    def query(count: Int, most: Int, least: Int = 1): Query = {
      val joins = Vector.newBuilder[Join]
      var next = 0
      def condition(left: Seq[Int], right: Seq[Int]): Condition = {
        val sides =
          if (least == 0 && random.nextInt(6) == 0) Seq(oneOf(Seq(left, right)))
          else Seq(left, right)
        val more = if (random.nextInt(4) == 0) Seq(oneOf(sides)) else Nil
        val kind = oneOf(Seq(0, 0, 0, 1, 2))
        Condition(
          kind,
          random.shuffle((sides ++ more).map(side => oneOf(side) -> random.nextInt(2)))
        )
      }
      def build(from: Seq[Int]): (Tree, Seq[Int]) =
        if (from.size == 1) (Leaf(from.head), from)
        else {
          val (one, other) = from.splitAt(1 + random.nextInt(from.size - 1))
          val ((left, l), (right, r)) = (build(one), build(other))
          val kind =
            if (random.nextInt(5) < 2) JoinKind.Inner else oneOf(JoinKind.all)
          val conjuncts = least + random.nextInt(most - least + 1)
          joins += Join(kind, Seq.fill(conjuncts)(condition(l, r)).distinct)
          next += 1
          val visible = kind match {
            case JoinKind.Semi | JoinKind.Anti | JoinKind.Existence => l
            case _ => l ++ r
          }
          (Node(next - 1, left, right), visible)
        }
      val (tree, _) = build(random.shuffle((0 until count).toVector))
      Query(tables(count), joins.result(), tree)
    }
  }

  // ---- what the code under test accepts -----------------------------------------------------

  private def operators(tree: Tree, query: Query): OperatorTree = tree match {
    case Leaf(i) => OperatorTree.Relation(i)
    case Node(j, left, right) =>
      val predicates = query.joins(j).conditions.zipWithIndex.map { case (condition, i) =>
        OperatorTree.Predicate(
          j * 10 + i,
          RelationSet.of(condition.ses),
          RelationSet.of(condition.rejecting)
        )
      }
      OperatorTree.Operator(
        query.joins(j).kind,
        predicates,
        operators(left, query),
        operators(right, query)
      )
  }

  /**
   * Trees as the enumeration builds them. Conjuncts of inner joins may be evaluated at several
   * places, so that each join is numbered anew, in a query that has these joins too.
   */
  private def accepted(query: Query): Set[Tree] = {
    val edges = new ConflictDetector(operators(query.tree, query)).edges
    val graph = Hypergraph.of(query.tables.size, edges)
    val (pairs, complete) = new CsgCmpPairs(graph, Long.MaxValue / 100, () => false).result()
    assert(complete)
    assert(pairs.distinctBy(p => Set(p.csg, p.cmp)).size == pairs.size, "each pair once")
    val trees = mutable.HashMap.empty[RelationSet, Vector[Tree]]
    query.tables.indices.foreach(i => trees(RelationSet.single(i)) = Vector(Leaf(i)))
    pairs.foreach { pair =>
      val both = pair.csg | pair.cmp
      val (left, right) = if (pair.how.swapped) (pair.cmp, pair.csg) else (pair.csg, pair.cmp)
      val predicates = pair.how.edge match {
        case Some(index) => graph.edges(index).predicates
        case None => edges.filter(_.crosses(left, right, both)).flatMap(_.predicates)
      }
      // Without any condition, a join is found by what it joins.
      val join = pair.how.edge.map(i => joinOf(query, graph.edges(i))).getOrElse(
        query.numbered(pair.how.kind, predicates.toSet)
      )
      val made =
        for (l <- trees(left); r <- trees(right)) yield canonical(Node(join, l, r), query.allJoins)
      trees(both) = trees.getOrElse(both, Vector.empty) ++ made
    }
    trees.getOrElse(graph.all, Vector.empty).toSet
  }

  private def joinOf(query: Query, edge: JoinEdge): Int = {
    def find(tree: Tree): Option[Int] = tree match {
      case Node(j, left, right) =>
        def of(side: Tree) = RelationSet.of(relations(side))
        Option
          .when(edge.left.within(of(left)) && edge.right.within(of(right)))(j)
          .orElse(find(left))
          .orElse(find(right))
      case _ => None
    }
    find(query.tree).get
  }

  // ---- what the transformations reach -------------------------------------------------------

  // Rows: the lower join; columns: the upper one; both in the order of JoinKind.all. `m`, `n`: where
  // the upper, the lower one's condition rejects nulls; `b`: where both do.
  private val assoc = Map(
    JoinKind.Inner -> "++-+++",
    JoinKind.LeftOuter -> "-m----",
    JoinKind.FullOuter -> "-mb---",
    JoinKind.Semi -> "------",
    JoinKind.Anti -> "------",
    JoinKind.Existence -> "------"
  )
  private val leftAsscom = Map(
    JoinKind.Inner -> "++-+++",
    JoinKind.LeftOuter -> "++n+++",
    JoinKind.FullOuter -> "-mb---",
    JoinKind.Semi -> "++-+++",
    JoinKind.Anti -> "++-+++",
    JoinKind.Existence -> "++-+++"
  )
  private val rightAsscom = Map(
    JoinKind.Inner -> "+-----",
    JoinKind.LeftOuter -> "------",
    JoinKind.FullOuter -> "--b---",
    JoinKind.Semi -> "------",
    JoinKind.Anti -> "------",
    JoinKind.Existence -> "------"
  )

  private def closure(query: Query): Set[Tree] = {
    val joins = query.joins
    def allowed(table: Map[JoinKind, String], a: Int, b: Int, shared: Tree): Boolean = {
      val nulls = relations(shared)
      val (lower, upper) =
        (joins(a).rejecting.exists(nulls), joins(b).rejecting.exists(nulls))
      table(joins(a).kind)(JoinKind.all.indexOf(joins(b).kind)) match {
        case '+' => true
        case 'm' => upper
        case 'n' => lower
        case 'b' => upper && lower
        case _ => false
      }
    }
    def apart(join: Int, side: Tree) = !joins(join).ses.exists(relations(side))
    def turned(tree: Tree): Seq[Tree] = tree match {
      case Node(b, Node(a, e1, e2), e3) =>
        Seq(
          Option.when(apart(b, e1) && allowed(assoc, a, b, e2))(Node(a, e1, Node(b, e2, e3))),
          Option.when(apart(b, e2) && allowed(leftAsscom, a, b, e1))(Node(a, Node(b, e1, e3), e2))
        ).flatten
      case _ => Nil
    }
    def turnedRight(tree: Tree): Seq[Tree] = tree match {
      case Node(a, e1, Node(b, e2, e3)) =>
        Seq(
          Option.when(apart(a, e3) && allowed(assoc, a, b, e2))(Node(b, Node(a, e1, e2), e3)),
          Option.when(apart(a, e2) && allowed(rightAsscom, a, b, e3))(Node(b, e2, Node(a, e1, e3)))
        ).flatten
      case _ => Nil
    }
    def exchanged(tree: Tree): Seq[Tree] = tree match {
      case Node(j, left, right) if joins(j).kind.commutes => Seq(Node(j, right, left))
      case _ => Nil
    }
    def steps(tree: Tree): Seq[Tree] = turned(tree) ++ turnedRight(tree) ++ exchanged(tree) ++
      (tree match {
        case Node(j, left, right) =>
          steps(left).map(Node(j, _, right)) ++ steps(right).map(Node(j, left, _))
        case _ => Nil
      })
    val reached = mutable.LinkedHashSet[Tree](query.tree)
    val open = mutable.Queue[Tree](query.tree)
    while (open.nonEmpty) steps(open.dequeue()).foreach(tree => if (reached.add(tree)) open += tree)
    reached.map(canonical(_, joins)).toSet
  }
}
