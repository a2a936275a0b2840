package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.plans.{ExactSums, FileColumns}
import io.selinger.stats.files.FooterReader
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

/** An inner or a semi join with all rows of a table by one key; the query may use the key. */
private[rule] final case class UnneededLookup(
    join: Join,
    lookup: Lookup,
    needed: AttributeSet
) extends UnneededJoin {
  import lookup.{key, tableKey}

  override def kept: LogicalPlan = lookup.rows

  override def removed: LogicalPlan = lookup.table

  override def keys: Seq[(Expression, Expression)] = Seq(key -> tableKey)

  override def findsOneAtMost: Boolean = join.joinType == LeftSemi || super.findsOneAtMost

  override def losesNone: Boolean = lookup.findsAll

  /** Rows whose key is null have no match. */
  override def replacement: LogicalPlan = {
    val rows = if (lookup.hasNoNulls) kept else Filter(IsNotNull(key), kept)
    if (!needed.contains(tableKey)) rows
    else {
      val same = if (key.dataType == tableKey.dataType) key else Cast(key, tableKey.dataType)
      val named = Alias(same, tableKey.name)(tableKey.exprId, tableKey.qualifier)
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
    val (kept, removed) = Lookup.sides(join, keepsLeft)
    val keys = Lookup.keysOf(join, keepsLeft)
    if (keys.isEmpty || needed.exists(removed.outputSet.contains)) Nil
    else Seq(UnneededOuterJoin(join, kept, removed, keys, needed))
  }

  private def lookup(join: Join, needed: AttributeSet, keepsLeft: Boolean): Seq[UnneededJoin] =
    Lookup.of(join, keepsLeft).toSeq.flatMap { lookup =>
      val used = needed.filter(lookup.table.outputSet.contains)
      val isKey = used.forall(_.exprId == lookup.tableKey.exprId) &&
        isSame(lookup.key, lookup.tableKey)
      Option.when(used.isEmpty || isKey)(UnneededLookup(join, lookup, needed))
    }

  /** Whether one column gives the other, perhaps in a wider type. */
  private def isSame(key: Attribute, other: Attribute): Boolean =
    key.dataType == other.dataType ||
      FileColumns.renamed(Cast(key, other.dataType)).contains(key)
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
