package io.selinger.ordering

import io.selinger.ordering.graph.JoinGraph
import org.apache.spark.sql.catalyst.expressions.{AttributeReference, EqualTo}
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation
import org.apache.spark.sql.types.IntegerType
import scala.util.Random

/** Join graphs of the usual forms, over empty relations of one column an edge. */
object JoinGraphs {

  /** Relations `0` to `size - 1`, and which of them equalities join. */
  def graph(size: Int, edges: Seq[(Int, Int)]): JoinGraph = {
    val columns = Vector.tabulate(size, edges.size)((i, e) =>
      AttributeReference(s"r${i}_$e", IntegerType)()
    )
    val relations = columns.zipWithIndex.map { case (all, i) =>
      val used = edges.zipWithIndex.collect { case ((a, b), e) if a == i || b == i => all(e) }
      LocalRelation(used: _*)
    }
    val conditions = edges.zipWithIndex.map { case ((a, b), e) =>
      EqualTo(columns(a)(e), columns(b)(e))
    }
    JoinGraph.of(relations, conditions, relations.flatMap(_.output)).get
  }

  def chain(size: Int): JoinGraph = graph(size, (1 until size).map(i => (i - 1, i)))
  def cycle(size: Int): JoinGraph =
    graph(size, (1 until size).map(i => (i - 1, i)) :+ ((0, size - 1)))
  def star(size: Int): JoinGraph = graph(size, (1 until size).map(i => (0, i)))
  def clique(size: Int): JoinGraph =
    graph(size, for (a <- 0 until size; b <- a + 1 until size) yield (a, b))

  /** A connected one: a random tree and some edges more. */
  def random(size: Int, random: Random): JoinGraph = {
    val tree = (1 until size).map(i => (random.nextInt(i), i))
    val more = Seq.fill(random.nextInt(size))((random.nextInt(size), random.nextInt(size)))
      .collect { case (a, b) if a != b => (math.min(a, b), math.max(a, b)) }
    graph(size, (tree ++ more).distinct)
  }
}
