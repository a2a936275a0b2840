package io.selinger.bench

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans._
import org.apache.spark.sql.catalyst.plans.logical._
import org.apache.spark.sql.types.LongType
import scala.util.Random

/** A relation of which nothing is there but numbers, as ANALYZE gives them. */
final case class StatedRelation(output: Seq[Attribute], rows: Long, distinct: Seq[Long])
    extends LeafNode {

  override def computeStats(): Statistics = Statistics(
    sizeInBytes = BigInt(rows) * 8 * output.size,
    rowCount = Some(BigInt(rows)),
    attributeStats = AttributeMap(output.zip(distinct).map { case (column, values) =>
      column -> ColumnStat(
        distinctCount = Some(BigInt(values)),
        nullCount = Some(BigInt(0)),
        avgLen = Some(8L),
        maxLen = Some(8L)
      )
    })
  )
}

/**
 * Joins of a usual form, in some order, over relations with random statistics: the same for the same
 * seed.
 *
 * @param shape chain, cycle, star, clique, snowflake or tree; or one key that all of them share
 * @param mixed whether some joins are outer, semi or anti joins
 */
final case class JoinShapes(shape: String, relations: Int, mixed: Boolean, seed: Int) {
  private val random = new Random((shape, relations, mixed, seed).hashCode.toLong)

  /** Pairs of relations with a common key. */
  private val edges: IndexedSeq[(Int, Int)] = shape match {
    case "chain" => (1 until relations).map(i => (i - 1, i))
    case "cycle" => (1 until relations).map(i => (i - 1, i)) :+ ((0, relations - 1))
    case "star" => (1 until relations).map(i => (0, i))
    case "clique" => for (i <- 0 until relations; j <- i + 1 until relations) yield (i, j)
    case "snowflake" =>
      val inner = math.max(2, math.sqrt(relations.toDouble).toInt)
      (1 until relations).map(i => (if (i <= inner) 0 else 1 + random.nextInt(inner), i))
    case "tree" | "shared" => (1 until relations).map(i => (random.nextInt(i), i))
    case other => throw new IllegalArgumentException(s"no such shape: $other")
  }

  private def magnitude(least: Double, most: Double): Long =
    math.pow(10, least + random.nextDouble() * (most - least)).toLong

  private val tables: IndexedSeq[StatedRelation] = (0 until relations).map { i =>
    val rows = if (i == 0) magnitude(6, 9) else magnitude(1, 7)
    val keys = edges.zipWithIndex
      .filter { case ((a, b), _) => a == i || b == i }
      .distinctBy { case (_, e) => nameOf(i, e) }
    val columns = keys.map { case (_, e) =>
      AttributeReference(nameOf(i, e), LongType)() -> (
        // The later relation of an edge is what the earlier one refers to.
        if (edges(e)._2 == i && random.nextInt(4) > 0) rows
        else math.max(1L, math.min(rows, magnitude(1, 6)))
      )
    } :+ (AttributeReference(s"r${i}_payload", LongType)() -> math.max(1L, rows / 2))
    StatedRelation(columns.map(_._1), rows, columns.map(_._2))
  }

  private val columns: Map[String, Attribute] =
    tables.flatMap(_.output).map(column => column.name -> column).toMap

  private def nameOf(relation: Int, edge: Int): String =
    s"r${relation}_${if (shape == "shared") 0 else edge}"

  private def key(relation: Int, edge: Int): Attribute = columns(nameOf(relation, edge))

  private val neighbours: IndexedSeq[Seq[Int]] = {
    val near = edges.flatMap { case (a, b) => Seq(a -> b, b -> a) }.groupMap(_._1)(_._2)
    (0 until relations).map(near.getOrElse(_, Nil))
  }

  private def kind(relation: Int): JoinType =
    if (!mixed) Inner
    // Nothing else refers to it, so that its columns may vanish.
    else if (neighbours(relation).size == 1 && random.nextInt(10) < 4) {
      Seq(LeftOuter, LeftSemi, LeftAnti)(random.nextInt(3))
    } else if (random.nextInt(10) < 2) LeftOuter
    else Inner

  /** As a query that joins one relation after another, each with one that it has a key with. */
  lazy val plan: LogicalPlan = {
    def grow(joined: Vector[Int], plan: LogicalPlan, shown: Vector[Int]): LogicalPlan = {
      val known = joined.toSet
      val next = joined.flatMap(neighbours).distinct.filterNot(known)
      if (next.isEmpty) {
        val columns = shown.filter(i => i == 0 || i % 7 == 3).map(tables(_).output.last)
        Project(columns, plan)
      } else {
        val one = next(random.nextInt(next.size))
        val condition = edges.indices
          .collect {
            case e if edges(e)._1 == one && known(edges(e)._2) =>
              EqualTo(key(edges(e)._2, e), key(one, e))
            case e if edges(e)._2 == one && known(edges(e)._1) =>
              EqualTo(key(edges(e)._1, e), key(one, e))
          }
          .reduce[Expression](And(_, _))
        val how = kind(one)
        val visible = how match {
          case LeftSemi | LeftAnti => shown
          case _ => shown :+ one
        }
        grow(
          joined :+ one,
          Join(plan, tables(one), how, Some(condition), JoinHint.NONE),
          visible
        )
      }
    }
    grow(Vector(0), tables(0), Vector(0))
  }
}
