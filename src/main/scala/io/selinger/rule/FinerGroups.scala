package io.selinger.rule

import io.selinger.core.{RaisedErrors, Reason}
import io.selinger.estimate.plans.ExactSums
import org.apache.spark.sql.catalyst.expressions.{Left => _, _}
import org.apache.spark.sql.catalyst.expressions.aggregate.AggregateExpression
import org.apache.spark.sql.catalyst.plans.logical.{Aggregate, Filter, LogicalPlan, Project}

/**
 * Aggregations that are computed from the groups of a finer one.
 *
 * @param fine groups by the most columns
 * @param coarse group the same rows by some of these columns, or by none
 * @param groups those of `fine`, for the rows of all of them, with the partial results that `coarse` merge
 * @param merged each of `coarse` over `groups`
 * @param compared each by itself with `groups`, which are read in each place
 */
private[rule] final case class FinerGroups(
    fine: Aggregate,
    coarse: Vector[Aggregate],
    groups: CoveringPlan,
    merged: Seq[MergedGroups],
    compared: ComputedTogether
) {

  def aggregates: Seq[Aggregate] = fine +: coarse

  /** Each once: Spark computes equal ones once anyway. */
  lazy val distinct: Seq[Aggregate] = aggregates.distinctBy(_.canonicalized)

  /** What takes the place of an aggregation that is equal to `fine`. */
  def inPlaceOfFine(place: Aggregate): Option[LogicalPlan] = groups.copied.map { copy =>
    val values = fine.output.map(copy.columns.head(_))
    Project(
      place.output.zip(values).map { case (column, value) =>
        Alias(value, column.name)(column.exprId, explicitMetadata = Some(column.metadata))
      },
      rowsOf(0, copy)
    )
  }

  /** What takes the places of `coarse`. */
  def inPlacesOfCoarse: Option[Seq[LogicalPlan]] =
    ExpressionSets.all(merged.zipWithIndex.map { case (each, i) =>
      groups.copied.map { copy =>
        val columns = copy.columns(i + 1)
        def over(expression: Expression) = expression.transform {
          case column: Attribute => columns.getOrElse(column, column)
        }
        Aggregate(
          each.keys.map(over),
          each.results.map(result => AggregatePush.named(over(result))),
          rowsOf(i + 1, copy)
        )
      }
    })

  private def rowsOf(i: Int, copy: CoveringPlan): LogicalPlan =
    copy.owed(i).reduceOption(And(_, _)).fold(copy.plan)(Filter(_, copy.plan))
}

/** @param keys over finer groups, as are the results */
private[rule] final case class MergedGroups(keys: Seq[Expression], results: Seq[NamedExpression])

