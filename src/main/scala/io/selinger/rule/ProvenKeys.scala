package io.selinger.rule

import io.selinger.estimate.joins.EquiJoin
import io.selinger.estimate.plans.{FileColumn, FileColumns, LeafStatistics}
import io.selinger.stats.NumericAxis
import io.selinger.stats.relations.FileRelation
import io.selinger.stats.keys.WholeColumns
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.planning.ExtractEquiJoinKeys
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._

/** What is proven of the keys of a plan's rows: by GROUP BY and DISTINCT, and by all values in the files. */
private[rule] object ProvenKeys {

  /** Whether no two rows of `plan` have the same values of `columns`, rows with a null left aside. */
  def areUnique(columns: Seq[Attribute], plan: LogicalPlan): Boolean =
    byProof.areUnique(columns, plan)

  /** Whether that may be so, by the estimated distinct values of tables: a proof may have to read columns. */
  def mayBeUnique(columns: Seq[Attribute], plan: LogicalPlan): Boolean =
    byEstimate.areUnique(columns, plan)

  private val byProof = new Uniqueness((_, relation, columns) =>
    WholeColumns.facts(relation, columns).exists(_.isUnique)
  )

  // Below that share of distinct values a column is no key.
  private val leastDistinct = 0.9

  private val byEstimate = new Uniqueness((table, relation, columns) => {
    // All files would have to be looked at, whatever partitions the query needs.
    val isWhole = relation.partitionSchema.isEmpty
    WholeColumns.areChecked(relation, columns) ||
    isWhole && shareOf(columns, table).exists(_ >= leastDistinct)
  })

  /** Groups for each row of a table. */
  private def shareOf(columns: Seq[Attribute], table: LogicalPlan): Option[Double] = {
    val estimator = LeafStatistics.estimator
    for {
      rows <- estimator.estimate(table)
      groups <- columns match {
        case Seq(column) => rows.distinct(column)
        case several => estimator.estimate(Aggregate(several, several, table)).map(_.rows.value)
      }
    } yield groups / math.max(1.0, rows.rows.value)
  }

  /** Whether none of some columns of a plan has a null in any row. */
  def areNeverNull(columns: Seq[Attribute], plan: LogicalPlan): Boolean = {
    def isKnown(column: Attribute) =
      !column.nullable || plan.constraints.contains(IsNotNull(column))
    columns.forall(isKnown) || (plan match {
      case Project(list, child) =>
        ExpressionSets.all(columns.map(renamed(_, list))).exists(areNeverNull(_, child))
      case _: Filter | _: Sort | _: GlobalLimit | _: LocalLimit | _: Window =>
        val child = plan.children.head
        columns.forall(child.outputSet.contains) && areNeverNull(columns, child)
      case aggregate: Aggregate =>
        val below = ExpressionSets.all(columns.map(renamed(_, aggregate.aggregateExpressions)))
        below.exists(keys =>
          keys.forall(ExpressionSets.has(aggregate.groupingExpressions, _)) &&
            areNeverNull(keys, aggregate.child)
        )
      case join: Join if !KeyOrigins.repeatsColumns(join) =>
        sidesWithoutNulls(join).exists(side =>
          columns.forall(side.outputSet.contains) && areNeverNull(columns, side)
        )
      case FileRelation(relation) => WholeColumns.facts(relation, columns).exists(!_.hasNulls)
      case _ => false
    })
  }

  /** Sides whose columns an outer join does not fill with nulls. */
  private def sidesWithoutNulls(join: Join): Seq[LogicalPlan] = join.joinType match {
    case _: InnerLike => join.children
    case LeftOuter | LeftSemi | LeftAnti => Seq(join.left)
    case RightOuter => Seq(join.right)
    case _ => Nil
  }

  /**
   * Which columns tell the rows of a plan apart.
   *
   * @param ofTable whether columns do so in a table
   */
  private final class Uniqueness(
      ofTable: (LogicalPlan, FileRelation, Seq[Attribute]) => Boolean
  ) {

    def areUnique(columns: Seq[Attribute], plan: LogicalPlan): Boolean =
      columns.nonEmpty && columns.forall(plan.outputSet.contains) &&
        (EquiJoin.areUnique(EquiJoin.uniqueKeys(plan), columns) || areUniqueBelow(columns, plan))

    private def areUniqueBelow(columns: Seq[Attribute], plan: LogicalPlan): Boolean = plan match {
      case Project(list, child) =>
        ExpressionSets.all(columns.map(renamed(_, list))).exists(areUnique(_, child))
      // Each of its groups has the values of some row, and no other group has all those that it is grouped by.
      case aggregate: Aggregate =>
        val below = ExpressionSets.all(columns.map(renamed(_, aggregate.aggregateExpressions)))
        aggregate.hint.isEmpty && below.exists(keys =>
          keys.forall(ExpressionSets.has(aggregate.groupingExpressions, _)) &&
            areUnique(keys, aggregate.child)
        )
      case _: Filter | _: Sort | _: GlobalLimit | _: LocalLimit | _: Offset | _: Distinct |
          _: RepartitionOperation | _: Window | _: WindowGroupLimit | _: SubqueryAlias =>
        areUnique(columns, plan.children.head)
      case join: Join => join.joinType match {
          case LeftSemi | LeftAnti | _: ExistenceJoin => areUnique(columns, join.left)
          case _: InnerLike =>
            areUniqueOn(columns, join.left, join, join.right) ||
            areUniqueOn(columns, join.right, join, join.left)
          case LeftOuter => areUniqueOn(columns, join.left, join, join.right)
          case RightOuter => areUniqueOn(columns, join.right, join, join.left)
          case _ => false
        }
      case FileRelation(relation) => ofTable(plan, relation, columns)
      case _ => false
    }

    /** Whether they are on one side, of which each row has one match at most on the other. */
    private def areUniqueOn(
        columns: Seq[Attribute],
        side: LogicalPlan,
        join: Join,
        other: LogicalPlan
    ): Boolean = columns.forall(side.outputSet.contains) && {
      val keys = comparedBy(join).map(pair => if (other eq join.right) pair._2 else pair._1)
      areUnique(columns, side) && areUnique(keys.flatMap(FileColumns.renamed), other)
    }
  }

  /**
   * What each row of a join has equal values of, on the left and on the right side. Without null-safe
   * comparisons, which nulls pass.
   */
  def comparedBy(join: Join): Seq[(Expression, Expression)] = join match {
    case ExtractEquiJoinKeys(_, left, right, _, _, _, _, _) => left.zip(right)
    case _ => Nil
  }

  /** The column that an expression of the results of a projection is, or is cast from. */
  def renamed(column: Attribute, results: Seq[NamedExpression]): Option[Attribute] =
    results.find(_.exprId == column.exprId).flatMap {
      case Alias(value, _) => FileColumns.renamed(value)
      case attribute: Attribute => Some(attribute)
      case _ => None
    }

  /**
   * Whether each value of `key` in the rows of `plan`, nulls left aside, is one of a column of files, all
   * of whose rows are read. Proven where that column has all whole numbers of a range, and footers
   * say that `key` does not leave it.
   */
  def areAmong(key: Attribute, plan: LogicalPlan, all: FileColumn): Boolean = {
    val areSameKind = key.dataType == all.column.dataType ||
      NumericAxis.isWhole(key.dataType) && NumericAxis.isWhole(all.column.dataType)
    val proven = for {
      origins <- FileColumns.origins(key, plan)
      facts <- WholeColumns.facts(all.relation, Seq(all.column))
      (least, most) <- facts.consecutive
    } yield origins.forall(FileColumns.liesWithin(_, least, most))
    areSameKind && proven.contains(true)
  }
}
