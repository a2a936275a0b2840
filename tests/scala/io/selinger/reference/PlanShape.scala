package io.selinger.reference

import org.apache.spark.sql.catalyst.expressions.{AttributeReference, Expression}
import org.apache.spark.sql.catalyst.plans.JoinType
import org.apache.spark.sql.catalyst.plans.logical.{
  Aggregate,
  Filter,
  Join,
  LeafNode,
  LogicalPlan,
  Project
}
import org.apache.spark.sql.execution.{FileSourceScanExec, SparkPlan}

/** What expectations ask of plans. */
private[reference] object PlanShape {

  def joinTypes(plan: LogicalPlan): Seq[JoinType] = plan.collect { case join: Join =>
    join.joinType
  }

  def aggregates(plan: LogicalPlan): Seq[Aggregate] = plan.collect { case a: Aggregate => a }

  def has[A <: LogicalPlan](plan: LogicalPlan)(implicit kind: reflect.ClassTag[A]): Boolean =
    plan.exists(kind.runtimeClass.isInstance(_))

  /** Everything that operators compute, expressions within expressions included. */
  def expressions(plan: LogicalPlan): Seq[Expression] =
    plan.flatMap(_.expressions).flatMap(_.collect { case expression => expression })

  def computes[A <: Expression](plan: LogicalPlan)(implicit kind: reflect.ClassTag[A]): Boolean =
    expressions(plan).exists(kind.runtimeClass.isInstance(_))

  /** Whether filters stand on relations only. */
  def filtersAreInScans(plan: LogicalPlan): Boolean = plan.collect { case filter: Filter =>
    filter.child
  }.forall(_.isInstanceOf[LeafNode])

  /** Whether each relation has a filter right above it. */
  def allLeavesAreFiltered(plan: LogicalPlan): Boolean = {
    val filtered = plan.collect { case Filter(_, leaf: LeafNode) => leaf }
    plan.collectLeaves().size == filtered.size
  }

  /** The columns that scans read. */
  def columnsRead(operators: Seq[SparkPlan]): Seq[Seq[String]] = operators.collect {
    case scan: FileSourceScanExec => scan.requiredSchema.fieldNames.toSeq
  }

  def names(operators: Seq[SparkPlan]): Seq[String] = operators.map(_.nodeName)

  /** Whether all keys of groups are columns. */
  def groupsByColumns(aggregate: Aggregate): Boolean =
    aggregate.groupingExpressions.forall(_.isInstanceOf[AttributeReference])

  def neighbours[A <: LogicalPlan](plan: LogicalPlan)(implicit
      kind: reflect.ClassTag[A]
  ): Boolean = {
    def is(node: LogicalPlan) = kind.runtimeClass.isInstance(node)
    plan.exists(node => is(node) && node.children.exists(is))
  }

  /** The relations below the lower one of two joins, by names of their columns. */
  def joinedFirst(plan: LogicalPlan): Set[String] = plan.collect {
    case join: Join if !join.children.exists(has[Join](_)) => join
  }.headOption.fold(Set.empty[String])(_.output.map(_.name).toSet)

  def projects(plan: LogicalPlan): Int = plan.collect { case project: Project => project }.size
}
