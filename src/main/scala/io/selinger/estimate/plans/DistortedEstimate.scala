package io.selinger.estimate.plans

import io.selinger.conf.SelingerConf
import io.selinger.core.Quantity
import io.selinger.estimate.PlanEstimate
import org.apache.spark.sql.catalyst.plans.logical.LeafNode
import scala.util.Random

/**
 * Wrong estimates on purpose, for tests: no estimate, however wrong, may change an answer.
 *
 * Where `spark.selinger.test.distortion` is not 0, the rows of each relation are multiplied by a
 * factor between 1/10,000 and 10,000, and so are distinct values, widths and null shares of each
 * column. Factors depend on that seed and on the names of the columns, so that a plan is distorted
 * in the same way each time.
 *
 * Facts stay true, since a rewrite may rely on them: a bound of the rows is at most widened, and
 * unique columns, ranges of values, proven keys and what a join does with them are left alone.
 */
object DistortedEstimate {

  // Powers of ten.
  private val largest = 4.0

  def distort(leaf: LeafNode, estimate: PlanEstimate): PlanEstimate =
    SelingerConf.DISTORTION.value match {
      case 0L => estimate
      case seed => distorted(estimate, s"$seed ${leaf.output.map(_.name).mkString(",")}", leaf)
    }

  private def distorted(estimate: PlanEstimate, seed: String, leaf: LeafNode): PlanEstimate = {
    val names = leaf.output.map(column => column.exprId -> column.name).toMap
    def times(value: Double, what: String): Double =
      math.min(PlanEstimate.most, value * factor(s"$seed $what"))
    val rows = times(estimate.rows.value, "rows")
    val upperBound = math.max(rows, times(estimate.upperBound, "upper bound"))
    estimate.copy(
      rows = Quantity(rows, estimate.rows.origin),
      upperBound = upperBound,
      bound = estimate.bound.map(math.max(_, upperBound)),
      columns = estimate.columns.map { case (id, column) =>
        val name = names.getOrElse(id, "")
        id -> column.copy(
          nullFraction = column.nullFraction.map(n => math.min(1.0, times(n, s"nulls of $name"))),
          distinct = column.distinct.map(times(_, s"values of $name")),
          averageBytes = column.averageBytes.map(times(_, s"width of $name"))
        )
      },
      domains = estimate.domains.map { case (id, domain) =>
        val name = names.getOrElse(id, "")
        id -> domain.copy(values = domain.values.map(times(_, s"values of $name")), rows = rows)
      },
      sourceRows = estimate.sourceRows.map { case (id, source) => id -> times(source, "rows") }
    )
  }

  private def factor(seed: String): Double = {
    // The first draws of seeds that are alike are alike too.
    val random = new Random(seed.hashCode.toLong * 0x9e3779b97f4a7c15L)
    math.pow(10.0, (random.nextDouble() * 2 - 1) * largest)
  }
}
