package io.selinger.ordering.ablation

import org.apache.spark.sql.internal.SQLConf

/**
 * A part of the ordering that can be left out. What is left out gives way to the next simpler thing,
 * and the order found is a valid one in any case.
 *
 * @param name in [[Mechanism.setting]] and in the table of the benchmark
 * @param does one sentence
 * @param source where it comes from: a paper, or `own`
 */
sealed abstract class Mechanism(val name: String, val does: String, val source: String) {

  /** Whether it is in use in the session of the calling thread; never keep it beyond one planning. */
  def isOn: Boolean = !Mechanism.leftOut.contains(name)
}

object Mechanism {

  /** Names of mechanisms to leave out, parted by commas. For measurements only: not documented. */
  val setting = "spark.selinger.ordering.without"

  private def leftOut: Set[String] = {
    val names = SQLConf.get.getConfString(setting, "")
    if (names.isEmpty) Set.empty
    else {
      val found = names.split(',').map(_.trim).filter(_.nonEmpty).toSet
      val unknown = found -- all.map(_.name)
      require(unknown.isEmpty, s"$setting names no mechanism: ${unknown.mkString(", ")}")
      found
    }
  }

  // ---- search -------------------------------------------------------------------------------

  case object ExactSearch
      extends Mechanism(
        "exactSearch",
        "All csg-cmp pairs are joined where they are few; else the heuristics decide.",
        "Moerkotte, Neumann, SIGMOD 2008 (DPhyp)"
      )

  case object CostBounding
      extends Mechanism(
        "costBounding",
        "Dynamic programming leaves out what costs as much as a tree that is known.",
        "DeHaan, Tompa, SIGMOD 2007 (accumulated-cost bounding)"
      )

  case object GreedyOrder
      extends Mechanism(
        "greedyOrder",
        "The join that adds least cost comes first: one of the candidates beyond exact search.",
        "Fegaras, DEXA 1998 (GOO)"
      )

  case object CoarseToFine
      extends Mechanism(
        "coarseToFine",
        "Where joins share keys, only csg-cmp pairs on the cheapest trees at rough costs are costed in full.",
        "Charniak et al., HLT-NAACL 2006"
      )

  case object LongerImprovement
      extends Mechanism(
        "longerImprovement",
        "Where joins share keys or are dense, the tree is improved a second time, with six times as many moves.",
        "own"
      )

  case object LinDp
      extends Mechanism(
        "linDp",
        "The best bushy tree that keeps a linear order of the relations.",
        "Neumann, Radke, SIGMOD 2018 (LinDP)"
      )

  case object Ikkbz
      extends Mechanism(
        "ikkbz",
        "Linear orders of a spanning tree, beside those of the greedy tree and the order written.",
        "Krishnamurthy, Boral, Zaniolo, VLDB 1986 (IKKBZ)"
      )

  case object Idp2
      extends Mechanism(
        "idp2",
        "Costly parts of a tree are ordered anew, exactly.",
        "Kossmann, Stocker, TODS 2000 (IDP-2)"
      )

  case object SubtreeMoves
      extends Mechanism(
        "subtreeMoves",
        "Subtrees are moved to other nodes that a join leads to.",
        "own"
      )

  case object RepeatedImprovement
      extends Mechanism(
        "repeatedImprovement",
        "IDP-2, moves and LinDP are repeated with the tree that they have led to.",
        "own"
      )

  case object RoughTrees
      extends Mechanism(
        "roughTrees",
        "Regions of many relations are searched at rough costs; what is found is costed in full.",
        "own"
      )

  case object SpanningNeighbours
      extends Mechanism(
        "spanningNeighbours",
        "In very dense graphs GOO tries the neighbours on a spanning tree only.",
        "own"
      )

  // ---- costs of trees -----------------------------------------------------------------------

  case object ComparedKeys
      extends Mechanism(
        "comparedKeys",
        "Where keys are hundreds, only the most selective ones of each relation count.",
        "own"
      )

  case object Surcharge
      extends Mechanism(
        "surcharge",
        "Of joins that cost about the same, those whose rows may be far more cost up to 2 % more.",
        "own"
      )

  case object RowsBelowOne
      extends Mechanism(
        "rowsBelowOne",
        "The share of a row that is expected goes along where estimates end at one row.",
        "own"
      )

  case object Partitionings
      extends Mechanism(
        "partitionings",
        "A join may use the partitioning that one below it leaves (interesting orders).",
        "Selinger et al., SIGMOD 1979"
      )

  // ---- the join graph -----------------------------------------------------------------------

  case object TransitiveKeys
      extends Mechanism(
        "transitiveKeys",
        "Relations whose keys are equal by transitivity may be joined with each other.",
        "equivalence classes, as in PostgreSQL"
      )

  case object OuterJoins
      extends Mechanism(
        "outerJoins",
        "Outer, semi, anti and existence joins change places, too.",
        "Moerkotte, Fender, Eich, SIGMOD 2013 (CD-C)"
      )

  case object SemiJoins
      extends Mechanism(
        "semiJoins",
        "IN and EXISTS become joins before the ordering.",
        "own"
      )

  case object AntiJoins
      extends Mechanism(
        "antiJoins",
        "LEFT JOIN … WHERE key IS NULL moves as the anti join that it is.",
        "own"
      )

  case object SharedSubplans
      extends Mechanism(
        "sharedSubplans",
        "What IN and EXISTS ask for several times stays as it is, so that it runs once.",
        "own"
      )

  // ---- the choice ---------------------------------------------------------------------------

  case object DoubtMargin
      extends Mechanism(
        "doubtMargin",
        "The gain that an order must bring grows with doubt and with the number of joins.",
        "own"
      )

  case object RobustGain
      extends Mechanism(
        "robustGain",
        "A quarter of the margin is enough for an order that is no worse at the upper bounds of rows.",
        "own"
      )

  case object SharedOrders
      extends Mechanism(
        "sharedOrders",
        "Orders of several regions are chosen together, so that what they share runs once.",
        "own"
      )

  case object Postponement
      extends Mechanism(
        "postponement",
        "Relations in which two regions differ may come later, so that the rest is shared.",
        "own"
      )

  val all: Seq[Mechanism] = Seq(
    ExactSearch,
    CostBounding,
    GreedyOrder,
    CoarseToFine,
    LongerImprovement,
    LinDp,
    Ikkbz,
    Idp2,
    SubtreeMoves,
    RepeatedImprovement,
    RoughTrees,
    SpanningNeighbours,
    ComparedKeys,
    Surcharge,
    RowsBelowOne,
    Partitionings,
    TransitiveKeys,
    OuterJoins,
    SemiJoins,
    AntiJoins,
    SharedSubplans,
    DoubtMargin,
    RobustGain,
    SharedOrders,
    Postponement
  )
}
