package io.selinger.exec

import java.util.concurrent.atomic.AtomicReference
import org.apache.spark.rdd.RDD
import org.apache.spark.sql.catalyst.InternalRow
import org.apache.spark.sql.catalyst.expressions.{Attribute, SortOrder}
import org.apache.spark.sql.catalyst.plans.logical.Statistics
import org.apache.spark.sql.catalyst.plans.physical.Partitioning
import org.apache.spark.sql.execution.{BinaryExecNode, LocalTableScanExec, SparkPlan, UnaryExecNode}
import org.apache.spark.sql.execution.adaptive.QueryStageExec
import scala.concurrent.Future

/**
 * The input of a shuffle that waits until the size of the join's build side has been measured. Adaptive
 * execution creates the stage of a shuffle when all stages below have finished, and `round` has not: so
 * this shuffle does not begin in this round.
 *
 * Rows, order and partitions are those of `input`, without a copy, should the plan that holds it be
 * kept and run. Memory: none. No code generation, as nothing but a shuffle reads it. To Spark's reuse
 * of exchanges it looks like its input, so a shuffle that has begun elsewhere serves here as well.
 */
final case class WaitForBuildSideExec(input: SparkPlan, round: SparkPlan) extends BinaryExecNode {
  override def left: SparkPlan = input
  override def right: SparkPlan = round
  override def output: Seq[Attribute] = input.output
  override def outputPartitioning: Partitioning = input.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = input.outputOrdering
  override def nodeName: String = "WaitForBuildSide"
  override protected def doExecute(): RDD[InternalRow] = input.execute()
  override protected def doCanonicalize(): SparkPlan = input.canonicalized
  override protected def withNewChildrenInternal(
      newLeft: SparkPlan,
      newRight: SparkPlan
  ): WaitForBuildSideExec = copy(input = newLeft, round = newRight)
}

/**
 * The input of the shuffle that runs first: of the build side that a [[WaitForBuildSideExec]] waits for.
 *
 * It is like no other plan, so that its shuffle becomes a stage of its own and is not one that has
 * finished elsewhere: the end of this stage wakes adaptive execution up, and it must never wait for
 * nothing. Rows, order and partitions are those of the child, without a copy.
 */
final case class BuildSideFirstExec(child: SparkPlan, mark: BuildSideFirstExec.Mark)
    extends UnaryExecNode {
  override def output: Seq[Attribute] = child.output
  override def outputPartitioning: Partitioning = child.outputPartitioning
  override def outputOrdering: Seq[SortOrder] = child.outputOrdering
  override def nodeName: String = "BuildSideFirst"
  override protected def stringArgs: Iterator[Any] = Iterator.empty
  override protected def doExecute(): RDD[InternalRow] = child.execute()
  override protected def withNewChildInternal(newChild: SparkPlan): BuildSideFirstExec =
    copy(child = newChild)
}

object BuildSideFirstExec {

  /** Equal to itself only. */
  final class Mark extends Serializable
}

/**
 * A stage that has not finished when adaptive execution first looks at it, and has whenever it looks
 * again. So it holds up one round of creating stages, and a plan that is kept for another round goes
 * on as if it were not there. It never runs.
 */
final class OneRoundStage extends QueryStageExec {
  private val looked = new AtomicReference[Option[Any]](None)

  override val id: Int = -1
  override val plan: SparkPlan = LocalTableScanExec(Nil, Nil, None)

  /** A copy of what it was before; every call but the first finds it finished. */
  override def resultOption: AtomicReference[Option[Any]] =
    new AtomicReference(looked.getAndSet(Some(())))

  // Asked for by whoever prints the plan, which is not to count.
  override def computeStats(): Option[Statistics] = None

  override def doMaterialize(): Future[Any] = Future.unit
  override def getRuntimeStatistics: Statistics = Statistics(sizeInBytes = 0)
  override def canEqual(that: Any): Boolean = that.isInstanceOf[OneRoundStage]
  override def productArity: Int = 0
  override def productElement(n: Int): Any = throw new IndexOutOfBoundsException(n.toString)
}
