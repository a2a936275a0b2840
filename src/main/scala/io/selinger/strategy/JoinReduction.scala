package io.selinger.strategy

import io.selinger.core.{Evidence, Origin, Phase, RaisedErrors}
import io.selinger.cost.Cluster
import io.selinger.estimate.plans.LeafStatistics
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.relations.QueryStages
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.optimizer.{BuildLeft, BuildRight, BuildSide}
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.trees.TreeNodeTag
import org.apache.spark.sql.execution.adaptive.{LogicalQueryStage, ShuffleQueryStageExec}
import org.apache.spark.sql.execution.columnar.InMemoryRelation

/**
 * A join of which one side, which gives no rows of its own to the result, is reduced to the keys of the
 * other: before it is shuffled, its rows go through semi joins with the keys, which are broadcast.
 *
 * @param small the side whose keys are used: all its rows count, and rows of the other only with it
 * @param keys of the large side, with those of the small side
 */
private[strategy] final case class JoinReduction private (
    join: Join,
    small: BuildSide,
    keys: JoinReduction.Keys
) {
  import JoinReduction._

  def smallSide: LogicalPlan = if (small == BuildLeft) join.left else join.right

  def largeSide: LogicalPlan = if (small == BuildLeft) join.right else join.left

  /** The plan whose rows have all keys of the small side: semi and anti joins above it only drop rows. */
  def source: LogicalPlan = sourceOf(smallSide, AttributeSet(keys.flatMap(_._2.references)))

  /** Whether its inputs can still be reduced when the keys are known. */
  def canWait: Boolean = {
    val (_, reducers) = result
    reducers.nonEmpty && reducers.forall(reducer => isRead(reducer.left))
  }

  /** The same join, and the semi joins that reduce its large side. */
  def result: (Join, Seq[Join]) = {
    val (large, reducers) = reduced(largeSide, keys)
    val made = if (small == BuildLeft) join.copy(right = large) else join.copy(left = large)
    (made, reducers)
  }

  private def reduced(plan: LogicalPlan, keys: Keys): (LogicalPlan, Seq[Join]) = plan match {
    case Project(list, child) if child.exists(_.isInstanceOf[Join]) =>
      val origins = list.collect { case alias: Alias => alias.toAttribute -> alias.child }
      val below = keys.map { case (own, other) => (substituted(own, AttributeMap(origins)), other) }
      rebuilt(plan, Seq(reduced(child, below)))
    case Filter(_, child) if child.exists(_.isInstanceOf[Join]) =>
      rebuilt(plan, Seq(reduced(child, keys)))
    case Join(_, _, Inner, _, _) =>
      val equal = EqualColumns.in(plan)
      val sides = plan.children.map(side => side -> equal.in(side, keys))
      // Without equal columns on one side, that one stays as it is.
      if (sides.forall(_._2.isEmpty)) onTop(plan, keys)
      else
        rebuilt(
          plan,
          sides.map { case (side, own) => if (own.isEmpty) (side, Nil) else reduced(side, own) }
        )
    case _: LogicalQueryStage => (plan, Nil)
    case _ => onTop(plan, keys)
  }

  private def rebuilt(plan: LogicalPlan, parts: Seq[(LogicalPlan, Seq[Join])]) = {
    val (children, reducers) = parts.unzip
    val made = if (reducers.forall(_.isEmpty)) plan else plan.withNewChildren(children)
    (made, reducers.flatten)
  }

  private def onTop(plan: LogicalPlan, keys: Keys): (LogicalPlan, Seq[Join]) =
    if (QueryStages.begun(plan)) (plan, Nil)
    else {
      val columns = keys.map { case (_, other) => Alias(other, "key")() }
      val condition = keys
        .zip(columns)
        .map { case ((own, _), column) => EqualTo(own, column.toAttribute) }
        .reduce[Expression](And(_, _))
      val reducer =
        Join(plan, Project(columns, source), LeftSemi, Some(condition), JoinHint.NONE)
      reducer.setTagValue(reducerTag, ())
      (reducer, Seq(reducer))
    }

  private def substituted(expression: Expression, origins: AttributeMap[Expression]) =
    expression.transform { case column: Attribute => origins.getOrElse(column, column) }

  /** What it takes now and reduced; none where that is not known. */
  def costs(cluster: Cluster, asExpected: Boolean): Option[Costs] = {
    val (made, reducers) = result
    val work = new Work(cluster, asExpected)
    for {
      first <- reducers.headOption
      before <- work.ofJoin(join, largeSide)
      after <- work.ofJoin(made, if (small == BuildLeft) made.right else made.left)
      all <- LeafStatistics.estimator.estimate(largeSide)
      kept <- LeafStatistics.estimator.estimate(if (small == BuildLeft) made.right else made.left)
      problem <- work.problem(first)
      choices = reducers.flatMap(work.problem).map(_.choice(stock = None))
    } yield {
      val broadcast = choices.map(_.candidates.find(_.operator.broadcastSide.contains(BuildRight)))
      val isBest = choices.zip(broadcast).forall { case (choice, keys) =>
        keys.exists(found => choice.best.exists(_.operator == found.operator))
      }
      val keyRows = problem.right.side.rows
      Costs(
        before,
        Option.when(isBest)(after),
        broadcast.forall(_.isDefined),
        Seq(
          Evidence("keys", keyRows, "rows", problem.right.estimate.rows.origin),
          Evidence("hash table of keys", problem.right.side.tableBytes(keyRows), "bytes", Derived)
        ) ++ problem.model.limits.countedBroadcastBytes.map(
          Evidence("broadcast limit of counted rows", _, "bytes", Origin.Exact)
        ) ++ Seq(
          Evidence("rows of the large side", all.rows.value, "rows", all.rows.origin),
          Evidence("rows of it with a key", kept.rows.value, "rows", kept.rows.origin)
        )
      )
    }
  }
}

