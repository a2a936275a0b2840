package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.plans.{ExactSums, FileColumn, FileColumns}
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.files.FooterReader
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/**
 * A join of which the query uses one side only.
 *
 * @param kept the side that it uses
 * @param removed the other one
 * @param keys what is compared for equality: of the side kept, and of the other one
 */
private[rule] sealed trait UnneededJoin {
  def join: Join
  def kept: LogicalPlan
  def removed: LogicalPlan
  def keys: Seq[(Expression, Expression)]

  /** Columns that the query uses of the join's results. */
  def needed: AttributeSet

  /** Whether what is not computed any more could raise an error. */
  final def mayRaise: Boolean = {
    val unused = (join.references -- needed).filter(kept.outputSet.contains)
    RaisedErrors.mayRaise(removed, ExactSums.fits) ||
    !join.condition.forall(RaisedErrors.isSafe) ||
    unused.exists(RaisedErrors.columnMayRaise(_, kept))
  }

  /** Whether each row of the side kept has one match at most. */
  def findsOneAtMost: Boolean = {
    val columns = keys.map { case (_, key) => FileColumns.renamed(key) }
    ProvenKeys.areUnique(columns.flatten, removed)
  }

  /** Whether each row of the side kept has a match, unless its key is null, or stays without one. */
  def losesNone: Boolean

  /** What takes the place of the join. */
  def replacement: LogicalPlan
}

/** An outer join: rows of the side kept stay without a match, too. */
private[rule] final case class UnneededOuterJoin(
    join: Join,
    kept: LogicalPlan,
    removed: LogicalPlan,
    keys: Seq[(Expression, Expression)],
    needed: AttributeSet
) extends UnneededJoin {
  override def losesNone: Boolean = true
  override def replacement: LogicalPlan = kept
}

/**
 * An inner or a semi join with all rows of a table by one key.
 *
 * @param key of the side kept
 * @param removedKey of the table; where the query uses it, `key` takes its place
 * @param all the column of the table
 */
private[rule] final case class UnneededLookup(
    join: Join,
    kept: LogicalPlan,
    removed: LogicalPlan,
    key: Attribute,
    removedKey: Attribute,
    all: FileColumn,
    needed: AttributeSet
) extends UnneededJoin {

  override def keys: Seq[(Expression, Expression)] = Seq(key -> removedKey)

  override def findsOneAtMost: Boolean = join.joinType == LeftSemi || super.findsOneAtMost

  override def losesNone: Boolean = ProvenKeys.areAmong(key, kept, all)

  /** Rows whose key is null have no match. */
  override def replacement: LogicalPlan = {
    val isPresent = IsNotNull(key)
    val isKnown = !key.nullable || kept.constraints.contains(isPresent)
    val rows = if (isKnown) kept else Filter(isPresent, kept)
    if (!needed.contains(removedKey)) rows
    else {
      val same = if (key.dataType == removedKey.dataType) key else Cast(key, removedKey.dataType)
      val named = Alias(same, removedKey.name)(removedKey.exprId, removedKey.qualifier)
      Project(rows.output :+ named, rows)
    }
  }
}

private[rule] object UnneededJoin {

  /**
   * The ways in which a join may be left out, whatever is proven of its keys.
   *
   * @param needed columns that the query uses of the join's results
   */
  def of(join: Join, needed: AttributeSet): Seq[UnneededJoin] =
    if (KeyOrigins.repeatsColumns(join)) Nil
    else
      join.joinType match {
        case LeftOuter => outer(join, needed, keepsLeft = true)
        case RightOuter => outer(join, needed, keepsLeft = false)
        case Inner =>
          lookup(join, needed, keepsLeft = true) ++ lookup(join, needed, keepsLeft = false)
        case LeftSemi => lookup(join, needed, keepsLeft = true)
        case _ => Nil
      }

  private def outer(join: Join, needed: AttributeSet, keepsLeft: Boolean): Seq[UnneededJoin] = {
    val (kept, removed) = sides(join, keepsLeft)
    val keys = keysOf(join, keepsLeft)
    if (keys.isEmpty || needed.exists(removed.outputSet.contains)) Nil
    else Seq(UnneededOuterJoin(join, kept, removed, keys, needed))
  }

  private def lookup(join: Join, needed: AttributeSet, keepsLeft: Boolean): Seq[UnneededJoin] = {
    val (kept, removed) = sides(join, keepsLeft)
    val found = keysOf(join, keepsLeft) match {
      case Seq((keptKey, removedKey)) if join.condition.exists(_.isInstanceOf[EqualTo]) =>
        for {
          key <- FileColumns.renamed(keptKey)
          other <- FileColumns.renamed(removedKey)
          used = needed.filter(removed.outputSet.contains)
          if used.isEmpty || used.forall(_.exprId == other.exprId) && isSame(key, other)
          all <- allRows(removed, other, kept, key)
        } yield UnneededLookup(join, kept, removed, key, other, all, needed)
      case _ => None
    }
    found.toSeq
  }

  /** Whether one column gives the other, perhaps in a wider type. */
  private def isSame(key: Attribute, other: Attribute): Boolean =
    key.dataType == other.dataType ||
      FileColumns.renamed(Cast(key, other.dataType)).contains(key)

  private def sides(join: Join, keepsLeft: Boolean): (LogicalPlan, LogicalPlan) =
    if (keepsLeft) (join.left, join.right) else (join.right, join.left)

  private def keysOf(join: Join, keepsLeft: Boolean): Seq[(Expression, Expression)] =
    ProvenKeys.comparedBy(join).map(pair => if (keepsLeft) pair else pair.swap)

  /**
   * The column of files that `column` is, where `plan` has all its values, but for those that join with no
   * row of `kept` anyway.
   */
  private def allRows(
      plan: LogicalPlan,
      column: Attribute,
      kept: LogicalPlan,
      key: Attribute
  ): Option[FileColumn] = plan match {
    case Project(list, child) =>
      ProvenKeys.renamed(column, list).flatMap(allRows(child, _, kept, key))
    case Filter(condition, child) =>
      def isImplied(predicate: Expression) = predicate match {
        case IsNotNull(known: Attribute) if known.exprId == column.exprId => true
        case other =>
          val ofKept =
            other.transform { case known: Attribute if known.exprId == column.exprId => key }
          other.references.forall(_.exprId == column.exprId) && other.deterministic &&
          column.dataType == key.dataType && kept.constraints.contains(ofKept)
      }
      if (Selectivity.conjuncts(condition).forall(isImplied)) allRows(child, column, kept, key)
      else None
    // Each value has a group.
    case aggregate: Aggregate =>
      ProvenKeys.renamed(column, aggregate.aggregateExpressions)
        .filter(ExpressionSets.has(aggregate.groupingExpressions, _))
        .flatMap(allRows(aggregate.child, _, kept, key))
    case FileRelation(relation) =>
      relation.plan.output.find(_.exprId == column.exprId).map(FileColumn(relation, _))
    case _ => None
  }
}

/** Two columns of files that a join compares, in any order, as (table, column). */
private[rule] final case class Compared(columns: Set[(String, String)])

private[rule] object Compared {

  def by(join: Join): Seq[Compared] =
    for {
      (left, right) <- ProvenKeys.comparedBy(join)
      a <- named(left, join.left)
      b <- named(right, join.right)
    } yield Compared(Set(a, b))

  private def named(key: Expression, plan: LogicalPlan): Seq[(String, String)] =
    FileColumns.renamed(key).flatMap(FileColumns.origins(_, plan)).getOrElse(Nil).map { found =>
      (found.relation.roots.mkString(","), FooterReader.columnName(found.column.name))
    }
}
