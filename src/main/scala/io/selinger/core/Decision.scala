package io.selinger.core

import java.util.concurrent.atomic.AtomicReference
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan
import org.apache.spark.sql.catalyst.trees.{TreeNode, TreeNodeTag}

/** What became of a rule at one node. */
sealed abstract class Outcome(val label: String)

object Outcome {

  /** The plan differs from what stock Spark would have run. */
  case object Changed extends Outcome("changed")

  /** The rule decided, and stock Spark would have done the same. */
  case object Same extends Outcome("same")

  /** The rule would have changed the plan, and the mode is `advise`. */
  case object Advised extends Outcome("advised")

  /** The rule left the node to Spark. */
  case object Declined extends Outcome("declined")

  /** The rule raised an error or returned something invalid; the query went on without it. */
  case object Failed extends Outcome("failed")

  /** Facts that other decisions use; the plan is not concerned. */
  case object Informed extends Outcome("informed")

  /** Of a rule that changes the plan where the mode lets it. */
  def acting(mode: Mode): Outcome = if (mode == Mode.On) Changed else Advised

  /** The same, of a rule with preconditions. */
  def of(unmet: Option[Reason], mode: Mode): Outcome =
    if (unmet.isDefined) Declined else acting(mode)
}

/** Static: before the query ran. Adaptive: between its stages, with measured sizes. */
sealed abstract class Phase(val label: String)

object Phase {
  case object Static extends Phase("static")
  case object Adaptive extends Phase("adaptive")
}

/** The sides of a join, each by the tables that it reads: `customers`, `(sales ⋈ items)`. */
final case class JoinSides(left: String, right: String)

/** Seconds that something is expected to take, in stock Spark's plan and as it was chosen. */
final case class ExpectedWork(stock: Double, chosen: Double)

/**
 * One decision with everything that explains it.
 *
 * @param rule id of the rule that decided
 * @param node the operator concerned, readable
 * @param key identifies the operator across re-planning of one query (expression ids included)
 * @param chosen what was chosen, where there was a choice
 * @param stock what stock Spark would have run there
 * @param detail what the reason's sentence cannot say (an error message, say)
 * @param setting the Spark conf that would change the outcome
 * @param settingTo the value of it that would; an empty one means that it must be unset
 * @param title what explain calls the operator, by its tables; [[node]] where there is none
 * @param sides of a join
 * @param tables how many tables are concerned, where their order was decided
 * @param orders the tables in the order of stock Spark and in the one chosen, where these differ
 * @param work what was expected of the plan that stock Spark would run there, and of the one chosen
 */
final case class Decision(
    rule: String,
    node: String,
    key: String,
    outcome: Outcome,
    reason: Reason,
    phase: Phase = Phase.Static,
    chosen: Option[String] = None,
    stock: Option[String] = None,
    evidence: Seq[Evidence] = Nil,
    detail: Option[String] = None,
    setting: Option[String] = None,
    settingTo: Option[String] = None,
    title: Option[String] = None,
    sides: Option[JoinSides] = None,
    tables: Option[Int] = None,
    orders: Option[Orders] = None,
    work: Option[ExpectedWork] = None
)

object Decision {

  // Decisions live on the plan they are about: no registry to bound, nothing to leak, and they are
  // still there after adaptive re-planning has copied the node.
  private val tag = TreeNodeTag[Seq[Decision]]("selinger.decisions")

  private val orderedTag = TreeNodeTag[Unit]("selinger.ordered")

  /** Marks a join whose cost is part of the cost of an order. */
  def markOrdered(join: TreeNode[_]): Unit = join.setTagValue(orderedTag, ())

  def isOrdered(join: TreeNode[_]): Boolean = join.getTagValue(orderedTag).isDefined

  def recordedAt(node: TreeNode[_]): Seq[Decision] =
    node.getTagValue(
      tag
    ).getOrElse(Nil) ++ node.getTagValue(lateTag).fold(Seq.empty[Decision])(_.get)

  /**
   * Records what `decision.rule` decided at `node`, in place of what it decided there before. Rules
   * that inform about leaves keep that elsewhere: the plans of several queries share these.
   */
  def record(node: TreeNode[_], decision: Decision): Unit = {
    val before = node.getTagValue(tag).getOrElse(Nil)
    node.setTagValue(tag, before.filterNot(isReplacedBy(decision)) :+ decision)
  }

  private val leafTag = TreeNodeTag[Seq[Decision]]("selinger.decisionsOfLeaf")

  /** Records a decision at a leaf that no other query has, as its root. */
  def recordAtLeaf(leaf: LogicalPlan, decision: Decision): Unit =
    leaf.setTagValue(leafTag, recordedAtLeaf(leaf) :+ decision)

  def recordedAtLeaf(leaf: LogicalPlan): Seq[Decision] = leaf.getTagValue(leafTag).getOrElse(Nil)

  // Copies of a node have the same list.
  private val lateTag = TreeNodeTag[AtomicReference[Seq[Decision]]]("selinger.lateDecisions")

  /**
   * Prepares a node of a plan that has not begun to run for decisions which are made while it runs:
   * adaptive execution drops the copies of a node in plans that are like the one it has.
   */
  def expectAt(node: TreeNode[_]): Unit =
    if (node.getTagValue(lateTag).isEmpty) {
      node.setTagValue(lateTag, new AtomicReference(Seq.empty[Decision]))
    }

  /** Records what was decided while a query runs, at a node or a copy of it (see [[expectAt]]). */
  def recordLate(node: TreeNode[_], decision: Decision): Unit = {
    expectAt(node)
    node.getTagValue(lateTag).foreach { decisions =>
      val _ = decisions.updateAndGet(_.filterNot(isReplacedBy(decision)) :+ decision)
    }
  }

  /** Records what went wrong at a node: where decisions are expected while a query runs, as one of these. */
  def recordFailure(node: TreeNode[_], decision: Decision): Unit =
    if (node.getTagValue(lateTag).isDefined) recordLate(node, decision) else record(node, decision)

  private def isReplacedBy(decision: Decision)(other: Decision): Boolean =
    other.rule == decision.rule && other.key == decision.key
}
