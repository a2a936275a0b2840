package io.selinger.reference

/**
 * The families of Spark's rules that the references of the design walk through, in the order of the table in
 * `docs/rules.md`. A family is added to one of these lists, with its files in `tests/sql/families`.
 */
object Families {
  val all: Seq[Family] =
    LogicalFamilies.all ++ ExpressionFamilies.all ++ JoinFamilies.all ++ AggregateFamilies.all ++
      StatisticsFamilies.all
}
