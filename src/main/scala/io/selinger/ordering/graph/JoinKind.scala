package io.selinger.ordering.graph

import io.selinger.core.JoinSymbol

/**
 * What a join does with rows that find no partner. A right outer join is a left outer join with its
 * sides exchanged.
 *
 * @param commutes whether its sides may be exchanged
 * @param symbol in texts of trees
 */
sealed abstract class JoinKind(val commutes: Boolean, val symbol: String)
    extends Product
    with Serializable

object JoinKind {

  /** Cross products are inner joins without a predicate. */
  case object Inner extends JoinKind(true, JoinSymbol.Inner)
  case object LeftOuter extends JoinKind(false, JoinSymbol.Outer)
  case object FullOuter extends JoinKind(true, JoinSymbol.Full)
  case object Semi extends JoinKind(false, JoinSymbol.Semi)
  case object Anti extends JoinKind(false, JoinSymbol.Anti)

  /** Keeps every left row and says whether it has a partner. */
  case object Existence extends JoinKind(false, JoinSymbol.Existence)

  val all: Seq[JoinKind] = Seq(Inner, LeftOuter, FullOuter, Semi, Anti, Existence)
}

/**
 * Which pairs of joins may change places: the three properties of Moerkotte, Fender and Eich [1], on
 * which every reordering rests. `a` is the lower join of the form on the left, `b` the upper one; a
 * predicate p23 concerns inputs 2 and 3.
 *
 * Existence joins keep their left rows, each once, as the group join of [1] does.
 *
 * References: [1] On the Correct and Complete Enumeration of the Core Search Space, SIGMOD 2013,
 * tables 1 to 3.
 */
object JoinProperties {
  import JoinKind._

  /**
   * `(e1 a12 e2) b23 e3 = e1 a12 (e2 b23 e3)`.
   *
   * @param aRejects whether p12 is never true of an input 2 that is all null
   * @param bRejects the same of p23
   */
  def associative(a: JoinKind, b: JoinKind, aRejects: => Boolean, bRejects: => Boolean): Boolean =
    (a, b) match {
      case (Inner, FullOuter) => false
      case (Inner, _) => true
      case (LeftOuter | FullOuter, LeftOuter) => bRejects
      case (FullOuter, FullOuter) => aRejects && bRejects
      case _ => false
    }

  /**
   * `(e1 a12 e2) b13 e3 = (e1 b13 e3) a12 e2`.
   *
   * @param aRejects whether p12 is never true of an input 1 that is all null
   * @param bRejects the same of p13
   */
  def leftAsscom(a: JoinKind, b: JoinKind, aRejects: => Boolean, bRejects: => Boolean): Boolean =
    (a, b) match {
      case (FullOuter, LeftOuter) => bRejects
      case (LeftOuter, FullOuter) => aRejects
      case (FullOuter, FullOuter) => aRejects && bRejects
      case (FullOuter, _) | (_, FullOuter) => false
      case _ => true
    }

  /**
   * `e1 a13 (e2 b23 e3) = e2 b23 (e1 a13 e3)`.
   *
   * @param aRejects whether p13 is never true of an input 3 that is all null
   * @param bRejects the same of p23
   */
  def rightAsscom(a: JoinKind, b: JoinKind, aRejects: => Boolean, bRejects: => Boolean): Boolean =
    (a, b) match {
      case (Inner, Inner) => true
      case (FullOuter, FullOuter) => aRejects && bRejects
      case _ => false
    }
}