private[rule] object FinerGroups {

  def of(fine: Aggregate): FinerGroups =
    FinerGroups(
      fine,
      Vector.empty,
      CoveringPlan(fine, Nil, Nil, false),
      Nil,
      ComputedTogether.unknown
    )

  /** With more; why not, if they group the same rows by some of the columns. */
  def including(
      known: FinerGroups,
      more: Seq[Aggregate]
  ): Either[Option[Reason], FinerGroups] = derived(known.fine, known.coarse ++ more)

  private def derived(
      fine: Aggregate,
      coarse: Vector[Aggregate]
  ): Either[Option[Reason], FinerGroups] = {
    val found = for {
      input <- CoveringPlan.of((fine +: coarse).map(_.child))
      keys <- input.allTranslated(0, fine.groupingExpressions)
      below = input.owedOver(keys)
      if CoveringPlan.areGroups(below.owed, keys)
      results <- below.allTranslated(0, fine.aggregateExpressions)
      coarser <- ExpressionSets.all(coarse.indices.map { i =>
        below.allTranslated(i + 1, coarse(i).groupingExpressions)
      })
      if coarser.forall(ExpressionSets.hasAll(keys, _)) && coarser.flatten.forall(isComparable)
    } yield (below, keys, results.map(AggregatePush.named), coarser)
    found.toRight(None).flatMap { case (below, keys, results, coarser) =>
      ExpressionSets
        .all(coarse.indices.map(i => divided(coarse(i), below, i + 1)))
        .toRight(Some(PushAggregateBelowJoin.NotDivisible))
        .flatMap { functions =>
          val columns = new Columns(results, keys, functions.flatMap(_.flatMap(_._2.parts)))
          val plan = Aggregate(keys, columns.all, below.plan)
          val raises = (below.isOwed || below.hasForeignRows) &&
            RaisedErrors.operatorMayRaise(plan, ExactSums.fits)
          if (raises) Left(Some(Reason.MayRaise))
          else if (!CoveringPlan.canBePlanned(columns.all)) Left(None)
          else {
            val merged = coarse.indices.map { i =>
              mergedBy(coarse(i), coarser(i), functions(i), below.columns(i + 1), columns)
            }
            ExpressionSets.all(merged).toRight(None).map { merged =>
              FinerGroups(
                fine,
                coarse,
                groupsOf(fine, plan, below, columns),
                merged,
                ComputedTogether.unknown
              )
            }
          }
        }
    }
  }

  /** Of equal keys that are not the same, each aggregation might return another one. */
  private def isComparable(key: Expression): Boolean = key match {
    case column: Attribute => AggregatePush.isComparable(column)
    case other => other.foldable
  }

  private type Divided = Seq[(ExprId, PartialAggregate)]

  /** The functions of an aggregation by their ids, over the covering plan of the rows. */
  private def divided(one: Aggregate, below: CoveringPlan, i: Int): Option[Divided] = {
    val functions = AggregatePush.functionsOf(one).map { function =>
      below.translated(i, function).collect { case made: AggregateExpression => made }
        .flatMap(PartialAggregate.of(_, below.plan))
        .map(function.resultId -> _)
    }
    ExpressionSets.all(functions)
  }

  /** An aggregation over finer groups; none if it reads a column that they have not. */
  private def mergedBy(
      one: Aggregate,
      keys: Seq[Expression],
      functions: Divided,
      below: AttributeMap[Attribute],
      columns: Columns
  ): Option[MergedGroups] = {
    val values = functions.toMap
    def over(result: Expression): Option[Expression] = result match {
      case function: AggregateExpression =>
        values.get(function.resultId).map(known => columns.ofParts(known.merged))
      case column: Attribute => below.get(column).flatMap(columns.ofKey)
      case other if other.children.isEmpty => Some(other)
      case other => ExpressionSets.all(other.children.map(over)).map(other.withNewChildren)
    }
    for {
      grouped <- ExpressionSets.all(keys.map(columns.ofKey))
      results <- ExpressionSets.all(one.aggregateExpressions.map {
        case column: Attribute => over(column).map(nameAs(column, _))
        case other => over(other).map(AggregatePush.named)
      })
    } yield MergedGroups(grouped, results)
  }

  private def nameAs(column: Attribute, value: Expression): NamedExpression =
    Alias(value, column.name)(column.exprId, explicitMetadata = Some(column.metadata))

  private def groupsOf(
      fine: Aggregate,
      plan: Aggregate,
      below: CoveringPlan,
      columns: Columns
  ): CoveringPlan = {
    val same = AttributeMap(plan.output.map(column => column -> column))
    CoveringPlan(
      plan,
      AttributeMap(fine.output.zip(plan.output)) +: below.owed.tail.map(_ => same),
      below.owed.map(_.map(_.transform { case column: Attribute =>
        columns.ofKey(column).fold(column)(_.toAttribute)
      })),
      below.hasForeignRows
    )
  }

  /** The result columns of the finer groups: the first are those of the finer aggregation. */
  private final class Columns(
      results: Seq[NamedExpression],
      keys: Seq[Expression],
      parts: Seq[Alias]
  ) {
    import ExpressionSets.{isSame, unnamed}

    private val keyed: Seq[NamedExpression] = results ++ keys.collect {
      case key: Attribute if !results.exists(column => isSame(unnamed(column), key)) => key
    }

    // Two aggregations may need the same part.
    val all: Seq[NamedExpression] = parts.foldLeft(keyed) { (known, part) =>
      if (known.exists(column => isSame(unnamed(column), part.child))) known else known :+ part
    }

    private val places: Map[ExprId, Attribute] = parts.map { part =>
      val place = all.find(column => isSame(unnamed(column), part.child)).getOrElse(part)
      part.exprId -> place.toAttribute
    }.toMap

    def ofKey(key: Expression): Option[Attribute] =
      all.find(column => isSame(unnamed(column), key)).map(_.toAttribute)

    def ofParts(merged: Expression): Expression = merged.transform {
      case part: Attribute => places.getOrElse(part.exprId, part)
    }
  }
}
