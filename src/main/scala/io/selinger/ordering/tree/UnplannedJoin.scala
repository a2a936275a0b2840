package io.selinger.ordering.tree

import io.selinger.cost.{BuildSides, JoinLimits, JoinSide}
import io.selinger.ordering.graph.JoinKind
import org.apache.spark.sql.catalyst.expressions.AttributeReference
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.types.BooleanType

/**
 * A join that is not planned yet, as the model of join operators sees it. What ordering cannot know of
 * such a join is left out here and nowhere else:
 *
 *   - largest tasks: rows count as spread evenly over all tasks that run at a time;
 *   - rows that cannot be exceeded: the rows that are expected count as measured, since adaptive
 *     execution decides about hash tables that cannot spill when both shuffles have run; so there is
 *     no margin for such a table either;
 *   - broadcasts of other parts of the query: only those of the same tree count for the query's total, and
 *     none is shared with another join;
 *   - an aggregation above, hints on single joins, and the operator that Spark would choose;
 *   - the widths of values count as known, and several short keys are not packed into one long.
 *
 * A rough cost, see [[RoughCost]], knows still less: all rows have one width and one whole number as
 * key, none come partitioned, and nothing else is broadcast.
 */
private[ordering] object UnplannedJoin {

  def side(
      rows: Double,
      upperBound: Double,
      isCounted: Boolean,
      rowBytes: Double,
      keyBytes: Double,
      isNumber: Boolean,
      isPartitioned: Boolean,
      otherBroadcastBytes: Double,
      slots: Int
  ): JoinSide = JoinSide(
    rows,
    upperBound,
    maxRows = Some(rows),
    isCounted,
    rowBytes,
    widthIsKnown = true,
    keyBytes,
    packedKey = isNumber,
    singleKey = isNumber,
    shuffleExists = isPartitioned,
    largestTaskShare = 1.0 / slots,
    otherBroadcastBytes,
    broadcastPlaces = 1
  )

  def limits(ofSession: JoinLimits): JoinLimits = ofSession.copy(hashMargin = 1.0)

  /** The sides from which operators may build. */
  def builds(kind: JoinKind, hasKeys: Boolean): BuildSides =
    if (hasKeys) {
      kind match {
        case JoinKind.Inner => inner
        case JoinKind.LeftOuter => leftOuter
        case JoinKind.FullOuter => fullOuter
        case JoinKind.Semi => semi
        case JoinKind.Anti => anti
        case JoinKind.Existence => existence
      }
    } else BuildSides.of(typeOf(kind), hasKeys = false)

  private def typeOf(kind: JoinKind): JoinType = kind match {
    case JoinKind.Inner => Inner
    case JoinKind.LeftOuter => LeftOuter
    case JoinKind.FullOuter => FullOuter
    case JoinKind.Semi => LeftSemi
    case JoinKind.Anti => LeftAnti
    case JoinKind.Existence => ExistenceJoin(AttributeReference("exists", BooleanType)())
  }

  private def withKeys(kind: JoinKind): BuildSides = BuildSides.of(typeOf(kind), hasKeys = true)

  private val inner = withKeys(JoinKind.Inner)
  private val leftOuter = withKeys(JoinKind.LeftOuter)
  private val fullOuter = withKeys(JoinKind.FullOuter)
  private val semi = withKeys(JoinKind.Semi)
  private val anti = withKeys(JoinKind.Anti)
  private val existence = withKeys(JoinKind.Existence)
}
