package io.selinger.rule

import io.selinger.core.RaisedErrors
import io.selinger.estimate.PlanEstimate
import io.selinger.estimate.predicates.Selectivity
import io.selinger.stats.relations.FileRelation
import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.catalyst.FileSourceOptions
import org.apache.spark.sql.catalyst.util.{CaseInsensitiveMap, UnsafeRowUtils}
import org.apache.spark.sql.execution.datasources.{HadoopFsRelation, LogicalRelation}

/**
 * What Spark makes of an aggregation with several DISTINCT: a copy of each row for each of them, and one
 * for the functions without DISTINCT, told apart by a number; groups of all of these, which are then
 * without duplicates; and the aggregation of these groups.
 *
 * @param aggregate of the query
 * @param groups of its keys, the columns of all DISTINCT, and the number of the copy
 * @param place of that number among the columns of `expand`
 */
private[rule] final case class DistinctCopies(
    aggregate: Aggregate,
    groups: Aggregate,
    expand: Expand,
    place: Int
) {
  import DistinctCopies._

  def input: LogicalPlan = expand.child

  def isDeterministic: Boolean =
    expand.projections.forall(_.forall(_.deterministic)) &&
      !input.exists(_.expressions.exists(!_.deterministic))

  /** Whether equal values of all keys are the same, so that it does not matter which row they come from. */
  def hasPlainKeys: Boolean =
    groups.groupingExpressions.forall(key => UnsafeRowUtils.isBinaryStable(key.dataType))

  /**
   * Whether the rows are read from Parquet or ORC files, of which other columns are not read, and are the
   * same whichever columns are read. Buckets would leave out shuffles, which costs do not consider.
   */
  def isOfFiles: Boolean = {
    def visit(plan: LogicalPlan): Boolean = plan match {
      case Project(list, child) => !list.exists(SubqueryExpression.hasSubquery) && visit(child)
      case Filter(condition, child) => !SubqueryExpression.hasSubquery(condition) && visit(child)
      case relation @ LogicalRelation(files: HadoopFsRelation, _, _, _, _) =>
        val options = new FileSourceOptions(CaseInsensitiveMap(files.options))
        FileRelation.unapply(relation).isDefined && files.bucketSpec.isEmpty &&
        !options.ignoreCorruptFiles && !options.ignoreMissingFiles
      case _ => false
    }
    visit(input)
  }

  /**
   * Whether what several parts evaluate is known to raise no error, since each of them would raise it. User
   * code is not known to be safe, so none is run several times.
   */
  def isSafe: Boolean = {
    val below = input.collect {
      case Filter(condition, _) => Seq(condition)
      case Project(list, _) => list.map(ExpressionSets.unnamed)
    }.flatten
    val copied =
      expand.projections.transpose.map(_.filterNot(_.foldable)).filter(_.size > 1).flatten
    (below ++ copied).forall(RaisedErrors.isSafe)
  }

  /** Bytes of a copy: in most of them most columns are null. */
  def bytesOfCopy(known: PlanEstimate): Double = {
    val each = expand.projections.map { projection =>
      val own = AttributeSet.fromAttributeSets(projection.map(_.references)).toSeq
      known.rowBytes(own) + bytesOfNull * math.max(0, projection.size - own.size)
    }
    each.sum / each.size
  }

  /** An aggregation of the rows themselves in the place of each copy; none where they cannot be copied. */
  lazy val apart: Option[Seq[Aggregate]] = ExpressionSets.all(expand.projections.map(branch))

  /** The same groups, of these aggregations. */
  def united(branches: Seq[Aggregate]): LogicalPlan = {
    val union = Union(branches)
    val columns = union.output.zip(groups.output).map { case (made, before) =>
      // Without a qualifier, so that places that call the table otherwise stay equal.
      Alias(made, before.name)(exprId = before.exprId)
    }
    val result = Project(columns, union)
    result.copyTagsFrom(groups)
    result
  }

  private val number: Attribute = expand.output(place)

  private def branch(projection: Seq[Expression]): Option[Aggregate] =
    PlanCopy.of(reading(input, neededOf(projection))).map { copy =>
      val values = wanted(projection).map { case (column, value) => column -> copy.over(value) }
      val (blank, computed) = values.partition { case (_, value) => value.foldable }
      val columns = computed.map { case (column, value) => column -> Alias(value, column.name)() }
      val known = AttributeMap[Expression](
        blank ++ columns.map { case (column, alias) => column -> alias.toAttribute }
      )
      def over(expression: Expression): Expression = expression.transform {
        case column: Attribute => known.getOrElse(column, column)
      }
      val keys = groups.groupingExpressions.map(over).filterNot(_.foldable)
      val results = groups.aggregateExpressions.map { result =>
        val value = result match {
          case Alias(function, _) if isUnread(result.toAttribute, projection(place)) =>
            if (function.nullable) Literal(null, function.dataType)
            else Literal.default(function.dataType)
          case other => over(ExpressionSets.unnamed(other))
        }
        Alias(value, result.name)()
      }
      // Without keys there would be a group where there are no rows.
      val grouped = if (keys.isEmpty) Seq(projection(place)) else keys
      Aggregate(grouped, results, Project(columns.map { case (_, alias) => alias }, copy.plan))
    }

  /** The columns that the groups use, each with its value in a copy. */
  private def wanted(projection: Seq[Expression]): Seq[(Attribute, Expression)] =
    expand.output.zip(projection).filter { case (column, _) => groups.references.contains(column) }

  private def neededOf(projection: Seq[Expression]): AttributeSet =
    AttributeSet.fromAttributeSets(wanted(projection).map { case (_, value) => value.references })

  /** The input without columns that are not needed, which Spark does not look for any more. */
  private def reading(plan: LogicalPlan, needed: AttributeSet): LogicalPlan = plan match {
    case Project(list, child) =>
      val used = list.filter(column => needed.contains(column.toAttribute))
      Project(used, reading(child, AttributeSet.fromAttributeSets(used.map(_.references))))
    case Filter(condition, child) =>
      Filter(condition, reading(child, needed ++ condition.references))
    case other => other
  }

  /** Whether the query reads a result of the groups for other copies only. */
  private def isUnread(result: Attribute, copy: Expression): Boolean = {
    val reads = aggregate.aggregateExpressions.flatMap(readingIn(_, result))
    reads.nonEmpty && reads.forall(_.exists(!_.semanticEquals(copy)))
  }

  /** The copies that a result is read for: none where it is read for any. */
  private def readingIn(expression: Expression, result: Attribute): Seq[Option[Expression]] =
    expression match {
      case AggregateExpression(_, _, _, Some(condition), _)
          if expression.references.contains(result) =>
        Seq(Selectivity.conjuncts(condition).collectFirst {
          case EqualTo(id: Attribute, copy: Literal) if id.semanticEquals(number) => copy
        })
      case column: Attribute if column.semanticEquals(result) => Seq(None)
      case other => other.children.flatMap(readingIn(_, result))
    }
}

private[rule] object DistinctCopies {

  private val bytesOfNull = 8.0

  // Each part is a stage of its own.
  private val most = 16

  // As `RewriteDistinctAggregates` calls it. Grouping sets have a number of another name.
  private val nameOfNumber = "gid"

  def of(plan: LogicalPlan): Option[DistinctCopies] = plan match {
    case aggregate @ Aggregate(_, _, groups @ Aggregate(keys, _, expand: Expand, None), _)
        if expand.projections.size > 1 && expand.projections.size <= most =>
      expand.output.zipWithIndex.collectFirst {
        case (column, place)
            if column.name == nameOfNumber && keys.exists(_.semanticEquals(column)) &&
              areDifferent(expand.projections.map(_(place))) =>
          DistinctCopies(aggregate, groups, expand, place)
      }
    case _ => None
  }

  private def areDifferent(values: Seq[Expression]): Boolean = {
    val numbers = values.collect { case Literal(number, _) if number != null => number }
    numbers.size == values.size && numbers.distinct.size == numbers.size
  }
}
