package io.selinger.exec

import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, Expression, SortOrder}
import org.apache.spark.sql.catalyst.expressions.codegen.{CodegenContext, ExprCode}
import org.apache.spark.sql.catalyst.plans.physical.{
  CoalescedHashPartitioning,
  HashPartitioning,
  Partitioning,
  PartitioningCollection,
  UnknownPartitioning
}
import org.apache.spark.sql.execution.{CodegenSupport, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.joins.ShuffledJoin

/**
 * The rows of a full outer join, and how they are partitioned, of which Spark claims nothing: by whichever
 * of two equal keys a row has.
 *
 * A row of the left side lies where its left key sends it, also if nothing on the right is equal. A row
 * of the right side for which nothing on the left is equal has no left key, and lies where its right key
 * sends it. A left key that is null is equal to nothing, so the right key beside it is null too. So each
 * row lies where coalesce(left key, right key) sends it, if both sides are partitioned by these keys.
 *
 * Rows and code are those of the join; nothing is copied. Distribution: what the join has of its left
 * side, with `either` in place of `left`; unknown if the left side is no longer partitioned so. Ordering:
 * that of the join.
 *
 * @param left columns that are keys of the join, by which its left side is partitioned; its right side is
 *   by the keys that are equal to these, which whoever makes this operator has checked
 * @param either for each of them the expression of the left and the right key
 * @param child a full outer join of two shuffled sides
 */
final case class PartitionedByEitherKeyExec(
    left: Seq[Expression],
    either: Seq[Expression],
    child: SparkPlan
) extends UnaryExecNode
    with CodegenSupport {

  override def output: Seq[Attribute] = child.output
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "PartitionedByEitherKey"
  override protected def stringArgs: Iterator[Any] = Iterator(either)

  override def outputPartitioning: Partitioning = {
    val ofLeft = child.collectFirst { case join: ShuffledJoin => join.left.outputPartitioning }
    ofLeft.flatMap(byEither).getOrElse(UnknownPartitioning(child.outputPartitioning.numPartitions))
  }

  private def byEither(partitioning: Partitioning): Option[Partitioning] = partitioning match {
    case hash: HashPartitioning => hashedByEither(hash)
    case coalesced: CoalescedHashPartitioning =>
      hashedByEither(coalesced.from).map(from => coalesced.copy(from = from))
    case PartitioningCollection(several) => several.flatMap(byEither).headOption
    case _ => None
  }

  private def hashedByEither(hash: HashPartitioning): Option[HashPartitioning] =
    Option.when(
      hash.expressions.size == left.size &&
        hash.expressions.zip(left).forall { case (key, own) => key.semanticEquals(own) }
    )(hash.copy(expressions = either))

  override protected def doExecute(): RDD[InternalRow] = child.execute()

  override def inputRDDs(): Seq[RDD[InternalRow]] = codegenOfChild.inputRDDs()

  override protected def doProduce(ctx: CodegenContext): String = codegenOfChild.produce(ctx, this)

  override def doConsume(ctx: CodegenContext, input: Seq[ExprCode], row: ExprCode): String =
    consume(ctx, input)

  private def codegenOfChild: CodegenSupport = child match {
    case code: CodegenSupport => code
    case other => throw new IllegalStateException(s"no generated code of ${other.nodeName}")
  }

  override protected def withNewChildInternal(newChild: SparkPlan): PartitionedByEitherKeyExec =
    copy(child = newChild)
}