private[selinger] object JoinReduction {

  /**
   * @param before seconds of the join
   * @param after seconds of the reduced join and of what reduces it; none where another operator than a
   *   broadcast of the keys is better
   * @param isBroadcast whether the keys are few enough to be broadcast
   */
  final case class Costs(
      before: Double,
      after: Option[Double],
      isBroadcast: Boolean,
      rows: Seq[Evidence]
  ) {

    /** The share of the cost that is saved. */
    def gain: Option[Double] = after.map(seconds => 1.0 - seconds / math.max(1e-9, before))

    def evidence: Seq[Evidence] =
      rows :+ Evidence("cost of the whole join", before, "s", Origin.Derived) :++
        after.map(Evidence("cost of the reduced join", _, "s", Origin.Derived))
  }

  private val reducerTag = TreeNodeTag[Unit]("selinger.reducesJoin")

  private val awaitedTag = TreeNodeTag[Unit]("selinger.awaitsKeys")

  /** Says of a join that its large side waits for the keys of the small one. */
  private[selinger] def await(join: Join): Unit = join.setTagValue(awaitedTag, ())

  def isAwaited(join: Join): Boolean = join.getTagValue(awaitedTag).isDefined

  /**
   * Whether rows come straight from a table that is read, so that nothing of it begins before its shuffle
   * does: no other shuffle, no broadcast and no table that is cached.
   */
  private def isRead(plan: LogicalPlan): Boolean = plan match {
    case _: InMemoryRelation | _: LogicalQueryStage => false
    case _: LeafNode => true
    case _: Project | _: Filter | _: Union => plan.children.forall(isRead)
    case _ => false
  }

  /** Whether a join is one that only reduces the input of another. */
  def isReducer(plan: LogicalPlan): Boolean = plan.getTagValue(reducerTag).isDefined

  /** None where neither side may be reduced, or one has been. */
  def of(join: Join): Option[JoinReduction] =
    for {
      small <- smallSideOf(join.joinType)
      if !join.isStreaming && !isReducer(join)
      large = if (small == BuildLeft) join.right else join.left
      if !large.exists(isReducer)
      keys = equalities(join)
      if keys.nonEmpty && keys.forall { case (l, r) =>
        RaisedErrors.isSafe(l) && RaisedErrors.isSafe(r)
      }
      // Some of it is computed for fewer rows then, and an empty broadcast leaves some unread.
      if !RaisedErrors.mayRaise(large)
    } yield JoinReduction(join, small, if (small == BuildLeft) keys.map(_.swap) else keys)

  /** The side that keeps its rows, or decides which are kept: of the other, matches alone count. */
  private def smallSideOf(joinType: JoinType): Option[BuildSide] = joinType match {
    case LeftSemi | LeftAnti | LeftOuter | ExistenceJoin(_) => Some(BuildLeft)
    case RightOuter => Some(BuildRight)
    case _ => None
  }

  private def sourceOf(plan: LogicalPlan, columns: AttributeSet): LogicalPlan = plan match {
    case Join(left, _, LeftSemi | LeftAnti, _, _) => sourceOf(left, columns)
    case Project(_, join @ Join(_, _, LeftSemi | LeftAnti, _, _))
        if columns.subsetOf(join.outputSet) =>
      sourceOf(join, columns)
    case other => other
  }

  /** Whether a plan is a finished shuffle, which can be read once more. */
  def isFinished(plan: LogicalPlan): Boolean = plan match {
    case LogicalQueryStage(_, stage: ShuffleQueryStageExec) => stage.isMaterialized
    case _ => false
  }

  /** Expressions of the large side, with those of the small side that they are compared with. */
  type Keys = Seq[(Expression, Expression)]

  private val Derived = Origin.Derived

  /** Time of the joins that have not begun. */
  private final class Work(cluster: Cluster, asExpected: Boolean) {

    /** @param asExpected as if the rows that are expected had been measured */
    def problem(join: Join): Option[JoinProblem] = {
      val known = JoinProblem.of(join, Phase.Adaptive, cluster)
      if (asExpected) known.map(_.asExpected) else known
    }

    private def of(plan: LogicalPlan): Option[Double] = plan match {
      case _: LogicalQueryStage => Some(0.0)
      case join: Join =>
        for (own <- ofOne(join); below <- ofAll(join.children)) yield own + below
      case other => ofAll(other.children)
    }

    /** Of a join and of one of its sides. */
    def ofJoin(join: Join, side: LogicalPlan): Option[Double] =
      for (own <- ofOne(join); below <- of(side)) yield own + below

    private def ofAll(plans: Seq[LogicalPlan]): Option[Double] = {
      val all = plans.map(of)
      Option.when(all.forall(_.isDefined))(all.flatten.sum)
    }

    private def ofOne(join: Join): Option[Double] =
      for {
        known <- problem(join)
        best <- known.choice(stock = None).best
        rows <- LeafStatistics.estimator.estimate(join)
      } yield best.seconds + known.cost.output(rows.rows.value, rows.rowBytes(join.output))
  }

  /** Columns that the inner joins of a plan require to be equal. */
  private final class EqualColumns(pairs: Seq[(Attribute, Attribute)]) {

    private def equalTo(column: Attribute): Seq[Attribute] = {
      def more(known: Seq[Attribute]): Seq[Attribute] = {
        val found = pairs.flatMap { case (a, b) =>
          (if (has(known, a)) Seq(b) else Nil) ++ (if (has(known, b)) Seq(a) else Nil)
        }.filterNot(has(known, _))
        if (found.isEmpty) known else more((known ++ found).distinctBy(_.exprId))
      }
      more(Seq(column))
    }

    private def has(columns: Seq[Attribute], column: Attribute) =
      columns.exists(_.exprId == column.exprId)

    /** Those keys that can be said in columns of `side`. */
    def in(side: LogicalPlan, keys: Keys): Keys = keys.flatMap { case (own, other) =>
      val said = own match {
        case column: Attribute => equalTo(column).find(side.outputSet.contains)
        case _ => Option.when(own.references.subsetOf(side.outputSet))(own)
      }
      said.map(_ -> other)
    }
  }

  private object EqualColumns {
    def in(plan: LogicalPlan): EqualColumns = new EqualColumns(
      conditions(plan)
        .flatMap(Selectivity.conjuncts)
        .collect {
          case EqualTo(a: Attribute, b: Attribute) if a.dataType == b.dataType => (a, b)
        }
    )

    /** Those that hold for every row of a plan: a union, for one, gives the columns of others its names. */
    private def conditions(plan: LogicalPlan): Seq[Expression] = plan match {
      case Join(left, right, Inner, condition, _) =>
        condition.toSeq ++ conditions(left) ++ conditions(right)
      case Project(_, child) => conditions(child)
      case Filter(_, child) => conditions(child)
      case _ => Nil
    }

  }

  private def equalities(join: Join): Seq[(Expression, Expression)] = join match {
    case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => left.zip(right)
    case _ => Nil
  }
}
