package io.selinger.core

/**
 * A tree to draw: operators of a plan, or tables in an order of joins.
 *
 * @param name the operator, or the table
 * @param symbol what kind of join it is, where it is one
 * @param table what a leaf of a plan reads
 * @param rows that it returned when the query ran
 * @param estimated rows that it was expected to return
 * @param isReduced whether a runtime filter removed rows before they were counted
 */
final case class RowTree(
    name: String,
    symbol: Option[String] = None,
    table: Option[String] = None,
    rows: Option[Double] = None,
    estimated: Option[Quantity] = None,
    isReduced: Boolean = false,
    inputs: Seq[RowTree] = Nil
)

/** Two orders of the same tables. */
final case class Orders(stock: RowTree, chosen: RowTree)
