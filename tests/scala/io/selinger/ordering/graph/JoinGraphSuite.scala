package io.selinger.ordering.graph

import org.apache.spark.sql.catalyst.expressions._
import org.apache.spark.sql.catalyst.plans.logical.{Filter, LocalRelation}
import org.apache.spark.sql.types.IntegerType
import org.scalatest.funsuite.AnyFunSuite

class JoinGraphSuite extends AnyFunSuite {

  private def relation(name: String) =
    LocalRelation(
      AttributeReference(s"$name.x", IntegerType)(),
      AttributeReference(s"$name.y", IntegerType)()
    )

  private val (a, b, c) = (relation("a"), relation("b"), relation("c"))
  private val (ax, ay) = (a.output(0), a.output(1))
  private val (bx, by) = (b.output(0), b.output(1))
  private val cx = c.output(0)

  private def set(relations: Int*): RelationSet = RelationSet.of(relations)

  private def graph(conditions: Expression*): JoinGraph =
    JoinGraph.of(Seq(a, b, c), conditions, a.output ++ c.output).get

  test("equalities are transitive: relations that share a key are joined by it") {
    val found = graph(EqualTo(ax, bx), EqualTo(bx, cx))
    assert(found.conditionBetween(set(0), set(2)).contains(EqualTo(ax, cx)))
  }

  test("a class gives a join one key, and one that the query names") {
    val found = graph(EqualTo(ax, bx), EqualTo(bx, cx), EqualTo(ax, cx))
    assert(found.keys.size == 1)
    assert(found.conditionBetween(set(1), set(2)).contains(EqualTo(bx, cx)))
    assert(found.conditionBetween(set(2), set(1)).contains(EqualTo(cx, bx)))
  }

  test("a class joins members that the query does not compare where it names no equality") {
    val found = graph(EqualTo(ax, bx), EqualTo(bx, cx))
    assert(found.conditionBetween(set(0, 1), set(2)).contains(EqualTo(bx, cx)))
    assert(found.conditionBetween(set(0), set(2)).contains(EqualTo(ax, cx)))
    assert(found.conditionBetween(set(2), set(0)).contains(EqualTo(cx, ax)))
  }

  test("two columns of one relation in a class are compared in that relation") {
    val found = graph(EqualTo(ax, bx), EqualTo(ay, bx), EqualTo(bx, cx))
    assert(found.relations(0) == Filter(EqualTo(ax, ay), a))
    assert(found.conditionBetween(set(0), set(1)).contains(EqualTo(ax, bx)))
  }

  test("a condition on one relation moves to it, once") {
    val positive = GreaterThan(by, Literal(0))
    val found = graph(EqualTo(ax, bx), EqualTo(bx, cx), positive, positive)
    assert(found.relations(1) == Filter(positive, b))
  }

  test("other conditions are evaluated where their last relation comes in, and only there") {
    val sum = LessThan(Add(ax, by), cx)
    val found = graph(EqualTo(ax, bx), EqualTo(ay, cx), sum)
    assert(found.conditionBetween(set(0), set(1)).contains(EqualTo(ax, bx)))
    assert(found.conditionBetween(set(0, 1), set(2)).exists(_.exists(_ == sum)))
    assert(found.conditionBetween(set(0, 2), set(1)).exists(_.exists(_ == sum)))
  }

  test("null-safe equality joins, but is not transitive with plain equality") {
    val found = graph(EqualNullSafe(ax, bx), EqualTo(bx, cx))
    assert(found.isConnected)
    assert(found.conditionBetween(set(0), set(2)).isEmpty)
  }

  test("an equality of a sum over two relations joins both with the third") {
    val found = graph(EqualTo(ax, bx), EqualNullSafe(Add(ay, by), cx))
    assert(found.isConnected)
    assert(found.shape.connection(set(0, 1), set(2)).isDefined)
    assert(found.shape.connection(set(0), set(2)).isEmpty)
    assert(found.shape.connection(set(1), set(2)).isEmpty)
  }

  test("relations that a comparison alone joins are connected, by it") {
    val found = graph(EqualTo(ax, bx), LessThan(bx, cx))
    assert(found.isConnected)
    assert(found.conditionBetween(set(1), set(2)).contains(LessThan(bx, cx)))
    assert(found.shape.connection(set(0), set(2)).isEmpty)
  }

  test("a relation that no condition reaches is joined where it was written") {
    val found = graph(EqualTo(ax, bx))
    assert(found.conditionBetween(set(0, 1), set(2)).isEmpty)
    assert(found.shape.connection(set(0, 1), set(2)).contains(Connection.inner))
    assert(found.shape.connection(set(0), set(2)).isEmpty)
  }

  test("columns are required until their last condition is evaluated") {
    val found = graph(EqualTo(ax, bx), EqualTo(by, cx))
    assert(found.requiredOf(set(0, 1)) == Seq(ax, ay, by))
    assert(found.requiredOf(set(0, 1, 2)) == a.output ++ c.output)
  }

  test("conditions without columns or with columns of others make no graph") {
    val other = AttributeReference("z", IntegerType)()
    assert(JoinGraph.of(Seq(a, b), Seq(EqualTo(ax, other)), Nil).isEmpty)
    assert(JoinGraph.of(Seq(a, b), Seq(Literal(true)), Nil).isEmpty)
  }
}
